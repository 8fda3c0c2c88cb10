//! Leases, holds and timers, by a clock that the scenario moves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_core::{Event, ManualClock, Timers, Timestamp};
use a2_runtime::{
    Context, Fold, HandlerError, RawEvent, RetryPolicy, Runtime, RuntimeBuilder, concurrent, lane,
};
use tokio::sync::{Notify, mpsc};

use super::events::*;
use super::{Site, until};

pub(super) const HOUR: Duration = Duration::from_secs(3_600);

pub(super) fn manual() -> ManualClock {
    ManualClock::at(Timestamp::from_millis(1_700_000_000_000))
}

pub(super) fn on(store: &Arc<dyn Timers>, clock: &ManualClock) -> RuntimeBuilder {
    Runtime::builder(Arc::clone(store)).clock(Arc::new(clock.clone()))
}

pub(crate) async fn a_zombie_cannot_commit(site: &dyn Site) {
    let clock = manual();
    let (first, second) =
        (site.open(Some(clock.clone())).await, site.open(Some(clock.clone())).await);
    let (told, mut begun) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let slow = move |_: Order, cx: Context| {
        let gate = Arc::clone(&gate);
        told.send(cx).unwrap();
        async move {
            gate.notified().await;
            Ok(Done::Billed(1))
        }
    };
    // It hangs: its own time stands still, so it does not renew its lease, and it has no place to claim
    // the event once more.
    let zombie = on(&first, &manual()).ttl(Duration::from_secs(30)).concurrency(1);
    let zombie = zombie.consumer(concurrent("billing", slow)).build().unwrap();
    zombie.start();
    zombie.session("s").unwrap().append(placed("tea", 1)).await.unwrap();
    let attempt = begun.recv().await.unwrap();
    assert_eq!(attempt.attempt(), 1);
    clock.advance(Duration::from_secs(31));
    let quick = |_: Order, _: Context| async { Ok(Done::Billed(2)) };
    let heir = on(&second, &clock).consumer(concurrent("billing", quick)).build().unwrap();
    heir.start();
    let log = count(&second, "s", "order.billed", 1).await;
    assert_eq!(log[1].cause.as_ref().map(|cause| cause.attempt), Some(2));
    // It wakes, and what it returns is refused. So is what it appends.
    let refused = attempt.session().append(Done::Billed(3)).await.unwrap_err();
    assert_eq!(refused.code(), "SUPERSEDED_ATTEMPT");
    opened.notify_one();
    assert!(zombie.shutdown(HOUR).await.finished);
    settled(&second).await;
    let log = count(&second, "s", "order.billed", 1).await;
    assert_eq!(of_type::<u64>(&log, "order.billed"), [2]);
    assert!(heir.shutdown(HOUR).await.finished);
}

pub(crate) async fn failures_are_held_and_end_as_dead_letters(site: &dyn Site) {
    let clock = manual();
    let store = site.open(Some(clock.clone())).await;
    let fail = |order: Order, _: Context| async move {
        let Order::Placed { item, .. } = order;
        match item.as_str() {
            "never" => Err::<(), _>(HandlerError::non_retriable("never")),
            _ => Err("not yet".into()),
        }
    };
    let policy = RetryPolicy::new().first(Duration::from_secs(8)).budget(3);
    let runtime = on(&store, &clock).retry(policy).consumer(concurrent("c", fail)).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("later", 1)).await.unwrap();
    runtime.session("t").unwrap().append(placed("never", 1)).await.unwrap();
    for (n, longest) in [(1, 8), (2, 16)] {
        failed(&store, "s", n).await;
        clock.advance(Duration::from_secs(longest));
    }
    for (name, failures, error) in [("s", 3, "not yet"), ("t", 1, "never")] {
        let dead =
            until("a dead letter", || async { dead_letters(&store, name).await.pop() }).await;
        assert_eq!(dead.state.failure_count, failures);
        assert_eq!(dead.state.last_error.as_deref(), Some(error));
        assert!(runtime.session(name).unwrap().skip(&dead.head).await.unwrap());
    }
    settled(&store).await;
    assert!(runtime.shutdown(HOUR).await.finished);
}

