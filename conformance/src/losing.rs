//! A store between whose answers and whose caller some are lost: as a timeout, or a cut connection.

use std::fmt;
use std::sync::Arc;

use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, CompleteAttempt, Completion, Cursors,
    DeadLetters, ErrorKind, EventStream, Events, FailAttempt, Failure, FireTimers, Index,
    Namespace, Page, Pending, PendingPage, Presence, PresencePatch, PresenceRows, PresenceStream,
    PresenceUpdate, PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive, Redriven, ReducerName,
    ReleaseClaims, Released, RenewClaims, Renewal, Result, Schedule, Scheduled, Served, SessionId,
    Sessions, SnapshotsPut, StateRead, Store, TimerKey, TimerPage, Timers, Unscheduled, WakeLog,
    WithClaim, WokenLog, WorkHints,
};
use async_trait::async_trait;

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It is answered.
    None,
    /// It never reaches the store.
    Before,
    /// The store does it, and its answer is lost.
    After,
}

/// Loses what `decide` says, given the operation's name. The caller is told `STORE_UNAVAILABLE`, and
/// that the outcome is unknown, in both cases: it cannot tell them apart.
#[derive(Clone)]
pub struct Losing<S> {
    inner: S,
    decide: Arc<dyn Fn(&'static str) -> Loss + Send + Sync>,
}

impl<S> Losing<S> {
    /// Stands before this store.
    pub fn new(inner: S, decide: impl Fn(&'static str) -> Loss + Send + Sync + 'static) -> Self {
        Self { inner, decide: Arc::new(decide) }
    }

    async fn lose<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match (self.decide)(operation) {
            Loss::None => return call.await,
            Loss::Before => {}
            // A refusal is lost too.
            Loss::After => drop(call.await),
        }
        let reason = "the answer was lost".into();
        Err(ErrorKind::StoreUnavailable { reason, outcome_unknown: true }.into())
    }
}

impl<S: fmt::Debug> fmt::Debug for Losing<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Losing").field(&self.inner).finish()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Store> Store for Losing<S> {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        self.lose("append", self.inner.append(session, append)).await
    }
    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        self.lose("read", self.inner.read(session, range)).await
    }
    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        self.lose("claim_available", self.inner.claim_available(session, claim)).await
    }
    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        self.lose("renew_claims", self.inner.renew_claims(session, renew)).await
    }
    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        self.lose("release_claims", self.inner.release_claims(session, release)).await
    }
    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        self.lose("complete_attempt", self.inner.complete_attempt(session, complete)).await
    }
    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        self.lose("fail_attempt", self.inner.fail_attempt(session, fail)).await
    }
    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        self.lose("dead_letters", self.inner.dead_letters(session, page)).await
    }
    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        self.lose("redrive", self.inner.redrive(session, redrive)).await
    }
    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        self.lose("wake_log", self.inner.wake_log(session, log)).await
    }
    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        self.lose("cursors", self.inner.cursors(session, page)).await
    }
    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        self.lose("read_state", self.inner.read_state(session, reducer, read)).await
    }
    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        self.lose("put_snapshots", self.inner.put_snapshots(session, reducer, writes)).await
    }
    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        self.lose("clear", self.inner.clear(session, clear)).await
    }
    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        self.lose("reclaim", self.inner.reclaim(session)).await
    }
    async fn sessions(&self, page: Page) -> Result<Sessions> {
        self.lose("sessions", self.inner.sessions(page)).await
    }
    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        self.lose("pending", self.inner.pending(pending)).await
    }
    fn watch_pending(&self, served: Served) -> WorkHints {
        self.inner.watch_pending(served)
    }
    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        self.inner.stream(session, start_after)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Timers> Timers for Losing<S> {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        self.lose("schedule", self.inner.schedule(session, timer)).await
    }
    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        self.lose("unschedule", self.inner.unschedule(session, key)).await
    }
    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        self.lose("timers", self.inner.timers(session, page)).await
    }
    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        self.lose("fire_timers", self.inner.fire_timers(session, fire)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Presence> Presence for Losing<S> {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.lose("set_presence", self.inner.set_presence(namespace, update)).await
    }
    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        self.lose("read_presence", self.inner.read_presence(namespace)).await
    }
    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        self.inner.watch_presence(namespace)
    }
}
