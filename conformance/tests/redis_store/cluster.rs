//! A cluster whose slots move and whose nodes end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use a2_conformance::servers::{AppendOnly, RedisCluster, RedisOptions, Reply, Servers, fresh_name};
use a2_store_redis::*;
use futures_util::future::join_all;

use crate::scripts::everything;
use crate::util::*;

async fn own_cluster(options: RedisOptions) -> RedisCluster {
    options.start_cluster(Servers::Local).await.unwrap()
}

fn fresh(cluster: &RedisCluster) -> RedisBuilder {
    RedisStore::builder(cluster.url()).prefix(fresh_name()).connections(2)
}

async fn ask(cluster: &RedisCluster, node: usize, words: &[&str]) -> Reply {
    match cluster.command(node, words).await.unwrap() {
        Reply::Error(refusal) => panic!("{words:?}: {refusal}"),
        reply => reply,
    }
}

/// Moves a slot with its keys, a few at a time, as `redis-cli --cluster reshard` does.
async fn move_slot(cluster: &RedisCluster, slot: u16, from: usize, to: usize) {
    let ids = join_all((0..3).map(|node| ask(cluster, node, &["CLUSTER", "MYID"]))).await;
    let (source, target) = (ids[from].to_string(), ids[to].to_string());
    let (slot, port) = (slot.to_string(), cluster.processes()[to].port().to_string());
    ask(cluster, to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]).await;
    ask(cluster, from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]).await;
    loop {
        let keys = ask(cluster, from, &["CLUSTER", "GETKEYSINSLOT", &slot, "3"]).await;
        let Reply::Array(keys) = keys else { panic!("{keys}") };
        if keys.is_empty() {
            break;
        }
        let keys: Vec<_> = keys.iter().map(Reply::to_string).collect();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        words.extend(keys.iter().map(String::as_str));
        ask(cluster, from, &words).await;
    }
    for node in [to, from, 3 - from - to] {
        ask(cluster, node, &["CLUSTER", "SETSLOT", &slot, "NODE", &target]).await;
    }
}

/// The node that has the keys of a session, and its slot.
async fn place(cluster: &RedisCluster, store_prefix: &str, at: &SessionId) -> (usize, u16) {
    let pattern = format!("{store_prefix}:{{*}}:m\0{}", at.as_str());
    for node in 0..3 {
        let Reply::Array(keys) = ask(cluster, node, &["KEYS", &pattern]).await else { continue };
        if let Some(key) = keys.first() {
            let slot = ask(cluster, node, &["CLUSTER", "KEYSLOT", &key.to_string()]).await;
            return (node, integer(&slot));
        }
    }
    panic!("the session is nowhere");
}

