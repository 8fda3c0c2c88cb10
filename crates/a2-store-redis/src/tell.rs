//! What was committed is told to this store's own streams and watchers at once. The scripts tell other
//! processes.

use a2_core::live::{Hub, PresenceHub};
use a2_core::{Appended, Cleared, Namespace, SessionId, Timestamp};

use crate::presence_rows::Written;

/// Tells. Clones tell the same.
#[derive(Clone)]
pub(crate) struct Teller {
    hub: Hub,
    presence: PresenceHub,
}

impl Teller {
    pub(crate) fn new(hub: &Hub, presence: &PresenceHub) -> Self {
        Self { hub: hub.clone(), presence: presence.clone() }
    }

    /// Events were appended.
    pub(crate) fn appended(&self, session: &SessionId, appended: &Appended) {
        let Some(last) = appended.events.last() else { return };
        if appended.replayed {
            // Whoever did it may have told nobody.
            self.hub.reached(session, last.index);
        } else {
            self.hub.appended(session, &appended.events);
        }
    }

    /// The session was cleared.
    pub(crate) fn cleared(&self, session: &SessionId, done: &Cleared) {
        if done.cleared && done.clear_index.get() > 0 {
            self.hub.cleared(session, done.clear_index);
        }
    }

    /// Heads of the session can be claimed.
    pub(crate) fn hint(&self, session: &SessionId) {
        self.hub.hint(session);
    }

    /// A timer was set.
    pub(crate) fn timer_set(&self, due_at: Timestamp) {
        self.hub.timer_set(due_at);
    }

    /// A participant's fields were written.
    pub(crate) fn present(&self, namespace: &Namespace, done: &Written) {
        if let Some(patch) = &done.patch {
            self.presence.changed(namespace, patch, done.expires_at);
        }
        if done.sooner {
            self.presence.wake(namespace);
        }
    }
}
