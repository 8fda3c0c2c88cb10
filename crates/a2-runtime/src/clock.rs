//! The runtime's own time: for how long, never when.
//!
//! Leases, holds and timers are judged by the store. The runtime only waits for as long as the store
//! said, and that must not stop because somebody set the system's clock back.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use a2_core::{Clock, Span, Timestamp, async_trait};
use tokio::time::Instant;

/// Starts at the system's time and goes on steadily from there.
#[derive(Debug)]
pub(crate) struct SteadyClock {
    origin: Timestamp,
    started: Instant,
}

impl SteadyClock {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Self { origin: Timestamp::from_millis(origin), started: Instant::now() }
    }
}

#[async_trait]
impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        let ms = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.origin.as_millis().saturating_add(ms))
    }

    async fn sleep_until(&self, at: Timestamp) {
        // One more millisecond, since now() rounds down.
        tokio::time::sleep(at.since(self.now()) + Duration::from_millis(1)).await;
    }
}

/// Returns when the clock has reached `at`; never without one.
pub(crate) async fn sleep_until(clock: &Arc<dyn Clock>, at: Option<Timestamp>) {
    let Some(at) = at else { return std::future::pending().await };
    while clock.now() < at {
        clock.sleep_until(at).await;
    }
}

/// Returns when this much has passed.
pub(crate) async fn sleep(clock: &Arc<dyn Clock>, span: Duration) {
    let at = clock.now().after(Span::new(span));
    sleep_until(clock, Some(at)).await;
}
