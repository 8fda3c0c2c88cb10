//! Stores that break a rule hardly, so that it takes a longer history to see it: the model test must
//! find them, and shrink what it found.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2_conformance::{BoxError, Factory, Setup, Subject, async_trait};
use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, CompleteAttempt, Completion, Consumer,
    Cursors, DeadLetters, DispatchState, EventStream, Events, FailAttempt, Failure, FireTimers,
    Index, LogDeclaration, Namespace, Page, Pending, PendingPage, Presence, PresencePatch,
    PresenceRows, PresenceStream, PresenceUpdate, PutSnapshots, ReadRange, ReadState, Reclaimed,
    Redrive, Redriven, ReducerName, ReleaseClaims, Released, RenewClaims, Renewal, Result,
    Schedule, Scheduled, Served, SessionId, Sessions, SnapshotsPut, StateRead, Store, StoreExt,
    SystemClock, TimerKey, TimerPage, Timers, Timestamp, Unscheduled, WakeLog, WithClaim, WokenLog,
    WorkHints,
};
use a2_store_memory::MemoryStore;

/// The rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `has_pending` of an append forgets heads that are leased.
    BusyIsNotPending,
    /// A lease that ends exactly now is still busy.
    ExpiryNowIsBusy,
    /// The snapshot written last is the latest.
    OlderSnapshotReplaces,
    /// Waking a log does not look at its types.
    WokenLogTakesAll,
}

impl Fault {
    pub(crate) const ALL: [Self; 4] = [
        Self::BusyIsNotPending,
        Self::ExpiryNowIsBusy,
        Self::OlderSnapshotReplaces,
        Self::WokenLogTakesAll,
    ];
}

/// Opens memory stores with a fault.
pub(crate) struct BrokenFactory(pub(crate) Fault);

#[async_trait]
impl Factory for BrokenFactory {
    fn name(&self) -> &str {
        "a broken store"
    }

    async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
        let clock = setup.clock().unwrap_or_else(|| Arc::new(SystemClock));
        let store = Broken {
            inner: MemoryStore::new().with_clock(clock),
            fault: self.0,
            last_snapshots: Arc::default(),
        };
        let again = store.clone();
        Ok(Subject::full(store).another(move || {
            let subject = Subject::full(again.clone());
            async { Ok(subject) }
        }))
    }
}

#[derive(Clone)]
struct Broken {
    inner: MemoryStore,
    fault: Fault,
    last_snapshots: Arc<Mutex<HashMap<(SessionId, ReducerName), Index>>>,
}

impl Broken {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// A lease is asked for a millisecond too long.
    fn ttl(&self, ms: u64) -> Duration {
        Duration::from_millis(ms + u64::from(self.is(Fault::ExpiryNowIsBusy)))
    }

    /// Nobody is to see that.
    fn hide(&self, state: &mut DispatchState) {
        if self.is(Fault::ExpiryNowIsBusy) && state.claim_holder.is_some() {
            let earlier = |at: Timestamp| Timestamp::from_millis(at.as_millis() - 1);
            state.claim_expires_at = state.claim_expires_at.map(earlier);
        }
    }

    fn hide_in_claim(&self, claim: &mut Claim) {
        if let Claim::Claimed(claimed) = claim {
            claimed.heads.iter_mut().for_each(|head| self.hide(&mut head.state));
        }
    }

    fn claim(&self, claim: &ClaimAvailable) -> Result<ClaimAvailable> {
        if !self.is(Fault::ExpiryNowIsBusy) {
            return Ok(claim.clone());
        }
        let broken = ClaimAvailable::new(claim.holder(), self.ttl(claim.ttl().as_millis()))?
            .limit(claim.max_heads())?
            .served(claim.served_list().clone())
            .exclude(claim.excluded().iter().cloned())?
            .through(claim.end())
            .run(claim.max_run())?;
        // The budget of a consumer without one of its own.
        match claim.budget_of(&Consumer::new("nobody")?) {
            Some(max) => broken.max_failures(max),
            None => Ok(broken),
        }
    }

