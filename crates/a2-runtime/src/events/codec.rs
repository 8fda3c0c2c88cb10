//! Serde's default representation of an enum, `{"variant": content}`, read as (type, payload).
//!
//! The variant's name and the content are two values of an event, so that no document has to be put
//! together to be taken apart again.

use std::any::type_name;

use a2_core::{Error, EventType, Json, NewEvent, Result};
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

use super::Events;

/// The last part of a type's name: `Order` of `shop::events::Order`.
fn short<T>() -> &'static str {
    let name = type_name::<T>();
    let end = name.find('<').unwrap_or(name.len());
    name[..end].rfind("::").map_or(name, |at| &name[at + 2..])
}

fn no_enum<T>() -> Error {
    Error::invalid(
        "events",
        format!("{} must be an enum in serde's default representation", short::<T>()),
    )
}

/// The names of the variants.
pub(super) fn types_of<T: DeserializeOwned>() -> Result<Vec<EventType>> {
    names_of::<T>()?.iter().map(EventType::new).collect()
}

fn names_of<T: DeserializeOwned>() -> Result<&'static [&'static str]> {
    let mut found = None;
    let _ = T::deserialize(Names(&mut found));
    found.ok_or_else(no_enum::<T>)
}

pub(super) fn decode<T: DeserializeOwned>(event_type: &EventType, payload: &Json) -> Result<T> {
    let content = Tagged { tag: event_type.as_str(), payload: payload.as_str() };
    T::deserialize(content).map_err(|error| {
        Error::invalid("payload", format!("does not fit {}: {error}", short::<T>()))
            .with_source(error)
    })
}

pub(super) fn encode<T: Events>(event: &T) -> Result<NewEvent> {
    let text = Json::from_serialize(event)?;
    if let Ok(name) = serde_json::from_str::<String>(text.as_str()) {
        // Any text may also be another shape's.
        if !names_of::<T>()?.contains(&name.as_str()) {
            return Err(no_enum::<T>());
        }
        return NewEvent::from_json(name, Json::null());
    }
    let Tag(name, content) = serde_json::from_str(text.as_str()).map_err(|_| no_enum::<T>())?;
    // An object with one key may also be another shape's.
    if !names_of::<T>()?.contains(&name.as_str()) {
        return Err(no_enum::<T>());
    }
    NewEvent::from_json(name, Json::parse(content.get())?)
}

/// An object with one key.
struct Tag(String, Box<RawValue>);

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Tag;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with one key")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Tag, A::Error> {
                let first = map.next_entry()?;
                let (name, content) = first.ok_or_else(|| de::Error::custom("no variant"))?;
                if map.next_key::<String>()?.is_some() {
                    return Err(de::Error::custom("more than one variant"));
                }
                Ok(Tag(name, content))
            }
        }
        deserializer.deserialize_map(One)
    }
}

/// Hears which variants an enum has, and gives nothing.
struct Names<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("not an enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = Some(variants);
        Err(de::Error::custom("names alone"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant's name and its content as JSON text.
struct Tagged<'de> {
    tag: &'de str,
    payload: &'de str,
}

impl<'de> Deserializer<'de> for Tagged<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("it is no enum in serde's default representation"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> de::EnumAccess<'de> for Tagged<'de> {
    type Error = serde_json::Error;
    type Variant = Content<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'de>), Self::Error> {
        let name = seed.deserialize(BorrowedStrDeserializer::new(self.tag))?;
        Ok((name, Content(self.payload)))
    }
}

struct Content<'de>(&'de str);

impl<'de> Content<'de> {
    fn read<T>(
        self,
        read: impl FnOnce(
            &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
        ) -> serde_json::Result<T>,
    ) -> serde_json::Result<T> {
        let mut json = serde_json::Deserializer::from_str(self.0);
        let value = read(&mut json)?;
        json.end()?;
        Ok(value)
    }
}

impl<'de> de::VariantAccess<'de> for Content<'de> {
    type Error = serde_json::Error;

    /// Whatever the payload is: a variant without content does not ask for it.
    fn unit_variant(self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, Self::Error> {
        self.read(|json| seed.deserialize(json))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.read(|json| json.deserialize_tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.read(|json| json.deserialize_struct("", fields, visitor))
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Order {
        #[serde(rename = "order.placed")]
        Placed { item: String, count: u32 },
        #[serde(rename = "order.noted")]
        Noted(String),
        #[serde(rename = "order.moved")]
        Moved(u8, u8),
        #[serde(rename = "order.gone")]
        Gone,
    }
    impl Events for Order {}

    fn read(event_type: &str, payload: &str) -> Result<Order> {
        Order::decode(&EventType::new(event_type).unwrap(), &Json::parse(payload).unwrap())
    }

    #[test]
    fn every_shape_of_a_variant_is_a_type_and_a_payload() {
        for (order, event_type, payload) in [
            (
                Order::Placed { item: "tea".into(), count: 2 },
                "order.placed",
                r#"{"item":"tea","count":2}"#,
            ),
            (Order::Noted("a \"b\" 🦀".into()), "order.noted", r#""a \"b\" 🦀""#),
            (Order::Moved(1, 2), "order.moved", "[1,2]"),
            (Order::Gone, "order.gone", "null"),
        ] {
            let event = order.encode().unwrap();
            assert_eq!(event.event_type().as_str(), event_type);
            assert_eq!(event.payload().as_str(), payload);
            assert_eq!(read(event_type, payload).unwrap(), order);
        }
        // Others may write something where this enum has nothing.
        assert_eq!(read("order.gone", r#"{"why":"late"}"#).unwrap(), Order::Gone);
    }

    #[test]
    fn what_does_not_fit_says_why() {
        let said = |event_type, payload| read(event_type, payload).unwrap_err().to_string();
        assert_eq!(
            said("order.lost", "{}"),
            "payload: does not fit Order: unknown variant `order.lost`, expected one of \
             `order.placed`, `order.noted`, `order.moved`, `order.gone`"
        );
        assert_eq!(
            said("order.placed", r#"{"item":"tea"}"#),
            "payload: does not fit Order: missing field `count` at line 1 column 14"
        );
        assert_eq!(read("order.placed", "3").unwrap_err().code(), "INVALID_INPUT");
    }

    #[test]
    fn the_types_are_the_variants_names() {
        let types = Order::types().unwrap().unwrap();
        let names: Vec<_> = types.iter().map(EventType::as_str).collect();
        assert_eq!(names, ["order.placed", "order.noted", "order.moved", "order.gone"]);
    }

    #[derive(Serialize, Deserialize)]
    struct NoEnum {}
    impl Events for NoEnum {}

    #[derive(Serialize, Deserialize)]
    #[serde(tag = "type")]
    enum OtherShape {
        A {},
    }
    impl Events for OtherShape {}

    #[derive(Serialize, Deserialize)]
    struct Text(String);
    impl Events for Text {}

    #[test]
    fn what_is_no_enum_is_refused() {
        assert!(Text("order.placed".to_owned()).encode().is_err());
        assert_eq!(
            NoEnum::types().unwrap_err().to_string(),
            "events: NoEnum must be an enum in serde's default representation"
        );
        assert!(NoEnum {}.encode().is_err());
        assert!(OtherShape::types().is_err());
        assert!(OtherShape::A {}.encode().is_err());
    }
}
