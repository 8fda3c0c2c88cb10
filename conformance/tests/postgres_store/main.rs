//! What the Postgres store promises beside the model, on a real server: which a test starts, or which
//! A2_POSTGRES_URL names.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod clocks;
mod completions;
mod costs;
mod losses;
mod migrating;
mod notifying;
mod pools;
mod projection;
mod tls;
mod told;
mod util;
mod wakes;
