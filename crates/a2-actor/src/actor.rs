//! What names an actor: its address, with the types of its messages and of what they make.

use std::fmt;
use std::marker::PhantomData;

use a2_core::{CursorKey, Error, EventId, Lane, NewEvent, Result};
use a2_runtime::{Events, Handled, HandlerError, Session};
use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::events::{Envelope, Kind};
use crate::{Hosted, Instance, Turn, ids};

/// An actor with the state `S`, which takes messages `M` one after the other. From [`actor`].
///
/// It is an address and no more: a program that only sends messages has it as well, and only the one
/// that [hosts](Actor::host) it has the handler.
pub struct Actor<S, M> {
    name: &'static str,
    of: PhantomData<fn(M) -> S>,
}

/// Names an actor. In every session it has one instance.
///
/// The state is a type with a [`Default`], which is where each instance starts; the messages are an
/// enum of [`Events`]. Two actors of one name are the same actor: the name, the state and what
/// messages are called outlive the program.
///
/// ```
/// use a2_actor::{Actor, actor};
/// use a2_runtime::Events;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// enum Change {
///     Add(u64),
/// }
/// impl Events for Change {}
///
/// const COUNTER: Actor<u64, Change> = actor("counter");
/// assert_eq!(COUNTER.name(), "counter");
/// ```
#[must_use]
pub const fn actor<S, M>(name: &'static str) -> Actor<S, M> {
    Actor { name, of: PhantomData }
}

/// The part of an actor that takes messages `M` concurrently, in no order and without a state, and
/// answers each with an `R`. From [`Actor::concurrent`].
pub struct Concurrent<M, R> {
    name: &'static str,
    of: PhantomData<fn(M) -> R>,
}

impl<S, M> Actor<S, M> {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Names the actor's part for messages that need neither the state nor an order: slow calls, tools.
    #[must_use]
    pub const fn concurrent<Q, R>(self) -> Concurrent<Q, R> {
        Concurrent { name: self.name, of: PhantomData }
    }
}

impl<S, M> Actor<S, M>
where
    S: Serialize + DeserializeOwned + Default + Send + 'static,
    M: Events,
{
    /// The actor's instance in a session.
    #[must_use]
    pub fn of(self, session: &Session) -> Instance<Self> {
        Instance::new(self, session)
    }

    /// Hosts the actor in this program: gives it its handler.
    ///
    /// The handler gets the state as the messages before this one left it, to change and to return.
    /// What it returns is committed with everything that it [sent](Turn::send), or nothing is. An error
    /// has it run again later; a [`NonRetriable`](a2_runtime::NonRetriable) one refuses the message,
    /// which is then done and has changed nothing.
    ///
    /// ```
    /// # use a2_actor::{Actor, Turn, actor};
    /// # use a2_runtime::{Events, Handled, NonRetriable};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # enum Change { Add(u64), Reset }
    /// # impl Events for Change {}
    /// const COUNTER: Actor<u64, Change> = actor("counter");
    ///
    /// async fn count(total: u64, change: Change, _turn: Turn) -> Handled<u64> {
    ///     match change {
    ///         Change::Add(n) => {
    ///             Ok(total.checked_add(n).ok_or_else(|| NonRetriable::new("it is full"))?)
    ///         }
    ///         Change::Reset => Ok(0),
    ///     }
    /// }
    /// let hosted = COUNTER.host(count);
    /// # drop(hosted);
    /// ```
    pub fn host<F, Fut>(self, handler: F) -> Hosted
    where
        F: Fn(S, M, Turn) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Handled<S>> + Send + 'static,
    {
        let handler = std::sync::Arc::new(handler);
        Hosted::new::<M>(Kind::Serial, self.name, move |state, message, turn| {
            let handler = std::sync::Arc::clone(&handler);
            async move {
                let message = decode::<M>(&message)?;
                let state = match state {
                    Some(state) => state.deserialize().map_err(|error| unfit(self.name, error))?,
                    None => S::default(),
                };
                json(&handler(state, message, turn).await?)
            }
            .boxed()
        })
    }
}

impl<M, R> Concurrent<M, R> {
    /// The actor's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl<M, R> Concurrent<M, R>
where
    M: Events,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// The actor's instance in a session.
    #[must_use]
    pub fn of(self, session: &Session) -> Instance<Self> {
        Instance::new(self, session)
    }

