//! The model test: random histories, with random clocks, lost answers and two handles, on a store
//! and on a plain reference of the model's rules; every answer must be the same.
//!
//! ```no_run
//! # async fn example(factory: std::sync::Arc<dyn a2_conformance::Factory>) {
//! let checked = a2_conformance::model::check(factory, 250, 1).await;
//! assert!(checked.is_ok(), "{}", checked.unwrap_err());
//! # }
//! ```
//!
//! A history that fails is shrunk and printed as a script, to be pasted into the table of replays.
//! Exempt from the comparison is what a store is free in: what `reclaim` has deleted, the pages of
//! `pending`, hints that come sooner than promised.

mod call;
mod compare;
#[cfg(test)]
mod coverage;
mod generate;
mod history;
mod names;
pub mod op;
mod passages;
mod reference;
mod replays;
mod resolve;
#[cfg(test)]
mod told;

use std::fmt;
use std::sync::Arc;

use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestCaseError, TestError, TestRunner};
use tokio::runtime::Handle;

use crate::cx::chain;
use crate::{BoxError, Factory};
use history::Bench;
use op::Step;

/// How many histories share a store before a new one is opened.
const PER_STORE: u32 = 32;

/// A history on which a store and the reference differ.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The backend.
    pub backend: String,
    /// The history's own seed: `check` with it and one history runs it again.
    pub seed: Option<u64>,
    /// What the store answered, and what it must answer.
    pub difference: String,
    /// The smallest history found.
    pub steps: Vec<Step>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} differs from the model", self.backend)?;
        if let Some(seed) = self.seed {
            write!(f, " (A2_MODEL_SEED={seed} A2_MODEL_HISTORIES=1)")?;
        }
        writeln!(f, "\n{}", self.difference)?;
        writeln!(f, "script:\n&[")?;
        for step in &self.steps {
            writeln!(f, "    {step:?},")?;
        }
        f.write_str("]")
    }
}

impl std::error::Error for Failure {}

/// Runs this many random histories on stores of `factory`. The n-th has the seed `seed` + n.
///
/// Within a Tokio runtime.
///
/// # Errors
/// The first history that fails, shrunk.
pub async fn check(
    factory: Arc<dyn Factory>,
    histories: u32,
    seed: u64,
) -> Result<(), Box<Failure>> {
    search(factory, histories, seed, SHRINKS).await
}

/// As [`check`], but takes no time to shrink the history that fails.
///
/// # Errors
/// The first history that fails, as it was generated.
pub async fn find(
    factory: Arc<dyn Factory>,
    histories: u32,
    seed: u64,
) -> Result<(), Box<Failure>> {
    search(factory, histories, seed, 0).await
}

/// How many smaller histories are tried.
const SHRINKS: u32 = 4_096;

async fn search(
    factory: Arc<dyn Factory>,
    histories: u32,
    seed: u64,
    shrinks: u32,
) -> Result<(), Box<Failure>> {
    let runtime = Handle::current();
    // Generated values cannot cross threads: generation, the runs and shrinking stay on one.
    let checked = tokio::task::spawn_blocking(move || {
        let mut bench = None;
        for n in 0..histories {
            if n % PER_STORE == 0 {
                bench = Some(open(&runtime, &*factory)?);
            }
            let Some(bench) = &bench else { continue };
            let runner = runner(seed.wrapping_add(n.into()), shrinks);
            one(&runtime, &*factory, bench, runner)?;
        }
        Ok(())
    });
    match checked.await {
        Ok(checked) => checked,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn open(runtime: &Handle, factory: &dyn Factory) -> Result<Bench, Box<Failure>> {
    runtime.block_on(Bench::open(factory)).map_err(|error| no_store(factory, &error))
}

fn no_store(factory: &dyn Factory, error: &BoxError) -> Box<Failure> {
    Box::new(Failure {
        backend: factory.name().to_owned(),
        seed: None,
        difference: format!("no store: {}", chain(error)),
        steps: Vec::new(),
    })
}

/// Generates one history. Choices fork the generator all the time, which XorShift does cheaply.
fn runner(seed: u64, shrinks: u32) -> TestRunner {
    TestRunner::new(Config {
        cases: 1,
        failure_persistence: None,
        max_shrink_iters: shrinks,
        rng_algorithm: RngAlgorithm::XorShift,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    })
}

fn one(
    runtime: &Handle,
    factory: &dyn Factory,
    bench: &Bench,
    mut runner: TestRunner,
) -> Result<(), Box<Failure>> {
    let ran = runner.run(&generate::history(), |steps| {
        runtime.block_on(bench.run(&steps)).map_err(TestCaseError::fail)
    });
    let (steps, reason) = match ran {
        Ok(()) => return Ok(()),
        Err(TestError::Fail(reason, steps)) => (steps, reason.to_string()),
        Err(TestError::Abort(reason)) => (Vec::new(), reason.to_string()),
    };
    let seed = match runner.config().rng_seed {
        RngSeed::Fixed(seed) => Some(seed),
        RngSeed::Random => None,
    };
    Err(Box::new(Failure { backend: factory.name().to_owned(), seed, difference: reason, steps }))
}

/// Runs a script as a failure printed it.
///
/// # Errors
/// Where the store and the reference differ.
pub async fn replay(factory: &dyn Factory, steps: &[Step]) -> Result<(), Box<Failure>> {
    let bench = Bench::open(factory).await.map_err(|error| no_store(factory, &error))?;
    bench.run(steps).await.map_err(|difference| {
        Box::new(Failure {
            backend: factory.name().to_owned(),
            seed: None,
            difference,
            steps: steps.to_vec(),
        })
    })
}

/// Runs every script of the table of replays, those of failures that were found and mended.
///
/// # Errors
/// The first that fails, or that there is none.
pub async fn replays(factory: &dyn Factory) -> Result<(), Box<Failure>> {
    let scripts = replays::all();
    if scripts.is_empty() {
        return Err(Box::new(Failure {
            backend: factory.name().to_owned(),
            seed: None,
            difference: "the table of replays is empty".to_owned(),
            steps: Vec::new(),
        }));
    }
    for (name, steps) in scripts {
        replay(factory, &steps).await.map_err(|mut failure| {
            failure.difference = format!("replay {name}: {}", failure.difference);
            failure
        })?;
    }
    Ok(())
}
