//! Who is told when a namespace changes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use crate::presence::PresenceWrite;
use crate::{Namespace, PresencePatch, Timestamp};

use super::registry::{Registry, Topic, Waiters, lock, publish_fence};

/// Most patches kept for the watchers of one namespace. One that is further behind reads.
pub(super) const PATCHES: usize = 256;
/// Most bytes kept, values and [`VALUE_BYTES`] each.
pub(super) const PATCH_BYTES: usize = 512 * 1024;
/// What a value is taken to cost beside its text.
const VALUE_BYTES: usize = 128;

/// Wakes the presence watchers of one store. Clones share them.
#[derive(Clone)]
pub struct PresenceHub(Arc<Registry<Namespace, PresenceTopic>>);

/// What the watchers of one namespace share.
#[derive(Debug, Default)]
pub(super) struct PresenceTopic(Mutex<PresenceState>);

#[derive(Debug, Default)]
pub(super) struct PresenceState {
    /// Changes whenever the watchers must read whatever they are told.
    pub(super) version: u64,
    patches: VecDeque<Arc<Told>>,
    bytes: usize,
    /// The number of patches there were before the first that is kept.
    base: u64,
    pub(super) waiters: Waiters,
}

/// A patch, and when the fields that it sets go.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) patch: PresencePatch,
    pub(super) expires_at: Timestamp,
}

impl Told {
    fn cost(&self) -> usize {
        let values = self.patch.values.values();
        values.map(|value| VALUE_BYTES + value.as_ref().map_or(0, crate::Json::byte_len)).sum()
    }
}

impl Topic for PresenceTopic {
    fn waiters<R>(&self, f: impl FnOnce(&mut Waiters) -> R) -> R {
        f(&mut self.state().waiters)
    }
}

impl PresenceTopic {
    pub(super) fn state(&self) -> MutexGuard<'_, PresenceState> {
        lock(&self.0)
    }

    fn changed(&self, patch: &PresencePatch, expires_at: Timestamp) -> Vec<Waker> {
        let told = Told { patch: patch.clone(), expires_at };
        let mut state = self.state();
        state.bytes += told.cost();
        state.patches.push_back(Arc::new(told));
        while state.patches.len() > PATCHES || state.bytes > PATCH_BYTES {
            let Some(oldest) = state.patches.pop_front() else { break };
            state.bytes -= oldest.cost();
            state.base += 1;
        }
        state.waiters.take_waiting()
    }

    fn wake(&self) -> Vec<Waker> {
        let mut state = self.state();
        state.version += 1;
        state.waiters.take_waiting()
    }
}

impl PresenceState {
    /// How many patches there were.
    pub(super) fn end(&self) -> u64 {
        self.base + self.patches.len() as u64
    }

    /// Appends to `out` the patches after the first `seen`; answers false when some of them are not
    /// kept any more.
    pub(super) fn copy_after(&self, seen: u64, out: &mut Vec<Arc<Told>>) -> bool {
        let skip = usize::try_from(seen.saturating_sub(self.base)).unwrap_or(usize::MAX);
        out.extend(self.patches.iter().skip(skip).cloned());
        seen >= self.base
    }

    /// Every watcher has everything.
    pub(super) fn forget(&mut self) {
        self.base = self.end();
        self.patches.clear();
        self.patches.shrink_to(8);
        self.bytes = 0;
    }
}

impl Default for PresenceHub {
    fn default() -> Self {
        Self::new()
    }
}

impl PresenceHub {
    /// A hub that nobody listens to yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Registry::new()))
    }

    /// A write was committed: tells the namespace's watchers what they need to know of it. To be
    /// called in the order of a namespace's commits; what comes in another order costs the watchers
    /// a read.
    pub fn written(&self, namespace: &Namespace, write: &PresenceWrite) {
        if let Some(patch) = &write.patch {
            self.changed(namespace, patch, write.expires_at);
        }
        if write.sooner {
            self.wake(namespace);
        }
    }

    /// A patch was committed, by this process or another; the fields that it sets go at
    /// `expires_at`.
    pub fn changed(&self, namespace: &Namespace, patch: &PresencePatch, expires_at: Timestamp) {
        publish_fence();
        if self.0.is_listened() {
            self.0.notify(namespace, |topic| topic.changed(patch, expires_at));
        }
    }

    /// The namespace may have changed: its watchers read it again.
    pub fn wake(&self, namespace: &Namespace) {
        publish_fence();
        if self.0.is_listened() {
            self.0.notify(namespace, PresenceTopic::wake);
        }
    }

    /// Anything may have changed: every watcher reads again.
    pub fn wake_all(&self) {
        publish_fence();
        self.0.notify_all(PresenceTopic::wake);
    }

    /// Ends every watcher with `CLOSED`, also those opened later.
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Whether any watcher is open.
    #[must_use]
    pub fn has_watchers(&self) -> bool {
        self.0.is_listened()
    }

    /// The namespaces with watchers, in no order: for a backend that looks for what other processes
    /// wrote.
    #[must_use]
    pub fn watched_namespaces(&self) -> Vec<Namespace> {
        self.0.keys()
    }

    pub(super) fn registry(&self) -> &Arc<Registry<Namespace, PresenceTopic>> {
        &self.0
    }
}

impl fmt::Debug for PresenceHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PresenceHub")
            .field("has_watchers", &self.has_watchers())
            .field("closed", &self.is_closed())
            .finish()
    }
}
