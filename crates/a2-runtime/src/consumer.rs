//! The three forms of a consumer, and what can be said about each.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use a2_core::{Consumer, Error, EventType, Lane, LogName, NewEvent, Result, limits};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::events::decode_event;
use crate::{Context, Events, Handled, HandlerError, IntoEvents, NonRetriable, RetryPolicy};

/// What a handler made of its events.
pub(crate) struct Done {
    pub(crate) events: Vec<NewEvent>,
    /// How many of the run's events that covers.
    pub(crate) handled: usize,
}

pub(crate) type Handler =
    Arc<dyn Fn(Context) -> BoxFuture<'static, Result<Done, HandlerError>> + Send + Sync>;

type LaneOf = Arc<dyn Fn(&NewEvent) -> Result<Option<Lane>> + Send + Sync>;

/// How a consumer follows a log.
#[derive(Clone)]
pub(crate) enum Kind {
    Concurrent,
    Lane(LaneOf),
    Log { name: LogName, backfill: bool, run: usize },
}

/// A consumer as the runtime keeps it.
pub(crate) struct Definition {
    pub(crate) name: Consumer,
    pub(crate) kind: Kind,
    /// None takes every type.
    pub(crate) types: Option<HashSet<EventType>>,
    pub(crate) handler: Handler,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) ttl: Option<Duration>,
}

impl Definition {
    pub(crate) fn takes(&self, event_type: &EventType) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(event_type))
    }
}

/// One consumer of a program: its name, its handler, and how it is run.
///
/// Made by [`concurrent`], [`lane`], [`log`] and [`log_runs`]. What is wrong with it is told when the
/// runtime is built.
#[must_use = "a consumer does nothing until a runtime has it"]
pub struct ConsumerSpec<K> {
    name: Result<Consumer>,
    kind: Result<Kind>,
    of_kind: PhantomData<fn() -> K>,
    types: Result<Option<Vec<EventType>>>,
    only: Option<Result<Vec<EventType>>>,
    handler: Handler,
    retry: Option<RetryPolicy>,
    concurrency: Option<usize>,
    ttl: Option<Duration>,
}

/// The kind of consumer that [`concurrent`] makes.
#[derive(Debug)]
pub enum Concurrent {}

/// The kind of consumer that [`lane`] makes.
#[derive(Debug)]
pub enum InLanes {}

/// The kind of consumer that [`log`] and [`log_runs`] make.
#[derive(Debug)]
pub enum WholeLog {}

