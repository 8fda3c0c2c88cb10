//! The runtime's handle, and what all of its parts share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use a2_core::{Clock, Error, Holder, Result, SessionId, Store, Timers};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gate::Gate;
use crate::hints::OwnAppends;
use crate::inflight::Inflight;
use crate::options::Options;
use crate::registry::Registry;
use crate::sweep::StoreTime;
use crate::telemetry::Telemetry;
use crate::units::{UnitKey, Units};
use crate::{RuntimeBuilder, Session, Shutdown, shutdown};

/// Runs a program's consumers on a store. Clones are the same runtime.
///
/// When the last clone goes, the runtime stops as if it were shut down; only [`shutdown`] waits for it.
///
/// [`shutdown`]: Runtime::shutdown
#[derive(Clone)]
pub struct Runtime(Arc<Owned>);

/// Stops the runtime when it goes.
struct Owned(Arc<Inner>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(handle) = self.0.handle.get() {
            let inner = Arc::clone(&self.0);
            handle.spawn(async move { shutdown::run(&inner, Duration::ZERO).await });
        }
    }
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Option<Arc<dyn Timers>>,
    pub(crate) registry: Registry,
    pub(crate) holder: Holder,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    /// Places for all handlers.
    pub(crate) gate: Gate,
    pub(crate) units: Units,
    pub(crate) inflight: Inflight,
    pub(crate) own: OwnAppends,
    pub(crate) store_time: StoreTime,
    pub(crate) telemetry: Telemetry,
    /// Counts what was found to do.
    pub(crate) found: AtomicU64,
    /// Nothing more is claimed.
    pub(crate) stopping: CancellationToken,
    /// What still runs is cancelled.
    pub(crate) aborted: CancellationToken,
    /// Nothing is left.
    pub(crate) ended: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) handle: OnceLock<Handle>,
}

impl Inner {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        timers: Option<Arc<dyn Timers>>,
        registry: Registry,
        holder: Holder,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            timers,
            holder,
            clock,
            gate: Gate::new(options.concurrency),
            units: Units::new(options.sessions),
            inflight: Inflight::default(),
            own: OwnAppends::default(),
            store_time: StoreTime::default(),
            found: AtomicU64::new(0),
            telemetry: Telemetry::new(registry.names()),
            stopping: CancellationToken::new(),
            aborted: CancellationToken::new(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
            handle: OnceLock::new(),
            registry,
            options,
        })
    }

    /// Looks for work in a session, for all of its consumers.
    pub(crate) fn wake(self: &Arc<Self>, session: &SessionId) {
        self.wake_groups(session, 0..self.registry.groups.len());
    }

    /// Looks for work in a session, for these groups of consumers.
    pub(crate) fn wake_groups(
        self: &Arc<Self>,
        session: &SessionId,
        groups: impl IntoIterator<Item = usize>,
    ) {
        for group in groups {
            self.wake_unit(UnitKey { session: session.clone(), group });
        }
    }

    /// Spawns a part of the runtime that ends when it stops.
    pub(crate) fn spawn(self: &Arc<Self>, part: impl Future<Output = ()> + Send + 'static) {
        if let Some(handle) = self.handle.get() {
            self.tasks.spawn_on(part, handle);
        }
    }

    pub(crate) fn timers(&self) -> Result<&Arc<dyn Timers>> {
        self.timers.as_ref().ok_or_else(|| Error::not_configured("the store has no timers"))
    }

    /// A store that says this will not serve any more.
    pub(crate) fn end_if_closed(&self, error: &Error) -> bool {
        let closed = matches!(error.kind(), a2_core::ErrorKind::Closed);
        if closed {
            self.stopping.cancel();
            self.aborted.cancel();
        }
        closed
    }
}

impl Runtime {
    /// A runtime on `store`. All of A2's stores have timers; for one without see
    /// [`builder_without_timers`](Self::builder_without_timers).
    pub fn builder(store: impl Timers + 'static) -> RuntimeBuilder {
        let timers: Arc<dyn Timers> = Arc::new(store);
        let store: Arc<dyn Store> = Arc::clone(&timers) as _;
        RuntimeBuilder::new(store, Some(timers))
    }

    /// A runtime on a store that has no timers: scheduling answers `STORE_NOT_CONFIGURED`.
    pub fn builder_without_timers(store: impl Store + 'static) -> RuntimeBuilder {
        RuntimeBuilder::new(Arc::new(store), None)
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        Self(Arc::new(Owned(inner)))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0.0
    }

    /// Begins to handle events, in the tokio runtime that this is called in. Called again it does
    /// nothing. A process that only appends need not start its runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as `tokio::spawn` does.
    pub fn start(&self) {
        let inner = self.inner();
        if inner.stopping.is_cancelled() || inner.handle.set(Handle::current()).is_err() {
            return;
        }
        tracing::info!(holder = %inner.holder, "runtime started");
        tokio::spawn(Arc::clone(inner).run_renewals());
        inner.spawn(Arc::clone(inner).run_alarms());
        inner.spawn(Arc::clone(inner).run_hints());
        inner.spawn(Arc::clone(inner).run_sweeps());
        inner.spawn(Arc::clone(inner).run_passes());
    }

    /// A session, to append to and to read.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the name breaks a rule.
    pub fn session<S>(&self, session: S) -> Result<Session>
    where
        S: TryInto<SessionId>,
        Error: From<S::Error>,
    {
        Ok(Session::new(Arc::clone(self.inner()), session.try_into()?, None))
    }

    /// The store that the runtime works on.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner().store
    }

    /// What this program serves: for calls of the store beside the runtime.
    #[must_use]
    pub fn served(&self) -> &a2_core::Served {
        &self.inner().registry.served
    }

    /// Returns when this process finds nothing more to do at the moment, in any session: for tests, and
    /// for programs that end when all is done. Events that wait to be tried again, and timers that are
    /// not due, are not waited for; nor is what other processes hold, nor what a log consumer will only
    /// hear of (events that somebody appended without declaring the log).
    ///
    /// A runtime that was not started finds nothing.
    ///
    /// # Errors
    /// As [`Store::pending`](a2_core::Store::pending).
    pub async fn idle(&self) -> Result<()> {
        let inner = self.inner();
        loop {
            let before = inner.found.load(Ordering::SeqCst);
            inner.sweep().await?;
            inner.units.drain().await;
            if inner.found.load(Ordering::SeqCst) == before {
                return Ok(());
            }
        }
    }

    /// Stops claiming, waits at most `within` for the handlers that run, then cancels them and gives
    /// their claims back at no cost to their budgets.
    ///
    /// A cancelled handler has the [grace](RuntimeBuilder::cancel_grace) to end by itself. The store
    /// stays open. Waiting goes by the runtime's clock.
    pub async fn shutdown(&self, within: Duration) -> Shutdown {
        shutdown::run(self.inner(), within).await
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("holder", &self.inner().holder)
            .field("started", &self.inner().handle.get().is_some())
            .field("stopping", &self.inner().stopping.is_cancelled())
            .finish_non_exhaustive()
    }
}
