//! Failing attempts: what a failure counts, how long it holds, when it is the last.

use std::time::Duration;

use a2_core::{Claim, DispatchedHead, FailAttempt, Failure, SessionId};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "fail.count.state" => count_state: rules(R21, R56);
    "fail.count.each_attempt" => count_each_attempt: rules(R22, R56);
    "fail.count.every_kind" => count_every_kind: rules(R15, R56);
    "fail.count.expired_not_taken_over" => expired_not_taken_over: rules(R25, R56);
    "fail.hold.retry_after" => hold_retry_after: rules(R24, R56);
    "fail.hold.none" => hold_none: rules(R56);
    "fail.hold.shorter_than_the_lease" => hold_shorter_than_the_lease: rules(R56);
    "fail.hold.durations_f12" => hold_durations_f12: rules(R13, F12);
    "fail.hold.next_claim_ends_it" => hold_next_claim_ends_it: rules(R45);
    "fail.budget.reached" => budget_reached: rules(R56);
    "fail.budget.one_at_once" => budget_one_at_once: rules(R57);
    "fail.budget.none_never" => budget_none_never: rules(R56);
    "fail.budget.passed_before" => budget_passed_before: rules(R56);
    "fail.budget.zero" => budget_zero: rules(R14);
    "fail.budget.dead_state" => budget_dead_state: rules(R21, R57);
    "fail.budget.lapses_count" => budget_lapses_count: rules(R46, R56);
    "fail.error.exactly" => error_exactly: rules(R12, F26);
    "fail.error.cut_at_64_kib" => error_cut_at_64_kib: rules(R12);
    "fail.error.the_last_one" => error_the_last_one: rules(R21, R46);
    "fail.checks.cleared" => cleared: rules(R56);
    "fail.checks.no_such_index" => no_such_index: rules(R56);
    "fail.checks.completed_or_skipped" => completed_or_skipped: rules(R56);
    "fail.checks.other_attempt" => other_attempt: rules(R25, R56);
    "fail.checks.never_claimed" => never_claimed: rules(R25, R56);
    "fail.checks.released" => released: rules(R25, R56);
    "fail.checks.taken_over" => taken_over: rules(R25, R56, F6);
    "fail.checks.no_such_head" => no_such_head: rules(R56);
    "fail.checks.lapsed_and_dead_lettered" => lapsed_and_dead_lettered: rules(R25, R56);
    "fail.repeat.failed" => repeat_failed: rules(R38, R56);
    "fail.repeat.dead_lettered" => repeat_dead_lettered: rules(R38, R56);
    "fail.repeat.redriven" => repeat_redriven: rules(R38, R56);
    "fail.repeat.after_the_hold" => repeat_after_the_hold: rules(R56);
    "fail.repeat.earlier_attempt" => repeat_earlier_attempt: rules(R56);
    "fail.pins.dead_letter_releases" => pins_dead_letter_releases: rules(R56, R64);
    "fail.then_claim.free_again" => then_claim_free_again: rules(R54);
    "fail.then_claim.held" => then_claim_held: rules(R54);
    "fail.then_claim.dead_lettered" => then_claim_dead_lettered: rules(R54);
    "fail.then_claim.superseded_and_repeated" => then_claim_superseded_and_repeated: rules(R54);
    "fail.then_claim.refused" => then_claim_refused: rules(R37, R54);
];

