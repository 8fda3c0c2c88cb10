//! Connecting: what is refused, with nothing written; and the end of connections.

use std::time::Duration;

use a2_conformance::servers::{RedisOptions, Servers, fresh_name};
use a2_store_redis::*;
use futures_util::future::try_join_all;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::util::*;

/// What is under a prefix.
async fn all(prefix: &str) -> Vec<String> {
    let server = shared().await;
    let mut all = keys(&server, &format!("{prefix}:*")).await;
    all.sort();
    all
}

async fn connect(prefix: &str) -> Result<RedisStore> {
    RedisStore::builder(shared().await.url()).prefix(prefix).connect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_layout_is_recorded_in_every_partition() {
    let prefix = fresh_name();
    try_join_all((0..16).map(|_| connect(&prefix))).await.unwrap();
    let recorded = all(&prefix).await;
    assert_eq!(recorded.len(), 256);
    assert!(recorded.iter().all(|key| key.ends_with("}:schema")));
    let server = shared().await;
    assert_eq!(command(&server, &["GET", &recorded[0]]).await.to_string(), "a2-redis-2");
    // One that is missing is made up for: whoever recorded it was cut off.
    command(&server, &["DEL", &recorded[7]]).await;
    connect(&prefix).await.unwrap();
    assert_eq!(all(&prefix).await, recorded);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_that_holds_another_layout_is_refused() {
    let (server, full, prefix) = (shared().await, fresh_name(), fresh_name());
    connect(&full).await.unwrap();
    let key = all(&full).await[200].replace(&full, &prefix);
    for other in [["SET", &key, "a2-redis-1"], ["RPUSH", &key, "a2-redis-2"]] {
        command(&server, &["DEL", &key]).await;
        command(&server, &other).await;
        let error = connect(&prefix).await.unwrap_err();
        assert!(matches!(error.code(), "STORE_NOT_CONFIGURED" | "CORRUPT"), "{error}");
        assert!(!error.is_retryable());
        assert_eq!(all(&prefix).await, [key.as_str()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_of_the_npm_package_is_refused() {
    let (server, prefix) = (shared().await, fresh_name());
    for key in [format!("{prefix}:schema"), format!("{{{prefix}}}:schema")] {
        command(&server, &["SET", &key, "3"]).await;
        let error = connect(&prefix).await.unwrap_err();
        assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
        command(&server, &["DEL", &key]).await;
        assert!(all(&prefix).await.is_empty());
    }
    connect(&prefix).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_evicts_is_refused_unless_it_is_allowed() {
    let server = own(RedisOptions::new().setting("maxmemory-policy", "allkeys-lru")).await;
    let options = fresh(&server);
    let error = options.clone().connect().await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    assert!(keys(&server, "*").await.is_empty());
    let store = options.clone().allow_eviction(true).connect().await.unwrap();
    assert_eq!(store.servers()[0].eviction.as_deref(), Some("allkeys-lru"));
    assert_eq!(store.servers()[0].is_append_only, Some(false));
    command(&server, &["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]).await;
    options.clone().connect().await.unwrap();
    let error = options.clone().require_append_only(true).connect().await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    command(&server, &["CONFIG", "SET", "appendonly", "yes"]).await;
    options.require_append_only(true).connect().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_ask_the_server_connects_all_the_same() {
    // Managed servers refuse CONFIG, some also INFO.
    for refused in ["-config", "-info"] {
        let user = User::with(&["~*", "&*", "+@all", refused]).await;
        let store = user.builder().connect().await.unwrap();
        store.append(&session("s"), append("e")).await.unwrap();
        assert_eq!(store.servers()[0].eviction.is_some(), refused == "-config");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_unavailable_in_time() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    for scheme in ["redis", "redis-cluster", "valkey"] {
        let error = RedisStore::connect(format!("{scheme}://127.0.0.1:{port}")).await.unwrap_err();
        assert_eq!(
            (error.code(), error.outcome_unknown()),
            ("STORE_UNAVAILABLE", false),
            "{error}"
        );
    }
    // Somebody is there, and says nothing; the connection is closed when the store gives up.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = mute.local_addr().unwrap().port();
    let url = format!("redis://127.0.0.1:{port}");
    let options = RedisStore::builder(url).operation_timeout(Duration::from_millis(200));
    let connect = tokio::spawn(options.connections(1).connect());
    let (mut client, _) = mute.accept().await.unwrap();
    let error = connect.await.unwrap().unwrap_err();
    assert_eq!(error.code(), "STORE_UNAVAILABLE", "{error}");
    let mut said = Vec::new();
    client.read_to_end(&mut said).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_let_in_is_told_so() {
    let user = User::new().await;
    let wrong = user.url.replace("secret", "wrong");
    let error = RedisStore::connect(&wrong).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
    let server = own(RedisOptions::new()).await;
    command(&server, &["CONFIG", "SET", "requirepass", "secret"]).await;
    let error = RedisStore::connect(server.url()).await.err();
    assert_eq!(error.map(|error| error.code()), Some("STORE_NOT_CONFIGURED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_not_taken_for_a_server_nor_a_server_for_a_cluster() {
    let server = shared().await;
    let cluster = server.url().replace("redis://", "redis-cluster://");
    let error = RedisStore::connect(cluster).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    let cluster = RedisOptions::new().start_cluster(Servers::Local).await.unwrap();
    let port = cluster.processes()[0].port();
    let error = RedisStore::connect(format!("redis://127.0.0.1:{port}")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_dropped_or_closed_leaves_no_connection() {
    let user = User::new().await;
    let options = user.builder().connections(3);
    let at = session("s");
    for closes in [false, true] {
        let store = options.clone().connect().await.unwrap();
        let other = options.clone().connect().await.unwrap();
        store.append(&at, append(&fresh_name())).await.unwrap();
        let mut stream = store.stream(&at, Index::ZERO);
        next(&mut stream).await;
        until("six and the one that listens", || async { user.connections().await == 7 }).await;
        if closes {
            store.close().await;
            other.close().await;
            assert_eq!(store.head(&at).await.unwrap_err().code(), "CLOSED");
        }
        drop((stream, store, other));
        until("all are gone", || async { user.connections().await == 0 }).await;
    }
    // One that is refused has none either.
    let url = user.url.clone() + "/9999";
    RedisStore::connect(url).await.unwrap_err();
    until("it is gone", || async { user.connections().await == 0 }).await;
}

#[test]
fn a_store_outlives_the_runtime_that_it_was_connected_in() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let at = session("s");
    let store = runtime().block_on(async { fresh(&*shared().await).connect().await.unwrap() });
    for round in 0..3 {
        runtime().block_on(async {
            insist(&store, &at, append(&format!("e{round}"))).await;
        });
    }
    assert_eq!(runtime().block_on(async { store.head(&at).await.unwrap() }), 3);
}
