//! What actors write into logs.
//!
//! | type | payload | |
//! |---|---|---|
//! | `a2.actor.message` | actor, message, type, payload | a message for an actor's lane |
//! | `a2.actor.request` | actor, message, type, payload | a message for its concurrent part |
//! | `a2.actor.timer` | actor, key, set | a turn set a timer, or removed one |
//! | `a2.actor.state` | actor, state, event, message, `clear_index` | what a message made of the state |
//! | `a2.actor.done` | actor, result, event, message | what a concurrent handler answered |
//! | `a2.actor.failed` | actor, message, event, error | a message was refused |
//!
//! `message` is a message's id, which is unique within the instance; `event` is the id of the event
//! that brought it.

use std::fmt;

use a2_core::{Event, EventId, EventType, Index, Json, NewEvent, Result, Target, TimerKey};
use a2_runtime::Events;
use serde::{Deserialize, Serialize};

pub(crate) const STATE: &str = "a2.actor.state";
pub(crate) const DONE: &str = "a2.actor.done";
pub(crate) const FAILED: &str = "a2.actor.failed";
pub(crate) const TIMER: &str = "a2.actor.timer";
/// The consumer that sets timers.
pub(crate) const TIMERS: &str = "a2.actor.timer";

/// The two ways in which messages are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Serial,
    Concurrent,
}

impl Kind {
    pub(crate) fn consumer(self) -> &'static str {
        match self {
            Self::Serial => "a2.actor",
            Self::Concurrent => "a2.actor.concurrent",
        }
    }

    pub(crate) fn event_type(self) -> &'static str {
        match self {
            Self::Serial => "a2.actor.message",
            Self::Concurrent => "a2.actor.request",
        }
    }

    /// What a message to this actor is appended for.
    pub(crate) fn target(self, actor: &str) -> Result<Target> {
        match self {
            Self::Serial => Target::lane(self.consumer(), actor),
            Self::Concurrent => Target::event(self.consumer()),
        }
    }

    /// The type of the event that says what a message made.
    pub(crate) fn outcome(self) -> &'static str {
        match self {
            Self::Serial => STATE,
            Self::Concurrent => DONE,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Serial => "serial",
            Self::Concurrent => "concurrent",
        })
    }
}

/// A message on its way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) actor: String,
    pub(crate) message: String,
    #[serde(rename = "type")]
    pub(crate) event_type: EventType,
    pub(crate) payload: Json,
}

/// Messages for lanes.
#[derive(Serialize, Deserialize)]
pub(crate) enum InLane {
    #[serde(rename = "a2.actor.message")]
    Message(Envelope),
}
impl Events for InLane {}

/// Messages for concurrent parts.
#[derive(Serialize, Deserialize)]
pub(crate) enum AtOnce {
    #[serde(rename = "a2.actor.request")]
    Request(Envelope),
}
impl Events for AtOnce {}

/// What a turn wants of timers.
#[derive(Serialize, Deserialize)]
pub(crate) enum Timing {
    #[serde(rename = "a2.actor.timer")]
    Change(TimerChange),
}
impl Events for Timing {}

/// Committed with the turn, done by a consumer of its own: in order, whether the process lives or not.
#[derive(Serialize, Deserialize)]
pub(crate) struct TimerChange {
    pub(crate) actor: String,
    pub(crate) key: TimerKey,
    /// None removes the timer.
    pub(crate) set: Option<SetTimer>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SetTimer {
    pub(crate) after_ms: u64,
    pub(crate) kind: Kind,
    pub(crate) event: EventId,
    pub(crate) payload: Json,
}

#[derive(Serialize)]
struct State<'a> {
    actor: &'a str,
    state: &'a Json,
    event: &'a str,
    message: &'a str,
    clear_index: Index,
}

#[derive(Serialize)]
struct Done<'a> {
    actor: &'a str,
    result: &'a Json,
    event: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Failed<'a> {
    actor: &'a str,
    message: &'a str,
    event: &'a str,
    error: &'a str,
}

/// Of a stored state what is read again.
#[derive(Deserialize)]
pub(crate) struct StoredState {
    pub(crate) state: Json,
}

/// Of a stored answer what is read again.
#[derive(Deserialize)]
pub(crate) struct StoredDone {
    pub(crate) result: Json,
}

/// Of a stored refusal what is read again.
#[derive(Deserialize)]
pub(crate) struct StoredFailed {
    pub(crate) message: String,
    pub(crate) error: String,
}

/// The new state, written even when unchanged: a caller waits for it.
pub(crate) fn state(
    message: &Envelope,
    stored: &Event,
    state: &Json,
    clear_index: Index,
) -> Result<NewEvent> {
    let (actor, message, event) = (&*message.actor, &*message.message, stored.id.as_str());
    NewEvent::new(STATE, &State { actor, state, event, message, clear_index })
}

pub(crate) fn done(message: &Envelope, stored: &Event, result: &Json) -> Result<NewEvent> {
    let (actor, message, event) = (&*message.actor, &*message.message, stored.id.as_str());
    NewEvent::new(DONE, &Done { actor, result, event, message })
}

pub(crate) fn failed(message: &Envelope, stored: &Event, error: &str) -> Result<NewEvent> {
    let (actor, message, event) = (&*message.actor, &*message.message, stored.id.as_str());
    NewEvent::new(FAILED, &Failed { actor, message, event, error })
}
