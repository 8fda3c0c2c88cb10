//! What the workers of a history do.
#![allow(clippy::unwrap_used, reason = "the workload's own requests are within every limit")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use a2_core::{
    Append, ClaimAvailable, Clear, CompleteAttempt, Consumer, CursorKey, DispatchedHead, EventType,
    FailAttempt, FireTimers, Index, Json, LogDeclaration, LogTypes, ManualClock, NewEvent, Page,
    PendingPage, PutSnapshots, ReadRange, ReadState, Redrive, RedriveAction, ReducerName,
    ReleaseClaims, RenewClaims, Result, Schedule, Served, ServedConsumer, SessionId, SnapshotWrite,
    Store, Target, TimerKey, Timers, WakeLog,
};
use futures_util::{FutureExt, StreamExt};

use super::random::Random;
use super::recorded::Recorded;
use super::recorder::Recorder;

/// How many failures dead-letter a head.
pub(super) const BUDGET: u64 = 3;
/// Whose heads are not claimed until the end.
pub(super) const UNTOUCHED: &str = "still";
/// How often an answer is waited for before a worker gives up.
const TRIES: u32 = 400;

/// How leases lapse.
#[derive(Debug, Clone)]
pub enum Time {
    /// The clock of the stores is moved by the workers.
    Manual(ManualClock),
    /// It takes its time.
    Real,
}

/// What all workers of a history share.
#[derive(Debug, Clone)]
pub struct Workload {
    pub(super) sessions: Vec<SessionId>,
    pub(super) time: Time,
    pub(super) recorder: Recorder,
    /// How far the stream of each session is.
    pub(super) followed: Arc<[AtomicU64]>,
    seed: u64,
    stopped: Arc<AtomicBool>,
}

impl Workload {
    /// In so many sessions whose names begin with this, which nobody else uses.
    #[must_use]
    pub fn new(prefix: &str, sessions: u32, seed: u64, time: Time, recorder: &Recorder) -> Self {
        let name = |n| SessionId::new(format!("{prefix}-{n}")).unwrap();
        let sessions: Vec<_> = (0..sessions.max(1)).map(name).collect();
        let followed = sessions.iter().map(|_| AtomicU64::new(0)).collect();
        let (recorder, stopped) = (recorder.clone(), Arc::default());
        Self { sessions, time, recorder, followed, seed, stopped }
    }

    /// Lets every worker end after what it is doing.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The sessions that are never cleared are those of even numbers: with them nothing can be excused.
    fn is_cleared(session: usize) -> bool {
        session % 2 == 1
    }

    /// Lets this much time pass.
    pub(super) async fn pass(&self, millis: u64) {
        match &self.time {
            Time::Manual(clock) => {
                clock.advance(Duration::from_millis(millis));
                tokio::task::yield_now().await;
            }
            Time::Real => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    }

    /// Makes the log cursors that begin where the log stands, in sessions that are empty.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn begin(&self, store: Arc<dyn Timers>) -> Result<()> {
        let store = Recorded::new(store, &self.recorder, 0);
        for session in &self.sessions {
            for (consumer, log) in logs().into_iter().filter(|(_, log)| !log.is_backfill()) {
                store.wake_log(session, WakeLog::new(consumer.as_str(), log).unwrap()).await?;
            }
        }
        Ok(())
    }

    /// Works until it is stopped, or for so many steps. No two workers have one number, not even one
    /// after the other.
    pub async fn work(&self, number: u32, steps: Option<u32>, store: Arc<dyn Timers>) {
        let random = Random::of(self.seed, number.into());
        let store = Recorded::new(store, &self.recorder, number);
        let hand = Hand { shared: self.clone(), number, random, made: 0 };
        let mut worker = Worker { store, hand, late: Vec::new() };
        let mut left = steps.unwrap_or(u32::MAX);
        while left > 0 && !self.is_stopped() {
            worker.step().await;
            left -= 1;
        }
    }
}

/// The log that takes every type, and the one that takes some.
pub(super) fn logs() -> [(Consumer, LogDeclaration); 2] {
    let some = LogTypes::only(["t.a", "t.b"].map(|name| EventType::new(name).unwrap())).unwrap();
    [
        ("every", LogDeclaration::new("log").unwrap().backfill()),
        ("some", LogDeclaration::new("log").unwrap().types(some)),
    ]
    .map(|(consumer, log)| (Consumer::new(consumer).unwrap(), log))
}

