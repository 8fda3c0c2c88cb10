//! How a runtime is put together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use a2_core::{Clock, Error, EventId, Holder, Result, Store, Timers};

use crate::RetryPolicy;
use crate::clock::SteadyClock;
use crate::consumer::{ConsumerSpec, Definition};
use crate::registry::Registry;
use crate::runtime::{Inner, Runtime};

/// What can be set about a runtime, beside its consumers.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) ttl: Duration,
    pub(crate) concurrency: usize,
    pub(crate) sessions: usize,
    pub(crate) cancel_grace: Duration,
    pub(crate) sweep_every: Duration,
    pub(crate) pass_every: Duration,
    pub(crate) snapshot_every: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(30),
            concurrency: 64,
            sessions: 1_024,
            cancel_grace: Duration::from_secs(5),
            sweep_every: Duration::from_secs(30),
            pass_every: Duration::from_secs(600),
            snapshot_every: 100,
        }
    }
}

/// Puts a [`Runtime`] together: [`Runtime::builder`].
#[must_use = "a builder makes nothing until built"]
pub struct RuntimeBuilder {
    store: Arc<dyn Store>,
    timers: Option<Arc<dyn Timers>>,
    consumers: Vec<Result<Definition>>,
    policy: RetryPolicy,
    holder: Option<Result<Holder>>,
    clock: Option<Arc<dyn Clock>>,
    options: Options,
}

impl RuntimeBuilder {
    pub(crate) fn new(store: Arc<dyn Store>, timers: Option<Arc<dyn Timers>>) -> Self {
        Self {
            store,
            timers,
            consumers: Vec::new(),
            policy: RetryPolicy::default(),
            holder: None,
            clock: None,
            options: Options::default(),
        }
    }

    /// Adds a consumer: [`concurrent`](crate::concurrent), [`lane`](crate::lane),
    /// [`log`](crate::log()) or [`log_runs`](crate::log_runs). At most 256, each name once.
    pub fn consumer<K>(mut self, consumer: ConsumerSpec<K>) -> Self {
        self.consumers.push(consumer.define());
        self
    }

    /// When failed events are tried again, and how often, where a consumer says nothing else.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// How many handlers run at the same time in this process; 64 by default.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.options.concurrency = handlers;
        self
    }

    /// How many sessions are worked in at the same time; 1,024 by default. Others wait their turn.
    pub fn sessions(mut self, sessions: usize) -> Self {
        self.options.sessions = sessions;
        self
    }

    /// How long a claim lasts without being renewed: how soon another process takes over when this one
    /// dies. 30 seconds by default. Claims of living handlers are renewed for as long as they run.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// How long a cancelled handler may go on before its future is dropped; five seconds by default.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.options.cancel_grace = grace;
        self
    }

    /// How often all pending work is looked for, about; 30 seconds by default. What this process or a
    /// hint tells of is worked on at once: this finds what crashed processes left.
    pub fn sweep_every(mut self, interval: Duration) -> Self {
        self.options.sweep_every = interval;
        self
    }

    /// How long between two passes over all sessions, about; ten minutes by default. It finds events
    /// that a process without this program's log consumers appended, when the hint of it was lost. Only
    /// programs with log consumers make such passes.
    pub fn pass_every(mut self, interval: Duration) -> Self {
        self.options.pass_every = interval;
        self
    }

    /// After how many folded events a reducer's state is kept as a snapshot; 100 by default.
    pub fn snapshot_every(mut self, events: usize) -> Self {
        self.options.snapshot_every = events.max(1);
        self
    }

    /// Who this process is in the store's records; a random name by default. No two living processes
    /// may have the same.
    pub fn holder<H>(mut self, holder: H) -> Self
    where
        H: TryInto<Holder>,
        Error: From<H::Error>,
    {
        self.holder = Some(holder.try_into().map_err(Error::from));
        self
    }

    /// Waits by this clock, for tests: give the same one to the store.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Checks everything. The runtime can append from now on; it handles nothing until it is
    /// [started](Runtime::start).
    ///
    /// # Errors
    /// `INVALID_INPUT` for what is wrong with a consumer, for a name twice, and for limits of zero.
    pub fn build(self) -> Result<Runtime> {
        let definitions = self.consumers.into_iter().collect::<Result<Vec<_>>>()?;
        let positive = |field, holds| {
            if holds { Ok(()) } else { Err(Error::invalid(field, "must not be zero")) }
        };
        positive("concurrency", self.options.concurrency > 0)?;
        positive("sessions", self.options.sessions > 0)?;
        positive("ttl", !self.options.ttl.is_zero())?;
        positive("sweep_every", !self.options.sweep_every.is_zero())?;
        positive("pass_every", !self.options.pass_every.is_zero())?;
        let registry = Registry::new(definitions, self.policy, self.options.ttl)?;
        let holder = match self.holder {
            Some(holder) => holder?,
            None => Holder::new(EventId::generate().as_str())?,
        };
        let clock = self.clock.unwrap_or_else(|| Arc::new(SteadyClock::new()));
        let inner = Inner::new(self.store, self.timers, registry, holder, clock, self.options);
        Ok(Runtime::of(inner))
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("consumers", &self.consumers.len())
            .field("policy", &self.policy)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
