//! How a store is opened.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use a2_core::{Clock, Error, Result, StoreLimits};

use crate::SqliteStore;

/// What is safe on disk when an operation answers.
///
/// Either way a commit is whole or absent after a crash of the process, of the system or of the
/// power, and later commits never survive without earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Every commit is flushed to the disk before it is answered: an answered operation survives a
    /// power cut, as far as the disk keeps what it has flushed.
    #[default]
    Full,
    /// Commits are flushed at checkpoints alone: an answered operation survives the process, but a
    /// crash of the system or a power cut can undo the last ones, as if they had not happened.
    Normal,
}

/// Opens a [`SqliteStore`] with options.
#[derive(Clone)]
#[must_use]
pub struct SqliteBuilder {
    pub(crate) path: PathBuf,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) synchronous: Synchronous,
    pub(crate) operation_timeout: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) limits: StoreLimits,
}

impl SqliteBuilder {
    pub(crate) fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            clock: None,
            synchronous: Synchronous::Full,
            operation_timeout: Duration::from_secs(30),
            poll_interval: Duration::from_millis(20),
            limits: StoreLimits::ABSOLUTE,
        }
    }

    /// Judges leases, timers and presence by this clock instead of the system's. It is read when a
    /// request is made.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// What is safe on disk when an operation answers; [`Synchronous::Full`] by default.
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// How long an operation may wait for its turn (behind this process's operations, for another
    /// process's transaction) before it is not done and answers `STORE_UNAVAILABLE`; 30 seconds by
    /// default.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// How often the file is checked for what other processes wrote while streams or watchers are
    /// open; 20 milliseconds by default.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// How much the store takes at once; as much as the model allows by default. They are this store's:
    /// another one on the same file has its own.
    pub fn limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens the file, makes it and its tables if need be.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a path that SQLite would not take as the name of a file;
    /// `STORE_NOT_CONFIGURED` when the file cannot be made or written, or its tables are a newer
    /// version's or foreign; `CORRUPT` when it is no database; `STORE_UNAVAILABLE` when another
    /// process keeps it locked.
    pub async fn open(self) -> Result<SqliteStore> {
        self.check()?;
        SqliteStore::start(self, false).await
    }

    /// Exactly the named file is made: what SQLite would take for something else is refused.
    fn check(&self) -> Result<()> {
        let text = self.path.as_os_str().as_encoded_bytes();
        if text.is_empty() {
            return Err(Error::invalid("path", "must not be empty"));
        }
        if text == b":memory:" {
            return Err(Error::invalid(
                "path",
                "must name a file; a store in memory is made by SqliteStore::in_memory()",
            ));
        }
        if text.len() >= 5 && text[..5].eq_ignore_ascii_case(b"file:") {
            return Err(Error::invalid(
                "path",
                "must be a path, not a URI; put ./ before a file name that begins with file:",
            ));
        }
        if text.contains(&0) {
            return Err(Error::invalid("path", "must not contain U+0000"));
        }
        Ok(())
    }
}

impl fmt::Debug for SqliteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBuilder")
            .field("path", &self.path)
            .field("clock", &self.clock)
            .field("synchronous", &self.synchronous)
            .field("operation_timeout", &self.operation_timeout)
            .field("poll_interval", &self.poll_interval)
            .field("limits", &self.limits)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_are_taken() {
        for path in ["", ":memory:", "file::memory:?cache=shared", "FILE:a.db", "a\0b"] {
            let error = SqliteBuilder::new(path).check().unwrap_err();
            assert_eq!(error.code(), "INVALID_INPUT", "{path:?}");
        }
        for path in ["./file:a.db", "a b", "a?b#c%20d", "🦀", ":memory", "/tmp/:memory:"] {
            assert!(SqliteBuilder::new(path).check().is_ok(), "{path:?}");
        }
    }
}
