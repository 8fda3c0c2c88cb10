//! The heads that wait to be claimed, as the engine asks for them.

use std::ops::Bound::{Excluded, Included, Unbounded};

use a2_core::{Consumer, CursorKey, HeadRef, Index, Timestamp};

use crate::lifetime::Lifetime;
use crate::listing::merge;

impl Lifetime {
    pub(crate) fn free_heads(
        &self,
        consumer: &Consumer,
        after: Option<&HeadRef>,
        through: Index,
        limit: usize,
    ) -> Vec<HeadRef> {
        let Some(state) = self.consumer(consumer) else { return Vec::new() };
        let within = |head: &HeadRef| head.index <= through;
        let from = after.map_or(Unbounded, |after| Included(self.row_after(after)));
        let rows = state.rows.free.range((from, Unbounded)).filter_map(|&row| self.head_at(row));
        if state.log_heads.free.is_empty() {
            return rows.take_while(within).take(limit).collect();
        }
        let from = (after.map_or(Unbounded, Excluded), Unbounded);
        let logs = state.log_heads.free.range::<HeadRef, _>(from).cloned();
        merge(rows, logs, |a, b| a < b).take_while(within).take(limit).collect()
    }

    pub(crate) fn held_heads(
        &self,
        consumer: &Consumer,
        after: Option<&(Timestamp, HeadRef)>,
        until: Timestamp,
        limit: usize,
    ) -> Vec<(Timestamp, HeadRef)> {
        let Some(state) = self.consumer(consumer) else { return Vec::new() };
        let within = |(at, _): &(Timestamp, HeadRef)| *at <= until;
        let from = after.map_or(Unbounded, |(at, head)| Included((*at, self.row_after(head))));
        let rows = state.rows.held.range((from, Unbounded));
        let rows = rows.filter_map(|&(at, row)| Some((at, self.head_at(row)?)));
        if state.log_heads.held.is_empty() {
            return rows.take_while(within).take(limit).collect();
        }
        let from = (after.map_or(Unbounded, Excluded), Unbounded);
        let logs = state.log_heads.held.range::<(Timestamp, HeadRef), _>(from).cloned();
        merge(rows, logs, |a, b| a < b).take_while(within).take(limit).collect()
    }

    fn head_at(&self, row: usize) -> Option<HeadRef> {
        let row = self.rows.get(row)?;
        let lane = self.lanes.get(row.lane);
        let key = lane.map_or(CursorKey::Event, |lane| CursorKey::Lane(lane.name.clone()));
        Some(HeadRef::new(self.consumers[row.consumer].name.clone(), key, row.index))
    }

    /// The first row that may come after a head; a log's head comes after all rows of its event.
    fn row_after(&self, head: &HeadRef) -> usize {
        match self.row_number(head) {
            Some(row) => row + 1,
            None => self.logged(head.index.next()).map_or(self.rows.len(), |next| next.first_row),
        }
    }
}
