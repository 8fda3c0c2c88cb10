//! The stores that are measured, and the durability they are measured with.

use std::path::Path;
use std::sync::Arc;

use a2_core::Store;
use a2_store_memory::MemoryStore;
use a2_store_sqlite::{SqliteStore, Synchronous};
use anyhow::Result;
use tempfile::TempDir;

use super::Backend;
use super::measure::Cx;
use super::servers::Space;
use super::workers::Stride;

/// A backend with its durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Memory,
    Sqlite(Durability),
    Postgres,
    Redis,
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

/// An open store and where it lies.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    place: Place,
}

enum Place {
    Memory,
    Folder(TempDir),
    Space(Space),
}

impl Opened {
    /// The folder of a store that has one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(folder) => Some(folder.path()),
            Place::Memory | Place::Space(_) => None,
        }
    }

    /// The space of a store on a server.
    pub(crate) fn space(&self) -> Option<&Space> {
        match &self.place {
            Place::Space(space) => Some(space),
            Place::Memory | Place::Folder(_) => None,
        }
    }

    /// Another handle on the same, as another process has it.
    pub(crate) async fn another(&self, engine: Engine) -> Result<Arc<dyn Store>> {
        match (engine, &self.place) {
            (Engine::Sqlite(durability), Place::Folder(folder)) => {
                Ok(Arc::new(open_file(folder.path(), durability).await?))
            }
            (_, Place::Space(space)) => space.server.open(&space.name).await,
            _ => Ok(Arc::clone(&self.store)),
        }
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
            Self::Postgres => "postgres".to_owned(),
            Self::Redis => "redis".to_owned(),
        }
    }

    pub(crate) fn backend(self) -> Backend {
        match self {
            Self::Memory => Backend::Memory,
            Self::Sqlite(_) => Backend::Sqlite,
            Self::Postgres => Backend::Postgres,
            Self::Redis => Backend::Redis,
        }
    }

    /// How often callers look at the clock: an operation on memory takes less time than that.
    pub(crate) fn stride(self) -> Stride {
        match self {
            Self::Memory => Stride::Sixteen,
            Self::Sqlite(_) | Self::Postgres | Self::Redis => Stride::Each,
        }
    }

    /// A fresh, empty store.
    pub(crate) async fn open(self, cx: &Cx) -> Result<Opened> {
        Ok(match self {
            Self::Memory => Opened { store: Arc::new(MemoryStore::new()), place: Place::Memory },
            Self::Sqlite(durability) => {
                let folder = cx.folder()?;
                let store = open_file(folder.path(), durability).await?;
                Opened { store: Arc::new(store), place: Place::Folder(folder) }
            }
            Self::Postgres | Self::Redis => {
                let space = cx.space(self).await?;
                let store = space.server.open(&space.name).await?;
                Opened { store, place: Place::Space(space) }
            }
        })
    }
}

/// The store in this folder.
pub(crate) async fn open_file(folder: &Path, durability: Durability) -> Result<SqliteStore> {
    let builder = SqliteStore::builder(folder.join(FILE)).synchronous(durability.into());
    Ok(builder.open().await?)
}
