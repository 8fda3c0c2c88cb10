//! One session's work for one group of consumers: claims, and the handlers of what was claimed.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use a2_core::{Claim, ClaimAvailable, Claimed, DispatchedHead, Error, Span, Timestamp, limits};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::gate::Places;
use crate::inflight::Running;
use crate::registry::Group;
use crate::runtime::Inner;
use crate::slot::{self, End};
use crate::units::{Signal, UnitKey};
use crate::{clock, telemetry};

/// The most heads of one claim: more would lie here while other processes have nothing to do.
const CLAIM: usize = limits::CLAIM_DEFAULT;
/// After a failed claim.
const FIRST_REST: Duration = Duration::from_millis(50);
const LAST_REST: Duration = Duration::from_secs(5);

/// A head that this process holds.
pub(crate) struct Held {
    pub(crate) head: DispatchedHead,
    pub(crate) running: Arc<Running>,
}

/// What the unit and its handlers share.
pub(crate) struct Shared {
    pub(crate) inner: Arc<Inner>,
    pub(crate) key: UnitKey,
    /// The unit itself waits for a place.
    waits: AtomicBool,
    /// Heads that a handler's completion claimed beside its own next one.
    pub(crate) more: mpsc::UnboundedSender<(Held, Places)>,
}

impl Shared {
    pub(crate) fn group(&self) -> &Group {
        &self.inner.registry.groups[self.key.group]
    }

    /// Whether other sessions wait for a place.
    pub(crate) fn others_wait(&self) -> bool {
        let own = self.group().gate.as_ref().map_or(0, |gate| gate.waiting());
        own + self.inner.gate.waiting() > usize::from(self.waits.load(Ordering::SeqCst))
    }

    /// A claim of at most `most` heads.
    pub(crate) fn claim(&self, most: usize) -> Result<ClaimAvailable, Error> {
        let (inner, group) = (&self.inner, self.group());
        let lapsed = inner.inflight.lapsed(&self.key.session, inner.clock.now());
        ClaimAvailable::new(&inner.holder, group.ttl)?
            .served(group.served.clone())
            .limit(most.clamp(1, CLAIM))?
            .run(group.run)?
            .exclude(lapsed)
    }

    /// Takes note of what a claim brought that was asked for at `asked`.
    pub(crate) fn take(&self, claimed: Claimed, asked: Timestamp) -> Vec<Held> {
        let (inner, session, ttl) = (&self.inner, &self.key.session, self.group().ttl);
        inner.inflight.cleared(session, claimed.clear_index);
        inner.found.fetch_add(1, Ordering::SeqCst);
        let mut held = Vec::with_capacity(claimed.heads.len());
        for head in claimed.heads {
            if head.state.is_dead() {
                inner.telemetry.lapsed_for_good(&head);
                continue;
            }
            if let Some(at) = head.state.last_claimed_at {
                inner.store_time.seen(at, inner.clock.now());
            }
            inner.telemetry.claimed(&head);
            let running = inner.inflight.add(&head, asked, ttl, &inner.aborted);
            held.push(Held { head, running });
        }
        held
    }
}

pub(crate) struct Unit {
    shared: Arc<Shared>,
    signal: Arc<Signal>,
    more: mpsc::UnboundedReceiver<(Held, Places)>,
    slots: JoinSet<End>,
    /// When what is busy may be free.
    again: Option<Timestamp>,
    rest: Duration,
}

impl Unit {
    pub(crate) fn new(inner: Arc<Inner>, key: UnitKey, signal: Arc<Signal>) -> Self {
        let (sender, more) = mpsc::unbounded_channel();
        let shared = Shared { inner, key, waits: AtomicBool::new(false), more: sender };
        Self {
            shared: Arc::new(shared),
            signal,
            more,
            slots: JoinSet::new(),
            again: None,
            rest: FIRST_REST,
        }
    }

