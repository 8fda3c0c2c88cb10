//! The sessions, found by name, and the ordered lists that cross them.
//!
//! Sessions are spread over shards, so that finding one hardly ever waits for another; each has its
//! own lock. The lists are written only when a session enters or leaves one, under the session's
//! lock, which is always taken before a shard's or a list's.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2_core::{Error, Result, SessionId};
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::bits::Bits;
use crate::due::Due;
use crate::lifetime::hash_of;
use crate::session::Session;

const SHARDS: usize = 64;

/// A session and its lock.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) id: SessionId,
    /// Where it stands in its shard, for as long as it does.
    pub(crate) place: usize,
    state: Mutex<Session>,
}

impl Slot {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Session> {
        lock(&self.state)
    }
}

/// Some of the sessions; aligned so that no two shards' locks share a cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<ShardState>);

#[derive(Debug, Default)]
struct ShardState {
    by_name: HashTable<Arc<Slot>>,
    by_place: Vec<Option<Arc<Slot>>>,
    unused: Vec<usize>,
    /// The places of those with a live head or a timer.
    pending: Bits,
}

/// Every session of a store.
#[derive(Debug)]
pub(crate) struct Global {
    shards: Box<[Shard]>,
    /// Those that were ever appended to.
    sessions: Mutex<BTreeMap<SessionId, Arc<Slot>>>,
    pub(crate) due: Due,
    closed: AtomicBool,
    hasher: RandomState,
}

impl Global {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            sessions: Mutex::default(),
            due: Due::default(),
            closed: AtomicBool::new(false),
            hasher: RandomState::default(),
        }
    }

    /// How many sessions take up room.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.shards.iter().map(|shard| lock(&shard.0).by_name.len()).sum()
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }

    /// Does something with a session; one that does not exist is empty, and stays unmade.
    pub(crate) fn with<T>(
        &self,
        id: &SessionId,
        operation: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        self.check_open()?;
        let hash = self.hash(id);
        loop {
            let Some(slot) = self.find(hash, id) else {
                return operation(&mut Session::new(id.clone()));
            };
            let mut session = slot.lock();
            if !session.listed.gone {
                let answer = operation(&mut session);
                self.settle(hash, &slot, &mut session);
                return answer;
            }
        }
    }

    /// Does something with a session that may be its first write.
    pub(crate) fn with_new<T>(
        &self,
        id: &SessionId,
        operation: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        self.check_open()?;
        let hash = self.hash(id);
        loop {
            let slot = self.find_or_make(hash, id);
            let mut session = slot.lock();
            if !session.listed.gone {
                let answer = operation(&mut session);
                self.settle(hash, &slot, &mut session);
                return answer;
            }
        }
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, ShardState> {
        // Neither the bits by which the table finds a bucket nor those it tags entries with.
        lock(&self.shards[(hash >> 40) as usize % SHARDS].0)
    }

    fn find(&self, hash: u64, id: &SessionId) -> Option<Arc<Slot>> {
        self.shard(hash).by_name.find(hash, |slot| slot.id == *id).cloned()
    }

    fn find_or_make(&self, hash: u64, id: &SessionId) -> Arc<Slot> {
        let mut shard = self.shard(hash);
        if let Some(slot) = shard.by_name.find(hash, |slot| slot.id == *id) {
            return Arc::clone(slot);
        }
        let place = shard.unused.pop().unwrap_or_else(|| {
            shard.by_place.push(None);
            shard.by_place.len() - 1
        });
        let state = Mutex::new(Session::new(id.clone()));
        let slot = Arc::new(Slot { id: id.clone(), place, state });
        shard.by_place[place] = Some(Arc::clone(&slot));
        shard.by_name.insert_unique(hash, Arc::clone(&slot), |slot| self.hash(&slot.id));
        slot
    }

    fn forget(&self, hash: u64, slot: &Arc<Slot>) {
        let mut shard = self.shard(hash);
        let found = shard.by_name.find_entry(hash, |other| Arc::ptr_eq(other, slot));
        if let Ok(entry) = found {
            entry.remove();
            shard.by_place[slot.place] = None;
            shard.unused.push(slot.place);
        }
    }

    fn hash(&self, id: &SessionId) -> u64 {
        hash_of(&self.hasher, id.as_str())
    }

    /// Brings the lists up to date with the session.
    fn settle(&self, hash: u64, slot: &Arc<Slot>, session: &mut Session) {
        if !session.listed.sessions {
            if session.has_events() {
                session.listed.sessions = true;
                lock(&self.sessions).insert(slot.id.clone(), Arc::clone(slot));
            } else if session.is_unused() {
                session.listed.gone = true;
            }
        }
        for due_at in session.timers.take_touched() {
            if session.timers.any_due_at(due_at, session.life.clear_index) {
                self.due.insert(due_at, &slot.id);
            } else {
                self.due.remove(due_at, &slot.id);
            }
        }
        let has_work = session.has_work();
        if has_work != session.listed.pending {
            session.listed.pending = has_work;
            let mut shard = self.shard(hash);
            if has_work {
                shard.pending.insert(slot.place);
            } else {
                shard.pending.remove(slot.place);
            }
        }
        if session.listed.gone {
            self.forget(hash, slot);
        }
    }

    /// The sessions ever appended to after `after`, by name.
    pub(crate) fn sessions(&self, after: Option<&SessionId>, limit: usize) -> Vec<Arc<Slot>> {
        let sessions = lock(&self.sessions);
        let from = (after.map_or(Unbounded, Excluded), Unbounded);
        sessions.range::<SessionId, _>(from).take(limit).map(|(_, slot)| Arc::clone(slot)).collect()
    }

    /// The sessions with work that stand in `shard`, from place `from` on; none past the last shard.
    pub(crate) fn pending(
        &self,
        shard: usize,
        from: usize,
        limit: usize,
    ) -> Option<Vec<Arc<Slot>>> {
        let shard = lock(&self.shards.get(shard)?.0);
        let slots = shard.pending.iter_from(from).filter_map(|place| shard.by_place[place].clone());
        Some(slots.take(limit).collect())
    }

    /// Whether the session has a timer due at exactly `due_at`; forgets the entry when not.
    pub(crate) fn confirm_due(&self, id: &SessionId, due_at: a2_core::Timestamp) -> bool {
        let Some(slot) = self.find(self.hash(id), id) else {
            self.due.remove(due_at, id);
            return false;
        };
        let session = slot.lock();
        let there = session.timers.any_due_at(due_at, session.life.clear_index);
        if !there {
            self.due.remove(due_at, id);
        }
        there
    }
}

/// Takes a lock, also one that a panic left behind: what it guards is written by operations that
/// have checked everything before their first write.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
