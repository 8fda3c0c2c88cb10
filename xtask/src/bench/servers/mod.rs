//! The servers that stores are opened on, clean ones that the harness starts in temporary folders, and
//! what is asked of them without A2.
//!
//! Every measurement works in a space of its own: a schema of Postgres, a prefix of Redis. It is
//! removed before the next one is made, not while something is measured.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use a2_core::{Store, async_trait};
use anyhow::Result;
#[cfg(not(all(feature = "postgres", feature = "redis")))]
use anyhow::bail;
use tokio::sync::mpsc;

use super::Backend;
use super::limits::{Limit, Reads, Tells, Writes};
use crate::conformance::Servers as Wanted;

/// A server, as the workloads see it.
#[async_trait]
pub(crate) trait Server: Send + Sync + 'static {
    /// Its version and when a commit is durable.
    fn facts(&self) -> String;

    /// A space that nobody had before.
    fn fresh_name(&self) -> String;

    /// Another handle of a store on this space, which is made when it is not there.
    async fn open(&self, space: &str) -> Result<Arc<dyn Store>>;

    /// Removes all that is in these spaces.
    async fn remove(&self, spaces: &[String]) -> Result<()>;

    /// Callers of a limit in a fresh space.
    async fn writers(
        &self,
        space: &str,
        limit: Limit,
        callers: usize,
    ) -> Result<Vec<Box<dyn Writes>>>;

    /// A session of so many events in a fresh space, with a snapshot.
    async fn reader(
        &self,
        space: &str,
        events: usize,
        snapshot: (i64, &str),
    ) -> Result<Box<dyn Reads>>;

    /// An appender in a fresh space, and when a listener heard of what it did.
    async fn teller(
        &self,
        space: &str,
    ) -> Result<(Box<dyn Tells>, mpsc::UnboundedReceiver<Instant>)>;

    /// Where counting begins.
    async fn mark(&self) -> Result<Mark>;

    /// What was written in this space since then.
    async fn weigh(&self, space: &str, mark: &Mark) -> Result<Weight>;
}

/// Where counting begins.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(any(feature = "postgres", feature = "redis")), expect(dead_code))]
pub(crate) struct Mark {
    /// The place in the write-ahead log, where there is one.
    log: String,
    /// Bytes that were stored.
    bytes: f64,
}

/// What was written since a mark; nothing where a server does not have it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    /// Bytes that are stored.
    pub(crate) bytes: f64,
    /// Bytes of the write-ahead log, without images of whole pages.
    pub(crate) log: f64,
    /// Versions of rows.
    pub(crate) rows: f64,
    /// Entries of indexes.
    pub(crate) entries: f64,
}

/// The servers that a run needs.
#[derive(Clone, Default)]
pub(crate) struct Servers {
    running: Vec<(Backend, Handle)>,
}

/// A server and the spaces that may go.
#[derive(Clone)]
pub(crate) struct Handle {
    server: Arc<dyn Server>,
    left: Arc<Mutex<Vec<String>>>,
}

/// A space on a server, until it is dropped.
pub(crate) struct Space {
    pub(crate) server: Arc<dyn Server>,
    pub(crate) name: String,
    left: Arc<Mutex<Vec<String>>>,
}

impl Servers {
    /// Starts a backend's server, or finds it.
    #[cfg_attr(not(any(feature = "postgres", feature = "redis")), expect(unused_variables))]
    pub(crate) async fn start(&mut self, backend: Backend, from: Wanted) -> Result<()> {
        let server: Option<Arc<dyn Server>> = match backend {
            Backend::Memory | Backend::Sqlite => None,
            #[cfg(feature = "postgres")]
            Backend::Postgres => Some(Arc::new(postgres::Postgres::start(from.into()).await?)),
            #[cfg(not(feature = "postgres"))]
            Backend::Postgres => {
                bail!("this program was built without it: add --features postgres")
            }
            #[cfg(feature = "redis")]
            Backend::Redis => Some(Arc::new(redis::Redis::start(from.into()).await?)),
            #[cfg(not(feature = "redis"))]
            Backend::Redis => bail!("this program was built without it: add --features redis"),
        };
        if let Some(server) = server {
            self.running.push((backend, Handle { server, left: Arc::default() }));
        }
        Ok(())
    }

    /// A backend's server, which was started.
    pub(crate) fn of(&self, backend: Backend) -> Option<&Handle> {
        self.running.iter().find(|(of, _)| *of == backend).map(|(_, handle)| handle)
    }
}

impl Handle {
    /// Its version and when a commit is durable.
    pub(crate) fn facts(&self) -> String {
        self.server.facts()
    }

    /// A fresh space. What earlier measurements left goes before.
    pub(crate) async fn space(&self) -> Result<Space> {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner));
        self.server.remove(&left).await?;
        let name = self.server.fresh_name();
        Ok(Space { server: Arc::clone(&self.server), name, left: Arc::clone(&self.left) })
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.push(std::mem::take(&mut self.name));
    }
}
