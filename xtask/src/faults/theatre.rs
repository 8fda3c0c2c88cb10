//! Where harm is done: a store, what it stands on, and what can happen to that.

use std::sync::Arc;
use std::time::Duration;

use a2_conformance::history::{Random, Recorder, Workload};
#[cfg(any(feature = "postgres", feature = "redis"))]
use a2_conformance::servers::Proxy;
use a2_core::{Timers, async_trait};
use anyhow::Result;

/// A handle on the store under test.
pub(super) type Store = Arc<dyn Timers>;

/// A backend with what can be done to it. Each harm is over when it returns: the server runs again.
#[async_trait]
pub(super) trait Theatre: Send + Sync {
    /// What is harmed: versions, settings.
    fn describe(&self) -> String;

    /// What can be done.
    fn harms(&self) -> Vec<&'static str>;

    /// What could not be done here, and why.
    fn lacks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Handles on the same data, which the workers share.
    async fn open(&self) -> Result<Vec<Store>>;

    /// Does one of the harms.
    async fn harm(&self, what: &str, random: &mut Random) -> Result<()>;

    /// Whether writes that were not answered may be undone after somebody has read them.
    fn forgets_unanswered(&self) -> bool {
        false
    }

    /// The recorder of a round; where other processes work too, one that they share.
    fn recorder(&self) -> Result<Recorder> {
        Ok(Recorder::new())
    }

    /// The file of the recorder, if it is one.
    fn journal(&self) -> Option<std::path::PathBuf> {
        None
    }

    /// Lets other processes work too.
    async fn send_in(&self, _round: &Round, _workload: &Workload) -> Result<()> {
        Ok(())
    }

    /// Ends their work.
    async fn call_back(&self) -> Result<()> {
        Ok(())
    }
}

/// A round, for the processes that work in it.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) prefix: String,
    pub(super) sessions: u32,
    pub(super) seed: u64,
}

/// A pause between two numbers of milliseconds.
pub(super) async fn pause(random: &mut Random, low: u64, high: u64) {
    tokio::time::sleep(Duration::from_millis(random.from(low, high))).await;
}

/// What a server is, of what it says of itself and its place.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(super) fn version(description: &str) -> &str {
    description.split(" at ").next().unwrap_or(description)
}

/// Loses answers or requests, twenty times.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(super) async fn cut(proxy: &Proxy, answers: bool, random: &mut Random) {
    for _ in 0..20 {
        let n = usize::try_from(random.from(1, 5)).unwrap_or(1);
        if answers {
            proxy.lose_answer_in(n);
        } else {
            proxy.lose_request_in(n);
        }
        pause(random, 5, 60).await;
    }
    proxy.lose_answer_in(0);
    proxy.lose_request_in(0);
}
