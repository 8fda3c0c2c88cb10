//! The store: the traits over the scripts.

use std::fmt;
use std::sync::Arc;

use a2_core::live::{self, DueTimer, DueTimers, Hub, Polling, PresenceHub, ServerClock};
use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, Clock, CompleteAttempt, Completion,
    Cursors, DeadLetters, Error, EventStream, Events, FailAttempt, Failure, FireTimers, Index,
    Namespace, Page, Pending, PendingPage, Presence, PresencePatch, PresenceRows, PresenceStream,
    PresenceUpdate, PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive, Redriven, ReducerName,
    ReleaseClaims, Released, RenewClaims, Renewal, Result, Schedule, Scheduled, Served, SessionId,
    Sessions, SnapshotsPut, StateRead, Store, StoreLimits, TimerKey, TimerPage, Timers, Timestamp,
    Unscheduled, WakeLog, WithClaim, WokenLog, WorkHints, async_trait,
};

use fred::types::Builder;

use crate::args;
use crate::config::{RedisBuilder, Source};
use crate::conn::Db;
use crate::keys::Keys;
use crate::listing::{self, Everywhere};
use crate::server::ServerInfo;
use crate::tell::Teller;
use crate::verbs::{self, At};
use crate::wake::{Wake, WakeOptions};
use crate::{note, presence_rows, session_ops, snapshots, timers};

/// A store on a Redis server or cluster. Clones are handles on the same store.
///
/// Any number of stores, in any number of processes, may use one prefix.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    db: Db,
    keys: Keys,
    teller: Teller,
    hub: Hub,
    presence: PresenceHub,
    /// The clock that replaces the server's.
    injected: Option<Arc<dyn Clock>>,
    server: ServerClock,
    wake: Arc<Wake>,
    limits: StoreLimits,
    servers: Vec<ServerInfo>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.wake.attendance().end();
    }
}

impl RedisStore {
    /// Connects to the server or cluster at this URL with the default options.
    ///
    /// # Errors
    /// As [`RedisBuilder::connect`].
    pub async fn connect(url: impl Into<String>) -> Result<Self> {
        Self::builder(url).connect().await
    }

    /// Options for a store at this URL.
    pub fn builder(url: impl Into<String>) -> RedisBuilder {
        RedisBuilder::new(Source::Url(url.into()))
    }

    /// Options for a store at the servers of a configuration of the driver's. The store makes clients
    /// of its own from it: the driver's default is to send a command again whose answer was lost.
    pub fn config_builder(config: fred::types::config::Config) -> RedisBuilder {
        RedisBuilder::new(Source::Config(Box::new(config)))
    }

    pub(crate) fn start(
        db: Db,
        keys: Keys,
        options: RedisBuilder,
        servers: Vec<ServerInfo>,
        listener: Builder,
    ) -> Self {
        let (hub, presence) = (Hub::new(), PresenceHub::new());
        let server = ServerClock::default();
        let wake = Wake::new(
            db.clone(),
            keys.clone(),
            (hub.clone(), presence.clone()),
            WakeOptions {
                listener: options.notifications.then_some(listener),
                poll_floor: options.poll_floor,
                poll_ceiling: options.poll_ceiling,
                clock: options.clock.clone(),
                server: server.clone(),
            },
        );
        Self(Arc::new(Inner {
            db,
            keys,
            teller: Teller::new(&hub, &presence),
            hub,
            presence,
            injected: options.clock,
            server,
            wake,
            limits: options.limits,
            servers,
        }))
    }

    /// Closes the store, for all its handles: open streams end, later calls answer `CLOSED`. Leases run
    /// out by themselves.
    pub async fn close(&self) {
        self.0.hub.close();
        self.0.presence.close();
        self.0.wake.attendance().end();
        self.0.db.close().await;
    }

    /// What the servers said of themselves when the store connected: to warn of one that
    /// [forgets](ServerInfo::is_append_only) or [evicts](ServerInfo::eviction).
    #[must_use]
    pub fn servers(&self) -> &[ServerInfo] {
        &self.0.servers
    }

    fn check_open(&self) -> Result<()> {
        if self.0.hub.is_closed() { Err(Error::closed()) } else { Ok(()) }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        let server = || Arc::new(self.0.server.clone()) as Arc<dyn Clock>;
        self.0.injected.clone().unwrap_or_else(server)
    }

