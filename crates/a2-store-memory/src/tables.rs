//! A session as the engine sees it. Nothing here decides anything, and nothing can fail.

use a2_core::engine::{HeadRow, HeadStatus, LaneRow, ListFrom, LogRow, LogState, Tables, TimerRow};
use a2_core::{
    Consumer, Event, EventId, EventType, HeadRef, Index, Json, Lane, LogName, ReducerName, Result,
    SessionId, Snapshot, TimerKey, Timestamp,
};

use crate::lifetime::Lifetime;
use crate::listing;
use crate::row::NONE;
use crate::session::Session;

impl Tables for Session {
    fn session(&self) -> &SessionId {
        &self.id
    }

    fn log_state(&mut self) -> Result<LogState> {
        Ok(LogState { head: self.life.head(), clear_index: self.life.clear_index })
    }

    fn owner(&mut self, id: &EventId) -> Result<Option<Index>> {
        Ok(self.life.owner(id))
    }

    fn add_event(&mut self, event: &Event) -> Result<()> {
        self.life.add_event(event);
        Ok(())
    }

    fn event(&mut self, index: Index) -> Result<Option<Event>> {
        Ok(self.life.logged(index).map(|logged| logged.event.clone()))
    }

    fn events(
        &mut self,
        after: Index,
        through: Index,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<Event>> {
        let mut bytes = 0;
        let within = |event: &&Event| {
            let fits = event.index <= through && bytes <= max_bytes;
            bytes += event.payload.byte_len();
            fits
        };
        Ok(self.life.events_after(after).take(limit).take_while(within).cloned().collect())
    }

    fn next_of_types(&mut self, types: &[EventType], after: Index) -> Result<Option<Index>> {
        Ok(types.iter().filter_map(|name| self.life.next_of_type(name, after)).min())
    }

    fn head(&mut self, at: &HeadRef) -> Result<Option<HeadRow>> {
        Ok(self.life.head_row(at))
    }

    fn add_head(&mut self, at: &HeadRef, status: HeadStatus) -> Result<()> {
        self.life.add_head(at, status);
        Ok(())
    }

    fn update_head(&mut self, at: &HeadRef, before: &HeadRow, after: &HeadRow) -> Result<()> {
        self.life.update_head(at, before, after);
        Ok(())
    }

    fn remove_head(&mut self, at: &HeadRef, before: &HeadRow) -> Result<()> {
        self.life.remove_head(at, before);
        Ok(())
    }

    fn lane_is_idle(&mut self, consumer: &Consumer, lane: &Lane) -> Result<bool> {
        Ok(self.life.lane(consumer, lane).is_none_or(|lane| lane.head == NONE))
    }

    fn lane_next(
        &mut self,
        consumer: &Consumer,
        lane: &Lane,
        after: Index,
    ) -> Result<Option<Index>> {
        Ok(self.life.lane_next(consumer, lane, after))
    }

    fn log(&mut self, consumer: &Consumer, name: &LogName) -> Result<Option<LogRow>> {
        Ok(self.logs.get(consumer).and_then(|logs| logs.get(name)).cloned())
    }

    fn put_log(&mut self, consumer: &Consumer, name: &LogName, row: &LogRow) -> Result<()> {
        if let Some(stored) = self.logs.get_mut(consumer).and_then(|logs| logs.get_mut(name)) {
            stored.clone_from(row);
        } else {
            self.logs.entry(consumer.clone()).or_default().insert(name.clone(), row.clone());
        }
        Ok(())
    }

    fn live_consumers(&mut self) -> Result<Vec<Consumer>> {
        Ok(self.life.live.iter().map(|&number| self.life.consumers[number].name.clone()).collect())
    }

    fn has_live(&mut self, consumer: Option<&Consumer>) -> Result<bool> {
        Ok(match consumer {
            None => self.life.has_live(),
            Some(consumer) => self.life.consumer(consumer).is_some_and(|state| state.has_live()),
        })
    }

    fn free_heads(
        &mut self,
        consumer: &Consumer,
        after: Option<&HeadRef>,
        through: Index,
        limit: usize,
    ) -> Result<Vec<HeadRef>> {
        Ok(self.life.free_heads(consumer, after, through, limit))
    }

    fn held_heads(
        &mut self,
        consumer: &Consumer,
        after: Option<&(Timestamp, HeadRef)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, HeadRef)>> {
        Ok(self.life.held_heads(consumer, after, until, limit))
    }

    fn dead_heads(&mut self, after: Option<&HeadRef>, limit: usize) -> Result<Vec<HeadRef>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = (after.map_or(Unbounded, Excluded), Unbounded);
        Ok(self.life.dead.range::<HeadRef, _>(from).take(limit).cloned().collect())
    }

