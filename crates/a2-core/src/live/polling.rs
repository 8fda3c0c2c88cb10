//! How often to look without being woken, and how long to wait after a failure.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Sleep;

/// How often a stream looks at the store by itself.
///
/// Wake-ups are hints: where one can be lost (another process, another machine), polling finds what
/// it was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polling(Option<(Duration, Duration)>);

impl Polling {
    /// Never: the hub is told of everything.
    pub const NEVER: Self = Self(None);

    /// At this interval.
    #[must_use]
    pub const fn every(interval: Duration) -> Self {
        Self(Some((interval, interval)))
    }

    /// At intervals that double from `floor` to `ceiling` while nothing is found, and begin anew
    /// with an event.
    #[must_use]
    pub fn between(floor: Duration, ceiling: Duration) -> Self {
        Self(Some((floor, ceiling.max(floor))))
    }
}

impl From<Option<Duration>> for Polling {
    fn from(interval: Option<Duration>) -> Self {
        interval.map_or(Self::NEVER, Self::every)
    }
}

impl From<Duration> for Polling {
    fn from(interval: Duration) -> Self {
        Self::every(interval)
    }
}

/// Ticks as a [`Polling`] says.
#[derive(Debug)]
pub(super) struct Ticker {
    polling: Polling,
    /// The interval that runs or comes next.
    interval: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Ticker {
    pub(super) fn new(polling: Polling) -> Self {
        let interval = polling.0.map_or(Duration::ZERO, |(floor, _)| floor);
        Self { polling, interval, sleep: None }
    }

    /// Ready at the tick; asked again, it begins the next interval, which is longer.
    pub(super) fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((_, ceiling)) = self.polling.0 else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.interval)));
        ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        self.interval = (self.interval * 2).min(ceiling);
        Poll::Ready(())
    }

    /// There was something: back to the shortest interval.
    pub(super) fn hurry(&mut self) {
        if let Some((floor, _)) = self.polling.0
            && self.interval != floor
        {
            self.interval = floor;
            self.sleep = None;
        }
    }
}

/// 50 ms, doubling to 1 s, until something succeeds.
#[derive(Debug)]
pub(super) struct BackOff(Duration);

impl BackOff {
    const FIRST: Duration = Duration::from_millis(50);
    const LAST: Duration = Duration::from_secs(1);

    pub(super) const fn new() -> Self {
        Self(Self::FIRST)
    }

    pub(super) fn reset(&mut self) {
        self.0 = Self::FIRST;
    }

    /// Sleeps for the next delay.
    pub(super) fn sleep(&mut self) -> Sleep {
        let delay = self.0;
        self.0 = (delay * 2).min(Self::LAST);
        tokio::time::sleep(delay)
    }
}
