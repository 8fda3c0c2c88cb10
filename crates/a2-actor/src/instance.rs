//! An actor's instance in a session, from outside: to send to, to call, to look at.

use std::fmt;
use std::time::Duration;

use a2_core::{Appended, Error, EventId, Index, Presence, Result, TimerKey, Timestamp};
use a2_runtime::Session;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Actor, Address, CallError, InstancePresence, call, ids, state};

/// An actor's instance in a session. Cheap to clone.
///
/// From [`Actor::of`] and [`Concurrent::of`](crate::Concurrent::of).
#[derive(Clone)]
pub struct Instance<A> {
    to: A,
    session: Session,
}

impl<A: Address> Instance<A> {
    pub(crate) fn new(to: A, session: &Session) -> Self {
        Self { to, session: session.clone() }
    }

    /// Its session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Sends a message, without waiting for it to be handled. Await it.
    ///
    /// # Errors
    /// As [`Store::append`](a2_core::Store::append).
    pub fn tell(&self, message: A::Message) -> Telling<'_, A> {
        Telling { instance: self, message, id: None }
    }

    /// Sends a message, and waits at most `within` for what it makes: the actor's state as the message
    /// left it, or the concurrent part's answer. Await it.
    ///
    /// Dropped, or after its time is over, the message stays: it is handled all the same. Called again
    /// with the same [`id`](Calling::id) it waits for the same message. An actor must be hosted by some
    /// process that is started.
    ///
    /// # Errors
    /// [`CallError::Refused`] when the handler refused the message, [`CallError::Cleared`] when the
    /// session was cleared meanwhile, [`CallError::TimedOut`], [`CallError::Store`].
    ///
    /// ```
    /// # use a2_actor::{Actor, ActorsExt, actor};
    /// # use a2_runtime::{Events, Runtime};
    /// # use a2_store_memory::MemoryStore;
    /// # use serde::{Deserialize, Serialize};
    /// # use std::time::Duration;
    /// # #[derive(Serialize, Deserialize)]
    /// # enum Change { Add(u64) }
    /// # impl Events for Change {}
    /// const COUNTER: Actor<u64, Change> = actor("counter");
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hosted = COUNTER.host(|total, Change::Add(n), _| async move { Ok(total + n) });
    /// let runtime = Runtime::builder(MemoryStore::new()).actors([hosted]).build()?;
    /// runtime.start();
    /// let counter = COUNTER.of(&runtime.session("s")?);
    /// let within = Duration::from_secs(5);
    /// assert_eq!(counter.call(Change::Add(2), within).id("order-1").await?, 2);
    /// assert_eq!(counter.call(Change::Add(2), within).id("order-1").await?, 2);
    /// assert_eq!(counter.call(Change::Add(3), within).await?, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn call(&self, message: A::Message, within: Duration) -> Calling<'_, A> {
        Calling { telling: self.tell(message), within }
    }

    /// Sends a message when `after` has passed; whichever process is there then does it, once. The same
    /// `key` again replaces the timer; each actor has keys of its own. A clear of the session drops it.
    /// Answers when it is due, by the store's clock. In a handler prefer
    /// [`Turn::schedule`](crate::Turn::schedule).
    ///
    /// # Errors
    /// As [`Session::schedule`].
    pub async fn schedule<K>(
        &self,
        key: K,
        after: Duration,
        message: A::Message,
    ) -> Result<Timestamp>
    where
        K: TryInto<TimerKey>,
        Error: From<K::Error>,
    {
        let key = self.timer(key.try_into()?)?;
        self.set_timer(key, after, message).await
    }

    /// Removes a timer; answers whether there was one.
    ///
    /// # Errors
    /// As [`Session::unschedule`].
    pub async fn unschedule<K>(&self, key: K) -> Result<bool>
    where
        K: TryInto<TimerKey>,
        Error: From<K::Error>,
    {
        let key = self.timer(key.try_into()?)?;
        self.remove_timer(key).await
    }

    fn timer(&self, key: TimerKey) -> Result<TimerKey> {
        ids::timer(self.to.route().name, &key)
    }

    // Apart, since the bounds above hide every other conversion.
    async fn set_timer(
        &self,
        key: TimerKey,
        after: Duration,
        message: A::Message,
    ) -> Result<Timestamp> {
        let event = self.to.route().event(&EventId::generate(), &message)?;
        self.session.schedule(key, after, event).await
    }

    async fn remove_timer(&self, key: TimerKey) -> Result<bool> {
        self.session.unschedule(key).await
    }

    /// Who is present at this instance. `store` is the runtime's store, or another one.
    ///
    /// # Errors
    /// None that a valid instance has.
    pub fn presence<P: Presence>(&self, store: P) -> Result<InstancePresence<P>> {
        InstancePresence::new(store, self.session.id(), self.to.route().name)
    }
}

