//! Small words that cases are written with. They hide nothing but typing.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a case fails by panicking")]
#![allow(dead_code, reason = "a vocabulary: not every word is used by every set of cases")]

use std::fmt::Debug;
use std::time::Duration;

use a2_core::{
    Append, Appended, Busy, Claim, ClaimAvailable, Claimed, Clear, CompleteAttempt, Completion,
    Consumer, CursorKey, DispatchedHead, Error, Event, EventType, FailAttempt, Failure, HeadRef,
    Index, Json, Lane, LogDeclaration, LogName, LogTypes, NewEvent, ReadRange, Result, Served,
    ServedConsumer, SessionId, Target, WithClaim,
};
use futures_util::{FutureExt, Stream, StreamExt};

use crate::Cx;

/// The holder that claims when a case does not say who.
pub(crate) const WORKER: &str = "worker";

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) fn at(index: u64) -> Index {
    Index::new(index).unwrap()
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

// Events.

/// An event of this id, type `t`, payload `null`, without targets.
pub(crate) fn ev(id: &str) -> NewEvent {
    event("t", "null").id(id).unwrap()
}

/// An event of this type and payload, without id and targets.
pub(crate) fn event(event_type: &str, payload: &str) -> NewEvent {
    NewEvent::from_json(event_type, json(payload)).unwrap()
}

pub(crate) fn to_event(consumer: &str) -> Target {
    Target::event(consumer).unwrap()
}

pub(crate) fn to_lane(consumer: &str, lane: &str) -> Target {
    Target::lane(consumer, lane).unwrap()
}

pub(crate) fn batch(events: impl IntoIterator<Item = NewEvent>) -> Append {
    Append::new(events).unwrap()
}

/// Events `{prefix}1` to `{prefix}{n}`.
pub(crate) fn many(prefix: &str, n: usize) -> Vec<NewEvent> {
    (1..=n).map(|i| ev(&format!("{prefix}{i}"))).collect()
}

/// Appends, which must succeed; the stored events.
pub(crate) async fn append(
    cx: &Cx,
    session: &SessionId,
    events: impl IntoIterator<Item = NewEvent>,
) -> Vec<Event> {
    cx.store().append(session, batch(events)).await.unwrap().events
}

/// What is stored, from the clear marker on; at most 10,000 events.
pub(crate) async fn log(cx: &Cx, session: &SessionId) -> Vec<Event> {
    let all = ReadRange::default().limit(10_000).unwrap();
    cx.store().read(session, all).await.unwrap().events
}

pub(crate) fn ids(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.id.as_str()).collect()
}

pub(crate) fn indexes(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.index.get()).collect()
}

// Heads.

pub(crate) fn event_head(consumer: &str, index: u64) -> HeadRef {
    HeadRef::new(Consumer::new(consumer).unwrap(), CursorKey::Event, at(index))
}

pub(crate) fn lane_head(consumer: &str, lane: &str, index: u64) -> HeadRef {
    let key = CursorKey::Lane(Lane::new(lane).unwrap());
    HeadRef::new(Consumer::new(consumer).unwrap(), key, at(index))
}

pub(crate) fn log_head(consumer: &str, log: &str, index: u64) -> HeadRef {
    let key = CursorKey::Log(LogName::new(log).unwrap());
    HeadRef::new(Consumer::new(consumer).unwrap(), key, at(index))
}

// What is served.

/// Serves these consumers, without logs.
pub(crate) fn serve<const N: usize>(consumers: [&str; N]) -> Served {
    Served::only(consumers.map(|consumer| ServedConsumer::new(consumer).unwrap())).unwrap()
}

/// Serves one consumer with one log.
pub(crate) fn serve_log(consumer: &str, log: LogDeclaration) -> Served {
    Served::only([ServedConsumer::new(consumer).unwrap().log(log)]).unwrap()
}

/// A log of every type, without backfill.
pub(crate) fn all_types(name: &str) -> LogDeclaration {
    LogDeclaration::new(name).unwrap()
}

/// A log of these types, without backfill.
pub(crate) fn only_types<const N: usize>(name: &str, types: [&str; N]) -> LogDeclaration {
    let types = types.map(|event_type| EventType::new(event_type).unwrap());
    LogDeclaration::new(name).unwrap().types(LogTypes::only(types).unwrap())
}

// Claims.

/// A claim by [`WORKER`] of all consumers, for one minute.
pub(crate) fn claim() -> ClaimAvailable {
    claim_as(WORKER, secs(60))
}

pub(crate) fn claim_as(holder: &str, ttl: Duration) -> ClaimAvailable {
    ClaimAvailable::new(holder, ttl).unwrap()
}

