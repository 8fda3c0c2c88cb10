//! Completing attempts: the checks in their order, what the commit does, the claim that follows.

use a2_core::{Claim, CompleteAttempt, Completion, DispatchedHead, Failure, SessionId};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "complete.request.returned_id_twice_f4" => returned_id_twice_f4: rules(R14, R52, F4);
    "complete.request.returned_without_id" => returned_without_id: rules(R14, R52);
    "complete.request.returned_with_cause" => returned_with_cause: rules(R14, R52);
    "complete.checks.cleared" => cleared: rules(R52);
    "complete.checks.index_zero" => index_zero: rules(R52);
    "complete.checks.no_such_index" => no_such_index: rules(R52);
    "complete.checks.no_such_head" => no_such_head: rules(R52);
    "complete.checks.never_claimed" => never_claimed: rules(R25, R52);
    "complete.checks.other_attempt" => other_attempt: rules(R25, R52);
    "complete.checks.taken_over" => taken_over: rules(R25, R52, F6);
    "complete.checks.failed" => failed_attempt: rules(R25, R52);
    "complete.checks.dead_lettered" => dead_lettered: rules(R25, R52);
    "complete.checks.redriven" => redriven: rules(R22, R25, R52);
    "complete.checks.superseded_before_duplicates" => superseded_before_duplicates: rules(R37, R52);
    "complete.current.expired_not_taken_over" => expired_not_taken_over: rules(R25);
    "complete.current.frees_the_next" => frees_the_next: rules(R52);
    "complete.current.ends_the_attempt" => ends_the_attempt: rules(R25, R52);
    "complete.duplicates.all_owned_f52" => all_owned_f52: rules(R52, F52);
    "complete.duplicates.some_owned_f52" => some_owned_f52: rules(R52, F52);
    "complete.duplicates.last_of_200_f52" => last_of_200_f52: rules(R52, F52);
    "complete.duplicates.own_event" => own_event: rules(R52, F52);
    "complete.duplicates.lower_lifetime_is_free" => lower_lifetime_is_free: rules(R52, R70);
    "complete.pins.released" => pins_released: rules(R52, R64);
    "complete.pins.shared" => pins_shared: rules(R64);
    "complete.has_pending.next_head" => has_pending_next_head: rules(R42);
    "complete.has_pending.served" => has_pending_served: rules(R42);
    "complete.has_pending.returned" => has_pending_returned: rules(R42);
    "complete.then_claim.next_of_lane" => then_claim_next_of_lane: rules(R54);
    "complete.then_claim.returned_event" => then_claim_returned_event: rules(R54);
    "complete.then_claim.busy_and_settled" => then_claim_busy_and_settled: rules(R54);
    "complete.then_claim.its_own_request" => then_claim_its_own_request: rules(R54);
    "complete.then_claim.none_asked" => then_claim_none_asked: rules(R54);
    "complete.then_claim.superseded_claims_too" => then_claim_superseded_claims_too: rules(R54);
    "complete.then_claim.refused_claims_nothing" => then_claim_refused_claims_nothing:
        rules(R37, R54);
    "complete.cursor.every_kind" => cursor_every_kind: rules(R16, R52);
    "complete.fence.paused_worker_f6" => paused_worker_f6: rules(R25, R50, R52, R56, F6);
    "complete.atomic.refused_changes_nothing" => refused_changes_nothing: rules(R36, R52);
];

