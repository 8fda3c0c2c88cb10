//! Connections: how one is opened and set up.
//!
//! Every file connection is in WAL mode and waits for other processes in short steps rather than in
//! SQLite's, which grow to a tenth of a second and let a busy neighbour win every time.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use a2_core::{Error, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::config::Synchronous;
use crate::error::{Place, is_locked};
use crate::rows::Sql;

/// Statements kept prepared by a connection: all there are.
const STATEMENTS: usize = 128;
/// Pages (of 4 KiB) after which a commit moves the WAL into the file.
const CHECKPOINT_PAGES: u32 = 1_000;
/// What a WAL that has grown is cut to when it starts again.
const WAL_BYTES: u32 = 32 * 1024 * 1024;
/// Page cache of the writing connection and of each reading one, in KiB.
const WRITER_CACHE_KIB: u32 = 16 * 1024;
const READER_CACHE_KIB: u32 = 4 * 1024;

/// Opens connections to one database.
#[derive(Debug, Clone)]
pub(crate) struct Opener {
    /// The file; none for a database in memory.
    path: Option<PathBuf>,
    name: Arc<str>,
    synchronous: Synchronous,
    timeout: Duration,
}

impl Opener {
    pub(crate) fn file(path: PathBuf, synchronous: Synchronous, timeout: Duration) -> Result<Self> {
        let name = path.to_string_lossy().into();
        // An absolute path is never taken for anything but a file, and stays the same file when
        // the process changes its folder.
        let path = std::path::absolute(&path)
            .map_err(|error| Error::invalid("path", format!("must be a path: {error}")))?;
        Ok(Self { path: Some(path), name, synchronous, timeout })
    }

    pub(crate) fn memory(timeout: Duration) -> Self {
        let name = "in memory".into();
        Self { path: None, name, synchronous: Synchronous::Normal, timeout }
    }

    pub(crate) fn is_memory(&self) -> bool {
        self.path.is_none()
    }

    /// The database's name in errors.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn place(&self, doing: &'static str) -> Place<'_> {
        Place { file: &self.name, doing, session: None }
    }

    /// A connection that writes; makes the file if need be.
    pub(crate) fn writer(&self) -> Result<Connection> {
        let fail = |error| self.place("open").error(error);
        let conn = self.connect(OpenFlags::SQLITE_OPEN_CREATE).map_err(fail)?;
        if conn.is_readonly(rusqlite::MAIN_DB).map_err(fail)? {
            return Err(Error::not_configured(format!(
                "{}: open: the file is read-only. The store must be able to write it and its folder",
                self.name
            )));
        }
        if self.path.is_some() {
            self.wal(&conn)?;
        }
        self.set_up(&conn, WRITER_CACHE_KIB).map_err(fail)?;
        Ok(conn)
    }

    /// A connection that only reads.
    pub(crate) fn reader(&self) -> Result<Connection> {
        let open = || {
            let conn = self.connect(OpenFlags::empty())?;
            self.set_up(&conn, READER_CACHE_KIB)?;
            conn.pragma_update(None, "query_only", true)?;
            Ok(conn)
        };
        open().map_err(|error| self.place("open to read").error(error))
    }

    fn connect(&self, more: OpenFlags) -> Sql<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let mut conn = match &self.path {
            Some(path) => Connection::open_with_flags(path, flags)?,
            None => Connection::open_in_memory_with_flags(flags)?,
        };
        let timeout = self.timeout;
        let mut since = Instant::now();
        conn.busy_handler(Some(move |count| {
            if count == 0 {
                since = Instant::now();
            }
            let waits = since.elapsed() < timeout;
            if waits {
                thread::sleep(pause(count));
            }
            waits
        }))?;
        Ok(conn)
    }

    /// Puts the file into WAL mode, which it then stays in.
    fn wal(&self, conn: &Connection) -> Result<()> {
        let until = Instant::now() + self.timeout;
        let mode = loop {
            let mode = conn.query_row("pragma journal_mode = wal", [], |row| row.get(0));
            match mode {
                // SQLite does not wait by itself here.
                Err(error) if is_locked(&error) && Instant::now() < until => {
                    thread::sleep(Duration::from_millis(2));
                }
                mode => break mode,
            }
        };
        let mode: String = mode.map_err(|error| self.place("switch to WAL").error(error))?;
        if mode == "wal" {
            return Ok(());
        }
        Err(Error::not_configured(format!(
            "{}: open: the journal mode stays {mode}: the file lies on a file system without shared \
             memory (a network's, say). Put it on a local one",
            self.name
        )))
    }

    fn set_up(&self, conn: &Connection, cache_kib: u32) -> Sql<()> {
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        // Otherwise the planner peeks at bound values, and a statement is compiled anew whenever it
        // is bound anew: measured, that is half of an operation's time.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let synchronous = match self.synchronous {
            Synchronous::Full => "full",
            Synchronous::Normal => "normal",
        };
        conn.execute_batch(&format!(
            "pragma synchronous = {synchronous};
             pragma wal_autocheckpoint = {CHECKPOINT_PAGES};
             pragma journal_size_limit = {WAL_BYTES};
             pragma mmap_size = 0;
             pragma temp_store = memory;
             pragma cache_size = -{cache_kib};"
        ))
    }
}

/// How long to sleep before looking again whether the lock is free.
fn pause(count: i32) -> Duration {
    match count {
        0..10 => Duration::from_micros(100),
        10..100 => Duration::from_micros(500),
        _ => Duration::from_millis(2),
    }
}
