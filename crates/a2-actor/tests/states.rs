//! Where the state comes from: the log, whatever a process remembers.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use a2_actor::{Actor, Actors, ActorsExt, Turn, actor};
use a2_core::*;
use a2_runtime::{RawEvent, Runtime, concurrent};
use a2_store_memory::MemoryStore;
use a2_store_sqlite::SqliteStore;
use support::*;
use tokio::sync::Notify;

#[tokio::test]
async fn what_another_process_made_comes_before_what_this_one_remembers() {
    const HELD: Actor<Items, Change> = actor("held");
    let store = MemoryStore::new();
    let gate = Arc::new(Notify::new());
    let (begun, opened) = (Arc::new(Notify::new()), Arc::clone(&gate));
    let started = Arc::clone(&begun);
    let hold = move |items: Items, message: Change, turn: Turn| {
        let (started, opened) = (Arc::clone(&started), Arc::clone(&opened));
        async move {
            started.notify_one();
            opened.notified().await;
            change(items, message, turn).await
        }
    };
    let one = Actors::new([LIST.host(change), HELD.host(hold)]).concurrency(1);
    let first = Runtime::builder(store.clone()).actors(one).build().unwrap();
    first.start();
    let s = first.session("s").unwrap();
    assert_eq!(LIST.of(&s).call(add("a"), PATIENCE).await.unwrap(), ["a"]);
    // The first process has no place left; the second one takes what comes.
    HELD.of(&first.session("t").unwrap()).tell(Change::Look).await.unwrap();
    begun.notified().await;
    let other = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    other.start();
    assert_eq!(LIST.of(&s).call(add("b"), PATIENCE).await.unwrap(), ["a", "b"]);
    other.shutdown(PATIENCE).await;
    gate.notify_one();
    // The first remembers the log as it was before.
    assert_eq!(LIST.of(&s).call(add("c"), PATIENCE).await.unwrap(), ["a", "b", "c"]);
}

#[tokio::test]
async fn what_is_remembered_does_not_outlive_a_clear_by_somebody_else() {
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    runtime.start();
    let list = LIST.of(&runtime.session("s").unwrap());
    assert_eq!(list.call(add("a"), PATIENCE).await.unwrap(), ["a"]);
    // What is remembered is what a turn began with.
    assert_eq!(list.call(Change::Look, PATIENCE).await.unwrap(), ["a"]);
    let _ = store.clear(&session("s"), Clear::new()).await.unwrap();
    assert_eq!(list.call(add("b"), PATIENCE).await.unwrap(), ["b"]);
}

#[tokio::test]
async fn a_state_that_no_turn_wrote_is_none() {
    let store = MemoryStore::new();
    let forge = |_: RawEvent, _| async { Ok(forged()?) };
    let runtime = Runtime::builder(store.clone())
        .actors([LIST.host(change)])
        .consumer(concurrent("forger", forge).types(["forge"]))
        .build()
        .unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    let list = LIST.of(&s);
    list.call(add("a"), PATIENCE).await.unwrap();
    s.append([NewEvent::new("forge", &()).unwrap(), forged().unwrap()]).await.unwrap();
    nth(&store, "s", "a2.actor.state", 3).await;
    assert_eq!(list.state().await.unwrap(), ["a"]);
    assert_eq!(list.call(add("b"), PATIENCE).await.unwrap(), ["a", "b"]);
}

fn forged() -> a2_core::Result<NewEvent> {
    let text = r#"{"actor":"list","state":["forged"],"event":"e","message":"m","clear_index":0}"#;
    NewEvent::from_json("a2.actor.state", Json::parse(text)?)
}

#[tokio::test]
async fn a_new_process_reads_from_a_snapshot_on_also_when_the_old_one_remembered_all() {
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    runtime.start();
    let list = LIST.of(&runtime.session("s").unwrap());
    for _ in 0..250 {
        list.call(Change::Look, PATIENCE).await.unwrap();
    }
    let name = ReducerName::new("a2.actor/list@1").unwrap();
    let read = store.read_state(&session("s"), &name, ReadState::latest()).await.unwrap();
    let kept = read.latest_snapshot.unwrap().get();
    assert!(kept > 250, "the newest snapshot is at {kept} of 500");
    assert_eq!(list.call(add("a"), PATIENCE).await.unwrap(), ["a"]);
}

#[tokio::test]
async fn the_state_survives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a2.db");
    for expected in [vec!["a", "m"], vec!["a", "m", "a"], vec!["a", "m", "a", "a"]] {
        let store = SqliteStore::open(&path).await.unwrap();
        let builder = Runtime::builder(store.clone());
        let runtime = builder.actors([LIST.host(change)]).build().unwrap();
        runtime.start();
        let list = LIST.of(&runtime.session("s").unwrap());
        list.call(add("a"), PATIENCE).await.unwrap();
        // What was called before still has its outcome.
        assert_eq!(list.call(add("m"), PATIENCE).id("m1").await.unwrap(), ["a", "m"]);
        assert_eq!(list.state().await.unwrap(), expected);
        runtime.shutdown(PATIENCE).await;
        store.close().await.unwrap();
    }
}
