//! A store that breaks one rule of the model on purpose, so that the model test can be seen to fail.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2_conformance::{BoxError, Factory, Setup, Subject, async_trait};
use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, CompleteAttempt, Completion, Cursors,
    DeadLetters, DispatchState, ErrorKind, EventId, EventStream, Events, FailAttempt, Failure,
    FireTimers, Index, LogDeclaration, Namespace, Page, Pending, PendingPage, Presence,
    PresencePatch, PresenceRows, PresenceStream, PresenceUpdate, PutSnapshots, ReadRange,
    ReadState, Reclaimed, Redrive, RedriveAction, Redriven, ReducerName, ReleaseClaims, Released,
    RenewClaims, Renewal, Result, Schedule, Scheduled, Served, SessionId, Sessions, SnapshotsPut,
    StateRead, Store, StoreExt, SystemClock, TimerKey, TimerPage, Timers, Timestamp, Unscheduled,
    WakeLog, WithClaim, WokenLog, WorkHints,
};
use a2_store_memory::MemoryStore;

/// The rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `has_pending` forgets heads that are leased.
    BusyIsNotPending,
    /// A completion is taken from any attempt.
    AnyAttemptCompletes,
    /// Claimed heads come in another order.
    OrderOfHeads,
    /// Ids stay taken after a clear.
    ClearKeepsIds,
    /// A lease that ends exactly now is still busy.
    ExpiryNowIsBusy,
    /// The snapshot written last is the latest.
    OlderSnapshotReplaces,
    /// A lapsed lease never dead-letters.
    LapseHasNoBudget,
    /// A completion that is sent again is refused.
    CompletionIsForgotten,
    /// The origin of an append and of a timer is not looked at.
    OriginIsIgnored,
    /// A skipped dead letter is retried.
    SkipRetries,
    /// Waking a log does not look at its types.
    WokenLogTakesAll,
    /// A session whose heads are all leased has nothing to claim.
    BusyIsSettled,
}

impl Fault {
    pub(crate) const ALL: [Self; 12] = [
        Self::BusyIsNotPending,
        Self::AnyAttemptCompletes,
        Self::OrderOfHeads,
        Self::ClearKeepsIds,
        Self::ExpiryNowIsBusy,
        Self::OlderSnapshotReplaces,
        Self::LapseHasNoBudget,
        Self::CompletionIsForgotten,
        Self::OriginIsIgnored,
        Self::SkipRetries,
        Self::WokenLogTakesAll,
        Self::BusyIsSettled,
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
            seen: Arc::default(),
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
    seen: Arc<Mutex<Seen>>,
}

/// What the faults remember.
#[derive(Default)]
struct Seen {
    ids: HashSet<(SessionId, EventId)>,
    snapshots: HashMap<(SessionId, ReducerName), Index>,
}

impl Broken {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease was asked for a millisecond too long; nobody is to see that.
    fn hide(&self, state: &mut DispatchState) {
        if self.is(Fault::ExpiryNowIsBusy) && state.claim_holder.is_some() {
            let earlier = |at: Timestamp| Timestamp::from_millis(at.as_millis() - 1);
            state.claim_expires_at = state.claim_expires_at.map(earlier);
        }
    }

    fn hide_claim(&self, claim: &mut Claim) {
        match claim {
            Claim::Claimed(claimed) => {
                claimed.heads.iter_mut().for_each(|head| self.hide(&mut head.state));
                if self.is(Fault::OrderOfHeads) {
                    claimed.heads.reverse();
                }
            }
            Claim::Busy(_) if self.is(Fault::BusyIsSettled) => *claim = Claim::Settled,
            _ => {}
        }
    }

    fn ttl(&self, ms: u64) -> Duration {
        Duration::from_millis(ms + u64::from(self.is(Fault::ExpiryNowIsBusy)))
    }

    fn claim(&self, claim: &ClaimAvailable) -> Result<ClaimAvailable> {
        if !matches!(self.fault, Fault::ExpiryNowIsBusy | Fault::LapseHasNoBudget) {
            return Ok(claim.clone());
        }
        let mut broken = ClaimAvailable::new(claim.holder(), self.ttl(claim.ttl().as_millis()))?
            .limit(claim.max_heads())?
            .served(claim.served_list().clone())
            .exclude(claim.excluded().iter().cloned())?
            .through(claim.end())
            .run(claim.max_run())?;
        if self.is(Fault::ExpiryNowIsBusy) {
            // The budget cannot be read back: take it from a consumer nobody serves.
            let nobody = a2_core::Consumer::new("nobody")?;
            if let Some(max) = claim.budget_of(&nobody) {
                broken = broken.max_failures(max)?;
            }
        }
        Ok(broken)
    }

