//! A session: its events, what they were appended for, its log cursors.

use a2_core::{
    Consumer, CursorKey, DispatchState, Event, EventId, HeadRef, Index, LogName, LogTypes, Served,
    SessionId, Timer, Timestamp,
};

use super::at;
use super::served::{serves, takes};
use super::snapshot::Stored;

/// One session. It exists for others from its first append on.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(super) id: SessionId,
    /// Every event ever appended: the n-th has index n.
    pub(super) log: Vec<Entry>,
    /// The latest marker; 0 when never cleared.
    pub(super) clear_index: Index,
    pub(super) logs: Vec<Log>,
    pub(super) snapshots: Vec<Stored>,
    pub(super) timers: Vec<Timer>,
}

/// An event and what it was appended for.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) event: Event,
    pub(super) aims: Vec<Aim>,
}

/// One target of an event.
#[derive(Debug, Clone)]
pub(super) struct Aim {
    pub(super) consumer: Consumer,
    /// An event's or a lane's.
    pub(super) key: CursorKey,
    pub(super) state: DispatchState,
    pub(super) end: Option<End>,
}

/// How a head came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Completed { attempt: u64, returned: Vec<EventId> },
    Skipped,
}

/// A log cursor.
#[derive(Debug, Clone)]
pub(super) struct Log {
    pub(super) consumer: Consumer,
    pub(super) name: LogName,
    /// The types of the latest declaration.
    pub(super) types: LogTypes,
    /// The last index it has passed.
    pub(super) position: Index,
    pub(super) head: Option<(Index, DispatchState)>,
    /// How its last head came to its end, in this lifetime.
    pub(super) last: Option<(Index, End)>,
}

/// What a head reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its cursor's head, live or dead.
    Head(DispatchState),
    /// A head that came to its end.
    Ended(End),
    /// An index that the log cursor has passed; how is forgotten.
    Passed,
    /// No head: still queued, or never aimed at the cursor.
    None,
}

impl Session {
    pub(super) fn new(id: SessionId) -> Self {
        Self {
            id,
            log: Vec::new(),
            clear_index: Index::ZERO,
            logs: Vec::new(),
            snapshots: Vec::new(),
            timers: Vec::new(),
        }
    }

    /// The log's last index.
    pub(crate) fn head(&self) -> Index {
        self.log.last().map_or(Index::ZERO, |entry| entry.event.index)
    }

    /// The latest marker.
    pub(crate) fn clear_index(&self) -> Index {
        self.clear_index
    }

    /// The event at this index, also from an earlier lifetime.
    pub(crate) fn event(&self, index: Index) -> Option<&Event> {
        self.log.get(at(index).checked_sub(1)?).map(|entry| &entry.event)
    }