/// What every deployment serves; the untouched consumer only at the end and in passes.
pub(super) fn served(untouched: bool) -> Served {
    let plain = ["job", "line"].map(|name| ServedConsumer::new(name).unwrap()).into_iter();
    let logs = logs()
        .into_iter()
        .map(|(consumer, log)| ServedConsumer::new(consumer.as_str()).unwrap().log(log));
    let still = untouched.then(|| ServedConsumer::new(UNTOUCHED).unwrap());
    let all = plain.chain(logs).chain(still);
    Served::only(all.map(|entry| entry.max_failures(BUDGET).unwrap())).unwrap()
}

pub(super) fn reducer() -> ReducerName {
    ReducerName::new("fold").unwrap()
}

/// One worker. It does one thing after the other.
struct Worker {
    store: Recorded<Arc<dyn Timers>>,
    hand: Hand,
    /// Completions that it sends again later, when they may long be superseded.
    late: Vec<(SessionId, CompleteAttempt)>,
}

/// What makes its choices, and sends until it is answered.
struct Hand {
    shared: Workload,
    number: u32,
    random: Random,
    /// How many names it has made.
    made: u64,
}

type Call<'f, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'f>>;

impl Hand {
    /// Sends a request until it is answered; None when it was refused or given up. Now and then the call
    /// is dropped on its way.
    async fn insist<'f, T>(&mut self, call: impl Fn() -> Call<'f, T>) -> Option<T> {
        for _ in 0..TRIES {
            let dropped = self.random.percent(3).then(|| self.random.below(3));
            let answer = match dropped {
                None => Some(call().await),
                Some(polls) => Few { inner: call(), left: polls }.await,
            };
            match answer {
                Some(Ok(done)) => return Some(done),
                Some(Err(error)) if !error.is_retryable() => return None,
                _ => {}
            }
            // As if the worker had crashed.
            if self.random.percent(15) {
                return None;
            }
            let pause = self.random.from(1, 20);
            self.shared.pass(pause).await;
        }
        None
    }
}

impl Worker {
    async fn step(&mut self) {
        let sessions = self.hand.shared.sessions.len() as u64;
        let place = usize::try_from(self.hand.random.below(sessions)).unwrap_or(0);
        let Some(session) = self.hand.shared.sessions.get(place).cloned() else { return };
        let s = &session;
        match self.hand.random.below(100) {
            0..30 => self.append(s).await,
            30..62 => self.work_off(s).await,
            62..66 => self.redrive(s).await,
            66..70 if Workload::is_cleared(place) => self.clear(s).await,
            66..76 => self.timer(s).await,
            76..81 => self.read(s).await,
            81..86 => self.snapshot(s).await,
            86..89 => self.pass_over_pending().await,
            89..92 => self.wake(s).await,
            92..94 => drop(self.hand.insist(|| self.store.cursors(s, Page::first())).await),
            94..97 => self.look_into_a_stream(s).await,
            _ => {
                if let Some((session, late)) = self.late.pop() {
                    self.complete(&session, &late).await;
                }
            }
        }
        if let Time::Manual(_) = self.hand.shared.time {
            let millis = self.hand.random.below(12);
            self.hand.shared.pass(millis).await;
        }
    }

    fn name(&mut self, kind: &str) -> String {
        self.hand.made += 1;
        format!("{kind}-{}-{}", self.hand.number, self.hand.made)
    }

    fn event(&mut self, kind: &str) -> NewEvent {
        let id = self.name(kind);
        let event_type = self.hand.random.one(&["t.a", "t.b", "t.c"]).copied().unwrap_or("t.a");
        let mut event = NewEvent::new(event_type, &id).unwrap().id(id).unwrap();
        if self.hand.random.percent(35) {
            event = event.target(Target::event("job").unwrap());
        }
        if self.hand.random.percent(45) {
            let lane = self.hand.random.one(&["a", "b", ""]).copied().unwrap_or("a");
            event = event.target(Target::lane("line", lane).unwrap());
        }
        if self.hand.random.percent(5) {
            event = event.target(Target::event(UNTOUCHED).unwrap());
        }
        event
    }

    fn events(&mut self, kind: &str, most: u64) -> Vec<NewEvent> {
        let count = self.hand.random.below(most + 1);
        (0..count).map(|_| self.event(kind)).collect()
    }

    async fn append(&mut self, session: &SessionId) {
        let events = self.events("e", 3);
        // Some appenders know nothing of the logs.
        let served = match self.hand.random.percent(70) {
            true => served(false),
            false => Served::only([]).unwrap(),
        };
        let request = Append::new(events).unwrap().served(served);
        let _ = self.hand.insist(|| self.store.append(session, request.clone())).await;
        if self.hand.random.percent(5) {
            let _ = self.hand.insist(|| self.store.append(session, request.clone())).await;
        }
    }

