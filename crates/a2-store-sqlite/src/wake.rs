//! What other processes write, noticed by a cheap look every few milliseconds.
//!
//! `PRAGMA data_version` tells whether anything was committed since the last look. If so, the events
//! above the last seen `seq` name exactly the sessions that were appended to, and `a2_changes` what
//! else there is to know. Events of this store's own commits, which woke their streams at once, are
//! left out. The thread that looks lives only while a stream or a watcher is open; a stream begins to
//! read when the thread knows where things stand, so that nothing falls between the two.
//!
//! Changes are told in the order of their commits: one of this store's own is told at once, unless
//! others precede it that are not told yet; then the next look, which comes at once, tells them all.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use a2_core::live::{Hub, PresenceHub};
use a2_core::{Index, Namespace, SessionId};
use rusqlite::Connection;
use tokio::sync::watch;

use crate::conn::Opener;
use crate::presence_rows::PatchNote;
use crate::rows::{self, Sql};
use crate::statements as sql;

/// Events read at one look; when there are more, everybody is woken.
const EVENTS: i64 = 1_000;
/// Changes that `a2_changes` keeps, and reads at one look.
pub(crate) const CHANGES: i64 = 1_000;
/// What a row of `a2_changes` says.
pub(crate) const REDRIVEN: i64 = 0;
pub(crate) const PRESENCE: i64 = 1;

/// Watches the file for what other processes write.
pub(crate) struct Watch {
    /// None for a database in memory, which no other process sees.
    opener: Option<Opener>,
    hub: Hub,
    presence: PresenceHub,
    interval: Duration,
    state: Mutex<State>,
    bell: Condvar,
    /// Whether the thread runs, so that own events are to be kept.
    looks: AtomicBool,
    /// Ranges of `seq` that this store has added since the last look, in order.
    own: Mutex<Vec<(i64, i64)>>,
    /// The last change that was told; none before the first look.
    told: Mutex<Option<i64>>,
}

#[derive(Default)]
struct State {
    /// Streams and watchers that are open.
    open: usize,
    /// While the thread runs: whether it has looked once.
    thread: Option<watch::Receiver<bool>>,
    look_now: bool,
    closed: bool,
}

/// Keeps the watch going while it lives.
pub(crate) struct WatchGuard(Arc<Watch>);

/// Resolves when the watch has looked once: what is written from then on is told.
pub(crate) type Ready = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.open -= 1;
        if state.open == 0 {
            self.0.bell.notify_all();
        }
    }
}

