//! What the operations answer.
//!
//! Answers are structs that may grow, with constructors for backends; outcomes that a caller must
//! look at are exhaustive enums.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::request::AttemptRef;
use crate::{
    Cursor, DispatchedHead, Event, Field, HeadRef, Index, Json, NewEvent, PageToken, Participant,
    SessionId, TimerKey, Timestamp,
};

/// Defines an answer: a growing struct with one constructor that takes every field.
macro_rules! answer {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl $name {
            /// For backends: the answer with all its fields.
            #[allow(clippy::too_many_arguments, clippy::double_must_use)]
            #[must_use]
            pub fn new($($field: $type),*) -> Self {
                Self { $($field),* }
            }
        }
    };
}

answer!(
    /// Events that were appended.
    Appended {
        /// The events as they stand in the log, in the order of the request.
        events: Vec<Event>,
        /// Whether a served consumer has a live head in the session (busy ones count): the caller
        /// should see that it is worked off.
        has_pending: bool,
        /// Whether the events had been appended by an earlier call.
        replayed: bool,
    }
);

answer!(
    /// A consistent piece of a log.
    Events {
        /// The events, in order, without a gap.
        events: Vec<Event>,
        /// The log's last index; 0 for an empty session.
        head: Index,
        /// The latest clear marker; 0 when never cleared.
        clear_index: Index,
    }
);

/// What a claim found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Claim {
    /// Heads that the caller now holds (and such as were dead-lettered because their lease lapsed
    /// once too often: `state.failed_at` is set).
    Claimed(Claimed),
    /// There is work, all of it leased or held for a retry.
    Busy(Busy),
    /// There is no work.
    Settled,
}

answer!(
    /// Heads that the caller now holds.
    #[must_use]
    Claimed {
        /// The heads, in head order.
        heads: Vec<DispatchedHead>,
        /// The log's last index.
        head: Index,
        /// The latest clear marker; 0 when never cleared.
        clear_index: Index,
    }
);

answer!(
    /// All work is leased or held.
    #[must_use]
    Busy {
        /// When to ask again: the soonest expiry is not sooner than this.
        retry_after: Duration,
    }
);

answer!(
    /// What became of leases that were renewed.
    #[must_use]
    Renewal {
        /// These last for the whole ttl from now.
        renewed: Vec<AttemptRef>,
        /// These are lost: the work was completed, taken over or cleared. A claim that is in
        /// neither list can no longer be renewed either (an expired lease, say).
        superseded: Vec<AttemptRef>,
    }
);

answer!(
    /// Claims that were given back.
    Released {
        /// Those that the holder still held.
        released: Vec<AttemptRef>,
    }
);

/// An outcome, and beside it the claim that was asked for with `then_claim`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct WithClaim<T> {
    /// What became of the attempt.
    pub outcome: T,
    /// What the claim found; none when none was asked for.
    pub claim: Option<Claim>,
}

impl<T> WithClaim<T> {
    /// For backends: an outcome with the claim's answer.
    pub fn new(outcome: T, claim: Option<Claim>) -> Self {
        Self { outcome, claim }
    }
}

/// What became of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Completion {
    /// The cursor moved and the returned events stand in the log.
    Completed(Appended),
    /// The attempt is no longer current; nothing was written.
    Superseded,
}

/// What became of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Failure {
    /// It will be retried.
    Failed {
        /// Failures so far.
        failure_count: u64,
    },
    /// Its budget is spent: the head waits for a redrive.
    DeadLettered {
        /// Failures so far.
        failure_count: u64,
    },
    /// The attempt is no longer current; nothing was written.
    Superseded,
}

answer!(
    /// A page of dead letters, in head order.
    DeadLetters {
        /// The dead letters with their events.
        heads: Vec<DispatchedHead>,
        /// Where the next page begins; none at the end.
        next: Option<PageToken>,
    }
);

answer!(
    /// A page of a session's cursors, by consumer, kind (lane, log, event) and name.
    Cursors {
        /// The cursors.
        cursors: Vec<Cursor>,
        /// The log's last index.
        head: Index,
        /// The latest clear marker; 0 when never cleared.
        clear_index: Index,
        /// Where the next page begins; none at the end.
        next: Option<PageToken>,
    }
);

answer!(
    /// What a redrive did.
    #[must_use]
    Redriven {
        /// Whether the head was a dead letter and this call redrove it.
        redriven: bool,
        /// Whether a served consumer has a live head in the session.
        has_pending: bool,
    }
);

answer!(
    /// A log cursor brought up to date.
    WokenLog {
        /// The cursor as it stands now.
        cursor: Cursor,
        /// The log's last index.
        head: Index,
        /// The latest clear marker; 0 when never cleared.
        clear_index: Index,
    }
);

answer!(
    /// A stored snapshot.
    Snapshot {
        /// The last event folded in.
        index: Index,
        /// The state.
        state: Json,
    }
);

answer!(
    /// A reducer's newest snapshot and the events after it.
    StateRead {
        /// The index of the latest snapshot of the lifetime, also when a cap hid it.
        latest_snapshot: Option<Index>,
        /// The newest snapshot within the caps.
        snapshot: Option<Snapshot>,
        /// The events after the snapshot (from the clear marker on without one), in order.
        events: Vec<Event>,
        /// How far the events go; below the end asked for, the rest comes by `read`.
        through_index: Index,
        /// The log's last index.
        head: Index,
        /// The latest clear marker; 0 when never cleared.
        clear_index: Index,
    }
);

