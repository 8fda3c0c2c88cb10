//! Which sessions are worked in, which wait for that, and which are looked at again later.
//!
//! A *unit* is one session's work for one group of consumers. It has a task while there is something
//! to do, and nothing otherwise.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2_core::{SessionId, Timestamp};
use tokio::sync::Notify;

use crate::clock;
use crate::runtime::Inner;
use crate::unit::Unit;

/// How many sessions may wait for their turn, or for later, by name. What is beyond is found by the
/// next sweep.
const MOST_WAITING: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct UnitKey {
    pub(crate) session: SessionId,
    pub(crate) group: usize,
}

/// Wakes a unit's task.
#[derive(Default)]
pub(crate) struct Signal {
    woken: AtomicBool,
    pub(crate) notify: Notify,
}

impl Signal {
    fn wake(&self) {
        self.woken.store(true, Ordering::SeqCst);
        self.notify.notify_one();
    }

    /// Whether there was a wake-up since this was asked last.
    pub(crate) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::SeqCst)
    }
}

/// What is to be looked at later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Later {
    Unit(UnitKey),
    /// A timer of the session becomes due.
    Timers(SessionId),
    /// A sweep found that there will be something.
    Session(SessionId),
}

pub(crate) struct Units {
    most: usize,
    state: Mutex<State>,
    /// Something is to be looked at sooner than all others.
    sooner: Notify,
    /// Sessions were passed over for want of room, and now there is some.
    pub(crate) missed: Notify,
    /// Nothing is worked on.
    drained: Notify,
}

#[derive(Default)]
struct State {
    active: HashMap<UnitKey, Arc<Signal>>,
    waiting: VecDeque<UnitKey>,
    waits: HashSet<UnitKey>,
    later: BTreeMap<(Timestamp, u64), Later>,
    at: HashMap<Later, (Timestamp, u64)>,
    count: u64,
    missed: bool,
}

impl Units {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            state: Mutex::default(),
            sooner: Notify::new(),
            missed: Notify::new(),
            drained: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when nothing is worked on and nothing waits for its turn.
    pub(crate) async fn drain(&self) {
        loop {
            let drained = self.drained.notified();
            if self.lock().active.is_empty() {
                return;
            }
            drained.await;
        }
    }

    /// The signal of a unit that has to be started; none when it runs or waits.
    fn admit(&self, key: &UnitKey) -> Option<Arc<Signal>> {
        let mut state = self.lock();
        state.forget(&Later::Unit(key.clone()));
        if let Some(signal) = state.active.get(key) {
            signal.wake();
            return None;
        }
        if state.active.len() < self.most {
            return Some(state.activate(key));
        }
        if state.waits.len() >= MOST_WAITING {
            state.missed = true;
        } else if state.waits.insert(key.clone()) {
            state.waiting.push_back(key.clone());
        }
        None
    }

    /// The unit's task wants to end, to be started again at `again`. False when it was woken
    /// meanwhile; otherwise the next one may begin.
    fn retire(&self, key: &UnitKey, signal: &Signal, again: Option<Timestamp>) -> Retired {
        let mut state = self.lock();
        if signal.take() {
            return Retired::Woken;
        }
        state.active.remove(key);
        if let Some(at) = again {
            state.put_sooner(at, Later::Unit(key.clone()));
        }
        let next = state.waiting.pop_front();
        let next = next.map(|key| {
            state.waits.remove(&key);
            let signal = state.activate(&key);
            (key, signal)
        });
        if state.active.is_empty() {
            self.drained.notify_waiters();
        }
        if state.missed && state.waiting.is_empty() {
            state.missed = false;
            self.missed.notify_one();
        }
        drop(state);
        self.sooner.notify_one();
        Retired::Ended(next)
    }

    /// Looks at this at `at`, or sooner.
    pub(crate) fn look_at(&self, at: Timestamp, what: Later) {
        self.lock().put_sooner(at, what);
        self.sooner.notify_one();
    }

