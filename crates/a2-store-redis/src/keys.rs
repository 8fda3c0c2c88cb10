//! The keys, and which partition a session is in.
//!
//! All keys of a session lie in one hash slot, that of its partition: there are 256, and partition k is
//! in slot 64·k, so that they spread evenly over any number of masters. A key is the prefix, the
//! partition's tag and a letter; U+0000, which no name has, joins what follows.

use std::sync::{Arc, LazyLock};

use a2_core::{Error, Namespace, Result, SessionId};
use bytes::Bytes;
use fred::util::redis_keyslot;

/// How many partitions there are.
pub(crate) const PARTITIONS: usize = 256;
/// The layout that this version reads and writes, as it is recorded in every partition.
pub(crate) const LAYOUT: &str = "a2-redis-2";

/// What stands between the braces of a partition's keys: the smallest number in its slot.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut tags = vec![String::new(); PARTITIONS];
    let mut missing = PARTITIONS;
    for tag in (0_u32..).map(|number| number.to_string()) {
        let slot = usize::from(redis_keyslot(tag.as_bytes()));
        if slot.is_multiple_of(64)
            && let Some(place) = tags.get_mut(slot / 64)
            && place.is_empty()
        {
            *place = tag;
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    tags
});

/// The partition of a name: 64 bits of FNV-1a, folded.
fn partition_of(name: &str) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let folded = hash ^ (hash >> 32);
    let folded = folded ^ (folded >> 16);
    usize::from((folded ^ (folded >> 8)) as u8)
}

/// The keys of a store.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: Arc<str>,
    partitions: Arc<[Partition]>,
}

/// The keys of a partition.
#[derive(Debug)]
pub(crate) struct Partition {
    /// The hash slot.
    pub(crate) slot: u16,
    /// What its keys begin with.
    base: String,
    /// The timers of its sessions, by due time.
    pub(crate) timers: Bytes,
    /// Never exists.
    pub(crate) guard: Bytes,
    /// The layout's name.
    pub(crate) schema: Bytes,
    /// Where commits are told.
    pub(crate) channel: Bytes,
}

impl Keys {
    /// # Errors
    /// `INVALID_INPUT` for a prefix with a brace or U+0000, which would move the partitions' tags.
    pub(crate) fn new(prefix: &str) -> Result<Self> {
        if prefix.contains(['{', '}', '\0']) {
            return Err(Error::invalid("prefix", "must not contain {, } or U+0000"));
        }
        let partition = |(place, tag): (usize, &String)| {
            let base = format!("{prefix}:{{{tag}}}:");
            let key = |name: &str| Bytes::from(format!("{base}{name}"));
            Partition {
                slot: u16::try_from(place * 64).unwrap_or_default(),
                timers: key("T"),
                guard: key("guard"),
                schema: key("schema"),
                channel: key("w"),
                base,
            }
        };
        let partitions = TAGS.iter().enumerate().map(partition).collect();
        Ok(Self { prefix: prefix.into(), partitions })
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What the npm package's store records its layout in, as its prefix is given or in braces.
    pub(crate) fn of_the_earlier(&self) -> [Bytes; 2] {
        let prefix = &self.prefix;
        [format!("{prefix}:schema").into(), format!("{{{prefix}}}:schema").into()]
    }

    /// All partitions, in order.
    pub(crate) fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// A session's partition and the key of its state.
    pub(crate) fn session(&self, session: &SessionId) -> (&Partition, Bytes) {
        self.named(session.as_str(), 'm')
    }

    /// A namespace's partition and key.
    pub(crate) fn namespace(&self, namespace: &Namespace) -> (&Partition, Bytes) {
        self.named(namespace.as_str(), 'p')
    }

    /// The partition of a session's or a namespace's name.
    pub(crate) fn place_of(&self, name: &str) -> usize {
        partition_of(name)
    }

    /// The channel of a partition.
    pub(crate) fn channel(&self, place: usize) -> String {
        format!("{}w", self.partitions[place].base)
    }

    fn named(&self, name: &str, letter: char) -> (&Partition, Bytes) {
        let partition = &self.partitions[partition_of(name)];
        (partition, Bytes::from(format!("{}{letter}\0{name}", partition.base)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_k_is_in_slot_64_k() {
        let keys = Keys::new("a2").unwrap();
        assert_eq!(keys.partitions().len(), PARTITIONS);
        for (place, partition) in keys.partitions().iter().enumerate() {
            assert_eq!(usize::from(partition.slot), place * 64);
            for key in [&partition.timers, &partition.guard, &partition.channel] {
                assert_eq!(redis_keyslot(key), partition.slot);
            }
        }
    }

    #[test]
    fn a_session_name_cannot_leave_its_slot() {
        let keys = Keys::new("a2").unwrap();
        for name in ["plain", "{0}", "}{x}", ":{1}:", "a\nb", "🦀"] {
            let (partition, key) = keys.session(&SessionId::new(name).unwrap());
            assert_eq!(redis_keyslot(&key), partition.slot, "{name}");
        }
    }

    /// These are written in databases: they can never change.
    #[test]
    fn names_stay_in_their_partitions() {
        let slot = |name: &str| {
            Keys::new("a2").unwrap().session(&SessionId::new(name).unwrap()).0.slot / 64
        };
        assert_eq!([slot("order-17"), slot("a"), slot("🦀")], [PLACES[0], PLACES[1], PLACES[2]]);
    }

    const PLACES: [u16; 3] = [199, 187, 157];

    #[test]
    fn a_prefix_with_a_brace_is_refused() {
        for prefix in ["{a", "a}", "a\0"] {
            assert_eq!(Keys::new(prefix).unwrap_err().code(), "INVALID_INPUT");
        }
    }
}
