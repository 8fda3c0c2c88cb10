//! The scripts: an operation's file after the parts that it uses.

use std::sync::LazyLock;

use bytes::Bytes;

/// An operation's script.
pub(crate) struct Script {
    whole: Text,
    general: Text,
}

/// What the server runs, and the hash that it knows it by.
pub(crate) struct Text {
    pub(crate) source: Bytes,
    pub(crate) sha: Bytes,
}

impl Text {
    fn new(parts: &[&str]) -> Self {
        let source = parts.concat();
        let sha = fred::util::sha1_hash(&source);
        Self { source: source.into(), sha: sha.into() }
    }
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let general: Vec<_> = parts.iter().copied().filter(|part| !PLAIN.contains(part)).collect();
        Self { whole: Text::new(parts), general: Text::new(&general) }
    }

    /// The script, or that without its plain paths, which must do the same.
    pub(crate) fn text(&self, is_general: bool) -> &Text {
        if is_general { &self.general } else { &self.whole }
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
    BATCH = "batch";
    SESSION = "session";
    SINGLE = "single";
    PLAIN_APPEND = "plain_append";
    PLAIN_COMPLETE = "plain_complete";
    PLAIN_STORE = "plain_store";
    PLAIN_FINISH = "plain_finish";
    APPEND_DONE = "append_done";
    COMPLETE_DONE = "complete_done";
    CLAIM_ALONE = "claim_alone";
    PLAIN_CLAIM = "plain_claim";
    CLAIM_DONE = "claim_done";
    COMPLETE_CLAIMED = "complete_claimed";
    CHANGES = "changes";
    PUBLISH = "publish";
    STORE = "store";
    PLAIN_BATCH = "plain_batch";
    KEYS = "keys";
    ORDER = "order";
    LOG = "log";
    TYPES = "types";
    HEADS = "heads";
    SERVED = "served";
    LOGS = "logs";
    DECLARED = "declared";
    PINS = "pins";
    DONE = "done";
    CLAIM = "claim";
    TIMERS_OF = "timers";
    FIRED = "fired";
    PARTITION = "partition";
    DUE = "due";
}

const READING: &[&str] = &[START, SESSION, KEYS, LOG];
const LISTING: &[&str] = &[START, SESSION, CHANGES, KEYS, ORDER, LOG, HEADS];
const HOLDING: &[&str] = &[START, SESSION, CHANGES, PUBLISH, KEYS, HEADS];
const WAKING: &[&str] = &[START, SESSION, CHANGES, KEYS, TYPES, HEADS, LOGS];
/// The plain paths.
const PLAIN: &[&str] = &[
    SINGLE,
    PLAIN_APPEND,
    PLAIN_COMPLETE,
    PLAIN_STORE,
    PLAIN_FINISH,
    APPEND_DONE,
    COMPLETE_DONE,
    CLAIM_ALONE,
    PLAIN_CLAIM,
    CLAIM_DONE,
    COMPLETE_CLAIMED,
    PLAIN_BATCH,
];
// What the plain paths do not do comes after them: a part that is not reached costs nothing.
const APPENDING: &[&str] = &[
    START,
    BATCH,
    SESSION,
    SINGLE,
    PLAIN_APPEND,
    PLAIN_STORE,
    PLAIN_FINISH,
    APPEND_DONE,
    CHANGES,
    PUBLISH,
    STORE,
    PLAIN_BATCH,
    KEYS,
    LOG,
    TYPES,
    HEADS,
    LOGS,
    DECLARED,
];
const CLAIMING: &[&str] = &[
    START,
    SESSION,
    CLAIM_ALONE,
    PLAIN_CLAIM,
    CLAIM_DONE,
    CHANGES,
    KEYS,
    ORDER,
    LOG,
    TYPES,
    HEADS,
    SERVED,
    PINS,
    CLAIM,
];
const FAILING: &[&str] =
    &[START, SESSION, CHANGES, KEYS, ORDER, LOG, TYPES, HEADS, SERVED, PINS, CLAIM];
const COMPLETING: &[&str] = &[
    START,
    BATCH,
    SESSION,
    SINGLE,
    PLAIN_COMPLETE,
    PLAIN_STORE,
    PLAIN_FINISH,
    COMPLETE_DONE,
    PLAIN_CLAIM,
    COMPLETE_CLAIMED,
    CHANGES,
    PUBLISH,
    STORE,
    KEYS,
    ORDER,
    LOG,
    TYPES,
    HEADS,
    SERVED,
    LOGS,
    DECLARED,
    PINS,
    DONE,
    CLAIM,
];
const REDRIVING: &[&str] = &[
    START, BATCH, SESSION, CHANGES, PUBLISH, STORE, KEYS, LOG, TYPES, HEADS, LOGS, DECLARED, PINS,
    DONE,
];
const TIMING: &[&str] = &[START, SESSION, CHANGES, PUBLISH, KEYS, ORDER, LOG, HEADS, TIMERS_OF];
const FIRING: &[&str] = &[
    START, BATCH, SESSION, CHANGES, PUBLISH, STORE, KEYS, ORDER, LOG, TYPES, HEADS, LOGS, DECLARED,
    TIMERS_OF, FIRED,
];
const SNAPPING: &[&str] = &[START, SESSION, CHANGES, KEYS, HEADS, PINS];
const BARE: &[&str] = &[START];
const LOOKING: &[&str] = &[START, ORDER, PARTITION];
const DUE_LOOKING: &[&str] = &[START, ORDER, PARTITION, DUE];

scripts! {
    APPEND = "append", APPENDING;
    READ = "read", READING;
    CLAIM_AVAILABLE = "claim", CLAIMING;
    RENEW = "renew", HOLDING;
    RELEASE = "release", HOLDING;
    COMPLETE = "complete", COMPLETING;
    FAIL = "fail", FAILING;
    REDRIVE = "redrive", REDRIVING;
    WAKE_LOG = "wake_log", WAKING;
    DEAD_LETTERS = "dead_letters", LISTING;
    CURSORS = "cursors", LISTING;
    CLEAR = "clear", TIMING;
    RECLAIM = "reclaim", READING;
    PUT_SNAPSHOTS = "put_snapshots", SNAPPING;
    READ_STATE = "read_state", READING;
    SCHEDULE = "schedule", TIMING;
    UNSCHEDULE = "unschedule", TIMING;
    TIMERS = "timers", TIMING;
    FIRE_TIMERS = "fire_timers", FIRING;
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
        let mut shas: Vec<_> =
            ALL.iter().map(|(_, script)| script.text(false).sha.clone()).collect();
        shas.sort();
        shas.dedup();
        assert_eq!(shas.len(), ALL.len());
    }

    #[test]
    fn what_has_plain_paths_has_general_ones_too() {
        let both = ["append", "claim", "complete"];
        for (file, script) in ALL {
            let differ = script.text(true).sha != script.text(false).sha;
            assert_eq!(differ, both.contains(file), "{file}");
        }
    }
}
