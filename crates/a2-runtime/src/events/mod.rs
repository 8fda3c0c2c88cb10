//! Typed events: a Rust enum for what a log holds.

mod codec;

use a2_core::{Event, EventType, Json, NewEvent, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An enum of events: the name of a variant is the event's type, its content the payload.
///
/// Derive serde's traits, name the variants as the types are called, and implement this trait
/// without a body. Serde's default representation is what is read: no `tag`, no `untagged`.
///
/// ```
/// use a2_runtime::Events;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// enum Order {
///     #[serde(rename = "order.placed")]
///     Placed { item: String },
///     #[serde(rename = "order.cancelled")]
///     Cancelled,
/// }
/// impl Events for Order {}
///
/// let placed = Order::Placed { item: "tea".into() }.encode()?;
/// assert_eq!(placed.event_type().as_str(), "order.placed");
/// assert_eq!(placed.payload().as_str(), r#"{"item":"tea"}"#);
/// assert_eq!(Order::Cancelled.encode()?.payload().as_str(), "null");
/// # Ok::<(), a2_core::Error>(())
/// ```
///
/// A variant without content takes any payload. Handlers that take the enum see the events of its
/// types alone. What a program reacts to and what it writes are better two enums: a consumer that takes
/// the type that it returns calls itself.
pub trait Events: Serialize + DeserializeOwned + Send + 'static {
    /// The types of the enum; none means every type.
    ///
    /// # Errors
    /// `INVALID_INPUT` when this is no enum in serde's default representation, or when a variant's
    /// name cannot be an event's type.
    fn types() -> Result<Option<Vec<EventType>>> {
        codec::types_of::<Self>().map(Some)
    }

    /// Reads an event.
    ///
    /// # Errors
    /// `INVALID_INPUT` when no variant has this type, or the payload does not fit it.
    fn decode(event_type: &EventType, payload: &Json) -> Result<Self> {
        codec::decode(event_type, payload)
    }

    /// Makes the event to append, without an id and targets of its own.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the type or the payload breaks a rule.
    fn encode(&self) -> Result<NewEvent> {
        codec::encode(self)
    }
}

/// An event of any type, not decoded: what a consumer takes that wants them all.
///
/// ```
/// use a2_runtime::{log, Context, RawEvent};
///
/// let audit = log("audit", |event: RawEvent, _cx: Context| async move {
///     println!("{} {}", event.event_type, event.payload.as_str());
///     Ok(())
/// });
/// # drop(audit);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawEvent {
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The data, as it was appended.
    pub payload: Json,
}

impl Events for RawEvent {
    fn types() -> Result<Option<Vec<EventType>>> {
        Ok(None)
    }

    fn decode(event_type: &EventType, payload: &Json) -> Result<Self> {
        Ok(Self { event_type: event_type.clone(), payload: payload.clone() })
    }

    fn encode(&self) -> Result<NewEvent> {
        NewEvent::from_json(self.event_type.clone(), self.payload.clone())
    }
}

/// What can be appended or returned: events of an enum, events as the store takes them, none, one or
/// many.
pub trait IntoEvents {
    /// The events, in order.
    ///
    /// # Errors
    /// `INVALID_INPUT` when one breaks a rule.
    fn into_events(self) -> Result<Vec<NewEvent>>;
}

impl<T: Events> IntoEvents for T {
    fn into_events(self) -> Result<Vec<NewEvent>> {
        Ok(vec![self.encode()?])
    }
}

impl IntoEvents for NewEvent {
    fn into_events(self) -> Result<Vec<NewEvent>> {
        Ok(vec![self])
    }
}

impl IntoEvents for () {
    fn into_events(self) -> Result<Vec<NewEvent>> {
        Ok(Vec::new())
    }
}

impl<T: IntoEvents> IntoEvents for Vec<T> {
    fn into_events(self) -> Result<Vec<NewEvent>> {
        all(self)
    }
}

impl<T: IntoEvents> IntoEvents for Option<T> {
    fn into_events(self) -> Result<Vec<NewEvent>> {
        all(self)
    }
}

impl<T: IntoEvents, const N: usize> IntoEvents for [T; N] {
    fn into_events(self) -> Result<Vec<NewEvent>> {
        all(self)
    }
}

fn all<T: IntoEvents>(items: impl IntoIterator<Item = T>) -> Result<Vec<NewEvent>> {
    let mut events = Vec::new();
    for item in items {
        events.extend(item.into_events()?);
    }
    Ok(events)
}

/// Reads a stored event; says which one it was that could not be read.
pub(crate) fn decode_event<T: Events>(event: &Event) -> Result<T> {
    T::decode(&event.event_type, &event.payload).map_err(|error| {
        error.in_field(format_args!(
            "event {} ({}, {})",
            event.index,
            event.id.as_str(),
            event.event_type.as_str()
        ))
    })
}
