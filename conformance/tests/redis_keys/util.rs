//! A server for all tests, and a prefix for each.

use std::sync::Arc;
use std::time::Duration;

use a2_conformance::servers::{self, RedisServer, Reply, Servers, Shared, fresh_name};
use a2_store_redis::*;

static SERVER: Shared<RedisServer> = Shared::new();

/// A prefix under which there is nothing yet.
pub(crate) struct Space {
    server: Arc<RedisServer>,
    prefix: String,
}

impl Space {
    pub(crate) async fn new() -> Self {
        let server = SERVER.get(servers::redis(Servers::Auto)).await.unwrap();
        Self { server, prefix: fresh_name() }
    }

    /// The same on a server of its own: what it does is this test's alone.
    pub(crate) async fn alone() -> Self {
        let server = Arc::new(servers::redis(Servers::Local).await.unwrap());
        Self { server, prefix: fresh_name() }
    }

    fn builder(&self) -> RedisBuilder {
        RedisStore::builder(self.server.url()).prefix(&self.prefix).connections(1)
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A store with other options.
    pub(crate) async fn with(&self, f: impl FnOnce(RedisBuilder) -> RedisBuilder) -> RedisStore {
        f(self.builder()).connect().await.unwrap()
    }

    /// A store whose clock is the server's.
    pub(crate) async fn store(&self) -> RedisStore {
        self.builder().connect().await.unwrap()
    }

    /// A store whose clock stands at 1,000,000 ms until it is moved.
    pub(crate) async fn timed(&self) -> (RedisStore, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_000_000)));
        let store = self.builder().clock(Arc::clone(&clock) as _).connect().await.unwrap();
        (store, clock)
    }

    pub(crate) async fn command(&self, words: &[&str]) -> Reply {
        self.server.command(words).await.unwrap()
    }

    /// The keys that begin with this after the partition, in order.
    pub(crate) async fn keys(&self, begins: &str) -> Vec<String> {
        let all = format!("{}:{{*}}:{begins}*", self.prefix);
        let Reply::Array(keys) = self.command(&["KEYS", &all]).await else { panic!("no list") };
        let mut keys: Vec<String> = keys.iter().map(Reply::to_string).collect();
        keys.sort();
        keys
    }

    pub(crate) async fn number(&self, words: &[&str]) -> i64 {
        match self.command(words).await {
            Reply::Integer(number) => number,
            other => panic!("{words:?}: {other}"),
        }
    }

    /// How many entries the sets of this name have in all partitions.
    pub(crate) async fn entries(&self, set: &str) -> i64 {
        let mut entries = 0;
        for key in self.keys(set).await {
            entries += self.number(&["ZCARD", &key]).await;
        }
        entries
    }
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn event(id: &str) -> NewEvent {
    NewEvent::new("t", &1).unwrap().id(id).unwrap()
}

/// For an event cursor of the consumer.
pub(crate) fn to(consumer: &str) -> Target {
    Target::event(consumer).unwrap()
}

pub(crate) fn timer(key: &str, ms: u64) -> Schedule {
    Schedule::new(key, Duration::from_millis(ms), event(key)).unwrap()
}

pub(crate) async fn clear(store: &RedisStore, s: &SessionId) -> Index {
    store.clear(s, Clear::new()).await.unwrap().clear_index
}

pub(crate) async fn reclaim(store: &RedisStore, s: &SessionId) {
    while !store.reclaim(s).await.unwrap().done {}
}
