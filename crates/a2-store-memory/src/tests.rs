//! What the conformance suite cannot see from outside: what is kept and what is not, and how much
//! one call does.

use std::sync::Arc;
use std::time::Duration;

use a2_core::live::DueTimers;
use a2_core::{
    Append, CompleteAttempt, Consumer, CursorKey, Error, HeadRef, Index, Json, ManualClock,
    Namespace, NewEvent, Page, PendingPage, Presence, PresenceUpdate, ReadRange, Schedule, Served,
    SessionId, Store, Target, TimerKey, Timers, Timestamp, WakeLog,
};
use a2_core::{ClaimAvailable, Clear, LogDeclaration};
use futures_util::StreamExt;

use crate::MemoryStore;
use crate::store::Watched;

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn event() -> NewEvent {
    NewEvent::new("order.placed", &1).unwrap()
}

/// Appends events, each on a lane of its own.
async fn append(store: &MemoryStore, session: &SessionId, n: usize) {
    let events = (0..n).map(|i| event().target(Target::lane("c", format!("lane{i}")).unwrap()));
    let _ = store.append(session, Append::new(events).unwrap()).await.unwrap();
}

fn claim() -> ClaimAvailable {
    ClaimAvailable::new("w", Duration::from_secs(30)).unwrap()
}

#[tokio::test]
async fn what_writes_nothing_makes_no_session() {
    let store = MemoryStore::new();
    let s = session("unknown");
    assert!(store.read(&s, ReadRange::default()).await.unwrap().events.is_empty());
    assert!(store.claim_available(&s, claim()).await.unwrap().into_heads().is_empty());
    assert!(store.cursors(&s, Page::first()).await.unwrap().cursors.is_empty());
    assert!(store.clear(&s, Clear::new()).await.unwrap().cleared);
    assert!(store.reclaim(&s).await.unwrap().done);
    let head = HeadRef::new(Consumer::new("c").unwrap(), CursorKey::Event, Index::from(1));
    let complete = store.complete_attempt(&s, CompleteAttempt::new(head, 1)).await;
    assert_eq!(complete.unwrap_err().code(), "NOT_FOUND");
    let conflict = Append::one(event()).unwrap().expected_head(Index::from(7));
    assert_eq!(store.append(&s, conflict).await.unwrap_err().code(), "HEAD_CONFLICT");
    let _ = store.append(&s, Append::new([]).unwrap()).await.unwrap();
    assert_eq!(store.shared.global.count(), 0);

    // A log cursor or a timer does make one, and a timer's removal unmakes it.
    let key = TimerKey::new("k").unwrap();
    let timer = Schedule::new("k", Duration::from_secs(1), event()).unwrap();
    let _ = store.schedule(&s, timer).await.unwrap();
    assert_eq!(store.shared.global.count(), 1);
    assert!(store.unschedule(&s, &key).await.unwrap().removed);
    assert_eq!(store.shared.global.count(), 0);
    let log = WakeLog::new("c", LogDeclaration::new("log").unwrap()).unwrap();
    let _ = store.wake_log(&s, log).await.unwrap();
    assert_eq!(store.shared.global.count(), 1);
}

#[tokio::test]
async fn reclaim_goes_in_steps_and_spares_the_lifetime() {
    let store = MemoryStore::new();
    let s = session("s");
    append(&store, &s, 1_000).await;
    let heads = store.claim_available(&s, claim()).await.unwrap().into_heads();
    assert_eq!(heads.len(), 64);
    let _ = store.clear(&s, Clear::new()).await.unwrap();
    append(&store, &s, 2).await;
    let (mut deleted, mut steps) = (0, 0);
    loop {
        let step = store.reclaim(&s).await.unwrap();
        assert!(step.deleted <= 256, "{} rows in one call", step.deleted);
        (deleted, steps) = (deleted + step.deleted, steps + 1);
        if step.done {
            break;
        }
        assert_eq!(step.deleted, 256);
    }
    // At least the events, their heads and the lanes.
    assert!(deleted >= 3_000, "{deleted} rows");
    assert!(steps >= 12, "{steps} steps");
    let left = store.reclaim(&s).await.unwrap();
    assert_eq!((left.deleted, left.done), (0, true));
    let read = store.read(&s, ReadRange::default()).await.unwrap();
    assert_eq!(
        read.events.iter().map(|e| e.index.get()).collect::<Vec<_>>(),
        [1_001, 1_002, 1_003]
    );
    assert_eq!(store.claim_available(&s, claim()).await.unwrap().into_heads().len(), 2);
}

