//! Remembers a case's last operations, so that a failure can name them.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, CompleteAttempt, Completion, Cursors,
    DeadLetters, EventStream, Events, FailAttempt, Failure, FireTimers, Index, Namespace, Page,
    Pending, PendingPage, Presence, PresencePatch, PresenceRows, PresenceStream, PresenceUpdate,
    PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive, Redriven, ReducerName, ReleaseClaims,
    Released, RenewClaims, Renewal, Result, Schedule, Scheduled, Served, SessionId, Sessions,
    SnapshotsPut, StateRead, Store, TimerKey, TimerPage, Timers, Unscheduled, WakeLog, WithClaim,
    WokenLog, WorkHints, async_trait,
};

const REMEMBERED: usize = 8;
const SHOWN_BYTES: usize = 240;

#[derive(Default)]
pub(crate) struct Trace(Mutex<VecDeque<(u64, String)>>);

impl Trace {
    /// The last operations, the latest last.
    pub(crate) fn operations(&self) -> Vec<String> {
        self.lock().iter().map(|(_, text)| text.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(u64, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, name: &str, request: &dyn fmt::Debug) -> u64 {
        let mut text = Short(String::with_capacity(SHOWN_BYTES));
        if write!(text, "{name} {request:?}").is_err() {
            text.0.push('…');
        }
        let mut operations = self.lock();
        let number = operations.back().map_or(0, |(last, _)| last + 1);
        if operations.len() == REMEMBERED {
            operations.pop_front();
        }
        operations.push_back((number, text.0));
        number
    }

    fn end<T>(&self, number: u64, answer: Result<T>) -> Result<T> {
        let mut operations = self.lock();
        if let Some((_, text)) = operations.iter_mut().rev().find(|(n, _)| *n == number) {
            match &answer {
                Ok(_) => text.push_str(" -> ok"),
                Err(error) => {
                    text.push_str(" -> ");
                    text.push_str(error.code());
                }
            }
        }
        answer
    }
}

/// Text that ends, with an error, where enough is shown: a request may be megabytes.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = SHOWN_BYTES.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.extend(text.chars().take(room));
        Err(fmt::Error)
    }
}

/// An embedded store's operations never wait: a case that asks in a loop would keep the others, and
/// its own deadline, from running.
async fn yield_at_times() {
    tokio::task::consume_budget().await;
}

/// A store whose operations are remembered.
pub(crate) struct Traced<S> {
    inner: S,
    trace: Arc<Trace>,
}

impl<S> Traced<S> {
    pub(crate) fn new(inner: S, trace: &Arc<Trace>) -> Self {
        Self { inner, trace: Arc::clone(trace) }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Store> Store for Traced<S> {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        yield_at_times().await;
        let number = self.trace.begin("append", &(&session, &append));
        self.trace.end(number, self.inner.append(session, append).await)
    }
    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        yield_at_times().await;
        let number = self.trace.begin("read", &(&session, &range));
        self.trace.end(number, self.inner.read(session, range).await)
    }
    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        yield_at_times().await;
        let number = self.trace.begin("claim_available", &(&session, &claim));
        self.trace.end(number, self.inner.claim_available(session, claim).await)
    }
    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        yield_at_times().await;
        let number = self.trace.begin("renew_claims", &(&session, &renew));
        self.trace.end(number, self.inner.renew_claims(session, renew).await)
    }
    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        yield_at_times().await;
        let number = self.trace.begin("release_claims", &(&session, &release));
        self.trace.end(number, self.inner.release_claims(session, release).await)
    }
    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        yield_at_times().await;
        let number = self.trace.begin("complete_attempt", &(&session, &complete));
        self.trace.end(number, self.inner.complete_attempt(session, complete).await)
    }
    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        yield_at_times().await;
        let number = self.trace.begin("fail_attempt", &(&session, &fail));
        self.trace.end(number, self.inner.fail_attempt(session, fail).await)
    }
    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        yield_at_times().await;
        let number = self.trace.begin("dead_letters", &(&session, &page));
        self.trace.end(number, self.inner.dead_letters(session, page).await)
    }
    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        yield_at_times().await;
        let number = self.trace.begin("redrive", &(&session, &redrive));
        self.trace.end(number, self.inner.redrive(session, redrive).await)
    }
    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        yield_at_times().await;
        let number = self.trace.begin("wake_log", &(&session, &log));
        self.trace.end(number, self.inner.wake_log(session, log).await)
    }
    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        yield_at_times().await;
        let number = self.trace.begin("cursors", &(&session, &page));
        self.trace.end(number, self.inner.cursors(session, page).await)
    }
    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        yield_at_times().await;
        let number = self.trace.begin("read_state", &(&session, &reducer, &read));
        self.trace.end(number, self.inner.read_state(session, reducer, read).await)
    }
    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        yield_at_times().await;
        let number = self.trace.begin("put_snapshots", &(&session, &reducer, &writes));
        self.trace.end(number, self.inner.put_snapshots(session, reducer, writes).await)
    }
    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        yield_at_times().await;
        let number = self.trace.begin("clear", &(&session, &clear));
        self.trace.end(number, self.inner.clear(session, clear).await)
    }
    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        yield_at_times().await;
        let number = self.trace.begin("reclaim", &(&session,));
        self.trace.end(number, self.inner.reclaim(session).await)
    }
    async fn sessions(&self, page: Page) -> Result<Sessions> {
        yield_at_times().await;
        let number = self.trace.begin("sessions", &(&page,));
        self.trace.end(number, self.inner.sessions(page).await)
    }
    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        yield_at_times().await;
        let number = self.trace.begin("pending", &(&pending,));
        self.trace.end(number, self.inner.pending(pending).await)
    }
    fn watch_pending(&self, served: Served) -> WorkHints {
        self.trace.begin("watch_pending", &served);
        self.inner.watch_pending(served)
    }
    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        self.trace.begin("stream", &(&session, &start_after));
        self.inner.stream(session, start_after)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Timers> Timers for Traced<S> {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        yield_at_times().await;
        let number = self.trace.begin("schedule", &(&session, &timer));
        self.trace.end(number, self.inner.schedule(session, timer).await)
    }
    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        yield_at_times().await;
        let number = self.trace.begin("unschedule", &(&session, &key));
        self.trace.end(number, self.inner.unschedule(session, key).await)
    }
    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        yield_at_times().await;
        let number = self.trace.begin("timers", &(&session, &page));
        self.trace.end(number, self.inner.timers(session, page).await)
    }
    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        yield_at_times().await;
        let number = self.trace.begin("fire_timers", &(&session, &fire));
        self.trace.end(number, self.inner.fire_timers(session, fire).await)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Presence> Presence for Traced<S> {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        yield_at_times().await;
        let number = self.trace.begin("set_presence", &(&namespace, &update));
        self.trace.end(number, self.inner.set_presence(namespace, update).await)
    }
    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        yield_at_times().await;
        let number = self.trace.begin("read_presence", &(&namespace,));
        self.trace.end(number, self.inner.read_presence(namespace).await)
    }
    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        self.trace.begin("watch_presence", &namespace);
        self.inner.watch_presence(namespace)
    }
}
