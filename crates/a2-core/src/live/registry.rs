//! Who listens to what: one topic per session or namespace, as long as somebody listens.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use foldhash::fast::RandomState;
use futures_core::Stream;
use tokio::task::coop;

const SHARDS: usize = 64;

/// Locks, also after a panic elsewhere: every state here is valid between two statements.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes what was taken from under a lock, which must be released by now: a waker runs foreign code.
pub(super) fn wake(wakers: Vec<Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

/// What the listeners of one key share.
pub(super) trait Topic: Default + Send + Sync {
    /// Runs `f` on the listeners' wakers, under the topic's lock.
    fn waiters<R>(&self, f: impl FnOnce(&mut Waiters) -> R) -> R;
}

/// The open topics. A topic exists while it has a listener.
///
/// Lock order: a shard, then a topic in it.
#[derive(Debug)]
pub(super) struct Registry<K, T> {
    shards: Box<[Mutex<Shard<K, T>>]>,
    hasher: RandomState,
    seats: AtomicUsize,
    closed: AtomicBool,
}

type Shard<K, T> = HashMap<K, Listened<T>, RandomState>;

#[derive(Debug)]
struct Listened<T> {
    seats: usize,
    topic: Arc<T>,
}

impl<K: Hash + Eq + Clone, T: Topic> Registry<K, T> {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::default(),
            seats: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn shard(&self, key: &K) -> MutexGuard<'_, Shard<K, T>> {
        // The low bits choose the place in the shard's own table.
        let hash = self.hasher.hash_one(key).rotate_left(16) as usize;
        lock(&self.shards[hash % SHARDS])
    }

    /// Whether anybody listens. Call it after [`publish_fence`].
    pub(super) fn is_listened(&self) -> bool {
        self.seats.load(Ordering::Relaxed) > 0
    }

    pub(super) fn listen(self: &Arc<Self>, key: &K) -> Seat<K, T> {
        self.seats.fetch_add(1, Ordering::Relaxed);
        // Pairs with `publish_fence`: whoever published before this and saw no listener is seen by
        // the listener's first read.
        fence(Ordering::SeqCst);
        let topic = match self.shard(key).entry(key.clone()) {
            Entry::Occupied(mut entry) => {
                entry.get_mut().seats += 1;
                Arc::clone(&entry.get().topic)
            }
            Entry::Vacant(entry) => {
                Arc::clone(&entry.insert(Listened { seats: 1, topic: Arc::default() }).topic)
            }
        };
        let slot = topic.waiters(Waiters::add);
        Seat { registry: Arc::clone(self), key: key.clone(), topic, slot }
    }

    /// Runs `f` on the key's topic, if it has one, and wakes whom `f` took.
    pub(super) fn notify(&self, key: &K, f: impl FnOnce(&T) -> Vec<Waker>) {
        let wakers = self.shard(key).get(key).map(|listened| f(&listened.topic));
        wake(wakers.unwrap_or_default());
    }

    /// Runs `f` on every topic and wakes whom it took.
    pub(super) fn notify_all(&self, f: impl Fn(&T) -> Vec<Waker>) {
        for shard in &self.shards {
            let wakers = lock(shard).values().flat_map(|listened| f(&listened.topic)).collect();
            wake(wakers);
        }
    }

    /// The keys that are listened to.
    pub(super) fn keys(&self) -> Vec<K> {
        self.shards
            .iter()
            .flat_map(|shard| lock(shard).keys().cloned().collect::<Vec<_>>())
            .collect()
    }

    /// Every listener finds [`is_closed`](Self::is_closed) from now on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.notify_all(|topic| topic.waiters(Waiters::take_all));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

/// To be called between a commit and the question whether anybody listens: a listener that is not
/// seen then reads after the commit.
pub(super) fn publish_fence() {
    fence(Ordering::SeqCst);
}

/// One listener's place. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct Seat<K: Hash + Eq + Clone, T: Topic> {
    registry: Arc<Registry<K, T>>,
    key: K,
    topic: Arc<T>,
    slot: usize,
}

