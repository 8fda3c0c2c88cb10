//! Events, what they are aimed at, and what caused them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::few::Few;
use crate::{
    Consumer, CursorKey, Error, EventId, EventType, HeadRef, Index, Json, Lane, LogName, Result,
    SessionId, StoreLimits, Timestamp, limits,
};

/// An event as it stands in the log; cheap to clone.
///
/// Its [fields](EventFields) are read through it: `event.payload`. An event is handed on far more
/// often than it is made (to the caller, to every claim and to every stream), so clones share it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Event(Arc<EventFields>);

/// What an [`Event`] holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventFields {
    /// Unique within the session's current lifetime.
    pub id: EventId,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The data, byte for byte as it was appended.
    pub payload: Json,
    /// The place in the log, from 1 on without a gap.
    pub index: Index,
    /// The session whose log it is.
    pub session: SessionId,
    /// When the store committed it. May step back with the store's clock: only indexes promise an
    /// order.
    pub created_at: Timestamp,
    /// The attempt that appended it.
    pub cause: Option<Cause>,
}

impl Event {
    /// For backends: an event of `session` at `index`.
    #[must_use]
    pub fn new(
        session: SessionId,
        index: Index,
        id: EventId,
        event_type: EventType,
        payload: Json,
        created_at: Timestamp,
        cause: Option<Cause>,
    ) -> Self {
        let fields = EventFields { id, event_type, payload, index, session, created_at, cause };
        Self(Arc::new(fields))
    }

    /// The fields, to take them apart.
    #[must_use]
    pub fn into_fields(self) -> EventFields {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for Event {
    type Target = EventFields;

    fn deref(&self) -> &EventFields {
        &self.0
    }
}

/// Changes a copy when others hold the event too.
impl DerefMut for Event {
    fn deref_mut(&mut self) -> &mut EventFields {
        Arc::make_mut(&mut self.0)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The attempt that appended an event.
///
/// As JSON: `{"consumer":"billing","lane":"order-17","index":3,"attempt":1}`; `lane` is null for
/// an event cursor; a log's has its name in `lane` and `"kind":"log"` beside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The head it works on.
    pub head: HeadRef,
    /// The attempt's number.
    pub attempt: u64,
}

impl Cause {
    /// The attempt `attempt` on `head`.
    #[must_use]
    pub fn new(head: HeadRef, attempt: u64) -> Self {
        Self { head, attempt }
    }
}

#[derive(Serialize, Deserialize)]
struct CauseWire {
    consumer: Consumer,
    lane: Option<Lane>,
    index: Index,
    attempt: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (lane, kind) = match &self.head.cursor {
            CursorKey::Event => (None, None),
            CursorKey::Lane(lane) => (Some(lane.clone()), None),
            CursorKey::Log(log) => (
                Some(Lane::new(log.as_str()).map_err(serde::ser::Error::custom)?),
                Some("log".to_owned()),
            ),
        };
        CauseWire {
            consumer: self.head.consumer.clone(),
            lane,
            index: self.head.index,
            attempt: self.attempt,
            kind,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = CauseWire::deserialize(deserializer)?;
        let cursor = match (wire.kind.as_deref(), wire.lane) {
            (None, None) => CursorKey::Event,
            (None, Some(lane)) => CursorKey::Lane(lane),
            (Some("log"), Some(lane)) => {
                CursorKey::Log(LogName::new(lane.as_str()).map_err(D::Error::custom)?)
            }
            (Some("log"), None) => return Err(D::Error::custom("a log's cause has no name")),
            (Some(kind), _) => return Err(D::Error::unknown_variant(kind, &["log"])),
        };
        Ok(Self::new(HeadRef::new(wire.consumer, cursor, wire.index), wire.attempt))
    }
}

/// What an event is appended for: a consumer's event cursor or one of its lanes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    consumer: Consumer,
    lane: Option<Lane>,
}

impl Target {
    /// The event gets a cursor of its own, handled concurrently with the consumer's others.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the name breaks a rule.
    pub fn event<C>(consumer: C) -> Result<Self>
    where
        C: TryInto<Consumer>,
        Error: From<C::Error>,
    {
        Ok(Self { consumer: consumer.try_into()?, lane: None })
    }

    /// The event is queued on the lane.
    ///
    /// # Errors
    /// `INVALID_INPUT` when a name breaks a rule.
    pub fn lane<C, L>(consumer: C, lane: L) -> Result<Self>
    where
        C: TryInto<Consumer>,
        L: TryInto<Lane>,
        Error: From<C::Error> + From<L::Error>,
    {
        Ok(Self { consumer: consumer.try_into()?, lane: Some(lane.try_into()?) })
    }

    /// Whose cursor.
    #[must_use]
    pub fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// The lane, none for an event cursor.
    #[must_use]
    pub fn lane_name(&self) -> Option<&Lane> {
        self.lane.as_ref()
    }

    /// The key of the cursor aimed at.
    #[must_use]
    pub fn cursor_key(&self) -> CursorKey {
        self.lane.clone().map_or(CursorKey::Event, CursorKey::Lane)
    }
}

/// An event to append.
///
/// ```
/// use a2_core::{NewEvent, Target};
///
/// let event = NewEvent::new("order.placed", &serde_json::json!({"total": 12}))?
///     .id("evt-1")?
///     .target(Target::lane("billing", "order-17")?);
/// assert_eq!(event.payload().as_str(), r#"{"total":12}"#);
/// # Ok::<(), a2_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    id: Option<EventId>,
    event_type: EventType,
    payload: Json,
    targets: Few<Target>,
    // Rare, and as large as all the rest: an event is moved a few times until it is stored.
    cause: Option<Box<Cause>>,
}

impl NewEvent {
    /// An event whose payload is `payload` serialized.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the type or the payload breaks a rule; the type `a2.clear` is written by
    /// `clear` alone.
    pub fn new<T, P>(event_type: T, payload: &P) -> Result<Self>
    where
        T: TryInto<EventType>,
        Error: From<T::Error>,
        P: Serialize + ?Sized,
    {
        Self::from_json(event_type, Json::from_serialize(payload).map_err(payload_error)?)
    }

