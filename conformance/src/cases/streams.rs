//! Streams: history, then live events, in order, without a gap, never twice. Clears are in
//! `stream_clears`, crowds in `crowds`.

use a2_core::{Event, EventStream, Index, StoreExt};
use futures_util::StreamExt;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R80);
    "streams.history_then_live" => history_then_live: both;
    "streams.from_the_middle" => from_the_middle;
    "streams.beyond_the_head" => beyond_the_head;
    "streams.empty_session" => empty_session: rules(R1);
    "streams.events_as_stored" => events_as_stored: rules(R3);
    "streams.returned_events" => returned_events;
    "streams.another_session" => another_session;
    "streams.similar_names" => similar_names: rules(R8, F23);
    "streams.another_handle" => another_handle: both, needs(Another);
    "streams.two_on_one_session" => two_on_one_session: rules(R83);
    "streams.opened_late" => opened_late;
    "streams.polled_late" => polled_late;
    "streams.next_dropped" => next_dropped;
    "streams.dropped" => dropped: rules(R83);
    "streams.slow_reader" => slow_reader: rules(R83), slow;
    "streams.large_payloads" => large_payloads: slow;
    "streams.payload_sizes" => payload_sizes: rules(F22);
    "streams.large_batch" => large_batch: rules(F22);
];

fn stream(cx: &Cx, s: &a2_core::SessionId, start_after: u64) -> EventStream {
    cx.store().stream(s, at(start_after))
}

/// The next so many events.
async fn some(cx: &Cx, stream: &mut EventStream, n: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < n {
        events.push(next(cx, stream).await);
    }
    events
}

async fn history_then_live(cx: Cx) {
    let s = cx.session("live");
    append(&cx, &s, many("old", 5)).await;
    let mut stream = stream(&cx, &s, 0);
    assert_eq!(indexes(&some(&cx, &mut stream, 5).await), [1, 2, 3, 4, 5]);
    for i in 6..=15 {
        append(&cx, &s, [ev(&format!("new{i}"))]).await;
        let event = next(&cx, &mut stream).await;
        assert_eq!((event.index.get(), event.id.as_str()), (i, &*format!("new{i}")));
    }
    append(&cx, &s, many("batch", 3)).await;
    assert_eq!(indexes(&some(&cx, &mut stream, 3).await), [16, 17, 18]);
}

async fn from_the_middle(cx: Cx) {
    let s = cx.session("middle");
    append(&cx, &s, many("e", 5)).await;
    let mut stream = stream(&cx, &s, 3);
    assert_eq!(indexes(&some(&cx, &mut stream, 2).await), [4, 5]);
    append(&cx, &s, [ev("x")]).await;
    assert_eq!(next(&cx, &mut stream).await.index, 6);
}

async fn beyond_the_head(cx: Cx) {
    let s = cx.session("beyond");
    append(&cx, &s, many("e", 3)).await;
    let mut at_the_head = stream(&cx, &s, 3);
    let mut beyond = stream(&cx, &s, 5);
    assert!(is_waiting(&mut at_the_head));
    assert!(is_waiting(&mut beyond));
    append(&cx, &s, many("x", 4)).await;
    assert_eq!(indexes(&some(&cx, &mut at_the_head, 4).await), [4, 5, 6, 7]);
    assert_eq!(indexes(&some(&cx, &mut beyond, 2).await), [6, 7]);
}

async fn empty_session(cx: Cx) {
    let s = cx.session("empty");
    let mut stream = stream(&cx, &s, 0);
    assert!(is_waiting(&mut stream));
    append(&cx, &s, [ev("a")]).await;
    assert_eq!(next(&cx, &mut stream).await.index, 1);
}

