//! Lost answers, every write in one table: whichever is lost, before it reached the store or after it was
//! done, a plain retry ends where nothing was lost.

use std::sync::{Arc, Mutex, PoisonError};

use a2_core::{
    AttemptRef, Clear, CompleteAttempt, Cursor, DispatchedHead, Event, FailAttempt, FireTimers, Page,
    Presence, PresenceUpdate, PutSnapshots, ReadState, Redrive, RedriveAction, ReducerName,
    ReleaseClaims, RenewClaims, Result, Schedule, SessionId, SnapshotWrite, StateRead, Store,
    StoreExt, Timer, TimerKey, Timers, WakeLog,
};

use crate::case::cases;
use crate::kit::*;
use crate::{Cx, Losing, Loss};

cases![
    all: rules(R38, F3), needs(Timers, Presence);
    "retries.table.lost_before" => lost_before;
    "retries.table.lost_after" => lost_after: rules(F8);
];

/// What a write needs: the store that loses it, and where.
struct Place<'a> {
    timers: Losing<&'a dyn Timers>,
    presence: Losing<&'a dyn Presence>,
    session: SessionId,
    namespace: a2_core::Namespace,
}

/// A write; what it answers depends on whether it was sent before.
type Write = for<'a> fn(&'a Place<'a>) -> futures_util::future::BoxFuture<'a, Result<()>>;

macro_rules! writes {
    ($($name:ident: |$p:ident| $call:expr;)*) => {
        &[$((stringify!($name), |$p| Box::pin(async move { $call.await.map(drop) })),)*]
    };
}

/// Every kind of write, each once; some more than once, where it depends on what was before.
const WRITES: &[(&str, Write)] = writes![
    append: |p| p.timers.append(&p.session, batch(first_events()).served(log_served()));
    renew: |p| p.timers.renew_claims(
        &p.session,
        RenewClaims::new(WORKER, [AttemptRef::new(lane_head("c", "l", 1), 1)], secs(90)).unwrap(),
    );
    put_snapshots: |p| p.timers.put_snapshots(&p.session, &fold(), snapshots());
    complete: |p| p.timers.complete_attempt(&p.session, completion());
    claim_second: |p| claim_again(p);
    fail: |p| p.timers.fail_attempt(&p.session, failure(1, 3));
    claim_third: |p| claim_again(p);
    dead_letter: |p| p.timers.fail_attempt(&p.session, failure(2, 2));
    retry: |p| p.timers.redrive(&p.session, redrive(RedriveAction::Retry));
    claim_fourth: |p| claim_again(p);
    release: |p| p.timers.release_claims(
        &p.session,
        ReleaseClaims::new(WORKER, [AttemptRef::new(lane_head("c", "l", 2), 3)]).unwrap(),
    );
    claim_fifth: |p| claim_again(p);
    bury: |p| p.timers.fail_attempt(&p.session, failure(4, 1));
    skip: |p| p.timers.redrive(&p.session, redrive(RedriveAction::Skip));
    wake_log: |p| p.timers.wake_log(
        &p.session,
        WakeLog::new("other", all_types("log").backfill()).unwrap(),
    );
    schedule: |p| p.timers.schedule(&p.session, timer("due", 0));
    schedule_late: |p| p.timers.schedule(&p.session, timer("late", 60));
    replace: |p| p.timers.schedule(&p.session, timer("late", 90));
    schedule_third: |p| p.timers.schedule(&p.session, timer("gone", 60));
    unschedule: |p| unschedule(p);
    fire_timers: |p| p.timers.fire_timers(&p.session, FireTimers::new());
    set_presence: |p| p.presence.set_presence(&p.namespace, presence());
];

/// What a clear hides would not be seen at the end: it has a table of its own.
const CLEARS: &[(&str, Write)] = writes![
    append: |p| p.timers.append(&p.session, batch(first_events()).served(log_served()));
    clear: |p| p.timers.clear(&p.session, Clear::new().id("first").unwrap());
    append_again: |p| p.timers.append(&p.session, batch(first_events()).served(log_served()));
    clear_at: |p| p.timers.clear(
        &p.session,
        Clear::new().id("second").unwrap().if_last_index(at(7)),
    );
    append_third: |p| p.timers.append(&p.session, batch([ev_for_c()]));
    reclaim: |p| p.timers.reclaim(&p.session);
];

fn first_events() -> Vec<a2_core::NewEvent> {
    many("e", 3).into_iter().map(|event| event.target(to_lane("c", "l"))).collect()
}

fn ev_for_c() -> a2_core::NewEvent {
    ev("new").target(to_event("c"))
}

fn log_served() -> a2_core::Served {
    serve_log("d", all_types("log"))
}

fn fold() -> ReducerName {
    ReducerName::new("fold").unwrap()
}

fn snapshots() -> PutSnapshots {
    let pinned = SnapshotWrite::new(at(1), json("1")).pins([lane_head("c", "l", 2)]).unwrap();
    PutSnapshots::new([pinned, SnapshotWrite::new(at(3), json("3"))]).unwrap()
}

fn completion() -> CompleteAttempt {
    let children = [ev("k1").target(to_lane("d", "m")), ev("k2")];
    CompleteAttempt::new(lane_head("c", "l", 1), 1).events(children).unwrap()
}

