//! Appending, reading, and how an append moves the logs.

use a2_core::{
    Append, Appended, Cause, Consumer, Cursor, CursorKey, ErrorKind, Event, EventId, Events, Index,
    LogDeclaration, NewEvent, ReadRange, Served, Timestamp, WakeLog, WokenLog,
};

use super::served::{declared, takes};
use super::session::{Aim, Entry, Log, Session};

impl Session {
    pub(super) fn append(
        &mut self,
        now: Timestamp,
        append: &Append,
    ) -> Result<Appended, ErrorKind> {
        let served = append.served_list();
        // 1. An empty batch.
        if append.events().is_empty() {
            return Ok(Appended::new(Vec::new(), self.has_pending(served), false));
        }
        // 2. An id twice in the batch: no such request can be built.
        // 3. Ownership.
        let ids = ids(append.events());
        let existing = self.owned(&ids);
        if existing.len() == ids.len() {
            let events = ids.iter().filter_map(|id| self.owner(id).cloned()).collect();
            return Ok(Appended::new(events, self.has_pending(served), true));
        }
        if !existing.is_empty() {
            return Err(ErrorKind::PartialDuplicateBatch { existing });
        }
        // 4. The head that is expected.
        if let Some(expected) = append.head_expected().filter(|expected| *expected != self.head()) {
            return Err(ErrorKind::HeadConflict { expected, actual: self.head() });
        }
        // 5. The origin.
        self.check_origin(append.origin())?;
        // 6. The causes.
        for cause in append.events().iter().filter_map(NewEvent::event_cause) {
            if !self.is_current(&cause.head, cause.attempt) {
                return Err(ErrorKind::SupersededAttempt);
            }
        }
        // 7. Commit.
        let events = append.events().iter().map(|e| (e.clone(), e.event_cause().cloned()));
        let events = self.commit(now, events.collect());
        self.move_logs(served, &events);
        Ok(Appended::new(events, self.has_pending(served), false))
    }

    /// Those of the ids that an event of this lifetime has, in the same order.
    pub(super) fn owned(&self, ids: &[EventId]) -> Vec<EventId> {
        ids.iter().filter(|id| self.owner(id).is_some()).cloned().collect()
    }

    pub(super) fn check_origin(&self, origin: Option<Index>) -> Result<(), ErrorKind> {
        match origin {
            Some(origin) if origin < self.clear_index => {
                Err(ErrorKind::SessionCleared { clear_index: self.clear_index })
            }
            _ => Ok(()),
        }
    }

    /// Gives events their places in the log and queues them on their targets.
    pub(super) fn commit(
        &mut self,
        now: Timestamp,
        events: Vec<(NewEvent, Option<Cause>)>,
    ) -> Vec<Event> {
        let mut appended = Vec::new();
        for (new, cause) in events {
            let Some(id) = new.event_id().cloned() else { continue };
            let event = Event::new(
                self.id.clone(),
                self.head().next(),
                id,
                new.event_type().clone(),
                new.payload().clone(),
                now,
                cause,
            );
            let aims = new.target_list().iter().map(|target| Aim {
                consumer: target.consumer().clone(),
                key: target.cursor_key(),
                state: Default::default(),
                end: None,
            });
            self.log.push(Entry { event: event.clone(), aims: aims.collect() });
            appended.push(event);
        }
        appended
    }

    /// Every declared log moves of which the batch carries an event that it takes.
    pub(super) fn move_logs(&mut self, served: &Served, batch: &[Event]) {
        let Some(first) = batch.first() else { return };
        for (consumer, log) in declared(served) {
            if batch.iter().any(|event| takes(log.log_types(), &event.event_type)) {
                // The log's head as it was before the batch.
                self.touch(&consumer, &log, first.index.previous());
            }
        }
    }

    /// Brings a declared log up to date. One that is missing starts at the clear index with
    /// `backfill`, else at `start`.
    fn touch(&mut self, consumer: &Consumer, declaration: &LogDeclaration, start: Index) {
        if self.log_of(consumer, declaration.name()).is_none() {
            self.logs.push(Log {
                consumer: consumer.clone(),
                name: declaration.name().clone(),
                types: declaration.log_types().clone(),
                position: if declaration.is_backfill() { self.clear_index } else { start },
                head: None,
                last: None,
            });
        }
        let position = self.log_of(consumer, declaration.name()).map(|log| log.position);
        let next = self.first_taken(declaration.log_types(), position.unwrap_or(start));
        if let Some(log) = self.log_mut(consumer, declaration.name()) {
            log.types = declaration.log_types().clone();
            if log.head.is_none() {
                log.head = next.map(|index| (index, Default::default()));
            }
        }
    }

    pub(super) fn wake_log(&mut self, wake: &WakeLog) -> WokenLog {
        let (consumer, name) = (wake.consumer(), wake.declaration().name());
        self.touch(consumer, wake.declaration(), self.head());
        let log = self.log_of(consumer, name);
        let position = log.map_or(Index::ZERO, |log| log.position);
        let (head, state) = log.and_then(|log| log.head.clone()).unzip();
        let key = CursorKey::Log(name.clone());
        let state = state.unwrap_or_default();
        let cursor = Cursor::new(consumer.clone(), key, position, head, state);
        WokenLog::new(cursor, self.head(), self.clear_index)
    }

    /// The indexes in (after, through], from the marker on.
    pub(crate) fn read(&self, range: &ReadRange) -> Events {
        let events = self.lifetime().map(|entry| &entry.event);
        let events = events.filter(|e| e.index > range.start_after() && e.index <= range.end());
        let events = events.take(range.max_events()).cloned().collect();
        Events::new(events, self.head(), self.clear_index)
    }
}

/// The ids of events that have one.
pub(super) fn ids(events: &[NewEvent]) -> Vec<EventId> {
    events.iter().filter_map(|event| event.event_id().cloned()).collect()
}
