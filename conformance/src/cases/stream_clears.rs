//! Streams over a clear: they go on at the latest marker, the one jump they may make.

use a2_core::{Clear, EventStream, StoreExt};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R81);
    "streams.clear.before" => before: rules(F47);
    "streams.clear.start_below" => start_below: rules(F47);
    "streams.clear.start_at_the_marker" => start_at_the_marker: rules(F47);
    "streams.clear.start_above_the_marker" => start_above_the_marker: rules(F47);
    "streams.clear.caught_up" => caught_up: rules(F47), both;
    "streams.clear.within_history" => within_history: rules(F47);
    "streams.clear.twice_while_behind" => twice_while_behind: rules(F47);
    "streams.clear.waiting_beyond_the_head" => waiting_beyond_the_head;
    "streams.clear.reclaimed" => reclaimed: rules(R73);
    "streams.clear.another_handle" => another_handle: needs(Another);
    "streams.clear.during_appends" => during_appends: rules(R80, F47);
];

/// The indexes up to and with `last`.
async fn up_to(cx: &Cx, stream: &mut EventStream, last: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.last() != Some(&last) {
        seen.push(next(cx, stream).await.index.get());
        assert!(seen.last() <= Some(&last), "{seen:?} passed over {last}");
    }
    seen
}

async fn before(cx: Cx) {
    let s = cx.session("before");
    append(&cx, &s, many("old", 100)).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 20)).await;
    let mut stream = cx.store().stream(&s, at(0));
    assert_eq!(up_to(&cx, &mut stream, 121).await, (101..=121).collect::<Vec<u64>>());
}

async fn start_below(cx: Cx) {
    let s = cx.session("below");
    append(&cx, &s, many("old", 100)).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 2)).await;
    for start in [50, 100] {
        let mut stream = cx.store().stream(&s, at(start));
        assert_eq!(up_to(&cx, &mut stream, 103).await, [101, 102, 103]);
    }
}

async fn start_at_the_marker(cx: Cx) {
    let s = cx.session("at");
    append(&cx, &s, many("old", 3)).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 2)).await;
    let mut stream = cx.store().stream(&s, at(4));
    assert_eq!(up_to(&cx, &mut stream, 6).await, [5, 6], "the marker is not yielded");
}

async fn start_above_the_marker(cx: Cx) {
    let s = cx.session("above");
    append(&cx, &s, many("old", 3)).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 3)).await;
    let mut stream = cx.store().stream(&s, at(5));
    assert_eq!(up_to(&cx, &mut stream, 7).await, [6, 7]);
}

async fn caught_up(cx: Cx) {
    let s = cx.session("caught-up");
    append(&cx, &s, many("old", 3)).await;
    let mut stream = cx.store().stream(&s, at(0));
    assert_eq!(up_to(&cx, &mut stream, 3).await, [1, 2, 3]);
    clear(&cx, &s).await;
    let marker = next(&cx, &mut stream).await;
    assert_eq!((marker.index.get(), marker.event_type.as_str()), (4, "a2.clear"));
    append(&cx, &s, many("new", 2)).await;
    assert_eq!(up_to(&cx, &mut stream, 6).await, [5, 6]);
}

/// What was yielded before a jump to the marker is dense, what comes from the marker on too.
#[track_caller]
fn one_jump(seen: &[u64], marker: u64, last: u64) {
    let jump = seen.iter().position(|index| *index == marker).expect("the marker is yielded");
    let (old, new) = seen.split_at(jump);
    assert_eq!(old, (1..=old.len() as u64).collect::<Vec<_>>(), "before the jump");
    assert_eq!(new, (marker..=last).collect::<Vec<_>>(), "after the jump");
}

async fn within_history(cx: Cx) {
    let s = cx.session("within");
    for round in 0..5 {
        append(&cx, &s, many(&format!("{round}-"), 1_000)).await;
    }
    let mut stream = cx.store().stream(&s, at(0));
    let mut seen = up_to(&cx, &mut stream, 2).await;
    assert_eq!(clear(&cx, &s).await, 5_001);
    append(&cx, &s, many("new", 20)).await;
    seen.extend(up_to(&cx, &mut stream, 5_021).await);
    one_jump(&seen, 5_001, 5_021);
}

async fn twice_while_behind(cx: Cx) {
    let s = cx.session("twice");
    append(&cx, &s, many("a", 3)).await;
    let mut stream = cx.store().stream(&s, at(0));
    assert_eq!(up_to(&cx, &mut stream, 3).await, [1, 2, 3]);
    clear(&cx, &s).await;
    append(&cx, &s, many("b", 3)).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("c", 2)).await;
    let seen = up_to(&cx, &mut stream, 10).await;
    // From the latest marker on; what it may have fetched before came in order.
    assert!(seen.ends_with(&[8, 9, 10]), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
}

async fn waiting_beyond_the_head(cx: Cx) {
    let s = cx.session("waiting");
    append(&cx, &s, many("e", 3)).await;
    let mut stream = cx.store().stream(&s, at(6));
    assert!(is_waiting(&mut stream));
    // The marker is at 4, below where it starts.
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 4)).await;
    assert_eq!(up_to(&cx, &mut stream, 8).await, [7, 8]);
}

async fn reclaimed(cx: Cx) {
    let s = cx.session("reclaimed");
    append(&cx, &s, many("old", 2_000)).await;
    let mut stream = cx.store().stream(&s, at(0));
    let mut seen = up_to(&cx, &mut stream, 2).await;
    assert_eq!(clear(&cx, &s).await, 2_001);
    while !cx.store().reclaim(&s).await.unwrap().done {}
    append(&cx, &s, many("new", 3)).await;
    seen.extend(up_to(&cx, &mut stream, 2_004).await);
    // That the rows are gone is no hole.
    one_jump(&seen, 2_001, 2_004);
}

async fn another_handle(cx: Cx) {
    let s = cx.session("handles");
    let other = cx.another().await;
    append(&cx, &s, many("old", 3)).await;
    let mut stream = cx.store().stream(&s, at(0));
    assert_eq!(up_to(&cx, &mut stream, 3).await, [1, 2, 3]);
    let cleared = other.store().clear(&s, Clear::new()).await.unwrap();
    assert_eq!(cleared.index, 4);
    append(&other, &s, [ev("new")]).await;
    assert_eq!(up_to(&cx, &mut stream, 5).await, [4, 5]);
}

async fn during_appends(cx: Cx) {
    let s = cx.session("during");
    let writer = tokio::spawn({
        let (cx, s) = (cx.clone(), s.clone());
        async move {
            for round in 0..30 {
                append(&cx, &s, many(&format!("{round}-"), 7)).await;
                if round % 3 == 2 {
                    clear(&cx, &s).await;
                }
            }
            append(&cx, &s, [ev("last")]).await;
        }
    });
    // 30 batches of 7, 10 markers: the last event is 221.
    let mut stream = cx.store().stream(&s, at(0));
    let mut seen = Vec::new();
    loop {
        let event = next(&cx, &mut stream).await;
        if let Some(last) = seen.last() {
            let jumped = event.index.get() != last + 1;
            assert!(event.index.get() > *last, "{} after {last}", event.index);
            assert!(!jumped || event.event_type.is_clear(), "a jump to {event:?}");
        }
        seen.push(event.index.get());
        if event.id == "last" {
            break;
        }
    }
    assert_eq!(seen.last(), Some(&221));
    writer.await.unwrap();
    assert_eq!(cx.store().head(&s).await.unwrap(), 221);
}
