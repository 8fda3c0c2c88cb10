//! Connections that end, servers that stop, calls that are given up.

use std::time::Duration;

use a2_conformance::servers::{AppendOnly, RedisOptions};
use a2_store_redis::*;
use futures_util::future::join_all;

use crate::util::*;

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_ended_are_replaced() {
    let user = User::new().await;
    let store = user.builder().connections(2).connect().await.unwrap();
    let at = session("s");
    for round in 0..20 {
        // Some while work is on its way, some while there is none.
        let calls = (0..4).map(|n| insist(&store, &at, append(&format!("{round}-{n}"))));
        let kill = async {
            if round % 2 == 0 {
                user.kill().await;
            }
        };
        tokio::join!(join_all(calls), kill);
        user.kill().await;
    }
    let mut ids = ids(&store, &at).await;
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 80);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_connection_that_listens_is() {
    let server = own(RedisOptions::new()).await;
    let options = fresh(&server).polling(Duration::from_millis(20), Duration::from_millis(200));
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    let at = session("s");
    let mut stream = store.stream(&at, Index::ZERO);
    let mut index = 0;
    for round in 0..20 {
        command(&server, &["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        for n in 0..10 {
            other.append(&at, append(&format!("{round}-{n}"))).await.unwrap();
        }
        for _ in 0..10 {
            index += 1;
            assert_eq!(next(&mut stream).await.index, index);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_keeps_what_it_answered() {
    let server = own(RedisOptions::new().append_only(AppendOnly::Always)).await;
    let store = fresh(&server).connections(2).connect().await.unwrap();
    let process = server.process().unwrap();
    for round in 0..3 {
        let at = session(&format!("s{round}"));
        let calls = (0..8).map(|worker| {
            let (store, at) = (store.clone(), at.clone());
            async move {
                for n in 0..40 {
                    insist(&store, &at, append(&format!("{worker}-{n}"))).await;
                }
            }
        });
        let restart = async {
            until("some are there", || async {
                store.head(&at).await.is_ok_and(|head| head.get() > 40)
            })
            .await;
            process.restart().await.unwrap();
        };
        tokio::join!(join_all(calls), restart);
        let mut ids = ids(&store, &at).await;
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 320);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_without_its_data_is_used_again() {
    let server = own(RedisOptions::new()).await;
    let store = fresh(&server).connect().await.unwrap();
    let at = session("s");
    store.append(&at, append("e")).await.unwrap();
    let process = server.process().unwrap();
    process.kill();
    let options = fresh(&server).operation_timeout(Duration::from_millis(200));
    assert_eq!(options.connect().await.unwrap_err().code(), "STORE_UNAVAILABLE");
    process.restart().await.unwrap();
    // It knows no script any more either.
    assert!(!insist(&store, &at, append("e")).await.replayed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_ends_in_time() {
    let server = own(RedisOptions::new()).await;
    let options = fresh(&server).operation_timeout(Duration::from_millis(1_500));
    let store = options.connect().await.unwrap();
    let at = session("s");
    store.append(&at, append("a")).await.unwrap();
    let process = server.process().unwrap();
    process.pause();
    let error = store.append(&at, append("b")).await.unwrap_err();
    assert!(error.is_retryable() && error.outcome_unknown(), "{error}");
    let error = store.head(&at).await.unwrap_err();
    assert!(error.is_retryable() && !error.outcome_unknown(), "{error}");
    process.resume();
    insist(&store, &at, append("b")).await;
    assert_eq!(ids(&store, &at).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_leave_the_next_its_own_answer() {
    let store = fresh(&*shared().await).connect().await.unwrap();
    let (one, two) = (session("one"), session("two"));
    store.append(&one, append("a")).await.unwrap();
    store.append(&two, append("b")).await.unwrap();
    for round in 0..1_000_u64 {
        let wait = Duration::from_micros(round % 50 * 10);
        let _ = tokio::time::timeout(wait, store.read(&one, ReadRange::default())).await;
        let page = store.read(&two, ReadRange::default()).await.unwrap();
        assert_eq!(page.events[0].id, "b");
        let cursors = store.all_cursors(&two).await.unwrap();
        assert_eq!(cursors.len(), 1);
    }
    // Writes that were given up are there whole or not at all.
    let at = session("s");
    for round in 0..300_u64 {
        let batch = ["x", "y", "z"].map(|name| event(&format!("{name}{round}")));
        let append = store.append(&at, Append::new(batch).unwrap());
        let _ = tokio::time::timeout(Duration::from_micros(round % 30 * 20), append).await;
    }
    assert_eq!(ids(&store, &at).await.len() % 3, 0);
}
