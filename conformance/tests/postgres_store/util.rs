//! A server for all tests, and a schema for each.

use std::time::{Duration, Instant};

use a2_conformance::servers::{self, PostgresServer, Servers, Shared, fresh_name};
use a2_store_postgres::tokio_postgres::{Client, NoTls};
use a2_store_postgres::*;
use futures_util::{FutureExt, Stream, StreamExt};

static SERVER: Shared<PostgresServer> = Shared::new();

pub(crate) async fn url() -> String {
    let server = SERVER.get(servers::postgres(Servers::Auto)).await.unwrap();
    server.url().to_owned()
}

/// A schema without anything in it, which does not exist yet.
pub(crate) async fn fresh() -> PostgresBuilder {
    PostgresStore::builder(url().await).schema(fresh_name()).max_connections(4)
}

/// The options of stores on a schema with the tables.
pub(crate) async fn made() -> PostgresBuilder {
    let options = fresh().await;
    let store = options.clone().connect().await.unwrap();
    store.migrate().await.unwrap();
    store.close().await;
    options
}

pub(crate) async fn store() -> PostgresStore {
    made().await.connect().await.unwrap()
}

/// A connection of the test's own.
pub(crate) async fn client() -> Client {
    let (client, connection) = tokio_postgres::connect(&url().await, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
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

pub(crate) async fn claimed(store: &PostgresStore, at: &SessionId, id: &str) -> DispatchedHead {
    store.append(at, append(id)).await.unwrap();
    let heads = store.claim_available(at, claim()).await.unwrap().into_heads();
    assert_eq!(heads.len(), 1);
    heads[0].clone()
}

pub(crate) fn complete(head: &DispatchedHead) -> CompleteAttempt {
    CompleteAttempt::new(head.head.clone(), head.attempt())
}

/// What comes next, within a generous time.
pub(crate) async fn next<T>(stream: &mut (impl Stream<Item = Result<T>> + Unpin)) -> T {
    let next = tokio::time::timeout(Duration::from_secs(30), stream.next()).await;
    next.expect("not within 30 s").expect("the stream ended").unwrap()
}

/// Polls it once: whether nothing has come yet.
pub(crate) fn is_waiting<T>(stream: &mut (impl Stream<Item = Result<T>> + Unpin)) -> bool {
    stream.next().now_or_never().is_none()
}

/// Waits for a condition.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
