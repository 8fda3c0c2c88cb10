//! The server's time, as far as it is known here.
//!
//! The server judges everything by its own clock; this one says when to look. It is the system's with
//! the difference that the server's last answers showed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;

use crate::{Clock, SystemClock, Timestamp};

/// A server's clock, seen from here. Clones share what was heard.
#[derive(Debug, Clone, Default)]
pub struct ServerClock(Arc<AtomicI64>);

impl ServerClock {
    /// The server said that it is `now`.
    pub fn heard(&self, now: Timestamp) {
        let ahead = now.as_millis().saturating_sub(SystemClock.now().as_millis());
        self.0.store(ahead, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        let ahead = self.0.load(Ordering::Relaxed);
        Timestamp::from_millis(SystemClock.now().as_millis().saturating_add(ahead))
    }

    async fn sleep_until(&self, at: Timestamp) {
        let ahead = self.0.load(Ordering::Relaxed);
        let here = Timestamp::from_millis(at.as_millis().saturating_sub(ahead));
        SystemClock.sleep_until(here).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_servers_difference_is_kept() {
        let clock = ServerClock::default();
        let hour = 3_600_000;
        let ahead = Timestamp::from_millis(SystemClock.now().as_millis() + hour);
        clock.heard(ahead);
        assert!(clock.now() >= ahead);
        // By the system's clock this is an hour away.
        clock.sleep_until(ahead).await;
    }
}
