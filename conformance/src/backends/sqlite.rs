//! The SQLite store: cases that may share a file do, each with a handle of its own, so that the
//! suite also tests many handles on one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use a2_core::{Clock, Index, SessionId, StoreLimits};
use a2_store_sqlite::{SqliteStore, Synchronous, rusqlite};
use futures_util::future::BoxFuture;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::{BoxError, Factory, Isolation, Setup, Subject, async_trait};

/// Opens SQLite stores in temporary folders.
#[derive(Default)]
pub struct Sqlite {
    shared: OnceCell<Arc<TempDir>>,
    /// Stores on one file have one clock: those with the system's share a file of their own.
    shared_live: OnceCell<Arc<TempDir>>,
    synchronous: Synchronous,
}

impl Sqlite {
    /// Does not wait for the disk: for tests that make very many writes and pull no plug.
    #[must_use]
    pub fn relaxed() -> Self {
        Self { synchronous: Synchronous::Normal, ..Self::default() }
    }
}

#[async_trait]
impl Factory for Sqlite {
    fn name(&self) -> &str {
        "sqlite"
    }

    async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
        let folder = match setup.isolation() {
            Isolation::Shared => {
                let live = setup.clock().is_none();
                let shared = if live { &self.shared_live } else { &self.shared };
                let shared = shared.get_or_try_init(|| async { folder() }).await?;
                Arc::clone(shared)
            }
            Isolation::Own => folder()?,
        };
        let path = folder.path().join("a2.db");
        let opening = Opening {
            path,
            clock: setup.clock(),
            synchronous: self.synchronous,
            limits: StoreLimits::ABSOLUTE,
        };
        Ok(handle(opening).await?.guard(folder))
    }
}

fn folder() -> Result<Arc<TempDir>, BoxError> {
    Ok(Arc::new(tempfile::Builder::new().prefix("a2-conformance-").tempdir()?))
}

/// How a handle on a file is opened.
#[derive(Clone)]
struct Opening {
    path: PathBuf,
    /// The system's when none is given.
    clock: Option<Arc<dyn Clock>>,
    synchronous: Synchronous,
    limits: StoreLimits,
}

impl Opening {
    async fn open(&self) -> Result<SqliteStore, BoxError> {
        let builder = SqliteStore::builder(&self.path).synchronous(self.synchronous);
        let mut builder = builder.limits(self.limits);
        if let Some(clock) = &self.clock {
            builder = builder.clock(Arc::clone(clock));
        }
        Ok(builder.open().await?)
    }
}

/// A handle on the file.
fn handle(opening: Opening) -> BoxFuture<'static, Result<Subject, BoxError>> {
    Box::pin(async move {
        let store = opening.open().await?;
        let (closed, damaged, limited) = (store.clone(), opening.path.clone(), opening.clone());
        let subject = Subject::full(store)
            .another(move || handle(opening.clone()))
            .limited(move |limits| handle(Opening { limits, ..limited.clone() }))
            .closing(move || {
                let store = closed.clone();
                async move { Ok(store.close().await?) }
            })
            .losing_events(move |session, index| {
                let lost = lose_event(&damaged, &session, index);
                async move { lost }
            });
        Ok(subject)
    })
}

/// Deletes an event's row behind the store's back.
fn lose_event(path: &Path, session: &SessionId, index: Index) -> Result<(), BoxError> {
    let conn = rusqlite::Connection::open(path)?;
    conn.busy_timeout(Duration::from_secs(10))?;
    let rows = conn.execute(
        "delete from a2_events where idx = ?2
           and sid = (select sid from a2_sessions where name = ?1)",
        rusqlite::params![session.as_str(), i64::try_from(index.get())?],
    )?;
    if rows == 1 { Ok(()) } else { Err(format!("{rows} rows were deleted").into()) }
}
