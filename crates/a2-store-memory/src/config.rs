//! How a store is made.

use std::sync::Arc;

use a2_core::{Clock, StoreLimits, SystemClock};

use crate::MemoryStore;

/// Makes a [`MemoryStore`].
///
/// ```
/// use std::sync::Arc;
/// use a2_store_memory::{ManualClock, MemoryStore, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::from_millis(1_000));
/// let store = MemoryStore::builder().clock(Arc::new(clock.clone())).build();
/// # drop(store);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder makes nothing until built"]
pub struct MemoryStoreBuilder {
    clock: Arc<dyn Clock>,
    limits: StoreLimits,
}

impl Default for MemoryStoreBuilder {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), limits: StoreLimits::ABSOLUTE }
    }
}

impl MemoryStoreBuilder {
    /// The clock that stamps events and judges leases; the system's by default.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How much the store takes at once; as much as the model allows by default.
    pub fn limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// An empty store.
    #[must_use]
    pub fn build(self) -> MemoryStore {
        MemoryStore::with_config(self.clock, self.limits)
    }
}