#[tokio::test]
async fn the_list_of_due_times_forgets_what_a_clear_dropped() {
    let clock = ManualClock::at(Timestamp::from_millis(1_000));
    let store = MemoryStore::builder().clock(Arc::new(clock)).build();
    let s = session("s");
    append(&store, &s, 1).await;
    for (key, seconds, origin) in
        [("free", 3, None), ("bound", 1, Some(1)), ("twin", 3, Some(1)), ("ahead", 2, Some(2))]
    {
        let timer = Schedule::new(key, Duration::from_secs(seconds), event()).unwrap();
        let timer = origin.map_or(timer.clone(), |at: u32| timer.origin_index(Index::from(at)));
        let _ = store.schedule(&s, timer).await.unwrap();
    }
    let due = Watched(Arc::clone(&store.shared));
    let at = Timestamp::from_millis;
    let next = |after| due.next_due(at(after));
    assert_eq!(next(0).await.unwrap(), Some(at(2_000)));
    assert_eq!(next(2_000).await.unwrap(), Some(at(3_000)));

    // The marker is at 2: it drops what is bound to 1. The second one, at 4, drops the other.
    let _ = store.clear(&s, Clear::new()).await.unwrap();
    assert_eq!(next(0).await.unwrap(), Some(at(3_000)));
    append(&store, &s, 1).await;
    let _ = store.clear(&s, Clear::new()).await.unwrap();
    assert_eq!(next(0).await.unwrap(), Some(at(4_000)));
    let all = due.due_timers(at(0), None, at(9_000), 10).await.unwrap();
    assert_eq!(all.iter().map(|due| due.due_at).collect::<Vec<_>>(), [at(4_000)]);
    assert!(store.reclaim(&s).await.unwrap().done);
    assert_eq!(store.timers(&s, Page::first()).await.unwrap().timers.len(), 1);
    assert_eq!(next(4_000).await.unwrap(), None);
}

#[tokio::test]
async fn a_session_has_work_while_a_head_lives() {
    let store = MemoryStore::new();
    let pending = async || {
        let page = store.pending(PendingPage::new(Served::ALL)).await.unwrap();
        assert_eq!(page.next, None);
        page.sessions.len()
    };
    for n in 0..200 {
        append(&store, &session(&format!("s{n}")), 1).await;
    }
    // More than a page of the default size.
    let first = store.pending(PendingPage::new(Served::ALL)).await.unwrap();
    assert_eq!(first.sessions.len(), 100);
    let rest = PendingPage::new(Served::ALL).page(Page::at(first.next.unwrap()));
    let rest = store.pending(rest).await.unwrap();
    let mut names: Vec<_> =
        first.sessions.iter().chain(&rest.sessions).map(|p| &p.session).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 200);
    for n in 0..200 {
        let s = session(&format!("s{n}"));
        for head in store.claim_available(&s, claim()).await.unwrap().into_heads() {
            let complete = CompleteAttempt::new(head.head.clone(), head.attempt());
            let _ = store.complete_attempt(&s, complete).await.unwrap();
        }
    }
    assert_eq!(pending().await, 0);
    append(&store, &session("s7"), 1).await;
    assert_eq!(pending().await, 1);
    let _ = store.clear(&session("s7"), Clear::new()).await.unwrap();
    assert_eq!(pending().await, 0);
}

#[tokio::test]
async fn closing_reaches_every_handle_and_stream() {
    let store = MemoryStore::new();
    let other = store.with_clock(Arc::new(ManualClock::default()));
    let s = session("s");
    append(&store, &s, 1).await;
    let mut stream = other.stream(&s, Index::ZERO);
    assert_eq!(stream.next().await.unwrap().unwrap().index, 1);
    store.close().await;
    assert_eq!(stream.next().await.unwrap().unwrap_err().code(), "CLOSED");
    assert!(stream.next().await.is_none());
    let closed = |error: Error| assert_eq!(error.code(), "CLOSED");
    let ns = Namespace::new("ns").unwrap();
    closed(other.read(&s, ReadRange::default()).await.unwrap_err());
    closed(other.append(&s, Append::one(event()).unwrap()).await.unwrap_err());
    closed(other.sessions(Page::first()).await.unwrap_err());
    closed(other.pending(PendingPage::new(Served::ALL)).await.unwrap_err());
    closed(other.read_presence(&ns).await.unwrap_err());
    let update = PresenceUpdate::new("p", Duration::from_secs(1)).unwrap();
    closed(other.set_presence(&ns, update).await.unwrap_err());
    closed(other.stream(&s, Index::ZERO).next().await.unwrap().unwrap_err());
    closed(other.watch_pending(Served::ALL).next().await.unwrap().unwrap_err());
    closed(other.watch_presence(&ns).next().await.unwrap().unwrap_err());
}

#[tokio::test]
async fn expired_presence_is_swept_by_the_handle_that_wrote_it() {
    let clocks = [ManualClock::default(), ManualClock::default()];
    let store = MemoryStore::builder().clock(Arc::new(clocks[0].clone())).build();
    let other = store.with_clock(Arc::new(clocks[1].clone()));
    let ns = |name: &str| Namespace::new(name).unwrap();
    let update = |seconds| {
        let update = PresenceUpdate::new("p", Duration::from_secs(seconds)).unwrap();
        update.set("typing", Json::parse("true").unwrap()).unwrap()
    };
    store.set_presence(&ns("a"), update(1)).await.unwrap().unwrap();
    clocks[0].advance(Duration::from_secs(2));
    clocks[1].advance(Duration::from_secs(2));
    assert!(store.read_presence(&ns("a")).await.unwrap().rows.is_empty());
    // Only a write of the same handle sweeps, and only in the shard that it goes to.
    let count = || store.shared.presences.count();
    assert_eq!(count(), 1);
    for n in 0..200 {
        other.set_presence(&ns(&format!("other{n}")), update(9)).await.unwrap().unwrap();
    }
    assert_eq!(count(), 201);
    for n in 0..200 {
        store.set_presence(&ns(&format!("own{n}")), update(9)).await.unwrap().unwrap();
    }
    assert_eq!(count(), 400);
}
