//! Giving claims back.

use a2_core::{AttemptRef, Failure, ReleaseClaims, SessionId};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "release.current.at_once" => at_once: rules(R51);
    "release.current.no_failure" => no_failure: rules(R51);
    "release.current.state" => state_after: rules(R22, R51);
    "release.current.expired_not_taken_over" => expired_not_taken_over: rules(R25, R51);
    "release.current.every_kind" => every_kind: rules(R51);
    "release.current.stays_its_cursors_head" => stays_its_cursors_head: rules(R49, R51);
    "release.fence.ends_the_attempt" => ends_the_attempt: rules(R25, R51);
    "release.nothing.twice" => twice: rules(R51);
    "release.nothing.another_holder" => another_holder: rules(R51);
    "release.nothing.not_current" => not_current: rules(R51);
    "release.nothing.held_for_a_retry" => held_for_a_retry: rules(R51);
    "release.nothing.unknown" => unknown: rules(R51);
    "release.list.each_by_itself" => each_by_itself: rules(R51);
    "release.request.bounds" => bounds: rules(R10, R14);
];

/// Nothing is given back.
async fn kept(cx: &Cx, s: &SessionId, claim: AttemptRef) {
    assert_eq!(release(cx, s, [claim]).await, []);
}

async fn at_once(cx: Cx) {
    let s = cx.session("once");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!(release(&cx, &s, [head.attempt_ref()]).await, [head.attempt_ref()]);
    assert_eq!(take_one(&cx, &s, claim_as("rival", secs(1))).await.attempt(), 2);
}

async fn no_failure(cx: Cx) {
    let s = cx.session("budget");
    append(&cx, &s, [ev_for("a", "c")]).await;
    for attempt in 1..=5 {
        let head = take_one(&cx, &s, claim().max_failures(1).unwrap()).await;
        assert_eq!((head.attempt(), head.state.failure_count), (attempt, 0));
        assert_eq!(release(&cx, &s, [head.attempt_ref()]).await.len(), 1);
    }
}

async fn state_after(cx: Cx) {
    let s = cx.session("state");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head)).await;
    cx.pass(ms(10)).await;
    let head = claim_the_one(&cx, &s).await;
    cx.pass(ms(10)).await;
    release(&cx, &s, [head.attempt_ref()]).await;
    let state = state(&cx, &s, &head.head).await;
    assert_eq!(state.claim_holder, None);
    assert!(!state.is_busy(time(20)));
    assert_eq!(state.attempt_count, 2);
    assert_eq!((state.first_claimed_at, state.last_claimed_at), (Some(time(0)), Some(time(10))));
    assert_eq!((state.failure_count, state.last_failed_attempt), (1, Some(1)));
    assert_eq!((state.last_failed_at, state.last_error.as_deref()), (Some(time(0)), Some("boom")));
    assert_eq!(state.failed_at, None);
}

async fn expired_not_taken_over(cx: Cx) {
    let s = cx.session("expired");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(20))).await;
    cx.pass(ms(500)).await;
    assert_eq!(release(&cx, &s, [head.attempt_ref()]).await, [head.attempt_ref()]);
    let next = claim_the_one(&cx, &s).await;
    assert_eq!((next.attempt(), next.state.failure_count), (2, 0), "so it is no lapse");
}

async fn every_kind(cx: Cx) {
    let s = cx.session("kinds");
    let served = serve_log("c", all_types("l"));
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &served, [new]).await;
    let heads = claim_all(&cx, &s).await;
    let claims: Vec<_> = heads.iter().map(|head| head.attempt_ref()).collect();
    assert_eq!(claims.len(), 3);
    assert_eq!(release(&cx, &s, claims.clone()).await, claims);
    assert_eq!(refs(&claim_all(&cx, &s).await), refs(&heads));
}

