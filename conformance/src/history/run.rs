//! One history on the stores of a factory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use a2_core::{ManualClock, Timers};
use tokio::task::JoinSet;

use super::check::{History, Violation, check};
use super::note::Note;
use super::random::Random;
use super::recorder::Recorder;
use super::work::{BUDGET, Time, UNTOUCHED, Workload, logs};
use crate::cx::START;
use crate::losing::{Losing, Loss};
use crate::{BoxError, Factory, Isolation, Setup};

/// How long a history's rest may take.
const DRAIN: Duration = Duration::from_secs(120);

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// What the choices are made by.
    pub seed: u64,
    /// How many work at once.
    pub workers: u32,
    /// In how many sessions.
    pub sessions: u32,
    /// How many things each worker does.
    pub steps: u32,
    /// How many in a hundred answers are lost.
    pub losses: u64,
}

impl Plan {
    /// Eight workers in six sessions, 150 steps each, of whose answers every twentieth is lost.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, workers: 8, sessions: 6, steps: 150, losses: 5 }
    }
}

/// What came of a history.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// What happened.
    pub history: History,
    /// How many calls were answered.
    pub answered: u64,
    /// How many calls have an unknown outcome.
    pub unknown: u64,
    /// What must not have happened.
    pub violations: Vec<Violation>,
}

impl Workload {
    /// What is to be checked of these notes.
    #[must_use]
    pub fn history(&self, notes: Vec<Note>) -> History {
        let place = |mark: &Note| notes.iter().position(|note| note == mark).unwrap_or(notes.len());
        let (drained_from, settled_from) = (place(&Note::Draining), place(&Note::Settled));
        History {
            sessions: self.sessions.clone(),
            logs: logs().to_vec(),
            untouched: consumer(UNTOUCHED),
            budget: BUDGET,
            drained_from,
            settled_from,
            unanswered_may_vanish: false,
            notes,
        }
    }
}

#[allow(clippy::unwrap_used, reason = "a literal")]
fn consumer(name: &str) -> a2_core::Consumer {
    a2_core::Consumer::new(name).unwrap()
}

/// Runs a history on a store of the factory with a manual clock, on two handles if it has them, and
/// checks it.
///
/// # Errors
/// There is no store, it has no timers, or it does not settle.
pub async fn run(factory: &dyn Factory, plan: &Plan) -> Result<Report, BoxError> {
    let clock = ManualClock::at(START);
    let first = factory.open(Setup::new(Some(clock.clone()), Isolation::Own)).await?;
    let second = match &first.another {
        Some(another) => Some(another().await?),
        None => None,
    };
    let handles: Vec<_> = [Some(&first), second.as_ref()].into_iter().flatten().collect();
    let stores: Option<Vec<_>> = handles.iter().map(|handle| handle.timers.clone()).collect();
    let stores = stores.ok_or("the store has no timers")?;
    let recorder = Recorder::new();
    let workload =
        Workload::new("history", plan.sessions, plan.seed, Time::Manual(clock), &recorder);

    let Some(store) = stores.first().cloned() else { return Err("no store".into()) };
    workload.begin(Arc::clone(&store)).await?;
    let mut followers = JoinSet::new();
    for session in 0..workload.sessions.len() {
        let Some(store) = stores.get(session % stores.len()).cloned() else { continue };
        let workload = workload.clone();
        followers.spawn(async move { workload.follow(session, store).await });
    }
    let mut workers = JoinSet::new();
    for number in 1..=plan.workers {
        let place = usize::try_from(number)? % stores.len();
        let Some(store) = stores.get(place).cloned() else { continue };
        let store = losing(store, plan, number);
        let (workload, steps) = (workload.clone(), plan.steps);
        workers.spawn(async move { workload.work(number, Some(steps), store).await });
    }
    while let Some(ended) = workers.join_next().await {
        ended?;
    }
    workload.drain(store, DRAIN * factory.stretch().max(1)).await?;
    let (answered, unknown) = recorder.counts();
    // Before the streams are dropped: those that are open to the end must have caught up.
    let history = workload.history(recorder.notes(None)?);
    drop(followers);
    let violations = check(&history);
    Ok(Report { history, answered, unknown, violations })
}

/// The store as one worker has it.
fn losing(store: Arc<dyn Timers>, plan: &Plan, worker: u32) -> Arc<dyn Timers> {
    let (seed, losses, calls) = (plan.seed, plan.losses, AtomicU64::new(0));
    Arc::new(Losing::new(store, move |_| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::of(seed, (u64::from(worker) << 32) | call);
        match random.percent(losses) {
            false => Loss::None,
            true if random.percent(50) => Loss::Before,
            true => Loss::After,
        }
    }))
}