    fn claim(&mut self) -> ClaimAvailable {
        let ttl = match self.hand.shared.time {
            Time::Manual(_) => self.hand.random.from(20, 400),
            Time::Real => self.hand.random.from(150, 1_500),
        };
        let limit = usize::try_from(self.hand.random.from(1, 4)).unwrap_or(1);
        let run = usize::try_from(self.hand.random.from(1, 4)).unwrap_or(1);
        let holder = format!("worker-{}", self.hand.number);
        let claim = ClaimAvailable::new(holder, Duration::from_millis(ttl)).unwrap();
        claim.limit(limit).unwrap().run(run).unwrap().served(served(false))
    }

    async fn work_off(&mut self, session: &SessionId) {
        let claim = self.claim();
        // A claim is not sent again: whoever lost the answer claims anew.
        let call = self.store.claim_available(session, claim);
        let Ok(claimed) = call.await else { return };
        let mut heads = claimed.into_heads();
        let mut rounds = 0;
        while let Some(head) = heads.pop() {
            if head.state.is_dead() {
                continue;
            }
            let more = self.work_on(session, &head).await;
            rounds += 1;
            // Whoever is given ever more leaves it at some time.
            if rounds < 20 {
                heads.extend(more);
            }
        }
    }

    async fn work_on(&mut self, session: &SessionId, head: &DispatchedHead) -> Vec<DispatchedHead> {
        let holder = format!("worker-{}", self.hand.number);
        let attempt = head.attempt_ref();
        match self.hand.random.below(100) {
            0..12 => {
                let hold = Duration::from_millis(self.hand.random.below(30));
                let mut fail = FailAttempt::new(head.head.clone(), head.attempt(), "boom");
                fail = fail.max_failures(BUDGET).unwrap().retry_after(hold);
                let _ = self.hand.insist(|| self.store.fail_attempt(session, fail.clone())).await;
                return Vec::new();
            }
            12..18 => {
                let give = ReleaseClaims::new(holder, [attempt]).unwrap();
                let _ = self.hand.insist(|| self.store.release_claims(session, give.clone())).await;
                return Vec::new();
            }
            18..26 => {
                let ttl = Duration::from_millis(self.hand.random.from(20, 600));
                let renew = RenewClaims::new(holder, [attempt], ttl).unwrap();
                let _ = self.hand.insist(|| self.store.renew_claims(session, renew.clone())).await;
            }
            26..32 => {
                let millis = self.hand.random.from(10, 300);
                self.hand.shared.pass(millis).await;
            }
            32..37 => {
                let late = self.completion(head);
                self.late.push((session.clone(), late));
                return Vec::new();
            }
            37..41 => return Vec::new(),
            _ => {}
        }
        let mut done = self.completion(head);
        if self.hand.random.percent(25) {
            let claim = self.claim();
            done = done.then_claim(claim);
        }
        let more = self.complete(session, &done).await;
        if self.hand.random.percent(8) {
            // Once more, and perhaps long after.
            self.late.push((session.clone(), done));
        }
        more
    }

    /// The one completion of an attempt: whenever it is sent again, it is the same.
    fn completion(&mut self, head: &DispatchedHead) -> CompleteAttempt {
        let mut done = CompleteAttempt::new(head.head.clone(), head.attempt());
        if let CursorKey::Log(_) = head.head.cursor {
            done = done.through(head.run_through()).unwrap();
        }
        // A log that takes what its own completions return would never end.
        let most = if matches!(head.head.cursor, CursorKey::Log(_)) { 0 } else { 2 };
        let returned = match head.event.id.as_str().starts_with('k') {
            true => Vec::new(),
            false => self.events("k", most),
        };
        done.events(returned).unwrap().served(served(false))
    }

