//! Bare reads: a log's rows, and a snapshot with what follows it.

use anyhow::Result;
use rusqlite::{Connection, params};
use tempfile::TempDir;

use super::{Bare, Rows, open};
use crate::bench::measure::Cx;
use crate::bench::payload::{REDUCER, session_name};
use crate::bench::stores::Durability;

const SELECT: &str = "SELECT idx, id, type, at, payload FROM log
    WHERE session = ?1 AND idx > ?2 ORDER BY idx LIMIT ?3";
const SNAPSHOTS: &str = "
    CREATE TABLE snapshots (
        session TEXT NOT NULL, reducer TEXT NOT NULL, up_to INTEGER NOT NULL, state TEXT NOT NULL,
        PRIMARY KEY (session, reducer, up_to)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE pins (
        session TEXT NOT NULL, head INTEGER NOT NULL, reducer TEXT NOT NULL, up_to INTEGER NOT NULL,
        PRIMARY KEY (session, head, reducer, up_to)
    ) STRICT, WITHOUT ROWID;
";
const LATEST: &str = "SELECT up_to, state FROM snapshots
    WHERE session = ?1 AND reducer = ?2 ORDER BY up_to DESC LIMIT 1";
const PUT: &str = "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2, ?3, ?4)";
const PIN: &str = "INSERT OR IGNORE INTO pins VALUES (?1, ?2, ?3, ?4)";

/// One session with a filled log.
pub(crate) struct Select {
    connection: Connection,
    session: String,
    _folder: TempDir,
}

impl Select {
    /// A session of `events` events, with a snapshot at `snapshot`.
    pub(crate) fn filled(cx: &Cx, events: usize, snapshot: Option<(i64, &str)>) -> Result<Self> {
        let folder = cx.folder()?;
        let connection = open(folder.path(), Durability::Normal)?;
        let mut rows = Bare::create(&connection)?;
        connection.execute_batch(SNAPSHOTS)?;
        let transaction = connection.unchecked_transaction()?;
        rows.append(&connection, 0, events)?;
        if let Some((index, state)) = snapshot {
            let key = params![session_name(0), REDUCER, index, state];
            connection.execute(PUT, key)?;
        }
        transaction.commit()?;
        Ok(Self { connection, session: session_name(0), _folder: folder })
    }

    /// Syncs as asked from now on.
    pub(crate) fn durability(self, durability: Durability) -> Result<Self> {
        self.connection.pragma_update(None, "synchronous", durability.name())?;
        Ok(self)
    }
}

/// Reads up to `limit` rows after `after` as values that the caller keeps; gives how many.
pub(crate) fn scan(select: &Select, after: i64, limit: usize) -> Result<usize> {
    let mut statement = select.connection.prepare_cached(SELECT)?;
    let limit = i64::try_from(limit)?;
    let rows = statement.query_map(params![select.session, after, limit], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, String>(2)?,
            row.get::<_, i64>(3)?,
            row.get::<_, String>(4)?,
        ))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(std::hint::black_box(rows).len())
}

/// Reads the whole log in pages; gives how many rows it has.
pub(crate) fn pages(select: &Select, page: usize) -> Result<u64> {
    let mut read = 0;
    loop {
        let found = scan(select, i64::try_from(read)?, page)?;
        read += found;
        if found < page {
            return Ok(read as u64);
        }
    }
}

/// Reads the latest snapshot and the events after it.
pub(crate) fn state(select: &Select) -> Result<usize> {
    let mut latest = select.connection.prepare_cached(LATEST)?;
    let (up_to, state) = latest.query_row(params![select.session, REDUCER], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    std::hint::black_box(state);
    scan(select, up_to, 10_000)
}

/// Writes a snapshot at `index` and a pin of it.
pub(crate) fn write_snapshots(select: &Select, index: i64, state: &str) -> Result<()> {
    let c = &select.connection;
    c.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    c.prepare_cached(PUT)?.execute(params![select.session, REDUCER, index, state])?;
    c.prepare_cached(PIN)?.execute(params![select.session, 1, REDUCER, index])?;
    c.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}
