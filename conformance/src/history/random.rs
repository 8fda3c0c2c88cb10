//! Choices that a seed stands for.

use crate::order::split_mix;

/// A sequence of choices; the same seed gives the same ones.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed, and of one of those who share it.
    #[must_use]
    pub fn of(seed: u64, who: u64) -> Self {
        let mut state = seed ^ who.wrapping_mul(0xd6e8_feb8_6659_fd93);
        split_mix(&mut state);
        Self(state)
    }

    /// One of the numbers below `n`, which is not zero.
    pub fn below(&mut self, n: u64) -> u64 {
        split_mix(&mut self.0) % n.max(1)
    }

    /// A number from `low` to `high`.
    pub fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True this often in a hundred times.
    pub fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// One of a list; None of an empty one.
    pub fn one<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let place = usize::try_from(self.below(list.len() as u64)).unwrap_or(0);
        list.get(place)
    }
}
