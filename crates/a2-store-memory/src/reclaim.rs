//! Emptying a lifetime that a clear has put away, a few entries at a time.

use crate::lifetime::Lifetime;

impl Lifetime {
    /// Takes out at most `limit` entries and says how many; fewer only when nothing is left.
    ///
    /// What then remains is tables of numbers, whose memory goes in one piece each.
    pub(crate) fn drain(&mut self, limit: usize) -> usize {
        let mut left = limit;
        left -= self.log.shorten(left);
        left -= self.rows.shorten(left);
        left -= self.states.shorten(left);
        left -= shorten(&mut self.lanes, left);
        left -= shorten(&mut self.types, left);
        while left > 0 && self.pop() {
            left -= 1;
        }
        limit - left
    }

    fn pop(&mut self) -> bool {
        if let Some(consumer) = self.consumers.last_mut() {
            return consumer.pop() || self.consumers.pop().is_some();
        }
        if let Some(mut reducer) = self.reducers.last_entry() {
            let state = reducer.get_mut();
            if state.snapshots.pop_last().is_none() && state.pins.pop_last().is_none() {
                reducer.remove();
            }
            return true;
        }
        if let Some(mut pins) = self.pins.last_entry() {
            if pins.get_mut().pop_last().is_none() {
                pins.remove();
            }
            return true;
        }
        self.dead.pop_last().is_some() || self.consumers_by_name.pop_last().is_some()
    }
}

fn shorten<T>(rows: &mut Vec<T>, by: usize) -> usize {
    let by = by.min(rows.len());
    rows.truncate(rows.len() - by);
    by
}
