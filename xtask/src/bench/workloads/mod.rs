//! The workloads: what one operation is, and which limits stand beside it.

mod append;
mod chain;
mod flat;
mod footprint;
mod job;
mod limited;
mod project;
mod read;
mod state;
mod stream;
mod weight;

use clap::ValueEnum;
pub(crate) use footprint::held;

use super::Backend;
use super::measure::{Bench, Series, Target, Unit};
use super::stores::{Durability, Engine};

/// A workload, as it is chosen and printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Append one event with one lane target, one caller.
    #[value(name = "append-1")]
    Append1,
    /// The same, 16 callers over 64 sessions.
    #[value(name = "append-16")]
    Append16,
    /// Append 100 events at once, one caller.
    #[value(name = "batch-1")]
    Batch1,
    /// The same, 16 callers over 64 sessions.
    #[value(name = "batch-16")]
    Batch16,
    /// Append, claim, complete: one worker.
    #[value(name = "job-1")]
    Job1,
    /// The same, 16 workers over 64 sessions.
    #[value(name = "job-16")]
    Job16,
    /// Complete with one child for the next lane, 16 workers.
    #[value(name = "chain-16")]
    Chain16,
    /// A log consumer takes 100,000 events in runs.
    Project,
    /// One claim and completion beside a large backlog, history or number of sessions.
    Flat,
    /// Read 10,000 events of one session.
    #[value(name = "read-10k")]
    Read10k,
    /// From an append to a live subscriber; appends with many subscribers.
    Stream,
    /// Read a state from a snapshot; write snapshots.
    State,
    /// Bytes stored and bytes held.
    Footprint,
}

impl Workload {
    /// The benches of this workload on the backends.
    pub(crate) fn benches(self, backends: &[Backend]) -> Vec<Bench> {
        let mut benches = Vec::new();
        for engine in backends.iter().flat_map(|backend| backend.engines()) {
            let engine = *engine;
            match self {
                Self::Append1 => benches.push(append::one(engine)),
                Self::Append16 => benches.push(append::sixteen(engine)),
                Self::Batch1 => benches.push(append::batch(engine, 1)),
                Self::Batch16 => benches.push(append::batch(engine, 16)),
                Self::Job1 => benches.push(job::bench(engine, 1)),
                Self::Job16 => benches.push(job::bench(engine, 16)),
                Self::Chain16 => benches.push(chain::bench(engine)),
                Self::Project => benches.extend(once(engine).map(project::bench)),
                Self::Flat => benches.extend(flat::benches(engine)),
                Self::Read10k => benches.extend(once(engine).map(read::bench)),
                Self::Stream => benches.extend(stream::benches(engine)),
                Self::State => benches.push(state::bench(engine)),
                Self::Footprint => benches.extend(once(engine).map(footprint::bench)),
            }
        }
        benches
    }
}

/// The engine, unless it is the second durability of a workload that does not commit in the part
/// that is measured.
fn once(engine: Engine) -> Option<Engine> {
    (engine != Engine::Sqlite(Durability::Normal)).then_some(engine)
}

/// What A2 must reach of the rows that its own layout writes.
const OF_SAME_ROWS: Target = Target::at_least(0.75, None);

/// What each backend must reach. SQLite's are for FULL: at NORMAL nothing is promised, the figures
/// stand beside.
#[derive(Debug, Clone, Copy, Default)]
struct Targets {
    memory: Option<Target>,
    sqlite: Option<Target>,
    postgres: Option<Target>,
    redis: Option<Target>,
}

impl Targets {
    fn of(self, engine: Engine) -> Option<Target> {
        match engine {
            Engine::Memory => self.memory,
            Engine::Sqlite(Durability::Full) => self.sqlite,
            Engine::Sqlite(Durability::Normal) => None,
            Engine::Postgres => self.postgres,
            Engine::Redis => self.redis,
        }
    }
}

/// At least so much, and as much as it is meant to be.
const fn least(must: f64, goal: f64) -> Option<Target> {
    Some(Target::at_least(must, Some(goal)))
}

/// A series of operations a second.
fn rate<F, Fut>(name: impl Into<String>, measure: F) -> Series
where
    F: Fn(super::measure::Cx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = anyhow::Result<f64>> + Send + 'static,
{
    Series::new(name, Unit::PerSecond, measure)
}
