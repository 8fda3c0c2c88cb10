//! The store: the traits over the writer and the readers.

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use a2_core::engine::{self, Tables as _};
use a2_core::live::{self, DueTimer, DueTimers, Hub, PresenceHub};
use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, Clock, CompleteAttempt, Completion,
    Cursors, DeadLetters, Error, EventStream, Events, FailAttempt, Failure, FireTimers, Index,
    Namespace, NewEvent, Page, Pending, PendingPage, Presence, PresencePatch, PresenceRows,
    PresenceStream, PresenceUpdate, PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive,
    Redriven, ReducerName, ReleaseClaims, Released, RenewClaims, Renewal, Result, Schedule,
    Scheduled, Served, SessionId, Sessions, SnapshotsPut, StateRead, Store, StoreLimits,
    SystemClock, TimerKey, TimerPage, Timers, Timestamp, Unscheduled, WakeLog, WithClaim, WokenLog,
    WorkHints, async_trait,
};
use futures_core::Stream;

use crate::config::SqliteBuilder;
use crate::conn::Opener;
use crate::presence_rows::{Sweep, Written};
use crate::reader::Readers;
use crate::tx::{SessionTables, Tx};
use crate::wake::{REDRIVEN, Ready, Watch, WatchGuard};
use crate::writer::{Operation, Writer};
use crate::{blocking, presence_rows, reclaim, schema, sessions};

/// A store in one SQLite file. Clones are handles on the same store.
///
/// Handles in several processes, and several stores in one process, may use one file.
///
/// ```
/// use a2_store_sqlite::{Append, NewEvent, SessionId, SqliteStore, Store, Target};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a2.db");
/// let store = SqliteStore::open(path).await?;
/// let session = SessionId::new("order-17")?;
/// let placed = NewEvent::new("order.placed", &serde_json::json!({"total": 12}))?
///     .target(Target::lane("billing", "order-17")?);
/// let appended = store.append(&session, Append::one(placed)?).await?;
/// assert_eq!(appended.events[0].index, 1);
/// store.close().await?;
/// # Ok::<(), a2_store_sqlite::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct SqliteStore(Arc<Inner>);

struct Inner {
    writer: Arc<Writer>,
    /// None for a database in memory.
    readers: Option<Arc<Readers>>,
    watch: Arc<Watch>,
    hub: Hub,
    presence: PresenceHub,
    /// The clock that replaces the system's.
    injected: Option<Arc<dyn Clock>>,
    /// Names this store as the source of presence patches.
    source: String,
    /// How far the deletion of abandoned presence got.
    sweep: Arc<Sweep>,
    limits: StoreLimits,
    name: Arc<str>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.writer.stop();
        drop(self.watch.close());
    }
}

