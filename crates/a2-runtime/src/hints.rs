//! Hints: a session may have work.

use std::sync::Arc;
use std::time::Duration;

use a2_core::SessionId;
use futures_util::StreamExt;

use crate::runtime::Inner;

/// After the hints ended, or failed.
const REST: Duration = Duration::from_secs(1);

impl Inner {
    /// Follows the store's hints.
    pub(crate) async fn run_hints(self: Arc<Self>) {
        loop {
            let mut hints = self.store.watch_pending(self.registry.served.clone());
            loop {
                let hint = tokio::select! {
                    () = self.stopping.cancelled() => return,
                    hint = hints.next() => hint,
                };
                match hint {
                    Some(Ok(hint)) => self.hinted(&hint.session),
                    Some(Err(error)) => {
                        tracing::warn!(%error, "hints failed");
                        if self.end_if_closed(&error) {
                            return;
                        }
                        break;
                    }
                    None => break,
                }
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = tokio::time::sleep(REST) => {}
            }
        }
    }

    fn hinted(self: &Arc<Self>, session: &SessionId) {
        self.fire_soon(session);
        self.wake(session);
    }
}
