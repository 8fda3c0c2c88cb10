//! Clearing a session.

use a2_core::{Clear, Cleared, ErrorKind, Event, EventType, Index, Json, Timestamp};

use super::session::{Entry, Session};

impl Session {
    pub(super) fn clear(&mut self, now: Timestamp, clear: &Clear) -> Result<Cleared, ErrorKind> {
        // 1. This marker stands already.
        let marker = self.event(self.clear_index);
        if marker.is_some_and(|marker| marker.id == *clear.marker_id()) {
            return Ok(self.cleared(true));
        }
        // 2. What was to be cleared is cleared.
        if let Some(last) = clear.last_index()
            && last.get() + 1 == self.clear_index.get()
        {
            return Ok(self.cleared(true));
        }
        // 3. The cause.
        if let Some(cause) = clear.clear_cause()
            && !self.is_current(&cause.head, cause.attempt)
        {
            return Err(ErrorKind::SupersededAttempt);
        }
        // 4. Another head than expected.
        if clear.last_index().is_some_and(|last| last != self.head()) {
            return Ok(self.cleared(false));
        }
        // 5. Nothing to clear.
        if self.head() == self.clear_index {
            return Ok(self.cleared(true));
        }
        // 6. The marker.
        let event = Event::new(
            self.id.clone(),
            self.head().next(),
            clear.marker_id().clone(),
            EventType::CLEAR,
            Json::null(),
            now,
            None,
        );
        let marker = event.index;
        self.log.push(Entry { event, aims: Vec::new() });
        self.begin_lifetime(marker);
        Ok(self.cleared(true))
    }

    fn begin_lifetime(&mut self, marker: Index) {
        self.clear_index = marker;
        for log in &mut self.logs {
            log.position = marker;
            log.head = None;
            log.last = None;
        }
        self.snapshots.clear();
        self.timers.retain(|timer| timer.origin_index.is_none_or(|origin| origin >= marker));
    }

    fn cleared(&self, cleared: bool) -> Cleared {
        Cleared::new(cleared, self.head(), self.clear_index)
    }
}
