//! Words for the cases on cursors, heads and attempts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a case fails by panicking")]

use std::time::Duration;

use a2_core::{
    Append, Appended, AttemptRef, Claim, ClaimAvailable, CompleteAttempt, Consumer, Cursor,
    CursorKey, CursorRef, DispatchState, DispatchedHead, Event, FailAttempt, Failure, HeadRef,
    Holder, Lane, LogDeclaration, LogName, NewEvent, Page, PutSnapshots, ReadState, Redrive,
    RedriveAction, Redriven, ReducerName, ReleaseClaims, RenewClaims, Renewal, Served,
    ServedConsumer, SessionId, SnapshotWrite, StoreExt, Timestamp, WakeLog,
};

use crate::Cx;
use crate::cx::START;
use crate::kit::*;

/// This many milliseconds after the manual clock's start.
pub(crate) fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(START.as_millis() + millis)
}

// Events.

/// An event of this id and type, without targets.
pub(crate) fn typed(id: &str, event_type: &str) -> NewEvent {
    event(event_type, "null").id(id).unwrap()
}

/// An event of this id for a consumer's event cursor.
pub(crate) fn ev_for(id: &str, consumer: &str) -> NewEvent {
    ev(id).target(to_event(consumer))
}

/// An event of this id for a lane of `c`.
pub(crate) fn ev_on(id: &str, lane: &str) -> NewEvent {
    ev(id).target(to_lane("c", lane))
}

/// Events `{prefix}1` to `{prefix}{n}`, each for `c`'s event cursor.
pub(crate) fn many_for_c(prefix: &str, n: usize) -> Vec<NewEvent> {
    many(prefix, n).into_iter().map(|event| event.target(to_event("c"))).collect()
}

/// Events `{prefix}1` to `{prefix}{n}` on `c`'s lane `l`.
pub(crate) fn many_on_l(prefix: &str, n: usize) -> Vec<NewEvent> {
    many(prefix, n).into_iter().map(|event| event.target(to_lane("c", "l"))).collect()
}

/// Appends, declaring what is served.
pub(crate) async fn append_served(
    cx: &Cx,
    session: &SessionId,
    served: &Served,
    events: impl IntoIterator<Item = NewEvent>,
) -> Vec<Event> {
    let request = Append::new(events).unwrap().served(served.clone());
    cx.store().append(session, request).await.unwrap().events
}

// What is served.

/// Serves these consumers, each with its log.
pub(crate) fn serve_logs<const N: usize>(logs: [(&str, LogDeclaration); N]) -> Served {
    Served::only(logs.map(|(consumer, log)| ServedConsumer::new(consumer).unwrap().log(log)))
        .unwrap()
}

/// Serves `c` with this failure budget.
pub(crate) fn serve_c_with_budget(max_failures: u64) -> Served {
    Served::only([ServedConsumer::new("c").unwrap().max_failures(max_failures).unwrap()]).unwrap()
}

pub(crate) fn the_event(consumer: &str, index: u64) -> CursorRef {
    CursorRef::event(Consumer::new(consumer).unwrap(), at(index))
}

pub(crate) fn the_lane(consumer: &str, lane: &str) -> CursorRef {
    CursorRef::lane(Consumer::new(consumer).unwrap(), Lane::new(lane).unwrap())
}

pub(crate) fn the_log(consumer: &str, log: &str) -> CursorRef {
    CursorRef::log(Consumer::new(consumer).unwrap(), LogName::new(log).unwrap())
}

// Claims.

/// Claims the only head there is to claim.
pub(crate) async fn claim_the_one(cx: &Cx, session: &SessionId) -> DispatchedHead {
    take_one(cx, session, claim()).await
}

/// Claims, which must give one head; it must be live.
pub(crate) async fn take_one(
    cx: &Cx,
    session: &SessionId,
    claim: ClaimAvailable,
) -> DispatchedHead {
    let mut heads = take(cx, session, claim).await;
    assert_eq!(heads.len(), 1, "one head is claimed: {heads:?}");
    let head = heads.remove(0);
    assert_eq!(head.state.failed_at, None, "the head is live");
    head
}

