//! The store: the traits over the statements.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use a2_core::live::{self, DueTimer, Hub, Polling, PresenceHub};
use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, Clock, CompleteAttempt, Completion,
    Cursors, DeadLetters, Error, EventStream, Events, FailAttempt, Failure, FireTimers, Index,
    Namespace, Page, Pending, PendingPage, Presence, PresencePatch, PresenceRows, PresenceStream,
    PresenceUpdate, PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive, Redriven, ReducerName,
    ReleaseClaims, Released, RenewClaims, Renewal, Result, Schedule, Scheduled, Served, SessionId,
    Sessions, SnapshotsPut, StateRead, Store, TimerKey, TimerPage, Timers, Timestamp, Unscheduled,
    WakeLog, WithClaim, WokenLog, WorkHints, async_trait,
};
use deadpool_postgres::Pool;

use crate::clock::ServerClock;
use crate::coalesce::Coalescer;
use crate::config::{PostgresBuilder, Source};
use crate::conn::Db;
use crate::detached::Detached;
use crate::note::{Changed, Note};
use crate::statements::Sql;
use crate::verbs::{
    AppendVerb, ClaimVerb, CompleteVerb, FailVerb, Op, ReleaseVerb, RenewVerb, Verb,
};
use crate::wake::{Wake, WakeOptions};
use crate::{ops, presence_rows, reads, schema, sessions};

/// A store in a Postgres database. Clones are handles on the same store.
///
/// Any number of stores, in any number of processes, may use one database.
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    db: Db,
    sql: Arc<Sql>,
    schema: Option<String>,
    append: Arc<Coalescer<AppendVerb>>,
    claim: Arc<Coalescer<ClaimVerb>>,
    renew: Arc<Coalescer<RenewVerb>>,
    release: Arc<Coalescer<ReleaseVerb>>,
    complete: Arc<Coalescer<CompleteVerb>>,
    fail: Arc<Coalescer<FailVerb>>,
    wake: Arc<Wake>,
    hub: Hub,
    presence: PresenceHub,
    /// The clock that replaces the server's.
    injected: Option<Arc<dyn Clock>>,
    server: ServerClock,
    /// Names this store as the source of presence patches.
    source: String,
    /// How far the deletion of abandoned presence got.
    sweep: Mutex<String>,
    polling: Polling,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.wake.end();
    }
}

impl PostgresStore {
    /// Connects to the database at this URL with the default options.
    ///
    /// # Errors
    /// As [`PostgresBuilder::connect`].
    pub async fn connect(url: impl Into<String>) -> Result<Self> {
        Self::builder(url).connect().await
    }

    /// A store on the program's own pool. It polls for what others do: a pool hands out no
    /// notifications (see [`PostgresBuilder::listen_at`]).
    ///
    /// # Errors
    /// None by itself: nothing is sent.
    pub fn from_pool(pool: Pool) -> Result<Self> {
        Self::start(Self::pool_builder(pool))
    }

    /// Options for a store at this URL.
    pub fn builder(url: impl Into<String>) -> PostgresBuilder {
        PostgresBuilder::new(Source::Url(url.into()))
    }

    /// Options for a store on the program's own pool.
    pub fn pool_builder(pool: Pool) -> PostgresBuilder {
        PostgresBuilder::new(Source::Pool(pool))
    }

    pub(crate) fn start(options: PostgresBuilder) -> Result<Self> {
        let (pool, listener) = (options.pool()?, options.listener()?);
        let polling = match &listener {
            // For what a lost notification was for.
            Some(_) => Polling::every(options.poll_ceiling),
            None => Polling::between(options.poll_floor, options.poll_ceiling),
        };
        let own = matches!(options.source, Source::Url(_));
        let db = Db::new((pool, own), options.statements, options.operation_timeout);
        let sql = Arc::new(Sql::new(options.schema.as_deref()));
        let (hub, presence) = (Hub::new(), PresenceHub::new());
        let source = uuid::Uuid::now_v7().to_string();
        let wake = Wake::new(
            db.clone(),
            Arc::clone(&sql),
            (hub.clone(), presence.clone()),
            &source,
            WakeOptions {
                tells: options.notifications,
                listener,
                poll_floor: options.poll_floor,
                poll_ceiling: options.poll_ceiling,
            },
        );
        Ok(Self(Arc::new(Inner {
            append: Coalescer::new(&db, &sql),
            claim: Coalescer::new(&db, &sql),
            renew: Coalescer::new(&db, &sql),
            release: Coalescer::new(&db, &sql),
            complete: Coalescer::new(&db, &sql),
            fail: Coalescer::new(&db, &sql),
            db,
            sql,
            schema: options.schema,
            wake: Arc::new(wake),
            hub,
            presence,
            injected: options.clock,
            server: ServerClock::default(),
            source,
            sweep: Mutex::default(),
            polling,
        })))
    }

