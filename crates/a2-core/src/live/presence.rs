//! Watching a namespace.

use std::sync::Arc;
use std::time::Duration;

use crate::presence::PresenceWrite;
use crate::{Clock, Namespace, Presence, PresencePatch, PresenceStream, Timestamp};

/// Wakes the presence watchers of one store. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct PresenceHub(Arc<()>);

impl PresenceHub {
    /// A hub that nobody listens to yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A write was committed: tells the namespace's watchers what they need to know of it. Call it
    /// in the order of the commits.
    pub fn written(&self, namespace: &Namespace, write: &PresenceWrite) {
        if let Some(patch) = &write.patch {
            self.changed(namespace, patch, write.expires_at);
        }
        if write.sooner {
            self.wake(namespace);
        }
    }

    /// A patch was committed, by this process or another; the fields it sets go at `expires_at`.
    pub fn changed(&self, namespace: &Namespace, patch: &PresencePatch, expires_at: Timestamp) {
        let _ = (namespace, patch, expires_at, &self.0);
    }

    /// The namespace may have changed: its watchers read it again.
    pub fn wake(&self, namespace: &Namespace) {
        let _ = namespace;
    }

    /// Anything may have changed: every watcher reads again.
    pub fn wake_all(&self) {}

    /// Ends every watcher with `CLOSED`, also those opened later.
    pub fn close(&self) {}

    /// Whether any watcher is open.
    #[must_use]
    pub fn has_watchers(&self) -> bool {
        false
    }
}

/// The stream behind [`Presence::watch_presence`].
///
/// `source` names this store handle; `clock` is the one that judges expiry; `poll` is how often it
/// reads without being woken, for stores that others write to.
pub fn presence_stream(
    store: impl Presence + 'static,
    hub: &PresenceHub,
    namespace: &Namespace,
    clock: Arc<dyn Clock>,
    source: String,
    poll: Option<Duration>,
) -> PresenceStream {
    let _ = (store, hub, namespace, clock, source, poll);
    PresenceStream::new(futures_util::stream::pending())
}
