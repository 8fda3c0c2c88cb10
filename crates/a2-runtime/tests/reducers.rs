//! Reducers: state through an event, snapshots, versions.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, Events, Fold, RawEvent, Reducer, RetryPolicy, Runtime, lane};
use a2_store_memory::MemoryStore;
use serde::{Deserialize, Serialize};
use support::watched::*;
use support::*;

#[derive(Serialize, Deserialize)]
enum Account {
    #[serde(rename = "deposited")]
    Deposited(u64),
}
impl Events for Account {}

/// The sum, and how many events were folded to get it.
#[derive(Default)]
struct Balance {
    version: u32,
    applied: AtomicU64,
}

impl Balance {
    fn applied(&self) -> u64 {
        self.applied.swap(0, Ordering::SeqCst)
    }
}

impl Reducer for Balance {
    type State = u64;
    type Event = Account;

    fn name(&self) -> &str {
        "balance"
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn init(&self) -> u64 {
        0
    }

    fn apply(&self, balance: &mut u64, event: Account, stored: &Event) {
        assert_eq!(stored.event_type, "deposited");
        self.applied.fetch_add(1, Ordering::SeqCst);
        let Account::Deposited(amount) = event;
        *balance += amount;
    }
}

fn on(store: &MemoryStore) -> Runtime {
    Runtime::builder(store.clone()).snapshot_every(10).build().unwrap()
}

async fn deposit(runtime: &Runtime, n: u64) {
    let deposits: Vec<_> = (0..n).map(|_| Account::Deposited(1)).collect();
    runtime.session("s").unwrap().append(deposits).await.unwrap();
}

#[tokio::test]
async fn a_state_is_read_from_its_snapshot_on() {
    let store = MemoryStore::new();
    let (runtime, balance) = (on(&store), Balance::default());
    let account = runtime.session("s").unwrap();
    assert_eq!(account.state(&balance).await.unwrap(), 0);
    deposit(&runtime, 9).await;
    // Too little to be worth a snapshot.
    for _ in 0..2 {
        assert_eq!((account.state(&balance).await.unwrap(), balance.applied()), (9, 9));
    }
    deposit(&runtime, 1).await;
    assert_eq!((account.state(&balance).await.unwrap(), balance.applied()), (10, 10));
    assert_eq!((account.state(&balance).await.unwrap(), balance.applied()), (10, 0));
    // Other types are passed over.
    account.append([placed("tea"), placed("jam")]).await.unwrap();
    deposit(&runtime, 1).await;
    assert_eq!((account.state(&balance).await.unwrap(), balance.applied()), (11, 1));
    let before = account.state_through(&balance, Index::from(5)).await.unwrap();
    assert_eq!((before, balance.applied()), (5, 5));
}

#[tokio::test]
async fn snapshots_of_another_version_are_not_used() {
    let store = MemoryStore::new();
    let runtime = on(&store);
    let account = runtime.session("s").unwrap();
    deposit(&runtime, 10).await;
    let balance = Balance::default();
    for (version, applied) in [(1, 10), (2, 10), (1, 0), (2, 0)] {
        let balance = Balance { version, ..Balance::default() };
        assert_eq!((account.state(&balance).await.unwrap(), balance.applied()), (10, applied));
    }
    assert_eq!(balance.applied(), 0);
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_read_is_not_used() {
    let store = MemoryStore::new();
    let runtime = on(&store);
    let account = runtime.session("s").unwrap();
    deposit(&runtime, 10).await;
    // Another state under the same name and version: somebody forgot to count up.
    const OTHER: Fold<Vec<u8>, RawEvent> = Fold::new("balance", 0, Vec::new, |_, _, _| {});
    assert_eq!(account.state(&OTHER).await.unwrap(), Vec::<u8>::new());
    let balance = Balance::default();
    assert_eq!((account.state(&balance).await.unwrap(), balance.applied()), (10, 10));
}

#[tokio::test]
async fn a_long_log_is_read_to_its_end() {
    let store = MemoryStore::new();
    let runtime = on(&store);
    for _ in 0..3 {
        deposit(&runtime, 9_000).await;
    }
    let account = runtime.session("s").unwrap();
    assert_eq!(account.state(&Balance::default()).await.unwrap(), 27_000);
    account.clear().await.unwrap();
    assert_eq!(account.state(&Balance::default()).await.unwrap(), 0);
    deposit(&runtime, 3).await;
    assert_eq!(account.state(&Balance::default()).await.unwrap(), 3);
}

#[tokio::test]
async fn an_event_that_does_not_fit_is_an_error() {
    let store = MemoryStore::new();
    let runtime = on(&store);
    let account = runtime.session("s").unwrap();
    account.append(NewEvent::new("deposited", &"x").unwrap().id("bad").unwrap()).await.unwrap();
    let error = account.state(&Balance::default()).await.unwrap_err();
    assert!(
        error.to_string().starts_with("event 1 (bad, deposited).payload: does not fit Account")
    );
}

#[tokio::test]
async fn every_attempt_on_an_event_gets_the_same_state_at_a_small_cost() {
    let memory = MemoryStore::new();
    let store = Watched::new(memory.clone());
    let balance = Arc::new(Balance::default());
    let seen: Arc<Mutex<Vec<(u64, u64, u64)>>> = Arc::default();
    let (folding, log) = (Arc::clone(&balance), Arc::clone(&seen));
    let handler = move |_: Order, cx: Context| {
        let (balance, log) = (Arc::clone(&folding), Arc::clone(&log));
        async move {
            let own = cx.state(&*balance).await?;
            let applied = balance.applied();
            let latest = cx.session().state(&*balance).await?;
            log.lock().unwrap().push((own, applied, latest));
            // Meanwhile the log goes on, and others keep newer snapshots.
            let more: Vec<_> = (0..20).map(|_| Account::Deposited(1)).collect();
            cx.session().append(more).await?;
            cx.session().state(&*balance).await?;
            balance.applied();
            if cx.attempt() < 3 { Err("no".into()) } else { Ok(()) }
        }
    };
    let runtime = Runtime::builder(Arc::clone(&store))
        .snapshot_every(10)
        .retry(RetryPolicy::new().first(Duration::ZERO))
        .consumer(lane("c", |_: &Order| "l", handler))
        .build()
        .unwrap();
    deposit(&runtime, 50).await;
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    runtime.start();
    settled(&store).await;
    assert_eq!(*seen.lock().unwrap(), [(50, 50, 50), (50, 0, 70), (50, 0, 90)]);
}

#[tokio::test]
async fn a_snapshot_that_is_not_kept_costs_nothing_but_time() {
    let store = Watched::new(MemoryStore::new());
    store.decide(|call| if call.op == "put_snapshots" { Fault::Refused } else { Fault::None });
    let runtime = Runtime::builder(Arc::clone(&store)).snapshot_every(1).build().unwrap();
    deposit(&runtime, 3).await;
    let account = runtime.session("s").unwrap();
    for _ in 0..2 {
        let balance = Balance::default();
        assert_eq!((account.state(&balance).await.unwrap(), balance.applied()), (3, 3));
    }
    assert_eq!(store.calls(&["put_snapshots"]).len(), 2);
}
