//! A session's timers, in two sets: those that the next clear drops, which are then put away whole,
//! and those that it may leave.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use a2_core::engine::TimerRow;
use a2_core::{Index, TimerKey, Timestamp};

use crate::listing::merge;

/// Timers by key and by due time.
#[derive(Debug, Default)]
pub(crate) struct TimerSet {
    by_key: BTreeMap<TimerKey, TimerRow>,
    by_due: BTreeMap<Timestamp, BTreeSet<TimerKey>>,
}

impl TimerSet {
    fn put(&mut self, timer: TimerRow) {
        self.by_due.entry(timer.due_at).or_default().insert(timer.key.clone());
        self.by_key.insert(timer.key.clone(), timer);
    }

    fn remove(&mut self, key: &TimerKey) -> Option<TimerRow> {
        let timer = self.by_key.remove(key)?;
        self.remove_due(&timer);
        Some(timer)
    }

    fn remove_due(&mut self, timer: &TimerRow) {
        if let Entry::Occupied(mut keys) = self.by_due.entry(timer.due_at) {
            keys.get_mut().remove(&timer.key);
            if keys.get().is_empty() {
                keys.remove();
            }
        }
    }

    /// Takes any timer out, and gives its due time.
    pub(crate) fn pop(&mut self) -> Option<Timestamp> {
        let (_, timer) = self.by_key.pop_last()?;
        self.remove_due(&timer);
        Some(timer.due_at)
    }

    fn in_order_of_due(&self) -> impl Iterator<Item = (Timestamp, &TimerRow)> {
        self.by_due.iter().flat_map(|(due_at, keys)| {
            keys.iter().filter_map(|key| Some((*due_at, self.by_key.get(key)?)))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

/// The timers of a session.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// Without an origin, or with one that was above the log's head.
    kept: TimerSet,
    /// The kept ones with an origin, by it: a clear may hide some of them.
    ahead: BTreeSet<(Index, TimerKey)>,
    /// With an origin that every later clear lies above.
    bound: TimerSet,
    /// Due times at which a timer came or went since the last [`take_touched`](Self::take_touched).
    touched: Vec<Timestamp>,
}

impl Timers {
    pub(crate) fn get(&self, key: &TimerKey, clear_index: Index) -> Option<&TimerRow> {
        let timer = self.bound.by_key.get(key).or_else(|| self.kept.by_key.get(key));
        timer.filter(|timer| is_there(timer, clear_index))
    }

    pub(crate) fn put(&mut self, timer: TimerRow, head: Index) {
        self.remove(&timer.key);
        self.touched.push(timer.due_at);
        match timer.origin_index {
            Some(origin) if origin <= head => self.bound.put(timer),
            Some(origin) => {
                self.ahead.insert((origin, timer.key.clone()));
                self.kept.put(timer);
            }
            None => self.kept.put(timer),
        }
    }

    pub(crate) fn remove(&mut self, key: &TimerKey) {
        let removed = self.bound.remove(key).or_else(|| self.kept.remove(key));
        if let Some(timer) = removed {
            self.touched.push(timer.due_at);
            if let Some(origin) = timer.origin_index {
                self.ahead.remove(&(origin, timer.key));
            }
        }
    }

    /// The timers after `after`, by key.
    pub(crate) fn list(
        &self,
        after: Option<&TimerKey>,
        limit: usize,
        clear_index: Index,
    ) -> Vec<TimerRow> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = (after.map_or(Unbounded, Excluded), Unbounded);
        let bound = self.bound.by_key.range::<TimerKey, _>(from);
        let kept = self.kept.by_key.range::<TimerKey, _>(from);
        merge(bound.map(|(_, timer)| timer), kept.map(|(_, timer)| timer), |a, b| a.key <= b.key)
            .filter(|timer| is_there(timer, clear_index))
            .take(limit)
            .cloned()
            .collect()
    }

    /// The timers due at `now` or before, by due time and key.
    pub(crate) fn due(&self, now: Timestamp, limit: usize, clear_index: Index) -> Vec<TimerRow> {
        self.by_due(clear_index)
            .take_while(|timer| timer.due_at <= now)
            .take(limit)
            .cloned()
            .collect()
    }

    pub(crate) fn next_due(&self, clear_index: Index) -> Option<Timestamp> {
        self.by_due(clear_index).next().map(|timer| timer.due_at)
    }

    fn by_due(&self, clear_index: Index) -> impl Iterator<Item = &TimerRow> {
        let (bound, kept) = (self.bound.in_order_of_due(), self.kept.in_order_of_due());
        merge(bound, kept, |(a, first), (b, second)| (a, &first.key) <= (b, &second.key))
            .map(|(_, timer)| timer)
            .filter(move |timer| is_there(timer, clear_index))
    }

    /// Whether a timer is due at exactly `at`.
    pub(crate) fn any_due_at(&self, at: Timestamp, clear_index: Index) -> bool {
        [&self.bound, &self.kept].into_iter().any(|set| {
            let mut keys = set.by_due.get(&at).into_iter().flatten();
            keys.any(|key| set.by_key.get(key).is_some_and(|timer| is_there(timer, clear_index)))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bound.is_empty() && self.kept.is_empty()
    }

    /// Puts away the timers that a clear drops whatever its index.
    pub(crate) fn take_bound(&mut self) -> TimerSet {
        std::mem::take(&mut self.bound)
    }

    /// Whether a timer is stored that the clear dropped.
    pub(crate) fn has_dropped(&self, clear_index: Index) -> bool {
        self.ahead.first().is_some_and(|(origin, _)| *origin < clear_index)
    }

    /// Removes one timer that the clear dropped.
    pub(crate) fn pop_dropped(&mut self, clear_index: Index) -> bool {
        if !self.has_dropped(clear_index) {
            return false;
        }
        if let Some((_, key)) = self.ahead.pop_first() {
            self.remove(&key);
        }
        true
    }

    /// Notes that a timer of an earlier lifetime went.
    pub(crate) fn touch(&mut self, due_at: Timestamp) {
        self.touched.push(due_at);
    }

    pub(crate) fn take_touched(&mut self) -> Vec<Timestamp> {
        std::mem::take(&mut self.touched)
    }
}

/// Whether the lifetime that begins at `clear_index` has the timer.
fn is_there(timer: &TimerRow, clear_index: Index) -> bool {
    timer.origin_index.is_none_or(|origin| origin >= clear_index)
}
