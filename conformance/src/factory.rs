//! What a backend gives to the suite: a factory of stores.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use a2_core::{Clock, Index, ManualClock, Presence, SessionId, Store, StoreLimits, Timers};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::{Capability, Isolation};

/// Whatever a factory fails with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Opens stores of one backend for the cases.
#[async_trait]
pub trait Factory: Send + Sync + 'static {
    /// The backend's name in reports.
    fn name(&self) -> &str;

    /// Opens a store as the setup asks for.
    ///
    /// # Errors
    /// Why there is none; the case fails with it.
    async fn open(&self, setup: Setup) -> Result<Subject, BoxError>;

    /// By how much deadlines of real time are stretched on a slow server.
    fn stretch(&self) -> u32 {
        1
    }
}

/// How a case wants its store.
#[derive(Debug, Clone)]
pub struct Setup {
    clock: Option<ManualClock>,
    isolation: Isolation,
}

impl Setup {
    /// A store with this clock; without one it keeps its real clock.
    #[must_use]
    pub fn new(clock: Option<ManualClock>, isolation: Isolation) -> Self {
        Self { clock, isolation }
    }

    /// The clock that replaces the store's, if any.
    #[must_use]
    pub fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.clock.clone().map(|clock| Arc::new(clock) as Arc<dyn Clock>)
    }

    /// Whether other cases' data may be in the store.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }
}

pub(crate) type Opener =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Subject, BoxError>> + Send + Sync>;

pub(crate) type Limiter =
    Arc<dyn Fn(StoreLimits) -> BoxFuture<'static, Result<Subject, BoxError>> + Send + Sync>;

pub(crate) type Closer = Arc<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

pub(crate) type Loser =
    Arc<dyn Fn(SessionId, Index) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// A store under test.
pub struct Subject {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Option<Arc<dyn Timers>>,
    pub(crate) presence: Option<Arc<dyn Presence>>,
    pub(crate) another: Option<Opener>,
    pub(crate) limited: Option<Limiter>,
    pub(crate) close: Option<Closer>,
    pub(crate) lose_event: Option<Loser>,
    // Dropped last: it removes what the store uses.
    pub(crate) guards: Vec<Box<dyn Any + Send + Sync>>,
}

impl Subject {
    /// A store without timers and presence.
    #[must_use]
    pub fn new(store: impl Store + 'static) -> Self {
        Self {
            store: Arc::new(store),
            timers: None,
            presence: None,
            another: None,
            limited: None,
            close: None,
            lose_event: None,
            guards: Vec::new(),
        }
    }

    /// A store with timers and presence.
    #[must_use]
    pub fn full(store: impl Timers + Presence + 'static) -> Self {
        let store = Arc::new(store);
        Self::new(store.clone()).timers(store.clone()).presence(store)
    }

    /// The same store's timers.
    #[must_use]
    pub fn timers(mut self, timers: Arc<dyn Timers>) -> Self {
        self.timers = Some(timers);
        self
    }

    /// The same store's presence.
    #[must_use]
    pub fn presence(mut self, presence: Arc<dyn Presence>) -> Self {
        self.presence = Some(presence);
        self
    }

    /// How to open another handle on the same data, with the same clock.
    #[must_use]
    pub fn another<F, Fut>(mut self, open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Subject, BoxError>> + Send + 'static,
    {
        self.another = Some(Arc::new(move || open().boxed()));
        self
    }

    /// How to open another handle on the same data, with the same clock and these limits.
    #[must_use]
    pub fn limited<F, Fut>(mut self, open: F) -> Self
    where
        F: Fn(StoreLimits) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Subject, BoxError>> + Send + 'static,
    {
        self.limited = Some(Arc::new(move |limits| open(limits).boxed()));
        self
    }

    /// How to close the store: open streams end, later calls answer `CLOSED`.
    #[must_use]
    pub fn closing<F, Fut>(mut self, close: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.close = Some(Arc::new(move || close().boxed()));
        self
    }

    /// How to take the event at an index out of what is stored, behind the store's back, as a broken
    /// disk would.
    #[must_use]
    pub fn losing_events<F, Fut>(mut self, lose: F) -> Self
    where
        F: Fn(SessionId, Index) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.lose_event = Some(Arc::new(move |session, index| lose(session, index).boxed()));
        self
    }

    /// Whether the store has what some cases need.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Timers => self.timers.is_some(),
            Capability::Presence => self.presence.is_some(),
            Capability::Another => self.another.is_some(),
            Capability::Limits => self.limited.is_some(),
            Capability::Close => self.close.is_some(),
            Capability::Damage => self.lose_event.is_some(),
        }
    }

    /// What cleans up when it is dropped, after the store.
    #[must_use]
    pub fn guard(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guards.push(Box::new(guard));
        self
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = Capability::ALL.iter().filter(|capability| self.has(**capability));
        f.debug_struct("Subject").field("has", &has.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
