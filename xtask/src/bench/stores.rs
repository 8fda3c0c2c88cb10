//! The stores that are measured, and the durability they are measured with.

use std::path::Path;
use std::sync::Arc;

use a2_core::Store;
use a2_store_memory::MemoryStore;
use a2_store_sqlite::{SqliteStore, Synchronous};
use anyhow::Result;
use tempfile::TempDir;

use super::measure::Cx;
use super::workers::Stride;

/// A backend with its durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Memory,
    Sqlite(Durability),
}

/// When a commit of SQLite is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Before it is answered.
    Full,
    /// At the next checkpoint.
    Normal,
}

impl Durability {
    pub(crate) const BOTH: [Self; 2] = [Self::Full, Self::Normal];

    /// The name as SQLite's `synchronous` has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

impl From<Durability> for Synchronous {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Full => Self::Full,
            Durability::Normal => Self::Normal,
        }
    }
}

/// An open store and the folder it lies in.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    folder: Option<TempDir>,
}

impl Opened {
    /// The folder of a store that has one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }
}

/// The name of the database in its folder.
pub(crate) const FILE: &str = "a2.db";

impl Engine {
    /// As the table names it.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Memory => "memory".to_owned(),
            Self::Sqlite(durability) => format!("sqlite {}", durability.name()),
        }
    }

    /// How often callers look at the clock: an operation on memory takes less time than that.
    pub(crate) fn stride(self) -> Stride {
        match self {
            Self::Memory => Stride::Sixteen,
            Self::Sqlite(_) => Stride::Each,
        }
    }

    /// A fresh, empty store.
    pub(crate) async fn open(self, cx: &Cx) -> Result<Opened> {
        Ok(match self {
            Self::Memory => Opened { store: Arc::new(MemoryStore::new()), folder: None },
            Self::Sqlite(durability) => {
                let folder = cx.folder()?;
                let store = open_file(folder.path(), durability).await?;
                Opened { store: Arc::new(store), folder: Some(folder) }
            }
        })
    }
}

/// The store in this folder.
pub(crate) async fn open_file(folder: &Path, durability: Durability) -> Result<SqliteStore> {
    let builder = SqliteStore::builder(folder.join(FILE)).synchronous(durability.into());
    Ok(builder.open().await?)
}
