//! Presence: the rows, and what other processes are told.

use std::sync::{Mutex, PoisonError};

use a2_core::live::PresenceHub;
use a2_core::presence::{self, PresenceWrite};
use a2_core::{Namespace, PresencePatch, PresenceRow, PresenceUpdate, Result, Timestamp};
use rusqlite::params;
use serde::{Deserialize, Serialize};

use crate::rows::{self, Sql, index_param};
use crate::statements as sql;
use crate::tx::Tx;
use crate::wake::{CHANGES, PRESENCE};

/// Expired rows of its namespace that one write deletes.
const EXPIRED: i64 = 64;
/// How long ago a row of another namespace must have expired to be deleted.
const ABANDONED_MS: i64 = 24 * 60 * 60 * 1000;

/// A patch whose JSON is longer is not passed on: the watchers read the namespace instead.
const NOTE_BYTES: usize = 4 * 1024;

/// What `a2_changes` says of a presence write.
#[derive(Serialize, Deserialize)]
pub(crate) struct PatchNote {
    /// What changed, when it is short.
    patch: Option<PresencePatch>,
    /// When the fields that were set go.
    expires_at: Timestamp,
    /// Whether there is more to know than the patch says.
    read_again: bool,
}

impl PatchNote {
    pub(crate) fn read(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// The note's text; none when there is nothing to tell.
    fn of(write: &PresenceWrite) -> Option<String> {
        if write.patch.is_none() && !write.sooner {
            return None;
        }
        let mut note = Self {
            patch: write.patch.clone(),
            expires_at: write.expires_at,
            read_again: write.sooner,
        };
        // Names, numbers and JSON always serialize.
        let whole = serde_json::to_string(&note).unwrap_or_default();
        if whole.len() <= NOTE_BYTES {
            return Some(whole);
        }
        note.patch = None;
        note.read_again = true;
        serde_json::to_string(&note).ok()
    }

    /// Tells this store's watchers.
    pub(crate) fn pass_on(&self, hub: &PresenceHub, namespace: &Namespace) {
        if let Some(patch) = &self.patch {
            hub.changed(namespace, patch, self.expires_at);
        }
        if self.read_again {
            hub.wake(namespace);
        }
    }
}

/// Deletes what nobody will write again: each write looks at one further namespace.
#[derive(Default)]
pub(crate) struct Sweep(Mutex<String>);

impl Sweep {
    /// Deletes long expired rows of the next namespace.
    fn step(&self, tx: &Tx<'_>, now: Timestamp) -> Sql<()> {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = rows::one(tx.conn, sql::PRESENCE_NEXT, [at.as_str()], |row| row.get(0))?;
        *at = next.unwrap_or_default();
        let params = params![*at, now.as_millis() - ABANDONED_MS, EXPIRED];
        rows::run(tx.conn, sql::PRESENCE_EXPIRE, params).map(|_| ())
    }
}

/// A presence write that was committed.
pub(crate) struct Written {
    pub(crate) write: PresenceWrite,
    /// The number of the change that tells of it.
    pub(crate) change: Option<i64>,
}

/// Writes a participant's fields. `sweep` is for the store's own clock: an injected one may differ
/// from that of the other namespaces' writers.
pub(crate) fn set(
    tx: &Tx<'_>,
    namespace: &Namespace,
    update: &PresenceUpdate,
    now: Timestamp,
    source: &str,
    sweep: Option<&Sweep>,
) -> Result<Written> {
    let write = || -> Sql<Written> {
        let key = [namespace.as_str(), update.participant().as_str()];
        let stored = rows::all(tx.conn, sql::PRESENCE_GET, key, rows::presence)?;
        let write = presence::write(&stored, update, now, source);
        tx.writes();
        for row in &write.put {
            let params = params![
                namespace.as_str(),
                row.participant.as_str(),
                row.field.as_str(),
                row.value.as_str(),
                row.seen.map(index_param),
                row.updated_at.as_millis(),
                row.expires_at.as_millis(),
            ];
            rows::run(tx.conn, sql::PRESENCE_PUT, params)?;
        }
        for field in &write.remove {
            let key = [namespace.as_str(), update.participant().as_str(), field.as_str()];
            rows::run(tx.conn, sql::PRESENCE_REMOVE, key)?;
        }
        let expired = params![namespace.as_str(), now.as_millis(), EXPIRED];
        rows::run(tx.conn, sql::PRESENCE_EXPIRE, expired)?;
        if let Some(sweep) = sweep {
            sweep.step(tx, now)?;
        }
        let change = match PatchNote::of(&write) {
            Some(note) => tell(tx, PRESENCE, namespace.as_str(), Some(note))?,
            None => None,
        };
        Ok(Written { write, change })
    };
    write().map_err(|error| tx.place("set_presence").error(error))
}

/// A namespace's rows that have not expired.
pub(crate) fn read(tx: &Tx<'_>, namespace: &Namespace, now: Timestamp) -> Result<Vec<PresenceRow>> {
    let params = params![namespace.as_str(), now.as_millis()];
    rows::all(tx.conn, sql::PRESENCE_PAGE, params, rows::presence)
        .map_err(|error| tx.place("read_presence").error(error))
}

/// Tells the watchers of other processes of a change that is no event; answers its number.
pub(crate) fn tell(tx: &Tx<'_>, kind: i64, name: &str, note: Option<String>) -> Sql<Option<i64>> {
    tx.writes();
    let params = params![kind, name, note];
    let seq: Option<i64> = rows::one(tx.conn, sql::CHANGE_ADD, params, |row| row.get(0))?;
    if let Some(seq) = seq {
        rows::run(tx.conn, sql::CHANGE_TRIM, [seq - CHANGES])?;
    }
    Ok(seq)
}
