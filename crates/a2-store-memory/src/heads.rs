//! The heads of a lifetime: their rows, their lanes, and where they wait to be claimed.

use std::hash::{BuildHasher, Hasher};

use a2_core::engine::{HeadRow, HeadStatus, LaneRow, ListFrom};
use a2_core::{Consumer, CursorKey, HeadRef, Index, Lane};

use foldhash::fast::RandomState;

use crate::lifetime::{LaneState, Lifetime, hash_of};
use crate::listing;
use crate::queue::{ConsumerState, LogHead};
use crate::row::{NONE, Row, Stage};

impl Lifetime {
    pub(crate) fn consumer_number(&self, name: &Consumer) -> Option<usize> {
        let last = self.last_consumer.get();
        if self.consumers.get(last).is_some_and(|consumer| consumer.name == *name) {
            return Some(last);
        }
        let is = |&n: &usize| self.consumers[n].name == *name;
        let number = *self.consumer_numbers.find(self.hash(name.as_str()), is)?;
        self.last_consumer.set(number);
        Some(number)
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
        let rehash = |&n: &usize| hash_of(hasher, consumers[n].name.as_str());
        self.consumer_numbers.insert_unique(hash_of(hasher, name.as_str()), number, rehash);
        number
    }

    fn lane_number(&self, consumer: usize, name: &Lane) -> Option<usize> {
        let is = |&n: &usize| self.lanes[n].consumer == consumer && self.lanes[n].name == *name;
        let last = self.last_lane.get();
        if last < self.lanes.len() && is(&last) {
            return Some(last);
        }
        let number = *self.lane_numbers.find(lane_hash(&self.hasher, consumer, name), is)?;
        self.last_lane.set(number);
        Some(number)
    }

    pub(crate) fn lane(&self, consumer: &Consumer, name: &Lane) -> Option<&LaneState> {
        let number = self.lane_number(self.consumer_number(consumer)?, name)?;
        Some(&self.lanes[number])
    }

    /// The number of a head's row; none for a log's, whose only head stands with its consumer.
    pub(crate) fn row_number(&self, at: &HeadRef) -> Option<usize> {
        match &at.cursor {
            CursorKey::Event => self.find_row(&at.consumer, None, at.index),
            CursorKey::Lane(lane) => self.find_row(&at.consumer, Some(lane), at.index),
            CursorKey::Log(_) => None,
        }
    }

    fn find_row(&self, consumer: &Consumer, lane: Option<&Lane>, index: Index) -> Option<usize> {
        let is = |row: &Row| {
            let same_lane = match lane {
                None => row.lane == NONE,
                Some(name) => self.lanes.get(row.lane).is_some_and(|lane| lane.name == *name),
            };
            same_lane && self.consumers[row.consumer].name == *consumer
        };
        let last = self.last_row.get();
        if self.rows.get(last).is_some_and(|row| row.index == index && is(row)) {
            return Some(last);
        }
        let mut number = self.logged(index)?.first_row;
        loop {
            let row = self.rows.get(number).filter(|row| row.index == index)?;
            if is(row) {
                self.last_row.set(number);
                return Some(number);
            }
            number += 1;
        }
    }

    pub(crate) fn head_row(&self, at: &HeadRef) -> Option<HeadRow> {
        if let CursorKey::Log(name) = &at.cursor {
            let head = self.consumer(&at.consumer)?.logs.get(name)?;
            return (head.index == at.index).then(|| head.stage.to_row(&self.states));
        }
        let row = self.rows.get(self.row_number(at)?)?;
        Some(row.stage.to_row(&self.states))
    }

