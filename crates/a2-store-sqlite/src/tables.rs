//! The engine's tables over SQLite.
//!
//! Every method is one statement that seeks a key, or a few of them. A session without a row has
//! nothing to read, and gets its row with the first write.

use a2_core::engine::{HeadRow, HeadStatus, LaneRow, ListFrom, LogRow, LogState, Tables, TimerRow};
use a2_core::{
    Consumer, Event, EventId, EventType, HeadRef, Index, Json, Lane, LogName, ReducerName, Result,
    SessionId, Snapshot, TimerKey, Timestamp,
};
use rusqlite::{Row, params};

use crate::rows::{
    self, count_param, index_param, kind_param, limit_param, status_param, time_param,
};
use crate::statements as sql;
use crate::tx::SessionTables;

impl SessionTables<'_> {
    /// Runs a statement about one head.
    fn write_head(&mut self, sql: &str, sid: i64, at: &HeadRef) -> Result<()> {
        self.write(
            sql,
            params![
                sid,
                at.consumer.as_str(),
                kind_param(&at.cursor),
                at.cursor.name(),
                index_param(at.index)
            ],
        )?;
        Ok(())
    }
}

fn head_ref(consumer: &Consumer, row: &Row<'_>, first: usize) -> rows::Sql<HeadRef> {
    let key = rows::cursor_key(row, first + 1, first + 2)?;
    Ok(HeadRef::new(consumer.clone(), key, rows::index(row, first)?))
}

/// A head's place among its consumer's: index, kind, name; below every other for none.
fn spot(after: Option<&HeadRef>) -> (i64, i64, &str) {
    after.map_or((-1, -1, ""), |at| {
        (index_param(at.index), kind_param(&at.cursor), at.cursor.name())
    })
}

