//! Turns: the state, what is sent, what a failure and a refusal leave.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_actor::{Actor, Actors, ActorsExt, CallError, Turn, actor};
use a2_core::*;
use a2_runtime::{Events, Handled, HandlerError, NonRetriable, RetryPolicy, Runtime};
use a2_store_memory::MemoryStore;
use serde::{Deserialize, Serialize};
use support::*;

const OTHER: Actor<Items, Change> = actor("other");

#[tokio::test]
async fn each_message_goes_on_from_what_the_one_before_made() {
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    let list = LIST.of(&runtime.session("s").unwrap());
    for (id, item) in [("m1", "a"), ("m2", "b")] {
        list.tell(add(item)).id(id).await.unwrap();
    }
    runtime.start();
    // A state is written also when it is the one before.
    assert_eq!(list.call(Change::Look, PATIENCE).id("m3").await.unwrap(), ["a", "b"]);
    let log = log(&store, "s").await;
    let message = r#"{"actor":"list","message":"m1","type":"add","payload":"a"}"#;
    assert_eq!(
        (log[0].event_type.as_str(), log[0].payload.as_str()),
        ("a2.actor.message", message)
    );
    let states: Vec<_> = log.iter().filter(|e| e.event_type == "a2.actor.state").collect();
    let said = |i: usize, items: &str, message: &str, index: usize| {
        let event = &log[index - 1].id;
        let expected = format!(
            r#"{{"actor":"list","state":{items},"event":"{event}","message":"{message}","clear_index":0}}"#
        );
        assert_eq!(states[i].payload.as_str(), expected);
    };
    said(0, r#"["a"]"#, "m1", 1);
    said(1, r#"["a","b"]"#, "m2", 2);
    let looked = log.iter().position(|event| event.payload.as_str().contains("look")).unwrap();
    said(2, r#"["a","b"]"#, "m3", looked + 1);
    assert_eq!(states.len(), 3);
    assert_eq!(list.state().await.unwrap(), ["a", "b"]);
    let cause = states[0].cause.as_ref().unwrap();
    assert_eq!(cause.head.consumer, "a2.actor");
    assert_eq!(cause.head.cursor, CursorKey::Lane(Lane::new("list").unwrap()));
}

/// Sends, appends, and fails as often as it is told to.
async fn forward(mut items: Items, message: Change, turn: Turn) -> Handled<Items> {
    let Change::Add(item) = message else { return Ok(items) };
    items.push(item.clone());
    turn.send(OTHER, add(&item))?;
    turn.append(NewEvent::new("noted", &item)?)?;
    turn.schedule(OTHER, "later", Duration::from_secs(60), add("late"))?;
    match item.as_str() {
        "refused" => Err(HandlerError::non_retriable("not this one")),
        "fails" if turn.context().attempt() == 1 => Err("not yet".into()),
        _ => Ok(items),
    }
}

#[tokio::test]
async fn what_a_turn_sends_is_committed_with_its_state() {
    let store = MemoryStore::new();
    let hosted = [LIST.host(forward), OTHER.host(change)];
    let runtime = Runtime::builder(store.clone()).actors(hosted).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    LIST.of(&s).tell(add("a")).await.unwrap();
    nth(&store, "s", "a2.actor.state", 2).await;
    let log = log(&store, "s").await;
    let types: Vec<_> = log.iter().map(|event| event.event_type.as_str()).collect();
    let turn = ["a2.actor.message", "noted", "a2.actor.timer", "a2.actor.state"];
    assert_eq!(types[1..5], turn);
    assert!(log[1..5].iter().all(|event| event.cause == log[4].cause && event.cause.is_some()));
    assert_eq!(OTHER.of(&s).state().await.unwrap(), ["a"]);
    assert_eq!(LIST.of(&s).state().await.unwrap(), ["a"]);
}

/// The state that a handler began with, and the ids of what it sent.
type Run = (Items, Vec<EventId>);

#[tokio::test]
async fn a_turn_that_fails_leaves_nothing_and_runs_again_from_the_same_state() {
    let (clock, store, builder) = by_hand();
    let seen: Arc<Mutex<Vec<Run>>> = Arc::default();
    let written = Arc::clone(&seen);
    let handler = move |items: Items, message: Change, turn: Turn| {
        let seen = Arc::clone(&written);
        async move {
            let Change::Add(item) = message else { return Ok(items) };
            let ids = vec![turn.send(OTHER, add(&item))?, turn.send(OTHER, add("more"))?];
            seen.lock().unwrap().push((items.clone(), ids));
            forward(items, Change::Add(item), turn).await
        }
    };
    let retry = RetryPolicy::new().first(Duration::from_secs(1));
    let hosted = Actors::new([LIST.host(handler), OTHER.host(change)]).retry(retry);
    let runtime = builder.actors(hosted).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    assert_eq!(LIST.of(&s).call(add("a"), PATIENCE).await.unwrap(), ["a"]);
    settled_but_for_timers(&s).await;
    let before = types(&store, "s").await.len();
    LIST.of(&s).tell(add("fails")).await.unwrap();
    until("a failure", || async {
        let cursors = store.all_cursors(s.id()).await.unwrap();
        let lane = cursors.iter().find(|c| c.consumer == "a2.actor" && c.head.is_some())?;
        (lane.state.failure_count == 1 && lane.state.claim_holder.is_none()).then_some(())
    })
    .await;
    assert_eq!(types(&store, "s").await.len(), before + 1);
    clock.advance(Duration::from_secs(1));
    until("the second attempt", || async {
        (LIST.of(&s).state().await.unwrap() == ["a", "fails"]).then_some(())
    })
    .await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[1], seen[2]);
    assert_eq!(seen[1].0, ["a"]);
    assert_ne!(seen[0].1, seen[1].1);
    assert_ne!(seen[1].1[0], seen[1].1[1]);
}

/// Waits until every message is handled.
async fn settled_but_for_timers(s: &a2_runtime::Session) {
    let store = s.clone();
    until("messages to be handled", || async {
        let log = store.read(ReadRange::default()).await.unwrap().events;
        let of = |t: &str| log.iter().filter(|event| event.event_type == t).count();
        (of("a2.actor.message") == of("a2.actor.state") + of("a2.actor.failed")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_refusal_settles_the_message_alone_and_is_told_to_the_caller() {
    let (_, store, builder) = by_hand();
    let hosted = [LIST.host(forward), OTHER.host(change)];
    let runtime = builder.actors(hosted).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    let list = LIST.of(&s);
    let refused = list.call(add("refused"), PATIENCE).id("m1").await.unwrap_err();
    let CallError::Refused { message, error } = &refused else { panic!("{refused}") };
    assert_eq!((message.as_str(), error.as_str()), ("m1", "not this one"));
    assert_eq!(refused.to_string(), "message m1 was refused: not this one");
    let log = log(&store, "s").await;
    assert_eq!(types(&store, "s").await, ["a2.actor.message", "a2.actor.failed"]);
    let failed = format!(
        r#"{{"actor":"list","message":"m1","event":"{}","error":"not this one"}}"#,
        log[0].id
    );
    assert_eq!(log[1].payload.as_str(), failed);
    assert_eq!(s.timers().await.unwrap(), []);
    settled(&store).await;
    assert_eq!(store.all_dead_letters(s.id()).await.unwrap(), []);
    // The next one goes on, from the state before.
    assert_eq!(list.call(add("b"), PATIENCE).await.unwrap(), ["b"]);
}

#[tokio::test]
async fn a_refusal_is_found_below_other_errors_and_for_concurrent_parts_too() {
    let store = MemoryStore::new();
    let refuse = |_: Ask, turn: Turn| async move {
        turn.send(LIST, add("never"))?;
        let error = anyhow::Error::new(NonRetriable::new("the bank is closed"));
        Err::<String, _>(error.context("charging").into())
    };
    let hosted = [ASK.host(refuse), LIST.host(change)];
    let runtime = Runtime::builder(store.clone()).actors(hosted).build().unwrap();
    runtime.start();
    let ask = ASK.of(&runtime.session("s").unwrap());
    let refused = ask.call(shout("x"), PATIENCE).await.unwrap_err();
    assert!(refused.to_string().ends_with("was refused: charging: the bank is closed"));
    assert_eq!(types(&store, "s").await, ["a2.actor.request", "a2.actor.failed"]);
}

#[derive(Debug, Serialize, Deserialize)]
enum Stranger {
    #[serde(rename = "dance")]
    Dance,
}
impl Events for Stranger {}

#[tokio::test]
async fn a_message_that_does_not_fit_is_refused() {
    const SAME: Actor<Items, Stranger> = actor("list");
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    let refused = SAME.of(&s).call(Stranger::Dance, PATIENCE).await.unwrap_err();
    let CallError::Refused { error, .. } = &refused else { panic!("{refused}") };
    assert!(error.starts_with("payload: does not fit Change: unknown variant `dance`"), "{error}");
    assert_eq!(LIST.of(&s).call(add("a"), PATIENCE).await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_state_that_does_not_fit_is_not_thrown_away() {
    const NUMBER: Actor<u64, Change> = actor("list");
    let store = MemoryStore::new();
    let old = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    old.start();
    let s = old.session("s").unwrap();
    LIST.of(&s).call(add("a"), PATIENCE).await.unwrap();
    old.shutdown(PATIENCE).await;
    let count = |n: u64, _: Change, _: Turn| async move { Ok(n + 1) };
    let once = Actors::new([NUMBER.host(count)]).retry(RetryPolicy::new().budget(1));
    let new = Runtime::builder(store.clone()).actors(once).build().unwrap();
    new.start();
    let s = new.session("s").unwrap();
    NUMBER.of(&s).tell(Change::Look).await.unwrap();
    let dead = dead_letters(&store, "s", 1).await;
    let error = dead[0].state.last_error.clone().unwrap();
    assert!(error.starts_with("the state of actor list"), "{error}");
    assert_eq!(NUMBER.of(&s).state().await.unwrap_err().code(), "INVALID_INPUT");
    assert_eq!(LIST.of(&s).state().await.unwrap(), ["a"]);
}

#[tokio::test]
async fn other_errors_and_panics_spend_the_budget_and_then_block_the_instance_alone() {
    let store = MemoryStore::new();
    let tries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&tries);
    let handler = move |items: Items, message: Change, turn: Turn| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            assert!(n != 1, "panicked once");
            if n < 3 { Err("broken".into()) } else { change(items, message, turn).await }
        }
    };
    let retry = RetryPolicy::new().first(Duration::ZERO).budget(3);
    let hosted = Actors::new([LIST.host(handler), OTHER.host(change)]).retry(retry);
    let runtime = Runtime::builder(store.clone()).actors(hosted).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    LIST.of(&s).tell(add("a")).await.unwrap();
    let dead = dead_letters(&store, "s", 1).await;
    assert_eq!(dead[0].state.failure_count, 3);
    LIST.of(&s).tell(add("b")).id("b").await.unwrap();
    assert_eq!(OTHER.of(&s).call(add("x"), PATIENCE).await.unwrap(), ["x"]);
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    assert!(s.retry(&dead[0].head).await.unwrap());
    assert_eq!(LIST.of(&s).call(add("b"), PATIENCE).id("b").await.unwrap(), ["a", "b"]);
}

#[tokio::test]
async fn what_is_wrong_with_actors_is_said_when_the_runtime_is_built() {
    const EMPTY: Actor<Items, Change> = actor("");
    #[derive(Serialize, Deserialize)]
    struct NoEnum {}
    impl Events for NoEnum {}
    const NO_ENUM: Actor<u64, NoEnum> = actor("numbers");
    let said = |actors: Actors| {
        Runtime::builder(MemoryStore::new()).actors(actors).build().unwrap_err().to_string()
    };
    let twice = Actors::new([LIST.host(change), LIST.host(change)]);
    assert_eq!(said(twice), "actor list: must be hosted once only");
    assert_eq!(said(Actors::new([EMPTY.host(change)])), "actor: must not be empty");
    assert_eq!(said(Actors::new([])), "actors: must be at least one");
    let no_enum = NO_ENUM.host(|n, NoEnum {}, _| async move { Ok(n) });
    assert!(said(Actors::new([no_enum])).starts_with("actor numbers.events: NoEnum must be"));
    let hosted = [LIST.host(change), ASK.host(|_, _| async { Ok(String::new()) })];
    assert!(Runtime::builder(MemoryStore::new()).actors(hosted).build().is_ok());
}
