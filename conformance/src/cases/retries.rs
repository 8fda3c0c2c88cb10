//! Lost answers: every write sent twice leaves the state that one leaves, and answers as the model
//! says.

use a2_core::{
    Claim, Clear, Completion, Cursor, DispatchedHead, Event, Failure, FireTimers, Page,
    PresenceUpdate, PutSnapshots, ReadState, Redrive, RedriveAction, ReducerName, ReleaseClaims,
    RenewClaims, Schedule, SessionId, SnapshotWrite, StoreExt, TimerKey, WakeLog,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R38);
    "retries.append" => twice_append: rules(R40, F3), both;
    "retries.append.dropped" => dropped_append: rules(R36, F3);
    "retries.claim" => twice_claim: rules(R46);
    "retries.renew" => twice_renew;
    "retries.release" => twice_release: rules(R51), both;
    "retries.complete" => twice_complete: rules(R52, F8), both;
    "retries.complete.after_the_next_claim" => complete_after_the_next_claim: rules(R53, F8);
    "retries.complete.log_with_through" => complete_log_with_through: rules(R53);
    "retries.complete.then_claim" => complete_then_claim: rules(R54);
    "retries.complete.dropped" => dropped_complete: rules(R36, F8);
    "retries.fail" => twice_fail: rules(R56), both;
    "retries.fail.dead_lettered" => twice_fail_dead_lettered: rules(R56);
    "retries.redrive" => twice_redrive: rules(R60), both;
    "retries.wake_log" => twice_wake_log: rules(R61);
    "retries.put_snapshots" => twice_put_snapshots;
    "retries.clear" => twice_clear: rules(R68), both;
    "retries.clear.if_last_index" => twice_clear_if_last_index: rules(R68);
    "retries.reclaim" => twice_reclaim: rules(R73);
    "retries.schedule" => twice_schedule: rules(R41, R74), needs(Timers);
    "retries.unschedule" => twice_unschedule: rules(R75), needs(Timers);
    "retries.fire_timers" => twice_fire_timers: rules(R76), needs(Timers);
    "retries.set_presence" => twice_set_presence: rules(R85), needs(Presence);
];

/// All that can be seen of a session: its log, cursors and dead letters.
async fn seen(cx: &Cx, s: &SessionId) -> (Vec<Event>, Vec<Cursor>, Vec<DispatchedHead>) {
    let cursors = cx.store().all_cursors(s).await.unwrap();
    (log(cx, s).await, cursors, cx.store().all_dead_letters(s).await.unwrap())
}

/// A session with the events 1 and 2 on lane `l` of consumer `c`, the first claimed.
async fn claimed(cx: &Cx, name: &str) -> (SessionId, DispatchedHead) {
    let s = cx.session(name);
    append(cx, &s, many("e", 2).into_iter().map(|event| event.target(to_lane("c", "l")))).await;
    let head = claim_one(cx, &s, "c").await;
    (s, head)
}

async fn twice_append(cx: Cx) {
    let s = cx.session("append");
    let lanes = ["x", "y", "z"];
    let events = lanes.map(|lane| event("t", "1").target(to_lane("c", lane)));
    let request = batch(events).expected_head(at(0)).served(serve_log("d", all_types("log")));
    let first = cx.store().append(&s, request.clone()).await.unwrap();
    let before = seen(&cx, &s).await;
    let second = cx.store().append(&s, request).await.unwrap();
    assert!(second.replayed);
    assert_eq!(second.events, first.events);
    assert!(second.has_pending, "the log has a head");
    assert_eq!(seen(&cx, &s).await, before);
    assert_eq!((before.0.len(), before.1.len()), (3, 4), "three lanes, one log");
}

async fn dropped_append(cx: Cx) {
    for round in 0_u64..100 {
        let s = cx.session("dropped");
        let events = many("e", 3).into_iter().map(|event| event.target(to_lane("c", "l")));
        let request = batch(events);
        let wait = std::time::Duration::from_micros((round * 41) % 1_200);
        let _ = tokio::time::timeout(wait, cx.store().append(&s, request.clone())).await;
        let again = cx.store().append(&s, request).await.unwrap();
        assert_eq!(indexes(&again.events), [1, 2, 3]);
        assert_eq!(ids(&log(&cx, &s).await), ["e1", "e2", "e3"]);
        assert_eq!(cx.store().all_cursors(&s).await.unwrap().len(), 1);
    }
}