impl Tables for SessionTables<'_> {
    fn session(&self) -> &SessionId {
        self.session
    }

    fn log_state(&mut self) -> Result<LogState> {
        Ok(self.at()?.map(|at| at.log).unwrap_or_default())
    }

    fn owner(&mut self, id: &EventId) -> Result<Option<Index>> {
        self.owner_of(id)
    }

    fn add_event(&mut self, event: &Event) -> Result<()> {
        let at = self.ensure()?;
        self.insert_event(at, event)
    }

    fn event(&mut self, index: Index) -> Result<Option<Event>> {
        let Some(at) = self.at()? else { return Ok(None) };
        let params = params![at.sid, index_param(index)];
        self.one(sql::EVENT_GET, params, |row| rows::event(row, self.session))
    }

    fn events(
        &mut self,
        after: Index,
        through: Index,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<Event>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let read = || {
            let mut statement = self.tx.conn.prepare_cached(sql::EVENT_RANGE)?;
            let params =
                params![at.sid, index_param(after), index_param(through), limit_param(limit)];
            let mut found = statement.query(params)?;
            let mut events = Vec::new();
            let mut bytes = 0;
            while let Some(row) = found.next()? {
                let event = rows::event(row, self.session)?;
                bytes += event.payload.byte_len();
                events.push(event);
                if bytes > max_bytes {
                    break;
                }
            }
            Ok(events)
        };
        read().map_err(|error| self.fail(error))
    }

    fn next_of_types(&mut self, types: &[EventType], after: Index) -> Result<Option<Index>> {
        self.first_of_types(types, after)
    }

    fn head(&mut self, at: &HeadRef) -> Result<Option<HeadRow>> {
        let Some(session) = self.at()? else { return Ok(None) };
        if at.index <= session.log.clear_index {
            return Ok(None);
        }
        let params = params![
            session.sid,
            at.consumer.as_str(),
            kind_param(&at.cursor),
            at.cursor.name(),
            index_param(at.index)
        ];
        self.one(sql::HEAD_GET, params, rows::head)
    }

    fn add_head(&mut self, at: &HeadRef, status: HeadStatus) -> Result<()> {
        let session = self.ensure()?;
        let params = params![
            session.sid,
            at.consumer.as_str(),
            kind_param(&at.cursor),
            at.cursor.name(),
            index_param(at.index),
            session.life(),
            status_param(status)
        ];
        self.write(sql::HEAD_ADD, params)?;
        if status == HeadStatus::Live {
            self.live = Some(at.consumer.clone());
        }
        Ok(())
    }

    fn update_head(&mut self, at: &HeadRef, before: &HeadRow, after: &HeadRow) -> Result<()> {
        let sid = self.ensure()?.sid;
        self.live = (after.status == HeadStatus::Live).then(|| at.consumer.clone());
        let (kind, index) = (kind_param(&at.cursor), index_param(at.index));
        let (consumer, name) = (at.consumer.as_str(), at.cursor.name());
        if before.state == after.state && before.done == after.done {
            let params = params![sid, consumer, kind, name, index, status_param(after.status)];
            self.write(sql::HEAD_STATUS, params)?;
            return Ok(());
        }
        let state = &after.state;
        let params = params![
            sid,
            consumer,
            kind,
            name,
            index,
            status_param(after.status),
            count_param(state.attempt_count),
            time_param(state.first_claimed_at),
            time_param(state.last_claimed_at),
            state.claim_holder.as_ref().map(|holder| holder.as_str()),
            time_param(state.claim_expires_at),
            count_param(state.failure_count),
            time_param(state.last_failed_at),
            state.last_failed_attempt.map(count_param),
            state.last_error,
            time_param(state.failed_at),
            time_param(after.done.map(|done| done.at)),
            after.done.and_then(|done| done.attempt).map(count_param),
            after.done.map(|done| index_param(done.returned_after)),
            after.done.map(|done| count_param(done.returned)),
        ];
        self.write(sql::HEAD_UPDATE, params)?;
        Ok(())
    }

    fn remove_head(&mut self, at: &HeadRef, _before: &HeadRow) -> Result<()> {
        let sid = self.ensure()?.sid;
        self.live = None;
        self.write_head(sql::HEAD_REMOVE, sid, at)
    }

    fn lane_is_idle(&mut self, consumer: &Consumer, lane: &Lane) -> Result<bool> {
        let Some(at) = self.at()? else { return Ok(true) };
        let params = params![at.sid, consumer.as_str(), lane.as_str()];
        let last = self
            .one(sql::LANE_LAST, params, |row| Ok((rows::index(row, 0)?, rows::status(row, 1)?)))?;
        Ok(last.is_none_or(|(index, status)| {
            index <= at.log.clear_index || status == HeadStatus::Done
        }))
    }

    fn lane_next(
        &mut self,
        consumer: &Consumer,
        lane: &Lane,
        after: Index,
    ) -> Result<Option<Index>> {
        Ok(self.lane_row_after(consumer, lane, after)?.map(|(index, _)| index))
    }

    fn log(&mut self, consumer: &Consumer, name: &LogName) -> Result<Option<LogRow>> {
        let Some(at) = self.at()? else { return Ok(None) };
        let params = params![at.sid, consumer.as_str(), name.as_str()];
        self.one(sql::LOG_GET, params, |row| rows::log(row, 0))
    }

    fn put_log(&mut self, consumer: &Consumer, name: &LogName, row: &LogRow) -> Result<()> {
        let sid = self.ensure()?.sid;
        let last = row.last;
        let params = params![
            sid,
            consumer.as_str(),
            name.as_str(),
            index_param(row.position),
            row.head.map(index_param),
            rows::types_param(&row.types),
            last.map(|(index, _)| index_param(index)),
            time_param(last.map(|(_, done)| done.at)),
            last.and_then(|(_, done)| done.attempt).map(count_param),
            last.map(|(_, done)| index_param(done.returned_after)),
            last.map(|(_, done)| count_param(done.returned)),
        ];
        self.write(sql::LOG_PUT, params)?;
        Ok(())
    }

    fn live_consumers(&mut self) -> Result<Vec<Consumer>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let mut found: Vec<Consumer> = Vec::new();
        let mut from = String::new();
        while let Some(consumer) = self.first_consumer(sql::LIVE_CONSUMER, at, &from)? {
            from = rows::after_name(consumer.as_str());
            found.push(consumer);
        }
        Ok(found)
    }

    fn has_live(&mut self, consumer: Option<&Consumer>) -> Result<bool> {
        if self.live.is_some() && (consumer.is_none() || self.live.as_ref() == consumer) {
            return Ok(true);
        }
        let Some(at) = self.at()? else { return Ok(false) };
        let Some(consumer) = consumer else {
            return Ok(self.first_consumer(sql::LIVE_CONSUMER, at, "")?.is_some());
        };
        let params = params![at.sid, at.life(), consumer.as_str()];
        Ok(self.one(sql::LIVE_OF, params, |_| Ok(()))?.is_some())
    }

    fn free_heads(
        &mut self,
        consumer: &Consumer,
        after: Option<&HeadRef>,
        through: Index,
        limit: usize,
    ) -> Result<Vec<HeadRef>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let (index, kind, name) = spot(after);
        let through = index_param(through);
        let consumer_name = consumer.as_str();
        let limit = limit_param(limit);
        let params = params![at.sid, at.life(), consumer_name, index, kind, name, through, limit];
        self.all(sql::HEADS_FREE, params, |row| head_ref(consumer, row, 0))
    }

    fn held_heads(
        &mut self,
        consumer: &Consumer,
        after: Option<&(Timestamp, HeadRef)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, HeadRef)>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let end = after.map_or(i64::MIN, |(end, _)| end.as_millis());
        let (index, kind, name) = spot(after.map(|(_, at)| at));
        let params = params![
            at.sid,
            at.life(),
            consumer.as_str(),
            end,
            index,
            kind,
            name,
            until.as_millis(),
            limit_param(limit)
        ];
        self.all(sql::HEADS_HELD, params, |row| {
            Ok((rows::time(row, 0)?, head_ref(consumer, row, 1)?))
        })
    }

    fn dead_heads(&mut self, after: Option<&HeadRef>, limit: usize) -> Result<Vec<HeadRef>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let mut found: Vec<HeadRef> = Vec::new();
        let mut from = String::new();
        while let Some(consumer) = self.first_consumer(sql::DEAD_CONSUMER, at, &from)? {
            from = rows::after_name(consumer.as_str());
            // Consumers stand between index and kind in the order of heads.
            let (index, kind, name) = match after {
                None => spot(None),
                Some(last) if consumer == last.consumer => spot(Some(last)),
                Some(last) if consumer < last.consumer => (index_param(last.index) + 1, -1, ""),
                Some(last) => (index_param(last.index), -1, ""),
            };
            let limit = limit_param(limit);
            let params = params![at.sid, at.life(), consumer.as_str(), index, kind, name, limit];
            found.extend(self.all(sql::HEADS_DEAD, params, |row| head_ref(&consumer, row, 0))?);
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }

    fn lanes(&mut self, from: ListFrom<'_, Lane>, limit: usize) -> Result<Vec<LaneRow>> {
        self.list_lanes(from, limit)
    }

    fn logs(
        &mut self,
        from: ListFrom<'_, LogName>,
        limit: usize,
    ) -> Result<Vec<(Consumer, LogName, LogRow)>> {
        self.list_logs(from, limit)
    }

    fn event_heads(
        &mut self,
        from: ListFrom<'_, Index>,
        limit: usize,
    ) -> Result<Vec<(Consumer, Index)>> {
        self.list_event_heads(from, limit)
    }

    fn snapshot(&mut self, reducer: &ReducerName, through: Index) -> Result<Option<Snapshot>> {
        let Some(at) = self.at()? else { return Ok(None) };
        let params = params![at.sid, reducer.as_str(), at.life(), index_param(through)];
        self.one(sql::SNAPSHOT_GET, params, |row| {
            Ok(Snapshot::new(rows::index(row, 0)?, Json::from_stored(rows::text(row, 1)?)))
        })
    }

    fn latest_snapshot(&mut self, reducer: &ReducerName) -> Result<Option<Index>> {
        let Some(at) = self.at()? else { return Ok(None) };
        let params = params![at.sid, reducer.as_str(), at.life()];
        self.one(sql::SNAPSHOT_LATEST, params, |row| rows::index(row, 0))
    }

    fn put_snapshot(&mut self, reducer: &ReducerName, index: Index, state: &Json) -> Result<()> {
        let sid = self.ensure()?.sid;
        let params = params![sid, reducer.as_str(), index_param(index), state.as_str()];
        self.write(sql::SNAPSHOT_PUT, params)?;
        Ok(())
    }

    fn remove_snapshot(&mut self, reducer: &ReducerName, index: Index) -> Result<()> {
        let sid = self.ensure()?.sid;
        let params = params![sid, reducer.as_str(), index_param(index)];
        self.write(sql::SNAPSHOT_REMOVE, params)?;
        Ok(())
    }

    fn is_pinned(&mut self, reducer: &ReducerName, index: Index) -> Result<bool> {
        let Some(at) = self.at()? else { return Ok(false) };
        let params = params![at.sid, reducer.as_str(), index_param(index)];
        Ok(self.one(sql::PIN_EXISTS, params, |_| Ok(()))?.is_some())
    }

    fn add_pin(&mut self, head: &HeadRef, reducer: &ReducerName, index: Index) -> Result<()> {
        let sid = self.ensure()?.sid;
        let params = params![
            sid,
            head.consumer.as_str(),
            kind_param(&head.cursor),
            head.cursor.name(),
            index_param(head.index),
            reducer.as_str(),
            index_param(index)
        ];
        self.write(sql::PIN_ADD, params)?;
        Ok(())
    }

    fn take_pins(&mut self, head: &HeadRef) -> Result<Vec<(ReducerName, Index)>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let params = params![
            at.sid,
            head.consumer.as_str(),
            kind_param(&head.cursor),
            head.cursor.name(),
            index_param(head.index)
        ];
        let pins =
            self.all(sql::PINS_OF, params, |row| Ok((rows::name(row, 0)?, rows::index(row, 1)?)))?;
        if !pins.is_empty() {
            self.write_head(sql::PINS_REMOVE, at.sid, head)?;
        }
        Ok(pins)
    }

    fn start_lifetime(&mut self, marker: &Event) -> Result<()> {
        let mut at = self.ensure()?;
        let params = params![self.session.as_str(), index_param(marker.index)];
        self.write(sql::SESSION_CLEAR, params)?;
        self.live = None;
        at.log.clear_index = marker.index;
        self.set(at);
        self.tail.start();
        self.insert_event(at, marker)
    }

    fn timer(&mut self, key: &TimerKey) -> Result<Option<TimerRow>> {
        let Some(at) = self.at()? else { return Ok(None) };
        self.one(sql::TIMER_GET, params![at.sid, key.as_str(), at.life()], rows::timer)
    }

    fn put_timer(&mut self, timer: &TimerRow) -> Result<()> {
        let sid = self.ensure()?.sid;
        let event = &timer.event;
        let params = params![
            sid,
            timer.key.as_str(),
            timer.due_at.as_millis(),
            timer.origin_index.map(index_param),
            event.event_id().map_or("", |id| id.as_str()),
            event.event_type().as_str(),
            event.payload().as_str(),
            rows::targets_param(event.target_list())
        ];
        self.write(sql::TIMER_PUT, params)?;
        Ok(())
    }

    fn remove_timer(&mut self, key: &TimerKey) -> Result<()> {
        let sid = self.ensure()?.sid;
        self.write(sql::TIMER_REMOVE, params![sid, key.as_str()])?;
        Ok(())
    }

    fn timers(&mut self, after: Option<&TimerKey>, limit: usize) -> Result<Vec<TimerRow>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let after = after.map_or("", TimerKey::as_str);
        let params = params![at.sid, at.life(), after, limit_param(limit)];
        self.all(sql::TIMERS_PAGE, params, rows::timer)
    }

    fn due_timers(&mut self, now: Timestamp, limit: usize) -> Result<Vec<TimerRow>> {
        let Some(at) = self.at()? else { return Ok(Vec::new()) };
        let params = params![at.sid, at.life(), now.as_millis(), limit_param(limit)];
        self.all(sql::TIMERS_DUE, params, rows::timer)
    }

    fn next_due(&mut self) -> Result<Option<Timestamp>> {
        let Some(at) = self.at()? else { return Ok(None) };
        self.one(sql::TIMER_NEXT, params![at.sid, at.life()], |row| rows::time(row, 0))
    }
}

#[cfg(test)]
mod tests {
    use a2_core::CursorKey;

    use super::*;

    #[test]
    fn no_head_is_before_every_head() {
        assert_eq!(spot(None), (-1, -1, ""));
        let at = HeadRef::new(
            Consumer::new("c").unwrap(),
            CursorKey::Lane(Lane::new("l").unwrap()),
            Index::from(7),
        );
        assert_eq!(spot(Some(&at)), (7, 1, "l"));
    }
}
