//! The bare rows: an event is one row of a log table, a job one row of a queue table with one index
//! of those that are ready.

use rusqlite::{Connection, params};

use super::Rows;
use crate::bench::payload::{HOLDER, PAYLOAD, SESSIONS, TYPE, session_name};

const TABLES: &str = "
    CREATE TABLE log (
        session TEXT NOT NULL, idx INTEGER NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL,
        at INTEGER NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (session, idx)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, state INTEGER NOT NULL, payload TEXT NOT NULL,
        holder TEXT, expires INTEGER, attempt INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX jobs_ready ON jobs (session, id) WHERE state = 0;
";
const APPEND: &str = "INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const ENQUEUE: &str = "INSERT INTO jobs (session, state, payload, attempt) VALUES (?1, 0, ?2, 0)";
const CLAIM: &str = "UPDATE jobs SET state = 1, holder = ?2, expires = ?3, attempt = attempt + 1
    WHERE id = (SELECT id FROM jobs WHERE state = 0 AND session = ?1 ORDER BY id LIMIT 1)
    RETURNING id, payload";
const COMPLETE: &str = "UPDATE jobs SET state = 2, holder = NULL, expires = NULL WHERE id = ?1";
const NOW: i64 = 1_760_000_000_000;

/// See the module.
pub(crate) struct Bare {
    sessions: Vec<String>,
    heads: Vec<i64>,
}

impl Rows for Bare {
    const ONE_STATEMENT: bool = true;

    fn create(connection: &Connection) -> rusqlite::Result<Self> {
        connection.execute_batch(TABLES)?;
        Ok(Self { sessions: (0..SESSIONS).map(session_name).collect(), heads: vec![0; SESSIONS] })
    }

    fn append(&mut self, c: &Connection, session: usize, count: usize) -> rusqlite::Result<()> {
        let mut insert = c.prepare_cached(APPEND)?;
        for _ in 0..count {
            self.heads[session] += 1;
            let (name, head) = (&self.sessions[session], self.heads[session]);
            let id = format!("0198c2f4-7d1e-7000-8000-{head:012x}");
            insert.execute(params![name, head, id, TYPE, NOW, PAYLOAD])?;
        }
        Ok(())
    }

    fn enqueue(&mut self, c: &Connection, session: usize) -> rusqlite::Result<()> {
        c.prepare_cached(ENQUEUE)?.execute(params![self.sessions[session], PAYLOAD]).map(|_| ())
    }

    fn claim(&mut self, c: &Connection, session: usize) -> rusqlite::Result<i64> {
        let mut claim = c.prepare_cached(CLAIM)?;
        claim.query_row(params![self.sessions[session], HOLDER, NOW], |row| {
            row.get::<_, String>(1)?;
            row.get(0)
        })
    }

    fn complete(&mut self, c: &Connection, _: usize, index: i64) -> rusqlite::Result<()> {
        c.prepare_cached(COMPLETE)?.execute([index]).map(|_| ())
    }
}