impl<K: Hash + Eq + Clone, T: Topic> Seat<K, T> {
    pub(super) fn key(&self) -> &K {
        &self.key
    }

    pub(super) fn topic(&self) -> &T {
        &self.topic
    }

    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    /// Whether everything was closed.
    ///
    /// When it answers no after the seat's waker was put down, closing will wake it.
    pub(super) fn is_closed(&self) -> bool {
        self.registry.is_closed()
    }

    /// Puts the waker down for closing alone.
    pub(super) fn wait_for_close(&self, cx: &Context<'_>) {
        drop(self.topic.waiters(|waiters| waiters.put(self.slot, cx.waker(), Wants::Close)));
    }
}

impl<K: Hash + Eq + Clone, T: Topic> Drop for Seat<K, T> {
    fn drop(&mut self) {
        let waker = self.topic.waiters(|waiters| waiters.remove(self.slot));
        let mut shard = self.registry.shard(&self.key);
        if let Entry::Occupied(mut entry) = shard.entry(self.key.clone()) {
            entry.get_mut().seats -= 1;
            if entry.get().seats == 0 {
                entry.remove();
            }
        }
        drop(shard);
        self.registry.seats.fetch_sub(1, Ordering::Relaxed);
        drop(waker);
    }
}

/// What a listener that waits wants to be woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Changes, and closing.
    Changes,
    /// Closing alone: it is busy reading and looks for changes afterwards.
    Close,
}

/// The wakers of a topic's listeners: at most one each, so that a wake-up is one pending flag.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    slots: Vec<Option<(Waker, Wants)>>,
    free: Vec<usize>,
    /// How many of the slots want changes.
    waiting: usize,
}

impl Waiters {
    fn add(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        })
    }

    fn remove(&mut self, slot: usize) -> Option<Waker> {
        self.free.push(slot);
        self.take(slot)
    }

    fn take(&mut self, slot: usize) -> Option<Waker> {
        let (waker, wants) = self.slots[slot].take()?;
        self.waiting -= usize::from(wants == Wants::Changes);
        Some(waker)
    }

    /// Puts a listener's waker down. Answers the one it replaces, to be dropped when the topic is
    /// unlocked: that runs foreign code.
    #[must_use]
    pub(super) fn put(&mut self, slot: usize, waker: &Waker, wants: Wants) -> Option<Waker> {
        let old = self.take(slot);
        self.waiting += usize::from(wants == Wants::Changes);
        match old {
            Some(old) if old.will_wake(waker) => {
                self.slots[slot] = Some((old, wants));
                None
            }
            old => {
                self.slots[slot] = Some((waker.clone(), wants));
                old
            }
        }
    }

    /// Whether every listener waits for changes: nobody has anything left to take.
    pub(super) fn all_wait(&self) -> bool {
        self.waiting + self.free.len() == self.slots.len()
    }

    /// Takes those that wait for changes.
    pub(super) fn take_waiting(&mut self) -> Vec<Waker> {
        if self.waiting == 0 {
            return Vec::new();
        }
        let mut wakers = Vec::with_capacity(self.waiting);
        for slot in &mut self.slots {
            wakers.extend(slot.take_if(|(_, wants)| *wants == Wants::Changes).map(|(w, _)| w));
        }
        self.waiting = 0;
        wakers
    }

    /// Takes all.
    pub(super) fn take_all(&mut self) -> Vec<Waker> {
        self.waiting = 0;
        self.slots.iter_mut().filter_map(|slot| slot.take().map(|(waker, _)| waker)).collect()
    }
}

/// Lets a stream that always has an item give way to other tasks now and then.
pub(super) struct Cooperative<S>(pub(super) S);

impl<S: Stream + Unpin> Stream for Cooperative<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let budget = ready!(coop::poll_proceed(cx));
        let item = Pin::new(&mut self.0).poll_next(cx);
        if item.is_ready() {
            budget.made_progress();
        }
        item
    }
}