async fn twice_claim(cx: Cx) {
    let s = cx.session("claim");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    // The answer is lost: the claim stays leased until its ttl and then costs one failure.
    let request = claim_as(WORKER, ms(100));
    assert_eq!(take(&cx, &s, request.clone()).await.len(), 1);
    let busy = expect_busy(cx.store().claim_available(&s, request.clone()).await);
    assert_eq!(busy.retry_after, ms(100));
    cx.pass(ms(100)).await;
    let again = take(&cx, &s, request).await;
    assert_eq!((again[0].attempt(), again[0].state.failure_count), (2, 1));
    assert_eq!(again[0].state.last_error.as_deref(), Some("lease expired"));
}

async fn twice_renew(cx: Cx) {
    let (s, head) = claimed(&cx, "renew").await;
    cx.pass(ms(10)).await;
    let request = RenewClaims::new(WORKER, [head.attempt_ref()], secs(90)).unwrap();
    let first = cx.store().renew_claims(&s, request.clone()).await.unwrap();
    let before = seen(&cx, &s).await;
    let second = cx.store().renew_claims(&s, request).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(second.renewed, [head.attempt_ref()]);
    assert_eq!(seen(&cx, &s).await, before);
}

async fn twice_release(cx: Cx) {
    let (s, head) = claimed(&cx, "release").await;
    let request = ReleaseClaims::new(WORKER, [head.attempt_ref()]).unwrap();
    let first = cx.store().release_claims(&s, request.clone()).await.unwrap();
    assert_eq!(first.released, [head.attempt_ref()]);
    let before = seen(&cx, &s).await;
    let second = cx.store().release_claims(&s, request.clone()).await.unwrap();
    assert_eq!(second.released, [], "nothing is held any more");
    assert_eq!(seen(&cx, &s).await, before);
    // Sent again after somebody else claimed: theirs is not touched.
    assert_eq!(claim_one(&cx, &s, "c").await.attempt(), 2);
    assert_eq!(cx.store().release_claims(&s, request).await.unwrap().released, []);
    let busy = expect_busy(cx.store().claim_available(&s, claim()).await);
    assert!(busy.retry_after > secs(0));
}

async fn twice_complete(cx: Cx) {
    let (s, head) = claimed(&cx, "complete").await;
    let children = [ev("k1").target(to_lane("d", "m")), ev("k2")];
    let request = complete(&head).events(children).unwrap();
    let first = expect_completed(cx.store().complete_attempt(&s, request.clone()).await);
    assert!(!first.replayed);
    let before = seen(&cx, &s).await;
    let second = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert!(second.replayed);
    assert_eq!(indexes(&second.events), [3, 4]);
    assert_eq!(second.events, first.events);
    assert_eq!(seen(&cx, &s).await, before);
}

async fn complete_after_the_next_claim(cx: Cx) {
    let (s, head) = claimed(&cx, "next").await;
    let request = complete(&head).events([ev("k1"), ev("k2")]).unwrap();
    let first = expect_completed(cx.store().complete_attempt(&s, request.clone()).await);
    let next = claim_one(&cx, &s, "c").await;
    assert_eq!(next.head, lane_head("c", "l", 2));
    let before = seen(&cx, &s).await;
    let second = expect_completed(cx.store().complete_attempt(&s, request.clone()).await);
    assert!(second.replayed);
    assert_eq!(second.events, first.events);
    assert_eq!(seen(&cx, &s).await, before, "the next head's lease is untouched");
    finish(&cx, &s, &next).await;
    // Remembered for the whole lifetime.
    let third = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert_eq!((third.replayed, third.events), (true, first.events));
}

async fn complete_log_with_through(cx: Cx) {
    let s = cx.session("log");
    let served = serve_log("c", all_types("log"));
    let _ = cx.store().append(&s, batch(many("e", 5)).served(served)).await.unwrap();
    let head = take(&cx, &s, claim().run(3).unwrap()).await.remove(0);
    let request = complete(&head).through(at(3)).unwrap().events([ev("child")]).unwrap();
    let first = expect_completed(cx.store().complete_attempt(&s, request.clone()).await);
    let before = seen(&cx, &s).await;
    assert_eq!(before.1[0].head, Some(at(4)));
    let second = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert_eq!((second.replayed, second.events), (true, first.events));
    assert_eq!(seen(&cx, &s).await, before);
}

