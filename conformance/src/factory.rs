//! What a backend gives to the suite: a factory of stores.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use a2_core::{Clock, ManualClock, Presence, Store, Timers};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::Isolation;

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

/// A store under test.
pub struct Subject {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Option<Arc<dyn Timers>>,
    pub(crate) presence: Option<Arc<dyn Presence>>,
    pub(crate) another: Option<Opener>,
    // Dropped last: it removes what the store uses.
    pub(crate) guards: Vec<Box<dyn Any + Send + Sync>>,
}

impl Subject {
    /// A store without timers and presence.
    #[must_use]
    pub fn new(store: impl Store + 'static) -> Self {
        let store = Arc::new(store);
        Self { store, timers: None, presence: None, another: None, guards: Vec::new() }
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

    /// What cleans up when it is dropped, after the store.
    #[must_use]
    pub fn guard(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guards.push(Box::new(guard));
        self
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("timers", &self.timers.is_some())
            .field("presence", &self.presence.is_some())
            .field("another", &self.another.is_some())
            .finish_non_exhaustive()
    }
}
