//! A list that nearly always has one entry, which then needs no memory of its own: an event's targets.

/// An ordered set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    /// At least two.
    Many(Vec<T>),
}

impl<T: Ord> Few<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(entry) => std::slice::from_ref(entry),
            Self::Many(entries) => entries,
        }
    }

    /// Puts an entry in its place, unless it is there.
    pub(crate) fn insert(&mut self, entry: T) {
        let Err(place) = self.as_slice().binary_search(&entry) else { return };
        match std::mem::take(self) {
            Self::None => *self = Self::One(entry),
            Self::One(only) => {
                let mut entries = vec![only];
                entries.insert(place, entry);
                *self = Self::Many(entries);
            }
            Self::Many(mut entries) => {
                entries.insert(place, entry);
                *self = Self::Many(entries);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_ordered_and_each_counts_once() {
        let mut few = Few::default();
        assert_eq!(few.as_slice(), [0_u8; 0]);
        for (entry, expected) in [
            (3, &[3][..]),
            (3, &[3]),
            (1, &[1, 3]),
            (3, &[1, 3]),
            (2, &[1, 2, 3]),
            (9, &[1, 2, 3, 9]),
        ] {
            few.insert(entry);
            assert_eq!(few.as_slice(), expected);
        }
    }
}