impl Watch {
    pub(crate) fn new(
        opener: Option<Opener>,
        hub: Hub,
        presence: PresenceHub,
        interval: Duration,
    ) -> Self {
        Self {
            opener,
            hub,
            presence,
            interval,
            state: Mutex::default(),
            bell: Condvar::new(),
            looks: AtomicBool::new(false),
            own: Mutex::default(),
            told: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream or a watcher opens: once ready, it is woken until the guard is dropped.
    pub(crate) fn open(self: &Arc<Self>) -> (WatchGuard, Option<Ready>) {
        let mut state = self.lock();
        state.open += 1;
        if self.opener.is_some() && state.thread.is_none() && !state.closed {
            let (has_looked, looked) = watch::channel(false);
            let watch = Arc::clone(self);
            self.looks.store(true, Ordering::Release);
            let made = thread::Builder::new()
                .name("a2-sqlite-watch".to_owned())
                .spawn(move || watch.serve(&has_looked));
            state.thread = made.is_ok().then_some(looked);
        }
        let looked = state.thread.clone().filter(|looked| !*looked.borrow());
        drop(state);
        let ready = looked.map(|mut looked| -> Ready {
            Box::pin(async move {
                // An error says that the thread is gone: there is nothing to wait for.
                let _ = looked.wait_for(|looked| *looked).await;
            })
        });
        (WatchGuard(Arc::clone(self)), ready)
    }

    /// This store has committed the change `seq`: `tell` is called in the order of commits.
    pub(crate) fn own_change(&self, seq: i64, tell: impl FnOnce()) {
        if !self.looks.load(Ordering::Acquire) {
            return tell();
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match *told {
            // Nobody has begun to listen.
            None => tell(),
            Some(last) if last + 1 == seq => {
                tell();
                *told = Some(seq);
            }
            // Others come first.
            Some(last) if last < seq => {
                drop(told);
                self.lock().look_now = true;
                self.bell.notify_all();
            }
            // The look was faster.
            Some(_) => {}
        }
    }

    /// This store has added the events from `first` to `last`.
    pub(crate) fn own_events(&self, first: i64, last: i64) {
        if !self.looks.load(Ordering::Acquire) {
            return;
        }
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        match own.last_mut() {
            Some((_, end)) if *end + 1 == first => *end = last,
            _ => own.push((first, last)),
        }
    }

    /// Ends the thread; resolves when its connection is closed, if anybody waits for that.
    pub(crate) fn close(&self) -> impl Future<Output = ()> + use<> {
        let mut state = self.lock();
        state.closed = true;
        let thread = state.thread.clone();
        drop(state);
        self.bell.notify_all();
        async move {
            if let Some(mut looked) = thread {
                while looked.changed().await.is_ok() {}
            }
        }
    }

    fn serve(&self, has_looked: &watch::Sender<bool>) {
        let mut look: Option<Look> = None;
        loop {
            match self.look(look.take()) {
                Ok(next) => look = Some(next),
                // The next look opens the file again.
                Err(_) => self.forget(),
            }
            has_looked.send_replace(true);
            let state = self.lock();
            let (mut state, _) = self
                .bell
                .wait_timeout_while(state, self.interval, |state| {
                    state.open > 0 && !state.closed && !state.look_now
                })
                .unwrap_or_else(PoisonError::into_inner);
            state.look_now = false;
            if state.open == 0 || state.closed {
                state.thread = None;
                // Before the lock is let go: whoever finds no thread finds no connection either.
                drop(look.take());
                self.looks.store(false, Ordering::Release);
                self.forget();
                return;
            }
        }
    }

    /// Looks once; the first look of a connection only remembers where things stand.
    fn look(&self, before: Option<Look>) -> a2_core::Result<Look> {
        let Some(opener) = &self.opener else { return Err(a2_core::Error::closed()) };
        let fail = |error| opener.place("look for changes").error(error);
        match before {
            Some(mut look) => {
                if look.has_changed().map_err(fail)? {
                    self.pass_on(&mut look).map_err(fail)?;
                }
                Ok(look)
            }
            None => {
                let look = Look::new(opener.reader()?).map_err(fail)?;
                let change = look.last(sql::CHANGES_LAST).map_err(fail)?;
                *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(change);
                // Whoever listens already (after a failure) may have missed something.
                self.wake_all();
                Ok(look)
            }
        }
    }

    fn wake_all(&self) {
        self.hub.wake_all();
        self.hub.timers_changed();
        self.presence.wake_all();
    }

    /// Forgets where things stand.
    fn forget(&self) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn pass_on(&self, look: &mut Look) -> Sql<()> {
        let last = look.last(sql::EVENTS_LAST)?;
        let mut sessions: BTreeMap<SessionId, Reached> = BTreeMap::new();
        let mut count = 0;
        for (after, through) in self.foreign(look.event, last) {
            let range = [after, through, EVENTS - count];
            let events = rows::all(&look.conn, sql::EVENTS_SINCE, range, |row| {
                Ok((rows::name::<SessionId>(row, 0)?, rows::index(row, 1)?, row.get(2)?))
            })?;
            count += events.len() as i64;
            for (session, index, is_marker) in events {
                let reached = sessions.entry(session).or_default();
                reached.head = index;
                reached.cleared = if is_marker { Some(index) } else { reached.cleared };
            }
        }
        look.event = last;
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.retain(|(_, end)| *end > last);
        drop(own);
        if count >= EVENTS {
            self.hub.wake_all();
        }
        for (session, reached) in &sessions {
            if let Some(clear_index) = reached.cleared {
                self.hub.cleared(session, clear_index);
            }
            self.hub.reached(session, reached.head);
        }
        self.hub.timers_changed();
        self.pass_changes_on(look)
    }

    fn pass_changes_on(&self, look: &Look) -> Sql<()> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = told.unwrap_or_default();
        let changes = rows::all(&look.conn, sql::CHANGES_SINCE, [before, CHANGES + 1], |row| {
            let (seq, kind): (i64, i64) = (row.get(0)?, row.get(1)?);
            let session = (kind == REDRIVEN).then(|| rows::name::<SessionId>(row, 2));
            let namespace = (kind == PRESENCE).then(|| rows::name::<Namespace>(row, 2));
            let note: Option<String> = row.get(3)?;
            Ok((seq, session.transpose()?, namespace.transpose()?, note))
        })?;
        let Some((last, ..)) = changes.last() else { return Ok(()) };
        let gap = changes.first().is_some_and(|(first, ..)| *first > before + 1);
        if gap || changes.len() as i64 > CHANGES {
            *told = Some(look.last(sql::CHANGES_LAST)?);
            drop(told);
            self.wake_all();
            return Ok(());
        }
        *told = Some(*last);
        for (_, session, namespace, note) in changes {
            if let Some(session) = session {
                self.hub.hint(&session);
            }
            if let Some(namespace) = namespace {
                match note.as_deref().and_then(PatchNote::read) {
                    Some(note) => note.pass_on(&self.presence, &namespace),
                    None => self.presence.wake(&namespace),
                }
            }
        }
        Ok(())
    }

    /// The ranges (after, through] of events in (`after`, `last`] that are not this store's own.
    fn foreign(&self, after: i64, last: i64) -> Vec<(i64, i64)> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut foreign = Vec::new();
        let mut seen = after;
        for &(first, end) in own.iter().filter(|(first, end)| *end > after && *first <= last) {
            if first > seen + 1 {
                foreign.push((seen, first - 1));
            }
            seen = seen.max(end);
        }
        if seen < last {
            foreign.push((seen, last));
        }
        foreign
    }
}

/// What others appended to a session.
#[derive(Default)]
struct Reached {
    head: Index,
    cleared: Option<Index>,
}

/// Where the last look left off.
struct Look {
    conn: Connection,
    version: i64,
    event: i64,
}

impl Look {
    fn new(conn: Connection) -> Sql<Self> {
        let mut look = Self { conn, version: 0, event: 0 };
        look.has_changed()?;
        look.event = look.last(sql::EVENTS_LAST)?;
        Ok(look)
    }

    fn has_changed(&mut self) -> Sql<bool> {
        let version =
            rows::one(&self.conn, "pragma data_version", [], |row| row.get(0))?.unwrap_or_default();
        let changed = version != self.version;
        self.version = version;
        Ok(changed)
    }

    fn last(&self, sql: &str) -> Sql<i64> {
        Ok(rows::one(&self.conn, sql, [], |row| row.get(0))?.unwrap_or_default())
    }
}