answer!(
    /// What became of snapshot writes.
    SnapshotsPut {
        /// The indexes that are stored now, of those written.
        stored: Vec<Index>,
        /// The reducer's latest snapshot after the call.
        latest_snapshot: Option<Index>,
    }
);

answer!(
    /// What a clear did.
    #[must_use]
    Cleared {
        /// Whether the session is clear: by this call, or already.
        cleared: bool,
        /// The log's last index after the call.
        index: Index,
        /// The latest clear marker; 0 when never cleared.
        clear_index: Index,
    }
);

answer!(
    /// What one call of reclaim did.
    Reclaimed {
        /// Rows deleted; informative.
        deleted: u64,
        /// Nothing is left below the marker.
        done: bool,
    }
);

answer!(
    /// One session.
    SessionInfo {
        /// Its name.
        session: SessionId,
        /// The log's last index.
        head: Index,
        /// The latest clear marker; 0 when never cleared.
        clear_index: Index,
    }
);

answer!(
    /// A page of the sessions that were ever appended to.
    Sessions {
        /// The sessions.
        sessions: Vec<SessionInfo>,
        /// Where the next page begins; none at the end.
        next: Option<PageToken>,
    }
);

answer!(
    /// A session with work.
    PendingSession {
        /// Its name.
        session: SessionId,
        /// Nothing can be claimed and no timer is due before this.
        not_before: Timestamp,
    }
);

answer!(
    /// A page of the sessions with work, in no order; may be short, may repeat a session.
    Pending {
        /// The sessions.
        sessions: Vec<PendingSession>,
        /// Where the next page begins; the pass ends when there is none.
        next: Option<PageToken>,
    }
);

answer!(
    /// A timer that was set.
    Scheduled {
        /// When it is due, by the store's clock.
        due_at: Timestamp,
    }
);

answer!(
    /// What became of a timer that was to be removed.
    Unscheduled {
        /// Whether there was one.
        removed: bool,
    }
);

answer!(
    /// One timer.
    Timer {
        /// Its key.
        key: TimerKey,
        /// When it is due, by the store's clock.
        due_at: Timestamp,
        /// The event that it appends.
        event: NewEvent,
        /// The index after which a clear drops it.
        origin_index: Option<Index>,
    }
);

answer!(
    /// A page of a session's timers, by key.
    TimerPage {
        /// The timers.
        timers: Vec<Timer>,
        /// Where the next page begins; none at the end.
        next: Option<PageToken>,
    }
);

/// One ephemeral field of a participant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PresenceRow {
    /// Who.
    pub participant: Participant,
    /// Which field.
    pub field: Field,
    /// Its value.
    pub value: Json,
    /// The log index that the participant had seen at the field's last write.
    pub seen: Option<Index>,
    /// When it was written last.
    pub updated_at: Timestamp,
    /// When it goes without a further write.
    pub expires_at: Timestamp,
}

impl PresenceRow {
    /// For backends: a row with all its fields.
    #[must_use]
    pub fn new(
        participant: Participant,
        field: Field,
        value: Json,
        seen: Option<Index>,
        updated_at: Timestamp,
        expires_at: Timestamp,
    ) -> Self {
        Self { participant, field, value, seen, updated_at, expires_at }
    }
}

answer!(
    /// A namespace as it is: the rows that have not expired, by participant and field.
    PresenceRows {
        /// The rows.
        rows: Vec<PresenceRow>,
    }
);

/// What a presence write or an expiry changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PresencePatch {
    /// Who.
    pub participant: Participant,
    /// The log index that the participant had seen.
    pub seen: Option<Index>,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// The store handle that made the change, so that a watcher can tell its own. An expiry is
    /// reported by the watcher's own handle.
    pub source: String,
    /// The changed fields; none means removed.
    pub values: BTreeMap<Field, Option<Json>>,
}

impl PresencePatch {
    /// For backends: a patch with all its fields.
    #[must_use]
    pub fn new(
        participant: Participant,
        seen: Option<Index>,
        at: Timestamp,
        source: String,
        values: BTreeMap<Field, Option<Json>>,
    ) -> Self {
        Self { participant, seen, at, source, values }
    }
}

/// What a presence watcher is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresenceChange {
    /// The namespace as it is: the first item.
    Rows(PresenceRows),
    /// A change since.
    Patch(PresencePatch),
}

/// A hint that a session may have work.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkHint {
    /// The session that was appended to or redriven, or has a timer due.
    pub session: SessionId,
}

impl WorkHint {
    /// For backends: a hint for `session`.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self { session }
    }
}

impl Completion {
    /// The events that were appended; none when superseded.
    #[must_use]
    pub fn completed(self) -> Option<Appended> {
        match self {
            Self::Completed(appended) => Some(appended),
            Self::Superseded => None,
        }
    }
}

impl Claim {
    /// The heads that were claimed; empty when there was nothing to claim.
    #[must_use]
    pub fn into_heads(self) -> Vec<DispatchedHead> {
        match self {
            Self::Claimed(claimed) => claimed.heads,
            Self::Busy(_) | Self::Settled => Vec::new(),
        }
    }
}

impl DispatchedHead {
    /// Names the attempt, for `renew_claims` and `release_claims`.
    #[must_use]
    pub fn attempt_ref(&self) -> AttemptRef {
        AttemptRef::new(self.head.clone(), self.attempt())
    }

    /// Names the attempt as a cause.
    #[must_use]
    pub fn cause(&self) -> crate::Cause {
        crate::Cause::new(HeadRef::clone(&self.head), self.attempt())
    }
}