    /// An operation on a session that is asked for now.
    fn at<'a>(&'a self, session: &'a SessionId) -> Result<At<'a>> {
        self.check_open()?;
        Ok(At { db: &self.0.db, keys: &self.0.keys, session, now: self.now() })
    }

    /// An operation on no session in particular that is asked for now.
    fn everywhere(&self) -> Result<Everywhere<'_>> {
        self.check_open()?;
        Ok(Everywhere { db: &self.0.db, keys: &self.0.keys, now: self.now() })
    }

    /// The time by the clock that replaces the server's.
    fn now(&self) -> Option<i64> {
        self.0.injected.as_ref().map(|clock| args::time(&**clock))
    }

    /// Names this store as the source of presence patches.
    fn source(&self) -> String {
        note::source_text(self.0.db.source())
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        self.0.limits.check_append(&append)?;
        let done = verbs::append(self.at(session)?, &append).await?;
        self.0.teller.appended(session, &done);
        Ok(done)
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        verbs::read(self.at(session)?, &range).await
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        // The store looks for all its streams at once.
        let stream =
            live::event_stream(self.clone(), &self.0.hub, session, start_after, Polling::NEVER);
        EventStream::new(self.0.wake.attendance().open(stream))
    }

    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        verbs::claim(self.at(session)?, &claim).await
    }

    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        verbs::renew(self.at(session)?, &renew).await
    }

    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        let done = verbs::release(self.at(session)?, &release).await?;
        if !done.released.is_empty() {
            self.0.teller.hint(session);
        }
        Ok(done)
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        self.0.limits.check_complete(&complete)?;
        let done = verbs::complete(self.at(session)?, &complete).await?;
        if let Completion::Completed(appended) = &done.outcome {
            self.0.teller.appended(session, appended);
        }
        Ok(done)
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        verbs::fail(self.at(session)?, &fail).await
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        listing::dead_letters(self.at(session)?, &page).await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        let done = session_ops::redrive(self.at(session)?, &redrive).await?;
        if done.redriven {
            self.0.teller.hint(session);
        }
        Ok(done)
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        session_ops::wake_log(self.at(session)?, &log).await
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        listing::cursors(self.at(session)?, &page).await
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        snapshots::read(self.at(session)?, reducer, &read).await
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        self.0.limits.check_snapshots(&writes)?;
        snapshots::put(self.at(session)?, reducer, &writes).await
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        let done = session_ops::clear(self.at(session)?, &clear).await?;
        self.0.teller.cleared(session, &done);
        Ok(done)
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        session_ops::reclaim(self.at(session)?).await
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        listing::sessions(self.everywhere()?, &page).await
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        listing::pending(self.everywhere()?, &pending).await
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        let polling = self.0.wake.polling();
        let hints = live::work_hints(&self.0.hub, self.clone(), self.clock(), served, polling);
        WorkHints::new(self.0.wake.attendance().open_when_attended(hints))
    }
}

#[async_trait]
impl Timers for RedisStore {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        self.0.limits.check_schedule(&timer)?;
        let done = timers::schedule(self.at(session)?, &timer).await?;
        self.0.teller.timer_set(done.due_at);
        Ok(done)
    }

    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        timers::unschedule(self.at(session)?, key).await
    }

    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        timers::list(self.at(session)?, &page).await
    }

    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        let fired = timers::fire(self.at(session)?, &fire).await?;
        self.0.teller.appended(session, &fired);
        Ok(fired)
    }
}

#[async_trait]
impl Presence for RedisStore {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.0.limits.check_presence(&update)?;
        let all = self.everywhere()?;
        let done = presence_rows::set(all, namespace, &update, &self.source()).await?;
        self.0.teller.present(namespace, &done);
        Ok(done.patch)
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        let rows = presence_rows::read(self.everywhere()?, namespace).await?;
        Ok(PresenceRows::new(rows))
    }

    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        let stream = live::presence_stream(
            self.clone(),
            &self.0.presence,
            namespace,
            self.clock(),
            self.source(),
            self.0.wake.polling(),
        );
        PresenceStream::new(self.0.wake.attendance().open_when_attended(stream))
    }
}

#[async_trait]
impl DueTimers for RedisStore {
    async fn due_timers(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>> {
        timers::due(self.everywhere()?, (from, through), after, limit).await
    }

    async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>> {
        timers::next(self.everywhere()?, after, &self.0.server).await
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("prefix", &self.0.keys.prefix())
            .field("clock", &self.0.injected)
            .field("closed", &self.0.hub.is_closed())
            .finish_non_exhaustive()
    }
}
