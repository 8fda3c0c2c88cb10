//! What is asked of a server without A2. Each caller of a workload has a writer of its own and its own
//! sessions, so that a writer counts its sessions' heads by itself.

use a2_core::async_trait;
use anyhow::Result;

use super::Write;

/// A limit of a server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The least that a log or a queue writes.
    Bare,
    /// An append with what a queue needs besides, as a script; of Redis alone.
    Script,
    /// The rows or keys of A2's layout.
    Same,
}

/// Writes by statements or scripts that are prepared.
#[async_trait]
pub(crate) trait Writes: Send + 'static {
    /// Does it; a claim gives the index, all others 0.
    async fn write(&mut self, write: Write) -> Result<i64>;
}

/// One session with a filled log.
#[async_trait]
pub(crate) trait Reads: Send + 'static {
    /// Reads up to `limit` events after `after` as values that the caller keeps; gives how many.
    async fn scan(&mut self, after: i64, limit: usize) -> Result<usize>;

    /// Reads the latest snapshot and the events after it; gives how many these are.
    async fn state(&mut self) -> Result<usize>;

    /// Writes a snapshot at `index` and a pin of it.
    async fn put(&mut self, index: i64, state: &str) -> Result<()>;
}

/// Appends and tells who listens, in one.
#[async_trait]
pub(crate) trait Tells: Send + 'static {
    async fn tell(&mut self) -> Result<()>;
}
