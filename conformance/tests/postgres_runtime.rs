//! The runtime on a real Postgres server.

#![allow(clippy::unwrap_used)]

mod runtime_scenarios;

use std::sync::Arc;

use a2_conformance::servers::{self, PostgresServer, Servers, Shared, fresh_name};
use a2_core::{ManualClock, Timers, async_trait};
use a2_store_postgres::{PostgresBuilder, PostgresStore};
use runtime_scenarios::{Site, scenarios};

static SERVER: Shared<PostgresServer> = Shared::new();

/// A schema of the shared server.
struct Schema {
    options: PostgresBuilder,
    _server: Arc<PostgresServer>,
}

impl Schema {
    async fn new() -> Self {
        let server = SERVER.get(servers::postgres(Servers::Auto)).await.unwrap();
        let options = PostgresStore::builder(server.url()).schema(fresh_name()).max_connections(3);
        let store = options.clone().connect().await.unwrap();
        store.migrate().await.unwrap();
        store.close().await;
        Self { options, _server: server }
    }
}

#[async_trait]
impl Site for Schema {
    async fn open(&self, clock: Option<ManualClock>) -> Arc<dyn Timers> {
        let mut options = self.options.clone();
        if let Some(clock) = clock {
            options = options.clock(Arc::new(clock));
        }
        Arc::new(options.connect().await.unwrap())
    }
}

scenarios!(Schema::new());
