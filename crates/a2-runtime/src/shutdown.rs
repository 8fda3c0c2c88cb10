//! Ending: no more claims, time for what runs, then its claims are given back.

use std::sync::Arc;
use std::time::Duration;

use a2_core::{ReleaseClaims, SessionId, Span, limits};
use futures_util::{StreamExt, stream};

use crate::clock;
use crate::inflight::Running;
use crate::runtime::Inner;

/// How many sessions' claims are given back at the same time.
const AT_ONCE: usize = 16;

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// Whether every handler ended by itself.
    pub finished: bool,
    /// How many claims were given back. What could not be given back lapses.
    pub released: usize,
}

pub(crate) async fn run(inner: &Arc<Inner>, within: Duration) -> Shutdown {
    let deadline = inner.clock.now().after(Span::new(within));
    inner.stopping.cancel();
    inner.tasks.close();
    let finished = tokio::select! {
        biased;
        () = inner.tasks.wait() => true,
        () = clock::sleep_until(&inner.clock, Some(deadline)) => false,
    };
    if !finished {
        tracing::info!(handlers = inner.inflight.len(), "cancelling what still runs");
        inner.aborted.cancel();
        // A handler that does not let go of its thread is not waited for.
        let most = inner.options.cancel_grace + Duration::from_secs(1);
        let _ = tokio::time::timeout(most, inner.tasks.wait()).await;
    }
    let left = inner.inflight.all();
    let released = stream::iter(left)
        .map(|(session, running)| async move { release(inner, &session, &running).await })
        .buffer_unordered(AT_ONCE)
        .fold(0, |sum, n| std::future::ready(sum + n))
        .await;
    inner.ended.cancel();
    tracing::info!(finished, released, "runtime stopped");
    Shutdown { finished, released }
}

async fn release(inner: &Inner, session: &SessionId, running: &[Arc<Running>]) -> usize {
    let mut released = 0;
    let held: Vec<_> = running.iter().filter(|r| !r.is_lost()).collect();
    for some in held.chunks(limits::CLAIM_LIST) {
        let claims = some.iter().map(|r| r.attempt.clone());
        let answer = match ReleaseClaims::new(&inner.holder, claims) {
            Ok(release) => inner.store.release_claims(session, release).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => released += answer.released.len(),
            Err(error) => tracing::warn!(%session, %error, "claims were not given back"),
        }
    }
    for running in running {
        inner.inflight.remove(session, running);
    }
    released
}
