//! Names of things in the store, which no two instances share.

use a2_core::{EventId, Namespace, Result, SessionId, TimerKey, limits};
use uuid::Uuid;

/// The name space of all ids that are derived here; never to be changed.
const SPACE: Uuid = Uuid::from_u128(0x2b9c_51d4_8e07_4f3a_b6d1_70a4_5ef2_9c38);

fn derived(parts: &[&str]) -> Uuid {
    // Names hold no U+0000, so two different lists never meet.
    Uuid::new_v5(&SPACE, parts.join("\0").as_bytes())
}

/// The id of the event that brings a message: within the session as unique as the message's id within
/// the instance.
pub(crate) fn message(actor: &str, id: &EventId) -> EventId {
    let id = derived(&["message", actor, id.as_str()]).to_string();
    // A UUID's text breaks no rule for names.
    EventId::new(id).unwrap_or_else(|_| EventId::generate())
}

/// An actor's timer. The length keeps `a:b` with `c` apart from `a` with `b:c`.
pub(crate) fn timer(actor: &str, key: &TimerKey) -> Result<TimerKey> {
    TimerKey::new(format!("a2.actor:{}:{actor}:{key}", actor.len()))
}

/// Where an instance's presence is.
pub(crate) fn presence(session: &SessionId, actor: &str) -> Result<Namespace> {
    let session = session.as_str();
    let name = format!("a2.actor:{}:{session}:{actor}", session.len());
    if name.len() <= limits::NAME_BYTES {
        return Namespace::new(name);
    }
    Namespace::new(format!("a2.actor:{}", derived(&["presence", session, actor])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_the_same_for_ever() {
        // Stored events have such ids: another value here would handle a repeated message twice.
        let id = message("counter", &EventId::new("m-1").unwrap());
        assert_eq!(id.as_str(), "4d8c34d5-ca7c-5471-bec6-368ede902847");
    }

    #[test]
    fn no_two_instances_share_a_name() {
        let key = |key| TimerKey::new(key).unwrap();
        assert_ne!(timer("a", &key("b:c")).unwrap(), timer("a:b", &key("c")).unwrap());
        let at = |session: &str, actor| presence(&SessionId::new(session).unwrap(), actor).unwrap();
        assert_ne!(at("a", "b:c"), at("a:b", "c"));
        let (long, longer) = ("x".repeat(511), "x".repeat(512));
        assert_ne!(at(&long, "xc"), at(&longer, "c"));
    }
}