/// A session with one event on `c`'s lane `l`, and its claimed head.
async fn claimed(cx: &Cx, name: &str) -> (SessionId, DispatchedHead) {
    let s = cx.session(name);
    append(cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(cx, &s).await;
    (s, head)
}

/// Fails, which must be superseded and change nothing.
async fn fenced(cx: &Cx, s: &SessionId, fail: FailAttempt) {
    let before = (shown(cx, s).await, dead(cx, s).await);
    assert_eq!(failed(cx, s, fail.max_failures(1).unwrap()).await, Failure::Superseded);
    assert_eq!((shown(cx, s).await, dead(cx, s).await), before);
}

async fn count_state(cx: Cx) {
    let (s, head) = claimed(&cx, "state").await;
    cx.pass(ms(40)).await;
    let outcome = failed(&cx, &s, fail(&head).retry_after(ms(500))).await;
    assert_eq!(outcome, Failure::Failed { failure_count: 1 });
    let mut expected = first_attempt(time(0), time(540));
    expected.claim_holder = None;
    expected.failure_count = 1;
    expected.last_failed_at = Some(time(40));
    expected.last_failed_attempt = Some(1);
    expected.last_error = Some("boom".to_owned());
    assert_eq!(state(&cx, &s, &head.head).await, expected);
}

async fn count_each_attempt(cx: Cx) {
    let s = cx.session("each");
    append(&cx, &s, [ev_for("a", "c")]).await;
    for failure_count in 1..=4 {
        let head = claim_the_one(&cx, &s).await;
        assert_eq!((head.attempt(), head.state.failure_count), (failure_count, failure_count - 1));
        assert_eq!(failed(&cx, &s, fail(&head)).await, Failure::Failed { failure_count });
        let state = state(&cx, &s, &head.head).await;
        assert_eq!(state.last_failed_attempt, Some(failure_count));
        assert_eq!(state.attempt_count, failure_count, "only a claim counts attempts");
    }
}

async fn count_every_kind(cx: Cx) {
    let s = cx.session("kinds");
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &serve_log("c", all_types("l")), [new]).await;
    let heads = claim_all(&cx, &s).await;
    for head in &heads {
        assert_eq!(failed(&cx, &s, fail(head)).await, Failure::Failed { failure_count: 1 });
    }
    let again = claim_all(&cx, &s).await;
    assert_eq!(refs(&again), refs(&heads));
    assert_eq!(refs(&again).len(), 3);
    assert!(again.iter().all(|head| head.attempt() == 2 && head.state.failure_count == 1));
}

async fn expired_not_taken_over(cx: Cx) {
    let s = cx.session("expired");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_and_lapse(&cx, &s).await;
    assert_eq!(failed(&cx, &s, fail(&head)).await, Failure::Failed { failure_count: 1 });
    let head = claim_the_one(&cx, &s).await;
    assert_eq!((head.attempt(), head.state.failure_count), (2, 1), "no lapse beside it");
    assert_eq!(head.state.last_error.as_deref(), Some("boom"));
}

