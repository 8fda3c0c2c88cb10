//! Positions in a log, points in time, lengths of time, and the clock that judges them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::Notify;

use crate::{Error, Result, limits};

/// A place in a session's log: the first event has index 1; 0 is before it.
///
/// At most 2^53 − 1, so that every JSON reader keeps it exactly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(transparent)]
pub struct Index(u64);

impl Index {
    /// Before the first event.
    pub const ZERO: Self = Self(0);
    /// The last index a log can have.
    pub const MAX: Self = Self(limits::INDEX_MAX);

    /// Checks the upper bound.
    ///
    /// # Errors
    /// `INVALID_INPUT` above 2^53 − 1.
    pub fn new(index: u64) -> Result<Self> {
        if index > limits::INDEX_MAX {
            return Err(Error::invalid("index", "must be at most 2^53 - 1"));
        }
        Ok(Self(index))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The index `n` further on.
    ///
    /// # Errors
    /// `INVALID_INPUT` past 2^53 − 1: the log is full.
    pub fn plus(self, n: u64) -> Result<Self> {
        self.0
            .checked_add(n)
            .filter(|&sum| sum <= limits::INDEX_MAX)
            .map(Self)
            .ok_or_else(|| Error::invalid("events", "the log must end at index 2^53 - 1"))
    }

    /// The index after this one, or [`Index::MAX`] at the end.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 >= limits::INDEX_MAX { Self(limits::INDEX_MAX) } else { Self(self.0 + 1) }
    }

    /// The index before this one; 0 stays 0.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u32> for Index {
    fn from(index: u32) -> Self {
        Self(index.into())
    }
}

impl TryFrom<u64> for Index {
    type Error = Error;
    fn try_from(index: u64) -> Result<Self> {
        Self::new(index)
    }
}

impl PartialEq<u64> for Index {
    fn eq(&self, other: &u64) -> bool {
        self.0 == *other
    }
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(u64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A point in time by the store's clock, in milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch; also "always" where a lower bound is meant.
    pub const EPOCH: Self = Self(0);

    /// A point in time from milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This much later.
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0 as i64))
    }

    /// How long after `earlier` this is; zero when it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A length of time as the stores keep it: whole milliseconds, at most 365 days.
///
/// Made from a [`Duration`]: parts of a millisecond round up, more than 365 days is clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Rounds up to whole milliseconds and clamps to 365 days.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        let up = duration.as_nanos().div_ceil(1_000_000);
        Self(u64::try_from(up).unwrap_or(u64::MAX).min(limits::DURATION_MS))
    }

    /// As [`Span::new`], for a time to live, which must not be zero.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the duration is zero.
    pub fn ttl(duration: Duration) -> Result<Self> {
        if duration.is_zero() {
            return Err(Error::invalid("ttl", "must not be zero"));
        }
        Ok(Self::new(duration))
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

/// What tells the time that stamps events and judges leases.
///
/// A store has one clock: the system's, the server's, or an injected one that replaces it.
#[async_trait]
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time now, rounded down to a millisecond.
    fn now(&self) -> Timestamp;

    /// Returns when the clock has reached `at`. May return early; the caller looks again.
    async fn sleep_until(&self, at: Timestamp);
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep_until(&self, at: Timestamp) {
        // One more millisecond, since now() rounds down; in steps, since the system's clock can
        // be set while this sleeps.
        let left = at.since(self.now()) + Duration::from_millis(1);
        tokio::time::sleep(left.min(Duration::from_secs(60))).await;
    }
}

/// A clock that stands still until it is moved, for tests. Clones share the time.
///
/// ```
/// use std::time::Duration;
/// use a2_core::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::from_millis(1_000));
/// clock.advance(Duration::from_millis(500));
/// assert_eq!(clock.now(), Timestamp::from_millis(1_500));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<Manual>);

#[derive(Debug, Default)]
struct Manual {
    now: Mutex<Timestamp>,
    moved: Notify,
}

impl ManualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Manual { now: Mutex::new(now), moved: Notify::new() }))
    }

    /// Moves the clock on; parts of a millisecond round down.
    pub fn advance(&self, by: Duration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.set(Timestamp(self.now().0.saturating_add(ms)));
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, now: Timestamp) {
        *self.0.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.0.moved.notify_waiters();
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sleep_until(&self, at: Timestamp) {
        loop {
            let moved = self.0.moved.notified();
            if self.now() >= at {
                return;
            }
            moved.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_up_and_are_clamped() {
        assert_eq!(Span::new(Duration::from_nanos(1)).as_millis(), 1);
        assert_eq!(Span::new(Duration::from_millis(7)).as_millis(), 7);
        assert_eq!(Span::new(Duration::MAX).as_millis(), 31_536_000_000);
        assert_eq!(Span::ttl(Duration::ZERO).unwrap_err().to_string(), "ttl: must not be zero");
        let late = Timestamp::from_millis(i64::MAX);
        assert_eq!(late.after(Span::new(Duration::MAX)), late);
    }

    #[test]
    fn indexes_end_at_2_pow_53_minus_1() {
        assert!(Index::new(9_007_199_254_740_991).is_ok());
        assert!(Index::new(9_007_199_254_740_992).is_err());
        assert!(Index::MAX.plus(1).is_err());
        assert_eq!(Index::ZERO.plus(3).unwrap(), 3);
        assert!(serde_json::from_str::<Index>("9007199254740992").is_err());
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_who_sleeps_on_it() {
        let clock = ManualClock::at(Timestamp::from_millis(10));
        clock.sleep_until(Timestamp::from_millis(10)).await;
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(Timestamp::from_millis(30)).await }
        });
        clock.advance(Duration::from_millis(10));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_millis(10));
        sleeper.await.unwrap();
    }
}