    /// An event with this payload.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the type breaks a rule.
    pub fn from_json<T>(event_type: T, payload: Json) -> Result<Self>
    where
        T: TryInto<EventType>,
        Error: From<T::Error>,
    {
        let event_type = event_type.try_into()?;
        if event_type.is_clear() {
            return Err(Error::invalid("type", "must not be a2.clear, which only clear writes"));
        }
        Ok(Self { id: None, event_type, payload, targets: Few::None, cause: None })
    }

    /// Gives the event an id, so that appending it again finds it. Without one it gets a UUID v7
    /// when the request is built.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the id breaks the rules for names.
    pub fn id<I>(mut self, id: I) -> Result<Self>
    where
        I: TryInto<EventId>,
        Error: From<I::Error>,
    {
        self.id = Some(id.try_into()?);
        Ok(self)
    }

    /// Aims the event at one more cursor. The same target twice counts once.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        // One above the limit is enough for the batch to be refused.
        if self.target_list().len() <= limits::EVENT_TARGETS {
            self.targets.insert(target);
        }
        self
    }

    /// Aims the event at more cursors.
    #[must_use]
    pub fn targets(mut self, targets: impl IntoIterator<Item = Target>) -> Self {
        for target in targets {
            self = self.target(target);
        }
        self
    }

    /// Names the attempt that appends it; the append is refused unless that attempt is current.
    #[must_use]
    pub fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// The id, when one was given or generated.
    #[must_use]
    pub fn event_id(&self) -> Option<&EventId> {
        self.id.as_ref()
    }

    /// What happened.
    #[must_use]
    pub fn event_type(&self) -> &EventType {
        &self.event_type
    }

    /// The data.
    #[must_use]
    pub fn payload(&self) -> &Json {
        &self.payload
    }

    /// The cursors aimed at, each once, in their order: by consumer, then the event's own before the
    /// lanes.
    #[must_use]
    pub fn target_list(&self) -> &[Target] {
        self.targets.as_slice()
    }

    /// The attempt that appends it.
    #[must_use]
    pub fn event_cause(&self) -> Option<&Cause> {
        self.cause.as_deref()
    }

    /// Gives an event without an id one.
    pub(crate) fn identify(&mut self) {
        self.id.get_or_insert_with(EventId::generate);
    }

    /// Bytes of names and payload, as the batch limit counts them.
    pub(crate) fn byte_len(&self) -> usize {
        let target = |t: &Target| {
            t.consumer.as_str().len() + t.lane.as_ref().map_or(0, |lane| lane.as_str().len())
        };
        self.id.as_ref().map_or(0, |id| id.as_str().len())
            + self.event_type.as_str().len()
            + self.payload.byte_len()
            + self.target_list().iter().map(target).sum::<usize>()
    }
}

