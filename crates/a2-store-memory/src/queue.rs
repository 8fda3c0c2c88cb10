//! What a consumer can be given: its free heads in head order, its held ones by expiry.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use a2_core::engine::{HeadRow, HeadStatus};
use a2_core::{Consumer, CursorKey, HeadRef, Index, Lane, LogName, Timestamp};

use crate::row::Stage;

/// A head among those of one consumer: they are in head order.
type Place = (Index, CursorKey);

/// A consumer of the current lifetime.
#[derive(Debug)]
pub(crate) struct ConsumerState {
    pub(crate) name: Consumer,
    free: BTreeSet<Place>,
    held: BTreeSet<(Timestamp, Place)>,
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

impl ConsumerState {
    pub(crate) fn new(name: Consumer) -> Self {
        Self {
            name,
            free: BTreeSet::new(),
            held: BTreeSet::new(),
            live_at: None,
            lanes: BTreeMap::new(),
            events: BTreeSet::new(),
            logs: BTreeMap::new(),
        }
    }

    pub(crate) fn has_live(&self) -> bool {
        !self.free.is_empty() || !self.held.is_empty()
    }

    /// A new head that is free.
    pub(crate) fn add_free(&mut self, at: &HeadRef) {
        self.free.insert((at.index, at.cursor.clone()));
    }

    /// The row of a head changed, from none or to none at its beginning and end.
    pub(crate) fn moved(
        &mut self,
        at: &HeadRef,
        before: Option<&HeadRow>,
        after: Option<&HeadRow>,
    ) {
        let place = (at.index, at.cursor.clone());
        let (before, after) = (before.and_then(queue_of), after.and_then(queue_of));
        if before == after {
            return;
        }
        let place = match before {
            None => place,
            Some(Queue::Free) => {
                self.free.remove(&place);
                place
            }
            Some(Queue::Held(until)) => {
                let held = (until, place);
                self.held.remove(&held);
                held.1
            }
        };
        match after {
            None => {}
            Some(Queue::Free) => {
                self.free.insert(place);
            }
            Some(Queue::Held(until)) => {
                self.held.insert((until, place));
            }
        }
    }

    pub(crate) fn free_heads(
        &self,
        after: Option<&HeadRef>,
        through: Index,
        limit: usize,
    ) -> Vec<HeadRef> {
        let head =
            |(index, cursor): &Place| HeadRef::new(self.name.clone(), cursor.clone(), *index);
        let until = |(index, _): &&Place| *index <= through;
        match after {
            None => self.free.iter().take_while(until).take(limit).map(head).collect(),
            Some(after) => {
                let from = (after.index, after.cursor.clone());
                let rest = self.free.range((Excluded(from), Unbounded));
                rest.take_while(until).take(limit).map(head).collect()
            }
        }
    }

    pub(crate) fn held_heads(
        &self,
        after: Option<&(Timestamp, HeadRef)>,
        until: Timestamp,
        limit: usize,
    ) -> Vec<(Timestamp, HeadRef)> {
        type Held = (Timestamp, Place);
        let head = |(at, (index, cursor)): &Held| {
            (*at, HeadRef::new(self.name.clone(), cursor.clone(), *index))
        };
        let until = |(at, _): &&Held| *at <= until;
        match after {
            None => self.held.iter().take_while(until).take(limit).map(head).collect(),
            Some((at, after)) => {
                let from = (*at, (after.index, after.cursor.clone()));
                let rest = self.held.range((Excluded(from), Unbounded));
                rest.take_while(until).take(limit).map(head).collect()
            }
        }
    }

    /// Takes one entry out, when a lifetime is reclaimed.
    pub(crate) fn pop(&mut self) -> bool {
        self.free.pop_last().is_some()
            || self.held.pop_last().is_some()
            || self.lanes.pop_last().is_some()
            || self.events.pop_last().is_some()
            || self.logs.pop_last().is_some()
    }
}

/// Where a live head stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Free,
    Held(Timestamp),
}

fn queue_of(row: &HeadRow) -> Option<Queue> {
    (row.status == HeadStatus::Live).then(|| row.held_until().map_or(Queue::Free, Queue::Held))
}
