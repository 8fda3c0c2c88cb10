//! The same rows: what A2's own tables and indexes hold of each operation, written by the statements
//! of `sql/sqlite` with values known beforehand. Nothing is looked up, nothing is checked; a claim
//! reads its event, since that is what it answers.

use rusqlite::{Connection, params};

use super::Rows;
use crate::bench::payload::{CONSUMER, HOLDER, LANE, PAYLOAD, SESSIONS, TYPE, session_name};

const SCHEMA: &str = include_str!("../../../../../sql/sqlite/schema/0001-initial.sql");
const EVENT_ADD: &str = include_str!("../../../../../sql/sqlite/event_add.sql");
const EVENT_GET: &str = include_str!("../../../../../sql/sqlite/event_get.sql");
const IDS_ADD: &str = include_str!("../../../../../sql/sqlite/ids_add.sql");
const TYPES_ADD: &str = include_str!("../../../../../sql/sqlite/types_add.sql");
const HEAD_ADD: &str = include_str!("../../../../../sql/sqlite/head_add.sql");
const HEAD_UPDATE: &str = include_str!("../../../../../sql/sqlite/head_update.sql");

const SESSION: &str = "INSERT INTO a2_sessions (name, sid) VALUES (?1, ?2)";
const NOW: i64 = 1_760_000_000_000;
/// Ids and types are recorded for so many events at once.
const BLOCK: i64 = 8;
/// Kind and status as the schema numbers them.
const LANE_KIND: i64 = 1;
const QUEUED: i64 = 0;
const LIVE: i64 = 1;
const DONE: i64 = 3;

/// See the module.
pub(crate) struct Same {
    sessions: Vec<Progress>,
}

/// Where a session stands, known without asking the database.
#[derive(Clone, Copy, Default)]
struct Progress {
    head: i64,
    done: i64,
}

impl Same {
    fn event(&mut self, c: &Connection, session: usize) -> rusqlite::Result<()> {
        let progress = &mut self.sessions[session];
        progress.head += 1;
        let (sid, head) = (session as i64 + 1, progress.head);
        // The lane's first unfinished event is its head, the others wait behind it.
        let status = if progress.done + 1 == head { LIVE } else { QUEUED };
        let id = format!("0198c2f4-7d1e-7000-8000-{head:012x}");
        let event = params![sid, head, id, TYPE, NOW, None::<&str>, PAYLOAD];
        c.prepare_cached(EVENT_ADD)?.execute(event)?;
        if head % BLOCK == 0 {
            let block = params![sid, 0, head - BLOCK, head];
            c.prepare_cached(IDS_ADD)?.execute(block)?;
            c.prepare_cached(TYPES_ADD)?.execute(block)?;
        }
        let head = params![sid, CONSUMER, LANE_KIND, LANE, head, 0, status];
        c.prepare_cached(HEAD_ADD)?.execute(head).map(|_| ())
    }
}

impl Rows for Same {
    const ONE_STATEMENT: bool = false;

    fn create(connection: &Connection) -> rusqlite::Result<Self> {
        connection.execute_batch(SCHEMA)?;
        for session in 0..SESSIONS {
            connection.execute(SESSION, params![session_name(session), session as i64 + 1])?;
        }
        Ok(Self { sessions: vec![Progress::default(); SESSIONS] })
    }

    fn append(&mut self, c: &Connection, session: usize, count: usize) -> rusqlite::Result<()> {
        (0..count).try_for_each(|_| self.event(c, session))
    }

    fn enqueue(&mut self, c: &Connection, session: usize) -> rusqlite::Result<()> {
        self.event(c, session)
    }

    fn claim(&mut self, c: &Connection, session: usize) -> rusqlite::Result<i64> {
        let (sid, index) = (session as i64 + 1, self.sessions[session].done + 1);
        c.prepare_cached(HEAD_UPDATE)?.execute(params![
            sid,
            CONSUMER,
            LANE_KIND,
            LANE,
            index,
            LIVE,
            1,
            NOW,
            NOW,
            HOLDER,
            NOW,
            0,
            None::<i64>,
            None::<i64>,
            None::<&str>,
            None::<i64>,
            None::<i64>,
            None::<i64>,
            None::<i64>,
            None::<i64>
        ])?;
        c.prepare_cached(EVENT_GET)?.query_row(params![sid, index], |row| {
            std::hint::black_box(row.get::<_, String>("payload")?);
            row.get("idx")
        })
    }

    fn complete(&mut self, c: &Connection, session: usize, index: i64) -> rusqlite::Result<()> {
        self.sessions[session].done = index;
        let sid = session as i64 + 1;
        c.prepare_cached(HEAD_UPDATE)?
            .execute(params![
                sid,
                CONSUMER,
                LANE_KIND,
                LANE,
                index,
                DONE,
                1,
                NOW,
                NOW,
                None::<&str>,
                None::<i64>,
                0,
                None::<i64>,
                None::<i64>,
                None::<&str>,
                None::<i64>,
                NOW,
                1,
                index,
                0
            ])
            .map(|_| ())
    }
}
