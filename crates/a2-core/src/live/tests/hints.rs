//! Hints for what is appended and for timers that become due.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::*;
use crate::live::{DueTimer, DueTimers, work_hints};
use crate::{ManualClock, Served, WorkHints};

/// Timers, which nobody fires. Setting one tells nobody.
#[derive(Clone, Default)]
struct TestTimers(Arc<Mutex<Timers>>);

#[derive(Default)]
struct Timers {
    due: BTreeSet<DueTimer>,
    /// How many of the next questions fail.
    fails: usize,
    closed: bool,
    asked: usize,
}

impl TestTimers {
    fn set(&self, due_at: i64, name: &str) {
        lock(&self.0).due.insert(DueTimer { due_at: ms(due_at), session: session(name) });
    }

    fn fire(&self, due_at: i64, name: &str) {
        let timer = DueTimer { due_at: ms(due_at), session: session(name) };
        assert!(lock(&self.0).due.remove(&timer));
    }

    fn asked(&self) -> usize {
        lock(&self.0).asked
    }

    fn answer<T>(&self, f: impl FnOnce(&BTreeSet<DueTimer>) -> T) -> Result<T> {
        let mut timers = lock(&self.0);
        timers.asked += 1;
        if timers.closed {
            return Err(Error::closed());
        }
        if timers.fails > 0 {
            timers.fails -= 1;
            return Err(unavailable());
        }
        Ok(f(&timers.due))
    }
}

#[async_trait]
impl DueTimers for TestTimers {
    async fn due_timers(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>> {
        let wanted = |timer: &&DueTimer| {
            (from..=through).contains(&timer.due_at)
                && (timer.due_at > from || after.is_none_or(|after| timer.session > *after))
        };
        self.answer(|due| due.iter().filter(wanted).take(limit).cloned().collect())
    }

    async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>> {
        self.answer(|due| due.iter().map(|timer| timer.due_at).find(|at| *at > after))
    }
}

fn watch(hub: &Hub, timers: &TestTimers, clock: &ManualClock) -> WorkHints {
    work_hints(hub, timers.clone(), Arc::new(clock.clone()), Served::ALL, None)
}

/// At one second by the clock.
fn quiet() -> (Hub, TestTimers, ManualClock) {
    (Hub::new(), TestTimers::default(), ManualClock::at(ms(1_000)))
}

/// The sessions that are hinted now.
fn hinted(hints: &mut WorkHints) -> Vec<String> {
    let mut sessions = Vec::new();
    while let Some(hint) = now(hints) {
        sessions.push(hint.unwrap().unwrap().session.to_string());
    }
    sessions
}

#[tokio::test]
async fn what_is_appended_or_woken_is_hinted_once_until_it_is_told() {
    let (hub, timers, clock) = quiet();
    let mut hints = watch(&hub, &timers, &clock);
    let log = TestLog::new("hint-appended");
    hub.appended(&session("hint-appended"), &log.append(1));
    hub.wake(&session("hint-woken"));
    hub.appended(&session("hint-appended"), &log.append(1));
    hub.cleared(&session("hint-cleared"), index(1));
    hub.reached(&session("hint-reached"), index(1));
    hub.hint(&session("hint-redriven"));
    let all = ["hint-appended", "hint-woken", "hint-cleared", "hint-reached", "hint-redriven"];
    assert_eq!(hinted(&mut hints), all);
    hub.wake(&session("hint-woken"));
    assert_eq!(hinted(&mut hints), ["hint-woken"]);
}

#[tokio::test]
async fn a_hint_wakes_every_watcher() {
    let (hub, timers, clock) = quiet();
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let mut hints = watch(&hub, &timers, &clock);
            tokio::spawn(async move { next(&mut hints).await.unwrap().unwrap().session })
        })
        .collect();
    tokio::task::yield_now().await;
    hub.hint(&session("hint-wakes"));
    for hints in waiting {
        assert_eq!(hints.await.unwrap(), session("hint-wakes"));
    }
    assert!(!hub.has_watchers());
}

