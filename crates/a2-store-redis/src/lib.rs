//! The Redis backend of A2, a storage engine for durable, session-scoped event logs: keys on a server
//! or a cluster, any number of processes.

mod args;
mod config;
mod conn;
mod error;
mod keys;
mod layout;
mod link;
mod listing;
mod note;
mod open;
mod presence_rows;
mod reply;
mod script;
mod server;
mod session_ops;
mod snapshots;
mod store;
mod tell;
mod timers;
mod tls;
mod verbs;
mod wake;

pub use a2_core::*;
pub use fred;

pub use config::RedisBuilder;
pub use server::ServerInfo;
pub use store::RedisStore;