    pub(crate) async fn check_server(&self) -> Result<()> {
        schema::check_server(&self.0.db).await
    }

    /// Makes the tables and functions that the store needs, as far as they are missing, in one
    /// transaction. Safe to run again, on a live database, and by many processes at the same time.
    ///
    /// It makes them in the schema of the options, which it makes too, or in the first one of the
    /// `search_path`. The same can be done with the files in `sql/postgres/schema`.
    ///
    /// # Errors
    /// `STORE_NOT_CONFIGURED` for a server older than 14, a database whose encoding is not UTF8, or
    /// a role that may not make them; `STORE_UNAVAILABLE`.
    pub async fn migrate(&self) -> Result<()> {
        self.check_open()?;
        schema::migrate(&self.0.db, self.0.schema.as_deref()).await
    }

    /// The pool that the store takes its connections from.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        self.0.db.pool()
    }

    /// Closes the store, for all its handles: open streams end, later calls answer `CLOSED`. Its own
    /// pool is closed too, one that was given stays as it is. Leases run out by themselves.
    pub async fn close(&self) {
        self.0.hub.close();
        self.0.presence.close();
        self.0.wake.end();
        self.0.db.close();
    }

    pub(crate) fn db(&self) -> &Db {
        &self.0.db
    }

    pub(crate) fn sql(&self) -> &Sql {
        &self.0.sql
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.0.hub.is_closed() { Err(Error::closed()) } else { Ok(()) }
    }

    /// The time of a request that is made now, by the clock that replaces the server's.
    pub(crate) fn now(&self) -> Option<i64> {
        self.0.injected.as_ref().map(|clock| clock.now().as_millis())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        let server = || Arc::new(self.0.server.clone()) as Arc<dyn Clock>;
        self.0.injected.clone().unwrap_or_else(server)
    }

    /// Asks the server for its time, to know when to look.
    async fn hear_clock(&self) {
        if self.0.injected.is_none()
            && let Ok(now) = sessions::now(&self.0.db, &self.0.sql).await
        {
            self.0.server.heard(now);
        }
    }

    /// Does what is requested, perhaps together with what others request.
    async fn run<V: Verb>(
        &self,
        verb: &Arc<Coalescer<V>>,
        session: &SessionId,
        request: V::Request,
    ) -> Result<V::Answer> {
        self.check_open()?;
        verb.run(Op { session: session.clone(), now: self.now(), request }).await
    }

    /// What was appended goes to this store's streams, and others are told.
    pub(crate) fn appended(&self, session: &SessionId, appended: &Appended) {
        if appended.replayed {
            return;
        }
        let Some(last) = appended.events.last() else { return };
        self.0.hub.appended(session, &appended.events);
        let note = Note::Appended(session.as_str().to_owned());
        self.0.wake.tell(note, crate::args::index(last.index));
    }

    /// Heads of the session can be claimed.
    fn hint(&self, session: &SessionId) {
        self.0.hub.hint(session);
        self.0.wake.tell(Note::Hint(session.as_str().to_owned()), 0);
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        let appended = self.run(&self.0.append, session, append).await?;
        self.appended(session, &appended);
        Ok(appended)
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        self.check_open()?;
        reads::read(&self.0.db, &self.0.sql, session, &range).await
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        // The store looks for all its streams at once.
        let stream = live::event_stream(
            Detached(self.clone()),
            &self.0.hub,
            session,
            start_after,
            Polling::NEVER,
        );
        EventStream::new(self.0.wake.open(stream))
    }

    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        self.run(&self.0.claim, session, claim).await
    }

    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        self.run(&self.0.renew, session, renew).await
    }

    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        let released = self.run(&self.0.release, session, release).await?;
        if !released.released.is_empty() {
            self.0.hub.hint(session);
        }
        Ok(released)
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        let done = self.run(&self.0.complete, session, complete).await?;
        if let Completion::Completed(appended) = &done.outcome {
            self.appended(session, appended);
        }
        Ok(done)
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        self.run(&self.0.fail, session, fail).await
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        self.check_open()?;
        reads::dead_letters(&self.0.db, &self.0.sql, session, &page).await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        self.check_open()?;
        let now = self.now();
        let done = ops::redrive(&self.0.db, &self.0.sql, session, &redrive, now).await?;
        if done.redriven {
            self.hint(session);
        }
        Ok(done)
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        self.check_open()?;
        ops::wake_log(&self.0.db, &self.0.sql, session, &log).await
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        self.check_open()?;
        reads::cursors(&self.0.db, &self.0.sql, session, &page).await
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        self.check_open()?;
        reads::read_state(&self.0.db, &self.0.sql, session, reducer, &read).await
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        self.check_open()?;
        ops::put_snapshots(&self.0.db, &self.0.sql, session, reducer, &writes).await
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        self.check_open()?;
        let now = self.now();
        let done = ops::clear(&self.0.db, &self.0.sql, session, &clear, now).await?;
        if done.cleared && done.clear_index.get() > 0 {
            self.0.hub.cleared(session, done.clear_index);
            let note = Note::Cleared(session.as_str().to_owned());
            self.0.wake.tell(note, crate::args::index(done.clear_index));
        }
        Ok(done)
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        self.check_open()?;
        ops::reclaim(&self.0.db, &self.0.sql, session).await
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        self.check_open()?;
        sessions::sessions(&self.0.db, &self.0.sql, &page).await
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        self.check_open()?;
        sessions::pending(&self.0.db, &self.0.sql, &pending, self.now()).await
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        let hints = live::work_hints(
            &self.0.hub,
            Detached(self.clone()),
            self.clock(),
            served,
            self.0.polling,
        );
        WorkHints::new(self.0.wake.open_when_ready(hints))
    }
}

