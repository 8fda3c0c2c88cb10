//! What a handler is told about its attempt, and what it can do.

use std::fmt;
use std::sync::Arc;

use a2_core::{Consumer, DispatchedHead, Event, EventId, HeadRef, Index};
use tokio_util::sync::CancellationToken;

use crate::inflight::Running;
use crate::runtime::Inner;
use crate::session::Origin;
use crate::{Session, ids};

/// An attempt: what a handler gets beside its event. Clones are the same attempt.
#[derive(Clone)]
pub struct Context {
    parts: Arc<Parts>,
    /// How many of the events are handled.
    handled: usize,
}

struct Parts {
    inner: Arc<Inner>,
    session: Session,
    head: HeadRef,
    /// The head's, then those of its run; never empty.
    events: Vec<Event>,
    attempt: u64,
    failures: u64,
    running: Arc<Running>,
}

impl Context {
    pub(crate) fn new(inner: Arc<Inner>, head: &DispatchedHead, running: Arc<Running>) -> Self {
        let mut events = Vec::with_capacity(1 + head.run.len());
        events.push(head.event.clone());
        events.extend(head.run.iter().cloned());
        let origin = Origin {
            cause: head.cause(),
            parent: head.event.id.clone(),
            running: Arc::clone(&running),
        };
        let id = head.event.session.clone();
        let session = Session::new(Arc::clone(&inner), id, Some(Arc::new(origin)));
        let handled = events.len();
        let parts = Parts {
            inner,
            session,
            head: head.head.clone(),
            events,
            attempt: head.attempt(),
            failures: head.state.failure_count,
            running,
        };
        Self { parts: Arc::new(parts), handled }
    }

    /// The same attempt, on the first `handled` events of the run.
    pub(crate) fn through_run(&self, handled: usize) -> Self {
        Self { parts: Arc::clone(&self.parts), handled: handled.clamp(1, self.handled) }
    }

    /// The event as it is stored: its id, its index, when it was appended and by whom. Of a run the
    /// first.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.parts.events[0]
    }

    /// All events of the attempt: one, or those of a run.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.parts.events[..self.handled]
    }

    /// The index of the attempt's last event.
    #[must_use]
    pub fn through(&self) -> Index {
        self.events().last().map_or(self.parts.head.index, |event| event.index)
    }

    /// The event's session. What is done through it carries this attempt: it is refused once the
    /// attempt is superseded or the session is cleared.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.parts.session
    }

    /// Whose handler this is.
    #[must_use]
    pub fn consumer(&self) -> &Consumer {
        &self.parts.head.consumer
    }

    /// The head that is worked on.
    #[must_use]
    pub fn head(&self) -> &HeadRef {
        &self.parts.head
    }

    /// The attempt's number, from 1 on. It grows with every claim, also after a failure that was
    /// nobody's fault.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.parts.attempt
    }

    /// How many attempts have failed so far.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.parts.failures
    }

    /// Whether a failure of this attempt makes the event a dead letter.
    #[must_use]
    pub fn is_last_try(&self) -> bool {
        let policy = self.parts.inner.registry.policy_of(&self.parts.head.consumer);
        self.parts.failures.saturating_add(1) >= policy.max_failures()
    }

    /// Cancelled when the attempt is superseded, when the session is cleared, and when a shutdown's
    /// time is over. What the handler returns after that does not count as a failure.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.parts.running.token
    }

    /// Returns when the attempt is cancelled.
    pub async fn cancelled(&self) {
        self.parts.running.token.cancelled().await;
    }

    /// Whether the attempt is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.parts.running.token.is_cancelled()
    }

    /// Cancelled as soon as a shutdown begins, while there is still time to finish.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.parts.inner.stopping
    }

    /// An id that every attempt on this event gets for the same `name`: for what a handler appends or
    /// sends elsewhere, so that a second run does not do it twice.
    #[must_use]
    pub fn derive_id(&self, name: &str) -> EventId {
        let what = format!("own\0{name}");
        ids::derived(self.parts.session.id(), &self.parts.head, &self.event().id, &what)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("session", self.parts.session.id())
            .field("head", &self.parts.head)
            .field("attempt", &self.parts.attempt)
            .field("events", &self.handled)
            .finish_non_exhaustive()
    }
}
