//! Log consumers: whole logs, whoever appended, from the beginning if asked for, by run.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{ConsumerSpec, Context, RawEvent, RetryPolicy, Runtime, WholeLog, log, log_runs};
use a2_store_memory::MemoryStore;
use support::watched::*;
use support::*;
use tokio::sync::mpsc;

type Seen = Arc<Mutex<Vec<(String, Vec<u64>)>>>;

/// A consumer that writes down the indexes it gets, by attempt.
fn reader(name: &str, run: usize, seen: &Seen) -> ConsumerSpec<WholeLog> {
    let seen = Arc::clone(seen);
    log_runs(name, run, move |events: Vec<RawEvent>, cx: Context| {
        let indexes: Vec<_> = cx.events().iter().map(|event| event.index.get()).collect();
        assert_eq!((events.len(), cx.through().get()), (indexes.len(), *indexes.last().unwrap()));
        seen.lock().unwrap().push((cx.session().id().to_string(), indexes));
        async { Ok(()) }
    })
}

fn all_of(seen: &Seen, name: &str) -> Vec<u64> {
    let seen = seen.lock().unwrap();
    seen.iter().filter(|(s, _)| s == name).flat_map(|(_, indexes)| indexes.clone()).collect()
}

async fn seen_all(seen: &Seen, name: &str, indexes: std::ops::RangeInclusive<u64>) {
    let expected: Vec<_> = indexes.collect();
    until(&format!("{name} to be read"), || async {
        (all_of(seen, name) == expected).then_some(())
    })
    .await;
}

fn events(n: u64) -> Append {
    Append::new((0..n).map(|i| NewEvent::new("n", &i).unwrap())).unwrap()
}

#[tokio::test]
async fn a_log_is_read_in_order_also_what_others_append() {
    // Time stands still: no sweep finds anything.
    let (_, store, builder) = by_hand();
    let seen = Seen::default();
    let runtime = builder.consumer(reader("audit", 1, &seen)).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    seen_all(&seen, "s", 1..=1).await;
    // By somebody who has never heard of the consumer: a hint tells of it.
    store.append(&session("s"), events(5)).await.unwrap();
    seen_all(&seen, "s", 1..=6).await;
    assert!(seen.lock().unwrap().iter().all(|(_, indexes)| indexes.len() == 1));
}

#[tokio::test]
async fn a_new_log_starts_with_what_comes_or_with_what_is_there() {
    let store = MemoryStore::new();
    for n in 0..250 {
        store.append(&session(&format!("old-{n}")), events(2)).await.unwrap();
    }
    let (from_now, from_start) = (Seen::default(), Seen::default());
    let runtime = Runtime::builder(store.clone())
        .consumer(reader("from-now", 1, &from_now))
        .consumer(reader("from-start", 10, &from_start).backfill());
    let runtime = runtime.build().unwrap();
    runtime.start();
    // Three pages of sessions that nobody appends to any more.
    for n in 0..250 {
        seen_all(&from_start, &format!("old-{n}"), 1..=2).await;
    }
    assert_eq!(from_start.lock().unwrap().len(), 250);
    runtime.session("old-7").unwrap().append(placed("tea")).await.unwrap();
    seen_all(&from_now, "old-7", 3..=3).await;
    assert_eq!(from_now.lock().unwrap().len(), 1);
    // The runtime's own session is nobody's work.
    assert!(from_start.lock().unwrap().iter().all(|(name, _)| name.starts_with("old-")));
}

#[tokio::test]
async fn a_pass_goes_on_where_the_last_process_was() {
    let memory = MemoryStore::new();
    for n in 0..250 {
        memory.append(&session(&format!("old-{n:03}")), events(1)).await.unwrap();
    }
    let store = Watched::new(memory.clone());
    // The store fails in the second page.
    store.decide(|call| match call.op {
        "wake_log" if call.session == "old-120" => Fault::Refused,
        _ => Fault::None,
    });
    let seen = Seen::default();
    let build = || {
        let consumer = reader("audit", 1, &seen).backfill();
        Runtime::builder(Arc::clone(&store)).consumer(consumer).build().unwrap()
    };
    let first = build();
    first.start();
    seen_all(&seen, "old-121", 1..=1).await;
    let _ = first.shutdown(Duration::from_secs(60)).await;
    let before = store.calls(&["wake_log"]);
    store.decide(|_| Fault::None);
    let second = build();
    second.start();
    for name in ["old-120", "old-249"] {
        seen_all(&seen, name, 1..=1).await;
    }
    // The first page was done; then comes a whole pass.
    let after = store.calls(&["wake_log"]).split_off(before.len());
    let place = |name| after.iter().position(|call| call.session == name);
    assert!(place("old-050").is_none_or(|first_page| place("old-249").unwrap() < first_page));
}

#[tokio::test]
async fn a_session_that_cannot_be_read_keeps_no_other_from_a_pass() {
    let memory = MemoryStore::new();
    for n in 0..150 {
        memory.append(&session(&format!("old-{n:03}")), events(1)).await.unwrap();
    }
    let store = Watched::new(memory.clone());
    store.decide(|call| match call.op {
        "wake_log" if call.session == "old-020" => Fault::Corrupt,
        _ => Fault::None,
    });
    let seen = Seen::default();
    let consumer = reader("audit", 1, &seen).backfill();
    let runtime = Runtime::builder(Arc::clone(&store)).consumer(consumer).build().unwrap();
    runtime.start();
    // It is in another page.
    seen_all(&seen, "old-149", 1..=1).await;
}

