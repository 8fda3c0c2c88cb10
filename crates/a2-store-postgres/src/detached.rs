//! Reads of streams and watchers, each in a task of its own.
//!
//! A stream is polled when its reader likes. A read that is under way holds a connection of the pool,
//! which must not wait for that: a few streams that nobody polls would stop the whole store.

use a2_core::live::{DueTimer, DueTimers, LogSource};
use a2_core::{
    Error, Events, Namespace, Presence, PresencePatch, PresenceRows, PresenceStream,
    PresenceUpdate, ReadRange, Result, SessionId, Store, Timestamp, async_trait,
};

use crate::PostgresStore;

/// A store whose reads go on whether or not they are polled.
pub(crate) struct Detached(pub(crate) PostgresStore);

async fn detached<T: Send + 'static>(
    read: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::spawn(read).await.unwrap_or_else(|error| {
        Err(Error::unavailable("the runtime is shutting down").with_source(error))
    })
}

impl LogSource for Detached {
    async fn read_log(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        let (store, session) = (self.0.clone(), session.clone());
        detached(async move { store.read(&session, range).await }).await
    }
}

#[async_trait]
impl DueTimers for Detached {
    async fn due_timers(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>> {
        let (store, after) = (self.0.clone(), after.cloned());
        let range = (from, through);
        detached(async move { store.due_timers(range, after.as_ref(), limit).await }).await
    }

    async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>> {
        let store = self.0.clone();
        detached(async move { store.next_due(after).await }).await
    }
}

#[async_trait]
impl Presence for Detached {
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        self.0.set_presence(namespace, update).await
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        let (store, namespace) = (self.0.clone(), namespace.clone());
        detached(async move { store.read_presence(&namespace).await }).await
    }

    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        self.0.watch_presence(namespace)
    }
}
