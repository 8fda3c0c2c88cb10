//! Completing again: an answer that was lost is given again, a fence stays a fence.

use a2_core::{CompleteAttempt, NewEvent, SessionId};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "complete.replay.event" => event_cursor: rules(R52, F8);
    "complete.replay.lane_after_next_head_f8" => lane_after_next_head_f8: rules(R52, R53, F8);
    "complete.replay.lane_for_the_whole_lifetime" => lane_for_the_whole_lifetime: rules(R53);
    "complete.replay.event_for_the_whole_lifetime" => event_for_the_whole_lifetime: rules(R53);
    "complete.replay.log" => log_cursor: rules(R52, R53);
    "complete.replay.log_while_next_is_leased" => log_while_next_is_leased: rules(R53);
    "complete.replay.log_through" => log_through: rules(R53, R55);
    "complete.replay.log_remembers_the_last_only" => log_remembers_the_last_only: rules(R53);
    "complete.replay.log_forgets_with_a_skip" => log_forgets_with_a_skip: rules(R53);
    "complete.replay.no_events" => no_events: rules(R52);
    "complete.replay.only_ids_count" => only_ids_count: rules(R52);
    "complete.replay.other_ids" => other_ids: rules(R52);
    "complete.replay.other_order" => other_order: rules(R52);
    "complete.replay.fewer_or_more_ids" => fewer_or_more_ids: rules(R52);
    "complete.replay.log_other_ids" => log_other_ids: rules(R52);
    "complete.replay.another_attempt" => another_attempt: rules(R52);
    "complete.replay.another_attempt_same_ids" => another_attempt_same_ids: rules(R52, F8);
    "complete.replay.skipped" => skipped: rules(R52);
    "complete.replay.cleared" => cleared: rules(R52, R70);
    "complete.replay.writes_nothing" => writes_nothing: rules(R38, R52);
    "complete.replay.has_pending" => has_pending: rules(R42);
    "complete.replay.then_claim" => then_claim: rules(R54);
    "complete.replay.after_expiry" => after_expiry: rules(R53);
];

/// Completes again; the indexes of the stored events.
async fn again(cx: &Cx, s: &SessionId, complete: CompleteAttempt) -> Vec<u64> {
    let head = log(cx, s).await.len();
    let appended = expect_completed(cx.store().complete_attempt(s, complete).await);
    assert!(appended.replayed);
    assert_eq!(log(cx, s).await.len(), head, "nothing is appended");
    indexes(&appended.events)
}

async fn mismatch(cx: &Cx, s: &SessionId, complete: CompleteAttempt) {
    let answer = cx.store().complete_attempt(s, complete).await;
    assert_code(answer, "PARTIAL_DUPLICATE_BATCH");
}

fn returning(
    complete: CompleteAttempt,
    events: impl IntoIterator<Item = NewEvent>,
) -> CompleteAttempt {
    complete.events(events).unwrap()
}

async fn event_cursor(cx: Cx) {
    let s = cx.session("event");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    let request = returning(complete(&head), [ev("k1"), ev("k2")]);
    let first = completed(&cx, &s, request.clone()).await;
    append(&cx, &s, [ev("later")]).await;
    let second = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert!(second.replayed);
    assert_eq!(second.events, first.events);
    assert_eq!(indexes(&second.events), [2, 3]);
    assert_eq!(ids(&log(&cx, &s).await), ["a", "k1", "k2", "later"]);
}

async fn lane_after_next_head_f8(cx: Cx) {
    let s = cx.session("f8");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    let request = returning(complete(&head), [ev("k1"), ev("k2")]);
    settle(&cx, &s, request.clone()).await;
    assert_eq!(again(&cx, &s, request.clone()).await, [3, 4]);
    let next = take_one(&cx, &s, claim_as("another", secs(9))).await;
    assert_eq!(next.head, lane_head("c", "l", 2));
    assert_eq!(again(&cx, &s, request.clone()).await, [3, 4]);
    assert_eq!(state(&cx, &s, &next.head).await, next.state, "the next head's lease is untouched");
    finish(&cx, &s, &next).await;
    assert_eq!(again(&cx, &s, request).await, [3, 4]);
    nothing(&cx, &s).await;
}

async fn lane_for_the_whole_lifetime(cx: Cx) {
    let s = cx.session("lane");
    append(&cx, &s, many_on_l("e", 5)).await;
    let mut requests = Vec::new();
    for i in 1..=5 {
        let head = claim_the_one(&cx, &s).await;
        let request = returning(complete(&head), [ev(&format!("k{i}"))]);
        settle(&cx, &s, request.clone()).await;
        requests.push(request);
    }
    cx.pass(secs(86_400)).await;
    for (request, index) in requests.into_iter().zip(6..) {
        assert_eq!(again(&cx, &s, request).await, [index]);
    }
}