async fn events_as_stored(cx: Cx) {
    let s = cx.session("stored");
    let event = |id: &str| event("order", r#"{"n":1.0}"#).id(id).unwrap().target(to_event("c"));
    append(&cx, &s, [event("a")]).await;
    let head = claim_one(&cx, &s, "c").await;
    append(&cx, &s, [event("b").cause(head.cause())]).await;
    let mut stream = stream(&cx, &s, 0);
    let mut events = some(&cx, &mut stream, 2).await;
    append(&cx, &s, [event("c").cause(head.cause())]).await;
    events.push(next(&cx, &mut stream).await);
    assert_eq!(events, log(&cx, &s).await);
    assert_eq!(events[2].cause, Some(head.cause()));
}

async fn returned_events(cx: Cx) {
    let s = cx.session("returned");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let mut stream = stream(&cx, &s, 1);
    assert!(is_waiting(&mut stream));
    let head = claim_one(&cx, &s, "c").await;
    let request = complete(&head).events([ev("x"), ev("y")]).unwrap();
    let done = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert_eq!(some(&cx, &mut stream, 2).await, done.events);
}

async fn another_session(cx: Cx) {
    let (a, b) = (cx.session("a"), cx.session("b"));
    let mut stream = stream(&cx, &a, 0);
    append(&cx, &b, many("b", 5)).await;
    append(&cx, &a, [ev("a")]).await;
    append(&cx, &b, many("c", 5)).await;
    append(&cx, &a, [ev("b")]).await;
    assert_eq!(ids(&some(&cx, &mut stream, 2).await), ["a", "b"]);
    assert!(is_waiting(&mut stream));
}

async fn similar_names(cx: Cx) {
    // Equal in more bytes than a channel's name may have.
    let base = cx.unique(&"x".repeat(70));
    let long = |suffix: &str| a2_core::SessionId::new(format!("{base}{suffix}")).unwrap();
    let (a, b) = (long("1"), long("2"));
    let wide = a2_core::SessionId::new(format!("{}{}", "界".repeat(22), cx.unique(""))).unwrap();
    let mut streams = [stream(&cx, &a, 0), stream(&cx, &b, 0), stream(&cx, &wide, 0)];
    for stream in &mut streams {
        assert!(is_waiting(stream));
    }
    append(&cx, &a, [ev("a")]).await;
    assert_eq!(next(&cx, &mut streams[0]).await.session, a);
    append(&cx, &wide, [ev("w")]).await;
    assert_eq!(next(&cx, &mut streams[2]).await.session, wide);
    assert!(is_waiting(&mut streams[1]));
    append(&cx, &b, [ev("b")]).await;
    assert_eq!(next(&cx, &mut streams[1]).await.session, b);
}

async fn another_handle(cx: Cx) {
    let s = cx.session("handles");
    let other = cx.another().await;
    let mut stream = stream(&cx, &s, 0);
    assert!(is_waiting(&mut stream));
    for i in 1..=10 {
        append(&other, &s, [ev(&format!("e{i}"))]).await;
        assert_eq!(next(&cx, &mut stream).await.index, i);
    }
    append(&cx, &s, [ev("own")]).await;
    append(&other, &s, [ev("theirs")]).await;
    assert_eq!(ids(&some(&cx, &mut stream, 2).await), ["own", "theirs"]);
}

async fn two_on_one_session(cx: Cx) {
    let s = cx.session("two");
    append(&cx, &s, many("e", 3)).await;
    let (mut first, mut second) = (stream(&cx, &s, 0), stream(&cx, &s, 2));
    assert_eq!(indexes(&some(&cx, &mut first, 3).await), [1, 2, 3]);
    append(&cx, &s, [ev("x")]).await;
    assert_eq!(indexes(&some(&cx, &mut first, 1).await), [4]);
    assert_eq!(indexes(&some(&cx, &mut second, 2).await), [3, 4]);
    drop(first);
    append(&cx, &s, [ev("y")]).await;
    assert_eq!(indexes(&some(&cx, &mut second, 1).await), [5]);
}

async fn opened_late(cx: Cx) {
    let s = cx.session("late");
    append(&cx, &s, many("e", 3)).await;
    let mut early = stream(&cx, &s, 0);
    assert_eq!(some(&cx, &mut early, 3).await.len(), 3);
    append(&cx, &s, [ev("x")]).await;
    // One that is opened while another is live starts where it was told to.
    let mut late = stream(&cx, &s, 1);
    assert_eq!(indexes(&some(&cx, &mut late, 3).await), [2, 3, 4]);
    append(&cx, &s, [ev("y")]).await;
    assert_eq!(next(&cx, &mut late).await.index, 5);
    assert_eq!(indexes(&some(&cx, &mut early, 2).await), [4, 5]);
}

async fn polled_late(cx: Cx) {
    let s = cx.session("polled");
    let mut stream = stream(&cx, &s, 0);
    append(&cx, &s, many("e", 50)).await;
    assert_eq!(indexes(&some(&cx, &mut stream, 50).await), (1..=50).collect::<Vec<u64>>());
}

async fn next_dropped(cx: Cx) {
    let s = cx.session("cancelled");
    let mut stream = stream(&cx, &s, 0);
    let mut seen = Vec::new();
    for i in 1..=200 {
        append(&cx, &s, [ev(&format!("e{i}"))]).await;
        // The wait is given up after any time; no event gets lost with it.
        let wait = std::time::Duration::from_micros((i * 37) % 700);
        if let Ok(event) = tokio::time::timeout(wait, stream.next()).await {
            seen.push(event.unwrap().unwrap().index.get());
        }
    }
    while seen.len() < 200 {
        seen.push(next(&cx, &mut stream).await.index.get());
    }
    assert_eq!(seen, (1..=200).collect::<Vec<u64>>());
}

async fn dropped(cx: Cx) {
    let s = cx.session("dropped");
    append(&cx, &s, [ev("a")]).await;
    for round in 0..1_000 {
        let mut stream = stream(&cx, &s, round % 2);
        if round % 3 == 0 {
            let _ = is_waiting(&mut stream);
        }
    }
    // The store goes on, and a new stream works.
    let mut stream = stream(&cx, &s, 1);
    append(&cx, &s, [ev("b")]).await;
    assert_eq!(next(&cx, &mut stream).await.index, 2);
    assert_eq!(cx.store().head(&s).await.unwrap(), 2);
}

async fn slow_reader(cx: Cx) {
    let s = cx.session("slow");
    let mut stream = stream(&cx, &s, 0);
    append(&cx, &s, [ev("first")]).await;
    assert_eq!(next(&cx, &mut stream).await.index, 1);
    // It reads nothing while 6,000 events come, then everything while more come.
    for round in 0..60 {
        append(&cx, &s, many(&format!("{round}-"), 100)).await;
    }
    for i in 2..=6_001 {
        assert_eq!(next(&cx, &mut stream).await.index, i);
        if i % 600 == 0 {
            append(&cx, &s, [ev(&format!("late{i}"))]).await;
        }
    }
    assert_eq!(next(&cx, &mut stream).await.id, "late600");
    assert_eq!(indexes(&some(&cx, &mut stream, 9).await), (6_003..=6_011).collect::<Vec<u64>>());
}

async fn large_payloads(cx: Cx) {
    let s = cx.session("large");
    let five_mib = format!("\"{}\"", "x".repeat(5 * 1024 * 1024));
    for i in 1..=10 {
        append(&cx, &s, [event("t", &five_mib).id(format!("e{i}")).unwrap()]).await;
    }
    let mut stream = stream(&cx, &s, 0);
    for i in 1..=10 {
        let event = next(&cx, &mut stream).await;
        assert_eq!(event.index, i);
        assert!(event.payload.as_str() == five_mib);
    }
}

async fn payload_sizes(cx: Cx) {
    let s = cx.session("sizes");
    let mut stream = stream(&cx, &s, 0);
    assert!(is_waiting(&mut stream));
    // Around what fits into a notification.
    for bytes in [7_900, 7_999, 8_000, 8_001, 8_100, 100_000, 1_000_000] {
        let payload = format!("\"{}\"", "x".repeat(bytes - 2));
        append(&cx, &s, [event("t", &payload)]).await;
        assert!(next(&cx, &mut stream).await.payload.as_str() == payload, "{bytes} bytes");
    }
}

async fn large_batch(cx: Cx) {
    let s = cx.session("batch");
    let mut stream = stream(&cx, &s, Index::ZERO.get());
    assert!(is_waiting(&mut stream));
    append(&cx, &s, many("e", 2_500)).await;
    append(&cx, &s, [ev("after")]).await;
    let events = some(&cx, &mut stream, 2_501).await;
    assert_eq!(indexes(&events), (1..=2_501).collect::<Vec<u64>>());
    assert_eq!(events[2_500].id, "after");
}
