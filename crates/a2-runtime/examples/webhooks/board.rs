//! The reducer: what a repository's log comes to, folded event by event and kept as snapshots.

use std::collections::BTreeMap;

use a2_runtime::{Fold, RawEvent};
use a2_store_sqlite::EventType;
use serde::{Deserialize, Serialize};

/// The types that count; other events change nothing on the board.
pub(crate) const TYPES: &str = "thread.updated issues.opened issues.labeled issue_comment.created push discussion.created \
     discussion_comment.created check_run.completed deployment.created release.published \
     star.created repository.created team.created installation.created";

pub(crate) const BOARD: Fold<Board, RawEvent> =
    Fold::new("board", 1, Board::default, |board, event, _| board.apply(event));

/// How often each type occurred, and every thread as it is now.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Board {
    pub(crate) counts: BTreeMap<EventType, u64>,
    pub(crate) threads: BTreeMap<String, Thread>,
}

/// The payload of `thread.updated`.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) state: String,
    /// How many were triaged: one handled twice would show here.
    pub(crate) deliveries: u64,
}

/// Whether the board counts events of this type.
pub(crate) fn counts(event_type: &EventType) -> bool {
    TYPES.split(' ').any(|counted| *event_type == counted)
}

impl Board {
    fn apply(&mut self, event: RawEvent) {
        if event.event_type == "thread.updated"
            && let Ok(thread) = event.payload.deserialize::<Thread>()
        {
            self.threads.insert(thread.name.clone(), thread);
        }
        if counts(&event.event_type) {
            *self.counts.entry(event.event_type).or_default() += 1;
        }
    }
}
