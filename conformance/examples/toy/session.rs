//! The rows of one session, in plain maps, as the engine wants to see them.
//!
//! Most of it looks at every row where a real backend has an index. What a clear leaves behind goes
//! to the `old` lifetimes, which the maps of the current one never hold: that makes a clear cheap
//! and the rules on lifetimes easy.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};

use a2_core::engine::{HeadRow, HeadStatus, LaneRow, ListFrom, LogRow, LogState, Tables, TimerRow};
use a2_core::{
    Consumer, CursorKey, Event, EventId, EventType, HeadRef, Index, Json, Lane, LogName, Reclaimed,
    ReducerName, Result, SessionId, Snapshot, TimerKey, Timestamp, limits,
};

/// A session.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) at: LogState,
    life: Lifetime,
    logs: BTreeMap<(Consumer, LogName), LogRow>,
    old: Vec<Lifetime>,
}

/// What belongs to one lifetime.
#[derive(Default)]
struct Lifetime {
    events: BTreeMap<Index, Event>,
    ids: HashMap<EventId, Index>,
    heads: BTreeMap<HeadRef, HeadRow>,
    lanes: BTreeMap<(Consumer, Lane), BTreeSet<Index>>,
    snapshots: BTreeMap<(ReducerName, Index), Json>,
    pins: BTreeSet<(HeadRef, ReducerName, Index)>,
}

impl Lifetime {
    /// Drops one row; false when there is none.
    fn drop_one(&mut self) -> bool {
        self.events.pop_first().is_some()
            || self.heads.pop_first().is_some()
            || self.snapshots.pop_first().is_some()
            || self.pins.pop_first().is_some()
    }

    fn lane_head(consumer: &Consumer, lane: &Lane, index: Index) -> HeadRef {
        HeadRef::new(consumer.clone(), CursorKey::Lane(lane.clone()), index)
    }

    /// The lane's rows in order.
    fn lane<'a>(
        &'a self,
        consumer: &'a Consumer,
        lane: &'a Lane,
    ) -> impl DoubleEndedIterator<Item = (Index, &'a HeadRow)> {
        let indexes = self.lanes.get(&(consumer.clone(), lane.clone())).into_iter().flatten();
        indexes.filter_map(move |index| {
            let row = self.heads.get(&Self::lane_head(consumer, lane, *index))?;
            Some((*index, row))
        })
    }

    fn live(&self) -> impl Iterator<Item = (&HeadRef, &HeadRow)> {
        self.heads.iter().filter(|(_, row)| row.status == HeadStatus::Live)
    }
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Self {
        let (at, life) = (LogState::default(), Lifetime::default());
        Self { id, at, life, logs: BTreeMap::new(), old: Vec::new() }
    }

    /// Drops about 256 rows of what a clear left behind.
    pub(crate) fn reclaim(&mut self) -> Reclaimed {
        let mut deleted = 0;
        while deleted < limits::RECLAIM_ROWS as u64 {
            match self.old.last_mut().map(Lifetime::drop_one) {
                None => break,
                Some(true) => deleted += 1,
                Some(false) => drop(self.old.pop()),
            }
        }
        Reclaimed::new(deleted, self.old.is_empty())
    }
}

/// Whether an entry of this consumer and name belongs to a listing that begins there.
fn lists<N: Ord>(from: &ListFrom<'_, N>, consumer: &Consumer, name: &N) -> bool {
    match from {
        ListFrom::Start => true,
        ListFrom::Consumer(first) => consumer >= *first,
        ListFrom::After(last, after) => (consumer, name) > (*last, *after),
        ListFrom::PastConsumer(last) => consumer > *last,
    }
}

impl Tables for Session {
    fn session(&self) -> &SessionId {
        &self.id
    }

    fn log_state(&mut self) -> Result<LogState> {
        Ok(self.at)
    }

    fn owner(&mut self, id: &EventId) -> Result<Option<Index>> {
        Ok(self.life.ids.get(id).copied())
    }

    fn add_event(&mut self, event: &Event) -> Result<()> {
        self.at.head = event.index;
        self.life.ids.insert(event.id.clone(), event.index);
        self.life.events.insert(event.index, event.clone());
        Ok(())
    }

    fn event(&mut self, index: Index) -> Result<Option<Event>> {
        Ok(self.life.events.get(&index).cloned())
    }