#[tokio::test]
async fn a_slow_watcher_loses_hints_and_keeps_1024() {
    let (hub, timers, clock) = quiet();
    let mut hints = watch(&hub, &timers, &clock);
    for n in 0..1_500 {
        hub.hint(&session(&format!("hint-{n}")));
    }
    let sessions = hinted(&mut hints);
    assert_eq!(sessions.len(), 1_024);
    assert_eq!((sessions[0].as_str(), sessions[1_023].as_str()), ("hint-0", "hint-1023"));
    hub.hint(&session("hint-1499"));
    assert_eq!(hinted(&mut hints), ["hint-1499"]);
}

#[tokio::test]
async fn a_timer_is_hinted_when_the_clock_reaches_it() {
    let (hub, timers, clock) = quiet();
    timers.set(1_500, "timer-a");
    let mut hints = watch(&hub, &timers, &clock);
    assert!(hinted(&mut hints).is_empty());
    clock.set(ms(1_499));
    assert!(hinted(&mut hints).is_empty());

    let waiting = tokio::spawn(async move {
        let hint = next(&mut hints).await.unwrap().unwrap();
        (hints, hint.session)
    });
    tokio::task::yield_now().await;
    clock.set(ms(1_500));
    let (mut hints, hinted_session) = waiting.await.unwrap();
    assert_eq!(hinted_session, session("timer-a"));
    // It stays overdue, and is not hinted again.
    clock.set(ms(9_000));
    hub.timers_changed();
    assert!(hinted(&mut hints).is_empty());
}

#[tokio::test]
async fn a_timer_that_is_set_later_is_known_without_asking() {
    let (hub, timers, clock) = quiet();
    timers.set(2_000, "timer-b");
    let mut hints = watch(&hub, &timers, &clock);
    assert!(hinted(&mut hints).is_empty());
    let asked = timers.asked();
    for (due_at, name) in [(3_000, "timer-c"), (1_200, "timer-d"), (1_000, "timer-e")] {
        timers.set(due_at, name);
        hub.timer_set(ms(due_at));
    }
    assert_eq!(timers.asked(), asked);
    // One was due when it was set.
    assert_eq!(hinted(&mut hints), ["timer-e"]);
    clock.set(ms(1_200));
    assert_eq!(hinted(&mut hints), ["timer-d"]);
    clock.set(ms(3_000));
    assert_eq!(hinted(&mut hints), ["timer-b", "timer-c"]);
    // Set into the past, as when its commit was slow.
    timers.set(1_100, "timer-f");
    hub.timer_set(ms(1_100));
    assert_eq!(hinted(&mut hints)[..], ["timer-f", "timer-d", "timer-b", "timer-c"]);
}

#[tokio::test]
async fn overdue_timers_are_hinted_at_the_start_however_many_there_are() {
    let (hub, timers, clock) = quiet();
    for n in 0..600 {
        timers.set(900, &format!("overdue-{n:03}"));
    }
    timers.set(950, "overdue-later");
    let mut hints = watch(&hub, &timers, &clock);
    let sessions = hinted(&mut hints);
    assert_eq!(sessions.len(), 601);
    assert_eq!((sessions[0].as_str(), sessions[599].as_str()), ("overdue-000", "overdue-599"));
    assert_eq!(sessions[600], "overdue-later");
    assert!(hinted(&mut hints).is_empty());
}

#[tokio::test]
async fn a_session_with_several_due_timers_is_hinted_once() {
    let (hub, timers, clock) = quiet();
    for (due_at, name) in [(700, "several-a"), (800, "several-b"), (900, "several-a")] {
        timers.set(due_at, name);
    }
    let mut hints = watch(&hub, &timers, &clock);
    assert_eq!(hinted(&mut hints), ["several-a", "several-b"]);
}

#[tokio::test]
async fn appends_and_due_timers_take_turns() {
    let (hub, timers, clock) = quiet();
    timers.set(900, "turn-timer-1");
    timers.set(901, "turn-timer-2");
    let mut hints = watch(&hub, &timers, &clock);
    hub.hint(&session("turn-append-1"));
    hub.hint(&session("turn-append-2"));
    let turns = ["turn-timer-1", "turn-append-1", "turn-timer-2", "turn-append-2"];
    assert_eq!(hinted(&mut hints), turns);
}

