//! A log with a hole: it is reported, with its place, by whatever comes upon it, and never skipped.

use std::fmt::Debug;

use a2_core::{Error, ErrorKind, ReadRange, ReadState, ReducerName, Result, SessionId, StoreExt};
use futures_util::StreamExt;

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: rules(R6), needs(Damage);
    "corrupt.read.names_the_place" => read_names_the_place: rules(R88, R89);
    "corrupt.read.beside_the_hole" => read_beside_the_hole;
    "corrupt.read_state" => state: rules(R66);
    "corrupt.claim.event_missing" => claim_event_missing;
    "corrupt.claim.run" => claim_run: rules(R48);
    "corrupt.dead_letters" => dead_letter;
    "corrupt.stream.once" => stream_once: rules(R82);
    "corrupt.clear.rules_it_out" => clear_rules_it_out: rules(R70);
];

#[track_caller]
fn corrupt<T: Debug>(answer: Result<T>, s: &SessionId, index: u64) -> Error {
    let error = assert_code(answer, "CORRUPT");
    let ErrorKind::Corrupt { session, index: place, .. } = error.kind() else { panic!("{error}") };
    assert_eq!((session.as_ref(), *place), (Some(s), Some(at(index))));
    error
}

/// A session of five events, each for `c`'s event cursor, the third lost.
async fn holed(cx: &Cx, name: &str) -> SessionId {
    let s = cx.session(name);
    append(cx, &s, many_for_c("e", 5)).await;
    cx.lose_event(&s, at(3)).await;
    s
}

async fn read_names_the_place(cx: Cx) {
    let s = holed(&cx, "place").await;
    let error = corrupt(cx.store().read(&s, ReadRange::default()).await, &s, 3);
    assert!(!error.is_retryable() && !error.outcome_unknown(), "{error}");
    corrupt(cx.store().read(&s, ReadRange::after(at(2))).await, &s, 3);
    corrupt(cx.store().read(&s, ReadRange::after(at(2)).through(at(3))).await, &s, 3);
}

async fn read_beside_the_hole(cx: Cx) {
    let s = holed(&cx, "beside").await;
    let before = cx.store().read(&s, ReadRange::default().through(at(2))).await.unwrap();
    assert_eq!(indexes(&before.events), [1, 2]);
    let behind = cx.store().read(&s, ReadRange::after(at(3))).await.unwrap();
    assert_eq!((indexes(&behind.events), behind.head), (vec![4, 5], at(5)));
    assert_eq!(indexes(&append(&cx, &s, [ev("more")]).await), [6]);
}

async fn state(cx: Cx) {
    let s = holed(&cx, "state").await;
    let reducer = ReducerName::new("r").unwrap();
    corrupt(cx.store().read_state(&s, &reducer, ReadState::latest()).await, &s, 3);
    let before = cx.store().read_state(&s, &reducer, ReadState::through(at(2))).await.unwrap();
    assert_eq!(indexes(&before.events), [1, 2]);
}

async fn claim_event_missing(cx: Cx) {
    let s = holed(&cx, "claim").await;
    corrupt(cx.store().claim_available(&s, claim()).await, &s, 3);
    // The claim was refused as a whole; the others can be had.
    let others = claim().exclude([the_event("c", 3)]).unwrap();
    let heads = take(&cx, &s, others).await;
    assert_eq!(refs(&heads), [1, 2, 4, 5].map(|i| event_head("c", i)));
    assert!(heads.iter().all(|head| head.attempt() == 1));
}

async fn claim_run(cx: Cx) {
    let s = cx.session("run");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 5)).await;
    cx.lose_event(&s, at(3)).await;
    corrupt(cx.store().claim_available(&s, claim().run(5).unwrap()).await, &s, 3);
    let two = take_one(&cx, &s, claim().run(2).unwrap()).await;
    assert_eq!((two.attempt(), indexes(&two.run)), (1, vec![2]));
}

async fn dead_letter(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, many_for_c("e", 2)).await;
    for head in claim_all(&cx, &s).await {
        bury(&cx, &s, &head).await;
    }
    cx.lose_event(&s, at(1)).await;
    corrupt(cx.store().dead_letters(&s, page(10)).await, &s, 1);
    // Who wants to get rid of it need not have it.
    assert!(skip(&cx, &s, &event_head("c", 1)).await);
    assert_eq!(refs(&dead(&cx, &s).await), [event_head("c", 2)]);
}

async fn stream_once(cx: Cx) {
    let s = holed(&cx, "stream").await;
    let mut stream = cx.store().stream(&s, at(0));
    let mut seen = Vec::new();
    let answer = loop {
        match cx.within(secs(10), stream.next()).await.expect("the hole is told") {
            Ok(event) => seen.push(event.index.get()),
            answer => break answer,
        }
    };
    corrupt(answer, &s, 3);
    assert!([1, 2].starts_with(&seen), "in order, and nothing from behind the hole: {seen:?}");
    assert!(cx.within(secs(10), stream.next()).await.is_none(), "once");
    let mut behind = cx.store().stream(&s, at(3));
    assert_eq!(next(&cx, &mut behind).await.index, 4);
}

async fn clear_rules_it_out(cx: Cx) {
    let s = holed(&cx, "clear").await;
    let mut stream = cx.store().stream(&s, at(0));
    assert_eq!(clear(&cx, &s).await, 6);
    append(&cx, &s, [ev("new")]).await;
    // The hole belongs to a lifetime that is gone.
    assert_eq!(indexes(&log(&cx, &s).await), [6, 7]);
    assert_eq!(cx.store().head(&s).await.unwrap(), 7);
    assert_eq!(next(&cx, &mut stream).await.index, 6);
    nothing(&cx, &s).await;
    while !cx.store().reclaim(&s).await.unwrap().done {}
}
