//! A server that takes no writes: it is told that nothing was done, reads go on, and it is used again as
//! soon as it takes them.

use a2_conformance::servers::{RedisOptions, RedisServer, Reply};
use a2_store_redis::*;

use crate::util::*;

async fn set(server: &RedisServer, name: &str, value: &str) {
    command(server, &["CONFIG", "SET", name, value]).await;
}

fn large(id: &str) -> Append {
    let payload = "x".repeat(50_000);
    Append::one(NewEvent::new("t", &payload).unwrap().id(id).unwrap()).unwrap()
}

/// An append is refused with this word, and was not done.
async fn refused(store: &RedisStore, at: &SessionId, id: &str, word: &str) {
    let error = store.append(at, large(id)).await.unwrap_err();
    assert_eq!(error.code(), "STORE_UNAVAILABLE", "{error}");
    assert!(error.is_retryable() && !error.outcome_unknown(), "{error}");
    assert!(error.to_string().contains(word), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_takes_nothing_and_loses_nothing() {
    let server = own(RedisOptions::new().setting("maxmemory", "6mb")).await;
    let (store, at) = (fresh(&server).connect().await.unwrap(), session("s"));
    let head = claimed(&store, &at, "first").await;
    let mut answered = vec!["first".to_owned()];
    let error = loop {
        let id = format!("e{}", answered.len());
        match store.append(&at, large(&id)).await {
            Ok(_) => answered.push(id),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "STORE_UNAVAILABLE", "{error}");
    assert!(!error.outcome_unknown(), "{error}");
    refused(&store, &at, "more", "OOM").await;
    let full = store.complete_attempt(&at, complete(&head).events([event("k")]).unwrap()).await;
    assert!(!full.unwrap_err().outcome_unknown());
    assert_eq!(ids(&store, &at).await, answered);
    assert_eq!(store.all_cursors(&at).await.unwrap().len(), 1);
    set(&server, "maxmemory", "0").await;
    store.append(&at, large("more")).await.unwrap();
    let done = store.complete_attempt(&at, complete(&head).events([event("k")]).unwrap()).await;
    assert!(done.unwrap().outcome.completed().is_some_and(|done| !done.replayed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_save_takes_nothing() {
    let server = own(RedisOptions::new().setting("stop-writes-on-bgsave-error", "yes")).await;
    let (store, at) = (fresh(&server).connect().await.unwrap(), session("s"));
    store.append(&at, append("a")).await.unwrap();
    set(&server, "save", "3600 1").await;
    // A folder stands where the file is to go.
    let folder = server.process().unwrap().folder().join("dump.rdb");
    std::fs::create_dir(&folder).unwrap();
    command(&server, &["BGSAVE"]).await;
    until("the server has tried to save", || async {
        let info = command(&server, &["INFO", "persistence"]).await.to_string();
        info.contains("rdb_last_bgsave_status:err")
    })
    .await;
    refused(&store, &at, "b", "MISCONF").await;
    assert_eq!(ids(&store, &at).await, ["a"]);
    std::fs::remove_dir(&folder).unwrap();
    command(&server, &["BGSAVE"]).await;
    insist(&store, &at, append("b")).await;
    assert_eq!(ids(&store, &at).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_takes_nothing() {
    let server = own(RedisOptions::new()).await;
    let (store, at) = (fresh(&server).connect().await.unwrap(), session("s"));
    store.append(&at, append("a")).await.unwrap();
    // Of a master that is not there.
    command(&server, &["REPLICAOF", "127.0.0.1", "1"]).await;
    for _ in 0..3 {
        refused(&store, &at, "b", "READONLY").await;
    }
    assert_eq!(ids(&store, &at).await, ["a"]);
    command(&server, &["REPLICAOF", "NO", "ONE"]).await;
    insist(&store, &at, append("b")).await;
    assert_eq!(ids(&store, &at).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_enough_replicas_takes_nothing() {
    let server = own(RedisOptions::new()).await;
    let (store, at) = (fresh(&server).connect().await.unwrap(), session("s"));
    set(&server, "min-replicas-to-write", "1").await;
    refused(&store, &at, "a", "NOREPLICAS").await;
    assert_eq!(store.head(&at).await.unwrap(), 0);
    set(&server, "min-replicas-to-write", "0").await;
    store.append(&at, append("a")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_loads_is_waited_for() {
    let options = RedisOptions::new()
        .append_only(a2_conformance::servers::AppendOnly::Always)
        .setting("key-load-delay", "2000");
    let server = own(options).await;
    let (store, at) = (fresh(&server).connect().await.unwrap(), session("s"));
    store.append(&at, append("a")).await.unwrap();
    let restarted = async { server.process().unwrap().restart().await.unwrap() };
    let ((), done) = tokio::join!(restarted, insist(&store, &at, append("b")));
    assert_eq!(done.events[0].index, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_is_told_of_and_used_again() {
    // What 7.0 and newer call busy-reply-threshold.
    let server =
        std::sync::Arc::new(own(RedisOptions::new().setting("lua-time-limit", "10")).await);
    let (store, at) = (fresh(&server).connect().await.unwrap(), session("s"));
    store.append(&at, append("a")).await.unwrap();
    let running = std::sync::Arc::clone(&server);
    let running = tokio::spawn(async move {
        let _ = running.command(&["EVAL", "while true do end", "0"]).await;
    });
    let is_busy = async || {
        let said = server.command(&["PING"]).await;
        matches!(said, Ok(Reply::Error(text)) if text.starts_with("BUSY"))
    };
    until("a script holds it", is_busy).await;
    refused(&store, &at, "b", "BUSY").await;
    command(&server, &["SCRIPT", "KILL"]).await;
    running.await.unwrap();
    assert_eq!(store.append(&at, append("b")).await.unwrap().events[0].index, 2);
}
