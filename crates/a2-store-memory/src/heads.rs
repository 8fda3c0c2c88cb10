//! The heads of a lifetime: their rows, their lanes, and where they wait to be claimed.

use std::hash::BuildHasher;

use a2_core::engine::{HeadRow, HeadStatus, LaneRow, ListFrom};
use a2_core::{Consumer, CursorKey, HeadRef, Index, Lane};

use crate::lifetime::{LaneState, Lifetime};
use crate::listing;
use crate::queue::{ConsumerState, LogHead};
use crate::row::{Row, Stage};

impl Lifetime {
    pub(crate) fn consumer_number(&self, name: &Consumer) -> Option<usize> {
        let hash = self.hasher.hash_one(name);
        self.consumer_numbers.find(hash, |&n| self.consumers[n].name == *name).copied()
    }

    pub(crate) fn consumer(&self, name: &Consumer) -> Option<&ConsumerState> {
        self.consumer_number(name).map(|number| &self.consumers[number])
    }

    fn consumer_or_new(&mut self, name: &Consumer) -> usize {
        if let Some(number) = self.consumer_number(name) {
            return number;
        }
        let number = self.consumers.len();
        self.consumers.push(ConsumerState::new(name.clone()));
        self.consumers_by_name.insert(name.clone(), number);
        let (consumers, hasher) = (&self.consumers, &self.hasher);
        let rehash = |&n: &usize| hasher.hash_one(&consumers[n].name);
        self.consumer_numbers.insert_unique(hasher.hash_one(name), number, rehash);
        number
    }

    fn lane_number(&self, consumer: usize, name: &Lane) -> Option<usize> {
        let hash = self.hasher.hash_one((consumer, name));
        let is = |&n: &usize| self.lanes[n].consumer == consumer && self.lanes[n].name == *name;
        self.lane_numbers.find(hash, is).copied()
    }

    pub(crate) fn lane(&self, consumer: &Consumer, name: &Lane) -> Option<&LaneState> {
        let number = self.lane_number(self.consumer_number(consumer)?, name)?;
        Some(&self.lanes[number])
    }

    /// The row of an event's or a lane's head.
    fn row_number(&self, at: &HeadRef) -> Option<usize> {
        let first = self.logged(at.index)?.first_row;
        let rows = self.rows.get(first..)?.iter().take_while(|row| row.index == at.index);
        let is = |row: &Row| {
            let lane = row.lane.map(|lane| &self.lanes[lane].name);
            let same = match &at.cursor {
                CursorKey::Event => lane.is_none(),
                CursorKey::Lane(name) => lane == Some(name),
                CursorKey::Log(_) => false,
            };
            same && self.consumers[row.consumer].name == at.consumer
        };
        rows.enumerate().find(|(_, row)| is(row)).map(|(i, _)| first + i)
    }

    pub(crate) fn head_row(&self, at: &HeadRef) -> Option<HeadRow> {
        if let CursorKey::Log(name) = &at.cursor {
            let head = self.consumer(&at.consumer)?.logs.get(name)?;
            return (head.index == at.index).then(|| head.stage.to_row());
        }
        self.row_number(at).map(|number| self.rows[number].stage.to_row())
    }

    pub(crate) fn add_head(&mut self, at: &HeadRef, status: HeadStatus) {
        let consumer = self.consumer_or_new(&at.consumer);
        let stage = Stage::new(status);
        match &at.cursor {
            CursorKey::Log(name) => {
                let head = LogHead { index: at.index, stage };
                self.consumers[consumer].logs.insert(name.clone(), head);
            }
            CursorKey::Event => {
                self.consumers[consumer].events.insert(at.index);
                self.rows.push(Row { index: at.index, consumer, lane: None, next: None, stage });
            }
            CursorKey::Lane(name) => self.add_to_lane(at.index, consumer, name, stage),
        }
        if status == HeadStatus::Live {
            self.consumers[consumer].add_free(at);
            self.follow_live(consumer);
        }
    }

    fn add_to_lane(&mut self, index: Index, consumer: usize, name: &Lane, stage: Stage) {
        let row = self.rows.len();
        let lane = match self.lane_number(consumer, name) {
            Some(number) => {
                let lane = &mut self.lanes[number];
                if lane.head.is_some() {
                    self.rows[lane.tail].next = Some(row);
                } else {
                    lane.head = Some(row);
                }
                lane.tail = row;
                number
            }
            None => self.add_lane(consumer, name, row),
        };
        self.rows.push(Row { index, consumer, lane: Some(lane), next: None, stage });
    }

