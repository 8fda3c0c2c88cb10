//! The store: the traits over the statements.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2_core::live::{self, DueTimer, DueTimers, Hub, Polling, PresenceHub, ServerClock};
use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, Clock, CompleteAttempt, Completion,
    Cursors, DeadLetters, Error, ErrorKind, EventStream, Events, FailAttempt, Failure, FireTimers,
    Index, Namespace, Page, Pending, PendingPage, Presence, PresencePatch, PresenceRows,
    PresenceStream, PresenceUpdate, PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive,
    Redriven, ReducerName, ReleaseClaims, Released, RenewClaims, Renewal, Result, Schedule,
    Scheduled, Served, SessionId, Sessions, SnapshotsPut, StateRead, Store, StoreLimits, TimerKey,
    TimerPage, Timers, Timestamp, Unscheduled, WakeLog, WithClaim, WokenLog, WorkHints,
    async_trait,
};
use deadpool_postgres::Pool;

use crate::coalesce::Coalescer;
use crate::config::{PostgresBuilder, Source};
use crate::conn::{Db, apart};
use crate::statements::Sql;
use crate::tell::Teller;
use crate::verbs::{
    AppendVerb, ClaimVerb, CompleteVerb, FailVerb, Op, ReleaseVerb, RenewVerb, Verb,
};
use crate::wake::{Wake, WakeOptions};
use crate::{ops, presence_rows, reads, schema, sessions};

/// What ends a task that nobody ends.
const ENDED: &str = "the runtime is shutting down";

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
    teller: Teller,
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
    limits: StoreLimits,
    /// Writes beside those of the verbs that are not told yet.
    writing: AtomicUsize,
}

/// A write that is under way.
pub(crate) struct Writing(Arc<Inner>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.writing.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Inner {
    fn is_writing(&self) -> bool {
        let Self { append, claim, renew, release, complete, fail, .. } = self;
        let verbs = append.is_busy() || claim.is_busy() || renew.is_busy();
        let verbs = verbs || release.is_busy() || complete.is_busy() || fail.is_busy();
        verbs || self.writing.load(Ordering::Acquire) > 0
    }

    fn swept(&self) -> MutexGuard<'_, String> {
        self.sweep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.wake.attendance().end();
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
        options.check_schema()?;
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
                clock: options.clock.clone(),
            },
        );
        let teller = Teller::new(&hub, &presence, &wake);
        Ok(Self(Arc::new(Inner {
            append: Coalescer::new(&db, &sql, &teller),
            claim: Coalescer::new(&db, &sql, &teller),
            renew: Coalescer::new(&db, &sql, &teller),
            release: Coalescer::new(&db, &sql, &teller),
            complete: Coalescer::new(&db, &sql, &teller),
            fail: Coalescer::new(&db, &sql, &teller),
            db,
            sql,
            schema: options.schema,
            wake,
            teller,
            hub,
            presence,
            injected: options.clock,
            server: ServerClock::default(),
            source,
            sweep: Mutex::default(),
            polling,
            limits: options.limits,
            writing: AtomicUsize::new(0),
        })))
    }

    pub(crate) async fn check_server(&self) -> Result<()> {
        schema::check_server(&self.0.db).await
    }

    /// The pool that the store takes its connections from.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        self.0.db.pool()
    }

    /// Closes the store, for all its handles: open streams end, later calls answer `CLOSED`. Its own
    /// pool is closed too, one that was given stays as it is. Leases run out by themselves. What is under
    /// way has a second to be done and told to other processes.
    pub async fn close(&self) {
        self.0.hub.close();
        self.0.presence.close();
        self.0.wake.attendance().end();
        self.0.wake.flush(|| self.0.is_writing()).await;
        self.0.db.close();
    }

    pub(crate) fn db(&self) -> &Db {
        &self.0.db
    }

    pub(crate) fn schema(&self) -> Option<&str> {
        self.0.schema.as_deref()
    }

    pub(crate) fn limits(&self) -> &StoreLimits {
        &self.0.limits
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

    /// Reads in a task of its own.
    async fn reads<T, F>(&self, run: impl FnOnce(Arc<Inner>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.check_open()?;
        let done = apart(run(Arc::clone(&self.0))).await;
        done.unwrap_or_else(|error| Err(Error::unavailable(ENDED).with_source(error)))
    }

    /// Writes to a session in a task of its own, which also tells of what was committed, and of what
    /// nobody knows whether it was.
    async fn writes<T, F>(
        &self,
        session: &SessionId,
        run: impl FnOnce(Arc<Inner>, SessionId) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (run, session) = (run(Arc::clone(&self.0), session.clone()), session.clone());
        self.writes_telling(run, move |teller| teller.unknown(&session)).await
    }

    async fn writes_telling<T: Send + 'static>(
        &self,
        run: impl Future<Output = Result<T>> + Send + 'static,
        unknown: impl FnOnce(&Teller) + Send + 'static,
    ) -> Result<T> {
        self.check_open()?;
        let (inner, writing) = (Arc::clone(&self.0), self.writing());
        let told = async move {
            let done = run.await;
            if done.as_ref().is_err_and(Error::outcome_unknown) {
                unknown(&inner.teller);
            }
            drop(writing);
            done
        };
        apart(told).await.unwrap_or_else(|error| {
            let kind = ErrorKind::StoreUnavailable { reason: ENDED.into(), outcome_unknown: true };
            Err(Error::from(kind).with_source(error))
        })
    }

    pub(crate) fn writing(&self) -> Writing {
        self.0.writing.fetch_add(1, Ordering::AcqRel);
        Writing(Arc::clone(&self.0))
    }

    pub(crate) fn teller(&self) -> &Teller {
        &self.0.teller
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        self.limits().check_append(&append)?;
        self.run(&self.0.append, session, append).await
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        let session = session.clone();
        self.reads(
            |inner| async move { reads::read(&inner.db, &inner.sql, &session, &range).await },
        )
        .await
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        // The store looks for all its streams at once.
        let stream =
            live::event_stream(self.clone(), &self.0.hub, session, start_after, Polling::NEVER);
        EventStream::new(self.0.wake.attendance().open(stream))
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
        self.run(&self.0.release, session, release).await
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        self.limits().check_complete(&complete)?;
        self.run(&self.0.complete, session, complete).await
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        self.run(&self.0.fail, session, fail).await
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        let session = session.clone();
        self.reads(|inner| async move {
            reads::dead_letters(&inner.db, &inner.sql, &session, &page).await
        })
        .await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        let now = self.now();
        self.writes(session, |inner, session| async move {
            let done = ops::redrive(&inner.db, &inner.sql, &session, &redrive, now).await?;
            if done.redriven {
                inner.teller.hint(&session);
            }
            Ok(done)
        })
        .await
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        self.writes(session, |inner, session| async move {
            ops::wake_log(&inner.db, &inner.sql, &session, &log).await
        })
        .await
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        let session = session.clone();
        self.reads(
            |inner| async move { reads::cursors(&inner.db, &inner.sql, &session, &page).await },
        )
        .await
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        let session = session.clone();
        let reducer = reducer.clone();
        self.reads(|inner| async move {
            reads::read_state(&inner.db, &inner.sql, &session, &reducer, &read).await
        })
        .await
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        self.limits().check_snapshots(&writes)?;
        let reducer = reducer.clone();
        self.writes(session, |inner, session| async move {
            ops::put_snapshots(&inner.db, &inner.sql, &session, &reducer, &writes).await
        })
        .await
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        let now = self.now();
        self.writes(session, |inner, session| async move {
            let done = ops::clear(&inner.db, &inner.sql, &session, &clear, now).await?;
            inner.teller.cleared(&session, &done);
            Ok(done)
        })
        .await
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        self.writes(session, |inner, session| async move {
            ops::reclaim(&inner.db, &inner.sql, &session).await
        })
        .await
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        self.reads(|inner| async move { sessions::sessions(&inner.db, &inner.sql, &page).await })
            .await
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        let now = self.now();
        self.reads(
            |inner| async move { sessions::pending(&inner.db, &inner.sql, &pending, now).await },
        )
        .await
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        let hints =
            live::work_hints(&self.0.hub, self.clone(), self.clock(), served, self.0.polling);
        WorkHints::new(self.0.wake.attendance().open_when_attended(hints))
    }
}

