//! Waking a log and clearing a session.

use crate::{Cause, Consumer, Error, EventId, Index, LogDeclaration, Result};

/// Brings one log cursor up to date without an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeLog {
    consumer: Consumer,
    log: LogDeclaration,
}

impl WakeLog {
    /// Wakes `consumer`'s log.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the consumer breaks the rules for names.
    pub fn new<C>(consumer: C, log: LogDeclaration) -> Result<Self>
    where
        C: TryInto<Consumer>,
        Error: From<C::Error>,
    {
        Ok(Self { consumer: consumer.try_into()?, log })
    }

    /// Whose log.
    #[must_use]
    pub fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// Which log.
    #[must_use]
    pub fn declaration(&self) -> &LogDeclaration {
        &self.log
    }
}

/// Clears a session: a new lifetime starts with a marker event.
///
/// The marker's id is made here, so that sending the same request again finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clear {
    id: EventId,
    if_last_index: Option<Index>,
    cause: Option<Cause>,
}

impl Default for Clear {
    fn default() -> Self {
        Self::new()
    }
}

impl Clear {
    /// Clears whatever the session holds.
    #[must_use]
    pub fn new() -> Self {
        Self { id: EventId::generate(), if_last_index: None, cause: None }
    }

    /// Clears only while this is the log's head.
    #[must_use]
    pub fn if_last_index(mut self, index: Index) -> Self {
        self.if_last_index = Some(index);
        self
    }

    /// Clears only while this attempt is current (`SUPERSEDED_ATTEMPT`).
    #[must_use]
    pub fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// The marker's id.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the id breaks the rules for names.
    pub fn id<I>(mut self, id: I) -> Result<Self>
    where
        I: TryInto<EventId>,
        Error: From<I::Error>,
    {
        self.id = id.try_into()?;
        Ok(self)
    }

    /// The marker's id.
    #[must_use]
    pub fn marker_id(&self) -> &EventId {
        &self.id
    }

    /// The head that must be.
    #[must_use]
    pub fn last_index(&self) -> Option<Index> {
        self.if_last_index
    }

    /// The attempt that must be current.
    #[must_use]
    pub fn clear_cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }
}
