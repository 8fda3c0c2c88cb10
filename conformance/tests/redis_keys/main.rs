//! What the Redis store keeps in which key, for how long and at what cost, on a real server: which a
//! test starts, or which A2_REDIS_URL names.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod listings;
mod plain;
mod presence;
mod reclaiming;
mod scripts;
mod streams;
mod timers;
mod util;
