//! Claiming without some cursors: which ones that leaves out, and that it costs the others nothing.

use a2_core::SessionId;

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: rules(R44), both;
    "claims.exclude.event_is_one_event" => event_is_one_event;
    "claims.exclude.lane_is_not_its_log" => lane_is_not_its_log: rules(R16);
    "claims.exclude.log_is_not_its_lane" => log_is_not_its_lane: rules(R16);
    "claims.exclude.event_is_not_its_lane" => event_is_not_its_lane;
    "claims.exclude.of_one_consumer" => of_one_consumer;
    "claims.exclude.whatever_the_head" => whatever_the_head;
    "claims.exclude.not_of_the_limit" => not_of_the_limit: rules(R45);
    "claims.exclude.not_of_the_window" => not_of_the_window: rules(R45), manual;
    "claims.exclude.everything" => everything: rules(R47);
    "claims.exclude.unknown_ones" => unknown_ones;
    "claims.exclude.ten_thousand" => ten_thousand: rules(R10);
    "claims.through.not_of_the_window" => through_not_of_the_window: rules(R45), manual;
];

/// A session with an event for `c`'s event cursor, lane `n` and log `n`.
async fn one_of_each_kind(cx: &Cx) -> SessionId {
    let s = cx.session("kinds");
    let new = ev("a").targets([to_event("c"), to_lane("c", "n")]);
    append_served(cx, &s, &serve_log("c", all_types("n")), [new]).await;
    s
}

async fn event_is_one_event(cx: Cx) {
    let s = cx.session("event");
    append(&cx, &s, many_for_c("e", 3)).await;
    let without = claim().exclude([the_event("c", 2)]).unwrap();
    assert_eq!(refs(&take(&cx, &s, without).await), [event_head("c", 1), event_head("c", 3)]);
}

async fn lane_is_not_its_log(cx: Cx) {
    let s = one_of_each_kind(&cx).await;
    let without = claim().exclude([the_lane("c", "n")]).unwrap();
    assert_eq!(refs(&take(&cx, &s, without).await), [event_head("c", 1), log_head("c", "n", 1)]);
}

async fn log_is_not_its_lane(cx: Cx) {
    let s = one_of_each_kind(&cx).await;
    let without = claim().exclude([the_log("c", "n")]).unwrap();
    assert_eq!(refs(&take(&cx, &s, without).await), [event_head("c", 1), lane_head("c", "n", 1)]);
}

async fn event_is_not_its_lane(cx: Cx) {
    let s = one_of_each_kind(&cx).await;
    let without = claim().exclude([the_event("c", 1), the_lane("c", "")]).unwrap();
    let expected = [lane_head("c", "n", 1), log_head("c", "n", 1)];
    assert_eq!(refs(&take(&cx, &s, without).await), expected);
}

async fn of_one_consumer(cx: Cx) {
    let s = cx.session("consumer");
    let both = [to_lane("c", "l"), to_lane("d", "l"), to_event("c"), to_event("d")];
    append(&cx, &s, [ev("a").targets(both)]).await;
    let without = claim().exclude([the_lane("c", "l"), the_event("d", 1)]).unwrap();
    assert_eq!(refs(&take(&cx, &s, without).await), [event_head("c", 1), lane_head("d", "l", 1)]);
}

async fn whatever_the_head(cx: Cx) {
    let s = cx.session("head");
    append(&cx, &s, many_on_l("e", 3)).await;
    let without = || claim().exclude([the_lane("c", "l")]).unwrap();
    for _ in 0..3 {
        expect_settled(cx.store().claim_available(&s, without()).await);
        let head = claim_the_one(&cx, &s).await;
        finish(&cx, &s, &head).await;
    }
}

async fn not_of_the_limit(cx: Cx) {
    let s = cx.session("limit");
    append(&cx, &s, many_for_c("e", 6)).await;
    let without = || claim().exclude((1..=3).map(|i| the_event("c", i))).unwrap();
    let two = take(&cx, &s, without().limit(2).unwrap()).await;
    assert_eq!(refs(&two), [event_head("c", 4), event_head("c", 5)]);
    assert_eq!(refs(&take(&cx, &s, without()).await), [event_head("c", 6)]);
}

async fn not_of_the_window(cx: Cx) {
    let s = cx.session("window");
    append(&cx, &s, many_for_c("e", 260)).await;
    // The first four are due last.
    take(&cx, &s, claim_as("w", secs(2)).limit(4).unwrap()).await;
    take(&cx, &s, claim_as("w", secs(1)).limit(1_000).unwrap()).await;
    cx.pass(secs(2)).await;
    let without = claim().exclude((5..=260).map(|i| the_event("c", i))).unwrap();
    let heads = take(&cx, &s, without).await;
    assert_eq!(refs(&heads), [1, 2, 3, 4].map(|i| event_head("c", i)));
}

async fn everything(cx: Cx) {
    let s = one_of_each_kind(&cx).await;
    let all = [the_event("c", 1), the_lane("c", "n"), the_log("c", "n")];
    let without = || claim().exclude(all.clone()).unwrap();
    expect_settled(cx.store().claim_available(&s, without()).await);
    assert_eq!(claim_all(&cx, &s).await.len(), 3);
    expect_settled(cx.store().claim_available(&s, without()).await);
}

async fn unknown_ones(cx: Cx) {
    let s = one_of_each_kind(&cx).await;
    let unknown = [
        the_event("c", 2),
        the_lane("c", "N"),
        the_lane("c", "n "),
        the_log("C", "n"),
        the_log("d", "n"),
        the_event("d", 1),
    ];
    assert_eq!(take(&cx, &s, claim().exclude(unknown).unwrap()).await.len(), 3);
}

async fn ten_thousand(cx: Cx) {
    let s = cx.session("thousands");
    append(&cx, &s, many_for_c("e", 2)).await;
    let cursors = |n: u64| (2..n + 2).map(|i| the_event("c", i));
    assert_code(claim().exclude(cursors(10_001)), "INVALID_INPUT");
    let without = || claim().exclude(cursors(10_000)).unwrap();
    assert_eq!(refs(&take(&cx, &s, without()).await), [event_head("c", 1)]);
    busy_for(&cx, &s, without()).await;
}

async fn through_not_of_the_window(cx: Cx) {
    let s = cx.session("through");
    append(&cx, &s, many_for_c("e", 260)).await;
    take(&cx, &s, claim_as("w", secs(2)).limit(4).unwrap()).await;
    take(&cx, &s, claim_as("w", secs(1)).limit(1_000).unwrap()).await;
    cx.pass(secs(2)).await;
    let heads = take(&cx, &s, claim().through(at(4))).await;
    assert_eq!(refs(&heads), [1, 2, 3, 4].map(|i| event_head("c", i)));
}