    fn lanes(&mut self, from: ListFrom<'_, Lane>, limit: usize) -> Result<Vec<LaneRow>> {
        Ok(self.life.list_lanes(from, limit))
    }

    fn logs(
        &mut self,
        from: ListFrom<'_, LogName>,
        limit: usize,
    ) -> Result<Vec<(Consumer, LogName, LogRow)>> {
        let rows = listing::consumers(&from, &self.logs).flat_map(|(consumer, logs)| {
            let rest = logs.range::<LogName, _>(listing::names(&from, consumer));
            rest.map(|(name, row)| (consumer.clone(), name.clone(), row.clone()))
        });
        Ok(rows.take(limit).collect())
    }

    fn event_heads(
        &mut self,
        from: ListFrom<'_, Index>,
        limit: usize,
    ) -> Result<Vec<(Consumer, Index)>> {
        Ok(self.life.list_events(from, limit))
    }

    fn snapshot(&mut self, reducer: &ReducerName, through: Index) -> Result<Option<Snapshot>> {
        let state = self.life.reducers.get(reducer);
        let newest = state.and_then(|state| state.snapshots.range(..=through).next_back());
        Ok(newest.map(|(index, state)| Snapshot::new(*index, state.clone())))
    }

    fn latest_snapshot(&mut self, reducer: &ReducerName) -> Result<Option<Index>> {
        let state = self.life.reducers.get(reducer);
        Ok(state.and_then(|state| state.snapshots.last_key_value()).map(|(index, _)| *index))
    }

    fn put_snapshot(&mut self, reducer: &ReducerName, index: Index, state: &Json) -> Result<()> {
        let reducer = self.life.reducers.entry(reducer.clone()).or_default();
        reducer.snapshots.insert(index, state.clone());
        Ok(())
    }

    fn remove_snapshot(&mut self, reducer: &ReducerName, index: Index) -> Result<()> {
        if let Some(state) = self.life.reducers.get_mut(reducer) {
            state.snapshots.remove(&index);
        }
        Ok(())
    }

    fn is_pinned(&mut self, reducer: &ReducerName, index: Index) -> Result<bool> {
        let state = self.life.reducers.get(reducer);
        Ok(state.is_some_and(|state| state.pins.contains_key(&index)))
    }

    fn add_pin(&mut self, head: &HeadRef, reducer: &ReducerName, index: Index) -> Result<()> {
        let pins = self.life.pins.entry(head.clone()).or_default();
        if pins.insert((reducer.clone(), index)) {
            let state = self.life.reducers.entry(reducer.clone()).or_default();
            *state.pins.entry(index).or_default() += 1;
        }
        Ok(())
    }

    fn take_pins(&mut self, head: &HeadRef) -> Result<Vec<(ReducerName, Index)>> {
        if self.life.pins.is_empty() {
            return Ok(Vec::new());
        }
        let pins = self.life.pins.remove(head).unwrap_or_default();
        for (reducer, index) in &pins {
            if let Some(state) = self.life.reducers.get_mut(reducer) {
                state.unpin(*index);
            }
        }
        Ok(pins.into_iter().collect())
    }

    fn start_lifetime(&mut self, marker: &Event) -> Result<()> {
        self.begin(Lifetime::starting_at(marker));
        Ok(())
    }

    fn timer(&mut self, key: &TimerKey) -> Result<Option<TimerRow>> {
        Ok(self.timers.get(key, self.life.clear_index).cloned())
    }

    fn put_timer(&mut self, timer: &TimerRow) -> Result<()> {
        self.timers.put(timer.clone(), self.life.head());
        Ok(())
    }

    fn remove_timer(&mut self, key: &TimerKey) -> Result<()> {
        self.timers.remove(key);
        Ok(())
    }

    fn timers(&mut self, after: Option<&TimerKey>, limit: usize) -> Result<Vec<TimerRow>> {
        Ok(self.timers.list(after, limit, self.life.clear_index))
    }

    fn due_timers(&mut self, now: Timestamp, limit: usize) -> Result<Vec<TimerRow>> {
        Ok(self.timers.due(now, limit, self.life.clear_index))
    }

    fn next_due(&mut self) -> Result<Option<Timestamp>> {
        Ok(self.timers.next_due(self.life.clear_index))
    }
}