async fn hold_retry_after(cx: Cx) {
    let (s, head) = claimed(&cx, "hold").await;
    cx.pass(ms(100)).await;
    let _ = failed(&cx, &s, fail(&head).retry_after(ms(1_000))).await;
    assert_eq!(busy(&cx, &s).await, ms(1_000), "from now on");
    cx.pass(ms(999)).await;
    assert_eq!(busy(&cx, &s).await, ms(1));
    cx.pass(ms(1)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn hold_none(cx: Cx) {
    let (s, head) = claimed(&cx, "none").await;
    let _ = failed(&cx, &s, fail(&head)).await;
    assert!(!state(&cx, &s, &head.head).await.is_busy(time(0)));
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn hold_shorter_than_the_lease(cx: Cx) {
    let (s, head) = claimed(&cx, "shorter").await;
    let _ = failed(&cx, &s, fail(&head).retry_after(ms(10))).await;
    assert_eq!(busy(&cx, &s).await, ms(10), "the lease of a minute is over");
}

async fn hold_durations_f12(cx: Cx) {
    let year = 31_536_000_000;
    let holds = [
        (Duration::from_nanos(1), 1),
        (Duration::from_micros(1_001), 2),
        (ms(i64::MAX.unsigned_abs()), year),
        (ms(u64::MAX), year),
        (Duration::MAX, year),
    ];
    for (hold, millis) in holds {
        let (s, head) = claimed(&cx, "durations").await;
        let outcome = failed(&cx, &s, fail(&head).retry_after(hold)).await;
        assert_eq!(outcome, Failure::Failed { failure_count: 1 });
        assert_eq!(state(&cx, &s, &head.head).await.claim_expires_at, Some(time(millis)));
        assert_eq!(busy(&cx, &s).await, ms(millis.unsigned_abs()));
        assert_eq!(shown(&cx, &s).await, ["c lane l 0>1"], "the cursor is still there");
    }
}

async fn hold_next_claim_ends_it(cx: Cx) {
    let (s, head) = claimed(&cx, "ends").await;
    let _ = failed(&cx, &s, fail(&head).retry_after(ms(10))).await;
    cx.pass(ms(10)).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(30))).await;
    assert_eq!(head.state.claim_expires_at, Some(time(40)));
    finish(&cx, &s, &head).await;
    nothing(&cx, &s).await;
}

async fn budget_reached(cx: Cx) {
    let s = cx.session("reached");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let mut outcomes = Vec::new();
    for _ in 1..=3 {
        let head = claim_the_one(&cx, &s).await;
        outcomes.push(failed(&cx, &s, fail(&head).max_failures(3).unwrap()).await);
    }
    let expected = [
        Failure::Failed { failure_count: 1 },
        Failure::Failed { failure_count: 2 },
        Failure::DeadLettered { failure_count: 3 },
    ];
    assert_eq!(outcomes, expected);
    nothing(&cx, &s).await;
    assert_eq!(refs(&dead(&cx, &s).await), [lane_head("c", "l", 1)]);
}

async fn budget_one_at_once(cx: Cx) {
    let (s, head) = claimed(&cx, "once").await;
    let outcome = failed(&cx, &s, fail(&head).max_failures(1).unwrap()).await;
    assert_eq!(outcome, Failure::DeadLettered { failure_count: 1 });
    nothing(&cx, &s).await;
}

async fn budget_none_never(cx: Cx) {
    let s = cx.session("never");
    append(&cx, &s, [ev_on("a", "l")]).await;
    for failure_count in 1..=20 {
        let head = claim_the_one(&cx, &s).await;
        assert_eq!(failed(&cx, &s, fail(&head)).await, Failure::Failed { failure_count });
    }
    assert_eq!(dead(&cx, &s).await, []);
}

async fn budget_passed_before(cx: Cx) {
    let s = cx.session("passed");
    append(&cx, &s, [ev_on("a", "l")]).await;
    for _ in 0..3 {
        let head = claim_the_one(&cx, &s).await;
        let _ = failed(&cx, &s, fail(&head)).await;
    }
    let head = claim_the_one(&cx, &s).await;
    let outcome = failed(&cx, &s, fail(&head).max_failures(2).unwrap()).await;
    assert_eq!(outcome, Failure::DeadLettered { failure_count: 4 });
}

async fn budget_zero(cx: Cx) {
    let (s, head) = claimed(&cx, "zero").await;
    assert_code(fail(&head).max_failures(0), "INVALID_INPUT");
    finish(&cx, &s, &head).await;
}

async fn budget_dead_state(cx: Cx) {
    let (s, head) = claimed(&cx, "state").await;
    cx.pass(ms(40)).await;
    let last = fail(&head).max_failures(1).unwrap().retry_after(secs(5));
    let _ = failed(&cx, &s, last).await;
    let mut expected = first_attempt(time(0), time(0));
    expected.claim_holder = None;
    expected.claim_expires_at = None;
    expected.failure_count = 1;
    expected.last_failed_at = Some(time(40));
    expected.last_failed_attempt = Some(1);
    expected.last_error = Some("boom".to_owned());
    expected.failed_at = Some(time(40));
    let dead = dead(&cx, &s).await;
    assert_eq!(dead[0].state, expected);
    assert_eq!(dead[0].event, head.event);
    assert_eq!(state(&cx, &s, &head.head).await, expected);
}

async fn budget_lapses_count(cx: Cx) {
    let s = cx.session("lapses");
    append(&cx, &s, [ev_on("a", "l")]).await;
    claim_and_lapse(&cx, &s).await;
    let head = claim_the_one(&cx, &s).await;
    let outcome = failed(&cx, &s, fail(&head).max_failures(2).unwrap()).await;
    assert_eq!(outcome, Failure::DeadLettered { failure_count: 2 });
}

async fn error_exactly(cx: Cx) {
    let s = cx.session("exactly");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let texts = ["", " ", "a\nb\r\t", "x\u{0}y", "'\"\\%{}", "null", "🦀 é \u{202e}", "\\u0000"];
    for text in texts {
        let head = claim_the_one(&cx, &s).await;
        let _ = failed(&cx, &s, FailAttempt::new(head.head.clone(), head.attempt(), text)).await;
        let head = claim_the_one(&cx, &s).await;
        assert_eq!(head.state.last_error.as_deref(), Some(text));
        assert_eq!(release(&cx, &s, [head.attempt_ref()]).await.len(), 1);
    }
    let head = claim_the_one(&cx, &s).await;
    let text = "x\u{0}y";
    let last = FailAttempt::new(head.head.clone(), head.attempt(), text).max_failures(1).unwrap();
    let _ = failed(&cx, &s, last).await;
    assert_eq!(dead(&cx, &s).await[0].state.last_error.as_deref(), Some(text));
}

async fn error_cut_at_64_kib(cx: Cx) {
    let s = cx.session("cut");
    append(&cx, &s, [ev_on("a", "l")]).await;
    // 65,536 bytes stay; a character that would pass that is left out whole.
    let texts = [
        ("x".repeat(65_536), "x".repeat(65_536)),
        ("x".repeat(65_537), "x".repeat(65_536)),
        (format!("{}é", "x".repeat(65_535)), "x".repeat(65_535)),
        (format!("{}é", "x".repeat(65_534)), format!("{}é", "x".repeat(65_534))),
        ("🦀".repeat(20_000), "🦀".repeat(16_384)),
    ];
    for (text, kept) in texts {
        let head = claim_the_one(&cx, &s).await;
        let _ = failed(&cx, &s, FailAttempt::new(head.head.clone(), head.attempt(), text)).await;
        let last_error = state(&cx, &s, &head.head).await.last_error.unwrap();
        assert_eq!(last_error.len(), kept.len());
        assert!(last_error == kept);
    }
}

async fn error_the_last_one(cx: Cx) {
    let s = cx.session("last");
    append(&cx, &s, [ev_on("a", "l")]).await;
    for text in ["first", "second"] {
        let head = claim_the_one(&cx, &s).await;
        let _ = failed(&cx, &s, FailAttempt::new(head.head.clone(), head.attempt(), text)).await;
    }
    claim_and_lapse(&cx, &s).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!(head.state.last_error.as_deref(), Some("lease expired"));
    let third = FailAttempt::new(head.head.clone(), head.attempt(), "third");
    assert_eq!(failed(&cx, &s, third).await, Failure::Failed { failure_count: 4 });
    assert_eq!(state(&cx, &s, &head.head).await.last_error.as_deref(), Some("third"));
}

async fn cleared(cx: Cx) {
    let (s, head) = claimed(&cx, "cleared").await;
    clear(&cx, &s).await;
    fenced(&cx, &s, fail(&head)).await;
    fenced(&cx, &s, FailAttempt::new(event_head("c", 2), 1, "the marker")).await;
    fenced(&cx, &s, FailAttempt::new(event_head("c", 0), 1, "before all")).await;
    append(&cx, &s, [ev_on("a", "l")]).await;
    fenced(&cx, &s, fail(&head)).await;
    assert_eq!(claim_the_one(&cx, &s).await.state.failure_count, 0);
}

async fn no_such_index(cx: Cx) {
    let (s, _) = claimed(&cx, "above").await;
    for at in [lane_head("c", "l", 2), event_head("c", 2), log_head("c", "l", 7)] {
        let answer = cx.store().fail_attempt(&s, FailAttempt::new(at, 1, "x")).await;
        assert_code(answer, "NOT_FOUND");
    }
    let empty = cx.session("empty");
    let fail = FailAttempt::new(event_head("c", 1), 1, "x");
    assert_code(cx.store().fail_attempt(&empty, fail).await, "NOT_FOUND");
}

async fn completed_or_skipped(cx: Cx) {
    let s = cx.session("done");
    let served = serve_log("c", all_types("l"));
    let new = |id| ev(id).targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &served, [new("a"), new("b")]).await;
    for head in take(&cx, &s, claim().through(at(1))).await {
        finish(&cx, &s, &head).await;
        fenced(&cx, &s, fail(&head)).await;
    }
    for head in claim_all(&cx, &s).await {
        bury(&cx, &s, &head).await;
        assert!(skip(&cx, &s, &head.head).await);
        fenced(&cx, &s, fail(&head)).await;
    }
    nothing(&cx, &s).await;
}