    async fn complete(
        &mut self,
        session: &SessionId,
        done: &CompleteAttempt,
    ) -> Vec<DispatchedHead> {
        // What it claims is not claimed twice: a retry claims nothing.
        let first = self.store.complete_attempt(session, done.clone()).await;
        match first {
            Ok(answer) => answer.claim.map(a2_core::Claim::into_heads).unwrap_or_default(),
            Err(error) if error.is_retryable() && !self.hand.random.percent(15) => {
                let again = CompleteAttempt::new(done.head().clone(), done.attempt());
                let again = again.events(done.returned().iter().cloned()).unwrap();
                let again = again.served(done.served_list().clone());
                let again = match done.end() {
                    Some(through) => again.through(through).unwrap(),
                    None => again,
                };
                let _ =
                    self.hand.insist(|| self.store.complete_attempt(session, again.clone())).await;
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    async fn redrive(&mut self, session: &SessionId) {
        let listed = self.hand.insist(|| self.store.dead_letters(session, Page::first())).await;
        let Some(listed) = listed else { return };
        let Some(dead) = self.hand.random.one(&listed.heads).map(|dead| dead.head.clone()) else {
            return;
        };
        let skip = self.hand.random.percent(50);
        let action = if skip { RedriveAction::Skip } else { RedriveAction::Retry };
        let redrive = Redrive::new(dead, action).served(served(false));
        let _ = self.hand.insist(|| self.store.redrive(session, redrive.clone())).await;
    }

    async fn clear(&mut self, session: &SessionId) {
        if self.hand.random.percent(60) {
            let _ = self.hand.insist(|| self.store.reclaim(session)).await;
            return;
        }
        let id = self.name("clear");
        let clear = Clear::new().id(id).unwrap();
        let _ = self.hand.insist(|| self.store.clear(session, clear.clone())).await;
    }

    async fn timer(&mut self, session: &SessionId) {
        if self.hand.random.percent(40) {
            let fire = FireTimers::new().served(served(false));
            let _ = self.hand.insist(|| self.store.fire_timers(session, fire.clone())).await;
            return;
        }
        let key = self.name("timer");
        let schedule = |w: &mut Self| {
            let (event, after) = (w.event("timed"), w.hand.random.below(120));
            Schedule::new(&*key, Duration::from_millis(after), event).unwrap()
        };
        let timer = schedule(self);
        let _ = self.hand.insist(|| self.store.schedule(session, timer.clone())).await;
        if self.hand.random.percent(10) {
            let timer = schedule(self);
            let _ = self.hand.insist(|| self.store.schedule(session, timer.clone())).await;
        }
        if self.hand.random.percent(10) {
            let key = TimerKey::new(&key).unwrap();
            let _ = self.hand.insist(|| self.store.unschedule(session, &key)).await;
        }
    }

    async fn read(&mut self, session: &SessionId) {
        let after = Index::new(self.hand.random.below(200)).unwrap();
        let limit = usize::try_from(self.hand.random.from(1, 60)).unwrap_or(1);
        let range = ReadRange::after(after).limit(limit).unwrap();
        let _ = self.hand.insist(|| self.store.read(session, range.clone())).await;
    }

    async fn snapshot(&mut self, session: &SessionId) {
        let (fold, latest) = (reducer(), ReadState::latest());
        let read = self.hand.insist(|| self.store.read_state(session, &fold, latest.clone())).await;
        let Some(index) = read.map(|state| state.through_index).filter(|at| *at > Index::ZERO)
        else {
            return;
        };
        let state = Json::parse(format!("{{\"at\":{index}}}")).unwrap();
        let put = PutSnapshots::new([SnapshotWrite::new(index, state)]).unwrap();
        let _ = self.hand.insist(|| self.store.put_snapshots(session, &fold, put.clone())).await;
    }

    async fn pass_over_pending(&mut self) {
        let mut page = Page::first().limit(5).unwrap();
        loop {
            let request = PendingPage::new(served(true)).page(page.clone());
            // The pages of a pass follow each other; one that fails ends it.
            let Ok(listed) = self.store.pending(request).await else { return };
            match listed.next {
                Some(token) => page = page.and_then(token),
                None => return,
            }
        }
    }

    async fn wake(&mut self, session: &SessionId) {
        for (consumer, log) in logs() {
            let wake = WakeLog::new(consumer.as_str(), log).unwrap();
            let _ = self.hand.insist(|| self.store.wake_log(session, wake.clone())).await;
        }
    }

    /// From anywhere, for as long as there is something.
    async fn look_into_a_stream(&mut self, session: &SessionId) {
        let after = Index::new(self.hand.random.below(100)).unwrap();
        let mut stream = self.store.stream(session, after);
        let wait = Duration::from_millis(20);
        for _ in 0..self.hand.random.from(1, 30) {
            let next = match self.hand.shared.time {
                Time::Manual(_) => {
                    tokio::task::yield_now().await;
                    stream.next().now_or_never().flatten()
                }
                Time::Real => tokio::time::timeout(wait, stream.next()).await.ok().flatten(),
            };
            if !matches!(next, Some(Ok(_))) {
                return;
            }
        }
    }
}

/// A future that is dropped after it was polled so often.
struct Few<F> {
    inner: F,
    left: u64,
}

impl<T> Future for Few<Call<'_, T>> {
    type Output = Option<Result<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(left) = self.left.checked_sub(1) else { return Poll::Ready(None) };
        self.left = left;
        match self.inner.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            // At the last poll it is not waited for any more.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}
