//! What was asked and what was answered, as it is written down: enough to judge a history, no more.

use a2_core::{
    AttemptRef, Claim, Cleared, Completion, Cursor, DispatchedHead, Event, EventId, EventType,
    Failure, HeadRef, Index, Json, NewEvent, SessionId, Target, TimerKey, Timestamp,
};
use serde::{Deserialize, Serialize};

/// One line of a history. Its place among the others is the order in which things happened: a call is
/// noted before it begins, its answer once it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// A call begins.
    Began {
        /// Its number; no other call of the history has it.
        call: u64,
        /// Who calls: one after the other.
        worker: u32,
        /// The session, if it is about one.
        session: Option<SessionId>,
        /// What is asked.
        asked: Asked,
    },
    /// A call is answered. One that never is may have been done, or may be done at any later time.
    Ended {
        /// The call's number.
        call: u64,
        /// What is answered.
        answer: Answer,
    },
    /// A stream, which a call has opened, gives something.
    Yielded {
        /// The number of the call that has opened it.
        stream: u64,
        /// The event.
        event: Event,
    },
    /// A stream ends by itself.
    StreamEnded {
        /// The number of the call that has opened it.
        stream: u64,
        /// With this error, or in silence.
        error: Option<String>,
    },
    /// A stream is dropped.
    StreamDropped {
        /// The number of the call that has opened it.
        stream: u64,
    },
    /// A process was killed; its streams with it.
    Killed {
        /// Its number at the recorder.
        process: u32,
    },
    /// From here on all work is worked off.
    Draining,
    /// From here on nothing is to be done any more, and everything is read.
    Settled,
}

/// An event to be appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its id.
    pub id: EventId,
    /// Its type.
    pub event_type: EventType,
    /// Its payload.
    pub payload: Json,
    /// Whom it is for.
    pub targets: Vec<Target>,
}

impl Sent {
    /// None for an event without an id, which no request has.
    pub(super) fn of(event: &NewEvent) -> Option<Self> {
        Some(Self {
            id: event.event_id()?.clone(),
            event_type: event.event_type().clone(),
            payload: event.payload().clone(),
            targets: event.target_list().to_vec(),
        })
    }

    pub(super) fn all(events: &[NewEvent]) -> Vec<Self> {
        events.iter().filter_map(Self::of).collect()
    }
}

/// A claim, also one that follows a completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claiming {
    /// Who claims.
    pub holder: String,
    /// For how long, in milliseconds.
    pub ttl: u64,
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the operations and their parameters")]
pub enum Asked {
    Append {
        events: Vec<Sent>,
    },
    Read {
        after: Index,
        through: Index,
        limit: usize,
    },
    Stream {
        after: Index,
    },
    Claim {
        claim: Claiming,
    },
    Renew {
        claims: Vec<AttemptRef>,
        ttl: u64,
    },
    Release {
        claims: Vec<AttemptRef>,
    },
    Complete {
        attempt: AttemptRef,
        returned: Vec<Sent>,
        through: Option<Index>,
        claim: Option<Claiming>,
    },
    Fail {
        attempt: AttemptRef,
        budget: Option<u64>,
        claim: Option<Claiming>,
    },
    DeadLetters,
    Redrive {
        head: HeadRef,
        skip: bool,
    },
    WakeLog,
    Cursors,
    ReadState {
        through: Index,
    },
    PutSnapshots {
        indexes: Vec<Index>,
    },
    Clear {
        id: EventId,
    },
    Reclaim,
    Schedule {
        key: TimerKey,
        event: Sent,
    },
    Unschedule {
        key: TimerKey,
    },
    Timers,
    FireTimers,
    Sessions,
    Pending {
        first: bool,
    },
}

/// What a call answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named after the outcomes and their fields")]
pub enum Answer {
    Appended {
        events: Vec<Event>,
        replayed: bool,
    },
    Events {
        events: Vec<Event>,
        head: Index,
        clear_index: Index,
    },
    Claimed {
        heads: Vec<DispatchedHead>,
    },
    Renewed {
        renewed: Vec<AttemptRef>,
        superseded: Vec<AttemptRef>,
    },
    Released {
        released: Vec<AttemptRef>,
    },
    Completed {
        events: Vec<Event>,
        replayed: bool,
        heads: Vec<DispatchedHead>,
    },
    Failed {
        failure_count: u64,
        dead: bool,
        heads: Vec<DispatchedHead>,
    },
    /// The attempt is no longer current.
    Superseded {
        heads: Vec<DispatchedHead>,
    },
    DeadLetters {
        heads: Vec<DispatchedHead>,
    },
    Redriven {
        redriven: bool,
    },
    Cursors {
        cursors: Vec<Cursor>,
        head: Index,
        clear_index: Index,
    },
    State {
        latest: Option<Index>,
        snapshot: Option<(Index, Json)>,
        events: Vec<Event>,
        clear_index: Index,
    },
    Put {
        stored: Vec<Index>,
    },
    Cleared {
        cleared: bool,
        index: Index,
        clear_index: Index,
    },
    Scheduled {
        due_at: Timestamp,
    },
    Unscheduled {
        removed: bool,
    },
    Timers {
        keys: Vec<TimerKey>,
    },
    /// The sessions of a page, and whether it is the last.
    Sessions {
        sessions: Vec<SessionId>,
        last: bool,
    },
    /// Done, with nothing to be judged.
    Done,
    /// An error that says that nothing was done: its code and text.
    Refused {
        code: String,
        text: String,
    },
}

impl Answer {
    pub(super) fn completed(outcome: Completion, claim: Option<Claim>) -> Self {
        let heads = claim.map(Claim::into_heads).unwrap_or_default();
        match outcome {
            Completion::Completed(done) => {
                Self::Completed { events: done.events, replayed: done.replayed, heads }
            }
            Completion::Superseded => Self::Superseded { heads },
        }
    }

    pub(super) fn failed(outcome: Failure, claim: Option<Claim>) -> Self {
        let heads = claim.map(Claim::into_heads).unwrap_or_default();
        match outcome {
            Failure::Failed { failure_count } => Self::Failed { failure_count, dead: false, heads },
            Failure::DeadLettered { failure_count } => {
                Self::Failed { failure_count, dead: true, heads }
            }
            Failure::Superseded => Self::Superseded { heads },
        }
    }

    pub(super) fn cleared(done: &Cleared) -> Self {
        let Cleared { cleared, index, clear_index, .. } = *done;
        Self::Cleared { cleared, index, clear_index }
    }
}