#[tokio::test(start_paused = true)]
async fn a_tick_hints_what_is_overdue_and_finds_what_nobody_told() {
    let (hub, timers, clock) = quiet();
    let poll = Duration::from_secs(5);
    timers.set(900, "tick-old");
    let mut hints = work_hints(&hub, timers.clone(), Arc::new(clock.clone()), Served::ALL, poll);
    assert_eq!(hinted(&mut hints), ["tick-old"]);
    timers.set(800, "tick-new");
    timers.set(2_000, "tick-next");
    assert!(hinted(&mut hints).is_empty());
    let start = tokio::time::Instant::now();
    assert_eq!(next(&mut hints).await.unwrap().unwrap().session, session("tick-new"));
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    assert_eq!(hinted(&mut hints), ["tick-old"]);
    timers.fire(800, "tick-new");
    timers.fire(900, "tick-old");
    clock.set(ms(2_000));
    assert_eq!(hinted(&mut hints), ["tick-next"]);
}

#[tokio::test]
async fn timers_changed_asks_again() {
    let (hub, timers, clock) = quiet();
    let mut hints = watch(&hub, &timers, &clock);
    assert!(hinted(&mut hints).is_empty());
    timers.set(1_500, "changed-a");
    clock.set(ms(1_400));
    hub.timers_changed();
    assert!(hinted(&mut hints).is_empty());
    clock.set(ms(1_500));
    assert_eq!(hinted(&mut hints), ["changed-a"]);
    // Anything: what is overdue may never have been told.
    timers.set(1_400, "changed-b");
    timers.set(1_600, "changed-c");
    hub.wake_all();
    assert_eq!(hinted(&mut hints), ["changed-b", "changed-a"]);
    clock.set(ms(1_600));
    assert_eq!(hinted(&mut hints), ["changed-c"]);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_down_appends_are_hinted_and_timers_wait() {
    let (hub, timers, clock) = quiet();
    timers.set(900, "down-timer");
    lock(&timers.0).fails = 2;
    let mut hints = watch(&hub, &timers, &clock);
    hub.hint(&session("down-append"));
    assert_eq!(hinted(&mut hints), ["down-append"]);
    let start = tokio::time::Instant::now();
    assert_eq!(next(&mut hints).await.unwrap().unwrap().session, session("down-timer"));
    assert_eq!(start.elapsed(), Duration::from_millis(150));
}

#[tokio::test]
async fn closing_ends_every_watcher_once() {
    let (hub, timers, clock) = quiet();
    let mut hints = watch(&hub, &timers, &clock);
    let waiting = tokio::spawn(async move {
        let code = next_code(&mut hints).await;
        (code, next(&mut hints).await.is_none(), next(&mut hints).await.is_none())
    });
    tokio::task::yield_now().await;
    hub.close();
    assert_eq!(waiting.await.unwrap(), ("CLOSED", true, true));
    let mut later = watch(&hub, &timers, &clock);
    assert_eq!(next_code(&mut later).await, "CLOSED");
    assert!(next(&mut later).await.is_none());

    let (hub, timers, clock) = quiet();
    lock(&timers.0).closed = true;
    let mut hints = watch(&hub, &timers, &clock);
    assert_eq!(next_code(&mut hints).await, "CLOSED");
    assert!(next(&mut hints).await.is_none());
}

#[tokio::test]
async fn who_serves_nobody_hears_of_timers_alone() {
    let (hub, timers, clock) = quiet();
    timers.set(900, "nobody-timer");
    let nobody = Served::only([]).unwrap();
    let mut hints = work_hints(&hub, timers, Arc::new(clock), nobody, None);
    hub.hint(&session("nobody-append"));
    assert_eq!(hinted(&mut hints), ["nobody-timer"]);
    hub.hint(&session("nobody-append"));
    assert!(hinted(&mut hints).is_empty());
}

#[tokio::test]
async fn a_watcher_is_there_until_it_is_dropped() {
    let (hub, timers, clock) = quiet();
    assert!(!hub.has_watchers());
    let first = watch(&hub, &timers, &clock);
    let second = watch(&hub, &timers, &clock);
    drop(first);
    assert!(hub.has_watchers());
    drop(second);
    assert!(!hub.has_watchers());
    assert!(!hub.has_streams());
}
