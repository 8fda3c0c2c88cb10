//! The traits: each operation is one call of the engine on one locked session, and then wakes those
//! who wait for it.

use std::sync::Arc;

use a2_core::live::{self, DueTimer, DueTimers};
use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, CompleteAttempt, Completion, Cursors,
    DeadLetters, EventStream, Events, FailAttempt, Failure, FireTimers, Index, Namespace, Page,
    PageToken, Pending, PendingPage, PendingSession, Presence, PresencePatch, PresenceRows,
    PresenceStream, PresenceUpdate, PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive,
    Redriven, ReducerName, ReleaseClaims, Released, RenewClaims, Renewal, Result, Schedule,
    Scheduled, Served, SessionId, SessionInfo, Sessions, SnapshotsPut, StateRead, Store, TimerKey,
    TimerPage, Timers, Timestamp, Unscheduled, WakeLog, WithClaim, WokenLog, WorkHints,
    async_trait, engine,
};

use crate::MemoryStore;
use crate::handle::Shared;
use crate::session::Reclaim;

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        self.limits.check_append(&append)?;
        let appended = self.on_new(session, |s, now| engine::append(s, now, &append)).await?;
        self.shared.tell(session, &appended);
        Ok(appended)
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        self.on(session, |s, _| engine::read(s, &range)).await
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        live::event_stream(self.clone(), &self.shared.hub, session, start_after, None)
    }

    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        self.on(session, |s, now| engine::claim_available(s, now, &claim)).await
    }

    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        self.on(session, |s, now| engine::renew_claims(s, now, &renew)).await
    }

    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        let released = self.on(session, |s, _| engine::release_claims(s, &release)).await?;
        if !released.released.is_empty() {
            self.shared.hub.hint(session);
        }
        Ok(released)
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        self.limits.check_complete(&complete)?;
        let completed =
            self.on(session, |s, now| engine::complete_attempt(s, now, &complete)).await?;
        if let Completion::Completed(appended) = &completed.outcome {
            self.shared.tell(session, appended);
        }
        Ok(completed)
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        self.on(session, |s, now| engine::fail_attempt(s, now, &fail)).await
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        self.on(session, |s, _| engine::dead_letters(s, &page)).await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        let redriven = self.on(session, |s, now| engine::redrive(s, now, &redrive)).await?;
        if redriven.redriven {
            self.shared.hub.hint(session);
        }
        Ok(redriven)
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        self.on_new(session, |s, _| engine::wake_log(s, &log)).await
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        self.on(session, |s, _| engine::cursors(s, &page)).await
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        self.on(session, |s, _| engine::read_state(s, reducer, &read)).await
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        self.limits.check_snapshots(&writes)?;
        self.on_new(session, |s, _| engine::put_snapshots(s, reducer, &writes)).await
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        let cleared = self.on(session, |s, now| engine::clear(s, now, &clear)).await?;
        if cleared.cleared {
            self.shared.hub.cleared(session, cleared.clear_index);
        }
        Ok(cleared)
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        let Reclaim { deleted, done, husks } = self.on(session, |s, _| Ok(s.reclaim())).await?;
        drop(husks);
        Ok(Reclaimed::new(deleted, done))
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        self.shared.global.check_open()?;
        let after: Option<SessionId> =
            page.token().map(|token| token.decode(SESSIONS)).transpose()?;
        let mut slots = self.shared.global.sessions(after.as_ref(), page.max_entries() + 1);
        let more = slots.len() > page.max_entries();
        slots.truncate(page.max_entries());
        let next = slots.last().filter(|_| more).map(|last| PageToken::encode(SESSIONS, &last.id));
        let info = |slot: &Arc<crate::global::Slot>| {
            let session = slot.lock();
            SessionInfo::new(slot.id.clone(), session.life.head(), session.life.clear_index)
        };
        Ok(Sessions::new(slots.iter().map(info).collect(), next))
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        self.shared.global.check_open()?;
        let token = pending.which().token().map(|token| token.decode(PENDING)).transpose()?;
        let (mut shard, mut from): (usize, usize) = token.unwrap_or_default();
        let mut left = pending.which().max_entries();
        let mut sessions = Vec::new();
        while let Some(slots) = self.shared.global.pending(shard, from, left) {
            for slot in &slots {
                let mut session = slot.lock();
                let now = self.clock.now();
                let since = engine::pending_since(&mut *session, now, pending.served_list())?;
                sessions.extend(since.map(|at| PendingSession::new(slot.id.clone(), at)));
            }
            left -= slots.len();
            if let (0, Some(last)) = (left, slots.last()) {
                let next = PageToken::encode(PENDING, &(shard, last.place + 1));
                return Ok(Pending::new(sessions, Some(next)));
            }
            (shard, from) = (shard + 1, 0);
        }
        Ok(Pending::new(sessions, None))
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        let (shared, clock) = (Arc::clone(&self.shared), Arc::clone(&self.clock));
        live::work_hints(&self.shared.hub, Watched(shared), clock, served, None)
    }
}

const SESSIONS: &str = "sessions";
const PENDING: &str = "pending";

#[async_trait]
impl Timers for MemoryStore {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        self.limits.check_schedule(&timer)?;
        let scheduled = self.on_new(session, |s, now| engine::schedule(s, now, &timer)).await?;
        self.shared.hub.timer_set(scheduled.due_at);
        Ok(scheduled)
    }

    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        self.on(session, |s, _| engine::unschedule(s, key)).await
    }

    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        self.on(session, |s, _| engine::timers(s, &page)).await
    }

    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        let appended = self.on(session, |s, now| engine::fire_timers(s, now, &fire)).await?;
        self.shared.tell(session, &appended);
        Ok(appended)
    }
}

#[async_trait]
impl Presence for MemoryStore {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.limits.check_presence(&update)?;
        self.shared.global.check_open()?;
        let now = || self.clock.now();
        Ok(self.shared.presences.set(namespace, &update, self.writer(), now))
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        self.shared.global.check_open()?;
        Ok(self.shared.presences.read(namespace, || self.clock.now()))
    }

    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        let (hub, clock) = (&self.shared.presences.hub, Arc::clone(&self.clock));
        let source = self.source().to_owned();
        live::presence_stream(self.clone(), hub, namespace, clock, source, None)
    }
}

impl Shared {
    /// Wakes those who wait for new events.
    fn tell(&self, session: &SessionId, appended: &Appended) {
        if !appended.replayed && !appended.events.is_empty() {
            self.hub.appended(session, &appended.events);
        }
    }
}

/// What a watcher of work asks about timers.
pub(crate) struct Watched(pub(crate) Arc<Shared>);

#[async_trait]
impl DueTimers for Watched {
    async fn due_timers(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>> {
        let global = &self.0.global;
        global.check_open()?;
        let mut confirmed = Vec::new();
        let (mut from, mut after) = (from, after.cloned());
        while confirmed.len() < limit {
            let wanted = limit - confirmed.len();
            let found = global.due.between(from, after.as_ref(), through, wanted);
            let Some(last) = found.last() else { break };
            (from, after) = (last.due_at, Some(last.session.clone()));
            let is_there = |due: &DueTimer| global.confirm_due(&due.session, due.due_at);
            confirmed.extend(found.into_iter().filter(is_there));
        }
        Ok(confirmed)
    }

    async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>> {
        let global = &self.0.global;
        global.check_open()?;
        while let Some(first) = global.due.first_after(after) {
            if global.confirm_due(&first.session, first.due_at) {
                return Ok(Some(first.due_at));
            }
        }
        Ok(None)
    }
}