fn payload_error(error: Error) -> Error {
    match error.kind() {
        crate::ErrorKind::InvalidInput { rule, .. } => Error::invalid("payload", rule.clone()),
        _ => error,
    }
}

/// Events with ids, none twice, within the limits of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Batch(Vec<NewEvent>);

impl Batch {
    /// What an append takes: events without an id get one.
    pub(crate) fn for_append(events: impl IntoIterator<Item = NewEvent>) -> Result<Self> {
        let mut batch = Self::bounded(events)?;
        for event in &mut batch {
            event.identify();
        }
        Self(batch).checked()
    }

    /// What a completion returns: every event has an id, so that a second run of the same attempt
    /// converges, and no cause of its own.
    pub(crate) fn for_completion(events: impl IntoIterator<Item = NewEvent>) -> Result<Self> {
        let batch = Self::bounded(events)?;
        for (i, event) in batch.iter().enumerate() {
            if event.id.is_none() {
                return Err(Error::invalid(format!("events[{i}].id"), "must be given"));
            }
            if event.cause.is_some() {
                return Err(Error::invalid(
                    format!("events[{i}].cause"),
                    "must not be given: the attempt is the cause",
                ));
            }
        }
        Self(batch).checked()
    }

    pub(crate) fn events(&self) -> &[NewEvent] {
        &self.0
    }

    fn bounded(events: impl IntoIterator<Item = NewEvent>) -> Result<Vec<NewEvent>> {
        let events = events.into_iter();
        let mut batch = Vec::with_capacity(events.size_hint().0.min(limits::BATCH_EVENTS));
        for event in events {
            StoreLimits::ABSOLUTE.check_batch_events(batch.len() + 1)?;
            batch.push(event);
        }
        Ok(batch)
    }

    fn checked(self) -> Result<Self> {
        StoreLimits::ABSOLUTE.check_batch(&self.0)?;
        if self.0.len() > 1 {
            let mut seen = std::collections::HashSet::with_capacity(self.0.len());
            for (i, event) in self.0.iter().enumerate() {
                if !seen.insert(&event.id) {
                    return Err(Error::invalid(
                        format!("events[{i}].id"),
                        "must not be twice in one batch",
                    ));
                }
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(cursor: CursorKey) -> Cause {
        Cause::new(HeadRef::new(Consumer::new("c").unwrap(), cursor, Index::from(3)), 2)
    }

    #[test]
    fn a_cause_keeps_lane_and_index_readable() {
        let event = cause(CursorKey::Event);
        let lane = cause(CursorKey::Lane(Lane::new("l").unwrap()));
        let log = cause(CursorKey::Log(LogName::new("l").unwrap()));
        for (cause, text) in [
            (event, r#"{"consumer":"c","lane":null,"index":3,"attempt":2}"#),
            (lane, r#"{"consumer":"c","lane":"l","index":3,"attempt":2}"#),
            (log, r#"{"consumer":"c","lane":"l","index":3,"attempt":2,"kind":"log"}"#),
        ] {
            assert_eq!(serde_json::to_string(&cause).unwrap(), text);
            assert_eq!(serde_json::from_str::<Cause>(text).unwrap(), cause);
        }
    }

    #[test]
    fn a_changed_event_is_a_copy() {
        let event = Event::new(
            SessionId::new("s").unwrap(),
            Index::from(1),
            EventId::new("e").unwrap(),
            EventType::new("t").unwrap(),
            Json::null(),
            Timestamp::EPOCH,
            None,
        );
        let mut changed = event.clone();
        assert_eq!(changed, event);
        changed.index = Index::from(2);
        assert_eq!((event.index.get(), changed.into_fields().index.get()), (1, 2));
        let text = r#"{"id":"e","type":"t","payload":null,"index":1,"session":"s","created_at":0,"cause":null}"#;
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
        assert_eq!(serde_json::from_str::<Event>(text).unwrap(), event);
    }

    #[test]
    fn the_clear_marker_cannot_be_built() {
        assert!(NewEvent::new("a2.clear", &()).is_err());
        assert!(NewEvent::new("a2.cleared", &()).is_ok());
    }

    #[test]
    fn targets_are_ordered_and_each_counts_once() {
        let lane = |c, l| Target::lane(c, l).unwrap();
        let event = |c| Target::event(c).unwrap();
        let given =
            [lane("c", "l"), lane("c", ""), event("d"), lane("c", "l"), event("c"), event("d")];
        let new = NewEvent::new("t", &()).unwrap().targets(given);
        assert_eq!(new.target_list(), [event("c"), lane("c", ""), lane("c", "l"), event("d")]);
    }
}
