//! Databases as earlier releases of A2 (the npm package) left them, upgraded on a real server: which a
//! test starts, or which A2_POSTGRES_URL names.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod applying;
mod cursors;
mod handlers;
mod old;
mod refusing;
mod tell;
mod writers;