pub(crate) async fn a_timer_is_fired_once(site: &dyn Site) {
    let clock = manual();
    let mut runtimes = Vec::new();
    for _ in 0..3 {
        let store = site.open(Some(clock.clone())).await;
        let bill = |_: Order, _: Context| async { Ok(Done::Billed(1)) };
        let runtime = on(&store, &clock).consumer(concurrent("c", bill)).build().unwrap();
        runtime.start();
        runtimes.push(runtime);
    }
    let orders = runtimes[0].session("s").unwrap();
    for n in 0..5 {
        orders.schedule(format!("t{n}"), HOUR, placed("tea", n)).await.unwrap();
    }
    clock.advance(HOUR);
    let store = site.open(Some(clock.clone())).await;
    count(&store, "s", "order.billed", 5).await;
    for runtime in &runtimes {
        runtime.idle().await.unwrap();
    }
    assert_eq!(log(&store, "s").await.len(), 10);
    for runtime in runtimes {
        assert!(runtime.shutdown(HOUR).await.finished);
    }
}

const NUMBERS: Fold<Vec<u64>, Order> =
    Fold::new("numbers", 1, Vec::new, |numbers, order, _: &Event| {
        let Order::Placed { number, .. } = order;
        numbers.push(number);
    });

/// The state of the handler's event, and how much more there is of the latest.
type Folded = (Vec<u64>, usize);

pub(crate) async fn every_attempt_folds_the_same_state(site: &dyn Site) {
    let clock = manual();
    let store = site.open(Some(clock.clone())).await;
    let seen: Arc<Mutex<Vec<Folded>>> = Arc::default();
    let written = Arc::clone(&seen);
    let handler = move |_: RawEvent, cx: Context| {
        let seen = Arc::clone(&written);
        async move {
            let own = cx.state(&NUMBERS).await?;
            let latest = cx.session().state(&NUMBERS).await?;
            seen.lock().unwrap().push((own, latest.len()));
            cx.session().append((0..3).map(|n| placed("more", n)).collect::<Vec<_>>()).await?;
            if cx.attempt() < 3 { Err("again".into()) } else { Ok(()) }
        }
    };
    let runtime = on(&store, &clock)
        .snapshot_every(2)
        .retry(RetryPolicy::new().first(Duration::from_secs(1)))
        .consumer(lane("c", |_: &RawEvent| "l", handler).types(["go"]))
        .build()
        .unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append((0..5).map(|n| placed("tea", n)).collect::<Vec<_>>()).await.unwrap();
    orders.append(a2_core::NewEvent::new("go", &()).unwrap()).await.unwrap();
    for n in [1, 2] {
        failed(&store, "s", n).await;
        clock.advance(Duration::from_secs(2));
    }
    settled(&store).await;
    let own: Vec<_> = (0..5).collect();
    let expected: Vec<_> = [5, 8, 11].map(|latest| (own.clone(), latest)).into();
    assert_eq!(*seen.lock().unwrap(), expected);
    assert!(runtime.shutdown(HOUR).await.finished);
}

pub(crate) async fn a_clear_cancels_and_starts_anew(site: &dyn Site) {
    let clock = manual();
    let store = site.open(Some(clock.clone())).await;
    let (told, mut begun) = mpsc::unbounded_channel();
    let handler = move |order: Order, cx: Context| {
        let Order::Placed { number, .. } = order;
        told.send((number, cx.clone())).unwrap();
        async move {
            if number == 1 {
                cx.session().schedule("old", HOUR, Done::Billed(0)).await?;
                cx.cancelled().await;
                Err("cancelled")?;
            }
            Ok(Done::Billed(number))
        }
    };
    let runtime = on(&store, &clock).consumer(concurrent("c", handler)).build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append(placed("old", 1)).await.unwrap();
    let (number, old) = begun.recv().await.unwrap();
    assert_eq!(number, 1);
    until("the timer", || async { (orders.timers().await.unwrap().len() == 1).then_some(()) })
        .await;
    assert_eq!(orders.clear().await.unwrap(), 2);
    old.cancelled().await;
    orders.append(placed("new", 2)).await.unwrap();
    count(&store, "s", "order.billed", 1).await;
    clock.advance(HOUR);
    runtime.idle().await.unwrap();
    let log = log(&store, "s").await;
    assert_eq!((indexes(&log), of_type::<u64>(&log, "order.billed")), (vec![2, 3, 4], vec![2]));
    assert!(runtime.shutdown(HOUR).await.finished);
}