/// A consumer that handles its events concurrently, in no order.
///
/// It gets the events that processes append which know this consumer.
///
/// ```
/// # use a2_runtime::{concurrent, Context, Events};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # enum Order { Placed { item: String } }
/// # impl Events for Order {}
/// let notify = concurrent("notify", |order: Order, cx: Context| async move {
///     let Order::Placed { item } = order;
///     println!("{}: {item} ordered, attempt {}", cx.session().id(), cx.attempt());
///     Ok(())
/// });
/// # drop(notify);
/// ```
pub fn concurrent<N, T, R, F, Fut>(name: N, handler: F) -> ConsumerSpec<Concurrent>
where
    N: TryInto<Consumer>,
    Error: From<N::Error>,
    T: Events,
    R: IntoEvents + 'static,
    F: Fn(T, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Handled<R>> + Send + 'static,
{
    spec::<T, _, _>(name, Ok(Kind::Concurrent), one_by_one(handler))
}

/// A consumer with queues: `lane_of` names the queue of each event. One queue's events are handled one
/// after the other, in the order of the log; different queues at the same time.
///
/// The lane is named when the event is appended, by a process that knows this consumer. An event that
/// `lane_of` cannot be asked about, because it does not fit the type, stands in no queue's way: it is
/// tried by itself, and becomes a dead letter.
///
/// ```
/// # use a2_runtime::{lane, Context, Events};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # enum Order { Placed { item: String } }
/// # impl Events for Order {}
/// let stock = lane(
///     "stock",
///     |order: &Order| match order {
///         Order::Placed { item } => item.clone(),
///     },
///     |_order: Order, _cx: Context| async move { Ok(()) },
/// );
/// # drop(stock);
/// ```
pub fn lane<N, T, R, L, G, F, Fut>(name: N, lane_of: G, handler: F) -> ConsumerSpec<InLanes>
where
    N: TryInto<Consumer>,
    Error: From<N::Error>,
    T: Events,
    R: IntoEvents + 'static,
    L: Into<String>,
    G: Fn(&T) -> L + Send + Sync + 'static,
    F: Fn(T, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Handled<R>> + Send + 'static,
{
    let lane_of = move |event: &NewEvent| match T::decode(event.event_type(), event.payload()) {
        Ok(decoded) => Lane::new(lane_of(&decoded).into()).map(Some),
        Err(_) => Ok(None),
    };
    spec::<T, _, _>(name, Ok(Kind::Lane(Arc::new(lane_of))), one_by_one(handler))
}

/// A consumer that reads whole logs: every event of its types, one after the other, whoever appended
/// it.
///
/// With [`backfill`](ConsumerSpec::backfill) it starts with the first event of each session. Without, it
/// starts where the log stands when the consumer is first heard of there: what a process that does not
/// know the consumer appended to a new session before that is passed over.
///
/// ```
/// # use a2_runtime::{log, Context, RawEvent};
/// let audit = log("audit", |event: RawEvent, cx: Context| async move {
///     println!("{} {}", cx.event().index, event.event_type);
///     Ok(())
/// })
/// .backfill();
/// # drop(audit);
/// ```
pub fn log<N, T, R, F, Fut>(name: N, handler: F) -> ConsumerSpec<WholeLog>
where
    N: TryInto<Consumer>,
    Error: From<N::Error>,
    T: Events,
    R: IntoEvents + 'static,
    F: Fn(T, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Handled<R>> + Send + 'static,
{
    spec::<T, _, _>(name, whole_log(1), one_by_one(handler))
}

/// As [`log`], with up to `most` events an attempt (1 to 1,000): all are done together, or none.
///
/// ```
/// # use a2_runtime::{log_runs, Context, RawEvent};
/// let copy = log_runs("copy", 500, |events: Vec<RawEvent>, _cx: Context| async move {
///     println!("{} rows in one transaction", events.len());
///     Ok(())
/// });
/// # drop(copy);
/// ```
pub fn log_runs<N, T, R, F, Fut>(name: N, most: usize, handler: F) -> ConsumerSpec<WholeLog>
where
    N: TryInto<Consumer>,
    Error: From<N::Error>,
    T: Events,
    R: IntoEvents + 'static,
    F: Fn(Vec<T>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Handled<R>> + Send + 'static,
{
    spec::<T, _, _>(name, whole_log(most), in_runs(handler))
}

fn whole_log(run: usize) -> Result<Kind> {
    if run == 0 || run > limits::RUN_MAX {
        let rule = format!("must be 1 to {}", limits::RUN_MAX);
        return Err(Error::invalid("run", rule));
    }
    Ok(Kind::Log { name: LogName::new("")?, backfill: false, run })
}

fn spec<T, N, K>(name: N, kind: Result<Kind>, handler: Handler) -> ConsumerSpec<K>
where
    T: Events,
    N: TryInto<Consumer>,
    Error: From<N::Error>,
{
    ConsumerSpec {
        name: name.try_into().map_err(Error::from),
        kind,
        of_kind: PhantomData,
        types: T::types(),
        only: None,
        handler,
        retry: None,
        concurrency: None,
        ttl: None,
    }
}

/// An undecodable event is a dead letter at once: another try would read the same.
fn undecodable(error: Error) -> HandlerError {
    NonRetriable::new(error).into()
}

fn one_by_one<T, R, F, Fut>(handler: F) -> Handler
where
    T: Events,
    R: IntoEvents + 'static,
    F: Fn(T, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Handled<R>> + Send + 'static,
{
    Arc::new(move |cx| match decode_event::<T>(cx.event()) {
        Ok(event) => done(handler(event, cx), 1),
        Err(error) => std::future::ready(Err(undecodable(error))).boxed(),
    })
}

fn in_runs<T, R, F, Fut>(handler: F) -> Handler
where
    T: Events,
    R: IntoEvents + 'static,
    F: Fn(Vec<T>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Handled<R>> + Send + 'static,
{
    Arc::new(move |cx| {
        let mut events = Vec::with_capacity(cx.events().len());
        for event in cx.events() {
            match decode_event::<T>(event) {
                Ok(event) => events.push(event),
                Err(error) if events.is_empty() => {
                    return std::future::ready(Err(undecodable(error))).boxed();
                }
                // What can be read before it is handled first; then it is the head, by itself.
                Err(_) => break,
            }
        }
        let handled = events.len();
        done(handler(events, cx.through_run(handled)), handled)
    })
}

fn done<R: IntoEvents + 'static>(
    work: impl Future<Output = Handled<R>> + Send + 'static,
    handled: usize,
) -> BoxFuture<'static, Result<Done, HandlerError>> {
    async move {
        let returned = work.await?;
        Ok(Done { events: returned.into_events()?, handled })
    }
    .boxed()
}

impl<K> ConsumerSpec<K> {
    /// Takes only these types of those that the handler's events have.
    pub fn types<N>(mut self, types: impl IntoIterator<Item = N>) -> Self
    where
        N: TryInto<EventType>,
        Error: From<N::Error>,
    {
        let types = types.into_iter().map(|t| t.try_into().map_err(Error::from));
        self.only = Some(types.collect());
        self
    }

    /// When failed events are tried again, and how often; the runtime's policy by default.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// How many of its handlers run at the same time in this process; as many as the runtime lets by
    /// default.
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

impl ConsumerSpec<WholeLog> {
    /// Starts with what is stored: in old sessions too, which the runtime walks through in the
    /// background.
    pub fn backfill(mut self) -> Self {
        if let Ok(Kind::Log { backfill, .. }) = &mut self.kind {
            *backfill = true;
        }
        self
    }

    /// Names the cursor; empty by default. Another name starts anew.
    pub fn named<N>(mut self, name: N) -> Self
    where
        N: TryInto<LogName>,
        Error: From<N::Error>,
    {
        match (name.try_into().map_err(Error::from), &mut self.kind) {
            (Ok(given), Ok(Kind::Log { name, .. })) => *name = given,
            (Err(error), Ok(_)) => self.kind = Err(error),
            _ => {}
        }
        self
    }
}

impl<K> ConsumerSpec<K> {
    pub(crate) fn define(self) -> Result<Definition> {
        let name = self.name?;
        let of = |error: Error| error.in_field(format_args!("consumer {name}"));
        let mut types = self.types.map_err(of)?;
        if let Some(only) = self.only {
            let only = only.map_err(of)?;
            if let Some(known) = &types
                && let Some(stranger) = only.iter().find(|t| !known.contains(t))
            {
                let rule = format!("must be types of its events, {stranger} is none");
                return Err(of(Error::invalid("types", rule)));
            }
            types = Some(only);
        }
        if types.as_ref().is_some_and(Vec::is_empty) {
            return Err(of(Error::invalid("types", "must be at least one")));
        }
        if self.concurrency == Some(0) {
            return Err(of(Error::invalid("concurrency", "must not be zero")));
        }
        if self.ttl.is_some_and(|ttl| ttl.is_zero()) {
            return Err(of(Error::invalid("ttl", "must not be zero")));
        }
        Ok(Definition {
            kind: self.kind.map_err(of)?,
            types: types.map(|types| types.into_iter().collect()),
            handler: self.handler,
            retry: self.retry,
            concurrency: self.concurrency,
            ttl: self.ttl,
            name,
        })
    }
}

impl<K> fmt::Debug for ConsumerSpec<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerSpec")
            .field("name", &self.name)
            .field("types", &self.only.as_ref().unwrap_or(&Ok(Vec::new())))
            .field("retry", &self.retry)
            .field("concurrency", &self.concurrency)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}
