//! Presence.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Error, Field, Index, Json, Participant, Result, Span, StoreLimits};

/// Sets and removes a participant's ephemeral fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresenceUpdate {
    participant: Participant,
    fields: BTreeMap<Field, Option<Json>>,
    seen: Option<Index>,
    ttl: Span,
}

impl PresenceUpdate {
    /// Fields of `participant` that are gone after `ttl` without a further write.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the name breaks a rule or the ttl is zero.
    pub fn new<P>(participant: P, ttl: Duration) -> Result<Self>
    where
        P: TryInto<Participant>,
        Error: From<P::Error>,
    {
        Ok(Self {
            participant: participant.try_into()?,
            fields: BTreeMap::new(),
            seen: None,
            ttl: Span::ttl(ttl)?,
        })
    }

    /// Sets a field; JSON `null` removes it.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the name breaks a rule, the value is longer than 64 KiB, or there are
    /// more than 64 fields.
    pub fn set<F>(self, field: F, value: Json) -> Result<Self>
    where
        F: TryInto<Field>,
        Error: From<F::Error>,
    {
        StoreLimits::ABSOLUTE.check_presence_value(&value)?;
        let removes = value.as_str() == "null";
        self.put(field.try_into()?, (!removes).then_some(value))
    }

    /// Removes a field.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the name breaks a rule, or there are more than 64 fields.
    pub fn remove<F>(self, field: F) -> Result<Self>
    where
        F: TryInto<Field>,
        Error: From<F::Error>,
    {
        self.put(field.try_into()?, None)
    }

    /// The log index that the participant has seen.
    #[must_use]
    pub fn seen(mut self, index: Index) -> Self {
        self.seen = Some(index);
        self
    }

    fn put(mut self, field: Field, value: Option<Json>) -> Result<Self> {
        self.fields.insert(field, value);
        StoreLimits::ABSOLUTE.check_presence_fields(self.fields.len())?;
        Ok(self)
    }

    /// Who.
    #[must_use]
    pub fn participant(&self) -> &Participant {
        &self.participant
    }

    /// The fields; none removes.
    #[must_use]
    pub fn fields(&self) -> &BTreeMap<Field, Option<Json>> {
        &self.fields
    }

    /// The log index that the participant has seen.
    #[must_use]
    pub fn seen_index(&self) -> Option<Index> {
        self.seen
    }

    /// How long the fields live.
    #[must_use]
    pub fn ttl(&self) -> Span {
        self.ttl
    }
}