async fn complete_then_claim(cx: Cx) {
    let (s, head) = claimed(&cx, "then").await;
    let request = complete(&head).then_claim(claim_as(WORKER, ms(100)));
    let first = cx.store().complete_attempt(&s, request.clone()).await.unwrap();
    let Some(Claim::Claimed(claimed)) = first.claim else { panic!("{first:?}") };
    assert_eq!(refs(&claimed.heads), [lane_head("c", "l", 2)]);
    // The answer is lost. Sent again: done already, and what the lost claim holds is busy.
    let second = cx.store().complete_attempt(&s, request.clone()).await.unwrap();
    let Completion::Completed(replayed) = second.outcome else { panic!("{second:?}") };
    assert!(replayed.replayed);
    let busy = second.claim.expect("a replayed call claims too");
    assert!(matches!(busy, Claim::Busy(_)), "{busy:?}");
    cx.pass(ms(100)).await;
    let third = cx.store().complete_attempt(&s, request).await.unwrap();
    let Some(Claim::Claimed(claimed)) = third.claim else { panic!("{third:?}") };
    assert_eq!((claimed.heads[0].attempt(), claimed.heads[0].state.failure_count), (2, 1));
}

async fn dropped_complete(cx: Cx) {
    for round in 0_u64..100 {
        let (s, head) = claimed(&cx, "dropped").await;
        let request = complete(&head).events([ev("k1").target(to_event("d")), ev("k2")]).unwrap();
        let wait = std::time::Duration::from_micros((round * 43) % 1_200);
        let dropped = cx.store().complete_attempt(&s, request.clone());
        let _ = tokio::time::timeout(wait, dropped).await;
        let again = expect_completed(cx.store().complete_attempt(&s, request).await);
        assert_eq!(indexes(&again.events), [3, 4]);
        assert_eq!(ids(&log(&cx, &s).await), ["e1", "e2", "k1", "k2"]);
    }
}

async fn twice_fail(cx: Cx) {
    let (s, head) = claimed(&cx, "fail").await;
    let request = fail(&head).max_failures(3).unwrap().retry_after(secs(30));
    let failed = Failure::Failed { failure_count: 1 };
    let first = cx.store().fail_attempt(&s, request.clone()).await.unwrap();
    assert_eq!(first.outcome, failed);
    let before = seen(&cx, &s).await;
    cx.pass(ms(5)).await;
    let second = cx.store().fail_attempt(&s, request).await.unwrap();
    assert_eq!(second.outcome, failed);
    assert_eq!(seen(&cx, &s).await, before, "counted once, held as before");
}

async fn twice_fail_dead_lettered(cx: Cx) {
    let (s, head) = claimed(&cx, "dead").await;
    let request = fail(&head).max_failures(1).unwrap();
    let dead = Failure::DeadLettered { failure_count: 1 };
    assert_eq!(cx.store().fail_attempt(&s, request.clone()).await.unwrap().outcome, dead);
    let before = seen(&cx, &s).await;
    cx.pass(ms(5)).await;
    assert_eq!(cx.store().fail_attempt(&s, request).await.unwrap().outcome, dead);
    assert_eq!(seen(&cx, &s).await, before);
}

async fn twice_redrive(cx: Cx) {
    let (s, head) = claimed(&cx, "redrive").await;
    bury(&cx, &s, &head).await;
    let retry = Redrive::new(head.head.clone(), RedriveAction::Retry);
    assert!(cx.store().redrive(&s, retry.clone()).await.unwrap().redriven);
    let before = seen(&cx, &s).await;
    let again = cx.store().redrive(&s, retry).await.unwrap();
    assert_eq!((again.redriven, again.has_pending), (false, true));
    assert_eq!(seen(&cx, &s).await, before);
    let second = claim_one(&cx, &s, "c").await;
    bury(&cx, &s, &second).await;
    let skip = Redrive::new(head.head, RedriveAction::Skip);
    assert!(cx.store().redrive(&s, skip.clone()).await.unwrap().redriven);
    let before = seen(&cx, &s).await;
    assert!(!cx.store().redrive(&s, skip).await.unwrap().redriven);
    assert_eq!(seen(&cx, &s).await, before, "the next event is not skipped too");
    assert_eq!(claim_one(&cx, &s, "c").await.head, lane_head("c", "l", 2));
}

async fn twice_wake_log(cx: Cx) {
    let s = cx.session("wake");
    append(&cx, &s, many("e", 3)).await;
    let request = WakeLog::new("c", all_types("log").backfill()).unwrap();
    let first = cx.store().wake_log(&s, request.clone()).await.unwrap();
    let before = seen(&cx, &s).await;
    assert_eq!(cx.store().wake_log(&s, request).await.unwrap(), first);
    assert_eq!(seen(&cx, &s).await, before);
}