async fn other_attempt(cx: Cx) {
    let (s, head) = claimed(&cx, "number").await;
    for attempt in [0, 2, u64::from(u32::MAX)] {
        fenced(&cx, &s, FailAttempt::new(head.head.clone(), attempt, "x")).await;
    }
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
    finish(&cx, &s, &head).await;
}

async fn never_claimed(cx: Cx) {
    let s = cx.session("never");
    append(&cx, &s, many_on_l("e", 2)).await;
    for attempt in [0, 1] {
        fenced(&cx, &s, FailAttempt::new(lane_head("c", "l", 1), attempt, "x")).await;
        fenced(&cx, &s, FailAttempt::new(lane_head("c", "l", 2), attempt, "x")).await;
    }
    assert_eq!(claim_the_one(&cx, &s).await.state.failure_count, 0);
}

async fn released(cx: Cx) {
    let (s, head) = claimed(&cx, "released").await;
    assert_eq!(release(&cx, &s, [head.attempt_ref()]).await.len(), 1);
    fenced(&cx, &s, fail(&head)).await;
    assert_eq!(claim_the_one(&cx, &s).await.state.failure_count, 0);
}

async fn taken_over(cx: Cx) {
    let s = cx.session("taken");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let first = claim_and_lapse(&cx, &s).await;
    let second = claim_the_one(&cx, &s).await;
    fenced(&cx, &s, fail(&first).retry_after(secs(90))).await;
    assert_eq!(state(&cx, &s, &second.head).await, second.state);
}

