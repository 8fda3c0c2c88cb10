//! Renewing leases.

use a2_core::{AttemptRef, RenewClaims, SessionId};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: both;
    "renew.current.from_now" => from_now: rules(R34, R50), manual;
    "renew.current.sooner" => sooner: rules(R50);
    "renew.current.nothing_else_changes" => nothing_else_changes: rules(R50), manual;
    "renew.current.every_kind" => every_kind: rules(R50);
    "renew.current.rivals_f9" => rivals_f9: rules(R50, F9), manual;
    "renew.superseded.taken_over" => taken_over: rules(R50, F6);
    "renew.superseded.next_attempt_of_same_holder" => next_attempt_of_same_holder: rules(R50);
    "renew.superseded.completed" => completed_heads: rules(R50);
    "renew.superseded.passed_by_the_log" => passed_by_the_log: rules(R50);
    "renew.superseded.cleared" => cleared: rules(R50, R70);
    "renew.neither.expired" => expired: rules(R50);
    "renew.neither.expired_exactly_now" => expired_exactly_now: rules(R33, R50), manual;
    "renew.neither.dead_lettered" => dead_lettered: rules(R50);
    "renew.neither.failed" => failed_attempt: rules(R50);
    "renew.neither.released" => released: rules(R50);
    "renew.neither.another_holder" => another_holder: rules(R50);
    "renew.neither.unknown" => unknown: rules(R50);
    "renew.list.each_by_itself" => each_by_itself: rules(R50);
    "renew.list.empty" => empty: rules(R50);
    "renew.list.thousands" => thousands: rules(R10, R50);
    "renew.request.bounds" => bounds: rules(R10, R13, R14);
];

async fn renewed(cx: &Cx, s: &SessionId, claim: AttemptRef) {
    let renewal = renew(cx, s, [claim.clone()], secs(60)).await;
    assert_eq!((renewal.renewed, renewal.superseded), (vec![claim], vec![]));
}

async fn lost(cx: &Cx, s: &SessionId, claim: AttemptRef) {
    let renewal = renew(cx, s, [claim.clone()], secs(60)).await;
    assert_eq!((renewal.renewed, renewal.superseded), (vec![], vec![claim]));
}

async fn neither(cx: &Cx, s: &SessionId, claim: AttemptRef) {
    let renewal = renew(cx, s, [claim], secs(60)).await;
    assert_eq!((renewal.renewed, renewal.superseded), (vec![], vec![]));
}

