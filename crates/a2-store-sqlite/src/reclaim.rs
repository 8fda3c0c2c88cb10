//! Deleting what lies below a session's marker, in bounded steps.
//!
//! Rows of earlier lifetimes stand among those of the present one (a lane's below its newer ones), so
//! the cursors are gone through one by one. Nothing is ever added below a marker: how far a call got
//! is kept, and the next one goes on there.

use a2_core::engine::LogState;
use a2_core::{Reclaimed, Result, limits};
use rusqlite::params;

use crate::rows::{self, after_name, index_param};
use crate::statements as sql;
use crate::tx::{At, SessionTables};

/// Cursors and reducers that one call looks at.
const LOOKED_AT: usize = 1_024;

/// Where reclaim goes on.
#[derive(Debug, Default)]
struct Place {
    stage: i64,
    consumer: String,
    kind: i64,
    name: String,
}

const EVENTS: i64 = 0;
const IDS: i64 = 1;
const TYPES: i64 = 2;
const HEADS: i64 = 3;
const SNAPSHOTS: i64 = 4;
const TIMERS: i64 = 5;
const DONE: i64 = 6;

/// One step of reclaiming.
struct Step<'a, 't> {
    tables: &'a SessionTables<'t>,
    sid: i64,
    clear: i64,
    place: Place,
    /// Rows that may still be deleted.
    left: usize,
    /// Cursors and reducers that may still be looked at.
    looks: usize,
}

/// Deletes one batch.
pub(crate) fn reclaim(tables: &mut SessionTables<'_>) -> Result<Reclaimed> {
    let Some(At { sid, log: LogState { clear_index, .. } }) = tables.at()? else {
        return Ok(Reclaimed::new(0, true));
    };
    let clear = index_param(clear_index);
    let reclaimed: Option<i64> = tables.one(sql::SESSION_BY_SID, [sid], |row| row.get(3))?;
    if reclaimed == Some(clear) {
        return Ok(Reclaimed::new(0, true));
    }
    let place = tables.one(sql::RECLAIM_GET, [sid, clear], |row| {
        Ok(Place {
            stage: row.get(0)?,
            consumer: row.get(1)?,
            kind: row.get(2)?,
            name: row.get(3)?,
        })
    })?;
    let mut step = Step {
        tables,
        sid,
        clear,
        place: place.unwrap_or_default(),
        left: limits::RECLAIM_ROWS,
        looks: LOOKED_AT,
    };
    step.run()?;
    let Step { left, place, .. } = step;
    let done = place.stage == DONE;
    if done {
        tables.write(sql::RECLAIM_DONE, params![tables.session.as_str(), clear])?;
        tables.write(sql::RECLAIM_FORGET, [sid])?;
    } else {
        let params = params![sid, clear, place.stage, place.consumer, place.kind, place.name];
        tables.write(sql::RECLAIM_PUT, params)?;
    }
    Ok(Reclaimed::new((limits::RECLAIM_ROWS - left) as u64, done))
}

impl Step<'_, '_> {
    fn run(&mut self) -> Result<()> {
        while self.left > 0 && self.looks > 0 && self.place.stage != DONE {
            self.looks -= 1;
            let through = match self.place.stage {
                EVENTS => self.delete(sql::RECLAIM_EVENTS)?,
                IDS => self.delete(sql::RECLAIM_IDS)?,
                TYPES => self.delete(sql::RECLAIM_TYPES)?,
                HEADS => self.heads()?,
                SNAPSHOTS => self.snapshots()?,
                TIMERS => self.delete(sql::RECLAIM_TIMERS)?,
                _ => true,
            };
            if through {
                self.place = Place { stage: self.place.stage + 1, ..Place::default() };
            }
        }
        Ok(())
    }

    /// Counts what was deleted; answers whether that was all there is.
    fn count(&mut self, deleted: usize) -> bool {
        let all = deleted < self.left;
        self.left -= deleted.min(self.left);
        all
    }

    /// Deletes what the statement finds below the marker.
    fn delete(&mut self, sql: &str) -> Result<bool> {
        let params = params![self.sid, self.clear, rows::limit_param(self.left)];
        let deleted = self.tables.write(sql, params)?;
        Ok(self.count(deleted))
    }

    /// Deletes the old heads of the next cursor.
    fn heads(&mut self) -> Result<bool> {
        let Place { consumer, kind, name, .. } = &self.place;
        let params = params![self.sid, consumer, kind, name];
        let found = self.tables.one(sql::CURSOR_SEEK, params, |row| {
            let key: (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((key, row.get::<_, i64>(3)?))
        })?;
        let Some(((consumer, kind, name), first)) = found else { return Ok(true) };
        let mut all = true;
        if first <= self.clear {
            let limit = rows::limit_param(self.left);
            let params = params![self.sid, consumer, kind, name, self.clear, limit];
            let deleted = self.tables.write(sql::RECLAIM_HEADS, params)?;
            all = self.count(deleted);
        }
        let name = if all { after_name(&name) } else { name };
        self.place = Place { stage: HEADS, consumer, kind, name };
        Ok(false)
    }

    /// Deletes the old snapshots and pins of the next reducer.
    fn snapshots(&mut self) -> Result<bool> {
        let first = |sql| {
            self.tables.one(sql, params![self.sid, self.place.name], |row| row.get::<_, String>(0))
        };
        let next = first(sql::REDUCER_SEEK)?.into_iter().chain(first(sql::PINNER_SEEK)?).min();
        let Some(reducer) = next else { return Ok(true) };
        let mut all = true;
        for sql in [sql::RECLAIM_SNAPSHOTS, sql::RECLAIM_PINS] {
            if self.left == 0 {
                all = false;
                break;
            }
            let limit = rows::limit_param(self.left);
            let params = params![self.sid, reducer, self.clear, limit];
            let deleted = self.tables.write(sql, params)?;
            all &= self.count(deleted);
        }
        self.place.name = if all { after_name(&reducer) } else { reducer };
        Ok(false)
    }
}
