//! What the engines themselves can do: the same work without A2, in two kinds of rows. The *bare* ones
//! are the least that any log or queue must write; the *same* ones are those of A2's own layout, without
//! any of its checks.

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redis")]
pub(crate) mod redis;
mod server;
pub(crate) mod sqlite;

pub(crate) use server::{Limit, Reads, Tells, Writes};

/// One write of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write {
    Append { session: usize, count: usize },
    Enqueue { session: usize },
    Claim { session: usize },
    Complete { session: usize, index: i64 },
}
