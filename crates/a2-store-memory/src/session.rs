//! A session: the current lifetime, what outlives a clear, and what earlier lifetimes left behind.

use std::collections::BTreeMap;

use a2_core::engine::LogRow;
use a2_core::{Consumer, LogName, SessionId, limits};

use crate::lifetime::Lifetime;
use crate::timers::{TimerSet, Timers};

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) life: Lifetime,
    pub(crate) logs: BTreeMap<Consumer, BTreeMap<LogName, LogRow>>,
    pub(crate) timers: Timers,
    old: Vec<Old>,
    pub(crate) listed: Listed,
}

/// What an earlier lifetime left behind.
#[derive(Debug)]
struct Old {
    life: Lifetime,
    timers: TimerSet,
}

/// In which of the store's lists the session stands.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Among the sessions that were ever appended to.
    pub(crate) sessions: bool,
    /// Among those with work.
    pub(crate) pending: bool,
    /// In none, not even the one it was found by: it was never written to.
    pub(crate) gone: bool,
}

/// What one call of reclaim took out.
pub(crate) struct Reclaim {
    pub(crate) deleted: u64,
    pub(crate) done: bool,
    /// To be dropped when the session is no longer locked: freeing memory takes time.
    pub(crate) husks: Vec<Lifetime>,
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Self {
        Self {
            id,
            life: Lifetime::default(),
            logs: BTreeMap::new(),
            timers: Timers::default(),
            old: Vec::new(),
            listed: Listed::default(),
        }
    }

    /// Whether it was ever appended to.
    pub(crate) fn has_events(&self) -> bool {
        self.life.head() > a2_core::Index::ZERO
    }

    /// Whether there is a live head or a timer.
    pub(crate) fn has_work(&self) -> bool {
        self.life.has_live()
            || (!self.timers.is_empty() && self.timers.next_due(self.life.clear_index).is_some())
    }

    /// Whether nothing was ever stored.
    pub(crate) fn is_unused(&self) -> bool {
        !self.has_events()
            && self.logs.is_empty()
            && self.timers.is_empty()
            && self.life.reducers.is_empty()
    }

    /// Puts the current lifetime away and goes on with `life`.
    pub(crate) fn begin(&mut self, life: Lifetime) {
        let life = std::mem::replace(&mut self.life, life);
        self.old.push(Old { life, timers: self.timers.take_bound() });
    }

    /// Deletes one batch of what earlier lifetimes left behind.
    pub(crate) fn reclaim(&mut self) -> Reclaim {
        let mut left = limits::RECLAIM_ROWS;
        let mut husks = Vec::new();
        while let Some(old) = self.old.last_mut() {
            left -= old.life.drain(left);
            while left > 0 {
                let Some(due_at) = old.timers.pop() else { break };
                self.timers.touch(due_at);
                left -= 1;
            }
            if left == 0 {
                break;
            }
            husks.extend(self.old.pop().map(|old| old.life));
        }
        while left > 0 && self.timers.pop_dropped(self.life.clear_index) {
            left -= 1;
        }
        Reclaim {
            deleted: (limits::RECLAIM_ROWS - left) as u64,
            done: self.old.is_empty() && !self.timers.has_dropped(self.life.clear_index),
            husks,
        }
    }
}
