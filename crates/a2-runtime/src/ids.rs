//! Ids that a second run of a handler makes again.

use a2_core::{CursorKey, EventId, HeadRef, SessionId};
use uuid::Uuid;

/// The name space of all ids that are derived here; never to be changed.
const SPACE: Uuid = Uuid::from_u128(0x6f1d_7a3e_52c4_4b8f_9a0e_3c57_d1b2_84a6);

/// The id of something that the work on `head` makes: a UUID of version 5 over the session, the
/// consumer, the cursor's kind and name, the parent event's id and what it is.
///
/// Names hold no U+0000, so two different lists never meet.
pub(crate) fn derived(
    session: &SessionId,
    head: &HeadRef,
    parent: &EventId,
    what: &str,
) -> EventId {
    let kind = match head.cursor {
        CursorKey::Event => "event",
        CursorKey::Lane(_) => "lane",
        CursorKey::Log(_) => "log",
    };
    let parts =
        [session.as_str(), head.consumer.as_str(), kind, head.cursor.name(), parent.as_str(), what];
    let uuid = Uuid::new_v5(&SPACE, parts.join("\0").as_bytes());
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    // A UUID's text breaks no rule for names.
    EventId::new(uuid.hyphenated().encode_lower(&mut text)).unwrap_or_else(|_| EventId::generate())
}

/// The id of the returned event at `position`.
pub(crate) fn returned(
    session: &SessionId,
    head: &HeadRef,
    parent: &EventId,
    position: usize,
) -> EventId {
    derived(session, head, parent, &position.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use a2_core::{Consumer, Index, Lane, LogName};

    use super::*;

    #[test]
    fn ids_stay_the_same_for_ever() {
        let session = SessionId::new("s").unwrap();
        let head = HeadRef::new(Consumer::new("c").unwrap(), CursorKey::Event, Index::from(3));
        let id = returned(&session, &head, &EventId::new("e").unwrap(), 0);
        // Stored events have such ids: another value here would write what a crash left twice.
        assert_eq!(id.as_str(), "6d8de0aa-29bb-5b6f-88c2-93a172d9a63d");
    }

    #[test]
    fn everything_that_differs_makes_another_id() {
        let mut ids = HashSet::new();
        let cursors = [
            CursorKey::Event,
            CursorKey::Lane(Lane::new("").unwrap()),
            CursorKey::Lane(Lane::new("l").unwrap()),
            CursorKey::Log(LogName::new("l").unwrap()),
        ];
        for session in ["s", "t"] {
            for consumer in ["c", "cl"] {
                for cursor in &cursors {
                    for parent in ["e", "f"] {
                        for position in [0, 1, 11] {
                            let head = HeadRef::new(
                                Consumer::new(consumer).unwrap(),
                                cursor.clone(),
                                Index::from(1),
                            );
                            let session = SessionId::new(session).unwrap();
                            let parent = EventId::new(parent).unwrap();
                            assert!(ids.insert(returned(&session, &head, &parent, position)));
                        }
                    }
                }
            }
        }
        assert_eq!(ids.len(), 96);
    }
}
