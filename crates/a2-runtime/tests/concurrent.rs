//! Concurrent consumers, end to end: appended, handled, completed with what was returned.

#![allow(clippy::unwrap_used)]

mod support;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, Events, RawEvent, Runtime, concurrent};
use a2_store_memory::MemoryStore;
use support::*;

#[tokio::test]
async fn an_event_is_handled_and_what_was_returned_is_appended() {
    let store = MemoryStore::new();
    let bill = |order: Order, cx: Context| async move {
        let Order::Placed { item } = order;
        assert_eq!(cx.event().id, "order-1");
        assert_eq!((cx.attempt(), cx.failures(), cx.is_last_try()), (1, 0, false));
        Ok(vec![sent(&item), sent("copy")])
    };
    let runtime = Runtime::builder(store.clone()).consumer(concurrent("billing", bill));
    let runtime = runtime.build().unwrap();
    runtime.start();
    let orders = runtime.session("customer-7").unwrap();
    let appended = orders.append(with_id(&placed("tea"), "order-1")).await.unwrap();
    assert!(appended.has_pending);
    let copy = event_at(&store, "customer-7", 3).await;
    let log = orders.read(ReadRange::default()).await.unwrap().events;
    assert_eq!(types(&store, "customer-7").await, ["order.placed", "bill.sent", "bill.sent"]);
    assert_eq!(log[1].payload.as_str(), r#"{"item":"tea"}"#);
    let consumer = Consumer::new("billing").unwrap();
    let head = HeadRef::new(consumer, CursorKey::Event, Index::from(1));
    assert_eq!(copy.cause, Some(Cause::new(head, 1)));
    // Derived, so that they are the same whoever handles it, and when.
    let ids: Vec<_> = log.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids[0], "order-1");
    assert_eq!(
        ids[1..],
        ["a384d2cf-ef4f-5657-aca3-bfeed565336a", "d227fc30-6c57-57e4-804b-69cf1194dddb"]
    );
    settled(&store).await;
}

#[tokio::test]
async fn only_the_types_of_the_enum_are_appended_for_a_consumer() {
    let store = MemoryStore::new();
    let raw = concurrent("all", |_: RawEvent, _| async { Ok(()) }).types(["bill.sent"]);
    let runtime = Runtime::builder(store.clone())
        .consumer(concurrent("billing", |_: Order, _| async { Ok(()) }))
        .consumer(raw);
    // Not started: what is appended stays.
    let runtime = runtime.build().unwrap();
    let orders = runtime.session("s").unwrap();
    let other = NewEvent::new("order.other", &()).unwrap();
    orders.append([placed("tea").encode().unwrap(), other]).await.unwrap();
    orders.append(Some(sent("tea"))).await.unwrap();
    let cursors = store.all_cursors(orders.id()).await.unwrap();
    let heads: Vec<_> = cursors
        .iter()
        .map(|cursor| (cursor.consumer.as_str(), cursor.head.map(Index::get)))
        .collect();
    assert_eq!(heads, [("all", Some(3)), ("billing", Some(1))]);
}

#[tokio::test]
async fn what_was_appended_before_the_start_is_handled() {
    let store = MemoryStore::new();
    let build = || {
        let bill = |_: Order, _| async { Ok(sent("tea")) };
        Runtime::builder(store.clone()).consumer(concurrent("billing", bill)).build().unwrap()
    };
    let orders = build().session("s").unwrap();
    orders.append(placed("tea")).await.unwrap();
    let runtime = build();
    runtime.start();
    event_at(&store, "s", 2).await;
}

#[tokio::test]
async fn a_chain_of_consumers_runs_to_its_end() {
    let store = MemoryStore::new();
    let next = |raw: RawEvent, cx: Context| async move {
        let n: u32 = raw.payload.deserialize()?;
        let more = (n > 0).then(|| NewEvent::new("n", &(n - 1)));
        assert_eq!(cx.event().event_type, "n");
        Ok(more.transpose()?)
    };
    let runtime = Runtime::builder(store.clone()).consumer(concurrent("count", next).types(["n"]));
    let runtime = runtime.build().unwrap();
    runtime.start();
    for name in ["a", "b"] {
        let start = NewEvent::new("n", &50).unwrap();
        runtime.session(name).unwrap().append(start).await.unwrap();
    }
    assert_eq!(event_at(&store, "a", 51).await.payload.as_str(), "0");
    assert_eq!(event_at(&store, "b", 51).await.payload.as_str(), "0");
    settled(&store).await;
}

#[test]
fn what_is_wrong_is_said_when_the_runtime_is_built() {
    let handler = |_: Order, _: Context| async { Ok(()) };
    let said = |builder: a2_runtime::RuntimeBuilder| builder.build().unwrap_err().to_string();
    let on = || Runtime::builder(MemoryStore::new());
    assert_eq!(said(on().consumer(concurrent("", handler))), "consumer: must not be empty");
    assert_eq!(
        said(on().consumer(concurrent("a", handler).types(["order.paid"]))),
        "consumer a.types: must be types of its events, order.paid is none"
    );
    assert_eq!(
        said(on().consumer(concurrent("a", handler).concurrency(0))),
        "consumer a.concurrency: must not be zero"
    );
    let twice = on().consumer(concurrent("a", handler)).consumer(concurrent("a", handler));
    assert_eq!(said(twice), "served: must name a consumer once only");
    assert_eq!(said(on().concurrency(0)), "concurrency: must not be zero");
}