impl SqliteStore {
    /// Opens the file, makes it and its tables if need be.
    ///
    /// # Errors
    /// As [`SqliteBuilder::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open().await
    }

    /// A store in memory of its own, gone with its last handle. The same code as for a file, without
    /// the file: for tests.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` when memory is short.
    pub async fn in_memory() -> Result<Self> {
        Self::start(SqliteBuilder::new(""), true).await
    }

    /// Options for a store in the file at `path`.
    pub fn builder(path: impl AsRef<Path>) -> SqliteBuilder {
        SqliteBuilder::new(path)
    }

    pub(crate) async fn start(options: SqliteBuilder, in_memory: bool) -> Result<Self> {
        let SqliteBuilder { path, clock, synchronous, operation_timeout, poll_interval, limits } =
            options;
        let opener = if in_memory {
            Opener::memory(operation_timeout)
        } else {
            Opener::file(path, synchronous, operation_timeout)?
        };
        let opening = opener.clone();
        let conn = blocking::run(move || {
            let mut conn = opening.writer()?;
            schema::prepare(&mut conn, opening.place("open"))?;
            Ok::<_, Error>(conn)
        });
        let conn = conn.await??;
        let (hub, presence_hub) = (Hub::new(), PresenceHub::new());
        let file = (!opener.is_memory()).then(|| opener.clone());
        let readers = file.clone().map(|opener| Arc::new(Readers::new(opener)));
        let watch = Watch::new(file, hub.clone(), presence_hub.clone(), poll_interval);
        let watch = Arc::new(watch);
        let name = Arc::clone(opener.name());
        let writer = Writer::new(conn, opener, operation_timeout, Arc::clone(&watch));
        Ok(Self(Arc::new(Inner {
            writer: Arc::new(writer),
            readers,
            watch,
            hub,
            presence: presence_hub,
            injected: clock,
            source: uuid::Uuid::now_v7().to_string(),
            sweep: Arc::default(),
            limits,
            name,
        })))
    }

    /// Closes the store, for all its handles: what is under way is finished, open streams end, later
    /// calls answer `CLOSED`, and the file is left without a WAL when nobody else has it open.
    ///
    /// Leases run out by themselves. A store whose last handle is dropped closes too, but without
    /// anybody waiting for it.
    ///
    /// # Errors
    /// `STORE_UNAVAILABLE` when the runtime is shutting down.
    pub async fn close(&self) -> Result<()> {
        let inner = &self.0;
        inner.writer.stop();
        inner.hub.close();
        inner.presence.close();
        // The writer's connection closes last: only the last one can move the WAL into the file.
        inner.watch.close().await;
        if let Some(readers) = &inner.readers {
            readers.close().await;
        }
        let writer = Arc::clone(&inner.writer);
        blocking::run(move || writer.close()).await
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.0.writer.is_closed() { Err(Error::closed()) } else { Ok(()) }
    }

    /// What tells the time in an operation that starts now.
    pub(crate) fn time(&self) -> impl Fn() -> Timestamp + Send + 'static {
        let at = self.0.injected.as_ref().map(|clock| clock.now());
        move || at.unwrap_or_else(|| SystemClock.now())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.injected.clone().unwrap_or_else(|| Arc::new(SystemClock))
    }

    fn guarded<S>(&self, stream: S) -> Guarded<S> {
        let (guard, ready) = self.0.watch.open();
        Guarded { stream, ready, _guard: guard }
    }

    pub(crate) fn limits(&self) -> &StoreLimits {
        &self.0.limits
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.0.hub
    }

    pub(crate) async fn submit<T, F, W>(&self, operation: Operation<F, W>) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Tx<'_>) -> Result<T> + Send + 'static,
        W: FnMut(&T) + Send + 'static,
    {
        self.check_open()?;
        self.0.writer.submit(operation).await
    }

    /// Writes to a session; `wake` is called after the commit.
    async fn write<T, F, W>(
        &self,
        session: &SessionId,
        doing: &'static str,
        bytes: usize,
        mut run: F,
        mut wake: W,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut SessionTables<'_>, Timestamp) -> Result<T> + Send + 'static,
        W: FnMut(&Hub, &SessionId, &T) + Send + 'static,
    {
        let (now, hub) = (self.time(), self.hub().clone());
        let (at, woken) = (session.clone(), session.clone());
        let run = move |tx: &Tx<'_>| run(&mut tx.session(&at, doing), now());
        let wake = move |done: &T| wake(&hub, &woken, done);
        self.submit(Operation { bytes, alone: false, run, wake }).await
    }

    /// Reads in one consistent view.
    async fn view<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.check_open()?;
        match &self.0.readers {
            Some(readers) => readers.read(read).await,
            None => {
                let run = move |tx: &Tx<'_>| read(tx);
                self.submit(Operation { bytes: 0, alone: false, run, wake: |_: &T| {} }).await
            }
        }
    }

    /// Reads a session in one consistent view.
    async fn view_session<T, F>(
        &self,
        session: &SessionId,
        doing: &'static str,
        read: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut SessionTables<'_>) -> Result<T> + Send + 'static,
    {
        let session = session.clone();
        self.view(move |tx| read(&mut tx.session(&session, doing))).await
    }
}