/// Claims the only head there is to claim, with a lease that has lapsed when this returns.
pub(crate) async fn claim_and_lapse(cx: &Cx, session: &SessionId) -> DispatchedHead {
    let head = take_one(cx, session, claim_as("lapsing", ms(20))).await;
    cx.pass(ms(20)).await;
    head
}

/// Claims head after head until none is left, completing each; the heads in their order.
pub(crate) async fn drain(cx: &Cx, session: &SessionId, claim: ClaimAvailable) -> Vec<HeadRef> {
    let claim = claim.limit(1).unwrap();
    let mut drained = Vec::new();
    for _ in 0..1_000 {
        let claimed = cx.store().claim_available(session, claim.clone()).await.unwrap();
        let heads = claimed.into_heads();
        let Some(head) = heads.first() else { return drained };
        finish(cx, session, head).await;
        drained.push(head.head.clone());
    }
    panic!("a thousand heads and no end");
}

/// Nothing can be claimed, and nothing will be.
pub(crate) async fn nothing(cx: &Cx, session: &SessionId) {
    expect_settled(cx.store().claim_available(session, claim()).await);
}

/// Everything is leased or held; when to ask again.
pub(crate) async fn busy(cx: &Cx, session: &SessionId) -> Duration {
    busy_for(cx, session, claim_as("rival", secs(1))).await
}

/// This claim finds everything leased or held; when to ask again.
pub(crate) async fn busy_for(cx: &Cx, session: &SessionId, claim: ClaimAvailable) -> Duration {
    expect_busy(cx.store().claim_available(session, claim).await).retry_after
}

pub(crate) async fn renew(
    cx: &Cx,
    session: &SessionId,
    claims: impl IntoIterator<Item = AttemptRef>,
    ttl: Duration,
) -> Renewal {
    let request = RenewClaims::new(WORKER, claims, ttl).unwrap();
    cx.store().renew_claims(session, request).await.unwrap()
}

/// Releases claims of [`WORKER`]; those that were given back.
pub(crate) async fn release(
    cx: &Cx,
    session: &SessionId,
    claims: impl IntoIterator<Item = AttemptRef>,
) -> Vec<AttemptRef> {
    let request = ReleaseClaims::new(WORKER, claims).unwrap();
    cx.store().release_claims(session, request).await.unwrap().released
}

// Attempts.

/// Completes with these returned events; the attempt must be current. The stored events.
pub(crate) async fn finish_with(
    cx: &Cx,
    session: &SessionId,
    head: &DispatchedHead,
    events: impl IntoIterator<Item = NewEvent>,
) -> Vec<Event> {
    completed(cx, session, complete(head).events(events).unwrap()).await.events
}

/// Completes, for the sake of what it does; the attempt must be current.
pub(crate) async fn settle(cx: &Cx, session: &SessionId, complete: CompleteAttempt) {
    let _ = completed(cx, session, complete).await;
}

/// Completes; the attempt must be current.
pub(crate) async fn completed(cx: &Cx, session: &SessionId, complete: CompleteAttempt) -> Appended {
    let appended = expect_completed(cx.store().complete_attempt(session, complete).await);
    assert!(!appended.replayed, "the completion is the first");
    appended
}

/// Completes, which must be superseded.
pub(crate) async fn superseded(cx: &Cx, session: &SessionId, complete: CompleteAttempt) {
    expect_superseded(cx.store().complete_attempt(session, complete).await);
}

pub(crate) async fn failed(cx: &Cx, session: &SessionId, fail: FailAttempt) -> Failure {
    cx.store().fail_attempt(session, fail).await.unwrap().outcome
}

pub(crate) async fn redrive(
    cx: &Cx,
    session: &SessionId,
    head: &HeadRef,
    action: RedriveAction,
) -> Redriven {
    cx.store().redrive(session, Redrive::new(head.clone(), action)).await.unwrap()
}

