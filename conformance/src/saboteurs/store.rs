//! The traits of a broken store: each operation goes to what breaks it.

use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, CompleteAttempt, Completion, Cursors,
    DeadLetters, EventStream, Events, FailAttempt, Failure, FireTimers, Index, Namespace, Page,
    Pending, PendingPage, Presence, PresencePatch, PresenceRows, PresenceStream, PresenceUpdate,
    PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive, Redriven, ReducerName, ReleaseClaims,
    Released, RenewClaims, Renewal, Result, Schedule, Scheduled, Served, SessionId, Sessions,
    SnapshotsPut, StateRead, Store, TimerKey, TimerPage, Timers, Unscheduled, WakeLog, WithClaim,
    WokenLog, WorkHints,
};
use async_trait::async_trait;

use super::Broken;

#[async_trait]
impl<S: Timers + Presence> Store for Broken<S> {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        self.within_limits(session, append).await
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        let mut read = self.break_read(session, range).await?;
        self.hide(&mut read.events);
        Ok(read)
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        self.break_stream(session, start_after)
    }

    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        self.break_claim(session, claim).await
    }

    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        self.break_renew(session, renew).await
    }

    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        self.break_release(session, release).await
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        self.completes_within_limits(session, complete).await
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        self.break_fail(session, fail).await
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        self.break_dead_letters(session, page).await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        self.break_redrive(session, redrive).await
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        self.break_wake_log(session, log).await
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        self.break_cursors(session, page).await
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        self.break_read_state(session, reducer, read).await
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        self.check_snapshots(&writes)?;
        self.break_put_snapshots(session, reducer, writes).await
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        self.break_clear(session, clear).await
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        self.break_reclaim(session).await
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        self.break_sessions(page).await
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        self.break_pending(pending).await
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        self.break_watch_pending(served)
    }
}

#[async_trait]
impl<S: Timers + Presence> Timers for Broken<S> {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        self.check_schedule(&timer)?;
        self.break_schedule(session, timer).await
    }

    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        self.break_unschedule(session, key).await
    }

    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        self.inner.timers(session, page).await
    }

    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        self.break_fire_timers(session, fire).await
    }
}

#[async_trait]
impl<S: Timers + Presence> Presence for Broken<S> {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.limits.check_presence(&update)?;
        self.break_set_presence(namespace, update).await
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        self.break_read_presence(namespace).await
    }

    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        self.break_watch_presence(namespace)
    }
}