    /// The current lifetime: from the marker on.
    pub(super) fn lifetime(&self) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(|entry| entry.event.index >= self.clear_index)
    }

    /// The event of the current lifetime that owns the id.
    pub(super) fn owner(&self, id: &EventId) -> Option<&Event> {
        self.lifetime().map(|entry| &entry.event).find(|event| event.id == *id)
    }

    /// Every cursor's head, live or dead, in head order.
    pub(crate) fn heads(&self) -> Vec<(HeadRef, DispatchState)> {
        let mut heads = Vec::new();
        // A lane's head is its first event that has not come to its end.
        let mut lanes = Vec::new();
        for entry in self.lifetime() {
            for aim in entry.aims.iter().filter(|aim| aim.end.is_none()) {
                if matches!(aim.key, CursorKey::Lane(_)) {
                    if lanes.contains(&(&aim.consumer, &aim.key)) {
                        continue;
                    }
                    lanes.push((&aim.consumer, &aim.key));
                }
                let head = HeadRef::new(aim.consumer.clone(), aim.key.clone(), entry.event.index);
                heads.push((head, aim.state.clone()));
            }
        }
        for log in &self.logs {
            if let Some((index, state)) = &log.head {
                let key = CursorKey::Log(log.name.clone());
                heads.push((HeadRef::new(log.consumer.clone(), key, *index), state.clone()));
            }
        }
        heads.sort_by(|(a, _), (b, _)| order(a).cmp(&order(b)));
        heads
    }

    /// The state of a cursor's head, if this is one.
    pub(crate) fn head_state(&self, head: &HeadRef) -> Option<DispatchState> {
        self.heads().into_iter().find(|(h, _)| h == head).map(|(_, state)| state)
    }

    /// What a reference to an index of the current lifetime names.
    pub(super) fn standing(&self, head: &HeadRef) -> Standing {
        if let Some(state) = self.head_state(head) {
            return Standing::Head(state);
        }
        if let CursorKey::Log(name) = &head.cursor {
            return match self.log_of(&head.consumer, name) {
                Some(Log { last: Some((index, end)), .. }) if *index == head.index => {
                    Standing::Ended(end.clone())
                }
                Some(log) if head.index <= log.position => Standing::Passed,
                _ => Standing::None,
            };
        }
        let entry = self.lifetime().find(|entry| entry.event.index == head.index);
        let aims = entry.map_or(&[][..], |entry| &entry.aims);
        let aim = aims.iter().find(|a| a.consumer == head.consumer && a.key == head.cursor);
        aim.and_then(|aim| aim.end.clone()).map_or(Standing::None, Standing::Ended)
    }

    /// Whether the attempt's claim is recorded on its head.
    pub(super) fn is_current(&self, head: &HeadRef, attempt: u64) -> bool {
        self.head_state(head).is_some_and(|state| {
            state.attempt_count == attempt
                && state.claim_holder.is_some()
                && state.failed_at.is_none()
        })
    }

    /// Changes a head's state.
    pub(super) fn set_state(&mut self, head: &HeadRef, state: DispatchState) {
        match &head.cursor {
            CursorKey::Log(name) => {
                if let Some(log) = self.log_mut(&head.consumer, name) {
                    log.head = Some((head.index, state));
                }
            }
            _ => {
                if let Some(aim) = self.aim_mut(head) {
                    aim.state = state;
                }
            }
        }
    }

    pub(super) fn aim_mut(&mut self, head: &HeadRef) -> Option<&mut Aim> {
        let entry = self.log.iter_mut().find(|entry| entry.event.index == head.index)?;
        entry.aims.iter_mut().find(|a| a.consumer == head.consumer && a.key == head.cursor)
    }

    pub(super) fn log_of(&self, consumer: &Consumer, name: &LogName) -> Option<&Log> {
        self.logs.iter().find(|log| log.consumer == *consumer && log.name == *name)
    }

    pub(super) fn log_mut(&mut self, consumer: &Consumer, name: &LogName) -> Option<&mut Log> {
        self.logs.iter_mut().find(|log| log.consumer == *consumer && log.name == *name)
    }

    /// The first stored event after `position` that is of these types.
    pub(super) fn first_taken(&self, types: &LogTypes, position: Index) -> Option<Index> {
        let mut events = self.lifetime().map(|entry| &entry.event);
        events.find(|e| e.index > position && takes(types, &e.event_type)).map(|e| e.index)
    }

    /// Whether a served consumer has a live head.
    pub(super) fn has_pending(&self, served: &Served) -> bool {
        self.heads()
            .iter()
            .any(|(head, state)| state.failed_at.is_none() && serves(served, &head.consumer))
    }

    /// When leases and holds end and timers are due.
    pub(super) fn deadlines(&self) -> Vec<Timestamp> {
        let expiries = self.heads().into_iter().filter_map(|(_, state)| state.claim_expires_at);
        expiries.chain(self.timers.iter().map(|timer| timer.due_at)).collect()
    }
}

/// The order of heads: index, consumer, kind (event, lane, log), name.
fn order(head: &HeadRef) -> (Index, &str, u8, &str) {
    let (kind, name) = match &head.cursor {
        CursorKey::Event => (0, ""),
        CursorKey::Lane(lane) => (1, lane.as_str()),
        CursorKey::Log(log) => (2, log.as_str()),
    };
    (head.index, head.consumer.as_str(), kind, name)
}