async fn from_now(cx: Cx) {
    let s = cx.session("now");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(100))).await;
    cx.pass(ms(40)).await;
    let renewal = renew(&cx, &s, [head.attempt_ref()], ms(100)).await;
    assert_eq!(renewal.renewed, [head.attempt_ref()]);
    assert_eq!(state(&cx, &s, &head.head).await.claim_expires_at, Some(time(140)));
    cx.pass(ms(99)).await;
    assert_eq!(busy(&cx, &s).await, ms(1));
    cx.pass(ms(1)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn sooner(cx: Cx) {
    let s = cx.session("sooner");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    let renewal = renew(&cx, &s, [head.attempt_ref()], ms(20)).await;
    assert_eq!(renewal.renewed, [head.attempt_ref()]);
    cx.pass(ms(20)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn nothing_else_changes(cx: Cx) {
    let s = cx.session("else");
    append(&cx, &s, [ev_on("a", "l")]).await;
    claim_and_lapse(&cx, &s).await;
    let head = claim_the_one(&cx, &s).await;
    cx.pass(ms(10)).await;
    renewed(&cx, &s, head.attempt_ref()).await;
    let mut expected = head.state.clone();
    expected.claim_expires_at = Some(time(60_030));
    assert_eq!(state(&cx, &s, &head.head).await, expected);
    finish(&cx, &s, &head).await;
}

async fn every_kind(cx: Cx) {
    let s = cx.session("kinds");
    let served = serve_log("c", all_types("l"));
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &served, [new]).await;
    let heads = take(&cx, &s, claim_as(WORKER, secs(5))).await;
    let claims: Vec<_> = heads.iter().map(|head| head.attempt_ref()).collect();
    assert_eq!(claims.len(), 3);
    let renewal = renew(&cx, &s, claims.clone(), secs(60)).await;
    assert_eq!((renewal.renewed, renewal.superseded), (claims, vec![]));
    for head in heads {
        let until = state(&cx, &s, &head.head).await.claim_expires_at.unwrap();
        assert!(until.since(head.state.claim_expires_at.unwrap()) > secs(50), "{head:?}");
    }
}

async fn rivals_f9(cx: Cx) {
    let s = cx.session("f9");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(300))).await;
    for _ in 0..20 {
        cx.pass(ms(100)).await;
        for _ in 0..3 {
            assert_eq!(busy(&cx, &s).await, ms(200));
        }
        let renewal = renew(&cx, &s, [head.attempt_ref()], ms(300)).await;
        assert_eq!(renewal.renewed, [head.attempt_ref()]);
    }
    assert_eq!(state(&cx, &s, &head.head).await.attempt_count, 1);
    cx.pass(ms(299)).await;
    assert_eq!(busy(&cx, &s).await, ms(1));
    cx.pass(ms(1)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn taken_over(cx: Cx) {
    let s = cx.session("taken");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let first = take_one(&cx, &s, claim_as(WORKER, ms(20))).await;
    cx.pass(ms(20)).await;
    let second = take_one(&cx, &s, claim_as("rival", secs(60))).await;
    lost(&cx, &s, first.attempt_ref()).await;
    assert_eq!(state(&cx, &s, &second.head).await, second.state, "the rival's lease is untouched");
}

async fn next_attempt_of_same_holder(cx: Cx) {
    let s = cx.session("same");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let first = claim_the_one(&cx, &s).await;
    release(&cx, &s, [first.attempt_ref()]).await;
    let second = claim_the_one(&cx, &s).await;
    lost(&cx, &s, first.attempt_ref()).await;
    renewed(&cx, &s, second.attempt_ref()).await;
}

async fn completed_heads(cx: Cx) {
    let s = cx.session("completed");
    let served = serve_log("c", all_types("l"));
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &served, [new]).await;
    for head in claim_all(&cx, &s).await {
        finish(&cx, &s, &head).await;
        lost(&cx, &s, head.attempt_ref()).await;
    }
}

async fn passed_by_the_log(cx: Cx) {
    let s = cx.session("passed");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 3)).await;
    let first = claim_the_one(&cx, &s).await;
    settle(&cx, &s, complete(&first).through(at(2)).unwrap()).await;
    lost(&cx, &s, AttemptRef::new(log_head("c", "l", 2), 1)).await;
    let third = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &third).await;
    lost(&cx, &s, first.attempt_ref()).await;
}

async fn cleared(cx: Cx) {
    let s = cx.session("cleared");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev_for("a", "c")]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(heads.len(), 2);
    clear(&cx, &s).await;
    for head in &heads {
        lost(&cx, &s, head.attempt_ref()).await;
    }
    lost(&cx, &s, AttemptRef::new(event_head("never", 2), 1)).await;
}

async fn expired(cx: Cx) {
    let s = cx.session("expired");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(20))).await;
    cx.pass(ms(20)).await;
    neither(&cx, &s, head.attempt_ref()).await;
    let next = claim_the_one(&cx, &s).await;
    assert_eq!((next.attempt(), next.state.failure_count), (2, 1), "it was not revived");
}

async fn expired_exactly_now(cx: Cx) {
    let s = cx.session("exactly");
    append(&cx, &s, many_for_c("e", 2)).await;
    let heads = take(&cx, &s, claim_as(WORKER, ms(100))).await;
    cx.pass(ms(99)).await;
    renewed(&cx, &s, heads[0].attempt_ref()).await;
    cx.pass(ms(1)).await;
    neither(&cx, &s, heads[1].attempt_ref()).await;
}

