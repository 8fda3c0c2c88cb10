//! The SQLite store of A2.
mod blocking;
mod complete_with;
mod config;
mod conn;
mod error;
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
