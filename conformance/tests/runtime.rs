//! The runtime on the embedded stores.

#![allow(clippy::unwrap_used)]

mod runtime_scenarios;

use std::path::PathBuf;
use std::sync::Arc;

use a2_core::{ManualClock, Timers, async_trait};
use a2_store_memory::MemoryStore;
use a2_store_sqlite::{SqliteStore, Synchronous};
use runtime_scenarios::{Site, scenarios};
use tempfile::TempDir;

struct Memory(MemoryStore);

#[async_trait]
impl Site for Memory {
    async fn open(&self, clock: Option<ManualClock>) -> Arc<dyn Timers> {
        match clock {
            Some(clock) => Arc::new(self.0.with_clock(Arc::new(clock))),
            None => Arc::new(self.0.clone()),
        }
    }
}

/// A file, which every process opens for itself.
struct File {
    path: PathBuf,
    _folder: TempDir,
}

impl File {
    async fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("a2-runtime-").tempdir().unwrap();
        Self { path: folder.path().join("a2.db"), _folder: folder }
    }
}

#[async_trait]
impl Site for File {
    async fn open(&self, clock: Option<ManualClock>) -> Arc<dyn Timers> {
        let mut builder = SqliteStore::builder(&self.path).synchronous(Synchronous::Normal);
        if let Some(clock) = clock {
            builder = builder.clock(Arc::new(clock));
        }
        Arc::new(builder.open().await.unwrap())
    }
}

mod memory {
    use super::*;

    scenarios!(async { Memory(MemoryStore::new()) });
}

mod sqlite {
    use super::*;

    scenarios!(File::new());
}
