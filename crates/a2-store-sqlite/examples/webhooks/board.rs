//! The reducer: what a repository's log comes to, folded event by event and kept as snapshots.

use std::collections::BTreeMap;

use a2_store_sqlite::{
    Event, EventType, Index, LogTypes, ReadState, ReducerName, SessionId, Store as _,
};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::Db;

pub(crate) const THREAD_UPDATED: &str = "thread.updated";
/// The types that count; other events change nothing on the board.
const TYPES: &str = "thread.updated issues.opened issues.labeled issue_comment.created push \
                     discussion.created discussion_comment.created check_run.completed \
                     deployment.created release.published star.created repository.created \
                     team.created installation.created";

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

pub(crate) fn reducer() -> a2_store_sqlite::Result<ReducerName> {
    ReducerName::new("board")
}

/// The types that a log cursor for the board takes.
pub(crate) fn types() -> a2_store_sqlite::Result<LogTypes> {
    LogTypes::only(TYPES.split(' ').map(EventType::new).collect::<Result<Vec<_>, _>>()?)
}

impl Board {
    /// The board after the event at `through`: the newest snapshot, and what came since.
    pub(crate) async fn read(db: &Db, session: &SessionId, through: Index) -> Result<Self> {
        let stored = db.read_state(session, &reducer()?, ReadState::through(through)).await?;
        // One answer holds 10,000 events; here a snapshot is never that far away.
        ensure!(stored.through_index == through.min(stored.head), "too much to fold at once");
        let snapshot = stored.snapshot.map(|snapshot| snapshot.state.deserialize());
        let mut board = snapshot.transpose()?.unwrap_or_else(Self::default);
        stored.events.iter().try_for_each(|event| board.apply(event))?;
        Ok(board)
    }

    pub(crate) fn apply(&mut self, event: &Event) -> Result<()> {
        if TYPES.split(' ').any(|counted| event.event_type == counted) {
            *self.counts.entry(event.event_type.clone()).or_default() += 1;
        }
        if event.event_type == THREAD_UPDATED {
            let thread: Thread = event.payload.deserialize()?;
            self.threads.insert(thread.name.clone(), thread);
        }
        Ok(())
    }
}
