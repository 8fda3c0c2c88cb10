//! Appending and reading.

use crate::event::Batch;
use crate::{Index, NewEvent, Result, Served, limits};

use super::checked_count;

/// Appends events to a session, all or none.
///
/// Every event has an id from here on: sending the same request again is a replay, never a second
/// append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    batch: Batch,
    served: Served,
    expected_head: Option<Index>,
    origin_index: Option<Index>,
}

impl Append {
    /// Appends `events` in this order. Events without an id get one (UUID v7).
    ///
    /// # Errors
    /// `INVALID_INPUT` for an id twice, or more than 10,000 events, 20,000 targets, 100 targets an
    /// event, or 64 MiB of names and payloads.
    pub fn new(events: impl IntoIterator<Item = NewEvent>) -> Result<Self> {
        Ok(Self {
            batch: Batch::for_append(events)?,
            served: Served::ALL,
            expected_head: None,
            origin_index: None,
        })
    }

    /// Appends one event.
    ///
    /// # Errors
    /// As [`Append::new`].
    pub fn one(event: NewEvent) -> Result<Self> {
        Self::new([event])
    }

    /// What the caller serves: whose pending work is reported, and which logs move. All by default.
    #[must_use]
    pub fn served(mut self, served: Served) -> Self {
        self.served = served;
        self
    }

    /// Refuses the append unless this is the log's head (`HEAD_CONFLICT`).
    #[must_use]
    pub fn expected_head(mut self, head: Index) -> Self {
        self.expected_head = Some(head);
        self
    }

    /// Refuses the append if the session was cleared after this index (`SESSION_CLEARED`).
    #[must_use]
    pub fn origin_index(mut self, origin: Index) -> Self {
        self.origin_index = Some(origin);
        self
    }

    /// The events, each with an id.
    #[must_use]
    pub fn events(&self) -> &[NewEvent] {
        self.batch.events()
    }

    /// What the caller serves.
    #[must_use]
    pub fn served_list(&self) -> &Served {
        &self.served
    }

    /// The head that must be.
    #[must_use]
    pub fn head_expected(&self) -> Option<Index> {
        self.expected_head
    }

    /// The index after which no clear may lie.
    #[must_use]
    pub fn origin(&self) -> Option<Index> {
        self.origin_index
    }
}

/// A range of a log: the indexes in (after, through].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRange {
    after: Index,
    through: Index,
    limit: usize,
}

impl Default for ReadRange {
    fn default() -> Self {
        Self { after: Index::ZERO, through: Index::MAX, limit: limits::READ_DEFAULT }
    }
}

impl ReadRange {
    /// Everything after `after`, as far as one answer goes.
    #[must_use]
    pub fn after(after: Index) -> Self {
        Self { after, ..Self::default() }
    }

    /// Nothing beyond `through`.
    #[must_use]
    pub fn through(mut self, through: Index) -> Self {
        self.through = through;
        self
    }

    /// At most this many events: 1 to 10,000, 1,000 by default.
    ///
    /// # Errors
    /// `INVALID_INPUT` outside of that.
    pub fn limit(mut self, limit: usize) -> Result<Self> {
        self.limit = checked_count("limit", limit, limits::READ_MAX)?;
        Ok(self)
    }

    /// The index before the first.
    #[must_use]
    pub fn start_after(&self) -> Index {
        self.after
    }

    /// The last index.
    #[must_use]
    pub fn end(&self) -> Index {
        self.through
    }

    /// The most events.
    #[must_use]
    pub fn max_events(&self) -> usize {
        self.limit
    }
}