#[async_trait]
impl Timers for PostgresStore {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        self.check_open()?;
        let now = self.now();
        let done = ops::schedule(&self.0.db, &self.0.sql, session, &timer, now).await?;
        self.0.hub.timer_set(done.due_at);
        self.0.wake.tell(Note::Timer, done.due_at.as_millis());
        Ok(done)
    }

    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        self.check_open()?;
        ops::unschedule(&self.0.db, &self.0.sql, session, key).await
    }

    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        self.check_open()?;
        reads::timers(&self.0.db, &self.0.sql, session, &page).await
    }

    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        self.check_open()?;
        let now = self.now();
        let fired = ops::fire_timers(&self.0.db, &self.0.sql, session, &fire, now).await?;
        self.appended(session, &fired);
        Ok(fired)
    }
}

#[async_trait]
impl Presence for PostgresStore {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.check_open()?;
        let inner = &self.0;
        let swept = inner.sweep.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let when = (self.now(), inner.injected.is_none().then_some(swept.as_str()));
        let source = &inner.source;
        let done =
            presence_rows::set(&inner.db, &inner.sql, namespace, &update, when, source).await?;
        if let Some(swept) = done.sweep {
            *inner.sweep.lock().unwrap_or_else(PoisonError::into_inner) = swept;
        }
        if let Some(patch) = &done.patch {
            inner.presence.changed(namespace, patch, done.expires_at);
            inner.wake.tell_change(|| Changed {
                namespace: namespace.as_str().to_owned(),
                expires_at: done.expires_at.as_millis(),
                patch: patch.clone(),
                fields: Vec::new(),
            });
        }
        if done.sooner {
            inner.presence.wake(namespace);
            inner.wake.tell(Note::Presence(namespace.as_str().to_owned()), 0);
        }
        Ok(done.patch)
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        self.check_open()?;
        let now = self.now();
        presence_rows::read(&self.0.db, &self.0.sql, namespace, now).await.map(PresenceRows::new)
    }

    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        let stream = live::presence_stream(
            Detached(self.clone()),
            &self.0.presence,
            namespace,
            self.clock(),
            self.0.source.clone(),
            self.0.polling,
        );
        PresenceStream::new(self.0.wake.open_when_ready(stream))
    }
}

/// What the watchers of timers ask.
impl PostgresStore {
    pub(crate) async fn due_timers(
        &self,
        range: (Timestamp, Timestamp),
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<DueTimer>> {
        self.check_open()?;
        sessions::due_timers(&self.0.db, &self.0.sql, range, after, limit).await
    }

    pub(crate) async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>> {
        self.check_open()?;
        self.hear_clock().await;
        sessions::next_due(&self.0.db, &self.0.sql, after).await
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("schema", &self.0.schema)
            .field("clock", &self.0.injected)
            .field("closed", &self.0.hub.is_closed())
            .finish_non_exhaustive()
    }
}