impl<S, M> Instance<Actor<S, M>>
where
    S: Serialize + DeserializeOwned + Default + Send + 'static,
{
    /// The state as the last message that was handled left it; the default before the first one, and
    /// after a clear.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the state does not fit the type; else as
    /// [`Store::read_state`](a2_core::Store::read_state).
    pub async fn state(&self) -> Result<S> {
        match state::read(&self.session, self.to.name()).await?.state {
            Some(state) => state
                .deserialize()
                .map_err(|e| e.in_field(format_args!("the state of actor {}", self.to.name()))),
            None => Ok(S::default()),
        }
    }
}

impl<A: fmt::Debug> fmt::Debug for Instance<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("to", &self.to).field("session", &self.session).finish()
    }
}

/// A message that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// The message's id.
    pub message: EventId,
    /// The index of the event that brings it.
    pub index: Index,
    /// Whether it had been sent before, with the same id.
    pub replayed: bool,
}

/// A message that is about to be sent: `instance.tell(message).await`.
#[must_use = "nothing is sent until this is awaited"]
pub struct Telling<'a, A: Address> {
    instance: &'a Instance<A>,
    message: A::Message,
    id: Option<Result<EventId>>,
}

impl<A: Address> Telling<'_, A> {
    /// The message's id, unique within the instance; a random one by default. A message whose id was
    /// there already is not sent again.
    pub fn id<I>(mut self, id: I) -> Self
    where
        I: TryInto<EventId>,
        Error: From<I::Error>,
    {
        self.id = Some(id.try_into().map_err(Error::from));
        self
    }

    async fn run(self) -> Result<Told> {
        let route = self.instance.to.route();
        let message = self.id.unwrap_or_else(|| Ok(EventId::generate()))?;
        let event = route.event(&message, &self.message)?;
        let event_type = event.event_type().clone();
        let Appended { events, replayed, .. } = self.instance.session.append(event).await?;
        let Some(stored) = events.into_iter().next() else {
            return Err(Error::corrupt(None, None, "an append answered without its event"));
        };
        if stored.event_type != event_type {
            let rule =
                format!("must be of one message, {message} is one of the actor's other part");
            return Err(Error::invalid("id", rule));
        }
        Ok(Told { message, index: stored.index, replayed })
    }
}

impl<'a, A: Address> IntoFuture for Telling<'a, A> {
    type Output = Result<Told>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.run().boxed()
    }
}

/// A call that is about to be made: `instance.call(message, within).await`.
#[must_use = "nothing is sent until this is awaited"]
pub struct Calling<'a, A: Address> {
    telling: Telling<'a, A>,
    within: Duration,
}

impl<A: Address> Calling<'_, A> {
    /// As [`Telling::id`].
    pub fn id<I>(mut self, id: I) -> Self
    where
        I: TryInto<EventId>,
        Error: From<I::Error>,
    {
        self.telling = self.telling.id(id);
        self
    }

    async fn run(self) -> std::result::Result<A::Outcome, CallError> {
        let Self { telling, within } = self;
        let (session, route) = (&telling.instance.session, telling.instance.to.route());
        let called = async {
            let told = telling.run().await?;
            call::outcome(session, route, told.index).await
        };
        match tokio::time::timeout(within, called).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::TimedOut { within }),
        }
    }
}

impl<'a, A: Address> IntoFuture for Calling<'a, A> {
    type Output = std::result::Result<A::Outcome, CallError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.run().boxed()
    }
}

impl<A: Address + fmt::Debug> fmt::Debug for Telling<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, id, .. } = self;
        f.debug_struct("Telling")
            .field("instance", instance)
            .field("id", id)
            .finish_non_exhaustive()
    }
}

impl<A: Address + fmt::Debug> fmt::Debug for Calling<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { telling, within } = self;
        f.debug_struct("Calling").field("telling", telling).field("within", within).finish()
    }
}
