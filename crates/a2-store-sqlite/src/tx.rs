//! One transaction, and one session's place in it.

use std::cell::Cell;

use a2_core::engine::LogState;
use a2_core::{Consumer, Result, SessionId};
use rusqlite::{Connection, Params, Row};

use crate::error::Place;
use crate::events::Tail;
use crate::rows::{self, Sql};
use crate::statements;

/// A transaction that is open on a connection.
pub(crate) struct Tx<'c> {
    pub(crate) conn: &'c Connection,
    file: &'c str,
    /// Whether the operation at hand has written anything.
    wrote: Cell<bool>,
    /// The first and the last `seq` of the events that were added.
    added: Cell<Option<(i64, i64)>>,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(conn: &'c Connection, file: &'c str) -> Self {
        Self { conn, file, wrote: Cell::new(false), added: Cell::new(None) }
    }

    /// An operation begins: what it writes from here on counts as its own.
    pub(crate) fn start_operation(&self) {
        self.wrote.set(false);
    }

    pub(crate) fn has_written(&self) -> bool {
        self.wrote.get()
    }

    pub(crate) fn writes(&self) {
        self.wrote.set(true);
    }

    pub(crate) fn added(&self) -> Option<(i64, i64)> {
        self.added.get()
    }

    /// An event was inserted.
    pub(crate) fn event_added(&self) {
        let seq = self.conn.last_insert_rowid();
        let first = self.added.get().map_or(seq, |(first, _)| first);
        self.added.set(Some((first, seq)));
    }

    /// Where a failure outside of any session happened.
    pub(crate) fn place(&self, doing: &'static str) -> Place<'_> {
        Place { file: self.file, doing, session: None }
    }

    /// A session's rows, for the operation `doing`.
    pub(crate) fn session<'t>(
        &'t self,
        session: &'t SessionId,
        doing: &'static str,
    ) -> SessionTables<'t> {
        SessionTables { tx: self, session, doing, loaded: None, live: None, tail: Tail::default() }
    }
}

/// A session in the current lifetime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub(crate) sid: i64,
    pub(crate) log: LogState,
}

impl At {
    pub(crate) fn life(&self) -> i64 {
        rows::index_param(self.log.clear_index)
    }
}

/// The rows of one session inside a transaction: what the engine works on.
pub(crate) struct SessionTables<'t> {
    pub(crate) tx: &'t Tx<'t>,
    pub(crate) session: &'t SessionId,
    doing: &'static str,
    /// Where the session stands, once read: none inside when it has no row yet.
    loaded: Option<Option<At>>,
    /// A consumer that is known to have a live head, so that it need not be looked up.
    pub(crate) live: Option<Consumer>,
    /// The events whose ids and types are not recorded yet.
    pub(crate) tail: Tail,
}

impl<'t> SessionTables<'t> {
    /// The driver's failure as the store's.
    pub(crate) fn fail(&self, error: rusqlite::Error) -> a2_core::Error {
        let place = Place { file: self.tx.file, doing: self.doing, session: Some(self.session) };
        place.error(error)
    }

    /// Where the session stands; none when it has no row.
    pub(crate) fn at(&mut self) -> Result<Option<At>> {
        if let Some(at) = self.loaded {
            return Ok(at);
        }
        let at = self.one(statements::SESSION_GET, [self.session.as_str()], |row| {
            let log = LogState { clear_index: rows::index(row, 1)?, head: rows::index(row, 2)? };
            Ok(At { sid: row.get(0)?, log })
        })?;
        self.loaded = Some(at);
        Ok(at)
    }

    /// Where the session stands; gives it a row when it has none.
    pub(crate) fn ensure(&mut self) -> Result<At> {
        if let Some(at) = self.at()? {
            return Ok(at);
        }
        self.tx.writes();
        let sid = self.one(statements::SESSION_ADD, [self.session.as_str()], |row| row.get(0))?;
        let sid = sid.ok_or_else(|| self.fail(rusqlite::Error::QueryReturnedNoRows))?;
        let at = At { sid, log: LogState::default() };
        self.loaded = Some(Some(at));
        Ok(at)
    }

    /// What is known of the session from elsewhere.
    pub(crate) fn set(&mut self, at: At) {
        self.loaded = Some(Some(at));
    }

    /// The first row of a statement.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Sql<T>,
    ) -> Result<Option<T>> {
        rows::one(self.tx.conn, sql, params, read).map_err(|error| self.fail(error))
    }

    /// Every row of a statement.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Sql<T>,
    ) -> Result<Vec<T>> {
        rows::all(self.tx.conn, sql, params, read).map_err(|error| self.fail(error))
    }

    /// Runs a statement that writes; answers how many rows.
    pub(crate) fn write(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.tx.writes();
        rows::run(self.tx.conn, sql, params).map_err(|error| self.fail(error))
    }
}
