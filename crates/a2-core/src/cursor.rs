//! Cursors, heads, and the state of a head's dispatch.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Consumer, Error, Event, Holder, Index, Lane, LogName, Result, Timestamp};

/// Which of a consumer's cursors, without the event cursor's index (which is its head's).
///
/// A lane and a log of the same name are two cursors.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CursorKey {
    /// One event; all of a consumer's event cursors run concurrently.
    Event,
    /// The events appended for this lane, one after the other.
    Lane(Lane),
    /// Every event of the log that it takes, one after the other.
    Log(LogName),
}

impl CursorKey {
    /// The lane's or log's name; empty for an event cursor.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Event => "",
            Self::Lane(lane) => lane.as_str(),
            Self::Log(log) => log.as_str(),
        }
    }
}

/// Names a head: the current event of a cursor.
///
/// Heads are ordered by index, consumer, kind (event, lane, log) and name; every list of heads and
/// every limit uses this order.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeadRef {
    /// Whose cursor.
    pub consumer: Consumer,
    /// Which of its cursors.
    pub cursor: CursorKey,
    /// The event's index.
    pub index: Index,
}

impl HeadRef {
    /// The head of a consumer's cursor at `index`.
    #[must_use]
    pub fn new(consumer: Consumer, cursor: CursorKey, index: Index) -> Self {
        Self { consumer, cursor, index }
    }

    /// The cursor whose head this is.
    #[must_use]
    pub fn cursor_ref(&self) -> CursorRef {
        CursorRef {
            consumer: self.consumer.clone(),
            key: self.cursor.clone(),
            event: matches!(self.cursor, CursorKey::Event).then_some(self.index),
        }
    }
}

impl fmt::Debug for HeadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}@{}", self.consumer, self.cursor, self.index)
    }
}

impl Ord for HeadRef {
    fn cmp(&self, other: &Self) -> Ordering {
        self.index
            .cmp(&other.index)
            .then_with(|| self.consumer.cmp(&other.consumer))
            .then_with(|| self.cursor.cmp(&other.cursor))
    }
}

impl PartialOrd for HeadRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Names a cursor: a consumer and a key, an event cursor's with its index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "CursorRefWire")]
pub struct CursorRef {
    consumer: Consumer,
    key: CursorKey,
    event: Option<Index>,
}

#[derive(Deserialize)]
struct CursorRefWire {
    consumer: Consumer,
    key: CursorKey,
    event: Option<Index>,
}

impl TryFrom<CursorRefWire> for CursorRef {
    type Error = Error;
    fn try_from(wire: CursorRefWire) -> Result<Self> {
        let CursorRefWire { consumer, key, event } = wire;
        if matches!(key, CursorKey::Event) != event.is_some() {
            return Err(Error::invalid("event", "must be given for event cursors alone"));
        }
        Ok(Self { consumer, key, event })
    }
}

impl CursorRef {
    /// The cursor of one event.
    #[must_use]
    pub fn event(consumer: Consumer, index: Index) -> Self {
        Self { consumer, key: CursorKey::Event, event: Some(index) }
    }

    /// A lane's cursor.
    #[must_use]
    pub fn lane(consumer: Consumer, lane: Lane) -> Self {
        Self { consumer, key: CursorKey::Lane(lane), event: None }
    }

    /// A log's cursor.
    #[must_use]
    pub fn log(consumer: Consumer, log: LogName) -> Self {
        Self { consumer, key: CursorKey::Log(log), event: None }
    }

    /// Whose cursor.
    #[must_use]
    pub fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// Which of its cursors.
    #[must_use]
    pub fn key(&self) -> &CursorKey {
        &self.key
    }

    /// An event cursor's index.
    #[must_use]
    pub fn event_index(&self) -> Option<Index> {
        self.event
    }
}

