//! Failures: delays, the budget, panics, what cannot be tried again.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, HandlerError, NonRetriable, RawEvent, RetryPolicy, Runtime, concurrent};
use a2_store_memory::MemoryStore;
use support::*;

/// Waits until the head of session `s` has failed `n` times, and answers its state.
async fn failed(store: &dyn Store, n: u64) -> DispatchState {
    until(&format!("failure {n}"), || async {
        let cursors = store.all_cursors(&session("s")).await.unwrap();
        let state = cursors.into_iter().next().map(|cursor| cursor.state);
        state.filter(|state| state.failure_count == n && state.claim_holder.is_none())
    })
    .await
}

#[tokio::test]
async fn a_failed_event_waits_longer_each_time_until_its_budget_is_spent() {
    let (clock, store, builder) = by_hand();
    let policy = RetryPolicy::new().first(Duration::from_secs(8)).budget(4);
    let fail = |_: Order, cx: Context| async move {
        assert_eq!((cx.failures() + 1, cx.is_last_try()), (cx.attempt(), cx.attempt() == 4));
        Err::<(), _>(HandlerError::from(format!("attempt {} failed", cx.attempt())))
    };
    let runtime = builder.consumer(concurrent("c", fail)).retry(policy).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    for (n, ceiling) in [(1, 8_000), (2, 16_000), (3, 32_000)] {
        let state = failed(&store, n).await;
        assert_eq!(state.last_error.unwrap(), format!("attempt {n} failed"));
        assert!(state.claim_expires_at.unwrap().since(clock.now()).as_millis() <= ceiling);
        clock.advance(Duration::from_millis(ceiling.try_into().unwrap()));
    }
    let dead = dead_letters(&store, "s", 1).await;
    assert_eq!(dead[0].state.failure_count, 4);
    assert_eq!(dead[0].state.last_error.as_deref(), Some("attempt 4 failed"));
}

#[tokio::test]
async fn ten_failures_are_the_budget_when_nothing_is_said() {
    let store = MemoryStore::new();
    let at_once = RetryPolicy::new().first(Duration::ZERO);
    let fail = |_: Order, _: Context| async { Err::<(), _>("no".into()) };
    let runtime = Runtime::builder(store.clone()).consumer(concurrent("c", fail)).retry(at_once);
    let runtime = runtime.build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    let dead = dead_letters(&store, "s", 1).await;
    assert_eq!((dead[0].state.failure_count, dead[0].state.attempt_count), (10, 10));
}

#[tokio::test]
async fn a_consumers_own_policy_comes_before_the_runtimes() {
    let store = MemoryStore::new();
    let once = RetryPolicy::new().budget(1);
    let fail = |_: Order, _: Context| async { Err::<(), _>("no".into()) };
    let runtime = Runtime::builder(store.clone()).consumer(concurrent("c", fail).retry(once));
    let runtime = runtime.build().unwrap();
    assert_eq!(runtime.served().budget_of(&Consumer::new("c").unwrap()), Some(1));
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    assert_eq!(dead_letters(&store, "s", 1).await[0].state.attempt_count, 1);
}

#[tokio::test]
async fn what_another_try_would_not_change_is_a_dead_letter_at_once() {
    let store = MemoryStore::new();
    let refuse =
        |_: Order, _: Context| async { Err::<(), _>(HandlerError::non_retriable("no such item")) };
    let runtime = Runtime::builder(store.clone())
        .consumer(concurrent("decoded", refuse))
        .consumer(concurrent("typed", |_: Order, _| async { Ok(()) }));
    let runtime = runtime.build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append(placed("tea")).await.unwrap();
    let dead = dead_letters(&store, "s", 1).await;
    assert_eq!(dead[0].state.last_error.as_deref(), Some("no such item"));
    orders.append(NewEvent::new("order.placed", &7).unwrap().id("seven").unwrap()).await.unwrap();
    let dead = dead_letters(&store, "s", 3).await;
    let said: Vec<_> = dead[1..].iter().map(|d| d.state.last_error.clone().unwrap()).collect();
    assert!(said[0].starts_with("event 2 (seven, order.placed).payload: does not fit Order: "));
    assert_eq!((&said[0], dead[1].state.attempt_count), (&said[1], 1));
}

