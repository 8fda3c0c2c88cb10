//! The in-memory backend of A2, a storage engine for durable, session-scoped event logs.
//!
//! It is the reference store, the default for tests, and fit for work that may be lost with the
//! process. A program depends on this crate alone: it re-exports all of [`a2_core`].
//!
//! ```
//! use std::time::Duration;
//! use a2_store_memory::{
//!     Append, Claim, ClaimAvailable, CompleteAttempt, MemoryStore, NewEvent, SessionId, Store,
//!     Target,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> a2_store_memory::Result<()> {
//! let store = MemoryStore::new();
//! let session = SessionId::new("order-17")?;
//! let placed = NewEvent::new("order.placed", &serde_json::json!({"total": 12}))?
//!     .id("evt-1")?
//!     .target(Target::lane("billing", "order-17")?);
//! store.append(&session, Append::one(placed)?).await?;
//!
//! let claim = ClaimAvailable::new("worker-1", Duration::from_secs(30))?;
//! let Claim::Claimed(claimed) = store.claim_available(&session, claim).await? else {
//!     panic!("there is work");
//! };
//! let head = &claimed.heads[0];
//! let paid = NewEvent::new("order.paid", &serde_json::json!({"total": 12}))?.id("evt-2")?;
//! let done = CompleteAttempt::new(head.head.clone(), head.attempt()).events([paid])?;
//! let completion = store.complete_attempt(&session, done).await?.outcome;
//! assert_eq!(completion.completed().map(|appended| appended.events[0].index.get()), Some(2));
//! # Ok(())
//! # }
//! ```
//!
//! # What survives
//!
//! Nothing: the data lives as long as the last handle, at most as long as the process, and is never
//! written anywhere. A panic, an abort, a kill or a power failure loses all of it. Within the
//! process every operation is atomic: it has no await inside, so a future that is dropped is either
//! done or was never begun.
//!
//! # Handles, clocks, closing
//!
//! [`MemoryStore`] is a handle: clones share the data. [`MemoryStore::with_clock`] makes a handle
//! that goes by another clock, for tests that travel in time, [`MemoryStore::with_limits`] one with
//! other [limits](StoreLimits). There is no background task and no
//! I/O; streams do their waiting inside their own futures. [`MemoryStore::close`] ends streams and
//! refuses every later operation of every handle.
//!
//! # What it costs
//!
//! *n* is what the session holds of the kind in question, *k* what the call asks for or passes.
//!
//! | operation | cost |
//! |---|---|
//! | `append` | O(1) hash operations for each event and target, O(log n) for a new lane and for a head that becomes live |
//! | `read`, `stream` | O(k) |
//! | `claim_available` | O(served + k log n) |
//! | `complete_attempt`, `fail_attempt`, `renew_claims`, `release_claims`, `redrive` | O(log n) a head, beside what is returned |
//! | `wake_log`, a typed log's next head | O(types · log n) |
//! | `read_state`, `put_snapshots` | O(log n + k) |
//! | `clear` | O(1), whatever the history |
//! | `reclaim` | 256 entries a call |
//! | `dead_letters`, `cursors`, `timers` | O(log n + k) a page |
//! | `sessions`, `pending` | O(log n + k) a page, nothing for sessions without work |
//! | `schedule`, `unschedule`, `fire_timers` | O(log n) a timer |
//!
//! None of them grows with the history, with finished heads, with heads that others hold or with the
//! backlog of consumers that the caller does not serve. Sessions do not wait for each other: each has
//! its own lock, and they are found through 64 shards. The lists that cross sessions are written only
//! when a session enters or leaves one.
//!
//! A session that is only read is not made by it. What a clear leaves behind stays in memory until
//! `reclaim` says that it is done; everything else stays until the store goes, finished heads too, since a
//! completion can be repeated for the whole lifetime.

mod bits;
mod chunks;
mod config;
mod due;
mod global;
mod handle;
mod heads;
mod lifetime;
mod listing;
mod presences;
mod queue;
mod reclaim;
mod row;
mod session;
mod store;
mod tables;
#[cfg(test)]
mod tests;
mod timers;
mod waiting;

pub use a2_core::*;

pub use config::MemoryStoreBuilder;
pub use handle::MemoryStore;