/// How often a head was tried, by whom, and how that went.
///
/// A new head starts with everything zero or empty. `attempt_count` only grows while the head
/// exists; it is the fence that keeps a worker from before a take-over out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DispatchState {
    /// Number of the last attempt; 0 before the first claim.
    pub attempt_count: u64,
    /// When it was claimed first.
    pub first_claimed_at: Option<Timestamp>,
    /// When it was claimed last.
    pub last_claimed_at: Option<Timestamp>,
    /// Who holds it now.
    pub claim_holder: Option<Holder>,
    /// When the lease, or without a holder the hold before a retry, ends.
    pub claim_expires_at: Option<Timestamp>,
    /// Failures that count towards the budget.
    pub failure_count: u64,
    /// When it failed last.
    pub last_failed_at: Option<Timestamp>,
    /// The attempt that failed last.
    pub last_failed_attempt: Option<u64>,
    /// What that attempt said.
    pub last_error: Option<String>,
    /// When it was dead-lettered; empty while it is live.
    pub failed_at: Option<Timestamp>,
}

impl DispatchState {
    /// Whether the head is dead-lettered.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.failed_at.is_some()
    }

    /// Whether the head is leased or held for a retry: an expiry exactly now counts as expired.
    #[must_use]
    pub fn is_busy(&self, now: Timestamp) -> bool {
        self.claim_expires_at.is_some_and(|at| at > now)
    }

    /// Whether `attempt`'s claim is recorded on the head (its lease may have expired, as long as
    /// nobody took over).
    #[must_use]
    pub fn is_current(&self, attempt: u64) -> bool {
        self.failed_at.is_none()
            && self.attempt_count == attempt
            && attempt > 0
            && self.claim_holder.is_some()
    }
}

/// One cursor as `cursors` and `wake_log` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cursor {
    /// Whose cursor.
    pub consumer: Consumer,
    /// Which of its cursors.
    pub key: CursorKey,
    /// How far it got: event cursor: head − 1; lane: the last index completed or skipped; log: the
    /// last index passed.
    pub position: Index,
    /// The current event, none when idle.
    pub head: Option<Index>,
    /// The head's state; all empty when idle.
    pub state: DispatchState,
}

impl Cursor {
    /// For backends: a cursor with its head and the head's state.
    #[must_use]
    pub fn new(
        consumer: Consumer,
        key: CursorKey,
        position: Index,
        head: Option<Index>,
        state: DispatchState,
    ) -> Self {
        Self { consumer, key, position, head, state }
    }
}

/// A head handed to a worker, or found dead-lettered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DispatchedHead {
    /// Which head.
    pub head: HeadRef,
    /// Its event.
    pub event: Event,
    /// Its state after the call.
    pub state: DispatchState,
    /// The events that follow it in its run (log cursors claimed with `run` > 1).
    pub run: Vec<Event>,
}

impl DispatchedHead {
    /// For backends: a head with its event and state, without a run.
    #[must_use]
    pub fn new(head: HeadRef, event: Event, state: DispatchState) -> Self {
        Self { head, event, state, run: Vec::new() }
    }

    /// The attempt this claim is: the fence to complete or fail it with.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.state.attempt_count
    }

    /// The last event of the run: what `through` is when the whole run is done.
    #[must_use]
    pub fn run_through(&self) -> Index {
        self.run.last().map_or(self.head.index, |event| event.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_ordered_by_index_consumer_kind_name() {
        let c = |n| Consumer::new(n).unwrap();
        let i = Index::from(1);
        let expected = [
            HeadRef::new(c("a"), CursorKey::Event, i),
            HeadRef::new(c("a"), CursorKey::Lane(Lane::new("y").unwrap()), i),
            HeadRef::new(c("a"), CursorKey::Lane(Lane::new("z").unwrap()), i),
            HeadRef::new(c("a"), CursorKey::Log(LogName::new("b").unwrap()), i),
            HeadRef::new(c("b"), CursorKey::Event, i),
            HeadRef::new(c("a"), CursorKey::Event, Index::from(2)),
        ];
        let mut sorted = expected.to_vec();
        sorted.reverse();
        sorted.sort();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn an_expiry_exactly_now_is_expired() {
        let mut state = DispatchState::default();
        assert!(!state.is_busy(Timestamp::from_millis(0)));
        state.claim_expires_at = Some(Timestamp::from_millis(10));
        assert!(state.is_busy(Timestamp::from_millis(9)));
        assert!(!state.is_busy(Timestamp::from_millis(10)));
    }
}
