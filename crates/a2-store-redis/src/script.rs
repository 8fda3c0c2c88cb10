//! The scripts: an operation's file after the parts that it uses.

use std::sync::LazyLock;

use bytes::Bytes;

/// A script, and the hash that the server knows it by.
pub(crate) struct Script {
    pub(crate) source: Bytes,
    pub(crate) sha: Bytes,
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let source = parts.concat();
        let sha = fred::util::sha1_hash(&source);
        Self { source: source.into(), sha: sha.into() }
    }
}

/// Defines scripts by their parts.
macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $file:literal, $parts:expr;)*) => {
        $($(#[$doc])* pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            let own: &[&str] = &[include_str!(concat!("../lua/", $file, ".lua"))];
            Script::new(&[$parts, own].concat())
        });)*
        #[cfg(test)]
        const ALL: &[(&str, &LazyLock<Script>)] = &[$(($file, &$name)),*];
    };
}

/// Defines the shared parts.
macro_rules! parts {
    ($($name:ident = $file:literal;)*) => {
        $(const $name: &str = include_str!(concat!("../lua/lib/", $file, ".lua"));)*
    };
}

parts! {
    START = "start";
    PLAIN_SERVED = "plain_served";
    PLAIN_APPEND = "plain_append";
    PLAIN_CLAIM = "plain_claim";
    PLAIN_CLAIMING = "plain_claiming";
    PLAIN_COMPLETE = "plain_complete";
    BASE = "base";
    ORDER = "order";
    LOG = "log";
    TYPES = "types";
    HEADS = "heads";
    SERVED = "served";
    FINISH = "finish";
    LOGS = "logs";
    STORE = "store";
    PINS = "pins";
    DONE = "done";
    CLAIM = "claim";
    TIMERS_OF = "timers";
    PARTITION = "partition";
    DUE = "due";
}

const READING: &[&str] = &[START, BASE, LOG];
const LISTING: &[&str] = &[START, BASE, ORDER, LOG, HEADS];
const STORING: &[&str] = &[START, BASE, LOG, TYPES, HEADS, SERVED, FINISH, LOGS, STORE];
// What the plain paths do not do comes after them: a part that is not reached costs nothing.
const APPENDING: &[&str] =
    &[START, PLAIN_SERVED, PLAIN_APPEND, BASE, LOG, TYPES, HEADS, SERVED, FINISH, LOGS, STORE];
const CLAIMING: &[&str] = &[
    START,
    PLAIN_CLAIM,
    PLAIN_CLAIMING,
    BASE,
    ORDER,
    LOG,
    TYPES,
    HEADS,
    SERVED,
    FINISH,
    LOGS,
    STORE,
    PINS,
    CLAIM,
];
const FAILING: &[&str] =
    &[START, BASE, ORDER, LOG, TYPES, HEADS, SERVED, FINISH, LOGS, STORE, PINS, CLAIM];
const COMPLETING: &[&str] = &[
    START,
    PLAIN_SERVED,
    PLAIN_CLAIM,
    PLAIN_COMPLETE,
    BASE,
    ORDER,
    LOG,
    TYPES,
    HEADS,
    SERVED,
    FINISH,
    LOGS,
    STORE,
    PINS,
    DONE,
    CLAIM,
];
const REDRIVING: &[&str] =
    &[START, BASE, LOG, TYPES, HEADS, SERVED, FINISH, LOGS, STORE, PINS, DONE];
const TIMING: &[&str] =
    &[START, BASE, ORDER, LOG, TYPES, HEADS, SERVED, FINISH, LOGS, STORE, TIMERS_OF];
const SNAPPING: &[&str] = &[START, BASE, LOG, HEADS, FINISH, PINS];
const BARE: &[&str] = &[START];
const LOOKING: &[&str] = &[START, ORDER, PARTITION];
const DUE_LOOKING: &[&str] = &[START, ORDER, PARTITION, DUE];

scripts! {
    APPEND = "append", APPENDING;
    READ = "read", READING;
    CLAIM_AVAILABLE = "claim", CLAIMING;
    RENEW = "renew", STORING;
    RELEASE = "release", STORING;
    COMPLETE = "complete", COMPLETING;
    FAIL = "fail", FAILING;
    REDRIVE = "redrive", REDRIVING;
    WAKE_LOG = "wake_log", STORING;
    DEAD_LETTERS = "dead_letters", LISTING;
    CURSORS = "cursors", LISTING;
    CLEAR = "clear", TIMING;
    RECLAIM = "reclaim", READING;
    PUT_SNAPSHOTS = "put_snapshots", SNAPPING;
    READ_STATE = "read_state", READING;
    SCHEDULE = "schedule", TIMING;
    UNSCHEDULE = "unschedule", TIMING;
    TIMERS = "timers", TIMING;
    FIRE_TIMERS = "fire_timers", TIMING;
    TIMERS_DUE = "timers_due", DUE_LOOKING;
    TIMERS_NEXT = "timers_next", DUE_LOOKING;
    SESSIONS = "sessions", LOOKING;
    PENDING = "pending", LOOKING;
    HEADS_OF = "heads", LOOKING;
    SET_PRESENCE = "set_presence", BARE;
    READ_PRESENCE = "read_presence", BARE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_another() {
        let mut shas: Vec<_> = ALL.iter().map(|(_, script)| script.sha.clone()).collect();
        shas.sort();
        shas.dedup();
        assert_eq!(shas.len(), ALL.len());
    }
}
