//! Event cursors: one per consumer and event, all of them side by side.

use a2_core::Failure;

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: rules(R15);
    "event_cursors.concurrent.all_at_once" => all_at_once;
    "event_cursors.concurrent.finished_in_any_order" => finished_in_any_order;
    "event_cursors.concurrent.held_one_holds_no_other" => held_one_holds_no_other;
    "event_cursors.concurrent.dead_one_blocks_no_other" => dead_one_blocks_no_other;
    "event_cursors.concurrent.later_ones_are_free" => later_ones_are_free;
    "event_cursors.two_consumers.independent" => two_consumers;
    "event_cursors.position.head_minus_one" => head_minus_one: rules(R20);
    "event_cursors.position.gone_when_done" => gone_when_done: rules(R16, R59);
    "event_cursors.target.only_its_events" => only_its_events: rules(R17);
    "event_cursors.target.twice" => target_twice: rules(R17);
    "event_cursors.state.each_its_own" => each_its_own: rules(R21);
    "event_cursors.done.not_again" => not_again: rules(R40);
    "event_cursors.done.by_a_skip" => by_a_skip: rules(R60);
    "event_cursors.cleared.gone" => cleared: rules(R70);
    "event_cursors.cleared.index_is_not_reused" => index_is_not_reused: rules(R72);
];

async fn all_at_once(cx: Cx) {
    let s = cx.session("all");
    append(&cx, &s, many_for_c("e", 3)).await;
    append(&cx, &s, many_for_c("f", 2)).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [1, 2, 3, 4, 5].map(|i| event_head("c", i)));
    assert!(heads.iter().all(|head| head.attempt() == 1));
}

async fn finished_in_any_order(cx: Cx) {
    let s = cx.session("order");
    append(&cx, &s, many_for_c("e", 3)).await;
    let heads = claim_all(&cx, &s).await;
    finish(&cx, &s, &heads[2]).await;
    assert_eq!(shown(&cx, &s).await, ["c event 0>1", "c event 1>2"]);
    finish(&cx, &s, &heads[0]).await;
    assert_eq!(shown(&cx, &s).await, ["c event 1>2"]);
    finish(&cx, &s, &heads[1]).await;
    nothing(&cx, &s).await;
}

async fn held_one_holds_no_other(cx: Cx) {
    let s = cx.session("held");
    append(&cx, &s, many_for_c("e", 3)).await;
    let head = take_one(&cx, &s, claim().limit(1).unwrap()).await;
    let _ = failed(&cx, &s, fail(&head).retry_after(secs(9))).await;
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 2), event_head("c", 3)]);
}

async fn dead_one_blocks_no_other(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, many_for_c("e", 2)).await;
    let head = take_one(&cx, &s, claim().limit(1).unwrap()).await;
    bury(&cx, &s, &head).await;
    append(&cx, &s, many_for_c("f", 1)).await;
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 2), event_head("c", 3)]);
    assert_eq!(shown(&cx, &s).await, ["c event 0>1", "c event 1>2", "c event 2>3"]);
}

async fn later_ones_are_free(cx: Cx) {
    let s = cx.session("later");
    append(&cx, &s, many_for_c("e", 1)).await;
    claim_the_one(&cx, &s).await;
    append(&cx, &s, many_for_c("f", 1)).await;
    assert_eq!(claim_the_one(&cx, &s).await.head, event_head("c", 2));
}

async fn two_consumers(cx: Cx) {
    let s = cx.session("consumers");
    append(&cx, &s, [ev("a").targets([to_event("c"), to_event("d")])]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [event_head("c", 1), event_head("d", 1)]);
    finish(&cx, &s, &heads[0]).await;
    assert_eq!(shown(&cx, &s).await, ["d event 0>1"]);
    assert_eq!(failed(&cx, &s, fail(&heads[1])).await, Failure::Failed { failure_count: 1 });
    assert_eq!(claim_the_one(&cx, &s).await.head, event_head("d", 1));
}

async fn head_minus_one(cx: Cx) {
    let s = cx.session("position");
    append(&cx, &s, many("e", 4)).await;
    append(&cx, &s, [ev_for("a", "c"), ev("b"), ev_for("c", "c")]).await;
    assert_eq!(shown(&cx, &s).await, ["c event 4>5", "c event 6>7"]);
}

async fn gone_when_done(cx: Cx) {
    let s = cx.session("gone");
    append(&cx, &s, many_for_c("e", 1)).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, [""; 0]);
}

async fn only_its_events(cx: Cx) {
    let s = cx.session("only");
    append(&cx, &s, [ev("a"), ev_for("b", "c"), ev_on("c", "l"), ev_for("d", "d")]).await;
    let c = claim().served(serve(["c"]));
    let heads = refs(&take(&cx, &s, c).await);
    assert_eq!(heads, [event_head("c", 2), lane_head("c", "l", 3)]);
}

async fn target_twice(cx: Cx) {
    let s = cx.session("twice");
    append(&cx, &s, [ev("a").targets([to_event("c"), to_event("c")])]).await;
    assert_eq!(drain(&cx, &s, claim()).await, [event_head("c", 1)]);
}

async fn each_its_own(cx: Cx) {
    let s = cx.session("state");
    append(&cx, &s, many_for_c("e", 2)).await;
    let heads = claim_all(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&heads[0])).await;
    assert_eq!(state(&cx, &s, &heads[1].head).await, heads[1].state);
    let again = claim_the_one(&cx, &s).await;
    assert_eq!((again.head.clone(), again.attempt()), (event_head("c", 1), 2));
    finish(&cx, &s, &heads[1]).await;
    finish(&cx, &s, &again).await;
}

async fn not_again(cx: Cx) {
    let s = cx.session("again");
    append(&cx, &s, many_for_c("e", 1)).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    append(&cx, &s, many_for_c("e", 1)).await;
    cx.pass(secs(86_400)).await;
    nothing(&cx, &s).await;
}

async fn by_a_skip(cx: Cx) {
    let s = cx.session("skip");
    append(&cx, &s, many_for_c("e", 2)).await;
    let head = take_one(&cx, &s, claim().limit(1).unwrap()).await;
    bury(&cx, &s, &head).await;
    assert!(skip(&cx, &s, &head.head).await);
    assert_eq!(shown(&cx, &s).await, ["c event 1>2"]);
    assert_eq!(drain(&cx, &s, claim()).await, [event_head("c", 2)]);
}

async fn cleared(cx: Cx) {
    let s = cx.session("cleared");
    append(&cx, &s, many_for_c("e", 3)).await;
    let heads = take(&cx, &s, claim().limit(2).unwrap()).await;
    bury(&cx, &s, &heads[0]).await;
    clear(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, [""; 0]);
    nothing(&cx, &s).await;
    superseded(&cx, &s, complete(&heads[1])).await;
}

async fn index_is_not_reused(cx: Cx) {
    let s = cx.session("reused");
    append(&cx, &s, many_for_c("e", 1)).await;
    claim_the_one(&cx, &s).await;
    clear(&cx, &s).await;
    append(&cx, &s, many_for_c("e", 1)).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!((head.head.clone(), head.attempt()), (event_head("c", 3), 1), "the id is free");
}
