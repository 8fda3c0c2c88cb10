//! A server for all tests, and a prefix for each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use a2_conformance::servers::{
    self, RedisOptions, RedisServer, Reply, Servers, Shared, fresh_name,
};
use a2_store_redis::*;
use futures_util::{Stream, StreamExt};

static SERVER: Shared<RedisServer> = Shared::new();

pub(crate) async fn shared() -> Arc<RedisServer> {
    SERVER.get(servers::redis(Servers::Auto)).await.unwrap()
}

/// A server of this machine that nobody else uses.
pub(crate) async fn own(options: RedisOptions) -> RedisServer {
    options.start(Servers::Local).await.unwrap()
}

/// Options of a store under a prefix without anything.
pub(crate) fn fresh(server: &RedisServer) -> RedisBuilder {
    RedisStore::builder(server.url()).prefix(fresh_name()).connections(1)
}

/// A command that is not refused.
pub(crate) async fn command(server: &RedisServer, words: &[&str]) -> Reply {
    match server.command(words).await.unwrap() {
        Reply::Error(refusal) => panic!("{words:?}: {refusal}"),
        reply => reply,
    }
}

/// The keys of this pattern.
pub(crate) async fn keys(server: &RedisServer, pattern: &str) -> Vec<String> {
    match command(server, &["KEYS", pattern]).await {
        Reply::Array(keys) => keys.iter().map(Reply::to_string).collect(),
        other => panic!("{other}"),
    }
}

/// A user of the server that may do everything, and the URL by which a store is that user: so that its
/// connections can be told from those of others.
pub(crate) struct User {
    name: String,
    pub(crate) url: String,
    pub(crate) server: Arc<RedisServer>,
}

impl User {
    pub(crate) async fn new() -> Self {
        Self::with(&["~*", "&*", "+@all"]).await
    }

    pub(crate) async fn with(rights: &[&str]) -> Self {
        let (server, name) = (shared().await, fresh_name());
        let mut words = vec!["ACL", "SETUSER", &name, "on", ">secret"];
        words.extend(rights);
        command(&server, &words).await;
        let url = server.url().replace("://", &format!("://{name}:secret@"));
        Self { name, url, server }
    }

    pub(crate) fn builder(&self) -> RedisBuilder {
        RedisStore::builder(&self.url).prefix(fresh_name()).connections(1)
    }

    /// Its connections.
    pub(crate) async fn connections(&self) -> usize {
        let list = command(&self.server, &["CLIENT", "LIST"]).await.to_string();
        let mine = format!(" user={} ", self.name);
        list.lines().filter(|line| line.contains(&mine)).count()
    }

    /// Closes its connections.
    pub(crate) async fn kill(&self) {
        command(&self.server, &["CLIENT", "KILL", "USER", &self.name]).await;
    }
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn event(id: &str) -> NewEvent {
    NewEvent::new("t", &1).unwrap().id(id).unwrap()
}

/// An event with an event cursor of the consumer `c`.
pub(crate) fn append(id: &str) -> Append {
    Append::one(event(id).target(Target::event("c").unwrap())).unwrap()
}

pub(crate) fn claim() -> ClaimAvailable {
    ClaimAvailable::new("w", Duration::from_secs(60)).unwrap()
}

pub(crate) async fn claimed(store: &RedisStore, at: &SessionId, id: &str) -> DispatchedHead {
    store.append(at, append(id)).await.unwrap();
    let heads = store.claim_available(at, claim()).await.unwrap().into_heads();
    assert_eq!(heads.len(), 1);
    heads[0].clone()
}

pub(crate) fn complete(head: &DispatchedHead) -> CompleteAttempt {
    CompleteAttempt::new(head.head.clone(), head.attempt())
}

/// The events' ids, in order, of a log that must be dense.
pub(crate) async fn ids(store: &RedisStore, at: &SessionId) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), Index::ZERO);
    loop {
        let page = store.read(at, ReadRange::after(after)).await.unwrap();
        let Some(last) = page.events.last() else { return ids };
        after = last.index;
        for event in &page.events {
            ids.push(event.id.to_string());
            assert_eq!(event.index.get(), ids.len() as u64);
        }
    }
}

/// What comes next, within a generous time.
pub(crate) async fn next<T>(stream: &mut (impl Stream<Item = Result<T>> + Unpin)) -> T {
    let next = tokio::time::timeout(Duration::from_secs(30), stream.next()).await;
    next.expect("not within 30 s").expect("the stream ended").unwrap()
}

/// Waits for a condition.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition().await {
        assert!(Instant::now() < deadline, "not within 60 s: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Sends the same append until it is answered; every error on the way must be one to retry after.
pub(crate) async fn insist(store: &RedisStore, at: &SessionId, append: Append) -> Appended {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match store.append(at, append.clone()).await {
            Ok(done) => return done,
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                assert!(Instant::now() < deadline, "not within 60 s: {error}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}
