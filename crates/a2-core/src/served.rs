//! What a deployment serves: its consumers, the logs they follow, their failure budgets.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Consumer, Error, EventType, LogName, Result, limits};

/// The event types a log cursor takes. The clear marker is taken by none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Option<Vec<EventType>>", into = "Option<Vec<EventType>>")]
pub struct LogTypes(Option<Arc<[EventType]>>);

impl LogTypes {
    /// Takes every type.
    pub const ALL: Self = Self(None);

    /// Takes these types alone.
    ///
    /// # Errors
    /// `INVALID_INPUT` for no type, or more than 100.
    pub fn only(types: impl IntoIterator<Item = EventType>) -> Result<Self> {
        let mut types: Vec<_> = types.into_iter().take(limits::LOG_TYPES * 100).collect();
        types.sort();
        types.dedup();
        if types.is_empty() || types.len() > limits::LOG_TYPES {
            return Err(Error::invalid(
                "types",
                format!("must be 1 to {} types, or none for all", limits::LOG_TYPES),
            ));
        }
        Ok(Self(Some(types.into())))
    }

    /// The types, sorted, each once; none means all.
    #[must_use]
    pub fn as_only(&self) -> Option<&[EventType]> {
        self.0.as_deref()
    }

    /// Whether an event of this type is taken.
    #[must_use]
    pub fn takes(&self, event_type: &EventType) -> bool {
        !event_type.is_clear()
            && self.0.as_ref().is_none_or(|types| types.binary_search(event_type).is_ok())
    }
}

impl TryFrom<Option<Vec<EventType>>> for LogTypes {
    type Error = Error;
    fn try_from(types: Option<Vec<EventType>>) -> Result<Self> {
        types.map_or(Ok(Self::ALL), Self::only)
    }
}

impl From<LogTypes> for Option<Vec<EventType>> {
    fn from(types: LogTypes) -> Self {
        types.0.map(|types| types.to_vec())
    }
}

/// Declares a log cursor: its name, the types it takes, where it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogDeclaration {
    name: LogName,
    types: LogTypes,
    backfill: bool,
}

impl LogDeclaration {
    /// A log of every type that starts with what is appended from now on.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the name breaks a rule.
    pub fn new<N>(name: N) -> Result<Self>
    where
        N: TryInto<LogName>,
        Error: From<N::Error>,
    {
        Ok(Self { name: name.try_into()?, types: LogTypes::ALL, backfill: false })
    }

    /// Takes only these types.
    #[must_use]
    pub fn types(mut self, types: LogTypes) -> Self {
        self.types = types;
        self
    }

    /// Starts with the first stored event of the lifetime that it takes. Ignored once the cursor
    /// exists.
    #[must_use]
    pub fn backfill(mut self) -> Self {
        self.backfill = true;
        self
    }

    /// The log's name.
    #[must_use]
    pub fn name(&self) -> &LogName {
        &self.name
    }

    /// The types it takes.
    #[must_use]
    pub fn log_types(&self) -> &LogTypes {
        &self.types
    }

    /// Whether it starts with what is stored.
    #[must_use]
    pub fn is_backfill(&self) -> bool {
        self.backfill
    }
}

/// One consumer that a deployment serves: all of its cursors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedConsumer {
    consumer: Consumer,
    log: Option<LogDeclaration>,
    max_failures: Option<u64>,
}

impl ServedConsumer {
    /// Serves `consumer`.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the name breaks a rule.
    pub fn new<C>(consumer: C) -> Result<Self>
    where
        C: TryInto<Consumer>,
        Error: From<C::Error>,
    {
        Ok(Self { consumer: consumer.try_into()?, log: None, max_failures: None })
    }

    /// Declares the log that this consumer follows.
    #[must_use]
    pub fn log(mut self, log: LogDeclaration) -> Self {
        self.log = Some(log);
        self
    }

    /// The failure budget that lapsed leases of this consumer are measured by, instead of the
    /// claim's own.
    ///
    /// # Errors
    /// `INVALID_INPUT` for zero.
    pub fn max_failures(mut self, max_failures: u64) -> Result<Self> {
        self.max_failures = Some(checked_budget(max_failures)?);
        Ok(self)
    }