async fn no_such_head(cx: Cx) {
    let (s, head) = claimed(&cx, "unknown").await;
    let unknown = [
        event_head("c", 1),
        lane_head("c", "m", 1),
        lane_head("d", "l", 1),
        log_head("c", "l", 1),
    ];
    for at in unknown {
        fenced(&cx, &s, FailAttempt::new(at, 1, "x")).await;
    }
    finish(&cx, &s, &head).await;
}

async fn lapsed_and_dead_lettered(cx: Cx) {
    let s = cx.session("lapsed");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let lapsed = claim_and_lapse(&cx, &s).await;
    let dead_letter = take(&cx, &s, claim().max_failures(1).unwrap()).await;
    assert_eq!(dead_letter[0].attempt(), 2);
    fenced(&cx, &s, fail(&lapsed)).await;
    fenced(&cx, &s, fail(&dead_letter[0])).await;
}

async fn repeat_failed(cx: Cx) {
    let (s, head) = claimed(&cx, "failed").await;
    let request = fail(&head).retry_after(secs(5));
    let first = failed(&cx, &s, request.clone()).await;
    assert_eq!(first, Failure::Failed { failure_count: 1 });
    let before = state(&cx, &s, &head.head).await;
    cx.pass(secs(1)).await;
    assert_eq!(failed(&cx, &s, request).await, first);
    let other = FailAttempt::new(head.head.clone(), 1, "other").max_failures(1).unwrap();
    assert_eq!(failed(&cx, &s, other).await, first, "the present outcome, nothing changed");
    assert_eq!(state(&cx, &s, &head.head).await, before);
    assert_eq!(busy(&cx, &s).await, secs(4), "the hold goes on");
}

async fn repeat_dead_lettered(cx: Cx) {
    let (s, head) = claimed(&cx, "dead").await;
    bury(&cx, &s, &head).await;
    let before = dead(&cx, &s).await;
    cx.pass(secs(1)).await;
    let again = fail(&head).retry_after(secs(5));
    assert_eq!(failed(&cx, &s, again).await, Failure::DeadLettered { failure_count: 1 });
    assert_eq!(dead(&cx, &s).await, before);
}

async fn repeat_redriven(cx: Cx) {
    let (s, head) = claimed(&cx, "redriven").await;
    bury(&cx, &s, &head).await;
    assert!(retry(&cx, &s, &head.head).await);
    let again = fail(&head).max_failures(1).unwrap();
    assert_eq!(failed(&cx, &s, again).await, Failure::Failed { failure_count: 0 });
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2, "it is live");
}

async fn repeat_after_the_hold(cx: Cx) {
    let (s, head) = claimed(&cx, "hold").await;
    let _ = failed(&cx, &s, fail(&head).retry_after(ms(10))).await;
    cx.pass(ms(10)).await;
    let again = fail(&head).retry_after(secs(60));
    assert_eq!(failed(&cx, &s, again).await, Failure::Failed { failure_count: 1 });
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
    fenced(&cx, &s, fail(&head)).await;
}

