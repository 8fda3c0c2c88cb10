//! The rows the engine works on.

use crate::outcome::Snapshot;
use crate::{
    Consumer, DispatchState, Event, EventId, EventType, HeadRef, Index, Json, Lane, LogName,
    LogTypes, NewEvent, ReducerName, Result, SessionId, TimerKey, Timestamp,
};

/// Where a session's log stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogState {
    /// The last index; 0 for an empty log.
    pub head: Index,
    /// The latest clear marker; 0 when never cleared.
    pub clear_index: Index,
}

/// What a head row is to its cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeadStatus {
    /// Waits on its lane behind the head.
    Queued,
    /// The cursor's head: free, leased or held for a retry.
    Live,
    /// The cursor's head, dead-lettered.
    Dead,
    /// Completed or skipped; kept for event and lane cursors, so that a completion can be repeated.
    Done,
}

/// How a head was finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoneRecord {
    /// The attempt that completed it; none when it was skipped.
    pub attempt: Option<u64>,
    /// When.
    pub at: Timestamp,
    /// The index before the first event that was returned: they follow it one by one.
    pub returned_after: Index,
    /// How many were returned.
    pub returned: u64,
}

/// One event as one cursor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadRow {
    /// What it is to its cursor.
    pub status: HeadStatus,
    /// Its dispatch state.
    pub state: DispatchState,
    /// How it was finished, when it was.
    pub done: Option<DoneRecord>,
}

impl HeadRow {
    /// A new row, with an empty state.
    #[must_use]
    pub fn new(status: HeadStatus) -> Self {
        Self { status, state: DispatchState::default(), done: None }
    }

    /// When the row's lease or hold ends, for a live one that has any.
    #[must_use]
    pub fn held_until(&self) -> Option<Timestamp> {
        match self.status {
            HeadStatus::Live => self.state.claim_expires_at,
            HeadStatus::Queued | HeadStatus::Dead | HeadStatus::Done => None,
        }
    }
}

/// A log cursor.
///
/// It may have been written in an earlier lifetime: the engine takes a position below the clear as
/// the clear, and a head at or below it as none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// The last index it has passed.
    pub position: Index,
    /// Its head, none when idle.
    pub head: Option<Index>,
    /// The types recorded at its last touch with a declaration.
    pub types: LogTypes,
    /// Its last completion, until the next completion or skip.
    pub last: Option<(Index, DoneRecord)>,
}

/// A lane of the current lifetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRow {
    /// Whose lane.
    pub consumer: Consumer,
    /// Which lane.
    pub lane: Lane,
    /// The last index it completed or skipped in this lifetime; none before the first.
    pub position: Option<Index>,
    /// Its head (live or dead), none when idle.
    pub head: Option<Index>,
}

/// A timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerRow {
    /// Its key.
    pub key: TimerKey,
    /// When it is due.
    pub due_at: Timestamp,
    /// The event that it appends; has an id.
    pub event: NewEvent,
    /// A clear above this index drops it.
    pub origin_index: Option<Index>,
}