async fn stays_its_cursors_head(cx: Cx) {
    let s = cx.session("head");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    release(&cx, &s, [head.attempt_ref()]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>1"]);
    assert_eq!(claim_the_one(&cx, &s).await.head, lane_head("c", "l", 1));
}

async fn ends_the_attempt(cx: Cx) {
    let s = cx.session("fence");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    release(&cx, &s, [head.attempt_ref()]).await;
    superseded(&cx, &s, complete(&head)).await;
    assert_eq!(failed(&cx, &s, fail(&head)).await, Failure::Superseded);
    let caused = batch([ev("b").cause(head.cause())]);
    assert_code(cx.store().append(&s, caused).await, "SUPERSEDED_ATTEMPT");
    assert_eq!(claim_the_one(&cx, &s).await.state.failure_count, 0);
}

async fn twice(cx: Cx) {
    let s = cx.session("twice");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let first = claim_the_one(&cx, &s).await;
    release(&cx, &s, [first.attempt_ref()]).await;
    kept(&cx, &s, first.attempt_ref()).await;
    let second = claim_the_one(&cx, &s).await;
    kept(&cx, &s, first.attempt_ref()).await;
    assert_eq!(state(&cx, &s, &second.head).await, second.state);
}

async fn another_holder(cx: Cx) {
    let s = cx.session("holder");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = take_one(&cx, &s, claim_as("rival", secs(5))).await;
    kept(&cx, &s, head.attempt_ref()).await;
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
    assert_eq!(busy(&cx, &s).await, secs(5));
}

async fn not_current(cx: Cx) {
    let s = cx.session("ended");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many_for_c("e", 4)).await;
    let heads = claim_all(&cx, &s).await;
    let [done, log, dead_letter, ..] = &heads[..] else { panic!("{heads:?}") };
    finish(&cx, &s, log).await;
    finish(&cx, &s, done).await;
    bury(&cx, &s, dead_letter).await;
    for head in [log, done, dead_letter] {
        kept(&cx, &s, head.attempt_ref()).await;
    }
    assert_eq!(refs(&dead(&cx, &s).await), [event_head("c", 2)]);
    clear(&cx, &s).await;
    for head in heads {
        kept(&cx, &s, head.attempt_ref()).await;
    }
    nothing(&cx, &s).await;
}

async fn held_for_a_retry(cx: Cx) {
    let s = cx.session("hold");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head).retry_after(secs(5))).await;
    kept(&cx, &s, head.attempt_ref()).await;
    assert_eq!(busy(&cx, &s).await, secs(5), "the hold stays");
}

async fn unknown(cx: Cx) {
    let s = cx.session("unknown");
    kept(&cx, &s, AttemptRef::new(event_head("c", 1), 1)).await;
    append(&cx, &s, many_on_l("e", 2)).await;
    claim_the_one(&cx, &s).await;
    let unknown = [
        (lane_head("c", "l", 1), 2),
        (lane_head("c", "l", 1), 0),
        (lane_head("c", "l", 2), 1),
        (lane_head("c", "l", 3), 1),
        (event_head("c", 1), 1),
        (log_head("c", "l", 1), 1),
    ];
    for (at, attempt) in unknown {
        kept(&cx, &s, AttemptRef::new(at, attempt)).await;
    }
    busy(&cx, &s).await;
}

async fn each_by_itself(cx: Cx) {
    let s = cx.session("list");
    append(&cx, &s, many_for_c("e", 4)).await;
    let heads = claim_all(&cx, &s).await;
    finish(&cx, &s, &heads[1]).await;
    let three: Vec<_> = heads[..3].iter().map(|head| head.attempt_ref()).collect();
    let given_back = [heads[0].attempt_ref(), heads[2].attempt_ref()];
    assert_eq!(release(&cx, &s, three).await, given_back);
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 1), event_head("c", 3)]);
    assert_eq!(release(&cx, &s, []).await, []);
}

async fn bounds(_: Cx) {
    let claims = |n: u64| (1..=n).map(|i| AttemptRef::new(event_head("c", i), 1));
    assert_code(ReleaseClaims::new(WORKER, claims(10_001)), "INVALID_INPUT");
    assert_eq!(ReleaseClaims::new(WORKER, claims(10_000)).unwrap().claims().len(), 10_000);
}