fn failure(attempt: u64, budget: u64) -> FailAttempt {
    FailAttempt::new(lane_head("c", "l", 2), attempt, "boom").max_failures(budget).unwrap()
}

fn redrive(action: RedriveAction) -> Redrive {
    Redrive::new(lane_head("c", "l", 2), action)
}

fn timer(key: &str, after: u64) -> Schedule {
    Schedule::new(key, secs(after), ev(&format!("{key}-{after}"))).unwrap()
}

fn presence() -> PresenceUpdate {
    PresenceUpdate::new("p", secs(60)).unwrap().set("f", json("[1]")).unwrap()
}

/// Never lost: whoever loses a claim's answer has to wait for the lease's end.
async fn claim_again(place: &Place<'_>) -> Result<()> {
    let one = claim().served(serve(["c"])).limit(1).unwrap();
    place.timers.claim_available(&place.session, one).await.map(drop)
}

async fn unschedule(place: &Place<'_>) -> Result<()> {
    let key = TimerKey::new("gone").unwrap();
    place.timers.unschedule(&place.session, &key).await.map(drop)
}

/// All that can be seen of a session and a namespace.
#[derive(Debug, PartialEq)]
struct Seen {
    log: Vec<Event>,
    cursors: Vec<Cursor>,
    dead: Vec<DispatchedHead>,
    timers: Vec<Timer>,
    states: Vec<StateRead>,
    presence: Vec<a2_core::PresenceRow>,
}

/// Does the writes, of which `lost` is lost once and then sent again as it is.
async fn script(cx: &Cx, writes: &[(&str, Write)], lost: Option<(usize, Loss)>) -> Seen {
    let armed = Arc::new(Mutex::new(Loss::None));
    let decide = |armed: &Arc<Mutex<Loss>>| {
        let armed = Arc::clone(armed);
        move |operation: &'static str| {
            let mut armed = armed.lock().unwrap_or_else(PoisonError::into_inner);
            if operation == "claim_available" {
                return Loss::None;
            }
            std::mem::replace(&mut *armed, Loss::None)
        }
    };
    let place = Place {
        timers: Losing::new(cx.timers(), decide(&armed)),
        presence: Losing::new(cx.presence(), decide(&armed)),
        session: cx.session("lost"),
        namespace: cx.namespace("lost"),
    };
    for (n, (name, write)) in writes.iter().enumerate() {
        let is_claim = name.starts_with("claim");
        let loss = lost.filter(|(place, _)| *place == n && !is_claim).map(|(_, loss)| loss);
        *armed.lock().unwrap_or_else(PoisonError::into_inner) = loss.unwrap_or(Loss::None);
        let first = write(&place).await;
        if loss.is_some() {
            let error = first.expect_err("it was lost");
            assert!(error.is_retryable() && error.outcome_unknown(), "{name}: {error}");
            write(&place).await.unwrap_or_else(|error| panic!("{name}, again: {error}"));
        } else {
            first.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        if n == 0 {
            // What the table's attempts are made on.
            claim_again(&place).await.unwrap();
        }
    }
    seen(cx, &place).await
}

async fn seen(cx: &Cx, place: &Place<'_>) -> Seen {
    let s = &place.session;
    let same_name = SessionId::new("the session").unwrap();
    let named = |mut event: Event| {
        event.session = same_name.clone();
        event
    };
    let mut dead = cx.store().all_dead_letters(s).await.unwrap();
    for head in &mut dead {
        head.event = named(head.event.clone());
    }
    let mut states = Vec::new();
    for through in [1, 3, 9] {
        let read = ReadState::through(at(through));
        let mut state = cx.store().read_state(s, &fold(), read).await.unwrap();
        state.events = state.events.into_iter().map(named).collect();
        states.push(state);
    }
    Seen {
        log: log(cx, s).await.into_iter().map(named).collect(),
        cursors: cx.store().all_cursors(s).await.unwrap(),
        dead,
        timers: cx.timers().timers(s, Page::first()).await.unwrap().timers,
        states,
        presence: cx.presence().read_presence(&place.namespace).await.unwrap().rows,
    }
}

async fn each_lost(cx: &Cx, loss: Loss) {
    for writes in [WRITES, CLEARS] {
        let undisturbed = script(cx, writes, None).await;
        for (n, (name, _)) in writes.iter().enumerate() {
            let disturbed = script(cx, writes, Some((n, loss))).await;
            assert_eq!(disturbed, undisturbed, "{name} was lost {loss:?}");
        }
    }
}

async fn lost_before(cx: Cx) {
    each_lost(&cx, Loss::Before).await;
}

async fn lost_after(cx: Cx) {
    each_lost(&cx, Loss::After).await;
    // The script does what it says.
    let seen = script(&cx, WRITES, None).await;
    assert_eq!(ids(&seen.log), ["e1", "e2", "e3", "k1", "k2", "due-0"]);
    assert_eq!((seen.dead.len(), seen.timers.len(), seen.presence.len()), (0, 1, 1));
    assert_eq!(seen.timers[0].event.event_id().unwrap().as_str(), "late-90");
    let cleared = script(&cx, CLEARS, None).await;
    assert_eq!(ids(&cleared.log), ["second", "new"]);
    assert_eq!(indexes(&cleared.log), [8, 9]);
}
