//! Log cursors step by step: `through`, skips, dead letters, failures.

use a2_core::{CompleteAttempt, DispatchedHead, Redrive, RedriveAction, SessionId};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "logs.through.everything_is_done" => everything_is_done: rules(R55);
    "logs.through.the_head_itself" => the_head_itself: rules(R55);
    "logs.through.the_logs_head" => the_logs_head: rules(R55);
    "logs.through.typed" => through_typed: rules(R31, R55);
    "logs.through.beyond_the_run" => beyond_the_run: rules(R55);
    "logs.through.above_the_logs_head" => above_the_logs_head: rules(R14, R55);
    "logs.through.above_what_it_returns" => above_what_it_returns: rules(R55);
    "logs.through.below_the_head" => below_the_head: rules(R14, R55);
    "logs.through.not_for_lanes_and_events" => not_for_lanes_and_events: rules(R14, R55);
    "logs.through.superseded_first" => superseded_first: rules(R37, R52);
    "logs.step.one_by_one" => one_by_one: rules(R15, R31);
    "logs.step.retry_never_overtaken" => retry_never_overtaken: rules(R15, F16);
    "logs.step.lapsed_head_first" => lapsed_head_first: rules(R15, R46);
    "logs.step.dead_letter_blocks" => dead_letter_blocks: rules(R23, R30);
    "logs.step.retried" => retried: rules(R23, R60);
    "logs.step.completes_with_other_types" => completes_with_other_types: rules(R27, R31);
    "logs.skip.recorded_types" => skip_recorded_types: rules(R31, R60);
    "logs.skip.declared_types" => skip_declared_types: rules(R27, R31);
    "logs.skip.last_one" => skip_last_one: rules(R31, R42);
    "logs.position.never_back" => position_never_back: rules(R20, R29);
];

/// A session with four events, all of them `c`'s log's, and the claimed first.
async fn four(cx: &Cx, name: &str) -> (SessionId, DispatchedHead) {
    let s = cx.session(name);
    append_served(cx, &s, &serve_log("c", all_types("l")), many("e", 4)).await;
    let head = claim_the_one(cx, &s).await;
    (s, head)
}

/// A session with events of these types, the `x` among them `c`'s log's.
async fn of_types(cx: &Cx, name: &str, types: &[&str]) -> SessionId {
    let s = cx.session(name);
    let events = types.iter().enumerate().map(|(i, t)| typed(&format!("{i}"), t));
    append_served(cx, &s, &serve_log("c", only_types("l", ["x"])), events).await;
    s
}

fn through(head: &DispatchedHead, index: u64) -> CompleteAttempt {
    complete(head).through(at(index)).unwrap()
}

async fn everything_is_done(cx: Cx) {
    let (s, head) = four(&cx, "done").await;
    assert!(completed(&cx, &s, through(&head, 3)).await.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c log l 3>4"]);
    let next = claim_the_one(&cx, &s).await;
    assert_eq!((next.head.clone(), next.attempt()), (log_head("c", "l", 4), 1));
}

async fn the_head_itself(cx: Cx) {
    let (s, head) = four(&cx, "itself").await;
    settle(&cx, &s, through(&head, 1)).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>2"]);
}

async fn the_logs_head(cx: Cx) {
    let (s, head) = four(&cx, "end").await;
    assert!(!completed(&cx, &s, through(&head, 4)).await.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c log l 4>-"]);
}

async fn through_typed(cx: Cx) {
    let s = of_types(&cx, "typed", &["x", "y", "x", "y", "y", "x"]).await;
    let head = claim_the_one(&cx, &s).await;
    settle(&cx, &s, through(&head, 4)).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 4>6"], "also up to an event it does not take");
}

async fn beyond_the_run(cx: Cx) {
    let s = cx.session("run");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 5)).await;
    let head = take_one(&cx, &s, claim().run(2).unwrap()).await;
    assert_eq!(indexes(&head.run), [2]);
    settle(&cx, &s, through(&head, 4)).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 4>5"]);
}

async fn above_the_logs_head(cx: Cx) {
    let (s, head) = four(&cx, "above").await;
    for index in [5, 9_007_199_254_740_991] {
        let answer = cx.store().complete_attempt(&s, through(&head, index)).await;
        assert_code(answer, "INVALID_INPUT");
    }
    assert_eq!(state(&cx, &s, &head.head).await, head.state, "the claim stays");
    finish(&cx, &s, &head).await;
}

