//! Hints that sessions may have work.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Clock, Result, Served, SessionId, Timestamp, WorkHints};

use super::Hub;

/// A session with a timer, and when that is due. Ordered by time, then by session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueTimer {
    /// When the timer is due.
    pub due_at: Timestamp,
    /// Whose timer.
    pub session: SessionId,
}

/// What a watcher asks a store about timers.
#[async_trait]
pub trait DueTimers: Send + Sync {
    /// The timers due from `from` to `through`, both included, in order of (due time, session), at
    /// most `limit`. Of those due exactly at `from`, only sessions after `after`. A session's
    /// timers of one due time may come as one.
    async fn due_timers(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>>;

    /// The due time of the first timer that is due later than `after`.
    async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>>;
}

/// The stream behind [`Store::watch_pending`](crate::Store::watch_pending).
///
/// `clock` is the one that judges timers; `poll` is how often it looks for due timers without being
/// woken, for stores that others write to.
pub fn work_hints(
    hub: &Hub,
    due: impl DueTimers + 'static,
    clock: Arc<dyn Clock>,
    served: Served,
    poll: Option<Duration>,
) -> WorkHints {
    let _ = (hub, due, clock, served, poll);
    WorkHints::new(futures_util::stream::pending())
}
