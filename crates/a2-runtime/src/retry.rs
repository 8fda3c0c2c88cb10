//! How long a failed event waits, and how often it is tried.

use std::time::Duration;

/// When a failed event is tried again, and how often.
///
/// The delay before the n-th retry is chosen at random between nothing and `first · 2^(n−1)`, at most
/// `longest` (exponential back-off with full jitter): what failed together is not tried again together.
///
/// ```
/// use std::time::Duration;
/// use a2_runtime::RetryPolicy;
///
/// let patient = RetryPolicy::new().budget(20).longest(Duration::from_secs(3600));
/// assert_eq!(patient.max_failures(), 20);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    first: Duration,
    longest: Duration,
    budget: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(300), budget: 10 }
    }
}

impl RetryPolicy {
    /// From one second to five minutes, ten failures.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The most that the first retry waits; one second by default.
    #[must_use]
    pub fn first(mut self, first: Duration) -> Self {
        self.first = first;
        self
    }

    /// The most that any retry waits; five minutes by default.
    #[must_use]
    pub fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// The failure that makes the event a dead letter; the tenth by default. Zero counts as one.
    #[must_use]
    pub fn budget(mut self, failures: u64) -> Self {
        self.budget = failures.max(1);
        self
    }

    /// The failure that makes the event a dead letter.
    #[must_use]
    pub fn max_failures(&self) -> u64 {
        self.budget
    }

    /// The most that an event waits after this many failures.
    #[must_use]
    pub fn ceiling(&self, failures: u64) -> Duration {
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(63);
        let factor = u32::try_from(1_u64 << doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// How long an event waits after this many failures.
    pub(crate) fn delay(&self, failures: u64) -> Duration {
        self.ceiling(failures).mul_f64(fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let policy = RetryPolicy::new();
        let seconds: Vec<_> =
            [1, 2, 3, 8, 9, 10, 11, u64::MAX].map(|n| policy.ceiling(n).as_secs()).into();
        assert_eq!(seconds, [1, 2, 4, 128, 256, 300, 300, 300]);
        assert_eq!(policy.max_failures(), 10);
        let endless = RetryPolicy::new().longest(Duration::MAX).first(Duration::MAX);
        assert_eq!(endless.ceiling(9), Duration::MAX);
    }

    #[test]
    fn the_jitter_is_full() {
        let policy = RetryPolicy::new().first(Duration::from_secs(8));
        fastrand::seed(7);
        let delays: Vec<_> = (0..200).map(|_| policy.delay(1)).collect();
        assert!(delays.iter().all(|delay| *delay < Duration::from_secs(8)));
        assert!(delays.iter().any(|delay| *delay < Duration::from_secs(1)));
        assert!(delays.iter().any(|delay| *delay > Duration::from_secs(7)));
    }
}