#[async_trait]
impl Timers for PostgresStore {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        self.limits().check_schedule(&timer)?;
        let now = self.now();
        self.writes(session, |inner, session| async move {
            let done = ops::schedule(&inner.db, &inner.sql, &session, &timer, now).await?;
            inner.teller.timer_set(done.due_at);
            Ok(done)
        })
        .await
    }

    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        let key = key.clone();
        self.writes(session, |inner, session| async move {
            ops::unschedule(&inner.db, &inner.sql, &session, &key).await
        })
        .await
    }

    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        let session = session.clone();
        self.reads(
            |inner| async move { reads::timers(&inner.db, &inner.sql, &session, &page).await },
        )
        .await
    }

    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        let now = self.now();
        self.writes(session, |inner, session| async move {
            let fired = ops::fire_timers(&inner.db, &inner.sql, &session, &fire, now).await?;
            inner.teller.appended(&session, &fired);
            Ok(fired)
        })
        .await
    }
}

#[async_trait]
impl Presence for PostgresStore {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.limits().check_presence(&update)?;
        let (now, inner) = (self.now(), Arc::clone(&self.0));
        let (namespace, lost) = (namespace.clone(), namespace.clone());
        let write = async move {
            // Abandoned presence is judged by the server's clock alone.
            let swept = inner.injected.is_none().then(|| inner.swept().clone());
            let when = (now, swept.as_deref());
            let Inner { db, sql, source, .. } = &*inner;
            let done = presence_rows::set(db, sql, &namespace, &update, when, source).await?;
            inner.teller.present(&namespace, &done);
            if let Some(swept) = done.sweep {
                *inner.swept() = swept;
            }
            Ok(done.patch)
        };
        self.writes_telling(write, move |teller| teller.unknown_presence(&lost)).await
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        let (now, namespace) = (self.now(), namespace.clone());
        self.reads(|inner| async move {
            let rows = presence_rows::read(&inner.db, &inner.sql, &namespace, now).await?;
            Ok(PresenceRows::new(rows))
        })
        .await
    }

    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        let stream = live::presence_stream(
            self.clone(),
            &self.0.presence,
            namespace,
            self.clock(),
            self.0.source.clone(),
            self.0.polling,
        );
        PresenceStream::new(self.0.wake.attendance().open_when_attended(stream))
    }
}

#[async_trait]
impl DueTimers for PostgresStore {
    async fn due_timers(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>> {
        let (range, after) = ((from, through), after.cloned());
        self.reads(|inner| async move {
            sessions::due_timers(&inner.db, &inner.sql, range, after.as_ref(), limit).await
        })
        .await
    }

    async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>> {
        self.reads(|inner| async move {
            // To know when to look.
            if inner.injected.is_none() {
                inner.server.heard(sessions::now(&inner.db, &inner.sql).await?);
            }
            sessions::next_due(&inner.db, &inner.sql, after).await
        })
        .await
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