/// Where a listing by consumer and name begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFrom<'a, N> {
    /// At the beginning.
    Start,
    /// With this consumer's first.
    Consumer(&'a Consumer),
    /// After this consumer's entry of this name.
    After(&'a Consumer, &'a N),
    /// After this consumer's last.
    PastConsumer(&'a Consumer),
}

/// The rows of one session, inside one transaction.
///
/// Every method sees what the earlier ones of the transaction wrote. Except for
/// [`log`](Tables::log) and [`logs`](Tables::logs), the methods see the *current lifetime* alone:
/// event ids, types, heads, lanes, snapshots, pins and timers (by their origin) below the latest
/// clear marker do not exist, whether or not they are still stored.
///
/// Head order is that of [`HeadRef`]. An error from a method that writes makes the engine return at
/// once; the backend then rolls back.
pub trait Tables {
    /// The session.
    fn session(&self) -> &SessionId;

    /// Where the log stands.
    fn log_state(&mut self) -> Result<LogState>;

    // Events.

    /// The index of the event that owns `id` in this lifetime (the marker owns its id).
    fn owner(&mut self, id: &EventId) -> Result<Option<Index>>;

    /// Stores an event at head + 1, which becomes the head.
    fn add_event(&mut self, event: &Event) -> Result<()>;

    /// The event at `index`, none when it is not stored. Never asked below the clear marker.
    fn event(&mut self, index: Index) -> Result<Option<Event>>;

    /// The stored events in (after, through], in order: at most `limit`, and none after the one with
    /// which more than `max_bytes` of payload are reached. Never asked below the clear marker.
    fn events(
        &mut self,
        after: Index,
        through: Index,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<Event>>;

    /// The first index after `after` whose event has one of `types` (sorted, not empty). Never asked
    /// with an `after` below the clear marker.
    fn next_of_types(&mut self, types: &[EventType], after: Index) -> Result<Option<Index>>;

    // Heads.

    /// The row of a head. For a log cursor only its present head has one.
    fn head(&mut self, at: &HeadRef) -> Result<Option<HeadRow>>;

    /// Adds a row with an empty state: [`Live`](HeadStatus::Live) and free, or
    /// [`Queued`](HeadStatus::Queued). There was none. Event and lane cursors get theirs with the
    /// event, those of one event in head order.
    fn add_head(&mut self, at: &HeadRef, status: HeadStatus) -> Result<()>;

    /// Replaces the row `before`, which is what [`head`](Tables::head) gave, with `after`.
    fn update_head(&mut self, at: &HeadRef, before: &HeadRow, after: &HeadRow) -> Result<()>;

    /// Removes the row `before` (a log cursor's head, when it moves on).
    fn remove_head(&mut self, at: &HeadRef, before: &HeadRow) -> Result<()>;

    /// Whether every row of the lane is done, or there is none.
    fn lane_is_idle(&mut self, consumer: &Consumer, lane: &Lane) -> Result<bool>;

    /// The lane's first row after `after`.
    fn lane_next(
        &mut self,
        consumer: &Consumer,
        lane: &Lane,
        after: Index,
    ) -> Result<Option<Index>>;

    /// A log cursor, also one from an earlier lifetime.
    fn log(&mut self, consumer: &Consumer, name: &LogName) -> Result<Option<LogRow>>;

    /// Stores a log cursor.
    fn put_log(&mut self, consumer: &Consumer, name: &LogName, row: &LogRow) -> Result<()>;

    // What can be claimed.

    /// The consumers that have live heads.
    fn live_consumers(&mut self) -> Result<Vec<Consumer>>;

    /// Whether the consumer has a live head; any consumer for none.
    fn has_live(&mut self, consumer: Option<&Consumer>) -> Result<bool>;

    /// The consumer's live heads without an expiry, in head order, after `after`, with an index of
    /// at most `through`; at most `limit`.
    fn free_heads(
        &mut self,
        consumer: &Consumer,
        after: Option<&HeadRef>,
        through: Index,
        limit: usize,
    ) -> Result<Vec<HeadRef>>;

    /// The consumer's live heads with an expiry of at most `until`, by expiry and then head order,
    /// after `after`; at most `limit`.
    fn held_heads(
        &mut self,
        consumer: &Consumer,
        after: Option<&(Timestamp, HeadRef)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, HeadRef)>>;

    // Listings.

    /// The dead-lettered heads after `after`, in head order; at most `limit`.
    fn dead_heads(&mut self, after: Option<&HeadRef>, limit: usize) -> Result<Vec<HeadRef>>;

    /// Lanes with a row in this lifetime, by consumer and name; at most `limit`.
    fn lanes(&mut self, from: ListFrom<'_, Lane>, limit: usize) -> Result<Vec<LaneRow>>;

    /// Log cursors, also those from an earlier lifetime, by consumer and name; at most `limit`.
    fn logs(
        &mut self,
        from: ListFrom<'_, LogName>,
        limit: usize,
    ) -> Result<Vec<(Consumer, LogName, LogRow)>>;

    /// Event cursors with a head (live or dead), by consumer and index; at most `limit`.
    fn event_heads(
        &mut self,
        from: ListFrom<'_, Index>,
        limit: usize,
    ) -> Result<Vec<(Consumer, Index)>>;

    // Snapshots.

    /// The reducer's newest snapshot with an index of at most `through`.
    fn snapshot(&mut self, reducer: &ReducerName, through: Index) -> Result<Option<Snapshot>>;

    /// The index of the reducer's latest snapshot.
    fn latest_snapshot(&mut self, reducer: &ReducerName) -> Result<Option<Index>>;

    /// Stores a snapshot in place of one of the same index.
    fn put_snapshot(&mut self, reducer: &ReducerName, index: Index, state: &Json) -> Result<()>;

    /// Removes a snapshot.
    fn remove_snapshot(&mut self, reducer: &ReducerName, index: Index) -> Result<()>;

    /// Whether a pin names the snapshot.
    fn is_pinned(&mut self, reducer: &ReducerName, index: Index) -> Result<bool>;

    /// Pins a snapshot for a head; again is nothing.
    fn add_pin(&mut self, head: &HeadRef, reducer: &ReducerName, index: Index) -> Result<()>;

    /// Removes the pins of a head and gives the snapshots they named.
    fn take_pins(&mut self, head: &HeadRef) -> Result<Vec<(ReducerName, Index)>>;

    // Lifetimes.

    /// Stores the clear marker at head + 1, which becomes the head and the clear index: everything
    /// below belongs to an earlier lifetime from here on. At a cost that does not grow with it.
    fn start_lifetime(&mut self, marker: &Event) -> Result<()>;

    // Timers.

    /// A timer by key.
    fn timer(&mut self, key: &TimerKey) -> Result<Option<TimerRow>>;

    /// Stores a timer in place of one of the same key, also one of an earlier lifetime.
    fn put_timer(&mut self, timer: &TimerRow) -> Result<()>;

    /// Removes a timer.
    fn remove_timer(&mut self, key: &TimerKey) -> Result<()>;

    /// Timers by key, after `after`; at most `limit`.
    fn timers(&mut self, after: Option<&TimerKey>, limit: usize) -> Result<Vec<TimerRow>>;

    /// Timers due at `now` or before, by due time and key; at most `limit`.
    fn due_timers(&mut self, now: Timestamp, limit: usize) -> Result<Vec<TimerRow>>;

    /// When the next timer is due.
    fn next_due(&mut self) -> Result<Option<Timestamp>>;
}
