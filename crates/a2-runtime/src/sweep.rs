//! Sweeps: one pass over all pending work now and then, for what nobody told of.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use a2_core::{Consumer, Page, PageToken, PendingPage, Result, Span, Timestamp};
use futures_util::{StreamExt, stream};

use crate::clock;
use crate::runtime::Inner;
use crate::units::Later;

/// How many sessions' timers are fired at the same time.
const AT_ONCE: usize = 16;

/// A store that has to listen to others begins to a moment after it was asked for hints, and it does not
/// say when. So what is looked at when the runtime starts is looked at again after this.
const SETTLED: Duration = Duration::from_secs(1);

/// When to look at everything again.
pub(crate) struct Rounds {
    every: Duration,
    first: bool,
}

impl Rounds {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, first: true }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let usual = jittered(self.every);
        if std::mem::take(&mut self.first) { usual.min(SETTLED) } else { usual }
    }
}

/// By how much the store's clock is ahead of the runtime's, as far as claims have shown.
pub(crate) struct StoreTime(AtomicI64);

impl Default for StoreTime {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl StoreTime {
    /// The store said `theirs` when it was `ours` here.
    pub(crate) fn seen(&self, theirs: Timestamp, ours: Timestamp) {
        let ahead = theirs.as_millis().saturating_sub(ours.as_millis());
        self.0.store(ahead.max(i64::MIN + 1), Ordering::Relaxed);
    }

    /// The store's time; none as long as nothing is known.
    pub(crate) fn at(&self, ours: Timestamp) -> Option<Timestamp> {
        let ahead = self.0.load(Ordering::Relaxed);
        let theirs = Timestamp::from_millis(ours.as_millis().saturating_add(ahead));
        (ahead != i64::MIN).then_some(theirs)
    }
}

impl Inner {
    /// Sweeps at the start and then about as often as the program wants.
    pub(crate) async fn run_sweeps(self: Arc<Self>) {
        let mut rounds = Rounds::new(self.options.sweep_every);
        loop {
            let missed = self.units.missed.notified();
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "a sweep was not finished");
                if self.end_if_closed(&error) {
                    return;
                }
            }
            self.tell_oldest();
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = missed => {}
                () = clock::sleep(&self.clock, rounds.next()) => {}
            }
        }
    }

    /// Looks at every session that has work now.
    pub(crate) async fn sweep(self: &Arc<Self>) -> Result<()> {
        let mut token: Option<PageToken> = None;
        loop {
            let page = token.take().map_or_else(Page::first, Page::at);
            let request = PendingPage::new(self.registry.served.clone()).page(page);
            let pending = self.store.pending(request).await?;
            let now = self.clock.now();
            let mut due = Vec::new();
            for found in pending.sessions {
                match self.store_time.at(now) {
                    Some(theirs) if found.not_before > theirs => {
                        // What lies further off, later sweeps will find.
                        let wait = found.not_before.since(theirs);
                        if wait <= self.options.sweep_every * 2 {
                            let at = now.after(Span::new(wait));
                            self.units.look_at(at, Later::Session(found.session));
                        }
                    }
                    _ => due.push(found.session),
                }
            }
            stream::iter(due)
                .for_each_concurrent(AT_ONCE, |session| async move {
                    self.wake(&session);
                    self.fire(&session).await;
                })
                .await;
            match pending.next {
                Some(next) if !self.stopping.is_cancelled() => token = Some(next),
                _ => return Ok(()),
            }
        }
    }

    fn tell_oldest(&self) {
        let mut oldest: HashMap<Consumer, Timestamp> = HashMap::new();
        for (_, running) in self.inflight.all() {
            for running in running {
                let at = oldest.entry(running.attempt.head.consumer.clone());
                let at = at.or_insert(running.appended_at);
                *at = (*at).min(running.appended_at);
            }
        }
        let now = self.clock.now();
        self.telemetry.oldest(&oldest, self.store_time.at(now).unwrap_or(now));
    }
}

/// Between half and one and a half of it: processes that started together do not stay together.
fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.5 + fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_round_comes_soon_and_the_others_when_they_are_wanted() {
        let hour = Duration::from_secs(3_600);
        let mut rounds = Rounds::new(hour);
        assert_eq!(rounds.next(), Duration::from_secs(1));
        for _ in 0..100 {
            let next = rounds.next();
            assert!(next >= hour / 2 && next < hour * 3 / 2, "{next:?}");
        }
        assert!(Rounds::new(Duration::from_millis(10)).next() < Duration::from_millis(15));
    }

    #[test]
    fn the_stores_time_is_known_from_what_it_said() {
        let at = Timestamp::from_millis;
        let time = StoreTime::default();
        assert_eq!(time.at(at(5)), None);
        time.seen(at(1_000), at(400));
        assert_eq!(time.at(at(500)), Some(at(1_100)));
        time.seen(at(100), at(400));
        assert_eq!(time.at(at(500)), Some(at(200)));
    }
}