    fn add_lane(&mut self, consumer: usize, name: &Lane, row: usize) -> usize {
        let number = self.lanes.len();
        self.consumers[consumer].lanes.insert(name.clone(), number);
        self.lanes.push(LaneState {
            consumer,
            name: name.clone(),
            head: Some(row),
            tail: row,
            position: None,
        });
        let (lanes, hasher) = (&self.lanes, &self.hasher);
        let rehash = |&n: &usize| hasher.hash_one((lanes[n].consumer, &lanes[n].name));
        self.lane_numbers.insert_unique(hasher.hash_one((consumer, name)), number, rehash);
        number
    }

    pub(crate) fn update_head(&mut self, at: &HeadRef, before: &HeadRow, after: &HeadRow) {
        let consumer = self.consumer_or_new(&at.consumer);
        if let CursorKey::Log(name) = &at.cursor {
            if let Some(head) = self.consumers[consumer].logs.get_mut(name) {
                head.stage = Stage::of(after);
            }
        } else if let Some(number) = self.row_number(at) {
            let row = &mut self.rows[number];
            row.stage = Stage::of(after);
            if after.status == HeadStatus::Done {
                match row.lane {
                    Some(lane) => {
                        let lane = &mut self.lanes[lane];
                        lane.head = row.next;
                        lane.position = Some(at.index);
                    }
                    None => {
                        self.consumers[consumer].events.remove(&at.index);
                    }
                }
            }
        }
        if before.status != after.status {
            if before.status == HeadStatus::Dead {
                self.dead.remove(at);
            }
            if after.status == HeadStatus::Dead {
                self.dead.insert(at.clone());
            }
        }
        self.consumers[consumer].moved(at, Some(before), Some(after));
        self.follow_live(consumer);
    }

    pub(crate) fn remove_head(&mut self, at: &HeadRef, before: &HeadRow) {
        let CursorKey::Log(name) = &at.cursor else { return };
        let Some(consumer) = self.consumer_number(&at.consumer) else { return };
        self.consumers[consumer].logs.remove(name);
        if before.status == HeadStatus::Dead {
            self.dead.remove(at);
        }
        self.consumers[consumer].moved(at, Some(before), None);
        self.follow_live(consumer);
    }

    /// Keeps the list of consumers with live heads.
    fn follow_live(&mut self, consumer: usize) {
        let state = &mut self.consumers[consumer];
        match (state.has_live(), state.live_at) {
            (true, None) => {
                state.live_at = Some(self.live.len());
                self.live.push(consumer);
            }
            (false, Some(at)) => {
                state.live_at = None;
                self.live.swap_remove(at);
                if let Some(&moved) = self.live.get(at) {
                    self.consumers[moved].live_at = Some(at);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn has_live(&self) -> bool {
        !self.live.is_empty()
    }

    /// The lane's row after that of `after`.
    pub(crate) fn lane_next(
        &self,
        consumer: &Consumer,
        lane: &Lane,
        after: Index,
    ) -> Option<Index> {
        let cursor = CursorKey::Lane(lane.clone());
        let row = self.row_number(&HeadRef::new(consumer.clone(), cursor, after))?;
        Some(self.rows[self.rows[row].next?].index)
    }

    pub(crate) fn list_lanes(&self, from: ListFrom<'_, Lane>, limit: usize) -> Vec<LaneRow> {
        listing::consumers(&from, &self.consumers_by_name)
            .flat_map(|(consumer, &number)| {
                self.consumers[number].lanes.range::<Lane, _>(listing::names(&from, consumer))
            })
            .take(limit)
            .map(|(_, &number)| {
                let lane = &self.lanes[number];
                LaneRow {
                    consumer: self.consumers[lane.consumer].name.clone(),
                    lane: lane.name.clone(),
                    position: lane.position,
                    head: lane.head.map(|row| self.rows[row].index),
                }
            })
            .collect()
    }

    pub(crate) fn list_events(
        &self,
        from: ListFrom<'_, Index>,
        limit: usize,
    ) -> Vec<(Consumer, Index)> {
        listing::consumers(&from, &self.consumers_by_name)
            .flat_map(|(consumer, &number)| {
                let events = &self.consumers[number].events;
                let rest = events.range::<Index, _>(listing::names(&from, consumer));
                rest.map(|index| (consumer.clone(), *index))
            })
            .take(limit)
            .collect()
    }
}
