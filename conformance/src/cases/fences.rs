//! Appending under the fence of an attempt, and what it says about pending work.

use a2_core::{
    Append, Cause, DispatchedHead, LogDeclaration, Redrive, RedriveAction, ReleaseClaims,
    SessionId, StoreExt,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "append.cause.stored" => cause_stored: rules(R3, R40);
    "append.cause.every_kind_of_cursor" => cause_every_kind_of_cursor: rules(R3, R25);
    "append.cause.never_claimed" => cause_never_claimed: rules(R25, R40);
    "append.cause.wrong_number" => cause_wrong_number: rules(R25, R40);
    "append.cause.expired_lease_is_current" => cause_expired_lease_is_current: rules(R25);
    "append.cause.taken_over" => cause_taken_over: rules(R25);
    "append.cause.failed" => cause_failed: rules(R25);
    "append.cause.released" => cause_released: rules(R25);
    "append.cause.completed" => cause_completed: rules(R25);
    "append.cause.dead_lettered_and_redriven" => cause_dead_lettered_and_redriven: rules(R25);
    "append.cause.cleared" => cause_cleared: rules(R25);
    "append.cause.one_of_many" => cause_one_of_many: rules(R36, R40);
    "append.has_pending.targets" => has_pending_targets: rules(R42);
    "append.has_pending.served" => has_pending_served: rules(R19, R42);
    "append.has_pending.busy_counts" => has_pending_busy_counts: rules(R42);
    "append.has_pending.dead_letter_does_not" => has_pending_dead_letter_does_not: rules(R23, R42);
    "append.has_pending.declared_log" => has_pending_declared_log: rules(R40, R42);
    "append.has_pending.on_replay" => has_pending_on_replay: rules(R40, R42);
    "append.empty.nothing_written" => empty_nothing_written: rules(R27, R40);
    "append.empty.answers_has_pending" => empty_answers_has_pending: rules(R40, R42);
    "append.targets.twice_counts_once" => targets_twice_counts_once: rules(R17);
    "append.targets.hundred_of_one_event" => targets_hundred_of_one_event: rules(R10, R17);
    "append.atomic.late_refusal" => atomic_late_refusal: rules(R36, F34), slow;
];

