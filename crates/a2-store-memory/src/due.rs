//! When timers are due, over all sessions, for those who watch for work.
//!
//! A clear drops a session's timers without touching this list, since its cost must not grow with
//! them. So the list may name due times at which a session has no timer any more; whoever meets such
//! an entry asks the session and takes it out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, PoisonError};

use a2_core::live::DueTimer;
use a2_core::{SessionId, Timestamp};

type Times = BTreeMap<Timestamp, BTreeSet<SessionId>>;

/// The sessions with a timer at each due time.
#[derive(Debug, Default)]
pub(crate) struct Due(Mutex<Times>);

impl Due {
    pub(crate) fn insert(&self, due_at: Timestamp, session: &SessionId) {
        self.with(|times| times.entry(due_at).or_default().insert(session.clone()));
    }

    pub(crate) fn remove(&self, due_at: Timestamp, session: &SessionId) {
        self.with(|times| {
            if let Some(sessions) = times.get_mut(&due_at) {
                sessions.remove(session);
                if sessions.is_empty() {
                    times.remove(&due_at);
                }
            }
        });
    }

    /// The entries from `from` to `through`, of those at `from` the sessions after `after` alone.
    pub(crate) fn between(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Vec<DueTimer> {
        if from > through {
            return Vec::new();
        }
        self.with(|times| {
            let entries = times.range(from..=through).flat_map(|(&due_at, sessions)| {
                let after = after.filter(|_| due_at == from).map_or(Unbounded, Excluded);
                let rest = sessions.range::<SessionId, _>((after, Unbounded));
                rest.map(move |session| DueTimer { due_at, session: session.clone() })
            });
            entries.take(limit).collect()
        })
    }

    /// The first entry after `after`.
    pub(crate) fn first_after(&self, after: Timestamp) -> Option<DueTimer> {
        self.with(|times| {
            let (&due_at, sessions) = times.range((Excluded(after), Unbounded)).next()?;
            Some(DueTimer { due_at, session: sessions.first()?.clone() })
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Times) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
