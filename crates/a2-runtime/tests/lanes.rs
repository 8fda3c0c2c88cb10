//! Lanes: queues that an event's content names.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, Events, RawEvent, RetryPolicy, Runtime, concurrent, lane};
use a2_store_memory::MemoryStore;
use serde::{Deserialize, Serialize};
use support::*;
use tokio::sync::{Notify, mpsc};

fn item(order: &Order) -> String {
    let Order::Placed { item } = order;
    item.clone()
}

#[tokio::test]
async fn a_lanes_events_are_handled_in_order_one_at_a_time_and_lanes_side_by_side() {
    let store = MemoryStore::new();
    let seen: Arc<Mutex<HashMap<String, Vec<u64>>>> = Arc::default();
    let (told, mut begun) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let (log, hold) = (Arc::clone(&seen), Arc::clone(&gate));
    let handler = move |order: Order, cx: Context| {
        let (log, hold, told) = (Arc::clone(&log), Arc::clone(&hold), told.clone());
        async move {
            let index = cx.event().index.get();
            log.lock().unwrap().entry(item(&order)).or_default().push(index);
            told.send(index)?;
            if item(&order) == "tea" {
                hold.notified().await;
            }
            Ok(())
        }
    };
    let runtime = Runtime::builder(store.clone()).consumer(lane("stock", item, handler));
    let runtime = runtime.build().unwrap();
    runtime.start();
    let orders = ["tea", "tea", "jam", "jam", "tea", "jam"].map(placed);
    runtime.session("s").unwrap().append(orders).await.unwrap();
    // The first of tea holds its lane, and no other.
    let mut first: Vec<_> = Vec::new();
    for _ in 0..4 {
        first.push(begun.recv().await.unwrap());
    }
    first.sort_unstable();
    assert_eq!(first, [1, 3, 4, 6]);
    for next in [2, 5] {
        assert!(begun.try_recv().is_err());
        gate.notify_one();
        assert_eq!(begun.recv().await, Some(next));
    }
    gate.notify_one();
    settled(&store).await;
    let seen = seen.lock().unwrap();
    assert_eq!((&seen["tea"], &seen["jam"]), (&vec![1, 2, 5], &vec![3, 4, 6]));
}

#[tokio::test]
async fn what_a_handler_returns_is_queued_too() {
    let store = MemoryStore::new();
    let place = |raw: RawEvent, _: Context| async move {
        Ok(raw.payload.deserialize::<Vec<String>>()?.iter().map(|i| placed(i)).collect::<Vec<_>>())
    };
    let stock =
        lane("stock", item, |order: Order, _: Context| async move { Ok(sent(&item(&order))) });
    let runtime = Runtime::builder(store.clone())
        .consumer(concurrent("cart", place).types(["cart.closed"]))
        .consumer(stock);
    let runtime = runtime.build().unwrap();
    runtime.start();
    let cart = NewEvent::new("cart.closed", &["tea", "jam"]).unwrap();
    runtime.session("s").unwrap().append(cart).await.unwrap();
    event_at(&store, "s", 5).await;
    let events = store.read(&session("s"), ReadRange::default()).await.unwrap().events;
    let lanes: Vec<_> = events[3..]
        .iter()
        .map(|bill| (bill.cause.clone().unwrap().head.cursor, bill.payload.as_str().to_owned()))
        .collect();
    for (cursor, payload) in lanes {
        let CursorKey::Lane(lane) = cursor else { panic!("{cursor:?}") };
        assert_eq!(payload, format!(r#"{{"item":"{lane}"}}"#));
    }
}

#[tokio::test]
async fn what_names_no_lane_stands_in_no_queues_way() {
    let store = MemoryStore::new();
    let stock =
        lane("stock", item, |order: Order, _: Context| async move { Ok(sent(&item(&order))) });
    let runtime = Runtime::builder(store.clone()).consumer(stock).build().unwrap();
    runtime.start();
    let broken = NewEvent::new("order.placed", &7).unwrap();
    let orders = runtime.session("s").unwrap();
    orders.append([broken, placed("tea").encode().unwrap()]).await.unwrap();
    assert_eq!(event_at(&store, "s", 3).await.payload.as_str(), r#"{"item":"tea"}"#);
    let dead = dead_letters(&store, "s", 1).await;
    assert_eq!((dead[0].head.index.get(), &dead[0].head.cursor), (1, &CursorKey::Event));
    let too_long = placed(&"x".repeat(513));
    let error = orders.append(too_long).await.unwrap_err();
    assert_eq!(error.to_string(), "lane: must be at most 512 bytes, is 513");
}

#[tokio::test]
async fn a_dead_letter_holds_its_lane_until_it_is_skipped() {
    let store = MemoryStore::new();
    let handler = |order: Order, cx: Context| async move {
        if cx.event().index == 1 {
            return Err("no".into());
        }
        Ok(sent(&item(&order)))
    };
    let once = RetryPolicy::new().budget(1).first(Duration::ZERO);
    let runtime = Runtime::builder(store.clone()).retry(once);
    let runtime = runtime.consumer(lane("stock", |_: &Order| "one", handler)).build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append([placed("tea"), placed("jam")]).await.unwrap();
    let dead = dead_letters(&store, "s", 1).await;
    settled(&store).await;
    assert_eq!(orders.head().await.unwrap(), 2);
    assert!(orders.skip(&dead[0].head).await.unwrap());
    assert_eq!(event_at(&store, "s", 3).await.payload.as_str(), r#"{"item":"jam"}"#);
}

#[derive(Serialize, Deserialize)]
enum Shop {
    #[serde(rename = "order.placed")]
    Placed { item: String },
    #[serde(rename = "shop.closed")]
    Closed,
}
impl Events for Shop {}

#[tokio::test]
async fn an_enum_of_several_types_names_lanes_for_each() {
    let store = MemoryStore::new();
    let lanes = lane(
        "shop",
        |event: &Shop| match event {
            Shop::Placed { item } => item.clone(),
            Shop::Closed => String::new(),
        },
        |_: Shop, _: Context| async { Ok(()) },
    );
    let runtime = Runtime::builder(store.clone()).consumer(lanes).build().unwrap();
    let shop = runtime.session("s").unwrap();
    shop.append([Shop::Placed { item: "tea".into() }, Shop::Closed]).await.unwrap();
    let cursors = store.all_cursors(shop.id()).await.unwrap();
    let lanes: Vec<_> = cursors.iter().map(|c| (c.key.name(), c.head.map(Index::get))).collect();
    assert_eq!(lanes, [("", Some(2)), ("tea", Some(1))]);
}