    async fn pending(&self, session: &SessionId, served: &Served) -> Result<bool> {
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
        let mut request = append.clone();
        if self.is(Fault::OriginIsIgnored) && append.origin().is_some() {
            request = Append::new(append.events().iter().cloned())?.served(served.clone());
            if let Some(head) = append.head_expected() {
                request = request.expected_head(head);
            }
        }
        let ids = append.events().iter().filter_map(|event| event.event_id().cloned());
        let ids: Vec<_> = ids.map(|id| (session.clone(), id)).collect();
        if self.is(Fault::ClearKeepsIds) {
            let taken = |id: &&(SessionId, EventId)| self.seen().ids.contains(*id);
            let existing: Vec<_> = ids.iter().filter(taken).map(|(_, id)| id.clone()).collect();
            let log = self.inner.read(session, ReadRange::default()).await?;
            let here = |id: &EventId| log.events.iter().any(|event| event.id == *id);
            if existing.iter().any(|id| !here(id)) {
                return Err(ErrorKind::PartialDuplicateBatch { existing }.into());
            }
        }
        let mut appended = self.inner.append(session, request).await?;
        self.seen().ids.extend(ids);
        if self.is(Fault::BusyIsNotPending) {
            appended.has_pending = self.pending(session, &served).await?;
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
        self.hide_claim(&mut claim);
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
        let mut attempt = complete.attempt();
        if self.is(Fault::AnyAttemptCompletes) {
            let (key, head) = (&complete.head().cursor, Some(complete.head().index));
            let cursors = self.inner.all_cursors(session).await?;
            let mut cursors = cursors.into_iter().filter(|c| c.head == head && c.key == *key);
            if let Some(cursor) = cursors.find(|c| c.consumer == complete.head().consumer) {
                attempt = cursor.state.attempt_count;
            }
        }
        let mut request = CompleteAttempt::new(complete.head().clone(), attempt)
            .events(complete.returned().iter().cloned())?
            .served(complete.served_list().clone());
        if let Some(through) = complete.end() {
            request = request.through(through)?;
        }
        if let Some(claim) = complete.next_claim() {
            request = request.then_claim(self.claim(claim)?);
        }
        let mut done = self.inner.complete_attempt(session, request).await?;
        if let Some(claim) = &mut done.claim {
            self.hide_claim(claim);
        }
        if let Completion::Completed(appended) = &done.outcome
            && appended.replayed
            && self.is(Fault::CompletionIsForgotten)
        {
            done.outcome = Completion::Superseded;
        }
        Ok(done)
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        let mut request = FailAttempt::new(fail.head().clone(), fail.attempt(), fail.error())
            .retry_after(Duration::from_millis(fail.hold().as_millis()));
        if let Some(max) = fail.budget() {
            request = request.max_failures(max)?;
        }
        if let Some(claim) = fail.next_claim() {
            request = request.then_claim(self.claim(claim)?);
        }
        let mut failed = self.inner.fail_attempt(session, request).await?;
        if let Some(claim) = &mut failed.claim {
            self.hide_claim(claim);
        }
        Ok(failed)
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        self.inner.dead_letters(session, page).await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        if self.is(Fault::SkipRetries) {
            let retry = Redrive::new(redrive.head().clone(), RedriveAction::Retry);
            let retry = retry.served(redrive.served_list().clone());
            return self.inner.redrive(session, retry).await;
        }
        self.inner.redrive(session, redrive).await
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        if self.is(Fault::WokenLogTakesAll) {
            let mut all = LogDeclaration::new(log.declaration().name())?;
            if log.declaration().is_backfill() {
                all = all.backfill();
            }
            return self.inner.wake_log(session, WakeLog::new(log.consumer(), all)?).await;
        }
        let mut woken = self.inner.wake_log(session, log).await?;
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
            let seen = self.seen();
            let last = seen.snapshots.get(&(session.clone(), reducer.clone()));
            let last = last.filter(|index| **index >= state.clear_index);
            state.latest_snapshot = last.copied().or(state.latest_snapshot);
        }
        Ok(state)
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        let last = writes.writes().last().map(|write| write.index());
        let put = self.inner.put_snapshots(session, reducer, writes).await?;
        if let Some(last) = last {
            self.seen().snapshots.insert((session.clone(), reducer.clone()), last);
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
        let mut pending = Store::pending(&self.inner, pending).await?;
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
        if self.is(Fault::OriginIsIgnored) {
            let after = Duration::from_millis(timer.after().as_millis());
            let timer = Schedule::new(timer.key(), after, timer.event().clone())?;
            return self.inner.schedule(session, timer).await;
        }
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
