//! The Redis store: one server or cluster for all cases, each of which has a handle of its own. Cases
//! that may share data share a prefix, the others have one each.

use std::sync::Arc;
use std::time::Duration;

use a2_core::{Clock, Index, SessionId, StoreLimits};
use a2_store_redis::{RedisBuilder, RedisStore};
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::servers::{self, RedisCluster, RedisServer, Reply, Servers, fresh_name};
use crate::{BoxError, Factory, Isolation, Setup, Subject, async_trait};

/// Opens Redis stores under prefixes of one server or cluster.
pub struct Redis {
    servers: Servers,
    clustered: bool,
    server: OnceCell<Arc<Server>>,
    shared: OnceCell<String>,
    /// Stores under one prefix have one clock: those with the server's share a prefix of their own.
    shared_live: OnceCell<String>,
}

/// What the handles connect to.
enum Server {
    One(RedisServer),
    Cluster(RedisCluster),
}

impl Server {
    fn url(&self) -> &str {
        match self {
            Self::One(server) => server.url(),
            Self::Cluster(cluster) => cluster.url(),
        }
    }

    fn nodes(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Cluster(cluster) => cluster.nodes(),
        }
    }

    async fn command(&self, node: usize, words: &[&str]) -> Result<Reply, BoxError> {
        Ok(match self {
            Self::One(server) => server.command(words).await?,
            Self::Cluster(cluster) => cluster.command(node, words).await?,
        })
    }
}

/// A prefix on a server.
#[derive(Clone)]
struct Space {
    server: Arc<Server>,
    prefix: String,
}

impl Redis {
    /// On a server from there, which the first case starts or finds.
    #[must_use]
    pub fn new(servers: Servers) -> Self {
        Self {
            servers,
            clustered: false,
            server: OnceCell::new(),
            shared: OnceCell::new(),
            shared_live: OnceCell::new(),
        }
    }

    /// The same on a cluster of three masters.
    #[must_use]
    pub fn cluster(servers: Servers) -> Self {
        Self { clustered: true, ..Self::new(servers) }
    }

    async fn start(&self) -> Result<Arc<Server>, BoxError> {
        Ok(Arc::new(match self.clustered {
            false => Server::One(servers::redis(self.servers).await?),
            true => Server::Cluster(servers::redis_cluster(self.servers).await?),
        }))
    }
}

#[async_trait]
impl Factory for Redis {
    fn name(&self) -> &str {
        if self.clustered { "redis-cluster" } else { "redis" }
    }

    async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
        let server = Arc::clone(self.server.get_or_try_init(|| self.start()).await?);
        let fresh = || async { fresh_name() };
        let prefix = match setup.isolation() {
            Isolation::Shared => {
                let live = setup.clock().is_none();
                let shared = if live { &self.shared_live } else { &self.shared };
                shared.get_or_init(fresh).await.clone()
            }
            Isolation::Own => fresh_name(),
        };
        handle(Space { server, prefix }, setup.clock(), StoreLimits::ABSOLUTE).await
    }
}

fn builder(space: &Space, clock: Option<Arc<dyn Clock>>, limits: StoreLimits) -> RedisBuilder {
    let builder = RedisStore::builder(space.server.url())
        .prefix(&space.prefix)
        .connections(1)
        .limits(limits)
        .operation_timeout(Duration::from_secs(30));
    match clock {
        Some(clock) => builder.clock(clock),
        None => builder,
    }
}

/// A handle on what is under the prefix, with this clock or the server's, and these limits.
fn handle(
    space: Space,
    clock: Option<Arc<dyn Clock>>,
    limits: StoreLimits,
) -> BoxFuture<'static, Result<Subject, BoxError>> {
    Box::pin(async move {
        let store = builder(&space, clock.clone(), limits).connect().await?;
        let closed = store.clone();
        let damaged = space.clone();
        let limited = (space.clone(), clock.clone());
        Ok(Subject::full(store)
            .another(move || handle(space.clone(), clock.clone(), limits))
            .limited(move |limits| handle(limited.0.clone(), limited.1.clone(), limits))
            .closing(move || {
                let store = closed.clone();
                async move {
                    store.close().await;
                    Ok(())
                }
            })
            .losing_events(move |session, index| {
                let space = damaged.clone();
                async move { lose_event(&space, &session, index).await }
            }))
    })
}

/// Takes an event's entry out of the log behind the store's back; the log must never have been cleared.
async fn lose_event(space: &Space, session: &SessionId, index: Index) -> Result<(), BoxError> {
    const GONE: &str = "gone";
    let (chunk, place) = (index.get() / 1_000, index.get() % 1_000);
    let place = if chunk == 0 { place - 1 } else { place };
    let wanted = format!(":l\0{}\x000\0{chunk}", session.as_str());
    for node in 0..space.server.nodes() {
        let all = ["KEYS", &format!("{}:{{*}}:l*", space.prefix)];
        let Reply::Array(keys) = space.server.command(node, &all).await? else {
            return Err("KEYS answered no list".into());
        };
        let mut keys = keys.iter().map(Reply::to_string);
        if let Some(key) = keys.find(|key| key.ends_with(&wanted)) {
            space.server.command(node, &["LSET", &key, &place.to_string(), GONE]).await?;
            return Ok(());
        }
    }
    Err("the event's list is not there".into())
}
