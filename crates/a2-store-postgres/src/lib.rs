//! The Postgres backend of A2, a storage engine for durable, session-scoped event logs: tables and
//! functions in a database of yours, any number of processes.
//!
//! A program depends on this crate alone: it re-exports all of [`a2_core`], and [`tokio_postgres`] and
//! [`deadpool_postgres`] for pools and SQL of its own.
//!
//! ```no_run
//! use std::time::Duration;
//! use a2_store_postgres::{
//!     Append, ClaimAvailable, CompleteAttempt, NewEvent, PostgresStore, SessionId, Store, Target,
//! };
//!
//! # #[tokio::main]
//! # async fn main() -> a2_store_postgres::Result<()> {
//! let store = PostgresStore::connect("postgres://app@localhost/app").await?;
//! store.migrate().await?;
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
//! # Ok(())
//! # }
//! ```
//!
//! # Tables
//!
//! [`PostgresStore::migrate`] makes what is missing, in one transaction, safe to run again on a live
//! database and by many processes at once. The same is done by `sql/postgres/schema.sql`, by any tool: as
//! one script, or statement by statement, each of which ends with the line `--> statement-breakpoint`. It
//! works in the first schema of the `search_path`, or in [that of the options](PostgresBuilder::schema),
//! beside others' tables and other stores. Postgres 14 or newer, UTF8; tried on 15 and 18 and through
//! PgBouncer 1.18.
//!
//! Only the owner may execute the functions. Another role that works with the store needs `usage` on
//! the schema, `select, insert, update, delete` on its tables that are named `a2_…`, and `execute` on its
//! functions. They run as the role that calls them and with its `search_path`: let nobody but trusted
//! roles create things in the schemas that are on it (before Postgres 15 that is `public`, for
//! everybody, until it is revoked).
//!
//! Anybody may read the tables (`payload ->> 'total'` works in SQL); the store alone writes them.
//!
//! # Upgrading
//!
//! The tables of the earlier A2 (the npm package) are upgraded by the same call and the same file, whole or
//! not at all. Let its processes end first: one that still writes is waited for, and what it tries
//! afterwards fails. Everything is locked meanwhile; a row takes some 0.1 milliseconds.
//!
//! - *0.21 and 0.22*: events, the latest snapshots and what pins of live heads keep, clears, presence, and
//!   every cursor with its position, its head's dispatch state and its lane's queue. Leases run on, and a
//!   completion that is sent again is a replay.
//! - *0.17 to 0.20*: events and the latest snapshots. A cause gets the consumer `a2.handlers` and its
//!   parent's lane. Nobody can finish what handlers have not: `migrate` refuses while there is such work,
//!   unless [told to drop it](Migrate::drop_unfinished); the plain file drops it.
//!
//! What a row of the old tables becomes stands at the head of `sql/postgres/schema/00a-earlier.sql`. A row
//! that breaks a limit of today's is refused by name (an empty or overlong name, too deep a payload), and
//! so is a database that has been changed in ways the upgrade does not know: nothing is changed then.
//! Only the owner of the tables can upgrade them. Rights on `a2_events` stay; those on the other tables,
//! which are new, must be granted again.
//!
//! # What survives
//!
//! Every operation is one statement, and so one transaction: it is done as a whole or not at all,
//! whatever dies when. What an answered operation survives is what the server's `synchronous_commit`
//! and its standbys say: with the default, a crash of the server; a failover to a standby that did not
//! have it yet undoes it, as it would any transaction. An operation whose answer was lost answers
//! `STORE_UNAVAILABLE` with `outcome_unknown`; sent again as it is, it finds what was done.
//!
//! A dropped future leaves its operation done or not done, and the connections usable: calls run in
//! tasks of their own. After [`PostgresBuilder::operation_timeout`] an operation is answered
//! `STORE_UNAVAILABLE`, and the server is told to end it then (where a `statement_timeout` that is set does
//! not end it sooner).
//!
//! The server's clock judges leases, timers and presence: it is read after the session's lock is held.
//!
//! # Connections
//!
//! The store makes a [pool of its own](PostgresBuilder::max_connections), or takes
//! [one of yours](PostgresStore::from_pool). An operation takes one connection for one round trip.
//! Operations that wait at the same moment share a round trip and a commit; a lone one never waits for
//! company. The connections of a given pool must not be left inside a transaction.
//!
//! While streams or watchers are open the store has one connection more, which listens and belongs to no
//! pool. When it is lost it is made again, and everybody catches up by reading. What a store commits is
//! told to others after the commit, outside of it: a notification holds a lock that is the whole
//! server's. Without a listening connection (a given pool, a pooler, or
//! [by option](PostgresBuilder::notifications)) streams and watchers poll; then a hint for an append
//! that no consumer was served for does not come: `pending` is the truth.
//!
//! Through PgBouncer in transaction mode: [`Statements::Unnamed`], and
//! [`PostgresBuilder::listen_at`] with a URL that leads to the server itself.
//!
//! With `sslmode=require` in the URL connections are encrypted by rustls and the server's certificate
//! is checked against those that the platform trusts; [`PostgresBuilder::tls`] takes a configuration
//! of yours. Without either nothing is encrypted.

mod args;
mod coalesce;
mod complete_with;
mod config;
mod conn;
mod error;
mod note;
mod ops;
mod presence_rows;
mod reads;
mod rows;
mod schema;
mod sessions;
mod statements;
mod store;
mod tell;
mod tls;
mod values;
mod verbs;
mod wake;

pub use a2_core::*;
pub use deadpool_postgres;
pub use deadpool_postgres::tokio_postgres;
#[cfg(feature = "tls")]
pub use rustls;

pub use complete_with::BoxError;
pub use config::{PostgresBuilder, Statements};
pub use schema::Migrate;
pub use store::PostgresStore;
