//! What SQLite itself can do: the same work by prepared statements on a bare connection, alone and
//! behind a writer that commits in groups.

mod bare;
mod grouped;
mod lone;
mod reads;
mod same;

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::Write;
use crate::bench::stores::Durability;

pub(crate) use bare::Bare;
pub(crate) use grouped::Grouped;
pub(crate) use lone::Lone;
pub(crate) use reads::{Select, pages, scan, state, write_snapshots};
pub(crate) use same::Same;

/// The rows of one layout, by prepared statements. Sessions are numbers; heads are counted here, not
/// read: nothing is checked.
pub(crate) trait Rows: Send + 'static {
    /// Whether every operation is one statement, which commits by itself.
    const ONE_STATEMENT: bool;

    /// Makes the tables.
    fn create(connection: &Connection) -> rusqlite::Result<Self>
    where
        Self: Sized;

    /// Appends `count` events.
    fn append(&mut self, c: &Connection, session: usize, count: usize) -> rusqlite::Result<()>;

    /// Appends one event that is to be worked on.
    fn enqueue(&mut self, c: &Connection, session: usize) -> rusqlite::Result<()>;

    /// Claims the session's next one.
    fn claim(&mut self, c: &Connection, session: usize) -> rusqlite::Result<i64>;

    /// Completes it.
    fn complete(&mut self, c: &Connection, session: usize, index: i64) -> rusqlite::Result<()>;
}

impl Write {
    /// Does it; a claim gives the index, all others 0.
    pub(crate) fn run<R: Rows>(self, rows: &mut R, c: &Connection) -> rusqlite::Result<i64> {
        match self {
            Self::Append { session, count } => rows.append(c, session, count).map(|()| 0),
            Self::Enqueue { session } => rows.enqueue(c, session).map(|()| 0),
            Self::Claim { session } => rows.claim(c, session),
            Self::Complete { session, index } => rows.complete(c, session, index).map(|()| 0),
        }
    }

    /// Whether one statement of `R` does it.
    fn is_one_statement<R: Rows>(self) -> bool {
        R::ONE_STATEMENT && !matches!(self, Self::Append { count: 2.., .. })
    }
}

/// A connection with the durability asked for and SQLite's other defaults for a log.
pub(crate) fn open(folder: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let connection = Connection::open(folder.join("limit.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", durability.name())?;
    connection.set_prepared_statement_cache_capacity(128);
    // As the store does: bundled SQLite otherwise compiles statements anew at each binding, and the
    // limit would be too easy.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 1_000)?;
    connection.pragma_update(None, "cache_size", -16 * 1_024)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}