async fn above_what_it_returns(cx: Cx) {
    let (s, head) = four(&cx, "returned").await;
    let returned = through(&head, 5).events([ev("k1"), ev("k2")]).unwrap();
    assert_code(cx.store().complete_attempt(&s, returned).await, "INVALID_INPUT");
    assert_eq!(log(&cx, &s).await.len(), 4);
    assert_eq!(shown(&cx, &s).await, ["c log l 0>1"]);
}

async fn below_the_head(cx: Cx) {
    let (s, head) = four(&cx, "below").await;
    settle(&cx, &s, through(&head, 2)).await;
    let third = claim_the_one(&cx, &s).await;
    assert_code(complete(&third).through(at(2)), "INVALID_INPUT");
    finish(&cx, &s, &third).await;
}

async fn not_for_lanes_and_events(cx: Cx) {
    let s = cx.session("kinds");
    append(&cx, &s, [ev("a").targets([to_event("c"), to_lane("c", "l")])]).await;
    for head in claim_all(&cx, &s).await {
        assert_code(complete(&head).through(at(1)), "INVALID_INPUT");
        finish(&cx, &s, &head).await;
    }
}

async fn superseded_first(cx: Cx) {
    let (s, head) = four(&cx, "superseded").await;
    let _ = failed(&cx, &s, fail(&head)).await;
    superseded(&cx, &s, through(&head, 9)).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>1"]);
}

async fn one_by_one(cx: Cx) {
    let (s, head) = four(&cx, "steps").await;
    busy(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(drain(&cx, &s, claim()).await, [2, 3, 4].map(|i| log_head("c", "l", i)));
    assert_eq!(shown(&cx, &s).await, ["c log l 4>-"]);
}

async fn retry_never_overtaken(cx: Cx) {
    let (s, head) = four(&cx, "retry").await;
    let _ = failed(&cx, &s, fail(&head).retry_after(secs(1))).await;
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("more")]).await;
    assert_eq!(busy(&cx, &s).await, secs(1));
    cx.pass(secs(1)).await;
    assert_eq!(drain(&cx, &s, claim()).await, [1, 2, 3, 4, 5].map(|i| log_head("c", "l", i)));
}

async fn lapsed_head_first(cx: Cx) {
    let s = cx.session("lapsed");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 2)).await;
    claim_and_lapse(&cx, &s).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!((head.head.index, head.attempt(), head.state.failure_count), (at(1), 2, 1));
}

async fn dead_letter_blocks(cx: Cx) {
    let (s, head) = four(&cx, "dead").await;
    bury(&cx, &s, &head).await;
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("more")]).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 0>1");
    nothing(&cx, &s).await;
    assert_eq!(refs(&dead(&cx, &s).await), [log_head("c", "l", 1)]);
}

async fn retried(cx: Cx) {
    let (s, head) = four(&cx, "retried").await;
    bury(&cx, &s, &head).await;
    assert!(retry(&cx, &s, &head.head).await);
    assert_eq!(drain(&cx, &s, claim()).await, [1, 2, 3, 4].map(|i| log_head("c", "l", i)));
}

async fn completes_with_other_types(cx: Cx) {
    let s = of_types(&cx, "types", &["x", "x", "y", "x", "y"]).await;
    let head = claim_the_one(&cx, &s).await;
    let ys = serve_log("c", only_types("l", ["y"]));
    settle(&cx, &s, complete(&head).served(ys)).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>3"], "the request's declaration");
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 3>5"], "which was recorded");
}

async fn skip_recorded_types(cx: Cx) {
    let s = of_types(&cx, "recorded", &["x", "y", "x", "y"]).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    assert!(skip(&cx, &s, &head.head).await);
    assert_eq!(shown(&cx, &s).await, ["c log l 1>3"]);
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 1);
}

async fn skip_declared_types(cx: Cx) {
    let s = of_types(&cx, "declared", &["x", "x", "y", "x", "y"]).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    let ys = serve_log("c", only_types("l", ["y"]));
    let skip = Redrive::new(head.head.clone(), RedriveAction::Skip).served(ys);
    let redriven = cx.store().redrive(&s, skip).await.unwrap();
    assert!(redriven.redriven && redriven.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c log l 1>3"]);
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 3>5"]);
}

async fn skip_last_one(cx: Cx) {
    let s = of_types(&cx, "last", &["x", "y"]).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    let redriven = redrive(&cx, &s, &head.head, RedriveAction::Skip).await;
    assert!(redriven.redriven && !redriven.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c log l 1>-"]);
}

async fn position_never_back(cx: Cx) {
    let (s, head) = four(&cx, "back").await;
    settle(&cx, &s, through(&head, 4)).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l").backfill()).await, "c log l 4>-");
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["t"])).await, "c log l 4>-");
    nothing(&cx, &s).await;
}
