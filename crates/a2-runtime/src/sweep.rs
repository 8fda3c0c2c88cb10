//! Sweeps: one pass over all pending work now and then, for what nobody told of.

use std::sync::Arc;
use std::time::Duration;

use a2_core::{Page, PageToken, PendingPage, Result};

use crate::clock;
use crate::runtime::Inner;

impl Inner {
    /// Sweeps at the start and then about as often as the program wants.
    pub(crate) async fn run_sweeps(self: Arc<Self>) {
        loop {
            let missed = self.units.missed.notified();
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "a sweep was not finished");
                if self.end_if_closed(&error) {
                    return;
                }
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = missed => {}
                () = clock::sleep(&self.clock, jittered(self.options.sweep_every)) => {}
            }
        }
    }

    async fn sweep(self: &Arc<Self>) -> Result<()> {
        let mut token: Option<PageToken> = None;
        loop {
            let page = token.take().map_or_else(Page::first, Page::at);
            let request = PendingPage::new(self.registry.served.clone()).page(page);
            let pending = self.store.pending(request).await?;
            for found in pending.sessions {
                self.fire_soon(&found.session);
                self.wake(&found.session);
            }
            match pending.next {
                Some(next) if !self.stopping.is_cancelled() => token = Some(next),
                _ => return Ok(()),
            }
        }
    }
}

/// Between half and one and a half of it: processes that started together do not stay together.
pub(crate) fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.5 + fastrand::f64())
}