async fn dead_lettered(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    neither(&cx, &s, head.attempt_ref()).await;
    retry(&cx, &s, &head.head).await;
    neither(&cx, &s, head.attempt_ref()).await;
}

async fn failed_attempt(cx: Cx) {
    let s = cx.session("failed");
    append(&cx, &s, many_for_c("e", 2)).await;
    let heads = claim_all(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&heads[0])).await;
    let _ = failed(&cx, &s, fail(&heads[1]).retry_after(secs(90))).await;
    for head in &heads {
        let before = state(&cx, &s, &head.head).await;
        neither(&cx, &s, head.attempt_ref()).await;
        assert_eq!(state(&cx, &s, &head.head).await, before, "no lease, and the hold stays");
    }
}

async fn released(cx: Cx) {
    let s = cx.session("released");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    release(&cx, &s, [head.attempt_ref()]).await;
    neither(&cx, &s, head.attempt_ref()).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn another_holder(cx: Cx) {
    let s = cx.session("holder");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = take_one(&cx, &s, claim_as("rival", secs(5))).await;
    neither(&cx, &s, head.attempt_ref()).await;
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
}

async fn unknown(cx: Cx) {
    let s = cx.session("unknown");
    neither(&cx, &s, AttemptRef::new(event_head("c", 1), 1)).await;
    append(&cx, &s, [ev_on("a", "l"), ev_on("b", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    let unknown = [
        (event_head("c", 1), 1),
        (log_head("c", "l", 1), 1),
        (lane_head("d", "l", 1), 1),
        (lane_head("c", "m", 1), 1),
        (lane_head("c", "l", 1), 2),
        (lane_head("c", "l", 2), 1),
        (lane_head("c", "l", 3), 1),
    ];
    for (at, attempt) in unknown {
        neither(&cx, &s, AttemptRef::new(at, attempt)).await;
    }
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
}

async fn each_by_itself(cx: Cx) {
    let s = cx.session("list");
    append(&cx, &s, many_for_c("e", 5)).await;
    let heads = claim_all(&cx, &s).await;
    finish(&cx, &s, &heads[1]).await;
    bury(&cx, &s, &heads[2]).await;
    release(&cx, &s, [heads[3].attempt_ref()]).await;
    let again = claim_the_one(&cx, &s).await;
    let claims: Vec<_> = heads.iter().map(|head| head.attempt_ref()).collect();
    let renewal = renew(&cx, &s, claims, secs(30)).await;
    assert_eq!(renewal.renewed, [heads[0].attempt_ref(), heads[4].attempt_ref()]);
    assert_eq!(renewal.superseded, [heads[1].attempt_ref(), heads[3].attempt_ref()]);
    finish(&cx, &s, &again).await;
}

async fn empty(cx: Cx) {
    let s = cx.session("empty");
    let renewal = renew(&cx, &s, [], secs(30)).await;
    assert_eq!((renewal.renewed, renewal.superseded), (vec![], vec![]));
}

async fn thousands(cx: Cx) {
    let s = cx.session("thousands");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    // As many as one call holds; one of them is real.
    let unknown = (2..=10_000).map(|i| AttemptRef::new(event_head("c", i), 1));
    let renewal = renew(&cx, &s, [head.attempt_ref()].into_iter().chain(unknown), secs(30)).await;
    assert_eq!((renewal.renewed, renewal.superseded), (vec![head.attempt_ref()], vec![]));
}

async fn bounds(_: Cx) {
    let claims = |n: u64| (1..=n).map(|i| AttemptRef::new(event_head("c", i), 1));
    assert_code(RenewClaims::new(WORKER, claims(1), ms(0)), "INVALID_INPUT");
    assert_code(RenewClaims::new(WORKER, claims(10_001), secs(1)), "INVALID_INPUT");
    assert_eq!(RenewClaims::new(WORKER, claims(10_000), secs(1)).unwrap().claims().len(), 10_000);
}
