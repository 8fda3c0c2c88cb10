//! Two processes on one SQLite file: one is killed in the midst of its work, the other finishes it.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, Handled, Runtime, RuntimeBuilder, concurrent, lane};
use a2_store_sqlite::SqliteStore;
use support::*;

const TEST: &str = "what_a_killed_process_held_is_finished_by_another";

async fn runtime(path: &std::path::Path) -> (Arc<SqliteStore>, RuntimeBuilder) {
    let store = Arc::new(SqliteStore::open(path).await.unwrap());
    let builder = Runtime::builder(Arc::clone(&store)).ttl(Duration::from_secs(1));
    (store, builder)
}

/// Says that it works, and works for ever.
async fn never(_: Order, cx: Context) -> Handled {
    let text = format!("{} {}", cx.consumer(), cx.event().index);
    cx.session().append(sent(&text)).await?;
    std::future::pending().await
}

async fn bill(order: Order, _: Context) -> Handled<Bill> {
    let Order::Placed { item } = order;
    Ok(sent(&item))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_held_is_finished_by_another() {
    if let Some(path) = std::env::var_os("A2_TEST_FILE") {
        let (_store, builder) = runtime(path.as_ref()).await;
        let held = builder
            .consumer(concurrent("billing", never))
            .consumer(lane("packing", |_: &Order| "l", never))
            .build()
            .unwrap();
        held.start();
        return std::future::pending().await;
    }
    let folder = tempfile::Builder::new().prefix("a2-runtime-").tempdir().unwrap();
    let path = folder.path().join("a2.db");
    let (store, builder) = runtime(&path).await;
    let heir = builder
        .consumer(concurrent("billing", bill))
        .consumer(lane("packing", |_: &Order| "l", bill))
        .build()
        .unwrap();
    let orders = heir.session("s").unwrap();
    orders.append([placed("tea"), placed("jam")]).await.unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env("A2_TEST_FILE", &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Three handlers are in the midst of it: the lane's second event has to wait.
    event_at(&store, "s", 5).await;
    child.kill().unwrap();
    child.wait().unwrap();
    heir.start();
    let last = event_at(&store, "s", 9).await;
    settled(&*store).await;
    let log = orders.read(ReadRange::default()).await.unwrap().events;
    assert_eq!((log.len(), last.index.get()), (9, 9));
    let mut done: Vec<_> = log[5..]
        .iter()
        .map(|event| {
            let cause = event.cause.clone().unwrap();
            (cause.head.consumer.to_string(), cause.head.index.get(), cause.attempt)
        })
        .collect();
    done.sort();
    // What was held, by the second attempt; what was not, by the first.
    let expected = [("billing", 1, 2), ("billing", 2, 2), ("packing", 1, 2), ("packing", 2, 1)];
    let expected = expected.map(|(consumer, index, attempt)| (consumer.to_owned(), index, attempt));
    assert_eq!(done, expected);
    assert_eq!(orders.dead_letters().await.unwrap(), []);
}