pub(crate) async fn retry(cx: &Cx, session: &SessionId, head: &HeadRef) -> bool {
    redrive(cx, session, head, RedriveAction::Retry).await.redriven
}

pub(crate) async fn skip(cx: &Cx, session: &SessionId, head: &HeadRef) -> bool {
    redrive(cx, session, head, RedriveAction::Skip).await.redriven
}

// Cursors.

/// The session's cursors, each as `consumer event|lane|log name position>head`.
pub(crate) async fn shown(cx: &Cx, session: &SessionId) -> Vec<String> {
    cx.store().all_cursors(session).await.unwrap().iter().map(line).collect()
}

/// A cursor as `consumer event|lane|log name position>head`; `-` for no head.
pub(crate) fn line(cursor: &Cursor) -> String {
    let key = match &cursor.key {
        CursorKey::Event => "event".to_owned(),
        CursorKey::Lane(lane) => format!("lane {lane}"),
        CursorKey::Log(log) => format!("log {log}"),
    };
    let head = cursor.head.map_or_else(|| "-".to_owned(), |head| head.to_string());
    format!("{} {key} {}>{head}", cursor.consumer, cursor.position)
}

/// A head's dispatch state.
pub(crate) async fn state(cx: &Cx, session: &SessionId, head: &HeadRef) -> DispatchState {
    let cursors = cx.store().all_cursors(session).await.unwrap();
    let cursor = cursors.into_iter().find(|cursor| {
        cursor.consumer == head.consumer
            && cursor.key == head.cursor
            && cursor.head == Some(head.index)
    });
    cursor.unwrap_or_else(|| panic!("no cursor has the head {head:?}")).state
}

/// The state of a head in its first attempt, claimed by [`WORKER`] at `now` until `until`.
pub(crate) fn first_attempt(now: Timestamp, until: Timestamp) -> DispatchState {
    let mut state = DispatchState::default();
    state.attempt_count = 1;
    state.first_claimed_at = Some(now);
    state.last_claimed_at = Some(now);
    state.claim_holder = Some(Holder::new(WORKER).unwrap());
    state.claim_expires_at = Some(until);
    state
}

/// Wakes a log; the cursor's line.
pub(crate) async fn wake(
    cx: &Cx,
    session: &SessionId,
    consumer: &str,
    log: LogDeclaration,
) -> String {
    let request = WakeLog::new(consumer, log).unwrap();
    line(&cx.store().wake_log(session, request).await.unwrap().cursor)
}

/// The dead letters.
pub(crate) async fn dead(cx: &Cx, session: &SessionId) -> Vec<DispatchedHead> {
    cx.store().all_dead_letters(session).await.unwrap()
}

/// The first page of at most `limit` entries.
pub(crate) fn page(limit: usize) -> Page {
    Page::first().limit(limit).unwrap()
}

// Pins.

/// Pins a snapshot at index 1 for these heads, below a later one at index 2.
pub(crate) async fn pin(cx: &Cx, session: &SessionId, heads: &[HeadRef]) {
    let pinned = SnapshotWrite::new(at(1), json("1")).pins(heads.iter().cloned()).unwrap();
    let later = SnapshotWrite::new(at(2), json("2"));
    let writes = PutSnapshots::new([later, pinned]).unwrap();
    let reducer = ReducerName::new("r").unwrap();
    let _ = cx.store().put_snapshots(session, &reducer, writes).await.unwrap();
}

/// Whether the snapshot at index 1 is kept.
pub(crate) async fn is_pinned(cx: &Cx, session: &SessionId) -> bool {
    let reducer = ReducerName::new("r").unwrap();
    let read = ReadState::through(at(1));
    cx.store().read_state(session, &reducer, read).await.unwrap().snapshot.is_some()
}

/// Completes and claims; what the claim found.
pub(crate) async fn then_claimed(cx: &Cx, session: &SessionId, complete: CompleteAttempt) -> Claim {
    let answer = cx.store().complete_attempt(session, complete).await.unwrap();
    answer.claim.expect("a claim was asked for")
}
