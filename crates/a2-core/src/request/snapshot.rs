//! Snapshots of folded state.

use std::collections::BTreeMap;

use crate::{Error, HeadRef, Index, Json, Result, StoreLimits, limits};

/// Reads a reducer's newest snapshot and the events after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadState {
    through: Index,
    snapshot_through: Option<Index>,
}

impl Default for ReadState {
    fn default() -> Self {
        Self::through(Index::MAX)
    }
}

impl ReadState {
    /// The state up to the log's head.
    #[must_use]
    pub fn latest() -> Self {
        Self::default()
    }

    /// The state up to `through`.
    #[must_use]
    pub fn through(through: Index) -> Self {
        Self { through, snapshot_through: None }
    }

    /// No snapshot above this index (one above `through` is never used).
    #[must_use]
    pub fn snapshot_through(mut self, index: Index) -> Self {
        self.snapshot_through = Some(index);
        self
    }

    /// The last event's index.
    #[must_use]
    pub fn end(&self) -> Index {
        self.through
    }

    /// The last index a snapshot may have.
    #[must_use]
    pub fn snapshot_end(&self) -> Index {
        self.snapshot_through.map_or(self.through, |index| index.min(self.through))
    }
}

/// One snapshot to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotWrite {
    index: Index,
    state: Json,
    pins: Vec<HeadRef>,
}

impl SnapshotWrite {
    /// The state folded up to and with the event at `index`.
    #[must_use]
    pub fn new(index: Index, state: Json) -> Self {
        Self { index, state, pins: Vec::new() }
    }

    /// Keeps the snapshot as long as one of these heads is live.
    ///
    /// # Errors
    /// `INVALID_INPUT` for more than 100.
    pub fn pins(mut self, pins: impl IntoIterator<Item = HeadRef>) -> Result<Self> {
        for pin in pins {
            self.pins.push(pin);
            if self.pins.len() > limits::SNAPSHOT_PINS {
                return Err(Error::invalid(
                    "pins",
                    format!("must be at most {}", limits::SNAPSHOT_PINS),
                ));
            }
        }
        Ok(self)
    }

    /// The last event folded in.
    #[must_use]
    pub fn index(&self) -> Index {
        self.index
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &Json {
        &self.state
    }

    /// The heads it is kept for.
    #[must_use]
    pub fn pinned_by(&self) -> &[HeadRef] {
        &self.pins
    }
}

/// Keeps snapshots of one reducer, in order of their indexes, each index once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PutSnapshots {
    writes: Vec<SnapshotWrite>,
}

impl PutSnapshots {
    /// Writes these; the same index twice merges to the last state and all pins.
    ///
    /// # Errors
    /// `INVALID_INPUT` for more than 100 writes, or more than 64 MiB of states.
    pub fn new(writes: impl IntoIterator<Item = SnapshotWrite>) -> Result<Self> {
        let mut merged: BTreeMap<Index, SnapshotWrite> = BTreeMap::new();
        let (mut count, mut bytes) = (0, 0);
        for write in writes {
            count += 1;
            bytes += write.state.byte_len();
            StoreLimits::ABSOLUTE.check_writes(count, bytes)?;
            match merged.get_mut(&write.index) {
                Some(earlier) => {
                    earlier.state = write.state;
                    earlier.pins.extend(write.pins);
                }
                None => {
                    merged.insert(write.index, write);
                }
            }
        }
        Ok(Self { writes: merged.into_values().collect() })
    }

    /// The writes, by index, each index once.
    #[must_use]
    pub fn writes(&self) -> &[SnapshotWrite] {
        &self.writes
    }
}
