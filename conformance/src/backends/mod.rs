//! The factories of the embedded backends.

#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "memory")]
pub use memory::Memory;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