    /// Works until nothing can be claimed and nothing runs; answers when to look again.
    pub(crate) async fn work(&mut self) -> Option<Timestamp> {
        self.again = None;
        let stopping = self.shared.inner.stopping.clone();
        let mut look = true;
        loop {
            if look && !stopping.is_cancelled() {
                look = self.look().await;
                // Others' turn: a claim need not wait for anything.
                tokio::task::yield_now().await;
                continue;
            }
            if self.slots.is_empty() && self.more.is_empty() {
                return self.again.filter(|_| !stopping.is_cancelled());
            }
            let clock = &self.shared.inner.clock;
            tokio::select! {
                Some((held, places)) = self.more.recv() => self.run(held, places),
                Some(ended) = self.slots.join_next() => look = self.ended(ended),
                () = self.signal.notify.notified() => look = self.signal.take(),
                () = clock::sleep_until(clock, self.again), if !stopping.is_cancelled() => {
                    self.again = None;
                    look = true;
                }
            }
        }
    }

    /// Claims as much as there are places for; answers whether to do it again at once.
    async fn look(&mut self) -> bool {
        let Some(places) = self.wait_for_places().await else { return false };
        // What was told up to here is found by this claim.
        self.signal.take();
        let inner = &self.shared.inner;
        let asked = inner.clock.now();
        let claim = match self.shared.claim(places.len()) {
            Ok(claim) => {
                let session = &self.shared.key.session;
                let span = telemetry::claim_span(session, places.len());
                inner.store.claim_available(session, claim).instrument(span).await
            }
            Err(error) => Err(error),
        };
        match claim {
            Ok(claim) => {
                self.rest = FIRST_REST;
                inner.telemetry.claim(inner.clock.now().since(asked));
                self.claimed(claim, asked, places)
            }
            Err(error) => {
                drop(places);
                self.claim_failed(&error).await
            }
        }
    }

    async fn wait_for_places(&mut self) -> Option<Places> {
        let shared = Arc::clone(&self.shared);
        let own = shared.group().gate.as_ref();
        let mut waiting = pin!(Places::wait(own, &shared.inner.gate, CLAIM));
        shared.waits.store(true, Ordering::SeqCst);
        let places = loop {
            // What a handler claimed for the unit does not wait for this.
            tokio::select! {
                biased;
                () = shared.inner.stopping.cancelled() => break None,
                Some((held, places)) = self.more.recv() => self.run(held, places),
                places = &mut waiting => break places,
            }
        };
        shared.waits.store(false, Ordering::SeqCst);
        places
    }

    fn claimed(&mut self, claim: Claim, asked: Timestamp, mut places: Places) -> bool {
        match claim {
            Claim::Claimed(claimed) => {
                let all = claimed.heads.len() >= places.len();
                let any_dead = claimed.heads.iter().any(|head| head.state.is_dead());
                for held in self.shared.take(claimed, asked) {
                    match places.split() {
                        Some(place) => self.run(held, place),
                        // The last one. A store does not answer with more than it was asked for.
                        None => {
                            self.run(held, places);
                            return all;
                        }
                    }
                }
                all || any_dead
            }
            Claim::Busy(busy) => {
                self.look_after(busy.retry_after);
                false
            }
            Claim::Settled => false,
        }
    }

    async fn claim_failed(&mut self, error: &Error) -> bool {
        let inner = &self.shared.inner;
        if inner.end_if_closed(error) || !error.is_retryable() {
            tracing::error!(session = %self.shared.key.session, %error, "claim failed");
            return false;
        }
        tracing::warn!(session = %self.shared.key.session, %error, "claim failed, to be repeated");
        let rest = self.rest.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.rest = (self.rest * 2).min(LAST_REST);
        tokio::select! {
            () = inner.stopping.cancelled() => false,
            () = tokio::time::sleep(rest) => true,
        }
    }

    fn look_after(&mut self, after: Duration) {
        let at = self.shared.inner.clock.now().after(Span::new(after));
        self.again = Some(self.again.map_or(at, |again| again.min(at)));
    }

    fn run(&mut self, held: Held, places: Places) {
        let shared = Arc::clone(&self.shared);
        self.slots.spawn(slot::run(shared, held, places));
    }

    /// A place's work has ended; answers whether to claim again.
    fn ended(&mut self, ended: Result<End, tokio::task::JoinError>) -> bool {
        match ended {
            Ok(End::Settled) => false,
            Ok(End::Busy(after)) => {
                self.look_after(after);
                false
            }
            Ok(End::More) => true,
            Err(error) => {
                tracing::error!(%error, "a slot ended badly");
                true
            }
        }
    }
}
