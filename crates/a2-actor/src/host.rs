//! Hosting actors: the consumers that a runtime gets for them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use a2_core::{
    Consumer, Error, EventId, Json, Lane, NewEvent, ReducerName, Result, Target, limits,
};
use a2_runtime::{
    Context, Events, Handled, HandlerError, RetryPolicy, RuntimeBuilder, concurrent, lane,
};
use futures_util::future::BoxFuture;

use crate::events::{AtOnce, Envelope, InLane, Kind, TIMERS, TimerChange, Timing};
use crate::state::{self, States};
use crate::{Turn, events};

type Handler =
    Arc<dyn Fn(Option<Json>, Envelope, Turn) -> BoxFuture<'static, Handled<Json>> + Send + Sync>;

/// An actor, or its concurrent part, with its handler. From [`Actor::host`](crate::Actor::host) and
/// [`Concurrent::host`](crate::Concurrent::host).
#[must_use = "a hosted actor does nothing until a runtime has it"]
pub struct Hosted {
    kind: Kind,
    name: Result<&'static str>,
    handler: Handler,
}

impl Hosted {
    pub(crate) fn new<M: Events>(
        kind: Kind,
        name: &'static str,
        handler: impl Fn(Option<Json>, Envelope, Turn) -> BoxFuture<'static, Handled<Json>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let check = || {
            if name.is_empty() {
                return Err(Error::invalid("actor", "must not be empty"));
            }
            let of = |error: Error| error.in_field(format_args!("actor {name}"));
            Lane::new(name).map_err(of)?;
            ReducerName::new(state::stored_name(name)).map_err(of)?;
            M::types().map_err(of)?;
            Ok(name)
        };
        Self { kind, name: check(), handler: Arc::new(handler) }
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("kind", &self.kind).field("name", &self.name).finish()
    }
}

/// The actors of a program, and how they are run.
///
/// ```
/// # use a2_actor::{Actor, Actors, ActorsExt, Turn, actor};
/// # use a2_runtime::{Events, RetryPolicy, Runtime};
/// # use a2_store_memory::MemoryStore;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # enum Change { Add(u64) }
/// # impl Events for Change {}
/// const COUNTER: Actor<u64, Change> = actor("counter");
/// let counter = COUNTER.host(|total, Change::Add(n), _| async move { Ok(total + n) });
/// let actors = Actors::new([counter]).retry(RetryPolicy::new().budget(3)).concurrency(16);
/// let runtime = Runtime::builder(MemoryStore::new()).actors(actors).build()?;
/// # Ok::<(), a2_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "actors do nothing until a runtime has them"]
pub struct Actors {
    hosted: Vec<Hosted>,
    retry: Option<RetryPolicy>,
    concurrency: Option<usize>,
    ttl: Option<Duration>,
}

impl Actors {
    /// These actors, run as the runtime is set up.
    pub fn new(hosted: impl IntoIterator<Item = Hosted>) -> Self {
        let hosted = hosted.into_iter().collect();
        Self { hosted, retry: None, concurrency: None, ttl: None }
    }

    /// When failed messages are tried again, and how often; the runtime's policy by default.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// How many serial handlers, and how many concurrent ones, run at the same time in this process; as
    /// many as the runtime lets by default.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.concurrency = Some(handlers);
        self
    }

    /// How long a claim lasts without being renewed: how soon another process takes over when this one
    /// dies. The runtime's by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

impl<const N: usize> From<[Hosted; N]> for Actors {
    fn from(hosted: [Hosted; N]) -> Self {
        Self::new(hosted)
    }
}

impl From<Vec<Hosted>> for Actors {
    fn from(hosted: Vec<Hosted>) -> Self {
        Self::new(hosted)
    }
}

/// Hosts actors on a runtime.
pub trait ActorsExt {
    /// Adds the actors of the program; once. What is wrong with them is told when the runtime is built.
    ///
    /// Every process that hosts actors on a store must host all that are used there: whoever takes a
    /// message without knowing its actor fails, and the message is tried again elsewhere until its
    /// budget is spent.
    #[must_use]
    fn actors(self, actors: impl Into<Actors>) -> Self;
}

