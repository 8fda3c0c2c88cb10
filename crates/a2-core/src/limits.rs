//! Every absolute limit of the model, in one place.
//!
//! The limits are the same on every backend: they are checked when a value or a request is made, so
//! that nothing too large reaches a store. A store may be given lower ones: [`StoreLimits`](crate::StoreLimits).

/// Longest name (session, event id, type, consumer, lane, …), in bytes of UTF-8.
pub const NAME_BYTES: usize = 512;
/// Longest payload or state, in bytes of JSON text without insignificant white space.
pub const JSON_BYTES: usize = 16 * 1024 * 1024;
/// Deepest nesting of arrays and objects in a payload or state. `serde_json` parses no deeper.
pub const JSON_DEPTH: usize = 127;
/// Most events in one append or completion.
pub const BATCH_EVENTS: usize = 10_000;
/// Most targets in one append or completion.
pub const BATCH_TARGETS: usize = 20_000;
/// Most targets of one event.
pub const EVENT_TARGETS: usize = 100;
/// Most bytes of names and payloads together in one append or completion.
pub const BATCH_BYTES: usize = 64 * 1024 * 1024;
/// Most entries in a `Served` list.
pub const SERVED_ENTRIES: usize = 256;
/// Most types in one log declaration.
pub const LOG_TYPES: usize = 100;
/// Most exclusions, renewals or releases in one call.
pub const CLAIM_LIST: usize = 10_000;
/// Most snapshot writes in one call.
pub const SNAPSHOT_WRITES: usize = 100;
/// Most pins of one snapshot write.
pub const SNAPSHOT_PINS: usize = 100;
/// Page size when none is given.
pub const PAGE_DEFAULT: usize = 100;
/// Largest page.
pub const PAGE_MAX: usize = 1_000;
/// Heads claimed when no limit is given.
pub const CLAIM_DEFAULT: usize = 64;
/// Most heads of one claim.
pub const CLAIM_MAX: usize = 1_000;
/// Most events in the run of a claimed log head.
pub const RUN_MAX: usize = 1_000;
/// How many of the longest due heads of each served consumer take part in one claim.
pub const DUE_WINDOW: usize = 256;
/// Events read when no limit is given.
pub const READ_DEFAULT: usize = 1_000;
/// Most events of one read.
pub const READ_MAX: usize = 10_000;
/// A read, claim or state read stops after the event with which this many payload bytes are passed.
pub const READ_BYTES: usize = 16 * 1024 * 1024;
/// Timers fired when no limit is given.
pub const FIRE_DEFAULT: usize = 100;
/// Most timers fired by one call.
pub const FIRE_MAX: usize = 1_000;
/// Most fields in one presence write.
pub const PRESENCE_FIELDS: usize = 64;
/// Longest presence value, in bytes of JSON text.
pub const PRESENCE_VALUE_BYTES: usize = 64 * 1024;
/// An error text is cut here, on a character boundary.
pub const ERROR_BYTES: usize = 64 * 1024;
/// Rows that one `reclaim` call deletes, about.
pub const RECLAIM_ROWS: usize = 256;
/// Last index of a log: 2^53 − 1, the largest integer every JSON reader keeps exactly.
pub const INDEX_MAX: u64 = (1 << 53) - 1;
/// Longest duration, in milliseconds: 365 days. Longer ones are clamped to it.
pub const DURATION_MS: u64 = 365 * 24 * 60 * 60 * 1000;
