//! Reading ranges of a log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use a2_core::{Clear, EventType, Index, ReadRange, StoreExt};
use futures_util::TryStreamExt;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "read.empty.unknown_session" => unknown_session: rules(R1, R43);
    "read.range.after_and_through" => after_and_through: rules(R43);
    "read.range.after_not_below_through" => after_not_below_through: rules(R43);
    "read.range.beyond_the_head" => beyond_the_head: rules(R43);
    "read.limit.given" => limit_given: rules(R10, R43);
    "read.limit.default" => limit_default: rules(R10, R43);
    "read.limit.most" => limit_most: rules(R10, R43), slow;
    "read.limit.bytes" => limit_bytes: rules(R11, R43), slow;
    "read.clear.from_the_marker" => from_the_marker: rules(R43, R70, F47);
    "read.clear.through_below" => through_below: rules(R43);
    "read.clear.marker" => marker: rules(R69);
    "read.clear.latest_marker" => latest_marker: rules(R43, R72);
    "read.pages.read_all" => read_all: rules(R43);
    "read.view.whole_batches" => whole_batches: rules(R5, R36, R43);
    "read.view.during_clears" => during_clears: rules(R5, R43, F47);
    "read.view.another_handle" => another_handle: rules(R36, R43), needs(Another);
];

async fn unknown_session(cx: Cx) {
    let s = cx.session("unknown");
    let read = cx.store().read(&s, ReadRange::default()).await.unwrap();
    assert_eq!(read.events, []);
    assert_eq!((read.head.get(), read.clear_index.get()), (0, 0));
}

async fn after_and_through(cx: Cx) {
    let s = cx.session("range");
    append(&cx, &s, many("e", 9)).await;
    for (after, through, expected) in [
        (0, 9, vec![1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (3, 6, vec![4, 5, 6]),
        (8, 9, vec![9]),
        (0, 1, vec![1]),
    ] {
        let range = ReadRange::after(at(after)).through(at(through));
        let read = cx.store().read(&s, range).await.unwrap();
        assert_eq!(indexes(&read.events), expected, "({after}, {through}]");
        assert_eq!((read.head.get(), read.clear_index.get()), (9, 0));
    }
}

async fn after_not_below_through(cx: Cx) {
    let s = cx.session("crossed");
    append(&cx, &s, many("e", 3)).await;
    for (after, through) in [(2, 2), (3, 1), (0, 0), (3, 3), (7, 5)] {
        let range = ReadRange::after(at(after)).through(at(through));
        let read = cx.store().read(&s, range).await.unwrap();
        assert_eq!(read.events, [], "({after}, {through}]");
        assert_eq!(read.head, 3);
    }
}

async fn beyond_the_head(cx: Cx) {
    let s = cx.session("beyond");
    append(&cx, &s, many("e", 3)).await;
    let through = ReadRange::after(at(1)).through(at(1_000));
    assert_eq!(indexes(&cx.store().read(&s, through).await.unwrap().events), [2, 3]);
    for after in [3, 4, 1_000, Index::MAX.get()] {
        let read = cx.store().read(&s, ReadRange::after(at(after))).await.unwrap();
        assert_eq!(read.events, [], "after {after}");
        assert_eq!(read.head, 3);
    }
}

async fn limit_given(cx: Cx) {
    let s = cx.session("limit");
    append(&cx, &s, many("e", 9)).await;
    let range = ReadRange::after(at(2)).limit(3).unwrap();
    let read = cx.store().read(&s, range).await.unwrap();
    assert_eq!(indexes(&read.events), [3, 4, 5]);
    assert_eq!(read.head, 9);
    assert_code(ReadRange::default().limit(0), "INVALID_INPUT");
    assert_code(ReadRange::default().limit(10_001), "INVALID_INPUT");
}

async fn limit_default(cx: Cx) {
    let s = cx.session("default");
    append(&cx, &s, many("e", 1_001)).await;
    let read = cx.store().read(&s, ReadRange::default()).await.unwrap();
    assert_eq!(read.events.len(), 1_000);
    assert_eq!(read.events[999].index, 1_000);
    assert_eq!(read.head, 1_001);
}

async fn limit_most(cx: Cx) {
    let s = cx.session("most");
    append(&cx, &s, many("e", 10_000)).await;
    append(&cx, &s, [ev("last")]).await;
    let range = ReadRange::default().limit(10_000).unwrap();
    let read = cx.store().read(&s, range).await.unwrap();
    assert_eq!(read.events.len(), 10_000);
    assert_eq!(read.events[9_999].id, "e10000");
    assert_eq!(read.head, 10_001);
}

async fn limit_bytes(cx: Cx) {
    let s = cx.session("bytes");
    let six_mib = format!("\"{}\"", "x".repeat(6 * 1024 * 1024));
    for id in ["a", "b", "c", "d", "e"] {
        append(&cx, &s, [event("t", &six_mib).id(id).unwrap()]).await;
    }
    // The third passes 16 MiB.
    let first = cx.store().read(&s, ReadRange::default()).await.unwrap();
    assert_eq!(ids(&first.events), ["a", "b", "c"]);
    assert_eq!(first.head, 5);
    let rest = cx.store().read(&s, ReadRange::after(at(3))).await.unwrap();
    assert_eq!(ids(&rest.events), ["d", "e"]);
}

async fn from_the_marker(cx: Cx) {
    let s = cx.session("marker");
    append(&cx, &s, many("old", 100)).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 20)).await;
    let with_marker: Vec<u64> = (101..=121).collect();
    for (after, expected) in [
        (0, &with_marker[..]),
        (50, &with_marker[..]),
        (100, &with_marker[..]),
        (101, &with_marker[1..]),
        (120, &with_marker[20..]),
    ] {
        let read = cx.store().read(&s, ReadRange::after(at(after))).await.unwrap();
        assert_eq!(indexes(&read.events), expected, "after {after}");
        assert_eq!((read.head.get(), read.clear_index.get()), (121, 101));
    }
}

