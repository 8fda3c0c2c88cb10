//! What a consumer can be given: its free heads in head order, its held ones by expiry.
//!
//! A lifetime's rows stand in head order, so a row's number says where its head stands among the
//! others, and the sets hold numbers instead of names. Only the heads of logs have no row.

use std::collections::{BTreeMap, BTreeSet};

use a2_core::engine::{HeadRow, HeadStatus};
use a2_core::{Consumer, HeadRef, Index, Lane, LogName, Timestamp};

use crate::row::Stage;

/// A consumer of the current lifetime.
#[derive(Debug)]
pub(crate) struct ConsumerState {
    pub(crate) name: Consumer,
    pub(crate) rows: Waiting<usize>,
    pub(crate) log_heads: Waiting<HeadRef>,
    /// Where it stands among the consumers with live heads.
    pub(crate) live_at: Option<usize>,
    /// Its lanes by name, each with its number in the lifetime.
    pub(crate) lanes: BTreeMap<Lane, usize>,
    /// Its event cursors that have a head.
    pub(crate) events: BTreeSet<Index>,
    /// The heads of its logs.
    pub(crate) logs: BTreeMap<LogName, LogHead>,
}

/// The head of a log cursor.
#[derive(Debug)]
pub(crate) struct LogHead {
    pub(crate) index: Index,
    pub(crate) stage: Stage,
}

/// Live heads, the free apart from the held.
#[derive(Debug)]
pub(crate) struct Waiting<H> {
    pub(crate) free: BTreeSet<H>,
    pub(crate) held: BTreeSet<(Timestamp, H)>,
}

impl ConsumerState {
    pub(crate) fn new(name: Consumer) -> Self {
        Self {
            name,
            rows: Waiting::new(),
            log_heads: Waiting::new(),
            live_at: None,
            lanes: BTreeMap::new(),
            events: BTreeSet::new(),
            logs: BTreeMap::new(),
        }
    }

    pub(crate) fn has_live(&self) -> bool {
        !self.rows.is_empty() || !self.log_heads.is_empty()
    }

    /// Takes one entry out, when a lifetime is reclaimed.
    pub(crate) fn pop(&mut self) -> bool {
        self.rows.pop()
            || self.log_heads.pop()
            || self.lanes.pop_last().is_some()
            || self.events.pop_last().is_some()
            || self.logs.pop_last().is_some()
    }
}

impl<H: Ord + Clone> Waiting<H> {
    fn new() -> Self {
        Self { free: BTreeSet::new(), held: BTreeSet::new() }
    }

    fn is_empty(&self) -> bool {
        self.free.is_empty() && self.held.is_empty()
    }

    /// The row of a head changed; without one before it is new, without one after it goes.
    pub(crate) fn moved(&mut self, head: H, before: Option<&HeadRow>, after: Option<&HeadRow>) {
        let (before, after) = (before.and_then(place_of), after.and_then(place_of));
        if before == after {
            return;
        }
        let head = match before {
            None => head,
            Some(Place::Free) => {
                self.free.remove(&head);
                head
            }
            Some(Place::Held(until)) => {
                let held = (until, head);
                self.held.remove(&held);
                held.1
            }
        };
        match after {
            None => {}
            Some(Place::Free) => {
                self.free.insert(head);
            }
            Some(Place::Held(until)) => {
                self.held.insert((until, head));
            }
        }
    }

    fn pop(&mut self) -> bool {
        self.free.pop_last().is_some() || self.held.pop_last().is_some()
    }
}

/// Where a live head stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    Held(Timestamp),
}

fn place_of(row: &HeadRow) -> Option<Place> {
    (row.status == HeadStatus::Live).then(|| row.held_until().map_or(Place::Free, Place::Held))
}