async fn repeat_earlier_attempt(cx: Cx) {
    let (s, first) = claimed(&cx, "earlier").await;
    let _ = failed(&cx, &s, fail(&first)).await;
    let second = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&second)).await;
    fenced(&cx, &s, fail(&first)).await;
    assert_eq!(failed(&cx, &s, fail(&second)).await, Failure::Failed { failure_count: 2 });
    let third = claim_the_one(&cx, &s).await;
    release(&cx, &s, [third.attempt_ref()]).await;
    fenced(&cx, &s, fail(&second)).await;
    fenced(&cx, &s, fail(&third)).await;
}

async fn pins_dead_letter_releases(cx: Cx) {
    let s = cx.session("pins");
    append(&cx, &s, [ev("a"), ev_on("b", "l")]).await;
    pin(&cx, &s, &[lane_head("c", "l", 2)]).await;
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head)).await;
    assert!(is_pinned(&cx, &s).await, "a retry folds the same state");
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head).max_failures(2).unwrap()).await;
    assert!(!is_pinned(&cx, &s).await);
}

async fn then_claim_free_again(cx: Cx) {
    let s = cx.session("free");
    append(&cx, &s, [ev_on("a", "l"), ev_on("b", "l"), ev_for("c", "d")]).await;
    let head = claim_one(&cx, &s, "c").await;
    let request = fail(&head).then_claim(claim());
    let answer = cx.store().fail_attempt(&s, request).await.unwrap();
    assert_eq!(answer.outcome, Failure::Failed { failure_count: 1 });
    let heads = answer.claim.unwrap().into_heads();
    assert_eq!(refs(&heads), [lane_head("c", "l", 1), event_head("d", 3)]);
    assert_eq!(heads[0].attempt(), 2);
}

async fn then_claim_held(cx: Cx) {
    let (s, head) = claimed(&cx, "held").await;
    let request = fail(&head).retry_after(secs(7)).then_claim(claim());
    let answer = cx.store().fail_attempt(&s, request).await.unwrap();
    assert_eq!(expect_busy(Ok(answer.claim.unwrap())).retry_after, secs(7));
}

async fn then_claim_dead_lettered(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    let request = fail(&head).max_failures(1).unwrap().then_claim(claim());
    let answer = cx.store().fail_attempt(&s, request).await.unwrap();
    assert_eq!(answer.outcome, Failure::DeadLettered { failure_count: 1 });
    assert_eq!(answer.claim, Some(Claim::Settled), "the lane is blocked");
}

async fn then_claim_superseded_and_repeated(cx: Cx) {
    let s = cx.session("superseded");
    append(&cx, &s, [ev_on("a", "l"), ev_for("b", "d"), ev_for("c", "d")]).await;
    let head = claim_one(&cx, &s, "c").await;
    let _ = failed(&cx, &s, fail(&head).retry_after(secs(9))).await;
    let one = || claim().limit(1).unwrap();
    let repeated = fail(&head).then_claim(one());
    let answer = cx.store().fail_attempt(&s, repeated).await.unwrap();
    assert_eq!(answer.outcome, Failure::Failed { failure_count: 1 });
    assert_eq!(refs(&answer.claim.unwrap().into_heads()), [event_head("d", 2)]);
    let other = FailAttempt::new(head.head.clone(), 9, "x").then_claim(one());
    let answer = cx.store().fail_attempt(&s, other).await.unwrap();
    assert_eq!(answer.outcome, Failure::Superseded);
    assert_eq!(refs(&answer.claim.unwrap().into_heads()), [event_head("d", 3)]);
    let answer = cx.store().fail_attempt(&s, fail(&head)).await.unwrap();
    assert_eq!(answer.claim, None, "none was asked for");
}

async fn then_claim_refused(cx: Cx) {
    let (s, head) = claimed(&cx, "refused").await;
    let _ = failed(&cx, &s, fail(&head)).await;
    let beyond = FailAttempt::new(lane_head("c", "l", 2), 1, "x").then_claim(claim());
    assert_code(cx.store().fail_attempt(&s, beyond).await, "NOT_FOUND");
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}
