//! The store: sessions behind one lock, each operation one call of the engine.
//!
//! What a real backend does better: a lock for each session instead of one for all, rows that
//! outlive the process, listings that do not look at every session. What it must do as well: decide
//! nothing by itself, and tell the hub what it has committed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use a2_core::engine;
use a2_core::live::{self, DueTimer, DueTimers, Hub};
use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, Clock, CompleteAttempt, Completion,
    Cursors, DeadLetters, EventStream, Events, FailAttempt, Failure, Index, Page, PageToken,
    Pending, PendingPage, PendingSession, PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive,
    Redriven, ReducerName, ReleaseClaims, Released, RenewClaims, Renewal, Result, Served,
    SessionId, SessionInfo, Sessions, SnapshotsPut, StateRead, Store, SystemClock, Timestamp,
    WakeLog, WithClaim, WokenLog, WorkHints, async_trait,
};

use crate::session::Session;

/// A handle; clones are the same store.
#[derive(Clone)]
pub(crate) struct ToyStore {
    sessions: Arc<Mutex<BTreeMap<SessionId, Session>>>,
    hub: Hub,
    clock: Arc<dyn Clock>,
}

impl ToyStore {
    pub(crate) fn new(clock: Option<Arc<dyn Clock>>) -> Self {
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock));
        Self { sessions: Arc::default(), hub: Hub::new(), clock }
    }

    /// One operation on one session: the lock is the transaction. The clock is read under it, and
    /// the engine checks everything before it writes, so nothing has to be undone.
    fn on<T>(
        &self,
        session: &SessionId,
        operation: impl FnOnce(&mut Session, Timestamp) -> Result<T>,
    ) -> Result<T> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            sessions.entry(session.clone()).or_insert_with(|| Session::new(session.clone()));
        operation(found, self.clock.now())
    }

    /// The sessions after the token's that `wanted` gives something for; the next page's token.
    fn page<T>(
        &self,
        kind: &'static str,
        page: &Page,
        mut wanted: impl FnMut(&mut Session, Timestamp) -> Result<Option<T>>,
    ) -> Result<(Vec<T>, Option<PageToken>)> {
        let after: Option<SessionId> = page.token().map(|token| token.decode(kind)).transpose()?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        let mut last = None;
        for (id, session) in sessions.iter_mut().filter(|(id, _)| Some(*id) > after.as_ref()) {
            if let Some(item) = wanted(session, self.clock.now())? {
                if found.len() == page.max_entries() {
                    return Ok((found, last.map(|id| PageToken::encode(kind, &id))));
                }
                found.push(item);
                last = Some(id.clone());
            }
        }
        Ok((found, None))
    }

    fn tell(&self, session: &SessionId, appended: &Appended) {
        if !appended.replayed {
            self.hub.appended(session, &appended.events);
        }
    }
}

#[async_trait]
impl Store for ToyStore {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        let appended = self.on(session, |s, now| engine::append(s, now, &append))?;
        self.tell(session, &appended);
        Ok(appended)
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        self.on(session, |s, _| engine::read(s, &range))
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        live::event_stream(self.clone(), &self.hub, session, start_after, None)
    }

    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        self.on(session, |s, now| engine::claim_available(s, now, &claim))
    }

    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        self.on(session, |s, now| engine::renew_claims(s, now, &renew))
    }

    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        self.on(session, |s, _| engine::release_claims(s, &release))
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        let done = self.on(session, |s, now| engine::complete_attempt(s, now, &complete))?;
        if let Completion::Completed(appended) = &done.outcome {
            self.tell(session, appended);
        }
        Ok(done)
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        self.on(session, |s, now| engine::fail_attempt(s, now, &fail))
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        self.on(session, |s, _| engine::dead_letters(s, &page))
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        let redriven = self.on(session, |s, now| engine::redrive(s, now, &redrive))?;
        if redriven.redriven {
            self.hub.hint(session);
        }
        Ok(redriven)
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        self.on(session, |s, _| engine::wake_log(s, &log))
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        self.on(session, |s, _| engine::cursors(s, &page))
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        self.on(session, |s, _| engine::read_state(s, reducer, &read))
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        self.on(session, |s, _| engine::put_snapshots(s, reducer, &writes))
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        let cleared = self.on(session, |s, now| engine::clear(s, now, &clear))?;
        if cleared.cleared {
            self.hub.cleared(session, cleared.clear_index);
        }
        Ok(cleared)
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        self.on(session, |s, _| Ok(s.reclaim()))
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        let (sessions, next) = self.page("sessions", &page, |session, _| {
            let (id, at) = (session.id.clone(), session.at);
            Ok((at.head > Index::ZERO).then(|| SessionInfo::new(id, at.head, at.clear_index)))
        })?;
        Ok(Sessions::new(sessions, next))
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        let (sessions, next) = self.page("pending", pending.which(), |session, now| {
            let since = engine::pending_since(session, now, pending.served_list())?;
            Ok(since.map(|at| PendingSession::new(session.id.clone(), at)))
        })?;
        Ok(Pending::new(sessions, next))
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        live::work_hints(&self.hub, NoTimers, Arc::clone(&self.clock), served, None)
    }
}

/// The toy has no timers; who watches for work asks about them.
struct NoTimers;

#[async_trait]
impl DueTimers for NoTimers {
    async fn due_timers(
        &self,
        _: Timestamp,
        _: Option<&SessionId>,
        _: Timestamp,
        _: usize,
    ) -> Result<Vec<DueTimer>> {
        Ok(Vec::new())
    }

    async fn next_due(&self, _: Timestamp) -> Result<Option<Timestamp>> {
        Ok(None)
    }
}