/// Claims, which must give something.
pub(crate) async fn take(
    cx: &Cx,
    session: &SessionId,
    claim: ClaimAvailable,
) -> Vec<DispatchedHead> {
    expect_claimed(cx.store().claim_available(session, claim).await).heads
}

/// Claims all there is.
pub(crate) async fn claim_all(cx: &Cx, session: &SessionId) -> Vec<DispatchedHead> {
    expect_claimed(cx.store().claim_available(session, claim()).await).heads
}

/// Claims the first free head of a consumer; it must be live.
pub(crate) async fn claim_one(cx: &Cx, session: &SessionId, consumer: &str) -> DispatchedHead {
    let one = claim().served(serve([consumer])).limit(1).unwrap();
    let mut heads = expect_claimed(cx.store().claim_available(session, one).await).heads;
    assert_eq!(heads.len(), 1, "one head is claimed");
    let head = heads.remove(0);
    assert_eq!(head.state.failed_at, None, "the head is live");
    head
}

/// The heads' names.
pub(crate) fn refs(heads: &[DispatchedHead]) -> Vec<HeadRef> {
    heads.iter().map(|head| head.head.clone()).collect()
}

#[track_caller]
pub(crate) fn expect_claimed(claim: Result<Claim>) -> Claimed {
    match claim {
        Ok(Claim::Claimed(claimed)) => claimed,
        other => panic!("expected Claimed, got {other:?}"),
    }
}

#[track_caller]
pub(crate) fn expect_busy(claim: Result<Claim>) -> Busy {
    match claim {
        Ok(Claim::Busy(busy)) => busy,
        other => panic!("expected Busy, got {other:?}"),
    }
}

#[track_caller]
pub(crate) fn expect_settled(claim: Result<Claim>) {
    match claim {
        Ok(Claim::Settled) => {}
        other => panic!("expected Settled, got {other:?}"),
    }
}

// Attempts.

/// Completes a claimed head, returning no events.
pub(crate) fn complete(head: &DispatchedHead) -> CompleteAttempt {
    CompleteAttempt::new(head.head.clone(), head.attempt())
}

/// Completes a claimed head, returning no events; the attempt must be current.
pub(crate) async fn finish(cx: &Cx, session: &SessionId, head: &DispatchedHead) {
    let done = cx.store().complete_attempt(session, complete(head)).await;
    assert!(!expect_completed(done).replayed);
}

/// Fails a claimed head with the error `boom`; it is claimable again at once.
pub(crate) fn fail(head: &DispatchedHead) -> FailAttempt {
    FailAttempt::new(head.head.clone(), head.attempt(), "boom")
}

/// Dead-letters a claimed head.
pub(crate) async fn bury(cx: &Cx, session: &SessionId, head: &DispatchedHead) {
    let at_once = fail(head).max_failures(1).unwrap();
    let failure = cx.store().fail_attempt(session, at_once).await.unwrap().outcome;
    assert_eq!(failure, Failure::DeadLettered { failure_count: 1 });
}

#[track_caller]
pub(crate) fn expect_completed(completion: Result<WithClaim<Completion>>) -> Appended {
    match completion {
        Ok(WithClaim { outcome: Completion::Completed(appended), .. }) => appended,
        other => panic!("expected Completed, got {other:?}"),
    }
}

#[track_caller]
pub(crate) fn expect_superseded(completion: Result<WithClaim<Completion>>) {
    match completion {
        Ok(WithClaim { outcome: Completion::Superseded, .. }) => {}
        other => panic!("expected Superseded, got {other:?}"),
    }
}

// Sessions.

/// Clears; the marker's index.
pub(crate) async fn clear(cx: &Cx, session: &SessionId) -> u64 {
    let cleared = cx.store().clear(session, Clear::new()).await.unwrap();
    assert!(cleared.cleared);
    cleared.clear_index.get()
}

// Errors and streams.

/// Expects this error code; gives the error for a closer look.
#[track_caller]
pub(crate) fn assert_code<T: Debug>(result: Result<T>, code: &str) -> Error {
    match result {
        Ok(value) => panic!("expected {code}, got {value:?}"),
        Err(error) => {
            assert_eq!(error.code(), code, "{error}");
            error
        }
    }
}

/// The next item of a stream, which must come within ten seconds.
pub(crate) async fn next<T>(cx: &Cx, stream: &mut (impl Stream<Item = Result<T>> + Unpin)) -> T {
    cx.within(secs(10), stream.next()).await.expect("the stream goes on").unwrap()
}

/// Polls a stream once: whether there is nothing yet.
pub(crate) fn is_waiting(stream: &mut (impl Stream + Unpin)) -> bool {
    stream.next().now_or_never().is_none()
}
