//! What other processes write, noticed by a cheap look every few milliseconds.
//!
//! `PRAGMA data_version` tells whether anything was committed since the last look. If so, the events
//! above the last seen `seq` name exactly the sessions that were appended to, and `a2_changes` what
//! else there is to know. Events of this store's own commits, which woke their streams at once, are
//! left out. The thread that looks lives only while a stream or a watcher is open.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use a2_core::live::{Hub, PresenceHub};
use a2_core::{Namespace, SessionId};
use rusqlite::Connection;

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
    /// Names this store as the source of presence patches.
    source: String,
    interval: Duration,
    state: Mutex<State>,
    bell: Condvar,
    /// Whether the thread runs, so that own events are to be kept.
    looks: AtomicBool,
    /// Ranges of `seq` that this store has added since the last look, in order.
    own: Mutex<Vec<(i64, i64)>>,
}

#[derive(Default)]
struct State {
    /// Streams and watchers that are open.
    open: usize,
    has_thread: bool,
    closed: bool,
}

/// Keeps the watch going while it lives.
pub(crate) struct WatchGuard(Arc<Watch>);

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
        source: String,
        interval: Duration,
    ) -> Self {
        Self {
            opener,
            hub,
            presence,
            source,
            interval,
            state: Mutex::default(),
            bell: Condvar::new(),
            looks: AtomicBool::new(false),
            own: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream or a watcher opens: from here on until the guard is dropped it is woken.
    pub(crate) fn open(self: &Arc<Self>) -> WatchGuard {
        let mut state = self.lock();
        state.open += 1;
        if self.opener.is_some() && !state.has_thread && !state.closed {
            let watch = Arc::clone(self);
            self.looks.store(true, Ordering::Release);
            let made = thread::Builder::new()
                .name("a2-sqlite-watch".to_owned())
                .spawn(move || watch.serve());
            state.has_thread = made.is_ok();
        }
        drop(state);
        WatchGuard(Arc::clone(self))
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

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.bell.notify_all();
    }

    fn serve(&self) {
        let mut look: Option<Look> = None;
        loop {
            match self.look(look.take()) {
                Ok(next) => look = Some(next),
                // The next look opens the file again.
                Err(_) => self.forget_own(i64::MAX),
            }
            let state = self.lock();
            let (mut state, _) = self
                .bell
                .wait_timeout_while(state, self.interval, |s| s.open > 0 && !s.closed)
                .unwrap_or_else(PoisonError::into_inner);
            if state.open == 0 || state.closed {
                state.has_thread = false;
                self.looks.store(false, Ordering::Release);
                self.forget_own(i64::MAX);
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
                // What was written before may not have been seen by those who wait.
                self.hub.wake_all();
                self.hub.timers_changed();
                self.presence.wake_all();
                Ok(look)
            }
        }
    }

    fn pass_on(&self, look: &mut Look) -> Sql<()> {
        let last = look.last(sql::EVENTS_LAST)?;
        let mut sessions: BTreeSet<SessionId> = BTreeSet::new();
        for (after, through) in self.foreign(look.event, last) {
            let found =
                rows::all(&look.conn, sql::EVENTS_SINCE, [after, through, EVENTS], |row| {
                    rows::name::<SessionId>(row, 1)
                })?;
            let full = found.len() as i64 == EVENTS;
            sessions.extend(found);
            if full || sessions.len() as i64 >= EVENTS {
                sessions.clear();
                self.hub.wake_all();
                break;
            }
        }
        look.event = last;
        self.forget_own(last);
        for session in &sessions {
            self.hub.wake(session);
        }
        self.hub.timers_changed();
        self.pass_changes_on(look)
    }

    fn pass_changes_on(&self, look: &mut Look) -> Sql<()> {
        let changes =
            rows::all(&look.conn, sql::CHANGES_SINCE, [look.change, CHANGES + 1], |row| {
                let (seq, kind): (i64, i64) = (row.get(0)?, row.get(1)?);
                let session = (kind == REDRIVEN).then(|| rows::name::<SessionId>(row, 2));
                let namespace = (kind == PRESENCE).then(|| rows::name::<Namespace>(row, 2));
                let note: Option<String> = row.get(3)?;
                Ok((seq, session.transpose()?, namespace.transpose()?, note))
            })?;
        let Some((last, ..)) = changes.last() else { return Ok(()) };
        let gap = changes.first().is_some_and(|(first, ..)| *first > look.change + 1);
        look.change = *last;
        if gap || changes.len() as i64 > CHANGES {
            look.change = look.last(sql::CHANGES_LAST)?;
            self.hub.wake_all();
            self.presence.wake_all();
            return Ok(());
        }
        for (_, session, namespace, note) in changes {
            if let Some(session) = session {
                self.hub.wake(&session);
            }
            if let Some(namespace) = namespace {
                match note.as_deref().and_then(PatchNote::read) {
                    // Its watchers were told when it was committed.
                    Some(note) if note.source == self.source => {}
                    _ => self.presence.wake(&namespace),
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

    fn forget_own(&self, through: i64) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.retain(|(_, end)| *end > through);
    }
}

/// Where the last look left off.
struct Look {
    conn: Connection,
    version: i64,
    event: i64,
    change: i64,
}

impl Look {
    fn new(conn: Connection) -> Sql<Self> {
        let mut look = Self { conn, version: 0, event: 0, change: 0 };
        look.has_changed()?;
        look.event = look.last(sql::EVENTS_LAST)?;
        look.change = look.last(sql::CHANGES_LAST)?;
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
