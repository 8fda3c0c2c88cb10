//! Writes that are answered once replicas have them.

use std::time::Duration;

use a2_conformance::servers::{RedisOptions, RedisServer};
use a2_store_redis::*;

use crate::scripts::everything;
use crate::util::*;

/// A master and its replica.
async fn pair() -> (RedisServer, RedisServer) {
    let options = RedisOptions::new().setting("repl-diskless-sync-delay", "0");
    let (master, replica) = (own(options.clone()).await, own(options).await);
    let port = master.process().unwrap().port().to_string();
    command(&replica, &["REPLICAOF", "127.0.0.1", &port]).await;
    until("the replica follows", || async {
        let info = command(&master, &["INFO", "replication"]).await.to_string();
        info.contains("state=online")
    })
    .await;
    (master, replica)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_answered_once_the_replica_has_it() {
    let (master, replica) = pair().await;
    let options = fresh(&master).wait(1, Duration::from_secs(20));
    let store = options.clone().connect().await.unwrap();
    everything(&store, async || {}).await;
    assert_eq!(store.servers()[0].replicas, Some(1));

    // The replica stands still: the write is done, and not known to be safe.
    let hurried = options.wait(1, Duration::from_millis(100)).connect().await.unwrap();
    let at = session("other");
    replica.process().unwrap().pause();
    for _ in 0..2 {
        let error = hurried.append(&at, append("e")).await.unwrap_err();
        assert_eq!(error.code(), "STORE_UNAVAILABLE", "{error}");
        assert!(error.outcome_unknown(), "{error}");
        // Reads wait for nobody.
        assert_eq!(hurried.head(&at).await.unwrap(), 1);
    }
    replica.process().unwrap().resume();
    let done = store.append(&at, append("e")).await.unwrap();
    assert!(done.replayed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_on_a_new_connection_waits_for_what_was_written_then() {
    let (master, replica) = pair().await;
    let options = fresh(&master).wait(1, Duration::from_millis(100));
    let (one, other) = (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    let at = session("s");
    insist(&one, &session("warm"), append("e")).await;
    replica.process().unwrap().pause();
    for store in [&one, &other] {
        let error = store.append(&at, append("e")).await.unwrap_err();
        assert!(error.outcome_unknown(), "{error}");
    }
    replica.process().unwrap().resume();
    until("the replica has it", || async { other.append(&at, append("e")).await.is_ok() }).await;
    assert_eq!(ids(&other, &at).await, ["e"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_forgotten_scripts_are_the_same_with_copies() {
    let (master, _replica) = pair().await;
    let store = fresh(&master).wait(1, Duration::from_secs(20)).connect().await.unwrap();
    everything(&store, async || {
        command(&master, &["SCRIPT", "FLUSH"]).await;
    })
    .await;
    let at = session("names");
    let mut batch = Append::new([event("QUEUED"), event("OK")]).unwrap();
    store.append(&at, batch.clone()).await.unwrap();
    assert!(store.append(&at, batch.clone()).await.unwrap().replayed);
    assert_eq!(ids(&store, &at).await, ["QUEUED", "OK"]);
    batch = Append::one(event("new")).unwrap().expected_head(Index::ZERO);
    assert_eq!(store.append(&at, batch).await.unwrap_err().code(), "HEAD_CONFLICT");
}
