//! Calls: ids, time, clears, what is dropped; concurrent parts; several actors in one session.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use a2_actor::{Actor, Actors, ActorsExt, CallError, Concurrent, Turn, actor};
use a2_core::*;
use a2_runtime::{RetryPolicy, Runtime};
use a2_store_memory::MemoryStore;
use futures_util::{FutureExt, StreamExt, stream};
use support::*;
use tokio::sync::{Notify, mpsc};

#[tokio::test]
async fn the_same_id_is_the_same_message_also_afterwards() {
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    runtime.start();
    let list = LIST.of(&runtime.session("s").unwrap());
    assert_eq!(list.call(add("a"), PATIENCE).id("m1").await.unwrap(), ["a"]);
    assert_eq!(list.call(add("b"), PATIENCE).id("m2").await.unwrap(), ["a", "b"]);
    // What the first made, not what there is now.
    assert_eq!(list.call(add("a"), PATIENCE).id("m1").await.unwrap(), ["a"]);
    let told = list.tell(add("a")).id("m1").await.unwrap();
    assert_eq!((told.message.as_str(), told.index.get(), told.replayed), ("m1", 1, true));
    assert_eq!(list.state().await.unwrap(), ["a", "b"]);
    let one = ASK.of(list.session()).tell(shout("x")).id("m1").await.unwrap_err();
    let said = "id: must be of one message, m1 is one of the actor's other part";
    assert_eq!(one.to_string(), said);
    assert!(list.tell(add("c")).id("").await.is_err());
}

