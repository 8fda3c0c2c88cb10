//! Who is told when a session changes.

use std::sync::Arc;

use crate::{Event, SessionId, Timestamp};

/// Wakes the streams and the work-hint watchers of one store. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Hub(Arc<()>);

impl Hub {
    /// A hub that nobody listens to yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Events of `session` were committed: hands them to its streams, hints at it.
    pub fn appended(&self, session: &SessionId, events: &[Event]) {
        let _ = (session, events, &self.0);
    }

    /// `session` changed in a way that is not known: by a clear, a redrive, another process.
    pub fn wake(&self, session: &SessionId) {
        let _ = session;
    }

    /// Anything may have changed: every stream and watcher looks again.
    pub fn wake_all(&self) {}

    /// A timer of `session` was set, due at `due_at`.
    pub fn timer_set(&self, session: &SessionId, due_at: Timestamp) {
        let _ = (session, due_at);
    }

    /// Timers were set by another process: watchers ask for the next due time again.
    pub fn timers_changed(&self) {}

    /// Ends every stream and watcher with `CLOSED`, also those opened later.
    pub fn close(&self) {}

    /// Whether any stream is open.
    #[must_use]
    pub fn has_streams(&self) -> bool {
        false
    }

    /// Whether anybody watches for work hints.
    #[must_use]
    pub fn has_watchers(&self) -> bool {
        false
    }
}