#[tokio::test]
async fn what_no_hint_told_of_is_found_by_a_later_pass() {
    let (clock, memory, _) = by_hand();
    memory.append(&session("s"), events(1)).await.unwrap();
    let store = Watched::new(memory.clone());
    let seen = Seen::default();
    let runtime = Runtime::builder(Arc::clone(&store))
        .clock(Arc::new(clock.clone()))
        .pass_every(Duration::from_secs(600))
        .consumer(reader("audit", 1, &seen).backfill())
        .build()
        .unwrap();
    // The log is refused to be woken but by the pass.
    let mut passes = 0;
    store.decide(move |call| match call.op {
        "put_snapshots" => {
            passes += 1;
            Fault::None
        }
        "wake_log" if passes == 1 => Fault::Refused,
        _ => Fault::None,
    });
    runtime.start();
    seen_all(&seen, "s", 1..=1).await;
    until("the first pass", || async {
        (!store.calls(&["put_snapshots"]).is_empty()).then_some(())
    })
    .await;
    memory.append(&session("s"), events(1)).await.unwrap();
    until("the hint to be lost", || async {
        (store.calls(&["wake_log"]).len() == 2).then_some(())
    })
    .await;
    store.decide(|_| Fault::None);
    clock.advance(Duration::from_secs(900));
    seen_all(&seen, "s", 1..=2).await;
}

#[tokio::test]
async fn a_run_takes_many_events_in_one_attempt() {
    let store = Watched::new(MemoryStore::new());
    let seen = Seen::default();
    let runtime = Runtime::builder(Arc::clone(&store))
        .consumer(reader("audit", 40, &seen).backfill())
        .build()
        .unwrap();
    store.append(&session("s"), events(100)).await.unwrap();
    runtime.start();
    seen_all(&seen, "s", 1..=100).await;
    let lengths: Vec<_> = seen.lock().unwrap().iter().map(|(_, run)| run.len()).collect();
    assert_eq!(lengths, [40, 40, 20]);
    settled(&store).await;
    assert_eq!(store.calls(&["complete_attempt"]).len(), 3);
}

#[tokio::test]
async fn a_run_ends_before_what_cannot_be_read() {
    let store = MemoryStore::new();
    let (told, mut runs) = mpsc::unbounded_channel();
    let orders = log_runs("orders", 10, move |orders: Vec<Order>, cx: Context| {
        let last = cx.through().get();
        told.send((orders.len(), last)).unwrap();
        async { Ok(()) }
    });
    let runtime = Runtime::builder(store.clone()).consumer(orders).build().unwrap();
    let broken = NewEvent::new("order.placed", &7).unwrap();
    let order = placed("tea");
    let all = [with_id(&order, "a"), with_id(&order, "b"), broken, with_id(&order, "c")];
    let orders = runtime.session("s").unwrap();
    orders.append(all).await.unwrap();
    runtime.start();
    assert_eq!(runs.recv().await, Some((2, 2)));
    let dead = dead_letters(&store, "s", 1).await;
    assert_eq!(dead[0].head.index, 3);
    assert!(orders.skip(&dead[0].head).await.unwrap());
    assert_eq!(runs.recv().await, Some((1, 4)));
}

#[tokio::test]
async fn a_log_takes_its_types_and_returns_events() {
    let store = MemoryStore::new();
    let bill = |order: Order, _: Context| async move {
        let Order::Placed { item } = order;
        Ok(sent(&item))
    };
    let runtime = Runtime::builder(store.clone()).consumer(log("billing", bill).named("bills"));
    let runtime = runtime.build().unwrap();
    runtime.start();
    let other = NewEvent::new("other", &()).unwrap();
    let orders = runtime.session("s").unwrap();
    orders.append([other, with_id(&placed("tea"), "order")]).await.unwrap();
    let bill = event_at(&store, "s", 3).await;
    let cursor = bill.cause.clone().unwrap().head.cursor;
    assert_eq!(cursor, CursorKey::Log(LogName::new("bills").unwrap()));
    settled(&store).await;
}

#[tokio::test]
async fn a_failed_run_is_tried_again_from_the_same_event() {
    let store = MemoryStore::new();
    let (told, mut runs) = mpsc::unbounded_channel();
    let handler = move |_: Vec<RawEvent>, cx: Context| {
        told.send((cx.event().index.get(), cx.through().get(), cx.attempt())).unwrap();
        async move { if cx.attempt() == 1 { Err("no".into()) } else { Ok(()) } }
    };
    let runtime = Runtime::builder(store.clone())
        .retry(RetryPolicy::new().first(Duration::ZERO))
        .consumer(log_runs("audit", 3, handler).backfill())
        .build()
        .unwrap();
    store.append(&session("s"), events(3)).await.unwrap();
    runtime.start();
    assert_eq!(runs.recv().await, Some((1, 3, 1)));
    assert_eq!(runs.recv().await, Some((1, 3, 2)));
    settled(&store).await;
}

#[test]
fn a_runs_length_has_its_limits() {
    for run in [0, 1_001] {
        let runtime =
            Runtime::builder(MemoryStore::new()).consumer(reader("a", run, &Seen::default()));
        assert_eq!(runtime.build().unwrap_err().to_string(), "consumer a.run: must be 1 to 1000");
    }
}