fn integer(reply: &Reply) -> u16 {
    match reply {
        Reply::Integer(number) => u16::try_from(*number).unwrap(),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_works_wherever_its_keys_are() {
    let cluster = own_cluster(RedisOptions::new()).await;
    for scheme in ["redis-cluster", "valkey-cluster"] {
        let url = cluster.url().replace("redis-cluster", scheme);
        let store = RedisStore::builder(url).prefix(fresh_name()).connect().await.unwrap();
        everything(&store, async || {}).await;
        let mut addresses: Vec<_> =
            store.servers().iter().map(|server| server.address.clone()).collect();
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), 3);
        assert!(store.servers().iter().all(|server| server.is_clustered));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_doubled_or_torn_while_slots_move() {
    let cluster = own_cluster(RedisOptions::new()).await;
    let prefix = fresh_name();
    let store = fresh(&cluster).prefix(&prefix).connect().await.unwrap();
    let at = session("moved");
    store.append(&at, append("first")).await.unwrap();
    let (mut home, slot) = place(&cluster, &prefix, &at).await;
    let moving = Arc::new(AtomicBool::new(true));
    let workers = (0..8).map(|worker| {
        let (store, at, moving) = (store.clone(), at.clone(), Arc::clone(&moving));
        tokio::spawn(async move {
            let mut ids = Vec::new();
            while moving.load(Ordering::Relaxed) {
                let id = format!("{worker}-{}", ids.len());
                // No retry: whatever the cluster does, it is waited for.
                let done = store.append(&at, append(&id)).await.unwrap();
                assert!(!done.replayed);
                ids.push(id);
                let heads = store.claim_available(&at, claim().limit(1).unwrap()).await.unwrap();
                for head in heads.into_heads() {
                    let child = format!("child-{}", head.head.index);
                    let done = complete(&head).events([event(&child)]).unwrap();
                    let done = store.complete_attempt(&at, done).await.unwrap();
                    assert!(!done.outcome.completed().unwrap().replayed);
                    ids.push(child);
                }
            }
            ids
        })
    });
    let workers: Vec<_> = workers.collect();
    for _ in 0..6 {
        let next = (home + 1) % 3;
        move_slot(&cluster, slot, home, next).await;
        home = next;
        let head = store.head(&at).await.unwrap().get();
        until("work goes on", || async {
            store.head(&at).await.is_ok_and(|now| now.get() > head + 20)
        })
        .await;
    }
    moving.store(false, Ordering::Relaxed);
    let mut answered = vec!["first".to_owned()];
    for worker in workers {
        answered.extend(worker.await.unwrap());
    }
    let mut found = ids(&store, &at).await;
    found.sort();
    answered.sort();
    assert_eq!(found, answered);
    // The rest is as whole as the log: each event that was appended for the consumer is live or done.
    let live = store.all_cursors(&at).await.unwrap().len();
    let appended = found.iter().filter(|id| !id.starts_with("child")).count();
    let done = found.iter().filter(|id| id.starts_with("child")).count();
    assert_eq!(live, appended - done);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_killed_is_used_again() {
    let cluster = own_cluster(RedisOptions::new().append_only(AppendOnly::Always)).await;
    let store = fresh(&cluster).connect().await.unwrap();
    let sessions: Vec<_> = (0..24).map(|n| session(&format!("s{n}"))).collect();
    let append_all = |id: String| {
        let (store, sessions) = (store.clone(), sessions.clone());
        async move {
            join_all(sessions.iter().map(|at| insist(&store, at, append(&id)))).await;
        }
    };
    append_all("before".into()).await;
    for node in 0..2 {
        let process = &cluster.processes()[node];
        let restart = async {
            process.kill();
            tokio::task::yield_now().await;
            process.restart().await.unwrap();
        };
        tokio::join!(restart, append_all(format!("during{node}")));
    }
    append_all("after".into()).await;
    for at in &sessions {
        assert_eq!(ids(&store, at).await, ["before", "during0", "during1", "after"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_follow_a_slot_that_moves() {
    let cluster = own_cluster(RedisOptions::new()).await;
    let prefix = fresh_name();
    let options = fresh(&cluster).prefix(&prefix);
    let options = options.polling(Duration::from_millis(20), Duration::from_millis(300));
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    let at = session("s");
    other.append(&at, append("e0")).await.unwrap();
    let mut stream = store.stream(&at, Index::ZERO);
    assert_eq!(next(&mut stream).await.index, 1);
    let (mut home, slot) = place(&cluster, &prefix, &at).await;
    for round in 1..=3_u64 {
        move_slot(&cluster, slot, home, (home + 1) % 3).await;
        home = (home + 1) % 3;
        other.append(&at, append(&format!("e{round}"))).await.unwrap();
        assert_eq!(next(&mut stream).await.index, round + 1);
    }
}

/// The channel of a session's partition.
async fn channel(cluster: &RedisCluster, store_prefix: &str, at: &SessionId) -> String {
    let pattern = format!("{store_prefix}:{{*}}:m\0{}", at.as_str());
    for node in 0..3 {
        let Reply::Array(keys) = ask(cluster, node, &["KEYS", &pattern]).await else { continue };
        if let Some(key) = keys.first() {
            let key = key.to_string();
            return format!("{}}}:w", key.split_once('}').unwrap().0);
        }
    }
    panic!("the session is nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moved_is_listened_to_where_it_is() {
    let cluster = own_cluster(RedisOptions::new()).await;
    let prefix = fresh_name();
    let options = fresh(&cluster).prefix(&prefix);
    let options = options.polling(Duration::from_millis(20), Duration::from_millis(50));
    let store = options.connect().await.unwrap();
    let at = session("s");
    store.append(&at, append("e0")).await.unwrap();
    let mut stream = store.stream(&at, Index::ZERO);
    assert_eq!(next(&mut stream).await.index, 1);
    let (home, slot) = place(&cluster, &prefix, &at).await;
    let channel = channel(&cluster, &prefix, &at).await;
    let listeners = async |node: usize| {
        let said = ask(&cluster, node, &["PUBSUB", "SHARDNUMSUB", &channel]).await;
        let Reply::Array(said) = said else { panic!("{said}") };
        integer(&said[1])
    };
    until("it listens", async || listeners(home).await == 1).await;
    let new = (home + 1) % 3;
    move_slot(&cluster, slot, home, new).await;
    assert_eq!(listeners(home).await, 0, "the node that gave it away forgot who listened");
    until("it listens there", async || listeners(new).await == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_on_its_way_keeps_no_other_stream_waiting() {
    let cluster = own_cluster(RedisOptions::new()).await;
    let prefix = fresh_name();
    // Streams find by looking alone what others append.
    let options = fresh(&cluster).prefix(&prefix).notifications(false);
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    let (stuck, free) = (session("stuck"), session("free"));
    for at in [&stuck, &free] {
        other.append(at, append("e0")).await.unwrap();
    }
    let (home, slot) = place(&cluster, &prefix, &stuck).await;
    assert_ne!(slot, place(&cluster, &prefix, &free).await.1);
    let (mut waits, mut goes_on) =
        (store.stream(&stuck, Index::ZERO), store.stream(&free, Index::ZERO));
    assert_eq!(next(&mut waits).await.index, 1);
    assert_eq!(next(&mut goes_on).await.index, 1);
    let to = (home + 1) % 3;
    let (source, target) = (
        ask(&cluster, home, &["CLUSTER", "MYID"]).await.to_string(),
        ask(&cluster, to, &["CLUSTER", "MYID"]).await.to_string(),
    );
    let slot = slot.to_string();
    ask(&cluster, to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]).await;
    ask(&cluster, home, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]).await;
    for n in 1..=3_u64 {
        other.append(&free, append(&format!("e{n}"))).await.unwrap();
        assert_eq!(next(&mut goes_on).await.index, n + 1);
    }
}
