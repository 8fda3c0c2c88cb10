//! Names: checked once, cheap to clone, ordered bytewise.
//!
//! A name is text that the engine stores and compares and never interprets. Short ones (up to 23
//! bytes) live inside the value, longer ones are shared, so a clone never copies text.

use std::borrow::Borrow;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;
use uuid::Uuid;

use crate::{Error, Result, limits};

fn check(field: &'static str, text: &str, may_be_empty: bool) -> Result<()> {
    if text.is_empty() && !may_be_empty {
        return Err(Error::invalid(field, "must not be empty"));
    }
    if text.len() > limits::NAME_BYTES {
        return Err(Error::invalid(
            field,
            format!("must be at most {} bytes, is {}", limits::NAME_BYTES, text.len()),
        ));
    }
    if text.as_bytes().contains(&0) {
        return Err(Error::invalid(field, "must not contain U+0000"));
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $field:literal, empty: $may_be_empty:literal) => {
        $(#[$doc])*
        ///
        /// UTF-8 without U+0000, at most 512 bytes; everything else is allowed and means nothing to
        /// the store. Ordered bytewise.
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks the rules for a name.
            ///
            /// # Errors
            /// `INVALID_INPUT` naming the field and the rule.
            pub fn new(text: impl AsRef<str>) -> Result<Self> {
                let text = text.as_ref();
                check($field, text, $may_be_empty)?;
                Ok(Self(SmolStr::new(text)))
            }

            /// The name's text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Error;
            fn try_from(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;
            fn try_from(text: String) -> Result<Self> {
                Self::new(text)
            }
        }

        impl TryFrom<&String> for $name {
            type Error = Error;
            fn try_from(text: &String) -> Result<Self> {
                Self::new(text)
            }
        }

        impl From<&$name> for $name {
            fn from(name: &$name) -> Self {
                name.clone()
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = SmolStr::deserialize(deserializer)?;
                check($field, &text, $may_be_empty).map_err(serde::de::Error::custom)?;
                Ok(Self(text))
            }
        }
    };
}

name!(
    /// Names a session: one log and everything that follows it.
    SessionId, "session", empty: false
);
name!(
    /// Names an event, unique in its session and lifetime.
    EventId, "id", empty: false
);
name!(
    /// What an event is: `order.placed`. The type `a2.clear` is written by `clear` alone.
    EventType, "type", empty: false
);
name!(
    /// Names a reader of logs, which has its own cursors in every session.
    Consumer, "consumer", empty: false
);
name!(
    /// Names a FIFO queue of a consumer in a session. May be empty.
    Lane, "lane", empty: true
);
name!(
    /// Names a cursor that follows the whole log. May be empty.
    LogName, "log", empty: true
);
name!(
    /// Names what folds a log into a state.
    ReducerName, "reducer", empty: false
);
name!(
    /// Names who holds a claim: a worker, a process.
    Holder, "holder", empty: false
);
name!(
    /// Names a timer within its session.
    TimerKey, "key", empty: false
);
name!(
    /// Names a group of participants whose presence is watched together.
    Namespace, "namespace", empty: false
);
name!(
    /// Names who is present.
    Participant, "participant", empty: false
);
name!(
    /// Names one ephemeral value of a participant.
    Field, "field", empty: false
);

impl EventType {
    /// The type of the marker that `clear` writes: `a2.clear`.
    pub const CLEAR: Self = Self(SmolStr::new_static("a2.clear"));

    /// Whether this is the clear marker's type.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        *self == Self::CLEAR
    }
}

impl EventId {
    /// A new id: a UUID of version 7, so that ids sort by the time they were made.
    #[must_use]
    pub fn generate() -> Self {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        Self(SmolStr::new(next_uuid().hyphenated().encode_lower(&mut text)))
    }
}

/// A UUID that is greater than all that this thread had before.
///
/// Random bits are drawn once a millisecond; within it the thread counts on from them, as RFC 9562
/// describes in its section 6.2. That takes a third of the time.
fn next_uuid() -> Uuid {
    const COUNTED: u128 = (1 << 62) - 1;
    thread_local! {
        static LAST: Cell<u128> = const { Cell::new(0) };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let last = LAST.get();
    let counts_on = now <= last >> 80 && last & COUNTED < COUNTED;
    let next = if counts_on { last + 1 } else { Uuid::now_v7().as_u128() };
    LAST.set(next);
    Uuid::from_u128(next)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_rules_of_a_name() {
        assert_eq!(SessionId::new("a:b{c}\n%🦀").unwrap().as_str(), "a:b{c}\n%🦀");
        assert_eq!(SessionId::new("").unwrap_err().to_string(), "session: must not be empty");
        assert_eq!(Lane::new("").unwrap().as_str(), "");
        assert_eq!(LogName::new("").unwrap().as_str(), "");
        assert!(EventId::new("x".repeat(512)).is_ok());
        assert_eq!(
            EventId::new("x".repeat(513)).unwrap_err().to_string(),
            "id: must be at most 512 bytes, is 513"
        );
        assert!(EventId::new("é".repeat(256)).is_ok());
        assert!(EventId::new("é".repeat(257)).is_err());
        assert_eq!(
            Consumer::new("a\0b").unwrap_err().to_string(),
            "consumer: must not contain U+0000"
        );
    }

    #[test]
    fn names_are_ordered_bytewise() {
        let mut names: Vec<_> =
            ["b", "ä", "B", "a", "𐀀", "\u{ffff}"].iter().map(|n| Lane::new(n).unwrap()).collect();
        names.sort();
        let texts: Vec<_> = names.iter().map(Lane::as_str).collect();
        assert_eq!(texts, ["B", "a", "b", "ä", "\u{ffff}", "𐀀"]);
    }

    #[test]
    fn a_name_read_from_json_is_checked() {
        assert!(serde_json::from_str::<Holder>("\"w\"").is_ok());
        assert!(serde_json::from_str::<Holder>("\"\"").is_err());
    }

    #[test]
    fn generated_ids_are_uuids_in_order() {
        let ids: Vec<_> = (0..10_000).map(|_| EventId::generate()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        for id in ids {
            let uuid = Uuid::try_parse(id.as_str()).unwrap();
            assert_eq!(
                (uuid.get_version_num(), uuid.get_variant()),
                (7, uuid::Variant::RFC4122),
                "{id}"
            );
        }
    }

    #[test]
    fn generated_ids_of_threads_differ() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| (0..1_000).map(|_| EventId::generate()).collect::<Vec<_>>())
            })
            .collect();
        let ids: HashSet<_> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        assert_eq!(ids.len(), 4_000);
    }
}
