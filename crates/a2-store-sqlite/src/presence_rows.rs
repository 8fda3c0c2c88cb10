//! Presence: the rows, and what other processes are told.

use a2_core::presence::{self, PresenceWrite};
use a2_core::{Namespace, PresenceRow, PresenceUpdate, Result, Timestamp};
use rusqlite::params;
use serde::{Deserialize, Serialize};

use crate::rows::{self, Sql, index_param};
use crate::statements as sql;
use crate::tx::Tx;
use crate::wake::{CHANGES, PRESENCE};

/// Expired rows that one write deletes, of whatever namespace.
const EXPIRED: i64 = 64;

/// What `a2_changes` says of a presence write.
#[derive(Serialize, Deserialize)]
pub(crate) struct PatchNote {
    /// The store handle that wrote.
    pub(crate) source: String,
}

impl PatchNote {
    pub(crate) fn read(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    fn text(source: &str) -> String {
        // A string always serializes.
        serde_json::to_string(&Self { source: source.to_owned() }).unwrap_or_default()
    }
}

/// Writes a participant's fields.
pub(crate) fn set(
    tx: &Tx<'_>,
    namespace: &Namespace,
    update: &PresenceUpdate,
    now: Timestamp,
    source: &str,
) -> Result<PresenceWrite> {
    let write = || -> Sql<PresenceWrite> {
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
        rows::run(tx.conn, sql::PRESENCE_EXPIRE, [now.as_millis(), EXPIRED])?;
        if write.patch.is_some() || write.sooner {
            tell(tx, PRESENCE, namespace.as_str(), Some(PatchNote::text(source)))?;
        }
        Ok(write)
    };
    write().map_err(|error| tx.place("set_presence").error(error))
}

/// A namespace's rows that have not expired.
pub(crate) fn read(tx: &Tx<'_>, namespace: &Namespace, now: Timestamp) -> Result<Vec<PresenceRow>> {
    let params = params![namespace.as_str(), now.as_millis()];
    rows::all(tx.conn, sql::PRESENCE_PAGE, params, rows::presence)
        .map_err(|error| tx.place("read_presence").error(error))
}

/// Tells the watchers of other processes of a change that is no event.
pub(crate) fn tell(tx: &Tx<'_>, kind: i64, name: &str, note: Option<String>) -> Sql<()> {
    tx.writes();
    let params = params![kind, name, note];
    let seq: Option<i64> = rows::one(tx.conn, sql::CHANGE_ADD, params, |row| row.get(0))?;
    if let Some(seq) = seq {
        rows::run(tx.conn, sql::CHANGE_TRIM, [seq - CHANGES])?;
    }
    Ok(())
}
