//! How work is found: at once by who made it, by sweeps what nobody told of.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, RawEvent, Runtime, concurrent, log};
use a2_store_memory::MemoryStore;
use support::watched::*;
use support::*;

/// A store that gives no hints, and a clock that is not moved: nothing happens but at once.
fn silent() -> (ManualClock, Arc<Watched<MemoryStore>>) {
    let (clock, memory, _) = by_hand();
    let store = Watched::new(memory);
    store.be_silent();
    (clock, store)
}

async fn started(clock: &ManualClock, store: &Arc<Watched<MemoryStore>>) -> Runtime {
    let bill = |order: Order, _: Context| async move {
        let Order::Placed { item } = order;
        Ok(sent(&item))
    };
    let pay = |_: Bill, _: Context| async { Ok(NewEvent::new("bill.paid", &())?) };
    let runtime = Runtime::builder(Arc::clone(store))
        .clock(Arc::new(clock.clone()))
        .consumer(concurrent("billing", bill))
        .consumer(concurrent("paying", pay).concurrency(2))
        .consumer(
            log("audit", |_: RawEvent, _: Context| async { Ok(()) }).ttl(Duration::from_secs(5)),
        )
        .build()
        .unwrap();
    runtime.start();
    runtime.idle().await.unwrap();
    runtime
}

#[tokio::test]
async fn who_appends_and_who_returns_starts_the_work_at_once() {
    let (clock, store) = silent();
    let runtime = started(&clock, &store).await;
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    // Three groups of consumers: each is woken by what it waits for.
    event_at(&store, "s", 3).await;
    settled(&store).await;
    assert_eq!(types(&store, "s").await, ["order.placed", "bill.sent", "bill.paid"]);
}

#[tokio::test]
async fn what_nobody_told_of_is_found_by_a_sweep() {
    let (clock, store) = silent();
    let _runtime = started(&clock, &store).await;
    let order = with_id(&placed("tea"), "order").target(Target::event("billing").unwrap());
    store.append_one(&session("s"), order).await.unwrap();
    clock.advance(Duration::from_secs(45));
    event_at(&store, "s", 3).await;
}

#[tokio::test]
async fn what_another_process_holds_is_taken_over_when_its_lease_ends() {
    let (clock, store) = silent();
    let runtime = started(&clock, &store).await;
    // The store's time is known from a claim.
    runtime.session("t").unwrap().append(placed("jam")).await.unwrap();
    event_at(&store, "t", 3).await;
    let order = with_id(&placed("tea"), "order").target(Target::event("billing").unwrap());
    store.append_one(&session("s"), order).await.unwrap();
    let claim = ClaimAvailable::new("dead", Duration::from_secs(50)).unwrap();
    let _ = store.claim_available(&session("s"), claim).await.unwrap();
    let sweeps = store.calls(&["pending"]).len();
    clock.advance(Duration::from_secs(45));
    until("a sweep", || async { (store.calls(&["pending"]).len() > sweeps).then_some(()) }).await;
    // It was seen that there will be something; no claim was made for nothing.
    let bill = until("the take-over", || async {
        clock.advance(Duration::from_secs(1));
        let log = store.read(&session("s"), ReadRange::default()).await.unwrap();
        log.events.into_iter().nth(1)
    })
    .await;
    assert_eq!(bill.cause.clone().unwrap().attempt, 2);
}
