//! Shutting down: what runs may finish, what does not is given back, nothing is charged.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, Handled, Runtime, concurrent};
use a2_store_memory::MemoryStore;
use support::watched::*;
use support::*;
use tokio::sync::{Notify, mpsc};

#[tokio::test]
async fn handlers_may_finish_and_nothing_more_is_claimed() {
    let (_, store, builder) = by_hand();
    let (told, mut attempts) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let handler = move |order: Order, cx: Context| {
        let gate = Arc::clone(&gate);
        told.send(cx.clone()).unwrap();
        async move {
            cx.stopping().cancelled().await;
            gate.notified().await;
            assert!(!cx.is_cancelled());
            let Order::Placed { item } = order;
            Ok(sent(&item))
        }
    };
    let runtime = builder.concurrency(1).consumer(concurrent("c", handler)).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append([placed("a"), placed("b")]).await.unwrap();
    attempts.recv().await.unwrap();
    let ending = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.shutdown(Duration::from_secs(10)).await }
    });
    opened.notify_one();
    let ended = ending.await.unwrap();
    assert_eq!((ended.finished, ended.released), (true, 0));
    assert_eq!(types(&store, "s").await, ["order.placed", "order.placed", "bill.sent"]);
    assert!(attempts.try_recv().is_err());
    // A runtime that was shut down appends, and handles nothing any more.
    runtime.start();
    runtime.session("s").unwrap().append(placed("c")).await.unwrap();
    assert!(attempts.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_finish_is_cancelled_and_given_back() {
    let (clock, memory, _) = by_hand();
    let store = Watched::new(memory.clone());
    let (told, mut attempts) = mpsc::unbounded_channel();
    let handler = move |order: Order, cx: Context| {
        told.send(cx.clone()).unwrap();
        async move {
            match order {
                Order::Placed { item } if item == "listens" => {
                    cx.cancelled().await;
                    Err("cancelled".into())
                }
                Order::Placed { item } if item == "panics" => {
                    cx.cancelled().await;
                    panic!("cancelled");
                }
                // Does not look at its cancellation: dropped when the grace is over.
                Order::Placed { .. } => std::future::pending().await,
            }
        }
    };
    let handler = move |order, cx| {
        let work = handler(order, cx);
        async move { work.await as Result<(), a2_runtime::HandlerError> }
    };
    let runtime = Runtime::builder(Arc::clone(&store))
        .clock(Arc::new(clock.clone()))
        .consumer(concurrent("c", handler))
        .build()
        .unwrap();
    runtime.start();
    for name in ["s", "t"] {
        let orders = ["listens", "panics", "hangs"].map(placed);
        runtime.session(name).unwrap().append(orders).await.unwrap();
    }
    for _ in 0..6 {
        attempts.recv().await.unwrap();
    }
    let ending = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.shutdown(Duration::from_secs(10)).await }
    });
    until("the end to begin", || async {
        runtime.session("s").unwrap();
        format!("{runtime:?}").contains("stopping: true").then_some(())
    })
    .await;
    clock.advance(Duration::from_secs(10));
    let ended = ending.await.unwrap();
    assert_eq!((ended.finished, ended.released), (false, 6));
    let released = store.calls(&["release_claims"]);
    assert_eq!(released.iter().map(|call| call.n).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(store.calls(&["fail_attempt"]), []);
    for name in ["s", "t"] {
        for cursor in memory.all_cursors(&session(name)).await.unwrap() {
            let state = cursor.state;
            assert_eq!(
                (state.failure_count, state.claim_holder, state.claim_expires_at),
                (0, None, None)
            );
        }
    }
}

#[tokio::test]
async fn a_failure_while_there_is_still_time_is_a_failure() {
    let (_, store, builder) = by_hand();
    let (told, mut attempts) = mpsc::unbounded_channel();
    let handler = move |_: Order, cx: Context| {
        told.send(()).unwrap();
        async move {
            cx.stopping().cancelled().await;
            Err::<(), _>("no".into())
        }
    };
    let runtime = builder.consumer(concurrent("c", handler)).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    attempts.recv().await.unwrap();
    assert!(runtime.shutdown(Duration::from_secs(10)).await.finished);
    let state = store.all_cursors(&session("s")).await.unwrap().remove(0).state;
    assert_eq!((state.failure_count, state.last_error.as_deref()), (1, Some("no")));
}

#[tokio::test]
async fn a_runtime_that_goes_stops() {
    let (_, store, builder) = by_hand();
    let (told, mut attempts) = mpsc::unbounded_channel();
    let handler = move |_: Order, cx: Context| {
        told.send(()).unwrap();
        async move {
            cx.cancelled().await;
            Ok(())
        }
    };
    let runtime = builder.consumer(concurrent("c", handler)).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    attempts.recv().await.unwrap();
    drop(runtime);
    // It was told to end, and ended well: completed.
    settled(&store).await;
}

/// Some are cut off, wherever they are.
async fn cut_off(order: Order, cx: Context) -> Handled<Bill> {
    let Order::Placed { item } = order;
    tokio::select! {
        () = cx.cancelled() => Err("cancelled")?,
        () = tokio::task::yield_now() => {}
    }
    Ok(sent(&item))
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_nothing_is_lost_and_nothing_is_charged() {
    const SESSIONS: usize = 20;
    const ORDERS: usize = 40;
    let store = MemoryStore::new();
    let charged = Arc::new(AtomicU64::new(0));
    let build = || {
        let charged = Arc::clone(&charged);
        let handler = move |order: Order, cx: Context| {
            charged.fetch_max(cx.failures(), Ordering::SeqCst);
            cut_off(order, cx)
        };
        Runtime::builder(store.clone()).consumer(concurrent("c", handler)).build().unwrap()
    };
    let writer = build();
    for s in 0..SESSIONS {
        let orders: Vec<_> = (0..ORDERS).map(|i| placed(&format!("{s}-{i}"))).collect();
        writer.session(format!("s{s}")).unwrap().append(orders).await.unwrap();
    }
    // Processes come and go until all is done.
    for round in 0.. {
        let runtime = build();
        runtime.start();
        if round < 10 {
            event_at(&store, "s0", u64::try_from(ORDERS).unwrap() + 1).await;
        } else {
            settled(&store).await;
        }
        let _ = runtime.shutdown(Duration::ZERO).await;
        if round >= 10 {
            break;
        }
    }
    assert_eq!(charged.load(Ordering::SeqCst), 0);
    for s in 0..SESSIONS {
        let name = session(&format!("s{s}"));
        let events = store.read(&name, ReadRange::default()).await.unwrap().events;
        let mut bills: Vec<_> = events[ORDERS..].iter().map(|e| e.payload.as_str()).collect();
        bills.sort_unstable();
        bills.dedup();
        assert_eq!((events.len(), bills.len()), (2 * ORDERS, ORDERS));
        assert_eq!(store.all_dead_letters(&name).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_store_that_was_closed_ends_the_runtime() {
    let store = MemoryStore::new();
    let handler = |_: Order, cx: Context| async move {
        cx.cancelled().await;
        Ok(())
    };
    let runtime =
        Runtime::builder(store.clone()).consumer(concurrent("c", handler)).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    store.close().await;
    until("the end", || async { format!("{runtime:?}").contains("stopping: true").then_some(()) })
        .await;
    assert!(runtime.shutdown(Duration::from_secs(10)).await.finished);
}
