//! Who is present at an instance.

use a2_core::{
    Namespace, Presence, PresencePatch, PresenceRows, PresenceStream, PresenceUpdate, Result,
    SessionId,
};

use crate::ids;

/// The presence of participants at an actor's instance: fields that go by themselves. From
/// [`Instance::presence`](crate::Instance::presence).
///
/// It is apart from the log and from the state: what is written here comes and goes without a turn.
/// A clear of the session leaves it.
///
/// ```
/// # use a2_actor::{Actor, actor};
/// # use a2_core::{Json, PresenceUpdate};
/// # use a2_runtime::{Events, Runtime};
/// # use a2_store_memory::MemoryStore;
/// # use serde::{Deserialize, Serialize};
/// # use std::time::Duration;
/// # #[derive(Serialize, Deserialize)]
/// # enum Change { Add(u64) }
/// # impl Events for Change {}
/// const COUNTER: Actor<u64, Change> = actor("counter");
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> a2_core::Result<()> {
/// let store = MemoryStore::new();
/// let runtime = Runtime::builder(store.clone()).build()?;
/// let present = COUNTER.of(&runtime.session("s")?).presence(store)?;
/// let typing = PresenceUpdate::new("ann", Duration::from_secs(10))?;
/// present.set(typing.set("typing", Json::parse("true")?)?).await?;
/// assert_eq!(present.read().await?.rows.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct InstancePresence<P> {
    store: P,
    namespace: Namespace,
}

impl<P: Presence> InstancePresence<P> {
    pub(crate) fn new(store: P, session: &SessionId, actor: &str) -> Result<Self> {
        Ok(Self { store, namespace: ids::presence(session, actor)? })
    }

    /// The namespace in the store: that of this instance alone.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Sets and removes a participant's fields; answers what changed.
    ///
    /// # Errors
    /// As [`Presence::set_presence`].
    pub async fn set(&self, update: PresenceUpdate) -> Result<Option<PresencePatch>> {
        self.store.set_presence(&self.namespace, update).await
    }

    /// Who is present now.
    ///
    /// # Errors
    /// As [`Presence::read_presence`].
    pub async fn read(&self) -> Result<PresenceRows> {
        self.store.read_presence(&self.namespace).await
    }

    /// Who is present now, then every change.
    pub fn watch(&self) -> PresenceStream {
        self.store.watch_presence(&self.namespace)
    }
}