    /// Hosts the actor's concurrent part in this program: gives it its handler.
    ///
    /// What it returns answers the message, and is committed with everything that it
    /// [sent](Turn::send). Errors are as those of [`Actor::host`].
    ///
    /// ```
    /// # use a2_actor::{Actor, Concurrent, Turn, actor};
    /// # use a2_runtime::{Events, Handled};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # enum Change { Add(u64) }
    /// # impl Events for Change {}
    /// #[derive(Serialize, Deserialize)]
    /// enum Ask {
    ///     Square(u64),
    /// }
    /// impl Events for Ask {}
    ///
    /// const COUNTER: Actor<u64, Change> = actor("counter");
    /// const ASK: Concurrent<Ask, u64> = COUNTER.concurrent();
    ///
    /// async fn answer(ask: Ask, _turn: Turn) -> Handled<u64> {
    ///     let Ask::Square(n) = ask;
    ///     Ok(n * n)
    /// }
    /// let hosted = ASK.host(answer);
    /// # drop(hosted);
    /// ```
    pub fn host<F, Fut>(self, handler: F) -> Hosted
    where
        F: Fn(M, Turn) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Handled<R>> + Send + 'static,
    {
        let handler = std::sync::Arc::new(handler);
        Hosted::new::<M>(Kind::Concurrent, self.name, move |_, message, turn| {
            let handler = std::sync::Arc::clone(&handler);
            async move { json(&handler(decode::<M>(&message)?, turn).await?) }.boxed()
        })
    }
}

/// Another try would read the same, so a message that does not fit is refused.
fn decode<M: Events>(message: &Envelope) -> Handled<M> {
    M::decode(&message.event_type, &message.payload).map_err(HandlerError::non_retriable)
}

/// A state is never thrown away because this release of a program cannot read it.
fn unfit(name: &str, error: Error) -> Error {
    error.in_field(format_args!("the state of actor {name}"))
}

fn json<T: Serialize>(value: &T) -> Handled<a2_core::Json> {
    Ok(a2_core::Json::from_serialize(value)?)
}

mod sealed {
    pub trait Sealed {}
    impl<S, M> Sealed for super::Actor<S, M> {}
    impl<M, R> Sealed for super::Concurrent<M, R> {}
}

/// Whom a message can be sent to: an [`Actor`] or its [`Concurrent`] part.
pub trait Address: sealed::Sealed + Copy + Send + Sync + 'static {
    /// What it takes.
    type Message: Events;
    /// What a message makes: the state of the actor, or the concurrent part's answer.
    type Outcome: DeserializeOwned + Send + 'static;

    #[doc(hidden)]
    fn route(self) -> Route;
}

/// Where messages go. Of no use outside of this crate.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
}

impl Route {
    /// The event that brings a message.
    pub(crate) fn event<M: Events>(self, id: &EventId, message: &M) -> Result<NewEvent> {
        let encoded = message.encode()?;
        let envelope = Envelope {
            actor: self.name.to_owned(),
            message: id.to_string(),
            event_type: encoded.event_type().clone(),
            payload: encoded.payload().clone(),
        };
        let target = self.kind.target(self.name)?;
        let event = NewEvent::new(self.kind.event_type(), &envelope)?;
        Ok(event.id(ids::message(self.name, id))?.target(target))
    }

    /// The cursor whose head a message is.
    pub(crate) fn cursor(self) -> Result<CursorKey> {
        Ok(match self.kind {
            Kind::Serial => CursorKey::Lane(Lane::new(self.name)?),
            Kind::Concurrent => CursorKey::Event,
        })
    }
}

impl<S, M> Address for Actor<S, M>
where
    S: DeserializeOwned + Send + 'static,
    M: Events,
{
    type Message = M;
    type Outcome = S;

    fn route(self) -> Route {
        Route { kind: Kind::Serial, name: self.name }
    }
}

impl<M, R> Address for Concurrent<M, R>
where
    M: Events,
    R: DeserializeOwned + Send + 'static,
{
    type Message = M;
    type Outcome = R;

    fn route(self) -> Route {
        Route { kind: Kind::Concurrent, name: self.name }
    }
}

// Derived, these would ask the same of the types that are only named.
macro_rules! plain {
    ($($name:ident<$a:ident, $b:ident>),*) => {$(
        impl<$a, $b> Clone for $name<$a, $b> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<$a, $b> Copy for $name<$a, $b> {}
        impl<$a, $b> fmt::Debug for $name<$a, $b> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.name).finish()
            }
        }
    )*};
}
plain!(Actor<S, M>, Concurrent<M, R>);
