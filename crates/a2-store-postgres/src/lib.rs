//! The Postgres backend of A2, a storage engine for durable, session-scoped event logs.

mod args;
mod clock;
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
pub use store::PostgresStore;