    /// Whose cursors.
    #[must_use]
    pub fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// The log it follows.
    #[must_use]
    pub fn declaration(&self) -> Option<&LogDeclaration> {
        self.log.as_ref()
    }

    /// Its own failure budget.
    #[must_use]
    pub fn failure_budget(&self) -> Option<u64> {
        self.max_failures
    }
}

pub(crate) fn checked_budget(max_failures: u64) -> Result<u64> {
    if max_failures == 0 {
        return Err(Error::invalid("max_failures", "must not be zero"));
    }
    Ok(max_failures)
}

/// What a deployment serves. Cheap to clone: make it once.
///
/// ```
/// use a2_core::{EventType, LogDeclaration, LogTypes, Served, ServedConsumer};
///
/// let orders = LogTypes::only([EventType::new("order.placed")?])?;
/// let served = Served::only([
///     ServedConsumer::new("billing")?.max_failures(5)?,
///     ServedConsumer::new("report")?.log(LogDeclaration::new("orders")?.types(orders).backfill()),
/// ])?;
/// assert_eq!(served.entries().map(<[_]>::len), Some(2));
/// # Ok::<(), a2_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Served(Option<Arc<[ServedConsumer]>>);

impl Served {
    /// Every consumer there is; declares no log.
    pub const ALL: Self = Self(None);

    /// These consumers alone. An empty list serves nothing.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a consumer twice, or more than 256 entries.
    pub fn only(entries: impl IntoIterator<Item = ServedConsumer>) -> Result<Self> {
        let entries: Vec<_> = entries.into_iter().take(limits::SERVED_ENTRIES + 1).collect();
        if entries.len() > limits::SERVED_ENTRIES {
            return Err(Error::invalid(
                "served",
                format!("must be at most {} entries", limits::SERVED_ENTRIES),
            ));
        }
        let mut names: Vec<_> = entries.iter().map(ServedConsumer::consumer).collect();
        names.sort();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid("served", "must name a consumer once only"));
        }
        Ok(Self(Some(entries.into())))
    }

    /// The entries; none for [`Served::ALL`].
    #[must_use]
    pub fn entries(&self) -> Option<&[ServedConsumer]> {
        self.0.as_deref()
    }

    /// The declared logs, with their consumers.
    pub fn declarations(&self) -> impl Iterator<Item = (&Consumer, &LogDeclaration)> {
        let entries = self.0.as_deref().unwrap_or_default();
        entries.iter().filter_map(|e| e.log.as_ref().map(|log| (&e.consumer, log)))
    }

    /// The declaration of one log cursor.
    #[must_use]
    pub fn declaration_of(&self, consumer: &Consumer, log: &LogName) -> Option<&LogDeclaration> {
        self.declarations().find(|(c, d)| *c == consumer && d.name() == log).map(|(_, d)| d)
    }

    /// A consumer's own failure budget.
    #[must_use]
    pub fn budget_of(&self, consumer: &Consumer) -> Option<u64> {
        let entries = self.0.as_deref().unwrap_or_default();
        entries.iter().find(|e| e.consumer == *consumer).and_then(|e| e.max_failures)
    }

    /// Whether the consumer's cursors are served.
    #[must_use]
    pub fn serves(&self, consumer: &Consumer) -> bool {
        self.0.as_ref().is_none_or(|entries| entries.iter().any(|e| e.consumer == *consumer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_is_served_once() {
        let entry = |n| ServedConsumer::new(n).unwrap();
        assert!(Served::only([entry("a"), entry("b")]).is_ok());
        assert!(Served::only([entry("a"), entry("b"), entry("a")]).is_err());
        assert!(Served::only((0..256).map(|i| entry(&*format!("c{i}").leak()))).is_ok());
        assert!(Served::only((0..257).map(|i| entry(&*format!("c{i}").leak()))).is_err());
    }

    #[test]
    fn no_log_takes_the_marker() {
        assert!(!LogTypes::ALL.takes(&EventType::CLEAR));
        assert!(!LogTypes::only([EventType::CLEAR]).unwrap().takes(&EventType::CLEAR));
        assert!(LogTypes::only([]).is_err());
    }
}
