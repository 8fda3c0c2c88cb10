//! The reference itself, on small examples taken from the rules.

use std::time::Duration;

use a2_core::{
    Append, Cause, Claim, ClaimAvailable, Clear, CompleteAttempt, Completion, Consumer, CursorKey,
    ErrorKind, EventId, EventType, FailAttempt, Failure, FireTimers, HeadRef, Index, Json, Lane,
    LogDeclaration, LogName, LogTypes, NewEvent, Participant, PresenceUpdate, PutSnapshots,
    ReadRange, ReadState, Redrive, RedriveAction, ReducerName, ReleaseClaims, RenewClaims,
    Schedule, Served, ServedConsumer, SessionId, SnapshotWrite, Target, Timestamp, WakeLog,
};

use super::session::Session;

fn s() -> Session {
    Session::new(SessionId::new("s").unwrap())
}

fn t(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn ev(id: &str) -> NewEvent {
    typed(id, "t")
}

fn typed(id: &str, event_type: &str) -> NewEvent {
    NewEvent::from_json(event_type, Json::null()).unwrap().id(id).unwrap()
}

fn lane(id: &str) -> NewEvent {
    ev(id).target(Target::lane("c", "l").unwrap())
}

fn each(id: &str) -> NewEvent {
    ev(id).target(Target::event("c").unwrap())
}

fn lane_head(index: u32) -> HeadRef {
    let key = CursorKey::Lane(Lane::new("l").unwrap());
    HeadRef::new(Consumer::new("c").unwrap(), key, Index::from(index))
}

fn log_head(index: u32) -> HeadRef {
    let key = CursorKey::Log(LogName::new("g").unwrap());
    HeadRef::new(Consumer::new("c").unwrap(), key, Index::from(index))
}

fn follows(types: &[&str], backfill: bool) -> LogDeclaration {
    let types = types.iter().map(|name| EventType::new(name).unwrap());
    let log = LogDeclaration::new("g").unwrap().types(LogTypes::only(types).unwrap());
    if backfill { log.backfill() } else { log }
}

fn serving(log: LogDeclaration) -> Served {
    Served::only([ServedConsumer::new("c").unwrap().log(log)]).unwrap()
}

fn append(s: &mut Session, events: impl IntoIterator<Item = NewEvent>) {
    let _ = s.append(t(0), &Append::new(events).unwrap()).unwrap();
}

fn take(holder: &str) -> ClaimAvailable {
    ClaimAvailable::new(holder, ms(10)).unwrap()
}

/// Index and attempt of each head that was claimed.
fn claimed(s: &mut Session, now: i64, claim: &ClaimAvailable) -> Vec<(u64, u64)> {
    match s.claim(t(now), claim).0 {
        Claim::Claimed(claimed) => {
            claimed.heads.iter().map(|h| (h.head.index.get(), h.attempt())).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn busy(s: &mut Session, now: i64) -> u128 {
    match s.claim(t(now), &take("w")).0 {
        Claim::Busy(busy) => busy.retry_after.as_millis(),
        other => panic!("{other:?}"),
    }
}

fn completed(s: &mut Session, now: i64, complete: CompleteAttempt) -> bool {
    matches!(s.complete(t(now), &complete).unwrap(), Completion::Completed(_))
}

fn log_place(s: &Session) -> (u64, Option<u64>) {
    let log = &s.logs[0];
    (log.position.get(), log.head.as_ref().map(|(index, _)| index.get()))
}

#[test]
fn a_batch_that_exists_is_a_replay_and_a_part_of_one_is_none() {
    let mut s = s();
    append(&mut s, [ev("a"), ev("b")]);
    let again = s.append(t(5), &Append::new([ev("b"), ev("a")]).unwrap()).unwrap();
    assert!(again.replayed);
    assert_eq!(again.events.iter().map(|e| e.index.get()).collect::<Vec<_>>(), [2, 1]);
    let existing = vec![EventId::new("b").unwrap()];
    assert_eq!(
        s.append(t(5), &Append::new([ev("c"), ev("b")]).unwrap()),
        Err(ErrorKind::PartialDuplicateBatch { existing })
    );
    assert_eq!(s.head(), 2);
}

#[test]
fn a_clear_frees_the_ids_below_the_marker_and_keeps_its_own() {
    let mut s = s();
    append(&mut s, [ev("a")]);
    let cleared = s.clear(t(0), &Clear::new().id("m").unwrap()).unwrap();
    assert_eq!((cleared.cleared, cleared.index.get(), cleared.clear_index.get()), (true, 2, 2));
    let a = s.append(t(0), &Append::one(ev("a")).unwrap()).unwrap();
    assert_eq!((a.replayed, a.events[0].index.get()), (false, 3));
    assert!(s.append(t(0), &Append::one(ev("m")).unwrap()).unwrap().replayed);
    let read = s.read(&ReadRange::after(Index::ZERO));
    assert_eq!(read.events.iter().map(|e| e.index.get()).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(read.events[0].event_type.as_str(), "a2.clear");
}

#[test]
fn clear_goes_by_its_numbered_rules() {
    let mut s = s();
    let nothing = s.clear(t(0), &Clear::new()).unwrap();
    assert_eq!((nothing.cleared, nothing.index.get()), (true, 0));
    append(&mut s, [ev("a"), ev("b")]);
    let other = s.clear(t(0), &Clear::new().if_last_index(Index::from(1))).unwrap();
    assert_eq!((other.cleared, other.index.get(), other.clear_index.get()), (false, 2, 0));
    let at_2 = Clear::new().if_last_index(Index::from(2)).id("m").unwrap();
    assert!(s.clear(t(0), &at_2).unwrap().cleared);
    append(&mut s, [ev("c")]);
    // Done already: by its id, and by the index that it was to clear.
    assert_eq!(s.clear(t(0), &Clear::new().id("m").unwrap()).unwrap().index.get(), 4);
    let again = s.clear(t(0), &Clear::new().if_last_index(Index::from(2))).unwrap();
    assert_eq!((again.cleared, again.index.get(), again.clear_index.get()), (true, 4, 3));
    let cause = Clear::new().cause(Cause::new(lane_head(4), 1));
    assert_eq!(s.clear(t(0), &cause), Err(ErrorKind::SupersededAttempt));
}

#[test]
fn a_lane_goes_in_log_order_and_a_lease_ends_exactly_at_its_time() {
    let mut s = s();
    append(&mut s, [lane("a"), lane("b"), each("c")]);
    assert_eq!(claimed(&mut s, 0, &take("w")), [(1, 1), (3, 1)]);
    assert_eq!(busy(&mut s, 4), 6);
    assert_eq!(claimed(&mut s, 10, &take("v")), [(1, 2), (3, 2)]);
    assert!(!completed(&mut s, 10, CompleteAttempt::new(lane_head(1), 1)));
    assert!(completed(&mut s, 10, CompleteAttempt::new(lane_head(1), 2)));
    assert_eq!(claimed(&mut s, 10, &take("v")), [(2, 1)]);
    let cursors = s.cursors();
    assert_eq!(cursors[0].key, CursorKey::Lane(Lane::new("l").unwrap()));
    assert_eq!((cursors[0].position.get(), cursors[0].head), (1, Some(Index::from(2))));
    assert_eq!(cursors[1].key, CursorKey::Event);
    assert_eq!((cursors[1].position.get(), cursors[1].head), (2, Some(Index::from(3))));
    assert_eq!(cursors[1].state.failure_count, 1);
    assert_eq!(cursors[1].state.last_error.as_deref(), Some("lease expired"));
}

#[test]
fn a_lapse_that_spends_the_budget_is_a_dead_letter() {
    let mut s = s();
    append(&mut s, [lane("a"), lane("b")]);
    let budget = take("w").max_failures(2).unwrap();
    assert_eq!(claimed(&mut s, 0, &budget), [(1, 1)]);
    assert_eq!(claimed(&mut s, 10, &budget), [(1, 2)]);
    assert_eq!(claimed(&mut s, 20, &budget), [(1, 3)]);
    let dead = s.dead_letters();
    assert_eq!((dead[0].attempt(), dead[0].state.failure_count), (3, 2));
    assert_eq!(dead[0].state.failed_at, Some(t(20)));
    assert_eq!(dead[0].state.last_failed_attempt, Some(2));
    assert_eq!(s.claim(t(20), &take("w")).0, Claim::Settled);
    let none = s.redrive(&Redrive::new(lane_head(2), RedriveAction::Skip));
    assert!(!none.redriven);
    let skip = s.redrive(&Redrive::new(lane_head(1), RedriveAction::Skip));
    assert_eq!((skip.redriven, skip.has_pending), (true, true));
    assert_eq!(claimed(&mut s, 20, &take("w")), [(2, 1)]);
}

#[test]
fn a_failure_holds_the_head_and_answers_the_same_again() {
    let mut s = s();
    append(&mut s, [lane("a")]);
    assert_eq!(claimed(&mut s, 0, &take("w")), [(1, 1)]);
    let fail = FailAttempt::new(lane_head(1), 1, "x").retry_after(ms(5));
    assert_eq!(s.fail(t(1), &fail), Ok(Failure::Failed { failure_count: 1 }));
    assert_eq!(s.fail(t(2), &fail), Ok(Failure::Failed { failure_count: 1 }));
    assert_eq!(busy(&mut s, 2), 4);
    assert_eq!(claimed(&mut s, 6, &take("w")), [(1, 2)]);
    assert_eq!(s.fail(t(6), &fail), Ok(Failure::Superseded));
    let last = FailAttempt::new(lane_head(1), 2, "y").max_failures(2).unwrap();
    assert_eq!(s.fail(t(7), &last), Ok(Failure::DeadLettered { failure_count: 2 }));
    assert_eq!(s.fail(t(8), &last), Ok(Failure::DeadLettered { failure_count: 2 }));
    assert!(s.redrive(&Redrive::new(lane_head(1), RedriveAction::Retry)).redriven);
    assert_eq!(s.fail(t(8), &last), Ok(Failure::Failed { failure_count: 0 }));
    let no_index = FailAttempt::new(lane_head(2), 1, "z");
    let session = SessionId::new("s").unwrap();
    let not_found = ErrorKind::NotFound { session, index: Index::from(2) };
    assert_eq!(s.fail(t(8), &no_index), Err(not_found));
}

#[test]
fn a_completion_is_remembered_with_what_it_returned() {
    let mut s = s();
    append(&mut s, [lane("a"), lane("b")]);
    assert_eq!(claimed(&mut s, 0, &take("w")), [(1, 1)]);
    let with = |ids: &[&str]| {
        CompleteAttempt::new(lane_head(1), 1).events(ids.iter().map(|id| ev(id))).unwrap()
    };
    let existing = vec![EventId::new("b").unwrap()];
    let taken = Err(ErrorKind::PartialDuplicateBatch { existing });
    assert_eq!(s.complete(t(1), &with(&["x", "b"])), taken);
    let Completion::Completed(done) = s.complete(t(1), &with(&["x", "y"])).unwrap() else {
        panic!("superseded")
    };
    assert_eq!(done.events[0].cause, Some(Cause::new(lane_head(1), 1)));
    assert_eq!(claimed(&mut s, 1, &take("w")), [(2, 1)]);
    let Completion::Completed(again) = s.complete(t(2), &with(&["x", "y"])).unwrap() else {
        panic!("superseded")
    };
    assert!(again.replayed && again.events == done.events);
    assert!(matches!(
        s.complete(t(2), &with(&["y", "x"])),
        Err(ErrorKind::PartialDuplicateBatch { .. })
    ));
    let other = CompleteAttempt::new(lane_head(1), 2);
    assert_eq!(s.complete(t(2), &other), Ok(Completion::Superseded));
}

#[test]
fn renew_and_release_are_for_the_holder_of_a_current_claim() {
    let mut s = s();
    append(&mut s, [lane("a"), each("b")]);
    let Claim::Claimed(mine) = s.claim(t(0), &take("w")).0 else { panic!("none") };
    let claims: Vec<_> = mine.heads.iter().map(|head| head.attempt_ref()).collect();
    let renew = |holder: &str, ttl| RenewClaims::new(holder, claims.clone(), ms(ttl)).unwrap();
    assert!(s.renew(t(5), &renew("v", 10)).renewed.is_empty());
    assert_eq!(s.renew(t(5), &renew("w", 2)).renewed, claims);
    let late = s.renew(t(7), &renew("w", 10));
    assert!(late.renewed.is_empty() && late.superseded.is_empty());
    let release = ReleaseClaims::new("w", claims.clone()).unwrap();
    assert_eq!(s.release(&release).released, claims);
    assert!(s.release(&release).released.is_empty());
    assert_eq!(claimed(&mut s, 7, &take("v")), [(1, 2), (2, 2)]);
    assert_eq!(s.renew(t(7), &renew("w", 10)).superseded, claims);
    assert_eq!(s.cursors()[0].state.failure_count, 0);
}

#[test]
fn a_log_begins_where_its_declaration_says() {
    let with = serving(follows(&["t"], true));
    let without = serving(follows(&["t"], false));
    for (served, place) in [(with, (0, Some(1))), (without, (2, Some(3)))] {
        let mut s = s();
        append(&mut s, [ev("a"), typed("b", "u")]);
        let other = Append::one(typed("x", "u")).unwrap().served(served.clone());
        // It carries nothing that the log takes.
        let mut untouched = s.clone();
        let _ = untouched.append(t(0), &other).unwrap();
        assert!(untouched.logs.is_empty());
        let append = Append::one(ev("c")).unwrap().served(served);
        assert!(s.append(t(0), &append).unwrap().has_pending);
        assert_eq!(log_place(&s), place);
    }
}

#[test]
fn a_log_goes_on_with_what_others_appended_meanwhile() {
    let mut s = s();
    let declared = follows(&["t"], false);
    let woken = s.wake_log(&WakeLog::new("c", declared.clone()).unwrap());
    assert_eq!((woken.cursor.position.get(), woken.cursor.head), (0, None));
    append(&mut s, [typed("a", "u"), ev("b"), ev("c"), ev("d"), ev("e")]);
    assert_eq!(log_place(&s), (0, None));
    let woken = s.wake_log(&WakeLog::new("c", declared).unwrap());
    assert_eq!(woken.cursor.head, Some(Index::from(2)));
    let Claim::Claimed(run) = s.claim(t(0), &take("w").run(3).unwrap()).0 else { panic!("none") };
    assert_eq!(run.heads[0].run.iter().map(|e| e.index.get()).collect::<Vec<_>>(), [3, 4]);
    let through = |n| CompleteAttempt::new(log_head(2), 1).through(Index::from(n)).unwrap();
    assert!(matches!(s.complete(t(0), &through(6)), Err(ErrorKind::InvalidInput { .. })));
    assert!(completed(&mut s, 0, through(4)));
    assert_eq!(log_place(&s), (4, Some(5)));
    let Completion::Completed(again) = s.complete(t(0), &through(4)).unwrap() else {
        panic!("superseded")
    };
    assert!(again.replayed);
    assert!(!completed(&mut s, 0, CompleteAttempt::new(log_head(3), 1)));
    let _ = s.clear(t(0), &Clear::new()).unwrap();
    assert_eq!(log_place(&s), (6, None));
}

#[test]
fn snapshots_stay_while_they_are_the_latest_or_pinned() {
    let (mut s, r) = (s(), ReducerName::new("r").unwrap());
    append(&mut s, [lane("a"), lane("b"), ev("c")]);
    let write = |index, state, pins: &[HeadRef]| {
        let write = SnapshotWrite::new(Index::from(index), Json::parse(state).unwrap());
        PutSnapshots::new([write.pins(pins.to_vec()).unwrap()]).unwrap()
    };
    let put = |s: &mut Session, index, state, pins: &[HeadRef]| {
        let put = s.put_snapshots(&r, &write(index, state, pins));
        put.map(|put| put.stored.iter().map(|i| i.get()).collect::<Vec<_>>())
    };
    // A queued event is no head: its pin is ignored.
    assert_eq!(put(&mut s, 1, "1", &[lane_head(1), lane_head(2)]).unwrap(), [1]);
    assert_eq!(put(&mut s, 3, "3", &[]).unwrap(), [3]);
    assert!(put(&mut s, 2, "2", &[lane_head(2)]).unwrap().is_empty());
    assert!(matches!(put(&mut s, 4, "4", &[]), Err(ErrorKind::InvalidInput { .. })));
    let at = |s: &Session, n| {
        let read = ReadState::latest().snapshot_through(Index::from(n));
        let read = s.read_state(&ReducerName::new("r").unwrap(), &read);
        let events: Vec<_> = read.events.iter().map(|e| e.index.get()).collect();
        (read.snapshot.map(|s| s.index.get()), read.latest_snapshot.map(|i| i.get()), events)
    };
    assert_eq!(at(&s, 2), (Some(1), Some(3), vec![2, 3]));
    assert_eq!(claimed(&mut s, 0, &take("w")), [(1, 1)]);
    assert!(completed(&mut s, 0, CompleteAttempt::new(lane_head(1), 1)));
    assert_eq!(at(&s, 2), (None, Some(3), vec![1, 2, 3]));
    let _ = s.clear(t(0), &Clear::new()).unwrap();
    assert_eq!(at(&s, 9), (None, None, vec![4]));
}

#[test]
fn timers_fire_once_in_order_of_time() {
    let mut s = s();
    append(&mut s, [ev("a")]);
    let at = |key, after, id| Schedule::new(key, ms(after), ev(id)).unwrap();
    for timer in [at("x", 20, "x"), at("y", 10, "y"), at("z", 10, "a"), at("w", 30, "w")] {
        let _ = s.schedule(t(0), &timer).unwrap();
    }
    let below = at("v", 40, "v").origin_index(Index::from(1));
    assert_eq!(s.schedule(t(0), &below).unwrap().due_at, t(40));
    let fired = s.fire_timers(t(20), &FireTimers::new());
    let ids: Vec<_> = fired.events.iter().map(|e| (e.id.as_str(), e.index.get())).collect();
    assert_eq!(ids, [("y", 2), ("x", 3)]);
    assert!(s.fire_timers(t(20), &FireTimers::new()).events.is_empty());
    let _ = s.clear(t(20), &Clear::new()).unwrap();
    assert_eq!(s.timers().iter().map(|t| t.key.as_str()).collect::<Vec<_>>(), ["w"]);
    let clear_index = Index::from(4);
    assert_eq!(s.schedule(t(20), &below), Err(ErrorKind::SessionCleared { clear_index }));
    assert!(s.unschedule(&"w".try_into().unwrap()).removed);
    assert!(!s.unschedule(&"w".try_into().unwrap()).removed);
}

#[test]
fn presence_tells_what_changed() {
    let mut rows = Vec::new();
    let update = |value: &str, seen: u32, ttl| {
        PresenceUpdate::new(Participant::new("p").unwrap(), ms(ttl))
            .unwrap()
            .set("f", Json::parse(value).unwrap())
            .unwrap()
            .seen(Index::from(seen))
    };
    assert!(super::presence::set(&mut rows, &update("1", 1, 10), t(0)).is_some());
    assert!(super::presence::set(&mut rows, &update("1", 1, 10), t(5)).is_none());
    assert!(super::presence::set(&mut rows, &update("1", 2, 10), t(5)).is_some());
    assert_eq!(super::presence::read(&rows, t(14)).rows[0].expires_at, t(15));
    assert!(super::presence::read(&rows, t(15)).rows.is_empty());
    assert!(super::presence::set(&mut rows, &update("null", 2, 10), t(15)).is_none());
}
