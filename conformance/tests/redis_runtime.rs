//! The runtime on a real Redis server.

#![allow(clippy::unwrap_used)]

mod runtime_scenarios;

use std::sync::Arc;

use a2_conformance::servers::{self, RedisServer, Servers, Shared, fresh_name};
use a2_core::{ManualClock, Timers, async_trait};
use a2_store_redis::RedisStore;
use runtime_scenarios::{Site, scenarios};

static SERVER: Shared<RedisServer> = Shared::new();

/// A prefix of the shared server.
struct Prefix {
    server: Arc<RedisServer>,
    prefix: String,
}

impl Prefix {
    async fn new() -> Self {
        let server = SERVER.get(servers::redis(Servers::Auto)).await.unwrap();
        Self { server, prefix: fresh_name() }
    }
}

#[async_trait]
impl Site for Prefix {
    async fn open(&self, clock: Option<ManualClock>) -> Arc<dyn Timers> {
        let mut options =
            RedisStore::builder(self.server.url()).prefix(&self.prefix).connections(1);
        if let Some(clock) = clock {
            options = options.clock(Arc::new(clock));
        }
        Arc::new(options.connect().await.unwrap())
    }
}

scenarios!(Prefix::new());
