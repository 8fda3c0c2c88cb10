//! The handle that a program holds, and what its handles share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use a2_core::live::Hub;
use a2_core::{Clock, Result, SessionId, StoreLimits, Timestamp};

use crate::MemoryStoreBuilder;
use crate::global::Global;
use crate::presences::{HandleNumber, Presences, Writer};
use crate::session::Session;

/// A store that lives in the process and goes with it.
///
/// A handle, cheap to clone: clones share the data, which goes when the last of them is dropped.
/// See the [crate's documentation](crate) for what it costs and what it is for.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: StoreLimits,
    number: HandleNumber,
    source: Arc<str>,
}

/// What the handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) global: Global,
    pub(crate) presences: Presences,
    pub(crate) hub: Hub,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store with the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An empty store with settings.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::default()
    }

    pub(crate) fn with_config(clock: Arc<dyn Clock>, limits: StoreLimits) -> Self {
        let shared = Shared { global: Global::new(), presences: Presences::new(), hub: Hub::new() };
        Self::handle(Arc::new(shared), clock, limits)
    }

    /// Another handle on the same data, whose operations go by `clock`, and whose presence writes
    /// have a source of their own.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Self {
        Self::handle(Arc::clone(&self.shared), clock, self.limits)
    }

    /// Another handle on the same data, which takes as much at once as `limits` say, and whose presence
    /// writes have a source of their own.
    #[must_use]
    pub fn with_limits(&self, limits: StoreLimits) -> Self {
        Self::handle(Arc::clone(&self.shared), Arc::clone(&self.clock), limits)
    }

    fn handle(shared: Arc<Shared>, clock: Arc<dyn Clock>, limits: StoreLimits) -> Self {
        static HANDLES: AtomicU64 = AtomicU64::new(1);
        let number = HANDLES.fetch_add(1, Ordering::Relaxed);
        Self { shared, clock, limits, number, source: format!("memory-{number}").into() }
    }

    /// Names this handle, and its clones, in the presence patches that it makes.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Closes the store for every handle: open streams end with `CLOSED`, later calls answer it.
    /// Leases run out by themselves. The data goes with the last handle.
    pub async fn close(&self) {
        self.shared.global.close();
        self.shared.hub.close();
        self.shared.presences.hub.close();
    }

    pub(crate) fn writer(&self) -> Writer<'_> {
        Writer { number: self.number, source: &self.source }
    }

    /// An operation that writes nothing to a session that does not exist. The clock is read when
    /// the session is locked.
    pub(crate) async fn on<T>(
        &self,
        session: &SessionId,
        operation: impl FnOnce(&mut Session, Timestamp) -> Result<T>,
    ) -> Result<T> {
        give_way().await;
        self.shared.global.with(session, |session| operation(session, self.clock.now()))
    }

    /// An operation that may be a session's first write.
    pub(crate) async fn on_new<T>(
        &self,
        session: &SessionId,
        operation: impl FnOnce(&mut Session, Timestamp) -> Result<T>,
    ) -> Result<T> {
        give_way().await;
        self.shared.global.with_new(session, |session| operation(session, self.clock.now()))
    }
}

/// Lets other tasks run now and then: no operation ever waits, so a task that does one after the
/// other would keep its thread for itself. Before the operation, so that a future that is dropped
/// here has not begun.
async fn give_way() {
    tokio::task::coop::consume_budget().await;
}