#[tokio::test]
async fn a_caller_need_not_host_the_actor() {
    let store = MemoryStore::new();
    let host = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    host.start();
    let caller = Runtime::builder(store).build().unwrap();
    let list = LIST.of(&caller.session("s").unwrap());
    assert_eq!(list.call(add("a"), PATIENCE).await.unwrap(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_no_longer_than_it_may_and_the_message_stays() {
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    let list = LIST.of(&runtime.session("s").unwrap());
    let late = list.call(add("a"), Duration::from_secs(5)).id("m1").await.unwrap_err();
    assert!(matches!(late, CallError::TimedOut { within } if within == Duration::from_secs(5)));
    runtime.start();
    assert_eq!(list.call(add("a"), PATIENCE).id("m1").await.unwrap(), ["a"]);
    assert_eq!(types(&store, "s").await, ["a2.actor.message", "a2.actor.state"]);
}

#[tokio::test]
async fn a_dropped_call_leaves_its_message_to_be_handled() {
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    let list = LIST.of(&runtime.session("s").unwrap());
    {
        let mut call = list.call(add("a"), PATIENCE).into_future();
        until("the append", || {
            assert!((&mut call).now_or_never().is_none());
            let store = store.clone();
            async move { (types(&store, "s").await.len() == 1).then_some(()) }
        })
        .await;
    }
    runtime.start();
    nth(&store, "s", "a2.actor.state", 1).await;
    assert_eq!(list.state().await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_clear_tells_who_waits_and_the_next_lifetime_starts_from_the_default() {
    let store = MemoryStore::new();
    let (told, mut begun) = mpsc::unbounded_channel();
    let hold = move |items: Items, message: Change, turn: Turn| {
        told.send(turn.clone()).unwrap();
        async move {
            if message == add("held") {
                turn.context().cancelled().await;
            }
            change(items, message, turn).await
        }
    };
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(hold)]).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    let list = LIST.of(&s);
    assert_eq!(list.call(add("a"), PATIENCE).await.unwrap(), ["a"]);
    begun.recv().await.unwrap();
    let waiting = tokio::spawn({
        let list = list.clone();
        async move { list.call(add("held"), PATIENCE).id("m1").await }
    });
    begun.recv().await.unwrap();
    assert_eq!(s.clear().await.unwrap().get(), 4);
    let cleared = waiting.await.unwrap().unwrap_err();
    assert!(matches!(cleared, CallError::Cleared { clear_index } if clear_index.get() == 4));
    assert_eq!(list.state().await.unwrap(), Items::new());
    // Its id is free again, and so is the lane.
    assert_eq!(list.call(add("b"), PATIENCE).id("m1").await.unwrap(), ["b"]);
    let state = nth(&store, "s", "a2.actor.state", 1).await;
    assert!(state.payload.as_str().ends_with(r#""message":"m1","clear_index":4}"#));
}

#[tokio::test]
async fn a_clear_before_any_handler_is_told_too() {
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).actors([LIST.host(change)]).build().unwrap();
    let s = runtime.session("s").unwrap();
    let list = LIST.of(&s);
    let mut waiting = list.call(add("a"), PATIENCE).into_future();
    until("the append", || {
        assert!((&mut waiting).now_or_never().is_none());
        let store = store.clone();
        async move { (types(&store, "s").await.len() == 1).then_some(()) }
    })
    .await;
    s.clear().await.unwrap();
    assert!(matches!(waiting.await, Err(CallError::Cleared { .. })));
}

#[tokio::test]
async fn a_concurrent_part_waits_for_nobody() {
    let store = MemoryStore::new();
    let (told, mut begun) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let (opened, said) = (Arc::clone(&gate), told.clone());
    let hold = move |items: Items, message: Change, turn: Turn| {
        let (gate, said) = (Arc::clone(&opened), said.clone());
        async move {
            said.send("serial".to_owned())?;
            gate.notified().await;
            change(items, message, turn).await
        }
    };
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let answer = move |Ask::Shout(text): Ask, _: Turn| {
        let (both, told) = (Arc::clone(&both), told.clone());
        async move {
            told.send(text.clone())?;
            // Neither ends before the other has begun.
            both.wait().await;
            Ok(text.to_uppercase())
        }
    };
    let hosted = [LIST.host(hold), ASK.host(answer)];
    let runtime = Runtime::builder(store.clone()).actors(hosted).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    LIST.of(&s).tell(add("a")).await.unwrap();
    assert_eq!(begun.recv().await.unwrap(), "serial");
    let ask = ASK.of(&s);
    let calls =
        tokio::join!(ask.call(shout("x"), PATIENCE).id("m1"), ask.call(shout("y"), PATIENCE));
    assert_eq!((calls.0.unwrap().as_str(), calls.1.unwrap().as_str()), ("X", "Y"));
    let log = log(&store, "s").await;
    let request = log.iter().find(|event| event.payload.as_str().contains("m1")).unwrap();
    assert_eq!(
        (request.event_type.as_str(), request.payload.as_str()),
        ("a2.actor.request", r#"{"actor":"list","message":"m1","type":"shout","payload":"x"}"#)
    );
    let done = log.iter().find(|event| event.payload.as_str().contains(r#""result":"X""#)).unwrap();
    let expected =
        format!(r#"{{"actor":"list","result":"X","event":"{}","message":"m1"}}"#, request.id);
    assert_eq!((done.event_type.as_str(), done.payload.as_str()), ("a2.actor.done", &*expected));
    gate.notify_one();
    nth(&store, "s", "a2.actor.state", 1).await;
}

#[tokio::test]
async fn a_turn_calls_another_actor_and_a_second_run_does_not_do_it_twice() {
    let (clock, store, builder) = by_hand();
    let calls = |mut items: Items, message: Change, turn: Turn| async move {
        let Change::Add(item) = message else { return Ok(items) };
        items.push(turn.call(ASK, shout(&item), PATIENCE).await?);
        if turn.context().attempt() == 1 {
            return Err("after the call".into());
        }
        Ok(items)
    };
    let answer = |Ask::Shout(text): Ask, _: Turn| async move { Ok(text.to_uppercase()) };
    let retry = RetryPolicy::new().first(Duration::from_secs(1));
    let hosted = Actors::new([LIST.host(calls), ASK.host(answer)]).retry(retry);
    let runtime = builder.actors(hosted).build().unwrap();
    runtime.start();
    let list = LIST.of(&runtime.session("s").unwrap());
    list.tell(add("a")).id("m1").await.unwrap();
    until("a failure", || async {
        let cursors = store.all_cursors(&session("s")).await.unwrap();
        let lane = cursors.iter().find(|c| c.consumer == "a2.actor")?;
        (lane.state.failure_count == 1 && lane.state.claim_holder.is_none()).then_some(())
    })
    .await;
    clock.advance(Duration::from_secs(1));
    assert_eq!(list.call(add("a"), PATIENCE).id("m1").await.unwrap(), ["A"]);
    let expected = ["a2.actor.message", "a2.actor.request", "a2.actor.done", "a2.actor.state"];
    assert_eq!(types(&store, "s").await, expected);
}

const LISTER: Actor<Items, Change> = actor("lister");
const LISTER_ASK: Concurrent<Ask, String> = LISTER.concurrent();

#[tokio::test]
async fn actors_of_one_session_share_nothing() {
    let (clock, store, builder) = by_hand();
    let answer = |Ask::Shout(text): Ask, _: Turn| async move { Ok(text) };
    let hosted = [
        LIST.host(change),
        LISTER.host(change),
        ASK.host(answer),
        LISTER_ASK.host(|Ask::Shout(text), _| async move { Ok(text + "!") }),
    ];
    let runtime = builder.actors(hosted).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    let (list, lister) = (LIST.of(&s), LISTER.of(&s));
    // The same ids, the same keys.
    assert_eq!(list.call(add("a"), PATIENCE).id("m").await.unwrap(), ["a"]);
    assert_eq!(lister.call(add("b"), PATIENCE).id("m").await.unwrap(), ["b"]);
    assert_eq!(ASK.of(&s).call(shout("x"), PATIENCE).id("n").await.unwrap(), "x");
    assert_eq!(LISTER_ASK.of(&s).call(shout("x"), PATIENCE).id("n").await.unwrap(), "x!");
    let hour = Duration::from_secs(3_600);
    list.schedule("key", hour, add("late")).await.unwrap();
    lister.schedule("key", hour, add("later")).await.unwrap();
    assert!(list.unschedule("key").await.unwrap());
    assert!(!list.unschedule("key").await.unwrap());
    clock.advance(hour);
    nth(&store, "s", "a2.actor.state", 3).await;
    assert_eq!(lister.state().await.unwrap(), ["b", "later"]);
    assert_eq!(list.state().await.unwrap(), ["a"]);
    let (one, other) = (list.presence(store.clone()), lister.presence(store.clone()));
    assert_ne!(one.unwrap().namespace(), other.unwrap().namespace());
}

#[tokio::test]
async fn a_message_for_an_actor_that_is_not_hosted_is_tried_again() {
    let store = MemoryStore::new();
    let twice =
        Actors::new([LIST.host(change)]).retry(RetryPolicy::new().first(Duration::ZERO).budget(2));
    let runtime = Runtime::builder(store.clone()).actors(twice).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    LISTER.of(&s).tell(add("a")).await.unwrap();
    let dead = dead_letters(&store, "s", 1).await;
    assert_eq!(dead[0].state.failure_count, 2);
    let said = r#"this process hosts no serial actor "lister""#;
    assert_eq!(dead[0].state.last_error.as_deref(), Some(said));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_from_sixteen_callers_are_each_answered_once() {
    const SUM: Actor<u64, Number> = actor("sum");
    let hosted = SUM.host(|sum, Number::Add(n), _| async move { Ok(sum + n) });
    let runtime = Runtime::builder(MemoryStore::new()).actors([hosted]).build().unwrap();
    runtime.start();
    let s = runtime.session("s").unwrap();
    let sum = SUM.of(&s);
    let mut sums: Vec<u64> = stream::iter(0..16_u64)
        .map(|caller| {
            let sum = sum.clone();
            async move {
                let numbers = (1..=1_000).filter(|n| n % 16 == caller);
                stream::iter(numbers)
                    .then(|n| sum.call(Number::Add(n), PATIENCE).into_future())
                    .map(Result::unwrap)
                    .collect::<Vec<_>>()
                    .await
            }
        })
        .buffer_unordered(16)
        .concat()
        .await;
    assert_eq!(sum.state().await.unwrap(), 500_500);
    // Every sum was one caller's, and no two the same.
    sums.sort_unstable();
    sums.dedup();
    assert_eq!((sums.len(), sums.last()), (1_000, Some(&500_500)));
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
enum Number {
    Add(u64),
}
impl a2_runtime::Events for Number {}
