//! Durable timers.

use std::time::Duration;

use crate::{Error, Index, NewEvent, Result, Served, Span, StoreLimits, TimerKey, limits};

use super::checked_count;

/// Appends an event later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    key: TimerKey,
    after: Span,
    event: NewEvent,
    origin_index: Option<Index>,
}

impl Schedule {
    /// Appends `event` when `after` has passed. The same key again replaces the timer. An event
    /// without an id gets one here.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the key breaks the rules for names, or the event has a cause or more
    /// than 100 targets.
    pub fn new<K>(key: K, after: Duration, event: NewEvent) -> Result<Self>
    where
        K: TryInto<TimerKey>,
        Error: From<K::Error>,
    {
        if event.event_cause().is_some() {
            return Err(Error::invalid("event.cause", "must not be given for a timer"));
        }
        let mut event = event;
        event.identify();
        StoreLimits::ABSOLUTE.check_timer(&event)?;
        Ok(Self { key: key.try_into()?, after: Span::new(after), event, origin_index: None })
    }

    /// Refuses the timer if the session was cleared after this index, and drops it when the session
    /// is cleared later.
    #[must_use]
    pub fn origin_index(mut self, origin: Index) -> Self {
        self.origin_index = Some(origin);
        self
    }

    /// The timer's key.
    #[must_use]
    pub fn key(&self) -> &TimerKey {
        &self.key
    }

    /// How long from now.
    #[must_use]
    pub fn after(&self) -> Span {
        self.after
    }

    /// The event, with an id.
    #[must_use]
    pub fn event(&self) -> &NewEvent {
        &self.event
    }

    /// The index after which no clear may lie.
    #[must_use]
    pub fn origin(&self) -> Option<Index> {
        self.origin_index
    }
}

/// Appends the events of timers that are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FireTimers {
    served: Served,
    limit: usize,
}

impl Default for FireTimers {
    fn default() -> Self {
        Self { served: Served::ALL, limit: limits::FIRE_DEFAULT }
    }
}

impl FireTimers {
    /// At most 100 timers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the caller serves: whose pending work is reported, and which logs move. All by default.
    #[must_use]
    pub fn served(mut self, served: Served) -> Self {
        self.served = served;
        self
    }

    /// At most this many timers: 1 to 1,000, 100 by default.
    ///
    /// # Errors
    /// `INVALID_INPUT` outside of that.
    pub fn limit(mut self, limit: usize) -> Result<Self> {
        self.limit = checked_count("limit", limit, limits::FIRE_MAX)?;
        Ok(self)
    }

    /// What the caller serves.
    #[must_use]
    pub fn served_list(&self) -> &Served {
        &self.served
    }

    /// The most timers.
    #[must_use]
    pub fn max_timers(&self) -> usize {
        self.limit
    }
}