/// A session with one event for consumer `c`, and its claimed head.
async fn claimed(cx: &Cx, name: &str) -> (SessionId, DispatchedHead) {
    let s = cx.session(name);
    append(cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(cx, &s, "c").await;
    (s, head)
}

/// An append with this cause is refused and writes nothing.
async fn refused(cx: &Cx, s: &SessionId, cause: Cause) {
    let before = log(cx, s).await;
    let request = batch([ev("refused").cause(cause).target(to_event("d"))]);
    assert_code(cx.store().append(s, request).await, "SUPERSEDED_ATTEMPT");
    assert_eq!(log(cx, s).await, before);
}

async fn accepted(cx: &Cx, s: &SessionId, cause: Cause) {
    let appended = cx.store().append(s, batch([ev("accepted").cause(cause)])).await.unwrap();
    assert!(!appended.replayed);
}

async fn cause_stored(cx: Cx) {
    let (s, head) = claimed(&cx, "stored").await;
    let cause = Cause::new(event_head("c", 1), 1);
    assert_eq!(head.cause(), cause);
    let appended = append(&cx, &s, [ev("b").cause(cause.clone()), ev("c")]).await;
    assert_eq!(appended[0].cause, Some(cause));
    assert_eq!(appended[1].cause, None);
    assert_eq!(log(&cx, &s).await[1..], appended);
}

async fn cause_every_kind_of_cursor(cx: Cx) {
    let s = cx.session("kinds");
    let served = serve_log("c", all_types("log"));
    let event = ev("a").target(to_event("c")).target(to_lane("c", "lane"));
    let _ = cx.store().append(&s, batch([event]).served(served)).await.unwrap();
    let heads = take(&cx, &s, claim()).await;
    let expected = [event_head("c", 1), lane_head("c", "lane", 1), log_head("c", "log", 1)];
    for (head, (expected, id)) in heads.iter().zip(expected.into_iter().zip(["x", "y", "z"])) {
        assert_eq!(head.cause(), Cause::new(expected.clone(), 1));
        let stored = append(&cx, &s, [ev(id).cause(head.cause())]).await;
        assert_eq!(stored[0].cause, Some(Cause::new(expected, 1)));
    }
    assert_eq!(ids(&log(&cx, &s).await), ["a", "x", "y", "z"]);
}

async fn cause_never_claimed(cx: Cx) {
    let s = cx.session("never");
    append(&cx, &s, [ev("a").target(to_event("c")).target(to_lane("c", "l"))]).await;
    for attempt in [0, 1] {
        refused(&cx, &s, Cause::new(event_head("c", 1), attempt)).await;
        refused(&cx, &s, Cause::new(lane_head("c", "l", 1), attempt)).await;
    }
    // No such head, consumer, index.
    refused(&cx, &s, Cause::new(lane_head("c", "other", 1), 1)).await;
    refused(&cx, &s, Cause::new(event_head("nobody", 1), 1)).await;
    refused(&cx, &s, Cause::new(event_head("c", 9), 1)).await;
}

async fn cause_wrong_number(cx: Cx) {
    let (s, _) = claimed(&cx, "number").await;
    for attempt in [0, 2, u64::MAX] {
        refused(&cx, &s, Cause::new(event_head("c", 1), attempt)).await;
    }
    accepted(&cx, &s, Cause::new(event_head("c", 1), 1)).await;
}

async fn cause_expired_lease_is_current(cx: Cx) {
    let s = cx.session("expired");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    take(&cx, &s, claim_as(WORKER, ms(100))).await;
    cx.pass(ms(500)).await;
    // Nobody took over: the attempt still owns the head.
    accepted(&cx, &s, Cause::new(event_head("c", 1), 1)).await;
}

async fn cause_taken_over(cx: Cx) {
    let s = cx.session("taken");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    take(&cx, &s, claim_as("first", ms(100))).await;
    cx.pass(ms(100)).await;
    take(&cx, &s, claim_as("second", ms(100))).await;
    refused(&cx, &s, Cause::new(event_head("c", 1), 1)).await;
    accepted(&cx, &s, Cause::new(event_head("c", 1), 2)).await;
}

async fn cause_failed(cx: Cx) {
    let (s, head) = claimed(&cx, "failed").await;
    let _ = cx.store().fail_attempt(&s, fail(&head)).await.unwrap();
    refused(&cx, &s, head.cause()).await;
}

async fn cause_released(cx: Cx) {
    let (s, head) = claimed(&cx, "released").await;
    let release = ReleaseClaims::new(WORKER, [head.attempt_ref()]).unwrap();
    assert_eq!(cx.store().release_claims(&s, release).await.unwrap().released.len(), 1);
    refused(&cx, &s, head.cause()).await;
}

async fn cause_completed(cx: Cx) {
    let (s, head) = claimed(&cx, "completed").await;
    finish(&cx, &s, &head).await;
    refused(&cx, &s, head.cause()).await;
}

async fn cause_dead_lettered_and_redriven(cx: Cx) {
    let (s, head) = claimed(&cx, "dead").await;
    bury(&cx, &s, &head).await;
    refused(&cx, &s, head.cause()).await;
    let retry = Redrive::new(head.head.clone(), RedriveAction::Retry);
    assert!(cx.store().redrive(&s, retry).await.unwrap().redriven);
    refused(&cx, &s, head.cause()).await;
}

async fn cause_cleared(cx: Cx) {
    let (s, head) = claimed(&cx, "cleared").await;
    clear(&cx, &s).await;
    refused(&cx, &s, head.cause()).await;
}

async fn cause_one_of_many(cx: Cx) {
    let (s, head) = claimed(&cx, "many").await;
    let stale = Cause::new(head.head.clone(), 2);
    let events = [ev("x").cause(head.cause()), ev("y").cause(stale), ev("z")];
    assert_code(cx.store().append(&s, batch(events)).await, "SUPERSEDED_ATTEMPT");
    assert_eq!(ids(&log(&cx, &s).await), ["a"]);
}

async fn has_pending_targets(cx: Cx) {
    let s = cx.session("targets");
    let without = cx.store().append(&s, batch([ev("a")])).await.unwrap();
    assert!(!without.has_pending);
    let with = cx.store().append(&s, batch([ev("b").target(to_lane("c", "l"))])).await.unwrap();
    assert!(with.has_pending);
    // Also when what is pending was appended earlier.
    let later = cx.store().append(&s, batch([ev("c")])).await.unwrap();
    assert!(later.has_pending);
}

async fn has_pending_served(cx: Cx) {
    let s = cx.session("served");
    let to_c = batch([ev("a").target(to_event("c"))]).served(serve(["d"]));
    assert!(!cx.store().append(&s, to_c).await.unwrap().has_pending);
    let nothing = batch([ev("b")]).served(serve([]));
    assert!(!cx.store().append(&s, nothing).await.unwrap().has_pending, "serves nothing");
    let both = batch([ev("c")]).served(serve(["d", "c"]));
    assert!(cx.store().append(&s, both).await.unwrap().has_pending);
}

async fn has_pending_busy_counts(cx: Cx) {
    let (s, head) = claimed(&cx, "busy").await;
    assert!(cx.store().append(&s, batch([ev("b")])).await.unwrap().has_pending, "leased");
    let held = fail(&head).retry_after(ms(60_000));
    let _ = cx.store().fail_attempt(&s, held).await.unwrap();
    assert!(cx.store().append(&s, batch([ev("c")])).await.unwrap().has_pending, "held");
}

async fn has_pending_dead_letter_does_not(cx: Cx) {
    let (s, head) = claimed(&cx, "dead").await;
    bury(&cx, &s, &head).await;
    assert!(!cx.store().append(&s, batch([ev("b")])).await.unwrap().has_pending);
}

async fn has_pending_declared_log(cx: Cx) {
    let s = cx.session("log");
    let undeclared = cx.store().append(&s, batch([ev("a")])).await.unwrap();
    assert!(!undeclared.has_pending);
    let served = serve_log("c", LogDeclaration::new("log").unwrap());
    let declared = cx.store().append(&s, batch([ev("b")]).served(served)).await.unwrap();
    assert!(declared.has_pending);
}

async fn has_pending_on_replay(cx: Cx) {
    let (s, head) = claimed(&cx, "replay").await;
    let request = batch([ev("a")]);
    let pending = cx.store().append(&s, request.clone()).await.unwrap();
    assert_eq!((pending.replayed, pending.has_pending), (true, true));
    finish(&cx, &s, &head).await;
    let settled = cx.store().append(&s, request).await.unwrap();
    assert_eq!((settled.replayed, settled.has_pending), (true, false));
}

async fn empty_nothing_written(cx: Cx) {
    let s = cx.session("empty");
    // Not even the log that it declares comes to be, and no expectation is checked.
    let request = Append::new([])
        .unwrap()
        .served(serve_log("c", all_types("log")))
        .expected_head(at(9));
    let appended = cx.store().append(&s, request).await.unwrap();
    assert_eq!(appended.events, []);
    assert!(!appended.has_pending);
    assert_eq!(cx.store().head(&s).await.unwrap(), 0);
    assert_eq!(cx.store().all_cursors(&s).await.unwrap(), []);
}

async fn empty_answers_has_pending(cx: Cx) {
    let s = cx.session("empty-pending");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let ask = |served| Append::new([]).unwrap().served(served);
    assert!(cx.store().append(&s, ask(serve(["c"]))).await.unwrap().has_pending);
    assert!(!cx.store().append(&s, ask(serve(["d"]))).await.unwrap().has_pending);
    assert_eq!(cx.store().head(&s).await.unwrap(), 1);
}

async fn targets_twice_counts_once(cx: Cx) {
    let s = cx.session("twice");
    let event = ev("a").targets([to_lane("c", "l"), to_event("c"), to_lane("c", "l")]);
    append(&cx, &s, [event.target(to_event("c"))]).await;
    let heads = take(&cx, &s, claim()).await;
    let names: Vec<_> = heads.iter().map(|head| head.head.clone()).collect();
    assert_eq!(names, [event_head("c", 1), lane_head("c", "l", 1)]);
    for head in &heads {
        finish(&cx, &s, head).await;
    }
    expect_settled(cx.store().claim_available(&s, claim()).await);
}

async fn targets_hundred_of_one_event(cx: Cx) {
    let s = cx.session("hundred");
    let lanes = (0..100).map(|i| to_lane("c", &format!("lane{i:03}")));
    append(&cx, &s, [ev("a").targets(lanes)]).await;
    let hundred = claim().limit(1_000).unwrap();
    let heads = take(&cx, &s, hundred).await;
    assert_eq!(heads.len(), 100);
    assert_eq!(heads[0].head, lane_head("c", "lane000", 1));
    assert_eq!(heads[99].head, lane_head("c", "lane099", 1));
}

async fn atomic_late_refusal(cx: Cx) {
    let (s, head) = claimed(&cx, "late").await;
    let mut events = many("e", 10_000);
    let stale = Cause::new(head.head.clone(), 7);
    events[8_999] = ev("e9000").cause(stale);
    let events = events.into_iter().map(|event| event.target(to_lane("d", "l")));
    assert_code(cx.store().append(&s, batch(events)).await, "SUPERSEDED_ATTEMPT");
    assert_eq!(ids(&log(&cx, &s).await), ["a"], "nothing of the batch is left");
    let cursors = cx.store().all_cursors(&s).await.unwrap();
    assert_eq!(cursors.len(), 1, "only the one of `a`: {cursors:?}");
}