async fn twice_put_snapshots(cx: Cx) {
    let (s, head) = claimed(&cx, "snapshots").await;
    let reducer = ReducerName::new("r").unwrap();
    let pinned = SnapshotWrite::new(at(1), json("1")).pins([head.head]).unwrap();
    let request = PutSnapshots::new([pinned, SnapshotWrite::new(at(2), json("2"))]).unwrap();
    let first = cx.store().put_snapshots(&s, &reducer, request.clone()).await.unwrap();
    let second = cx.store().put_snapshots(&s, &reducer, request).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(second.stored, [at(1), at(2)]);
    for (through, state) in [(1, "1"), (2, "2")] {
        let read = ReadState::through(at(through));
        let read = cx.store().read_state(&s, &reducer, read).await.unwrap();
        assert_eq!(read.snapshot.unwrap().state.as_str(), state);
    }
}

async fn twice_clear(cx: Cx) {
    let (s, _) = claimed(&cx, "clear").await;
    let request = Clear::new();
    let first = cx.store().clear(&s, request.clone()).await.unwrap();
    append(&cx, &s, [ev("new").target(to_event("c"))]).await;
    let before = seen(&cx, &s).await;
    let second = cx.store().clear(&s, request).await.unwrap();
    assert_eq!((first.cleared, first.index.get(), first.clear_index.get()), (true, 3, 3));
    assert_eq!((second.cleared, second.index.get(), second.clear_index.get()), (true, 4, 3));
    assert_eq!(seen(&cx, &s).await, before);
}

async fn twice_clear_if_last_index(cx: Cx) {
    let (s, head) = claimed(&cx, "clear-if").await;
    let request = || Clear::new().if_last_index(at(2)).cause(head.cause());
    assert!(cx.store().clear(&s, request()).await.unwrap().cleared);
    append(&cx, &s, [ev("new")]).await;
    let before = seen(&cx, &s).await;
    // Even by one who does not know the marker's id.
    let second = cx.store().clear(&s, request()).await.unwrap();
    assert_eq!((second.cleared, second.index.get(), second.clear_index.get()), (true, 4, 3));
    assert_eq!(seen(&cx, &s).await, before);
}

async fn twice_reclaim(cx: Cx) {
    let (s, _) = claimed(&cx, "reclaim").await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev("new").target(to_event("c"))]).await;
    let before = seen(&cx, &s).await;
    while !cx.store().reclaim(&s).await.unwrap().done {}
    assert!(cx.store().reclaim(&s).await.unwrap().done);
    assert_eq!(seen(&cx, &s).await, before);
}

async fn twice_schedule(cx: Cx) {
    let s = cx.session("schedule");
    let request = Schedule::new("k", secs(5), event("t", "1")).unwrap();
    let first = cx.timers().schedule(&s, request.clone()).await.unwrap();
    let second = cx.timers().schedule(&s, request).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(cx.timers().timers(&s, Page::first()).await.unwrap().timers.len(), 1);
}

async fn twice_unschedule(cx: Cx) {
    let s = cx.session("unschedule");
    let timer = Schedule::new("k", secs(5), ev("a")).unwrap();
    let _ = cx.timers().schedule(&s, timer).await.unwrap();
    let key = TimerKey::new("k").unwrap();
    assert!(cx.timers().unschedule(&s, &key).await.unwrap().removed);
    assert!(!cx.timers().unschedule(&s, &key).await.unwrap().removed);
    assert_eq!(cx.timers().timers(&s, Page::first()).await.unwrap().timers, []);
}

async fn twice_fire_timers(cx: Cx) {
    let s = cx.session("fire");
    for key in ["a", "b"] {
        let timer = Schedule::new(key, secs(0), ev(key).target(to_event("c"))).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    let first = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!(first.events.len(), 2);
    let before = seen(&cx, &s).await;
    let second = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!((second.events, second.has_pending), (Vec::new(), true));
    assert_eq!(seen(&cx, &s).await, before);
}

async fn twice_set_presence(cx: Cx) {
    let ns = cx.namespace("presence");
    let request = PresenceUpdate::new("p", secs(5)).unwrap().set("x", json("1")).unwrap();
    let request = request.remove("y").unwrap().seen(at(3));
    assert!(cx.presence().set_presence(&ns, request.clone()).await.unwrap().is_some());
    let before = cx.presence().read_presence(&ns).await.unwrap();
    assert_eq!(cx.presence().set_presence(&ns, request).await.unwrap(), None);
    assert_eq!(cx.presence().read_presence(&ns).await.unwrap(), before);
}
