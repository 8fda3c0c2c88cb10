//! What a handler can do: everything of it is committed with the outcome, or nothing is.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2_core::{Error, Event, EventId, Index, NewEvent, Result, Span, TimerKey};
use a2_runtime::{Context, IntoEvents, Session};

use crate::actor::Route;
use crate::events::{SetTimer, TIMER, TimerChange};
use crate::{Address, CallError, Instance, ids};

/// A message being handled: what a handler gets beside the state and the message. Clones are the same
/// turn.
///
/// What is sent, appended and scheduled through it is kept until the handler returns, and then
/// committed with the new state: all of it or, when the handler fails or the message is refused,
/// nothing. What is done through the [session](Turn::session) is done at once and stays.
#[derive(Clone)]
pub struct Turn(Arc<Parts>);

struct Parts {
    cx: Context,
    message: EventId,
    outbox: Mutex<Outbox>,
}

#[derive(Default)]
struct Outbox {
    events: Vec<NewEvent>,
    /// How many ids were made: the next one's number.
    made: usize,
}

impl Turn {
    pub(crate) fn new(cx: Context, message: EventId) -> Self {
        Self(Arc::new(Parts { cx, message, outbox: Mutex::default() }))
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.0.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Vec<NewEvent> {
        std::mem::take(&mut self.outbox().events)
    }

    /// An id that a second run makes again: the same handler sends the same things in the same order.
    fn next_id(&self) -> EventId {
        let mut outbox = self.outbox();
        outbox.made += 1;
        self.0.cx.derive_id(&format!("a2.actor {}", outbox.made))
    }

    /// The id of the message that is handled.
    #[must_use]
    pub fn message_id(&self) -> &EventId {
        &self.0.message
    }

    /// The event that brought the message.
    #[must_use]
    pub fn event(&self) -> &Event {
        self.0.cx.event()
    }

    /// The attempt: its number, its cancellation, ids that every attempt gets.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.cx
    }

    /// The session. What is done through it is not kept until the handler returns.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.0.cx.session()
    }

    /// Sends a message to an actor of this session: to another one, to this one, or to a concurrent
    /// part. Answers the message's id, which a second run makes again.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the message breaks a rule.
    pub fn send<A: Address>(&self, to: A, message: A::Message) -> Result<EventId> {
        let id = self.next_id();
        let event = to.route().event(&id, &message)?;
        self.outbox().events.push(event);
        Ok(id)
    }

    /// Appends events of any kind to the session, for every consumer of this program that takes them.
    ///
    /// # Errors
    /// `INVALID_INPUT` when one breaks a rule.
    pub fn append(&self, events: impl IntoEvents) -> Result<()> {
        let events = events.into_events()?;
        self.outbox().events.extend(events);
        Ok(())
    }

    /// Sends a message to an actor of this session when `after` has passed. The same `key` again
    /// replaces the timer; each actor has keys of its own. A clear of the session drops it.
    ///
    /// What is committed with the turn is the wish; `after` counts from when it is carried out, at once
    /// in a process that lives. A store without timers cannot: the wish becomes a dead letter.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the message or the key breaks a rule.
    pub fn schedule<A: Address, K>(
        &self,
        to: A,
        key: K,
        after: Duration,
        message: A::Message,
    ) -> Result<()>
    where
        K: TryInto<TimerKey>,
        Error: From<K::Error>,
    {
        let route = to.route();
        let event = route.event(&self.next_id(), &message)?;
        let set = event.event_id().map(|id| SetTimer {
            after_ms: Span::new(after).as_millis(),
            kind: route.kind,
            event: id.clone(),
            payload: event.payload().clone(),
        });
        self.timer(route, key.try_into()?, set)
    }

    /// Removes a timer of an actor of this session, if there is one.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the key breaks a rule.
    pub fn unschedule<A: Address, K>(&self, to: A, key: K) -> Result<()>
    where
        K: TryInto<TimerKey>,
        Error: From<K::Error>,
    {
        self.timer(to.route(), key.try_into()?, None)
    }

    fn timer(&self, route: Route, key: TimerKey, set: Option<SetTimer>) -> Result<()> {
        let key = ids::timer(route.name, &key)?;
        let change = TimerChange { actor: route.name.to_owned(), key, set };
        let event = NewEvent::new(TIMER, &change)?.target(crate::host::timer_target(route.name)?);
        self.outbox().events.push(event);
        Ok(())
    }

    /// Sends a message to another actor of this session at once, and waits for what it makes. A second
    /// run sends the same message, which is not handled twice.
    ///
    /// This is not part of the turn: it has happened also when the turn fails. An actor that calls
    /// itself, or one that calls back, waits in vain.
    ///
    /// # Errors
    /// As awaiting [`Instance::call`].
    pub async fn call<A: Address>(
        &self,
        to: A,
        message: A::Message,
        within: Duration,
    ) -> std::result::Result<A::Outcome, CallError> {
        Instance::new(to, self.session()).call(message, within).id(self.next_id()).await
    }

    /// The index of the event that brought the message: later ones have larger ones.
    #[must_use]
    pub fn index(&self) -> Index {
        self.event().index
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("message", &self.0.message)
            .field("context", &self.0.cx)
            .finish_non_exhaustive()
    }
}