/// A session with one event on `c`'s lane `l`, and its claimed head.
async fn claimed(cx: &Cx, name: &str) -> (SessionId, DispatchedHead) {
    let s = cx.session(name);
    append(cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(cx, &s).await;
    (s, head)
}

async fn returned_id_twice_f4(cx: Cx) {
    let (s, head) = claimed(&cx, "twice").await;
    assert_code(complete(&head).events([ev("x"), ev("x")]), "INVALID_INPUT");
    assert_code(complete(&head).events([ev("x"), ev("y"), ev("x")]), "INVALID_INPUT");
    assert_eq!(state(&cx, &s, &head.head).await, head.state, "the lease is held");
    assert_eq!(indexes(&finish_with(&cx, &s, &head, [ev("x"), ev("y")]).await), [2, 3]);
}

async fn returned_without_id(cx: Cx) {
    let (_, head) = claimed(&cx, "id").await;
    assert_code(complete(&head).events([ev("x"), event("t", "null")]), "INVALID_INPUT");
}

async fn returned_with_cause(cx: Cx) {
    let (_, head) = claimed(&cx, "cause").await;
    let caused = ev("x").cause(head.cause());
    assert_code(complete(&head).events([caused]), "INVALID_INPUT");
}

async fn cleared(cx: Cx) {
    let (s, head) = claimed(&cx, "cleared").await;
    let marker = clear(&cx, &s).await;
    assert_eq!(marker, 2);
    superseded(&cx, &s, complete(&head).events([ev("x")]).unwrap()).await;
    superseded(&cx, &s, CompleteAttempt::new(lane_head("c", "l", marker), 1)).await;
    append(&cx, &s, [ev("b")]).await;
    superseded(&cx, &s, complete(&head)).await;
    assert_eq!(indexes(&log(&cx, &s).await), [2, 3]);
}

async fn index_zero(cx: Cx) {
    let (s, _) = claimed(&cx, "zero").await;
    superseded(&cx, &s, CompleteAttempt::new(lane_head("c", "l", 0), 1)).await;
}

async fn no_such_index(cx: Cx) {
    let (s, _) = claimed(&cx, "above").await;
    for at in [lane_head("c", "l", 2), event_head("c", 2), log_head("c", "l", 9)] {
        let answer = cx.store().complete_attempt(&s, CompleteAttempt::new(at, 1)).await;
        assert_code(answer, "NOT_FOUND");
    }
    let empty = cx.session("empty");
    let complete = CompleteAttempt::new(event_head("c", 1), 1);
    assert_code(cx.store().complete_attempt(&empty, complete).await, "NOT_FOUND");
}

async fn no_such_head(cx: Cx) {
    let (s, _) = claimed(&cx, "unknown").await;
    let unknown = [
        event_head("c", 1),
        lane_head("c", "m", 1),
        lane_head("d", "l", 1),
        log_head("c", "l", 1),
    ];
    for at in unknown {
        superseded(&cx, &s, CompleteAttempt::new(at, 1).events([ev("x")]).unwrap()).await;
    }
    assert_eq!(log(&cx, &s).await.len(), 1);
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>1"]);
}

async fn never_claimed(cx: Cx) {
    let s = cx.session("never");
    append(&cx, &s, many_on_l("e", 2)).await;
    for attempt in [0, 1] {
        superseded(&cx, &s, CompleteAttempt::new(lane_head("c", "l", 1), attempt)).await;
        superseded(&cx, &s, CompleteAttempt::new(lane_head("c", "l", 2), attempt)).await;
    }
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>1"]);
}

async fn other_attempt(cx: Cx) {
    let (s, head) = claimed(&cx, "number").await;
    for attempt in [0, 2, u64::from(u32::MAX)] {
        superseded(&cx, &s, CompleteAttempt::new(head.head.clone(), attempt)).await;
    }
    finish(&cx, &s, &head).await;
}

async fn taken_over(cx: Cx) {
    let s = cx.session("taken");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let first = claim_and_lapse(&cx, &s).await;
    let second = claim_the_one(&cx, &s).await;
    superseded(&cx, &s, complete(&first).events([ev("c1")]).unwrap()).await;
    assert_eq!(state(&cx, &s, &second.head).await, second.state);
    let stored = finish_with(&cx, &s, &second, [ev("c2")]).await;
    assert_eq!(indexes(&stored), [2]);
    assert_eq!(ids(&log(&cx, &s).await), ["a", "c2"]);
}

async fn failed_attempt(cx: Cx) {
    let (s, head) = claimed(&cx, "failed").await;
    let _ = failed(&cx, &s, fail(&head)).await;
    superseded(&cx, &s, complete(&head)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn dead_lettered(cx: Cx) {
    let (s, head) = claimed(&cx, "dead").await;
    bury(&cx, &s, &head).await;
    superseded(&cx, &s, complete(&head)).await;
    assert_eq!(refs(&dead(&cx, &s).await), [head.head]);
}

async fn redriven(cx: Cx) {
    let (s, head) = claimed(&cx, "redriven").await;
    bury(&cx, &s, &head).await;
    assert!(retry(&cx, &s, &head.head).await);
    superseded(&cx, &s, complete(&head)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn superseded_before_duplicates(cx: Cx) {
    let (s, head) = claimed(&cx, "order").await;
    let _ = failed(&cx, &s, fail(&head)).await;
    superseded(&cx, &s, complete(&head).events([ev("a")]).unwrap()).await;
}

async fn expired_not_taken_over(cx: Cx) {
    let s = cx.session("expired");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_and_lapse(&cx, &s).await;
    cx.pass(secs(3_600)).await;
    let stored = finish_with(&cx, &s, &head, [ev("x")]).await;
    assert_eq!(indexes(&stored), [2]);
    nothing(&cx, &s).await;
}

async fn frees_the_next(cx: Cx) {
    let s = cx.session("next");
    append(&cx, &s, many_on_l("e", 2)).await;
    let first = claim_the_one(&cx, &s).await;
    busy(&cx, &s).await;
    finish(&cx, &s, &first).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>2"]);
    assert_eq!(claim_the_one(&cx, &s).await.head, lane_head("c", "l", 2));
}

async fn ends_the_attempt(cx: Cx) {
    let (s, head) = claimed(&cx, "ends").await;
    finish(&cx, &s, &head).await;
    assert_eq!(failed(&cx, &s, fail(&head)).await, Failure::Superseded);
    assert_eq!(release(&cx, &s, [head.attempt_ref()]).await, []);
    let caused = batch([ev("b").cause(head.cause())]);
    assert_code(cx.store().append(&s, caused).await, "SUPERSEDED_ATTEMPT");
    cx.pass(secs(120)).await;
    nothing(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>-"]);
}

async fn all_owned_f52(cx: Cx) {
    let (s, head) = claimed(&cx, "all").await;
    append(&cx, &s, [ev("k1"), ev("k2")]).await;
    let returned = complete(&head).events([ev("k1"), ev("k2")]).unwrap();
    let answer = cx.store().complete_attempt(&s, returned).await;
    assert_code(answer, "PARTIAL_DUPLICATE_BATCH");
    assert_eq!(state(&cx, &s, &head.head).await, head.state, "the claim stays");
    assert_eq!(failed(&cx, &s, fail(&head)).await, Failure::Failed { failure_count: 1 });
}

async fn some_owned_f52(cx: Cx) {
    let s = cx.session("some");
    append(&cx, &s, many_for_c("e", 2)).await;
    append(&cx, &s, [ev("k1")]).await;
    let heads = claim_all(&cx, &s).await;
    let returned = complete(&heads[0]).events([ev("k1"), ev("k3")]).unwrap();
    let answer = cx.store().complete_attempt(&s, returned).await;
    assert_code(answer, "PARTIAL_DUPLICATE_BATCH");
    assert_eq!(ids(&log(&cx, &s).await), ["e1", "e2", "k1"]);
    busy(&cx, &s).await;
    finish(&cx, &s, &heads[0]).await;
    assert_eq!(indexes(&finish_with(&cx, &s, &heads[1], [ev("k3")]).await), [4]);
}

async fn last_of_200_f52(cx: Cx) {
    let (s, head) = claimed(&cx, "many").await;
    append(&cx, &s, [ev("k200")]).await;
    let returned = || complete(&head).events(many("k", 200)).unwrap();
    assert_code(cx.store().complete_attempt(&s, returned()).await, "PARTIAL_DUPLICATE_BATCH");
    assert_eq!(log(&cx, &s).await.len(), 2);
    let stored = finish_with(&cx, &s, &head, many("k", 199)).await;
    assert_eq!(indexes(&stored), (3..=201).collect::<Vec<_>>());
}

async fn own_event(cx: Cx) {
    let (s, head) = claimed(&cx, "own").await;
    let returned = complete(&head).events([ev("a")]).unwrap();
    assert_code(cx.store().complete_attempt(&s, returned).await, "PARTIAL_DUPLICATE_BATCH");
    finish(&cx, &s, &head).await;
}

async fn lower_lifetime_is_free(cx: Cx) {
    let s = cx.session("lifetime");
    append(&cx, &s, [ev("k1")]).await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!(indexes(&finish_with(&cx, &s, &head, [ev("k1")]).await), [4]);
}

async fn pins_released(cx: Cx) {
    let s = cx.session("pins");
    append(&cx, &s, [ev("a"), ev_on("b", "l")]).await;
    pin(&cx, &s, &[lane_head("c", "l", 2)]).await;
    let head = claim_the_one(&cx, &s).await;
    assert!(is_pinned(&cx, &s).await);
    finish(&cx, &s, &head).await;
    assert!(!is_pinned(&cx, &s).await);
}

async fn pins_shared(cx: Cx) {
    let s = cx.session("shared");
    append(&cx, &s, [ev("a"), ev("b").targets([to_lane("c", "l"), to_event("d")])]).await;
    pin(&cx, &s, &[lane_head("c", "l", 2), event_head("d", 2)]).await;
    let heads = claim_all(&cx, &s).await;
    finish(&cx, &s, &heads[0]).await;
    assert!(is_pinned(&cx, &s).await, "d's pin is left");
    finish(&cx, &s, &heads[1]).await;
    assert!(!is_pinned(&cx, &s).await);
}

async fn has_pending_next_head(cx: Cx) {
    let s = cx.session("pending");
    append(&cx, &s, many_on_l("e", 2)).await;
    let first = claim_the_one(&cx, &s).await;
    assert!(completed(&cx, &s, complete(&first)).await.has_pending);
    let second = claim_the_one(&cx, &s).await;
    assert!(!completed(&cx, &s, complete(&second)).await.has_pending);
}

async fn has_pending_served(cx: Cx) {
    let s = cx.session("served");
    append(&cx, &s, [ev("a").targets(["c", "d", "e"].map(to_event)), ev_for("b", "x")]).await;
    let heads = take(&cx, &s, claim().served(serve(["c", "d", "e"]))).await;
    let served = |consumers: [&str; 2], head| complete(head).served(serve(consumers));
    assert!(completed(&cx, &s, served(["c", "d"], &heads[0])).await.has_pending, "d is busy");
    assert!(!completed(&cx, &s, served(["c", "d"], &heads[1])).await.has_pending);
    assert!(completed(&cx, &s, complete(&heads[2])).await.has_pending, "x is not claimed");
}

async fn has_pending_returned(cx: Cx) {
    let (s, head) = claimed(&cx, "returned").await;
    let returned = complete(&head).events([ev_for("b", "d")]).unwrap().served(serve(["d"]));
    assert!(completed(&cx, &s, returned).await.has_pending);
}

async fn then_claim_next_of_lane(cx: Cx) {
    let s = cx.session("steady");
    append(&cx, &s, many_on_l("e", 3)).await;
    let mut head = claim_the_one(&cx, &s).await;
    for index in 2..=3 {
        let next = then_claimed(&cx, &s, complete(&head).then_claim(claim())).await;
        head = expect_claimed(Ok(next)).heads.remove(0);
        assert_eq!((&head.head, head.attempt()), (&lane_head("c", "l", index), 1));
    }
}

async fn then_claim_returned_event(cx: Cx) {
    let (s, head) = claimed(&cx, "returned").await;
    let returned = complete(&head).events([ev_for("x", "d"), ev_on("y", "l")]).unwrap();
    let claimed =
        expect_claimed(Ok(then_claimed(&cx, &s, returned.then_claim(claim())).await));
    assert_eq!(refs(&claimed.heads), [event_head("d", 2), lane_head("c", "l", 3)]);
    assert_eq!((claimed.head, claimed.clear_index), (at(3), at(0)));
}

async fn then_claim_busy_and_settled(cx: Cx) {
    let s = cx.session("busy");
    append(&cx, &s, many_for_c("e", 2)).await;
    let heads = take(&cx, &s, claim_as(WORKER, secs(9))).await;
    let then = |head| complete(head).then_claim(claim());
    let answer = then_claimed(&cx, &s, then(&heads[0])).await;
    assert_eq!(expect_busy(Ok(answer)).retry_after, secs(9));
    assert_eq!(then_claimed(&cx, &s, then(&heads[1])).await, Claim::Settled);
}

async fn then_claim_its_own_request(cx: Cx) {
    let s = cx.session("own");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 4)).await;
    append(&cx, &s, many_for_c("f", 3)).await;
    let head = take_one(&cx, &s, claim().limit(1).unwrap()).await;
    let next = claim_as("next", secs(9)).served(serve(["c"])).run(2).unwrap().limit(2).unwrap();
    let next = next.exclude([the_event("c", 5)]).unwrap().through(at(6));
    let request = complete(&head).served(serve([])).then_claim(next);
    let answer = cx.store().complete_attempt(&s, request).await.unwrap();
    let heads = answer.claim.clone().unwrap().into_heads();
    assert_eq!(refs(&heads), [log_head("c", "l", 2), event_head("c", 6)]);
    assert_eq!(indexes(&heads[0].run), [3]);
    assert_eq!(heads[1].state.claim_expires_at, Some(time(9_000)));
    assert_eq!(heads[1].state.claim_holder.as_ref().unwrap(), "next");
    assert!(!expect_completed(Ok(answer)).has_pending, "the completion serves nothing");
}

async fn then_claim_none_asked(cx: Cx) {
    let s = cx.session("none");
    append(&cx, &s, many_for_c("e", 2)).await;
    let head = take_one(&cx, &s, claim().limit(1).unwrap()).await;
    let answer = cx.store().complete_attempt(&s, complete(&head)).await.unwrap();
    assert_eq!(answer.claim, None);
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 1);
}

async fn then_claim_superseded_claims_too(cx: Cx) {
    let s = cx.session("superseded");
    append(&cx, &s, [ev_on("a", "l"), ev_for("b", "d")]).await;
    let head = claim_one(&cx, &s, "c").await;
    let _ = failed(&cx, &s, fail(&head).retry_after(secs(9))).await;
    let again = complete(&head).then_claim(claim());
    let answer = cx.store().complete_attempt(&s, again).await.unwrap();
    assert_eq!(answer.outcome, Completion::Superseded);
    assert_eq!(refs(&answer.claim.unwrap().into_heads()), [event_head("d", 2)]);
}

async fn then_claim_refused_claims_nothing(cx: Cx) {
    let s = cx.session("refused");
    append(&cx, &s, [ev_on("a", "l"), ev_for("b", "d")]).await;
    let head = claim_one(&cx, &s, "c").await;
    let duplicate = complete(&head).events([ev("b")]).unwrap().then_claim(claim());
    let answer = cx.store().complete_attempt(&s, duplicate).await;
    assert_code(answer, "PARTIAL_DUPLICATE_BATCH");
    let beyond = CompleteAttempt::new(lane_head("c", "l", 3), 1).then_claim(claim());
    assert_code(cx.store().complete_attempt(&s, beyond).await, "NOT_FOUND");
    assert_eq!(claim_one(&cx, &s, "d").await.attempt(), 1);
}

async fn cursor_every_kind(cx: Cx) {
    let s = cx.session("kinds");
    let served = serve_log("c", all_types("l"));
    let new = |id| ev(id).targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &served, [new("a"), new("b")]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(
        refs(&heads),
        [event_head("c", 1), lane_head("c", "l", 1), log_head("c", "l", 1), event_head("c", 2)]
    );
    finish(&cx, &s, &heads[2]).await;
    assert_eq!(
        shown(&cx, &s).await,
        ["c lane l 0>1", "c log l 1>2", "c event 0>1", "c event 1>2"],
        "a lane and a log of one name are two cursors"
    );
    finish(&cx, &s, &heads[1]).await;
    finish(&cx, &s, &heads[0]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>2", "c log l 1>2", "c event 1>2"]);
}

async fn paused_worker_f6(cx: Cx) {
    for rival_first in [false, true] {
        let s = cx.session("f6");
        append(&cx, &s, [ev_on("a", "l")]).await;
        let paused = take_one(&cx, &s, claim_as(WORKER, ms(200))).await;
        cx.pass(ms(500)).await;
        let rival = take_one(&cx, &s, claim_as("b", ms(200))).await;
        if rival_first {
            finish_with(&cx, &s, &rival, [ev("c2")]).await;
        }
        let cursors = shown(&cx, &s).await;
        let renewal = renew(&cx, &s, [paused.attempt_ref()], secs(60)).await;
        assert_eq!((renewal.renewed, renewal.superseded.len()), (vec![], 1));
        assert_eq!(failed(&cx, &s, fail(&paused)).await, Failure::Superseded);
        superseded(&cx, &s, complete(&paused).events([ev("c1")]).unwrap()).await;
        assert_eq!(shown(&cx, &s).await, cursors);
        if !rival_first {
            assert_eq!(state(&cx, &s, &rival.head).await, rival.state);
            finish_with(&cx, &s, &rival, [ev("c2")]).await;
        }
        assert_eq!(ids(&log(&cx, &s).await), ["a", "c2"]);
        assert_eq!(dead(&cx, &s).await, []);
    }
}

async fn refused_changes_nothing(cx: Cx) {
    let s = cx.session("refused");
    append(&cx, &s, [ev("a"), ev("k").target(to_lane("c", "l"))]).await;
    append(&cx, &s, many_on_l("e", 1)).await;
    pin(&cx, &s, &[lane_head("c", "l", 2)]).await;
    let head = claim_the_one(&cx, &s).await;
    let served = serve_log("d", all_types("l").backfill());
    let returned = complete(&head).events([ev("x"), ev("k")]).unwrap().served(served);
    assert_code(cx.store().complete_attempt(&s, returned).await, "PARTIAL_DUPLICATE_BATCH");
    assert_eq!(indexes(&log(&cx, &s).await), [1, 2, 3]);
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>2"]);
    assert!(is_pinned(&cx, &s).await);
    busy(&cx, &s).await;
}