    fn events(
        &mut self,
        after: Index,
        through: Index,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<Event>> {
        let (mut events, mut bytes) = (Vec::new(), 0);
        for event in self.life.events.range((Excluded(after), Included(through))) {
            if events.len() == limit || bytes > max_bytes {
                break;
            }
            bytes += event.1.payload.byte_len();
            events.push(event.1.clone());
        }
        Ok(events)
    }

    fn next_of_types(&mut self, types: &[EventType], after: Index) -> Result<Option<Index>> {
        let mut later = self.life.events.range((Excluded(after), Unbounded));
        Ok(later.find(|(_, event)| types.contains(&event.event_type)).map(|(index, _)| *index))
    }

    fn head(&mut self, at: &HeadRef) -> Result<Option<HeadRow>> {
        Ok(self.life.heads.get(at).cloned())
    }

    fn add_head(&mut self, at: &HeadRef, status: HeadStatus) -> Result<()> {
        if let CursorKey::Lane(lane) = &at.cursor {
            let lane = self.life.lanes.entry((at.consumer.clone(), lane.clone())).or_default();
            lane.insert(at.index);
        }
        self.life.heads.insert(at.clone(), HeadRow::new(status));
        Ok(())
    }

    fn update_head(&mut self, at: &HeadRef, _: &HeadRow, after: &HeadRow) -> Result<()> {
        self.life.heads.insert(at.clone(), after.clone());
        Ok(())
    }

    fn remove_head(&mut self, at: &HeadRef, _: &HeadRow) -> Result<()> {
        self.life.heads.remove(at);
        Ok(())
    }

    fn lane_is_idle(&mut self, consumer: &Consumer, lane: &Lane) -> Result<bool> {
        let last = self.life.lane(consumer, lane).next_back();
        Ok(last.is_none_or(|(_, row)| row.status == HeadStatus::Done))
    }

    fn lane_next(
        &mut self,
        consumer: &Consumer,
        lane: &Lane,
        after: Index,
    ) -> Result<Option<Index>> {
        let lane = self.life.lanes.get(&(consumer.clone(), lane.clone()));
        Ok(lane.and_then(|lane| lane.range((Excluded(after), Unbounded)).next().copied()))
    }

    fn log(&mut self, consumer: &Consumer, name: &LogName) -> Result<Option<LogRow>> {
        Ok(self.logs.get(&(consumer.clone(), name.clone())).cloned())
    }

    fn put_log(&mut self, consumer: &Consumer, name: &LogName, row: &LogRow) -> Result<()> {
        self.logs.insert((consumer.clone(), name.clone()), row.clone());
        Ok(())
    }

    fn live_consumers(&mut self) -> Result<Vec<Consumer>> {
        let consumers: BTreeSet<_> = self.life.live().map(|(at, _)| &at.consumer).collect();
        Ok(consumers.into_iter().cloned().collect())
    }

    fn has_live(&mut self, consumer: Option<&Consumer>) -> Result<bool> {
        Ok(self.life.live().any(|(at, _)| consumer.is_none_or(|consumer| at.consumer == *consumer)))
    }

    fn free_heads(
        &mut self,
        consumer: &Consumer,
        after: Option<&HeadRef>,
        through: Index,
        limit: usize,
    ) -> Result<Vec<HeadRef>> {
        let live = self.life.live().filter(|(_, row)| row.state.claim_expires_at.is_none());
        let free = live
            .map(|(at, _)| at)
            .filter(|at| at.consumer == *consumer && Some(*at) > after && at.index <= through);
        Ok(free.take(limit).cloned().collect())
    }

    fn held_heads(
        &mut self,
        consumer: &Consumer,
        after: Option<&(Timestamp, HeadRef)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, HeadRef)>> {
        let own = self.life.live().filter(|(at, _)| at.consumer == *consumer);
        let held = own.filter_map(|(at, row)| Some((row.held_until()?, at.clone())));
        let mut held: Vec<_> = held.filter(|held| held.0 <= until && Some(held) > after).collect();
        held.sort();
        held.truncate(limit);
        Ok(held)
    }

    fn dead_heads(&mut self, after: Option<&HeadRef>, limit: usize) -> Result<Vec<HeadRef>> {
        let rows = self.life.heads.iter().filter(|(_, row)| row.status == HeadStatus::Dead);
        let dead = rows.map(|(at, _)| at).filter(|at| Some(*at) > after);
        Ok(dead.take(limit).cloned().collect())
    }

    fn lanes(&mut self, from: ListFrom<'_, Lane>, limit: usize) -> Result<Vec<LaneRow>> {
        let lanes = self.life.lanes.keys().filter(|(consumer, lane)| lists(&from, consumer, lane));
        let rows = lanes.map(|(consumer, lane)| {
            let done = |row: &HeadRow| row.status == HeadStatus::Done;
            let rows = || self.life.lane(consumer, lane);
            LaneRow {
                consumer: consumer.clone(),
                lane: lane.clone(),
                position: rows().rfind(|(_, row)| done(row)).map(|(index, _)| index),
                head: rows().find(|(_, row)| !done(row)).map(|(index, _)| index),
            }
        });
        Ok(rows.take(limit).collect())
    }

    fn logs(
        &mut self,
        from: ListFrom<'_, LogName>,
        limit: usize,
    ) -> Result<Vec<(Consumer, LogName, LogRow)>> {
        let rows = self.logs.iter().filter(|((consumer, name), _)| lists(&from, consumer, name));
        let rows =
            rows.map(|((consumer, name), row)| (consumer.clone(), name.clone(), row.clone()));
        Ok(rows.take(limit).collect())
    }

    fn event_heads(
        &mut self,
        from: ListFrom<'_, Index>,
        limit: usize,
    ) -> Result<Vec<(Consumer, Index)>> {
        let rows = self.life.heads.iter().filter(|(at, row)| {
            at.cursor == CursorKey::Event
                && row.status != HeadStatus::Done
                && lists(&from, &at.consumer, &at.index)
        });
        let heads: BTreeSet<_> = rows.map(|(at, _)| (at.consumer.clone(), at.index)).collect();
        Ok(heads.into_iter().take(limit).collect())
    }

    fn snapshot(&mut self, reducer: &ReducerName, through: Index) -> Result<Option<Snapshot>> {
        let own = (reducer.clone(), Index::ZERO)..=(reducer.clone(), through);
        let newest = self.life.snapshots.range(own).next_back();
        Ok(newest.map(|((_, index), state)| Snapshot::new(*index, state.clone())))
    }

    fn latest_snapshot(&mut self, reducer: &ReducerName) -> Result<Option<Index>> {
        Ok(self.snapshot(reducer, Index::MAX)?.map(|latest| latest.index))
    }

    fn put_snapshot(&mut self, reducer: &ReducerName, index: Index, state: &Json) -> Result<()> {
        self.life.snapshots.insert((reducer.clone(), index), state.clone());
        Ok(())
    }

    fn remove_snapshot(&mut self, reducer: &ReducerName, index: Index) -> Result<()> {
        self.life.snapshots.remove(&(reducer.clone(), index));
        Ok(())
    }

    fn is_pinned(&mut self, reducer: &ReducerName, index: Index) -> Result<bool> {
        Ok(self.life.pins.iter().any(|(_, r, i)| (r, *i) == (reducer, index)))
    }

    fn add_pin(&mut self, head: &HeadRef, reducer: &ReducerName, index: Index) -> Result<()> {
        self.life.pins.insert((head.clone(), reducer.clone(), index));
        Ok(())
    }

    fn take_pins(&mut self, head: &HeadRef) -> Result<Vec<(ReducerName, Index)>> {
        let (own, others) =
            std::mem::take(&mut self.life.pins).into_iter().partition(|(at, ..)| at == head);
        self.life.pins = others;
        let own: BTreeSet<(HeadRef, ReducerName, Index)> = own;
        Ok(own.into_iter().map(|(_, reducer, index)| (reducer, index)).collect())
    }

    fn start_lifetime(&mut self, marker: &Event) -> Result<()> {
        self.old.push(std::mem::take(&mut self.life));
        self.at.clear_index = marker.index;
        self.add_event(marker)
    }

    // The toy has no timers: nothing is ever put here.

    fn timer(&mut self, _: &TimerKey) -> Result<Option<TimerRow>> {
        Ok(None)
    }

    fn put_timer(&mut self, _: &TimerRow) -> Result<()> {
        Ok(())
    }

    fn remove_timer(&mut self, _: &TimerKey) -> Result<()> {
        Ok(())
    }

    fn timers(&mut self, _: Option<&TimerKey>, _: usize) -> Result<Vec<TimerRow>> {
        Ok(Vec::new())
    }

    fn due_timers(&mut self, _: Timestamp, _: usize) -> Result<Vec<TimerRow>> {
        Ok(Vec::new())
    }

    fn next_due(&mut self) -> Result<Option<Timestamp>> {
        Ok(None)
    }
}
