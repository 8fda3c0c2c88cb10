//! What the runtime promises, as scenarios for any store: every test file runs all of them on one
//! kind.
//!
//! Each opens the store as often as there are processes in it.

#![allow(dead_code, reason = "every test file uses its part")]

mod actors;
mod clocked;
mod crowds;
mod events;

use std::sync::Arc;
use std::time::Duration;

use a2_core::{ManualClock, Timers, async_trait};

pub(crate) use actors::*;
pub(crate) use clocked::*;
pub(crate) use crowds::*;

/// Where a scenario's data is: nobody else's.
#[async_trait]
pub(crate) trait Site: Send + Sync {
    /// Opens the store once more, with this clock instead of its own.
    async fn open(&self, clock: Option<ManualClock>) -> Arc<dyn Timers>;
}

/// How long a scenario waits for what must happen, on a machine however slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `look` finds something.
async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// Makes a test of each scenario, on sites that the expression makes.
macro_rules! scenarios {
    ($site:expr) => {
        scenarios! { $site;
            several_processes_share_the_work,
            shutdowns_under_load_lose_nothing_and_charge_nothing,
            a_log_hears_of_everything_and_a_new_one_of_what_was_there,
            a_chain_of_consumers_ends,
            a_zombie_cannot_commit,
            failures_are_held_and_end_as_dead_letters,
            a_timer_is_fired_once,
            every_attempt_folds_the_same_state,
            a_clear_cancels_and_starts_anew,
            a_thousand_calls_are_each_answered_once,
            an_actors_zombie_cannot_commit,
            a_turn_whose_process_died_before_the_commit_runs_again,
            callers_elsewhere_hear_of_refusals_and_clears,
            an_actors_timer_is_fired_once,
        }
    };
    ($site:expr; $($name:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            runtime_scenarios::$name(&$site.await).await;
        }
    )*};
}
pub(crate) use scenarios;
