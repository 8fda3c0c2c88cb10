//! Several processes at once, by the store's own clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_core::{Append, NewEvent, Store, StoreExt, Timers};
use a2_runtime::{Context, Handled, RawEvent, Runtime, RuntimeBuilder, concurrent, lane, log_runs};

use super::events::*;
use super::{Site, until};

const SESSIONS: usize = 4;
const ORDERS: u64 = 24;
const ITEMS: [&str; 3] = ["tea", "jam", "oats"];

async fn bill(order: Order, _: Context) -> Handled<Done> {
    let Order::Placed { number, .. } = order;
    Ok(Done::Billed(number))
}

async fn pack(order: Order, _: Context) -> Handled<Done> {
    let Order::Placed { item, number } = order;
    Ok(Done::Packed(item, number))
}

fn item(order: &Order) -> String {
    let Order::Placed { item, .. } = order;
    item.clone()
}

fn shop(store: Arc<dyn Timers>) -> RuntimeBuilder {
    Runtime::builder(store)
        .concurrency(8)
        .consumer(concurrent("billing", bill))
        .consumer(lane("packing", item, pack))
}

async fn place_orders(runtime: &Runtime) {
    for s in 0..SESSIONS {
        let session = runtime.session(format!("s{s}")).unwrap();
        for first in (0..ORDERS).step_by(8) {
            let orders: Vec<_> = (first..first + 8)
                .map(|number| placed(ITEMS[usize::try_from(number).unwrap() % 3], number))
                .collect();
            session.append(orders).await.unwrap();
        }
    }
}

/// Every order was billed once and packed once, each item's in order.
async fn check_orders(store: &dyn Store) {
    let all: Vec<_> = (0..ORDERS).collect();
    for s in 0..SESSIONS {
        let log = log(store, &format!("s{s}")).await;
        assert_eq!(indexes(&log), (1..=ORDERS * 3).collect::<Vec<_>>());
        let mut billed: Vec<u64> = of_type(&log, "order.billed");
        billed.sort_unstable();
        assert_eq!(billed, all);
        let packed: Vec<(String, u64)> = of_type(&log, "order.packed");
        for (i, item) in ITEMS.iter().enumerate() {
            let lane = packed.iter().filter(|(packed, _)| packed == item).map(|(_, n)| *n);
            let expected = all.iter().copied().skip(i).step_by(3);
            assert!(lane.eq(expected), "{item} out of order: {packed:?}");
        }
        assert_eq!(dead_letters(store, &format!("s{s}")).await, []);
    }
}

pub(crate) async fn several_processes_share_the_work(site: &dyn Site) {
    let mut runtimes = Vec::new();
    for _ in 0..3 {
        let runtime = shop(site.open(None).await).build().unwrap();
        runtime.start();
        runtimes.push(runtime);
    }
    place_orders(&runtimes[0]).await;
    let store = site.open(None).await;
    settled(&store).await;
    check_orders(&store).await;
    for runtime in runtimes {
        assert!(runtime.shutdown(Duration::from_secs(60)).await.finished);
    }
}

pub(crate) async fn shutdowns_under_load_lose_nothing_and_charge_nothing(site: &dyn Site) {
    let store = site.open(None).await;
    let charged = Arc::new(AtomicU64::new(0));
    let build = || {
        let charged = Arc::clone(&charged);
        let cut_off = move |order: Order, cx: Context| {
            charged.fetch_max(cx.failures(), Ordering::SeqCst);
            async move {
                // Some are cut off, wherever they are.
                tokio::select! {
                    () = cx.cancelled() => Err("cancelled")?,
                    () = tokio::task::yield_now() => {}
                }
                bill(order, cx).await
            }
        };
        Runtime::builder(Arc::clone(&store))
            .consumer(concurrent("billing", cut_off))
            .consumer(lane("packing", item, pack))
            .build()
            .unwrap()
    };
    place_orders(&build()).await;
    for round in 1..=6 {
        let runtime = build();
        runtime.start();
        if round < 6 {
            // Something was done; much is in the air.
            let before = store.head(&session("s0")).await.unwrap();
            until("an event", || async {
                let now = store.head(&session("s0")).await.unwrap();
                (now > before || now == ORDERS * 3).then_some(())
            })
            .await;
        } else {
            settled(&store).await;
        }
        let _ = runtime.shutdown(Duration::ZERO).await;
    }
    check_orders(&store).await;
    assert_eq!(charged.load(Ordering::SeqCst), 0);
}

pub(crate) async fn a_log_hears_of_everything_and_a_new_one_of_what_was_there(site: &dyn Site) {
    let other = site.open(None).await;
    let events = |n: u64| Append::new((0..n).map(|i| NewEvent::new("n", &i).unwrap())).unwrap();
    for name in ["old-1", "old-2"] {
        other.append(&session(name), events(5)).await.unwrap();
    }
    let seen: Arc<Mutex<BTreeMap<String, Vec<u64>>>> = Arc::default();
    let written = Arc::clone(&seen);
    let audit = log_runs("audit", 3, move |run: Vec<RawEvent>, cx: Context| {
        assert_eq!(run.len(), cx.events().len());
        let mut seen = written.lock().unwrap();
        seen.entry(cx.session().id().to_string()).or_default().extend(indexes(cx.events()));
        async { Ok(()) }
    });
    let runtime = Runtime::builder(site.open(None).await).consumer(audit.backfill());
    let runtime = runtime.build().unwrap();
    runtime.start();
    let all_seen = async |expected: &[(&str, u64)]| {
        let expected: BTreeMap<_, Vec<_>> =
            expected.iter().map(|(name, n)| ((*name).to_owned(), (1..=*n).collect())).collect();
        until("the logs to be read", || async {
            (*seen.lock().unwrap() == expected).then_some(())
        })
        .await;
    };
    // A pass finds the old ones, a hint tells of what somebody else appends (or the second pass, where
    // the store did not listen to others yet).
    all_seen(&[("old-1", 5), ("old-2", 5)]).await;
    other.append(&session("old-1"), events(4)).await.unwrap();
    other.append(&session("new"), events(1)).await.unwrap();
    all_seen(&[("new", 1), ("old-1", 9), ("old-2", 5)]).await;
    assert!(runtime.shutdown(Duration::from_secs(60)).await.finished);
}

pub(crate) async fn a_chain_of_consumers_ends(site: &dyn Site) {
    let next = |raw: RawEvent, _: Context| async move {
        let n: u64 = raw.payload.deserialize()?;
        Ok((n > 0).then(|| NewEvent::new("n", &(n - 1))).transpose()?)
    };
    let store = site.open(None).await;
    let runtime = Runtime::builder(Arc::clone(&store)).consumer(concurrent("c", next).types(["n"]));
    let runtime = runtime.build().unwrap();
    runtime.start();
    let chain = runtime.session("chain").unwrap();
    chain.append(NewEvent::new("n", &40).unwrap()).await.unwrap();
    count(&store, "chain", "n", 41).await;
    runtime.idle().await.unwrap();
    assert!(runtime.shutdown(Duration::from_secs(60)).await.finished);
    settled(&store).await;
}
