//! Renewing claims: one call a session, when half of the soonest lease is left.

use std::sync::Arc;
use std::time::Duration;

use a2_core::{RenewClaims, Result, SessionId, Span, limits};

use crate::inflight::Running;
use crate::runtime::Inner;
use crate::{clock, telemetry};

impl Inner {
    /// Keeps the claims of what runs, until the runtime has ended.
    pub(crate) async fn run_renewals(self: Arc<Self>) {
        loop {
            let sooner = self.inflight.sooner.notified();
            let now = self.clock.now();
            for session in self.inflight.due(now) {
                let running = self.inflight.of(&session);
                // Should the call fail, or last, it is made again after an eighth of the lease.
                let shortest = running.iter().map(|r| r.ttl).min().unwrap_or(Duration::ZERO);
                self.inflight.retry(&session, now.after(Span::new(shortest / 8)));
                let inner = Arc::clone(&self);
                tokio::spawn(async move { inner.renew(&session, running).await });
            }
            tokio::select! {
                () = self.ended.cancelled() => return,
                () = sooner => {}
                () = clock::sleep_until(&self.clock, self.inflight.next_renewal()) => {}
            }
        }
    }

    async fn renew(&self, session: &SessionId, mut running: Vec<Arc<Running>>) {
        running.retain(|r| !r.is_lost());
        running.sort_by_key(|r| r.ttl);
        for same in running.chunk_by(|a, b| a.ttl == b.ttl) {
            for some in same.chunks(limits::CLAIM_LIST) {
                if let Err(error) = self.renew_same(session, some).await {
                    tracing::warn!(%session, %error, "claims were not renewed");
                    self.end_if_closed(&error);
                }
            }
        }
    }

    async fn renew_same(&self, session: &SessionId, running: &[Arc<Running>]) -> Result<()> {
        let Some(first) = running.first() else { return Ok(()) };
        let asked = self.clock.now();
        let claims = running.iter().map(|r| r.attempt.clone());
        let renew = RenewClaims::new(&self.holder, claims, first.ttl)?;
        let renewal = self.store.renew_claims(session, renew).await?;
        for lost in running.iter().filter(|r| renewal.superseded.contains(&r.attempt)) {
            telemetry::lost(session, &lost.attempt);
            lost.lose();
        }
        self.inflight.renewed(session, asked, running, &renewal.renewed);
        Ok(())
    }
}