async fn event_for_the_whole_lifetime(cx: Cx) {
    let s = cx.session("event");
    append(&cx, &s, many_for_c("e", 5)).await;
    let heads = claim_all(&cx, &s).await;
    for head in &heads {
        finish(&cx, &s, head).await;
    }
    for head in &heads {
        assert_eq!(again(&cx, &s, complete(head)).await, [0; 0]);
    }
}

async fn log_cursor(cx: Cx) {
    let s = cx.session("log");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("a")]).await;
    let head = claim_the_one(&cx, &s).await;
    let request = returning(complete(&head), [ev("k1")]);
    settle(&cx, &s, request.clone()).await;
    assert_eq!(again(&cx, &s, request).await, [2]);
    assert_eq!(shown(&cx, &s).await, ["c log l 1>2"]);
}

async fn log_while_next_is_leased(cx: Cx) {
    let s = cx.session("leased");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    let next = claim_the_one(&cx, &s).await;
    assert_eq!(again(&cx, &s, complete(&head)).await, [0; 0]);
    assert_eq!(state(&cx, &s, &next.head).await, next.state);
    let _ = failed(&cx, &s, fail(&next)).await;
    assert_eq!(again(&cx, &s, complete(&head)).await, [0; 0], "a failure is no completion");
}

async fn log_through(cx: Cx) {
    let s = cx.session("through");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 4)).await;
    let head = claim_the_one(&cx, &s).await;
    let request = complete(&head).through(at(3)).unwrap();
    settle(&cx, &s, request.clone()).await;
    assert_eq!(again(&cx, &s, request).await, [0; 0]);
    for passed in [2, 3] {
        superseded(&cx, &s, CompleteAttempt::new(log_head("c", "l", passed), 1)).await;
    }
    assert_eq!(shown(&cx, &s).await, ["c log l 3>4"]);
}

async fn log_remembers_the_last_only(cx: Cx) {
    let s = cx.session("last");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 3)).await;
    let first = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &first).await;
    assert_eq!(again(&cx, &s, complete(&first)).await, [0; 0]);
    let second = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &second).await;
    superseded(&cx, &s, complete(&first)).await;
    assert_eq!(again(&cx, &s, complete(&second)).await, [0; 0]);
    assert_eq!(shown(&cx, &s).await, ["c log l 2>3"]);
}

async fn log_forgets_with_a_skip(cx: Cx) {
    let s = cx.session("skip");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 3)).await;
    let first = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &first).await;
    let second = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &second).await;
    assert_eq!(again(&cx, &s, complete(&first)).await, [0; 0], "a dead letter is no skip");
    assert!(skip(&cx, &s, &second.head).await);
    superseded(&cx, &s, complete(&first)).await;
    superseded(&cx, &s, complete(&second)).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 2>3"]);
}

async fn no_events(cx: Cx) {
    let s = cx.session("none");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(again(&cx, &s, complete(&head)).await, [0; 0]);
}

async fn only_ids_count(cx: Cx) {
    let s = cx.session("ids");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish_with(&cx, &s, &head, [ev("k")]).await;
    let other = event("other", "[1]").id("k").unwrap().target(to_event("d"));
    let answer = cx.store().complete_attempt(&s, returning(complete(&head), [other])).await;
    let appended = expect_completed(answer);
    assert!(appended.replayed);
    assert_eq!(appended.events[0].event_type, "t");
    assert_eq!(appended.events[0].payload.as_str(), "null");
    nothing(&cx, &s).await;
}

async fn other_ids(cx: Cx) {
    let s = cx.session("other");
    append(&cx, &s, many_for_c("e", 2)).await;
    let heads = claim_all(&cx, &s).await;
    finish_with(&cx, &s, &heads[0], [ev("k1"), ev("k2")]).await;
    mismatch(&cx, &s, returning(complete(&heads[0]), [ev("k1"), ev("k3")])).await;
    mismatch(&cx, &s, returning(complete(&heads[0]), [ev("k3"), ev("k4")])).await;
    mismatch(&cx, &s, returning(complete(&heads[0]), [ev("e1"), ev("e2")])).await;
    finish(&cx, &s, &heads[1]).await;
    mismatch(&cx, &s, returning(complete(&heads[1]), [ev("k1"), ev("k2")])).await;
    assert_eq!(ids(&log(&cx, &s).await), ["e1", "e2", "k1", "k2"]);
}

async fn other_order(cx: Cx) {
    let s = cx.session("order");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish_with(&cx, &s, &head, [ev("k1"), ev("k2"), ev("k3")]).await;
    mismatch(&cx, &s, returning(complete(&head), [ev("k2"), ev("k1"), ev("k3")])).await;
    mismatch(&cx, &s, returning(complete(&head), [ev("k1"), ev("k3"), ev("k2")])).await;
    assert_eq!(again(&cx, &s, returning(complete(&head), many("k", 3))).await, [2, 3, 4]);
}