fn bytes_of(events: &[NewEvent]) -> usize {
    events.iter().map(|event| event.payload().byte_len()).sum()
}

/// Streams get what was appended.
pub(crate) fn woken_by(hub: &Hub, session: &SessionId, appended: &Appended) {
    if !appended.replayed && !appended.events.is_empty() {
        hub.appended(session, &appended.events);
    }
}

fn nobody<T>(_: &Hub, _: &SessionId, _: &T) {}

#[async_trait]
impl Store for SqliteStore {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        self.limits().check_append(&append)?;
        let bytes = bytes_of(append.events());
        let run = move |t: &mut SessionTables<'_>, now| engine::append(t, now, &append);
        self.write(session, "append", bytes, run, woken_by).await
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        self.view_session(session, "read", move |t| engine::read(t, &range)).await
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        let stream = live::event_stream(self.clone(), self.hub(), session, start_after, None);
        EventStream::new(self.guarded(stream))
    }

    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        let run = move |t: &mut SessionTables<'_>, now| engine::claim_available(t, now, &claim);
        self.write(session, "claim_available", 0, run, nobody).await
    }

    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        let run = move |t: &mut SessionTables<'_>, now| engine::renew_claims(t, now, &renew);
        self.write(session, "renew_claims", 0, run, nobody).await
    }

    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        let run = move |t: &mut SessionTables<'_>, _| engine::release_claims(t, &release);
        let wake = |hub: &Hub, session: &SessionId, done: &Released| {
            if !done.released.is_empty() {
                hub.hint(session);
            }
        };
        self.write(session, "release_claims", 0, run, wake).await
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        self.limits().check_complete(&complete)?;
        let bytes = bytes_of(complete.returned());
        let run = move |t: &mut SessionTables<'_>, now| engine::complete_attempt(t, now, &complete);
        let wake = |hub: &Hub, session: &SessionId, done: &WithClaim<Completion>| {
            if let Completion::Completed(appended) = &done.outcome {
                woken_by(hub, session, appended);
            }
        };
        self.write(session, "complete_attempt", bytes, run, wake).await
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        let run = move |t: &mut SessionTables<'_>, now| engine::fail_attempt(t, now, &fail);
        self.write(session, "fail_attempt", 0, run, nobody).await
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        self.view_session(session, "dead_letters", move |t| engine::dead_letters(t, &page)).await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        let run = move |t: &mut SessionTables<'_>, now| {
            let redriven = engine::redrive(t, now, &redrive)?;
            let change = if redriven.redriven {
                let told = presence_rows::tell(t.tx, REDRIVEN, t.session().as_str(), None);
                told.map_err(|error| t.fail(error))?
            } else {
                None
            };
            Ok((redriven, change))
        };
        let watch = Arc::clone(&self.0.watch);
        let wake = move |hub: &Hub, session: &SessionId, (_, change): &(_, Option<i64>)| {
            if let Some(change) = change {
                watch.own_change(*change, || hub.hint(session));
            }
        };
        let (redriven, _) = self.write(session, "redrive", 0, run, wake).await?;
        Ok(redriven)
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        let run = move |t: &mut SessionTables<'_>, _| engine::wake_log(t, &log);
        self.write(session, "wake_log", 0, run, nobody).await
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        self.view_session(session, "cursors", move |t| engine::cursors(t, &page)).await
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        let reducer = reducer.clone();
        let read = move |t: &mut SessionTables<'_>| engine::read_state(t, &reducer, &read);
        self.view_session(session, "read_state", read).await
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        self.limits().check_snapshots(&writes)?;
        let reducer = reducer.clone();
        let bytes = writes.writes().iter().map(|write| write.state().byte_len()).sum();
        let run = move |t: &mut SessionTables<'_>, _| engine::put_snapshots(t, &reducer, &writes);
        self.write(session, "put_snapshots", bytes, run, nobody).await
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        let run = move |t: &mut SessionTables<'_>, now| engine::clear(t, now, &clear);
        let wake = |hub: &Hub, session: &SessionId, done: &Cleared| {
            if done.cleared {
                hub.cleared(session, done.clear_index);
            }
        };
        self.write(session, "clear", 0, run, wake).await
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        let run = |t: &mut SessionTables<'_>, _| reclaim::reclaim(t);
        self.write(session, "reclaim", 0, run, nobody).await
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        self.view(move |tx| sessions::sessions(tx, &page)).await
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        let now = self.time();
        self.view(move |tx| sessions::pending(tx, &pending, now())).await
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        let stream = live::work_hints(self.hub(), self.clone(), self.clock(), served, None);
        WorkHints::new(self.guarded(stream))
    }
}

