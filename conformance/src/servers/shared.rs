//! One server for all cases of a process, and names that keep them apart.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::OnceCell;

use super::ServerError;

/// A server that the first case starts and all use. A failure is kept too: the others fail at once.
#[derive(Debug)]
pub struct Shared<T> {
    cell: OnceCell<Result<Arc<T>, ServerError>>,
}

impl<T> Shared<T> {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { cell: OnceCell::const_new() }
    }

    /// The server; the future is run for the first that asks.
    ///
    /// # Errors
    /// The first future's error, for all.
    pub async fn get(
        &self,
        start: impl Future<Output = Result<T, ServerError>>,
    ) -> Result<Arc<T>, ServerError> {
        self.cell.get_or_init(|| async { start.await.map(Arc::new) }).await.clone()
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A name that no other case has, in this process or in another on the same server: it may stand as a
/// schema, a database or a prefix without quotes.
#[must_use]
pub fn fresh_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("a2_{:016x}_{next}", RandomState::new().hash_one(std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_failure_is_everybodys() {
        let shared = Shared::<u8>::new();
        let none = ServerError::new("none");
        assert_eq!(shared.get(async { Err(none.clone()) }).await.unwrap_err(), none);
        assert_eq!(shared.get(async { Ok(1) }).await.unwrap_err(), none);
    }

    #[tokio::test]
    async fn the_first_server_is_everybodys() {
        let shared = Shared::new();
        assert_eq!(*shared.get(async { Ok(1) }).await.unwrap(), 1);
        assert_eq!(*shared.get(async { Ok(2) }).await.unwrap(), 1);
    }

    #[test]
    fn names_are_fresh_and_plain() {
        let (one, two) = (fresh_name(), fresh_name());
        assert_ne!(one, two);
        assert!(one.starts_with("a2_"), "{one}");
        assert!(one.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
    }
}