async fn fewer_or_more_ids(cx: Cx) {
    let s = cx.session("number");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish_with(&cx, &s, &head, many("k", 2)).await;
    append(&cx, &s, [ev("k3")]).await;
    mismatch(&cx, &s, complete(&head)).await;
    mismatch(&cx, &s, returning(complete(&head), many("k", 1))).await;
    mismatch(&cx, &s, returning(complete(&head), [ev("k2")])).await;
    mismatch(&cx, &s, returning(complete(&head), many("k", 3))).await;
    assert_eq!(again(&cx, &s, returning(complete(&head), many("k", 2))).await, [2, 3]);
}

async fn log_other_ids(cx: Cx) {
    let s = cx.session("log");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("a")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish_with(&cx, &s, &head, [ev("k1"), ev("k2")]).await;
    mismatch(&cx, &s, complete(&head)).await;
    mismatch(&cx, &s, returning(complete(&head), [ev("k2"), ev("k1")])).await;
    mismatch(&cx, &s, returning(complete(&head), [ev("x"), ev("y")])).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>2"]);
}

async fn another_attempt(cx: Cx) {
    let s = cx.session("attempt");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev_for("a", "c"), ev("b")]).await;
    let lapsed = take(&cx, &s, claim_as("lapsing", ms(20))).await;
    assert_eq!(refs(&lapsed), [event_head("c", 1), log_head("c", "l", 1)]);
    cx.pass(ms(20)).await;
    for head in claim_all(&cx, &s).await {
        finish(&cx, &s, &head).await;
    }
    for head in &lapsed {
        superseded(&cx, &s, complete(head)).await;
        superseded(&cx, &s, CompleteAttempt::new(head.head.clone(), 3)).await;
    }
}

async fn another_attempt_same_ids(cx: Cx) {
    let s = cx.session("same");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let lapsed = claim_and_lapse(&cx, &s).await;
    let head = claim_the_one(&cx, &s).await;
    finish_with(&cx, &s, &head, [ev("k")]).await;
    superseded(&cx, &s, returning(complete(&lapsed), [ev("k")])).await;
}

async fn skipped(cx: Cx) {
    let s = cx.session("skipped");
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &serve_log("c", all_types("l")), [new]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(heads.len(), 3);
    for head in &heads {
        bury(&cx, &s, head).await;
        assert!(skip(&cx, &s, &head.head).await);
        superseded(&cx, &s, complete(head)).await;
        superseded(&cx, &s, returning(complete(head), [ev("x")])).await;
        superseded(&cx, &s, CompleteAttempt::new(head.head.clone(), 0)).await;
    }
    assert_eq!(log(&cx, &s).await.len(), 1);
}

async fn cleared(cx: Cx) {
    let s = cx.session("cleared");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev_on("a", "l")]).await;
    let heads = claim_all(&cx, &s).await;
    for head in &heads {
        finish(&cx, &s, head).await;
    }
    clear(&cx, &s).await;
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev_on("b", "l")]).await;
    for head in &heads {
        superseded(&cx, &s, complete(head)).await;
    }
}

async fn writes_nothing(cx: Cx) {
    let s = cx.session("nothing");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish_with(&cx, &s, &head, [ev("k")]).await;
    let served = serve_log("d", all_types("l").backfill());
    let other = returning(complete(&head), [ev("k").target(to_event("e"))]).served(served);
    assert_eq!(again(&cx, &s, other).await, [2]);
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>-"], "no cursor is made");
}

async fn has_pending(cx: Cx) {
    let s = cx.session("pending");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    assert!(!completed(&cx, &s, complete(&head)).await.has_pending);
    append(&cx, &s, [ev_for("b", "d")]).await;
    let repeat = |served| complete(&head).served(served);
    for (served, expected) in [(serve(["c", "d"]), true), (serve(["c"]), false)] {
        let answer = cx.store().complete_attempt(&s, repeat(served)).await;
        assert_eq!(expect_completed(answer).has_pending, expected, "as it is now");
    }
}

async fn then_claim(cx: Cx) {
    let s = cx.session("then");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    let answer = cx.store().complete_attempt(&s, complete(&head).then_claim(claim())).await;
    let answer = answer.unwrap();
    assert_eq!(refs(&answer.claim.clone().unwrap().into_heads()), [lane_head("c", "l", 2)]);
    assert!(expect_completed(Ok(answer)).replayed);
}

async fn after_expiry(cx: Cx) {
    let s = cx.session("expiry");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    let request = returning(complete(&head), [ev("k")]);
    settle(&cx, &s, request.clone()).await;
    cx.pass(secs(61)).await;
    assert_eq!(again(&cx, &s, request).await, [2], "the lease does not matter any more");
}