    pub(crate) fn add_head(&mut self, at: &HeadRef, status: HeadStatus) {
        let consumer = self.consumer_or_new(&at.consumer);
        let (stage, row) = (Stage::new(status), self.rows.len());
        let live = status == HeadStatus::Live;
        match &at.cursor {
            CursorKey::Log(name) => {
                let head = LogHead { index: at.index, stage };
                let state = &mut self.consumers[consumer];
                state.logs.insert(name.clone(), head);
                if live {
                    state.log_heads.free.insert(at.clone());
                }
            }
            CursorKey::Event => {
                let state = &mut self.consumers[consumer];
                state.events.insert(at.index);
                if live {
                    state.rows.free.insert(row);
                }
                self.rows.push(Row { index: at.index, consumer, lane: NONE, next: NONE, stage });
            }
            CursorKey::Lane(name) => {
                self.add_to_lane(at.index, consumer, name, stage);
                if live {
                    self.consumers[consumer].rows.free.insert(row);
                }
            }
        }
        if live {
            self.follow_live(consumer);
        }
    }

    fn add_to_lane(&mut self, index: Index, consumer: usize, name: &Lane, stage: Stage) {
        let row = self.rows.len();
        let lane = match self.lane_number(consumer, name) {
            Some(number) => {
                let lane = &mut self.lanes[number];
                if lane.head == NONE {
                    lane.head = row;
                } else if let Some(tail) = self.rows.get_mut(lane.tail) {
                    tail.next = row;
                }
                lane.tail = row;
                number
            }
            None => self.add_lane(consumer, name, row),
        };
        self.rows.push(Row { index, consumer, lane, next: NONE, stage });
    }

    fn add_lane(&mut self, consumer: usize, name: &Lane, row: usize) -> usize {
        let number = self.lanes.len();
        self.consumers[consumer].lanes.insert(name.clone(), number);
        self.last_lane.set(number);
        self.lanes.push(LaneState {
            consumer,
            name: name.clone(),
            head: row,
            tail: row,
            position: None,
        });
        let (lanes, hasher) = (&self.lanes, &self.hasher);
        let rehash = |&n: &usize| lane_hash(hasher, lanes[n].consumer, &lanes[n].name);
        self.lane_numbers.insert_unique(lane_hash(hasher, consumer, name), number, rehash);
        number
    }

    pub(crate) fn update_head(&mut self, at: &HeadRef, before: &HeadRow, after: &HeadRow) {
        let consumer = if let CursorKey::Log(name) = &at.cursor {
            let Some(consumer) = self.consumer_number(&at.consumer) else { return };
            let state = &mut self.consumers[consumer];
            if let Some(head) = state.logs.get_mut(name) {
                head.stage.set(after, &mut self.states);
            }
            state.log_heads.moved(at.clone(), Some(before), Some(after));
            consumer
        } else {
            let Some(number) = self.row_number(at) else { return };
            let Some(row) = self.rows.get_mut(number) else { return };
            row.stage.set(after, &mut self.states);
            let state = &mut self.consumers[row.consumer];
            state.rows.moved(number, Some(before), Some(after));
            if after.status == HeadStatus::Done {
                if let Some(lane) = self.lanes.get_mut(row.lane) {
                    lane.head = row.next;
                    lane.position = Some(at.index);
                } else {
                    state.events.remove(&at.index);
                }
            }
            row.consumer
        };
        if before.status != after.status {
            if before.status == HeadStatus::Dead {
                self.dead.remove(at);
            }
            if after.status == HeadStatus::Dead {
                self.dead.insert(at.clone());
            }
        }
        self.follow_live(consumer);
    }

    /// Removes a log cursor's head.
    pub(crate) fn remove_head(&mut self, at: &HeadRef, before: &HeadRow) {
        let CursorKey::Log(name) = &at.cursor else { return };
        let Some(consumer) = self.consumer_number(&at.consumer) else { return };
        let state = &mut self.consumers[consumer];
        if let Some(head) = state.logs.remove(name) {
            head.stage.release(&mut self.states);
        }
        state.log_heads.moved(at.clone(), Some(before), None);
        if before.status == HeadStatus::Dead {
            self.dead.remove(at);
        }
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
        let row = self.rows.get(self.find_row(consumer, Some(lane), after)?)?;
        Some(self.rows.get(row.next)?.index)
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
                    head: self.rows.get(lane.head).map(|row| row.index),
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

fn lane_hash(hasher: &RandomState, consumer: usize, name: &Lane) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write_usize(consumer);
    hasher.write(name.as_str().as_bytes());
    hasher.finish()
}