#[tokio::test]
async fn an_error_can_say_when_to_try_again() {
    let (clock, store, builder) = by_hand();
    let wait = |_: Order, cx: Context| async move {
        match cx.attempt() {
            1 => Err(HandlerError::from("wait").retry_after(Duration::from_secs(90))),
            _ => Ok(sent("tea")),
        }
    };
    let runtime = builder.consumer(concurrent("c", wait)).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    let state = failed(&store, 1).await;
    assert_eq!(state.claim_expires_at, Some(Timestamp::from_millis(1_090_000)));
    clock.advance(Duration::from_secs(90));
    event_at(&store, "s", 2).await;
}

#[tokio::test]
async fn a_panic_is_a_failure_and_harms_nobody_else() {
    let store = MemoryStore::new();
    let at_once = RetryPolicy::new().first(Duration::ZERO).budget(2);
    // In the call itself, and in what it answers.
    let early = |event: RawEvent, _: Context| {
        assert!(event.payload.as_str() != "1", "{} early", event.payload.as_str());
        async move {
            assert!(event.payload.as_str() != "2", "late");
            Ok(())
        }
    };
    let runtime = Runtime::builder(store.clone()).consumer(concurrent("c", early)).retry(at_once);
    let runtime = runtime.build().unwrap();
    runtime.start();
    let events = [1, 2, 3].map(|n| NewEvent::new("n", &n).unwrap());
    runtime.session("s").unwrap().append(events).await.unwrap();
    let dead = dead_letters(&store, "s", 2).await;
    let said: Vec<_> = dead.iter().map(|d| d.state.last_error.as_deref().unwrap()).collect();
    assert_eq!(said, ["panicked: 1 early", "panicked: late"]);
    settled(&store).await;
}

#[tokio::test]
async fn what_cannot_be_appended_is_the_handlers_failure() {
    let store = MemoryStore::new();
    let once = RetryPolicy::new().budget(1);
    let twice =
        |_: Order, _: Context| async { Ok([with_id(&sent("a"), "b"), with_id(&sent("a"), "b")]) };
    let taken =
        |_: Order, cx: Context| async move { Ok(with_id(&sent("a"), cx.event().id.as_str())) };
    let runtime = Runtime::builder(store.clone())
        .consumer(concurrent("taken", taken).retry(once))
        .consumer(concurrent("twice", twice).retry(once));
    let runtime = runtime.build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(with_id(&placed("tea"), "a")).await.unwrap();
    let dead = dead_letters(&store, "s", 2).await;
    let said: Vec<_> = dead.iter().map(|d| d.state.last_error.as_deref().unwrap()).collect();
    assert_eq!(
        said,
        [
            "1 of the batch's event ids exist already, the first is \"a\"",
            "events[1].id: must not be twice in one batch"
        ]
    );
}

#[tokio::test]
async fn a_dead_letter_is_retried_or_skipped() {
    let store = MemoryStore::new();
    let tries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&tries);
    let handler = move |_: Order, _: Context| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        async move { if n == 2 { Ok(sent("tea")) } else { Err(NonRetriable::new("no"))? } }
    };
    let runtime = Runtime::builder(store.clone()).consumer(concurrent("c", handler));
    let runtime = runtime.build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append([placed("tea"), placed("jam")]).await.unwrap();
    let dead = dead_letters(&store, "s", 2).await;
    assert!(orders.skip(&dead[0].head).await.unwrap());
    assert!(!orders.skip(&dead[0].head).await.unwrap());
    assert!(orders.retry(&dead[1].head).await.unwrap());
    event_at(&store, "s", 3).await;
    assert_eq!(orders.dead_letters().await.unwrap(), []);
    settled(&store).await;
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}