#[async_trait]
impl Timers for SqliteStore {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        self.limits().check_schedule(&timer)?;
        let run = move |t: &mut SessionTables<'_>, now| engine::schedule(t, now, &timer);
        let wake = |hub: &Hub, _: &SessionId, done: &Scheduled| hub.timer_set(done.due_at);
        self.write(session, "schedule", 0, run, wake).await
    }

    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        let key = key.clone();
        let run = move |t: &mut SessionTables<'_>, _| engine::unschedule(t, &key);
        self.write(session, "unschedule", 0, run, nobody).await
    }

    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        self.view_session(session, "timers", move |t| engine::timers(t, &page)).await
    }

    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        let run = move |t: &mut SessionTables<'_>, now| engine::fire_timers(t, now, &fire);
        self.write(session, "fire_timers", 0, run, woken_by).await
    }
}

#[async_trait]
impl Presence for SqliteStore {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.limits().check_presence(&update)?;
        let (now, source) = (self.time(), self.0.source.clone());
        let (written, woken, hub) = (namespace.clone(), namespace.clone(), self.0.presence.clone());
        let sweep = self.0.injected.is_none().then(|| Arc::clone(&self.0.sweep));
        let run = move |tx: &Tx<'_>| {
            presence_rows::set(tx, &written, &update, now(), &source, sweep.as_deref())
        };
        let watch = Arc::clone(&self.0.watch);
        let wake = move |done: &Written| {
            if let Some(change) = done.change {
                watch.own_change(change, || hub.written(&woken, &done.write));
            }
        };
        let done = self.submit(Operation { bytes: 0, alone: false, run, wake }).await?;
        Ok(done.write.patch)
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        let (now, namespace) = (self.time(), namespace.clone());
        let rows = self.view(move |tx| presence_rows::read(tx, &namespace, now())).await?;
        Ok(PresenceRows::new(rows))
    }

    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        let stream = live::presence_stream(
            self.clone(),
            &self.0.presence,
            namespace,
            self.clock(),
            self.0.source.clone(),
            None::<Duration>,
        );
        PresenceStream::new(self.guarded(stream))
    }
}

#[async_trait]
impl DueTimers for SqliteStore {
    async fn due_timers(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>> {
        let after = after.cloned();
        self.view(move |tx| sessions::due_timers(tx, from, after.as_ref(), through, limit)).await
    }

    async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>> {
        self.view(move |tx| sessions::next_due(tx, after)).await
    }
}

/// A stream that keeps the watch going while it is open, and begins when that knows where things
/// stand.
struct Guarded<S> {
    stream: S,
    ready: Option<Ready>,
    _guard: WatchGuard,
}

impl<S: Stream + Unpin> Stream for Guarded<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        if let Some(ready) = &mut self.ready {
            std::task::ready!(ready.as_mut().poll(cx));
            self.ready = None;
        }
        Pin::new(&mut self.stream).poll_next(cx)
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("file", &self.0.name)
            .field("clock", &self.0.injected)
            .field("closed", &self.0.writer.is_closed())
            .finish_non_exhaustive()
    }
}
