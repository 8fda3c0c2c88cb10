//! What was committed is told: to this store's own streams and watchers at once, to other processes
//! soon.

use std::sync::Arc;

use a2_core::live::{Hub, PresenceHub};
use a2_core::{Appended, Cleared, Namespace, SessionId, Timestamp};

use crate::args::index;
use crate::note::{Changed, Note};
use crate::presence_rows::Written;
use crate::wake::Wake;

/// Tells. Clones tell the same.
#[derive(Clone)]
pub(crate) struct Teller {
    hub: Hub,
    presence: PresenceHub,
    wake: Arc<Wake>,
}

impl Teller {
    pub(crate) fn new(hub: &Hub, presence: &PresenceHub, wake: &Arc<Wake>) -> Self {
        Self { hub: hub.clone(), presence: presence.clone(), wake: Arc::clone(wake) }
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
        self.wake.tell(Note::Appended(session.as_str().to_owned()), index(last.index));
    }

    /// The session was cleared.
    pub(crate) fn cleared(&self, session: &SessionId, done: &Cleared) {
        if done.cleared && done.clear_index.get() > 0 {
            self.hub.cleared(session, done.clear_index);
            self.wake.tell(Note::Cleared(session.as_str().to_owned()), index(done.clear_index));
        }
    }

    /// Heads of the session can be claimed.
    pub(crate) fn hint(&self, session: &SessionId) {
        self.hub.hint(session);
        self.wake.tell(Note::Hint(session.as_str().to_owned()), 0);
    }

    /// Something was asked for in the session, and nobody knows whether it was done.
    pub(crate) fn unknown(&self, session: &SessionId) {
        self.hub.wake(session);
        self.hub.timers_changed();
        self.wake.tell(Note::Session(session.as_str().to_owned()), 0);
    }

    /// Presence was written, or not: nobody knows.
    pub(crate) fn unknown_presence(&self, namespace: &Namespace) {
        self.presence.wake(namespace);
        self.wake.tell(Note::Presence(namespace.as_str().to_owned()), 0);
    }

    /// A timer was set.
    pub(crate) fn timer_set(&self, due_at: Timestamp) {
        self.hub.timer_set(due_at);
        self.wake.tell(Note::Timer, due_at.as_millis());
    }

    /// Presence was written.
    pub(crate) fn present(&self, namespace: &Namespace, done: &Written) {
        if let Some(patch) = &done.patch {
            self.presence.changed(namespace, patch, done.expires_at);
            self.wake.tell_change(|| Changed {
                namespace: namespace.as_str().to_owned(),
                expires_at: done.expires_at.as_millis(),
                patch: patch.clone(),
                fields: Vec::new(),
            });
        }
        if done.sooner {
            self.unknown_presence(namespace);
        }
    }
}
