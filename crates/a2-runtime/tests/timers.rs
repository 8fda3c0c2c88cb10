//! Timers: durable, once, by whoever is there.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, RetryPolicy, Runtime, concurrent};
use a2_store_memory::MemoryStore;
use support::watched::*;
use support::*;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_timers_event_is_appended_when_it_is_due_and_handled() {
    let (clock, store, builder) = by_hand();
    let bill = |_: Order, _| async { Ok(sent("tea")) };
    let runtime = builder.consumer(concurrent("c", bill)).build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    let due = orders.schedule("later", HOUR, placed("tea")).await.unwrap();
    assert_eq!(due, Timestamp::from_millis(1_000_000 + 3_600_000));
    let timers = orders.timers().await.unwrap();
    assert_eq!((timers.len(), timers[0].key.as_str()), (1, "later"));
    clock.advance(HOUR - Duration::from_millis(1));
    runtime.idle().await.unwrap();
    assert_eq!(orders.head().await.unwrap(), 0);
    clock.advance(Duration::from_millis(1));
    event_at(&store, "s", 2).await;
    settled(&store).await;
    assert_eq!(types(&store, "s").await, ["order.placed", "bill.sent"]);
    assert_eq!(orders.timers().await.unwrap(), []);
}

#[tokio::test]
async fn a_key_has_one_timer_which_can_be_removed() {
    let (clock, store, builder) = by_hand();
    let runtime = builder.build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.schedule("a", HOUR, placed("first")).await.unwrap();
    orders.schedule("a", HOUR, placed("second")).await.unwrap();
    orders.schedule("b", HOUR, placed("never")).await.unwrap();
    assert!(orders.unschedule("b").await.unwrap());
    assert!(!orders.unschedule("b").await.unwrap());
    clock.advance(HOUR);
    let event = event_at(&store, "s", 1).await;
    assert_eq!(event.payload.as_str(), r#"{"item":"second"}"#);
    runtime.idle().await.unwrap();
    assert_eq!(orders.head().await.unwrap(), 1);
    let error = orders.schedule("c", HOUR, [placed("a"), placed("b")]).await.unwrap_err();
    assert_eq!(error.to_string(), "event: must be exactly one");
}

#[tokio::test]
async fn a_clear_drops_the_sessions_timers() {
    let (clock, store, builder) = by_hand();
    let set = |_: Order, cx: Context| async move {
        cx.session().schedule("from-a-handler", HOUR, sent("old")).await?;
        Ok(())
    };
    let runtime = builder.consumer(concurrent("c", set)).build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    // Of an empty session, too.
    orders.schedule("from-outside", HOUR, placed("old")).await.unwrap();
    orders.append(placed("tea")).await.unwrap();
    until("both timers", || async { (orders.timers().await.unwrap().len() == 2).then_some(()) })
        .await;
    settled_but_timers(&store, &orders).await;
    let marker = orders.clear().await.unwrap();
    assert_eq!(marker, 2);
    orders.schedule("new", HOUR, sent("new")).await.unwrap();
    clock.advance(HOUR);
    let event = event_at(&store, "s", 3).await;
    assert_eq!(event.payload.as_str(), r#"{"item":"new"}"#);
    runtime.idle().await.unwrap();
    assert_eq!(orders.head().await.unwrap(), 3);
}

/// Waits until no cursor has a head.
async fn settled_but_timers(store: &dyn Store, orders: &a2_runtime::Session) {
    until("the handler to end", || async {
        let cursors = store.all_cursors(orders.id()).await.unwrap();
        cursors.iter().all(|cursor| cursor.head.is_none()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_timer_that_fired_is_not_fired_again_by_a_second_run() {
    let (clock, store, builder) = by_hand();
    let set = move |_: Order, cx: Context| async move {
        cx.session().schedule("remind", Duration::ZERO, sent("reminder")).await?;
        if cx.attempt() == 1 { Err("no".into()) } else { Ok(()) }
    };
    let policy = RetryPolicy::new().first(HOUR);
    let runtime = builder.retry(policy).consumer(concurrent("c", set)).build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append(placed("tea")).await.unwrap();
    event_at(&store, "s", 2).await;
    until("the first run to fail", || async {
        let cursors = store.all_cursors(orders.id()).await.unwrap();
        (cursors[0].state.failure_count == 1).then_some(())
    })
    .await;
    clock.advance(HOUR);
    settled(&store).await;
    assert_eq!(types(&store, "s").await, ["order.placed", "bill.sent"]);
}

#[tokio::test]
async fn of_many_processes_one_fires() {
    let (clock, memory, _) = by_hand();
    let store = Watched::new(memory.clone());
    let build = || {
        let runtime = Runtime::builder(Arc::clone(&store)).clock(Arc::new(clock.clone()));
        let bill = |_: Order, _| async { Ok(sent("tea")) };
        let runtime = runtime.consumer(concurrent("c", bill)).build().unwrap();
        runtime.start();
        runtime
    };
    let runtimes: Vec<_> = (0..4).map(|_| build()).collect();
    let orders = runtimes[0].session("s").unwrap();
    orders.schedule("once", HOUR, placed("tea")).await.unwrap();
    clock.advance(HOUR);
    event_at(&store, "s", 2).await;
    for runtime in &runtimes {
        runtime.idle().await.unwrap();
    }
    assert_eq!(types(&memory, "s").await, ["order.placed", "bill.sent"]);
    assert!(store.calls(&["fire_timers"]).len() > 1, "several have tried");
}

#[tokio::test]
async fn timers_of_a_process_that_is_gone_are_fired_by_the_next() {
    let (clock, store, builder) = by_hand();
    // Whom a timer's event is for is known when it is set.
    let unused = concurrent("c", |_: Order, _| async { Ok(()) });
    let first = builder.consumer(unused).build().unwrap();
    for n in 0..150 {
        let orders = first.session("s").unwrap();
        orders.schedule(format!("t{n}"), HOUR, placed(&n.to_string())).await.unwrap();
    }
    drop(first);
    clock.advance(HOUR * 2);
    let bill = |_: Order, _| async { Ok(sent("tea")) };
    let next = Runtime::builder(store.clone()).clock(Arc::new(clock.clone()));
    let next = next.consumer(concurrent("c", bill)).build().unwrap();
    next.start();
    event_at(&store, "s", 300).await;
}

#[tokio::test]
async fn a_store_without_timers_says_so() {
    let runtime = Runtime::builder_without_timers(MemoryStore::new()).build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    let error = orders.schedule("a", HOUR, placed("tea")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
    runtime.idle().await.unwrap();
}