    async fn idle_work(&self, session: &SessionId, served: &Served) -> Result<bool> {
        let cursors = self.inner.all_cursors(session).await?;
        Ok(cursors.iter().any(|cursor| {
            cursor.head.is_some()
                && cursor.state.failed_at.is_none()
                && cursor.state.claim_holder.is_none()
                && served.serves(&cursor.consumer)
        }))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Store for Broken {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        let served = append.served_list().clone();
        let mut appended = self.inner.append(session, append).await?;
        if self.is(Fault::BusyIsNotPending) {
            appended.has_pending = self.idle_work(session, &served).await?;
        }
        Ok(appended)
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        self.inner.read(session, range).await
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        self.inner.stream(session, start_after)
    }

    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        let mut claim = self.inner.claim_available(session, self.claim(&claim)?).await?;
        self.hide_in_claim(&mut claim);
        Ok(claim)
    }

    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        let (claims, ttl) = (renew.claims().to_vec(), self.ttl(renew.ttl().as_millis()));
        self.inner.renew_claims(session, RenewClaims::new(renew.holder(), claims, ttl)?).await
    }

    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        self.inner.release_claims(session, release).await
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        let request = match complete.next_claim() {
            Some(claim) => {
                let claim = self.claim(claim)?;
                complete.then_claim(claim)
            }
            None => complete,
        };
        let mut done = self.inner.complete_attempt(session, request).await?;
        done.claim.iter_mut().for_each(|claim| self.hide_in_claim(claim));
        Ok(done)
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        let request = match fail.next_claim() {
            Some(claim) => {
                let claim = self.claim(claim)?;
                fail.then_claim(claim)
            }
            None => fail,
        };
        let mut failed = self.inner.fail_attempt(session, request).await?;
        failed.claim.iter_mut().for_each(|claim| self.hide_in_claim(claim));
        Ok(failed)
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        self.inner.dead_letters(session, page).await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        self.inner.redrive(session, redrive).await
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        let mut request = log.clone();
        if self.is(Fault::WokenLogTakesAll) {
            let mut all = LogDeclaration::new(log.declaration().name())?;
            if log.declaration().is_backfill() {
                all = all.backfill();
            }
            request = WakeLog::new(log.consumer(), all)?;
        }
        let mut woken = self.inner.wake_log(session, request).await?;
        self.hide(&mut woken.cursor.state);
        Ok(woken)
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        let mut cursors = self.inner.cursors(session, page).await?;
        cursors.cursors.iter_mut().for_each(|cursor| self.hide(&mut cursor.state));
        Ok(cursors)
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        let mut state = self.inner.read_state(session, reducer, read).await?;
        if self.is(Fault::OlderSnapshotReplaces) {
            let last = self.last_snapshots.lock().unwrap_or_else(PoisonError::into_inner);
            let last = last.get(&(session.clone(), reducer.clone())).copied();
            state.latest_snapshot =
                last.filter(|index| *index >= state.clear_index).or(state.latest_snapshot);
        }
        Ok(state)
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        let written = writes.writes().last().map(|write| write.index());
        let put = self.inner.put_snapshots(session, reducer, writes).await?;
        if let Some(written) = written {
            let mut last = self.last_snapshots.lock().unwrap_or_else(PoisonError::into_inner);
            last.insert((session.clone(), reducer.clone()), written);
        }
        Ok(put)
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        self.inner.clear(session, clear).await
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        self.inner.reclaim(session).await
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        self.inner.sessions(page).await
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        let mut pending = self.inner.pending(pending).await?;
        if self.is(Fault::ExpiryNowIsBusy) {
            let earlier = |at: Timestamp| Timestamp::from_millis(at.as_millis() - 1);
            pending.sessions.iter_mut().for_each(|p| p.not_before = earlier(p.not_before));
        }
        Ok(pending)
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        self.inner.watch_pending(served)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Timers for Broken {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        self.inner.schedule(session, timer).await
    }

    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        self.inner.unschedule(session, key).await
    }

    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        self.inner.timers(session, page).await
    }

    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        self.inner.fire_timers(session, fire).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Presence for Broken {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.inner.set_presence(namespace, update).await
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        self.inner.read_presence(namespace).await
    }

    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        self.inner.watch_presence(namespace)
    }
}
