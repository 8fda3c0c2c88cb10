//! The SQLite backend of A2, a storage engine for durable, session-scoped event logs: one file, no
//! server, any number of processes.
//!
//! It is the embedded default for real use. A program depends on this crate alone: it re-exports all
//! of [`a2_core`], and [`rusqlite`] for SQL of its own.
//!
//! ```
//! use std::time::Duration;
//! use a2_store_sqlite::{
//!     Append, ClaimAvailable, CompleteAttempt, NewEvent, SessionId, SqliteStore, Store, Target,
//! };
//!
//! # #[tokio::main]
//! # async fn main() -> a2_store_sqlite::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("a2.db");
//! let store = SqliteStore::open(path).await?;
//! let session = SessionId::new("order-17")?;
//! let placed = NewEvent::new("order.placed", &serde_json::json!({"total": 12}))?
//!     .id("evt-1")?
//!     .target(Target::lane("billing", "order-17")?);
//! store.append(&session, Append::one(placed)?).await?;
//!
//! let claim = ClaimAvailable::new("worker-1", Duration::from_secs(30))?;
//! for claimed in store.claim_available(&session, claim).await?.into_heads() {
//!     let paid = NewEvent::new("order.paid", &serde_json::json!({"total": 12}))?.id("evt-2")?;
//!     let done = CompleteAttempt::new(claimed.head.clone(), claimed.attempt()).events([paid])?;
//!     let completion = store.complete_attempt(&session, done).await?.outcome;
//!     assert_eq!(completion.completed().map(|appended| appended.events[0].index.get()), Some(2));
//! }
//! store.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What survives
//!
//! Every operation is one transaction: it is done as a whole or not at all, whatever dies when.
//!
//! | | [`Synchronous::Full`] (default) | [`Synchronous::Normal`] |
//! |---|---|---|
//! | the process is killed | every answered operation | every answered operation |
//! | the system crashes, the power fails | every answered operation, if the disk keeps what it has flushed | the file stays whole; the last answered operations may be undone, latest first |
//! | the disk is full | the operation answers `STORE_UNAVAILABLE` and was not done; nothing else is lost | the same |
//! | the file is damaged | `CORRUPT` where the damage is met | the same |
//!
//! The file is in WAL mode: it must lie on a local file system, and `a2.db-wal` and `a2.db-shm` beside
//! it belong to it while it is open. Leave room on the disk: the log grows for as long as somebody's read
//! keeps it from being written back (a process that was stopped in the midst of one, say), and once it
//! fills the disk to the last byte the file has no room to take it in; it goes on when there is some.
//! Copy an open file with SQLite's backup or `VACUUM INTO`, not with `cp`.
//!
//! A dropped future leaves its operation done or not done, never half done, and the store usable.
//!
//! # One file, many processes
//!
//! Processes that share the file share its leases: all of them judge by the machine's clock. Write
//! transactions wait for each other (30 seconds at most, see [`SqliteBuilder::operation_timeout`]);
//! reads wait for nobody. Streams and watchers of the process that writes wake at once, those of others
//! within [`SqliteBuilder::poll_interval`]: while any is open, a thread checks one number of the file's
//! header.
//!
//! The file may hold the program's own tables too. [`SqliteStore::complete_attempt_with`] writes to
//! them in the completion's transaction: exactly-once projections in SQL. The store's tables are those
//! named `a2_…`; they may be read by anybody (`payload ->> 'total'` works in SQL), and written by the
//! store alone.
//!
//! # What it costs
//!
//! Every statement seeks a key; a test looks at the plan of each. No operation's cost grows with the
//! history, with what others hold, or with the backlog of consumers that are not served, but for
//! `cursors`, whose pages also go through the leases of the consumers on them.
//!
//! Operations that wait at the same moment share one transaction and one flush to the disk; a lone one
//! never waits for company. An event of 200 bytes with one target takes about 450 bytes of the file.
//!
//! # Runtimes
//!
//! Nothing blocks the runtime: on a multi-thread runtime of tokio work runs in place
//! (`block_in_place`), which saves the 50 µs of a thread hop; on a current-thread runtime, in a
//! `LocalSet` or without tokio it runs on threads of the store's own. In a `LocalSet` of a multi-thread
//! runtime the store finds out by a panic that it catches: once a thread, one message on standard
//! error.
mod blocking;
mod complete_with;
mod config;
mod conn;
mod error;
mod events;
mod listings;
mod presence_rows;
mod reader;
mod reclaim;
mod rows;
mod schema;
mod sessions;
mod statements;
mod store;
mod tables;
mod tx;
mod wake;
mod writer;

pub use a2_core::*;
pub use rusqlite;

pub use complete_with::BoxError;
pub use config::{SqliteBuilder, Synchronous};
pub use store::SqliteStore;
