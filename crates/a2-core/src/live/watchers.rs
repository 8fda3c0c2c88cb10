//! Who watches for work, and what they are to be told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};

use foldhash::HashSet;

use crate::{SessionId, Timestamp};

use super::registry::{lock, wake};

/// Most sessions that wait to be told to one watcher. More are dropped: hints may be lost.
pub(super) const HINTS: usize = 1_024;

/// Before every timer.
pub(super) const ALWAYS: Timestamp = Timestamp::from_millis(i64::MIN);

/// The watchers of one store.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    all: RwLock<Vec<Arc<Watcher>>>,
    count: AtomicUsize,
    closed: AtomicBool,
}

/// What one watcher is to be told.
#[derive(Debug, Default)]
pub(super) struct Watcher(Mutex<News>);

#[derive(Debug, Default)]
struct News {
    sessions: Sessions,
    timers: TimerNews,
    /// When the watcher asks about timers by itself; none while it is at it.
    armed: Option<Timestamp>,
    waker: Option<Waker>,
}

/// Sessions in the order of their first hint, each once.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    queue: VecDeque<SessionId>,
    members: HashSet<SessionId>,
}

impl Sessions {
    /// Takes in a session, unless it is there or there are too many.
    pub(super) fn push(&mut self, session: &SessionId) {
        if self.queue.len() < HINTS && !self.members.contains(session) {
            self.members.insert(session.clone());
            self.queue.push_back(session.clone());
        }
    }

    pub(super) fn pop(&mut self) -> Option<SessionId> {
        let session = self.queue.pop_front()?;
        self.members.remove(&session);
        Some(session)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// What happened to timers since it was asked last.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimerNews {
    /// The earliest due time that was set.
    pub(super) set: Option<Timestamp>,
    /// Something that is not known.
    pub(super) changed: bool,
}

impl TimerNews {
    fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Watchers {
    fn each(&self, mut f: impl FnMut(&mut News) -> Option<Waker>) {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let wakers = all.iter().filter_map(|watcher| f(&mut lock(&watcher.0))).collect();
        drop(all);
        wake(wakers);
    }

    /// Whether anybody watches. Call it after the publish fence.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    pub(super) fn hint(&self, session: &SessionId) {
        if self.any() {
            self.each(|news| {
                news.sessions.push(session);
                news.waker.take()
            });
        }
    }

    pub(super) fn timer_set(&self, due_at: Timestamp) {
        if self.any() {
            self.each(|news| {
                if news.armed.is_some_and(|armed| armed <= due_at) {
                    return None;
                }
                let set = &mut news.timers.set;
                *set = Some(set.map_or(due_at, |earlier| earlier.min(due_at)));
                news.waker.take()
            });
        }
    }

    pub(super) fn timers_changed(&self) {
        if self.any() {
            self.each(|news| {
                news.timers.changed = true;
                news.waker.take()
            });
        }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.each(|news| news.waker.take());
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        let watcher = Arc::new(Watcher::default());
        self.all.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&watcher));
        self.count.fetch_add(1, Ordering::Relaxed);
        // As in `Registry::listen`: a commit that was not told is seen by the first look.
        fence(Ordering::SeqCst);
        Watch { watchers: Arc::clone(self), watcher }
    }
}

/// One watcher's place. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct Watch {
    watchers: Arc<Watchers>,
    watcher: Arc<Watcher>,
}

impl Watch {
    pub(super) fn is_closed(&self) -> bool {
        self.watchers.is_closed()
    }

    /// The next session to tell.
    pub(super) fn pop(&self) -> Option<SessionId> {
        lock(&self.watcher.0).sessions.pop()
    }

    /// What happened to timers since the last call.
    pub(super) fn timer_news(&self) -> TimerNews {
        std::mem::take(&mut lock(&self.watcher.0).timers)
    }

    /// Before a question about timers: until [`arm`](Self::arm), every timer that is set is news.
    pub(super) fn disarm(&self) {
        lock(&self.watcher.0).armed = None;
    }

    /// The watcher asks about timers at `next` by itself: those due later are no news.
    pub(super) fn arm(&self, next: Timestamp) {
        lock(&self.watcher.0).armed = Some(next);
    }

    /// Ready when there is anything to tell.
    pub(super) fn poll_news(&self, cx: &Context<'_>) -> Poll<()> {
        let mut news = lock(&self.watcher.0);
        let quiet = news.sessions.is_empty() && news.timers.is_empty() && !self.is_closed();
        if !quiet {
            return Poll::Ready(());
        }
        let old = news.waker.replace(cx.waker().clone());
        drop(news);
        drop(old);
        // Closing may have come before the waker was put down.
        if self.is_closed() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watchers.count.fetch_sub(1, Ordering::Relaxed);
        let mut all = self.watchers.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|watcher| !Arc::ptr_eq(watcher, &self.watcher));
    }
}
