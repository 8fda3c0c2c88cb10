//! The last events of one session, shared by its streams.

use std::collections::VecDeque;

use crate::{Event, Index};

/// Most events kept.
pub(super) const RING_EVENTS: usize = 128;
/// Most bytes kept, payloads and [`EVENT_BYTES`] each.
pub(super) const RING_BYTES: usize = 256 * 1024;
/// What an event is taken to cost beside its payload.
const EVENT_BYTES: usize = 256;

/// A piece of the log without a gap.
#[derive(Debug, Default)]
pub(super) struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
}

fn cost(event: &Event) -> usize {
    event.payload.byte_len() + EVENT_BYTES
}

impl Ring {
    /// Takes in committed events, which follow each other.
    ///
    /// Commits may be told out of order. What does not join what is kept replaces it if it is newer;
    /// who still needs the rest reads the log.
    pub(super) fn push(&mut self, batch: &[Event]) {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return };
        if last.index.get().checked_sub(first.index.get()) != Some(batch.len() as u64 - 1) {
            self.clear();
            return;
        }
        if let (Some(kept_first), Some(kept_last)) = (self.events.front(), self.events.back()) {
            if last.index <= kept_last.index {
                if last.index.next() == kept_first.index {
                    self.push_front(batch);
                }
                return;
            }
            if first.index != kept_last.index.next() {
                self.clear();
            }
        }
        // Only the end of a long batch stays.
        let mut bytes = 0;
        let fits = batch.iter().rev().take(RING_EVENTS).take_while(|event| {
            bytes += cost(event);
            bytes <= RING_BYTES
        });
        let fits = fits.count();
        if fits < batch.len() {
            self.clear();
        }
        for event in &batch[batch.len() - fits..] {
            self.bytes += cost(event);
            self.events.push_back(event.clone());
        }
        while self.events.len() > RING_EVENTS || self.bytes > RING_BYTES {
            self.bytes -= self.events.pop_front().as_ref().map_or(0, cost);
        }
    }

    /// A batch right before what is kept, told late.
    fn push_front(&mut self, batch: &[Event]) {
        for event in batch.iter().rev() {
            let bytes = self.bytes + cost(event);
            if self.events.len() >= RING_EVENTS || bytes > RING_BYTES {
                return;
            }
            self.bytes = bytes;
            self.events.push_front(event.clone());
        }
    }

    /// Appends to `out` everything from `next` on; answers whether that was anything.
    pub(super) fn copy_from(&self, next: Index, out: &mut VecDeque<Event>) -> bool {
        let Some(first) = self.events.front() else { return false };
        let Some(skip) = next.get().checked_sub(first.index.get()) else { return false };
        match usize::try_from(skip) {
            Ok(skip) if skip < self.events.len() => {
                out.extend(self.events.range(skip..).cloned());
                true
            }
            _ => false,
        }
    }

    /// Forgets everything, and gives back more than a little memory.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.events.shrink_to(8);
        self.bytes = 0;
    }
}
