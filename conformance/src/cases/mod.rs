//! The cases, one file an area, each with one table.
//!
//! A case is an async function that fails by panicking. It uses fresh sessions, so that all cases
//! run in parallel on one server, and asserts literal values written from the model.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a case fails by panicking")]

use crate::Case;

macro_rules! areas {
    ($($area:ident)*) => {
        $(mod $area;)*
        /// The tables of all areas.
        pub(crate) static AREAS: &[&[Case]] = &[$($area::CASES),*];
    };
}

areas! {
    append
    fences
    read
    names
    names_within
    payloads
    limits
    own_limits
    snapshots
    pins
    clear
    reclaim
    timers
    sessions
    pending
    hints
    streams
    stream_clears
    crowds
    presence
    presence_watch
    time
    retries
    lost
    errors
    closing
    corrupt
    hostile
    claims
    exclusions
    lapses
    runs
    races
    renew
    release
    complete
    replays
    returned
    fail
    lanes
    logs
    log_steps
    event_cursors
    wake_log
    cursors
    dead_letters
    served
}
