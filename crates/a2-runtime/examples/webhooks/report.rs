//! The result, read back from the store: nothing in it was counted by this process, so a run that
//! was killed and continued reports what one that never stopped does.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use a2_runtime::{Events as _, Runtime};
use a2_store_sqlite::{CursorKey, Event, Index, RedriveAction, SessionId, Store, StoreExt as _};
use anyhow::Result;
use comfy_table::{Table, presets};
use futures_util::TryStreamExt as _;
use serde_json::Value;

use crate::board::{self, BOARD, Board};
use crate::handlers::SUMMARY;
use crate::operator::{OPERATIONS, Operation};

type Row = Vec<String>;

/// The tables' rows. Columns that begin with `~` depend on kills (how often something was
/// tried, how deliveries and what they led to are interleaved): JSON leaves them out.
#[derive(Default)]
pub(crate) struct Report {
    logs: Vec<Row>,
    counts: Vec<Row>,
    threads: Vec<Row>,
    cursors: Vec<Row>,
    dead_letters: Vec<Row>,
    work: BTreeMap<String, Work>,
}

/// What a consumer did, in all sessions together.
#[derive(Default)]
struct Work {
    handled: u64,
    retried: u64,
    returned: u64,
    redriven: u64,
    dead: u64,
}

macro_rules! row {
    ($($cell:expr),+ $(,)?) => { vec![$($cell.to_string()),+] };
}

/// Reads everything there is to report.
pub(crate) async fn of(runtime: &Runtime) -> Result<Report> {
    let db = runtime.store();
    let mut report = Report::default();
    let sessions: BTreeSet<_> = db.all_sessions().map_ok(|info| info.session).try_collect().await?;
    for session in sessions {
        let log: Vec<Event> = db.read_all(&session, Index::ZERO).try_collect().await?;
        if session == "a2.runtime" {
            // The runtime's own notes.
            continue;
        }
        if session == OPERATIONS {
            report.read_operations(&log)?;
        } else {
            report.read_log(&session, &log);
            report.read_board(&session, runtime.session(session.clone())?.state(&BOARD).await?);
            report.read_cursors(db, &session, &log).await?;
        }
    }
    Ok(report)
}

impl Report {
    fn work_of(&mut self, consumer: impl fmt::Display) -> &mut Work {
        self.work.entry(consumer.to_string()).or_default()
    }

    fn read_operations(&mut self, log: &[Event]) -> Result<()> {
        for event in log {
            let Operation::Redriven(r) = Operation::decode(&event.event_type, &event.payload)?
            else {
                continue;
            };
            self.work_of(&r.consumer).redriven += 1;
            let done = match r.action {
                RedriveAction::Retry => "redriven: retry",
                RedriveAction::Skip => "redriven: skip",
            };
            self.dead_letters.push(row![r.repository, r.consumer, r.delivery, r.error, done]);
        }
        Ok(())
    }

    /// An event's cause says which attempt on which head returned it.
    fn read_log(&mut self, session: &SessionId, log: &[Event]) {
        let (mut heads, mut deliveries) = (HashSet::new(), 0);
        for event in log {
            let Some(cause) = &event.cause else {
                deliveries += 1;
                continue;
            };
            let first = heads.insert(&cause.head);
            let work = self.work_of(&cause.head.consumer);
            work.returned += 1;
            work.handled += u64::from(first);
            work.retried += u64::from(first && cause.attempt > 1);
        }
        self.logs.push(row![session, log.len(), deliveries, log.len() - deliveries]);
    }

    fn read_board(&mut self, session: &SessionId, board: Board) {
        for (event_type, count) in board.counts {
            self.counts.push(row![session, event_type, count]);
        }
        for (name, is) in board.threads {
            self.threads.push(row![session, name, is.state, is.deliveries, is.title]);
        }
    }

    async fn read_cursors(
        &mut self,
        db: &Arc<dyn Store>,
        session: &SessionId,
        log: &[Event],
    ) -> Result<()> {
        for cursor in db.all_cursors(session).await? {
            let key = match &cursor.key {
                CursorKey::Event => "an event".to_owned(),
                CursorKey::Lane(lane) => format!("lane {lane}"),
                CursorKey::Log(_) => {
                    // It returns nothing: its position says how far it came.
                    let done = log.iter().filter(|event| event.index <= cursor.position);
                    let handled = done.filter(|event| board::counts(&event.event_type)).count();
                    self.work_of(SUMMARY).handled += handled as u64;
                    "log".to_owned()
                }
            };
            let state = if cursor.head.is_some() { "has work" } else { "idle" };
            self.cursors.push(row![session, cursor.consumer, key, state, cursor.position]);
        }
        for dead in db.all_dead_letters(session).await? {
            let (head, error) = (dead.head, dead.state.last_error.unwrap_or_default());
            self.work_of(&head.consumer).dead += 1;
            self.dead_letters.push(row![session, head.consumer, dead.event.id, error, "dead"]);
        }
        Ok(())
    }

    fn sections(self) -> [(&'static str, &'static str, Vec<Row>); 6] {
        let work = self.work.into_iter().map(|(consumer, w)| {
            let dead_lettered = w.redriven + w.dead;
            // Only returned events tell by which attempt.
            let retried = if w.returned > 0 { w.retried.to_string() } else { "?".to_owned() };
            row![consumer, w.handled, retried, w.returned, dead_lettered, w.redriven, w.dead]
        });
        let columns = "consumer|handled|~retried|events returned|dead-lettered|redriven|dead now";
        [
            ("Logs", "session|log head|deliveries|returned events", self.logs),
            ("Summary", "session|type|count", self.counts),
            ("Threads", "session|thread|state|deliveries|title", self.threads),
            ("Cursors", "session|consumer|cursor|state|~position", self.cursors),
            ("Dead letters", "session|consumer|delivery|error|now", self.dead_letters),
            ("Consumers", columns, work.collect()),
        ]
    }

    pub(crate) fn json(self) -> String {
        let sections = self.sections().map(|(title, columns, rows)| {
            let object = |row: Row| -> Value {
                let cells = columns.split('|').zip(row);
                cells.filter(|(column, _)| !column.starts_with('~')).collect()
            };
            (title, rows.into_iter().map(object).collect::<Value>())
        });
        format!("{:#}", Value::from_iter(sections))
    }

    pub(crate) fn tables(self) -> String {
        let sections = self.sections().map(|(title, columns, rows)| {
            let mut table = Table::new();
            table.load_style(presets::UTF8_FULL_CONDENSED).add_rows(rows);
            table.set_header(columns.split('|').map(|column| column.trim_start_matches('~')));
            format!("{title}\n{table}")
        });
        sections.join("\n\n")
    }
}
