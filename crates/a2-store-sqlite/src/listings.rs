//! The listings of a session's cursors.
//!
//! A lane has no record of its own: its rows are, in the order of their indexes, done ones, then at
//! most one head, then queued ones. Where the head is, is found by bisection, and the next lane by a
//! seek, so that a page costs its own size and not the queues'.

use a2_core::engine::{HeadStatus, LaneRow, ListFrom, LogRow};
use a2_core::{Consumer, Index, Lane, LogName, Result};
use rusqlite::params;

use crate::rows::{self, LANE, LOG, after_name, index_param, limit_param};
use crate::statements as sql;
use crate::tx::{At, SessionTables};

/// The least (consumer, name) of a listing.
fn bound<N: AsRef<str>>(from: ListFrom<'_, N>) -> (String, String) {
    match from {
        ListFrom::Start => (String::new(), String::new()),
        ListFrom::Consumer(consumer) => (consumer.as_str().to_owned(), String::new()),
        ListFrom::After(consumer, name) => {
            (consumer.as_str().to_owned(), after_name(name.as_ref()))
        }
        ListFrom::PastConsumer(consumer) => (after_name(consumer.as_str()), String::new()),
    }
}

impl SessionTables<'_> {
    /// The first consumer at or after `from` with a head that `sql` looks for.
    pub(crate) fn first_consumer(&self, sql: &str, at: At, from: &str) -> Result<Option<Consumer>> {
        self.one(sql, params![at.sid, at.life(), from], |row| rows::name(row, 0))
    }

    /// A lane's first row after an index.
    pub(crate) fn lane_row_after(
        &mut self,
        consumer: &Consumer,
        lane: &Lane,
        after: Index,
    ) -> Result<Option<(Index, HeadStatus)>> {
        let Some(at) = self.at()? else { return Ok(None) };
        let params = params![at.sid, consumer.as_str(), lane.as_str(), index_param(after)];
        self.one(sql::LANE_NEXT, params, |row| Ok((rows::index(row, 0)?, rows::status(row, 1)?)))
    }

    pub(crate) fn list_lanes(
        &mut self,
        from: ListFrom<'_, Lane>,
        limit: usize,
    ) -> Result<Vec<LaneRow>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let (mut consumer, mut name) = bound(from);
        let mut lanes = Vec::new();
        while lanes.len() < limit {
            let params = params![at.sid, consumer, LANE, name];
            let found = self.one(sql::CURSOR_SEEK, params, |row| {
                let kind: i64 = row.get(1)?;
                let lane: Option<Lane> =
                    if kind == LANE { Some(rows::name(row, 2)?) } else { None };
                Ok((rows::name::<Consumer>(row, 0)?, kind, lane))
            })?;
            let Some((found, kind, lane)) = found else { break };
            // Past this cursor, past this consumer's logs, or to this consumer's lanes.
            (consumer, name) = match &lane {
                Some(lane) => (found.as_str().to_owned(), after_name(lane.as_str())),
                None if kind == LOG => (after_name(found.as_str()), String::new()),
                None => (found.as_str().to_owned(), String::new()),
            };
            if let Some(lane) = lane
                && let Some(row) = self.lane(at, found, lane)?
            {
                lanes.push(row);
            }
        }
        Ok(lanes)
    }

    /// A lane, none when it has no row in this lifetime.
    fn lane(&mut self, at: At, consumer: Consumer, lane: Lane) -> Result<Option<LaneRow>> {
        let params = params![at.sid, consumer.as_str(), lane.as_str()];
        let last = self
            .one(sql::LANE_LAST, params, |row| Ok((rows::index(row, 0)?, rows::status(row, 1)?)))?;
        let clear = at.log.clear_index;
        let Some((last, status)) = last.filter(|(index, _)| *index > clear) else {
            return Ok(None);
        };
        let (position, head) = if status == HeadStatus::Done {
            (Some(last), None)
        } else {
            self.lane_boundary(&consumer, &lane, clear, last)?
        };
        Ok(Some(LaneRow { consumer, lane, position, head }))
    }

    /// The last done row above `clear` and the first that is not done. The last row is not.
    fn lane_boundary(
        &mut self,
        consumer: &Consumer,
        lane: &Lane,
        clear: Index,
        last: Index,
    ) -> Result<(Option<Index>, Option<Index>)> {
        // Every row up to `done` is done, the first one after `open` is not.
        let (mut done, mut open) = (clear, last.previous());
        let mut head = last;
        while done < open {
            let middle = done.get() + (open.get() - done.get()) / 2;
            let middle = Index::new(middle)?;
            match self.lane_row_after(consumer, lane, middle)? {
                Some((index, HeadStatus::Done)) => done = index,
                Some((index, _)) => (open, head) = (middle, index),
                None => break,
            }
        }
        Ok(((done > clear).then_some(done), Some(head)))
    }

    pub(crate) fn list_logs(
        &mut self,
        from: ListFrom<'_, LogName>,
        limit: usize,
    ) -> Result<Vec<(Consumer, LogName, LogRow)>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let (consumer, name) = bound(from);
        let params = params![at.sid, consumer, name, limit_param(limit)];
        self.all(sql::LOGS_PAGE, params, |row| {
            Ok((rows::name(row, 0)?, rows::name(row, 1)?, rows::log(row, 2)?))
        })
    }

    pub(crate) fn list_event_heads(
        &mut self,
        from: ListFrom<'_, Index>,
        limit: usize,
    ) -> Result<Vec<(Consumer, Index)>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let (mut from, mut after) = match from {
            ListFrom::Start => (String::new(), Index::ZERO),
            ListFrom::Consumer(consumer) => (consumer.as_str().to_owned(), Index::ZERO),
            ListFrom::After(consumer, index) => (consumer.as_str().to_owned(), *index),
            ListFrom::PastConsumer(consumer) => (after_name(consumer.as_str()), Index::ZERO),
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let live = self.first_consumer(sql::LIVE_CONSUMER, at, &from)?;
            let dead = self.first_consumer(sql::DEAD_CONSUMER, at, &from)?;
            let Some(consumer) = live.into_iter().chain(dead).min() else { break };
            let past = if consumer.as_str() == from { after } else { Index::ZERO };
            let left = limit - found.len();
            let mut indexes = Vec::new();
            for sql in [sql::EVENTS_FREE, sql::EVENTS_HELD, sql::EVENTS_DEAD] {
                let (name, limit) = (consumer.as_str(), limit_param(left));
                let params = params![at.sid, at.life(), name, index_param(past), limit];
                indexes.extend(self.all(sql, params, |row| rows::index(row, 0))?);
            }
            indexes.sort_unstable();
            (from, after) = (after_name(consumer.as_str()), Index::ZERO);
            found.extend(indexes.into_iter().take(left).map(|index| (consumer.clone(), index)));
        }
        Ok(found)
    }
}
