//! A session's events: those stored, then those that are appended.

use std::time::Duration;

use crate::{EventStream, Events, Index, ReadRange, Result, SessionId, Store};

use super::Hub;

/// Where a stream reads a log: every [`Store`] is one.
pub trait LogSource: Send + Sync {
    /// As [`Store::read`].
    fn read_log(
        &self,
        session: &SessionId,
        range: ReadRange,
    ) -> impl Future<Output = Result<Events>> + Send;
}

impl<S: Store> LogSource for S {
    async fn read_log(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        self.read(session, range).await
    }
}

/// The stream behind [`Store::stream`].
///
/// `poll` is how often it looks without being woken, for stores that others write to.
pub fn event_stream(
    store: impl LogSource + 'static,
    hub: &Hub,
    session: &SessionId,
    start_after: Index,
    poll: Option<Duration>,
) -> EventStream {
    let _ = (store, hub, session, start_after, poll);
    EventStream::new(futures_util::stream::pending())
}
