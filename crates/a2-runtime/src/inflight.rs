//! The attempts that run in this process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2_core::{AttemptRef, CursorRef, DispatchedHead, Index, SessionId, Span, Timestamp};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One attempt, from its claim until it is settled.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) attempt: AttemptRef,
    pub(crate) ttl: Duration,
    pub(crate) token: CancellationToken,
    /// When its event was appended, by the store's clock.
    pub(crate) appended_at: Timestamp,
    lost: AtomicBool,
}

impl Running {
    /// Whether somebody else has the head now, or nobody.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
        self.token.cancel();
    }
}

struct Entry {
    running: Arc<Running>,
    /// When half of the lease is left.
    renew_at: Timestamp,
    expires_at: Timestamp,
}

/// All attempts, by session.
#[derive(Default)]
pub(crate) struct Inflight {
    sessions: Mutex<HashMap<SessionId, Vec<Entry>>>,
    /// A lease must be renewed sooner than all others.
    pub(crate) sooner: Notify,
}

impl Inflight {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Entry>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim that was asked for at `asked` brought this attempt. An earlier one on the same head is
    /// superseded by it.
    pub(crate) fn add(
        &self,
        head: &DispatchedHead,
        asked: Timestamp,
        ttl: Duration,
        aborted: &CancellationToken,
    ) -> Arc<Running> {
        let running = Arc::new(Running {
            attempt: head.attempt_ref(),
            ttl,
            token: aborted.child_token(),
            appended_at: head.event.created_at,
            lost: AtomicBool::new(false),
        });
        let entry = Entry {
            running: Arc::clone(&running),
            renew_at: asked.after(Span::new(ttl / 2)),
            expires_at: asked.after(Span::new(ttl)),
        };
        let mut sessions = self.lock();
        let entries = sessions.entry(head.event.session.clone()).or_default();
        for earlier in entries.iter().filter(|e| e.running.attempt.head == running.attempt.head) {
            earlier.running.lose();
        }
        entries.push(entry);
        drop(sessions);
        self.sooner.notify_one();
        running
    }

    pub(crate) fn remove(&self, session: &SessionId, running: &Arc<Running>) {
        let mut sessions = self.lock();
        if let Some(entries) = sessions.get_mut(session) {
            entries.retain(|entry| !Arc::ptr_eq(&entry.running, running));
            if entries.is_empty() {
                sessions.remove(session);
            }
        }
    }

    /// The session was cleared at `marker`.
    pub(crate) fn cleared(&self, session: &SessionId, marker: Index) {
        if marker == Index::ZERO {
            return;
        }
        for entry in self.lock().get(session).into_iter().flatten() {
            if entry.running.attempt.head.index <= marker {
                entry.running.lose();
            }
        }
    }

    /// Cursors whose lease ran out although their attempt still runs: it may yet be completed, so this
    /// process does not take them away from itself.
    pub(crate) fn lapsed(&self, session: &SessionId, now: Timestamp) -> Vec<CursorRef> {
        let sessions = self.lock();
        let entries = sessions.get(session).into_iter().flatten();
        let lapsed = entries.filter(|entry| entry.expires_at <= now && !entry.running.is_lost());
        lapsed.map(|entry| entry.running.attempt.head.cursor_ref()).collect()
    }

    /// When the next lease has to be renewed.
    pub(crate) fn next_renewal(&self) -> Option<Timestamp> {
        self.lock().values().flatten().map(|entry| entry.renew_at).min()
    }

    /// Sessions in which a lease has to be renewed.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<SessionId> {
        let sessions = self.lock();
        let due = sessions.iter().filter(|(_, entries)| entries.iter().any(|e| e.renew_at <= now));
        due.map(|(session, _)| session.clone()).collect()
    }

    /// What runs in a session.
    pub(crate) fn of(&self, session: &SessionId) -> Vec<Arc<Running>> {
        let sessions = self.lock();
        sessions.get(session).into_iter().flatten().map(|e| Arc::clone(&e.running)).collect()
    }

    /// These attempts were asked to be renewed at `asked`: `held` were; the others are tried again
    /// later all the same.
    pub(crate) fn renewed(
        &self,
        session: &SessionId,
        asked: Timestamp,
        tried: &[Arc<Running>],
        held: &[AttemptRef],
    ) {
        let mut sessions = self.lock();
        for entry in sessions.get_mut(session).into_iter().flatten() {
            if !tried.iter().any(|running| Arc::ptr_eq(running, &entry.running)) {
                continue;
            }
            let ttl = entry.running.ttl;
            entry.renew_at = asked.after(Span::new(ttl / 2));
            if held.contains(&entry.running.attempt) {
                entry.expires_at = asked.after(Span::new(ttl));
            }
        }
    }

    /// Tries these again at `at`.
    pub(crate) fn retry(&self, session: &SessionId, at: Timestamp) {
        let mut sessions = self.lock();
        for entry in sessions.get_mut(session).into_iter().flatten() {
            entry.renew_at = entry.renew_at.max(at);
        }
    }

    /// Everything that is left, by session.
    pub(crate) fn all(&self) -> Vec<(SessionId, Vec<Arc<Running>>)> {
        let sessions = self.lock();
        let all = sessions.iter();
        all.map(|(session, entries)| {
            (session.clone(), entries.iter().map(|e| Arc::clone(&e.running)).collect())
        })
        .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }
}
