//! What was known when.

/// The greatest of some numbers, each known from a certain note on.
#[derive(Debug, Default)]
pub(super) struct Growing {
    /// By place; the numbers are made to grow when the last is there.
    known: Vec<(usize, u64)>,
}

impl Growing {
    pub(super) fn new(mut known: Vec<(usize, u64)>) -> Self {
        known.sort_unstable();
        let mut greatest = 0;
        for (_, number) in &mut known {
            greatest = greatest.max(*number);
            *number = greatest;
        }
        Self { known }
    }

    /// The greatest that was known before this note; 0 when none was.
    pub(super) fn before(&self, place: usize) -> u64 {
        let count = self.known.partition_point(|(from, _)| *from < place);
        count.checked_sub(1).and_then(|last| self.known.get(last)).map_or(0, |(_, n)| *n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_before_a_place() {
        let growing = Growing::new(vec![(9, 4), (3, 7), (1, 2)]);
        let at = [0, 1, 2, 3, 4, 9, 10].map(|place| growing.before(place));
        assert_eq!(at, [0, 0, 2, 2, 7, 7, 7]);
    }
}