async fn through_below(cx: Cx) {
    let s = cx.session("below");
    append(&cx, &s, many("old", 3)).await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev("new")]).await;
    let read = |through| cx.store().read(&s, ReadRange::default().through(at(through)));
    assert_eq!(read(3).await.unwrap().events, []);
    assert_eq!(indexes(&read(4).await.unwrap().events), [4]);
    assert_eq!(indexes(&read(5).await.unwrap().events), [4, 5]);
}

async fn marker(cx: Cx) {
    let s = cx.session("marker-fields");
    append(&cx, &s, [ev("old")]).await;
    cx.pass(ms(7)).await;
    let _ = cx.store().clear(&s, Clear::new().id("the-marker").unwrap()).await.unwrap();
    let read = cx.store().read(&s, ReadRange::default()).await.unwrap();
    let [marker] = &read.events[..] else { panic!("one event: {read:?}") };
    assert_eq!(marker.id, "the-marker");
    assert_eq!(marker.event_type, EventType::CLEAR);
    assert_eq!(marker.event_type, "a2.clear");
    assert_eq!(marker.payload.as_str(), "null");
    assert_eq!(marker.index, 2);
    assert_eq!(marker.session, s);
    assert_eq!(marker.created_at.as_millis(), 1_700_000_000_007);
    assert_eq!(marker.cause, None);
}

async fn latest_marker(cx: Cx) {
    let s = cx.session("two-markers");
    for round in ["a", "b"] {
        append(&cx, &s, many(round, 2)).await;
        clear(&cx, &s).await;
    }
    let read = cx.store().read(&s, ReadRange::default()).await.unwrap();
    assert_eq!(indexes(&read.events), [6]);
    assert_eq!((read.head.get(), read.clear_index.get()), (6, 6));
}

async fn read_all(cx: Cx) {
    let s = cx.session("all");
    append(&cx, &s, many("e", 2_500)).await;
    let store = cx.store();
    let all: Vec<_> = (&store).read_all(&s, at(10)).try_collect().await.unwrap();
    assert_eq!(indexes(&all), (11..=2_500).collect::<Vec<u64>>());
}

/// Waits until more than so many reads have begun, so that writes and reads meet.
async fn another_read(reads: &AtomicUsize, before: usize) {
    while reads.load(Ordering::SeqCst) <= before {
        tokio::task::yield_now().await;
    }
}

async fn whole_batches(cx: Cx) {
    let s = cx.session("view");
    let reads = Arc::new(AtomicUsize::new(0));
    let writer = tokio::spawn({
        let (cx, s, reads) = (cx.clone(), s.clone(), Arc::clone(&reads));
        async move {
            for round in 0..60 {
                another_read(&reads, round).await;
                append(&cx, &s, many(&format!("{round}-"), 10)).await;
            }
        }
    });
    let range = ReadRange::default().limit(10_000).unwrap();
    loop {
        let done = writer.is_finished();
        reads.fetch_add(1, Ordering::SeqCst);
        let read = cx.store().read(&s, range.clone()).await.unwrap();
        let n = read.head.get();
        assert_eq!(n % 10, 0, "half a batch was seen");
        assert_eq!(indexes(&read.events), (1..=n).collect::<Vec<u64>>());
        if done {
            assert_eq!(n, 600);
            break;
        }
    }
    writer.await.unwrap();
}

async fn during_clears(cx: Cx) {
    let s = cx.session("clears");
    let reads = Arc::new(AtomicUsize::new(0));
    let writer = tokio::spawn({
        let (cx, s, reads) = (cx.clone(), s.clone(), Arc::clone(&reads));
        async move {
            for round in 0..60 {
                another_read(&reads, round).await;
                append(&cx, &s, many(&format!("{round}-"), 3)).await;
                clear(&cx, &s).await;
            }
        }
    });
    let mut last = 0;
    while last < 240 {
        reads.fetch_add(1, Ordering::SeqCst);
        let read = cx.store().read(&s, ReadRange::default()).await.unwrap();
        // From the marker that the answer names to the head that it names.
        let (head, first) = (read.head.get(), read.clear_index.get().max(1));
        assert_eq!(indexes(&read.events), (first..=head).collect::<Vec<u64>>());
        assert_eq!(read.events.first().is_some_and(|e| e.event_type.is_clear()), first > 1);
        assert!(head >= last, "the head went back from {last} to {head}");
        last = head;
    }
    writer.await.unwrap();
}

async fn another_handle(cx: Cx) {
    let s = cx.session("handles");
    let other = cx.another().await;
    for i in 1..=20 {
        append(&cx, &s, [ev(&format!("e{i}"))]).await;
        // What was acknowledged is read by everyone.
        assert_eq!(other.store().head(&s).await.unwrap(), i);
    }
    let _ = other.store().clear(&s, Clear::new()).await.unwrap();
    let read = cx.store().read(&s, ReadRange::default()).await.unwrap();
    assert_eq!(indexes(&read.events), [21]);
}