impl ActorsExt for RuntimeBuilder {
    fn actors(self, actors: impl Into<Actors>) -> Self {
        let Actors { hosted, retry, concurrency: most, ttl } = actors.into();
        let (name, known) = match known(hosted) {
            Ok(known) => (Name(Ok(Kind::Serial)), known),
            Err(error) => (Name(Err(error)), HashMap::new()),
        };
        let serial = known.contains_key(&Kind::Serial) || name.0.is_err();
        let at_once = known.contains_key(&Kind::Concurrent);
        let hosts = Arc::new(Hosts { known, states: States::default() });
        let mut builder = self.consumer(lane(
            TIMERS,
            |Timing::Change(change): &Timing| change.actor.clone(),
            |Timing::Change(change), cx| set_timer(change, cx),
        ));
        // The same for every consumer, whose kinds are types of their own.
        macro_rules! add {
            ($consumer:expr) => {{
                let mut consumer = $consumer;
                if let Some(policy) = retry {
                    consumer = consumer.retry(policy);
                }
                if let Some(most) = most {
                    consumer = consumer.concurrency(most);
                }
                if let Some(ttl) = ttl {
                    consumer = consumer.ttl(ttl);
                }
                builder = builder.consumer(consumer);
            }};
        }
        if serial {
            let hosts = Arc::clone(&hosts);
            let lane_of = |InLane::Message(message): &InLane| message.actor.clone();
            add!(lane(name, lane_of, move |InLane::Message(message), cx| {
                Arc::clone(&hosts).handle(Kind::Serial, message, cx)
            }));
        }
        if at_once {
            add!(concurrent(Kind::Concurrent.consumer(), move |AtOnce::Request(message), cx| {
                Arc::clone(&hosts).handle(Kind::Concurrent, message, cx)
            }));
        }
        builder
    }
}

/// A consumer's name, or what is wrong with the actors: the runtime tells it when it is built.
struct Name(Result<Kind>);

impl TryFrom<Name> for Consumer {
    type Error = Error;

    fn try_from(name: Name) -> Result<Self> {
        Self::new(name.0?.consumer())
    }
}

type Known = HashMap<Kind, HashMap<&'static str, Handler>>;

fn known(hosted: Vec<Hosted>) -> Result<Known> {
    let mut known = Known::new();
    for Hosted { kind, name, handler } in hosted {
        let name = name?;
        if known.entry(kind).or_default().insert(name, handler).is_some() {
            return Err(Error::invalid(format!("actor {name}"), "must be hosted once only"));
        }
    }
    if known.is_empty() {
        return Err(Error::invalid("actors", "must be at least one"));
    }
    Ok(known)
}

struct Hosts {
    known: Known,
    states: States,
}

impl Hosts {
    async fn handle(
        self: Arc<Self>,
        kind: Kind,
        message: Envelope,
        cx: Context,
    ) -> Handled<Vec<NewEvent>> {
        let found = self.known.get(&kind).and_then(|of| of.get_key_value(message.actor.as_str()));
        let Some((&actor, handler)) = found else {
            // Another process may host it.
            return Err(format!("this process hosts no {kind} actor {:?}", message.actor).into());
        };
        let turn = Turn::new(cx.clone(), EventId::new(&message.message)?);
        let outcome = match kind {
            Kind::Serial => {
                let latest = self.states.latest(cx.session(), actor).await?;
                let made = handler(latest.state, message.clone(), turn.clone()).await;
                made.map(|made| events::state(&message, cx.event(), &made, latest.clear_index))
            }
            Kind::Concurrent => {
                let made = handler(None, message.clone(), turn.clone()).await;
                made.map(|made| events::done(&message, cx.event(), &made))
            }
        };
        match outcome {
            Ok(outcome) => {
                let mut events = turn.take();
                events.push(outcome?.id(cx.derive_id(kind.outcome()))?);
                Ok(events)
            }
            Err(error) if error.is_non_retriable() => {
                tracing::debug!(session = %cx.session().id(), actor, %error, "refused");
                Ok(vec![refusal(&message, &cx, &error)?])
            }
            Err(error) => Err(error),
        }
    }
}

/// Settles a message that was refused, and nothing else.
fn refusal(message: &Envelope, cx: &Context, error: &HandlerError) -> Result<NewEvent> {
    let mut text = error.to_string();
    if text.len() > limits::ERROR_BYTES {
        let cut = (0..=limits::ERROR_BYTES).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(cut.unwrap_or_default());
    }
    events::failed(message, cx.event(), &text)?.id(cx.derive_id(events::FAILED))
}

/// What timers are changed by: in the order of the turns, and in nobody's way.
pub(crate) fn timer_target(actor: &str) -> Result<Target> {
    Target::lane(TIMERS, actor)
}

async fn set_timer(change: TimerChange, cx: Context) -> Handled {
    let Some(set) = change.set else {
        cx.session().unschedule(change.key).await?;
        return Ok(());
    };
    let event = NewEvent::from_json(set.kind.event_type(), set.payload)?.id(set.event)?;
    let event = event.target(set.kind.target(&change.actor)?);
    cx.session().schedule(change.key, Duration::from_millis(set.after_ms), event).await?;
    Ok(())
}
