//! The cursor model over a small table trait, for the embedded backends.
//!
//! Every function here is one operation on one session: it runs inside a transaction that the
//! backend holds (a mutex, a database transaction), reads and writes rows through [`Tables`], and
//! is synchronous. Memory and SQLite differ in how they keep rows, not in what they decide, so the
//! decisions stand here once.
//!
//! Every function checks everything before its first write. A backend whose tables can fail between
//! two writes must be able to roll the transaction back; one whose tables cannot (memory) needs no
//! undo.

mod append;
mod attempt;
mod claim;
mod dead;
mod lifetime;
mod listing;
mod logs;
mod state;
mod tables;
mod timers;

pub use append::{append, read};
pub use attempt::{complete_attempt, fail_attempt, release_claims, renew_claims};
pub use claim::{claim_available, pending_since};
pub use dead::{dead_letters, redrive};
pub use lifetime::clear;
pub use listing::cursors;
pub use logs::wake_log;
pub use state::{put_snapshots, read_state};
pub use tables::{
    DoneRecord, HeadRow, HeadStatus, LaneRow, ListFrom, LogRow, LogState, Tables, TimerRow,
};
pub use timers::{fire_timers, schedule, timers, unschedule};
