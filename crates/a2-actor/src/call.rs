//! Waiting for what a message makes.

use std::fmt;
use std::time::Duration;

use a2_core::{Consumer, Error, Event, HeadRef, Index};
use a2_runtime::Session;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;

use crate::actor::Route;
use crate::events::{FAILED, Kind, StoredDone, StoredFailed, StoredState};

/// Why a call has no outcome.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The handler refused the message: another try would not change that. Nothing of it was done.
    Refused {
        /// The message's id.
        message: String,
        /// Why, in the handler's words.
        error: String,
    },
    /// The session was cleared after the message was sent: whether it was handled before is gone with
    /// the log.
    Cleared {
        /// The marker that the new lifetime starts with.
        clear_index: Index,
    },
    /// There was no outcome in time. The message stays, and is handled when it can be: call again with
    /// the same id to wait for it.
    TimedOut {
        /// How long the caller waited.
        within: Duration,
    },
    /// The message could not be sent, or its outcome not be read.
    Store(Error),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { message, error } => {
                write!(f, "message {message} was refused: {error}")
            }
            Self::Cleared { clear_index } => {
                write!(f, "the session was cleared at index {clear_index} during the call")
            }
            Self::TimedOut { within } => write!(f, "no outcome within {within:?}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Waits for the outcome of the message at `index`. The log is read from there on, so nothing is missed
/// however late this begins.
pub(crate) async fn outcome<T: DeserializeOwned>(
    session: &Session,
    route: Route,
    index: Index,
) -> Result<T, CallError> {
    let head = HeadRef::new(Consumer::new(route.kind.consumer())?, route.cursor()?, index);
    let mut events = session.stream(index);
    while let Some(event) = events.next().await {
        let event = event?;
        if event.event_type.is_clear() {
            return Err(CallError::Cleared { clear_index: event.index });
        }
        // Only the attempt that settled the message has it as its cause.
        if event.cause.as_ref().is_some_and(|cause| cause.head == head)
            && let Some(outcome) = read(route.kind, &event)
        {
            return outcome;
        }
    }
    Err(CallError::Store(Error::closed()))
}

/// What the event says, if it is an outcome; what a handler appended is none.
fn read<T: DeserializeOwned>(kind: Kind, event: &Event) -> Option<Result<T, CallError>> {
    let json = match (kind, event.event_type.as_str()) {
        (_, FAILED) => {
            return Some(Err(match event.payload.deserialize() {
                Ok(StoredFailed { message, error }) => CallError::Refused { message, error },
                Err(error) => CallError::Store(error),
            }));
        }
        (Kind::Serial, t) if t == kind.outcome() => {
            event.payload.deserialize().map(|stored: StoredState| stored.state)
        }
        (Kind::Concurrent, t) if t == kind.outcome() => {
            event.payload.deserialize().map(|stored: StoredDone| stored.result)
        }
        _ => return None,
    };
    let outcome = json.and_then(|json| json.deserialize());
    Some(outcome.map_err(|error| CallError::Store(error.in_field("outcome"))))
}
