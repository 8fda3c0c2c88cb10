//! Who is told when a session changes.
//!
//! A commit hands its events to the session's streams through one small ring that they share, so
//! that a stream in step reads nothing from the store. Everything else is a wake-up: the stream
//! looks for itself. A wake-up is one pending flag per stream, and costs nothing while it is
//! pending already.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::{Event, Index, SessionId, Timestamp};

use super::registry::{Registry, Topic, Waiters, lock, publish_fence};
use super::ring::Ring;
use super::watchers::{ALWAYS, Watchers};

/// Wakes the event streams and the work-hint watchers of one store. Clones share them.
///
/// A backend calls it after its commits. While nobody listens a call costs a few nanoseconds.
#[derive(Clone)]
pub struct Hub {
    logs: Arc<Registry<SessionId, LogTopic>>,
    watchers: Arc<Watchers>,
}

/// What the streams of one session share.
#[derive(Debug, Default)]
pub(super) struct LogTopic {
    /// The latest clear marker that is known, to be looked at before each event.
    pub(super) clear_index: AtomicU64,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
pub(super) struct LogState {
    /// Changes whenever the streams must read the log whatever the ring holds.
    pub(super) version: u64,
    /// The highest index that was told.
    pub(super) head: Index,
    /// The highest index of an event that was handed over: told again it wakes nobody.
    handed: Index,
    pub(super) ring: Ring,
    pub(super) waiters: Waiters,
}

impl Topic for LogTopic {
    fn waiters<R>(&self, f: impl FnOnce(&mut Waiters) -> R) -> R {
        f(&mut lock(&self.state).waiters)
    }
}

impl LogTopic {
    /// The shared state, locked.
    pub(super) fn state(&self) -> std::sync::MutexGuard<'_, LogState> {
        lock(&self.state)
    }

    fn clear_index(&self) -> u64 {
        self.clear_index.load(Ordering::Acquire)
    }

    fn appended(&self, events: &[Event]) -> Vec<Waker> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Vec::new() };
        let mut state = self.state();
        // A marker is always committed alone.
        if first.event_type.is_clear() {
            self.start_lifetime(&mut state, first.index);
        }
        if last.index <= state.handed {
            // By another way, or late: whoever needs it was woken then, and reads if the ring lacks it.
            if !state.ring.is_empty() && first.index.get() >= self.clear_index() {
                state.ring.push(events);
            }
            return Vec::new();
        }
        if first.index.get() >= self.clear_index() {
            state.ring.push(events);
        }
        state.handed = last.index;
        state.head = state.head.max(last.index);
        state.waiters.take_waiting()
    }

    fn cleared(&self, clear_index: Index) -> Vec<Waker> {
        let mut state = self.state();
        self.start_lifetime(&mut state, clear_index);
        state.version += 1;
        state.head = state.head.max(clear_index);
        state.waiters.take_waiting()
    }

    fn start_lifetime(&self, state: &mut LogState, clear_index: Index) {
        if self.clear_index.fetch_max(clear_index.get(), Ordering::AcqRel) < clear_index.get() {
            state.ring.clear();
        }
    }

    fn reached(&self, head: Index) -> Vec<Waker> {
        let mut state = self.state();
        if head <= state.head {
            return Vec::new();
        }
        state.head = head;
        state.waiters.take_waiting()
    }

    fn changed(&self) -> Vec<Waker> {
        let mut state = self.state();
        state.version += 1;
        state.waiters.take_waiting()
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self::new()
    }
}

impl Hub {
    /// A hub that nobody listens to yet.
    #[must_use]
    pub fn new() -> Self {
        Self { logs: Arc::new(Registry::new()), watchers: Arc::default() }
    }

    /// `events` of `session` were committed together: they go to its streams, and a hint to the
    /// watchers. Concurrent commits may be told in any order, a clear marker too, and each twice: by the
    /// caller, and by what a server tells of it.
    pub fn appended(&self, session: &SessionId, events: &[Event]) {
        publish_fence();
        if self.logs.is_listened() {
            self.logs.notify(session, |topic| topic.appended(events));
        }
        self.watchers.hint(session);
    }

    /// `session` was cleared by the marker at `clear_index`. What its streams had read below and
    /// not yielded is dropped.
    pub fn cleared(&self, session: &SessionId, clear_index: Index) {
        publish_fence();
        if self.logs.is_listened() {
            self.logs.notify(session, |topic| topic.cleared(clear_index));
        }
        self.watchers.hint(session);
    }

    /// The log of `session` has reached `head`, says another process: streams that are there already
    /// do nothing, the others read.
    pub fn reached(&self, session: &SessionId, head: Index) {
        publish_fence();
        if self.logs.is_listened() {
            self.logs.notify(session, |topic| topic.reached(head));
        }
        self.watchers.hint(session);
    }

    /// `session` changed, it is not known how: its streams read, the watchers get a hint.
    pub fn wake(&self, session: &SessionId) {
        publish_fence();
        if self.logs.is_listened() {
            self.logs.notify(session, LogTopic::changed);
        }
        self.watchers.hint(session);
    }

    /// A head of `session` may be claimable, its log did not change (a redrive): the watchers get a
    /// hint.
    pub fn hint(&self, session: &SessionId) {
        publish_fence();
        self.watchers.hint(session);
    }

    /// Anything may have changed: every stream reads, every watcher hints all overdue timers again.
    pub fn wake_all(&self) {
        publish_fence();
        self.logs.notify_all(LogTopic::changed);
        self.watchers.timer_set(ALWAYS);
    }

    /// A timer of a session of this store was set, due at `due_at`. Removing one need not be told.
    pub fn timer_set(&self, due_at: Timestamp) {
        publish_fence();
        self.watchers.timer_set(due_at);
    }

    /// Timers changed in a way that is not known: the watchers ask for the next due time again.
    pub fn timers_changed(&self) {
        publish_fence();
        self.watchers.timers_changed();
    }

    /// Ends every stream and watcher with `CLOSED`, also those opened later.
    pub fn close(&self) {
        self.logs.close();
        self.watchers.close();
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.logs.is_closed()
    }

    /// Whether any stream is open.
    #[must_use]
    pub fn has_streams(&self) -> bool {
        self.logs.is_listened()
    }

    /// The sessions with open streams, in no order: for a backend that looks for what other
    /// processes appended.
    #[must_use]
    pub fn streamed_sessions(&self) -> Vec<SessionId> {
        self.logs.keys()
    }

    /// Whether anybody watches for work hints.
    #[must_use]
    pub fn has_watchers(&self) -> bool {
        self.watchers.any()
    }

    pub(super) fn logs(&self) -> &Arc<Registry<SessionId, LogTopic>> {
        &self.logs
    }

    pub(super) fn watchers(&self) -> &Arc<Watchers> {
        &self.watchers
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("has_streams", &self.has_streams())
            .field("has_watchers", &self.has_watchers())
            .field("closed", &self.is_closed())
            .finish()
    }
}
