//! Presence: ephemeral fields by namespace and participant.
//!
//! An expired row is never read. It is removed by a later write of the handle that wrote it, to
//! whatever namespace, a few at a time: judged by that handle's clock alone, since handles may have
//! clocks of their own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::Mutex;

use a2_core::live::PresenceHub;
use a2_core::presence::{self, PresenceWrite};
use a2_core::{Field, Namespace, Participant, PresencePatch, PresenceRow, PresenceRows};
use a2_core::{PresenceUpdate, Timestamp};
use foldhash::fast::RandomState;

use crate::global::lock;

const SHARDS: usize = 16;
/// How many expired rows a write removes at most.
const SWEPT: usize = 64;

/// A handle's number: whose clock judges a row.
pub(crate) type HandleNumber = u64;

/// Every namespace of a store.
#[derive(Debug)]
pub(crate) struct Presences {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    pub(crate) hub: PresenceHub,
}

#[derive(Debug, Default)]
struct Shard {
    namespaces: HashMap<Namespace, Participants, RandomState>,
    /// The rows by whose clock judges them, and when they expire.
    expiries: BTreeMap<(HandleNumber, Timestamp), BTreeSet<RowName>>,
}

type Participants = BTreeMap<Participant, BTreeMap<Field, Stored>>;
type RowName = (Namespace, Participant, Field);

#[derive(Debug)]
struct Stored {
    row: PresenceRow,
    written_by: HandleNumber,
}

/// A handle that writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) number: HandleNumber,
    pub(crate) source: &'a str,
}

impl Presences {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::default(),
            hub: PresenceHub::new(),
        }
    }

    fn shard(&self, namespace: &Namespace) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(namespace) as usize % SHARDS]
    }

    /// How many rows take up room.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        let rows = |shard: &Mutex<Shard>| -> usize {
            let shard = lock(shard);
            shard.namespaces.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum()
        };
        self.shards.iter().map(rows).sum()
    }

    pub(crate) fn set(
        &self,
        namespace: &Namespace,
        update: &PresenceUpdate,
        writer: Writer<'_>,
        now: impl FnOnce() -> Timestamp,
    ) -> Option<PresencePatch> {
        let mut shard = lock(self.shard(namespace));
        let now = now();
        shard.sweep(writer.number, now);
        let rows = shard.rows_of(namespace, update);
        let write = presence::write(&rows, update, now, writer.source);
        shard.store(namespace, update.participant(), &write, writer.number);
        // Under the lock, so that watchers are told in the order of the writes.
        self.hub.written(namespace, &write);
        write.patch
    }

    pub(crate) fn read(
        &self,
        namespace: &Namespace,
        now: impl FnOnce() -> Timestamp,
    ) -> PresenceRows {
        let shard = lock(self.shard(namespace));
        let now = now();
        let participants = shard.namespaces.get(namespace).into_iter().flatten();
        let rows = participants.flat_map(|(_, fields)| fields.values().map(|stored| &stored.row));
        PresenceRows::new(rows.filter(|row| row.expires_at > now).cloned().collect())
    }
}

impl Shard {
    /// The participant's rows of the fields that the update names.
    fn rows_of(&self, namespace: &Namespace, update: &PresenceUpdate) -> Vec<PresenceRow> {
        let participants = self.namespaces.get(namespace);
        let Some(fields) = participants.and_then(|all| all.get(update.participant())) else {
            return Vec::new();
        };
        let stored = update.fields().keys().filter_map(|field| fields.get(field));
        stored.map(|stored| stored.row.clone()).collect()
    }

    fn store(
        &mut self,
        namespace: &Namespace,
        participant: &Participant,
        write: &PresenceWrite,
        written_by: HandleNumber,
    ) {
        for field in &write.remove {
            self.remove(namespace, participant, field);
        }
        if write.put.is_empty() {
            return;
        }
        let participants = self.namespaces.entry(namespace.clone()).or_default();
        let fields = participants.entry(participant.clone()).or_default();
        let mut replaced = Vec::new();
        for row in &write.put {
            let stored = Stored { row: row.clone(), written_by };
            let names = self.expiries.entry((written_by, row.expires_at)).or_default();
            names.insert((namespace.clone(), participant.clone(), row.field.clone()));
            let old = fields.insert(row.field.clone(), stored);
            replaced.extend(old.filter(|old| {
                old.written_by != written_by || old.row.expires_at != row.expires_at
            }));
        }
        for old in &replaced {
            self.forget_expiry(namespace, old);
        }
    }

    fn remove(&mut self, namespace: &Namespace, participant: &Participant, field: &Field) {
        let Some(participants) = self.namespaces.get_mut(namespace) else { return };
        let Some(fields) = participants.get_mut(participant) else { return };
        let removed = fields.remove(field);
        if fields.is_empty() {
            participants.remove(participant);
        }
        if participants.is_empty() {
            self.namespaces.remove(namespace);
        }
        if let Some(stored) = removed {
            self.forget_expiry(namespace, &stored);
        }
    }

    fn forget_expiry(&mut self, namespace: &Namespace, stored: &Stored) {
        let row = &stored.row;
        let at = (stored.written_by, row.expires_at);
        if let Some(names) = self.expiries.get_mut(&at) {
            names.remove(&(namespace.clone(), row.participant.clone(), row.field.clone()));
            if names.is_empty() {
                self.expiries.remove(&at);
            }
        }
    }

    /// Removes some rows that this handle wrote and that have expired.
    fn sweep(&mut self, number: HandleNumber, now: Timestamp) {
        let always = Timestamp::from_millis(i64::MIN);
        for _ in 0..SWEPT {
            let mut expired = self.expiries.range((number, always)..=(number, now));
            let first = expired.next().and_then(|(_, names)| names.first());
            let Some((namespace, participant, field)) = first.cloned() else { return };
            self.remove(&namespace, &participant, &field);
        }
    }
}