    fn next_look(&self) -> Option<Timestamp> {
        self.lock().later.keys().next().map(|(at, _)| *at)
    }

    fn due(&self, now: Timestamp) -> Option<Later> {
        let mut state = self.lock();
        let (key, _) = state.later.first_key_value()?;
        if key.0 > now {
            return None;
        }
        let (_, what) = state.later.pop_first()?;
        state.at.remove(&what);
        Some(what)
    }
}

enum Retired {
    Woken,
    Ended(Option<(UnitKey, Arc<Signal>)>),
}

impl State {
    fn activate(&mut self, key: &UnitKey) -> Arc<Signal> {
        let signal = Arc::<Signal>::default();
        self.active.insert(key.clone(), Arc::clone(&signal));
        signal
    }

    fn forget(&mut self, what: &Later) {
        if let Some(key) = self.at.remove(what) {
            self.later.remove(&key);
        }
    }

    fn put_sooner(&mut self, at: Timestamp, what: Later) {
        if self.at.get(&what).is_some_and(|(before, _)| *before <= at) {
            return;
        }
        self.forget(&what);
        if self.later.len() >= MOST_WAITING {
            // What is furthest off goes: sweeps find it again.
            match self.later.last_entry() {
                Some(last) if last.key().0 > at => {
                    let last = last.remove();
                    self.at.remove(&last);
                }
                _ => return,
            }
        }
        self.count += 1;
        self.at.insert(what.clone(), (at, self.count));
        self.later.insert((at, self.count), what);
    }
}

impl Inner {
    /// Looks for work of one unit.
    pub(crate) fn wake_unit(self: &Arc<Self>, key: UnitKey) {
        if self.handle.get().is_none() || self.stopping.is_cancelled() {
            return;
        }
        if let Some(signal) = self.units.admit(&key) {
            self.spawn_unit(key, signal);
        }
    }

    fn spawn_unit(self: &Arc<Self>, key: UnitKey, signal: Arc<Signal>) {
        let inner = Arc::clone(self);
        self.spawn(async move {
            let mut unit = Unit::new(Arc::clone(&inner), key.clone(), Arc::clone(&signal));
            loop {
                let again = unit.work().await;
                match inner.units.retire(&key, &signal, again) {
                    Retired::Woken => {}
                    Retired::Ended(Some((next, signal))) => {
                        inner.spawn_unit(next, signal);
                        return;
                    }
                    Retired::Ended(None) => return,
                }
            }
        });
    }

    /// Looks at what was put off, when its time has come.
    pub(crate) async fn run_alarms(self: Arc<Self>) {
        loop {
            let sooner = self.units.sooner.notified();
            while let Some(what) = self.units.due(self.clock.now()) {
                match what {
                    Later::Unit(key) => self.wake_unit(key),
                    Later::Timers(session) => self.fire_soon(&session),
                    Later::Session(session) => {
                        self.wake(&session);
                        self.fire_soon(&session);
                    }
                }
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = sooner => {}
                () = clock::sleep_until(&self.clock, self.units.next_look()) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_finds_room_among_what_is_far() {
        let mut state = State::default();
        let timers = |name: usize| Later::Timers(SessionId::new(name.to_string()).unwrap());
        let at = |millis: usize| Timestamp::from_millis(i64::try_from(millis).unwrap());
        for name in 0..MOST_WAITING {
            state.put_sooner(at(1_000_000 + name), timers(name));
        }
        state.put_sooner(at(5_000_000), timers(MOST_WAITING));
        assert!(!state.at.contains_key(&timers(MOST_WAITING)), "the furthest of all");
        state.put_sooner(at(5), timers(MOST_WAITING + 1));
        assert_eq!(state.later.values().next(), Some(&timers(MOST_WAITING + 1)));
        assert!(!state.at.contains_key(&timers(MOST_WAITING - 1)), "the furthest is gone");
        assert_eq!((state.later.len(), state.at.len()), (MOST_WAITING, MOST_WAITING));
    }
}
