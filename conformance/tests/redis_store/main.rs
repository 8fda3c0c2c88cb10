//! What the Redis store promises beside the model, on real servers and a real cluster. What needs a
//! server of its own, to stop or to fill it, takes this machine's binary; the rest also takes the server
//! that A2_REDIS_URL names.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cluster;
mod connecting;
mod copies;
mod cut;
mod losses;
mod refusals;
mod rights;
mod scripts;
mod sentinel;
#[cfg(unix)]
mod sockets;
mod util;
