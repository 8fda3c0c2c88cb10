//! Histories on the embedded stores; with a server's feature also on that store. What they find is
//! proven by the checker's own tests.
//!
//! `A2_HISTORIES` is how many are run on each backend (4 by default), `A2_HISTORY_SEED` the first one's
//! seed (1 by default).

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use a2_conformance::Factory;
use a2_conformance::backends::Memory;
#[cfg(feature = "postgres")]
use a2_conformance::backends::Postgres;
#[cfg(feature = "redis")]
use a2_conformance::backends::Redis;
#[cfg(feature = "sqlite")]
use a2_conformance::backends::Sqlite;
use a2_conformance::history::{self, Answer, Note, Plan};
#[cfg(any(feature = "postgres", feature = "redis"))]
use a2_conformance::servers::Servers;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};

/// A backend for all its histories: one server does.
type Backend = LazyLock<Arc<dyn Factory>>;

static MEMORY: Backend = LazyLock::new(|| Arc::new(Memory::default()));
#[cfg(feature = "sqlite")]
static SQLITE: Backend = LazyLock::new(|| Arc::new(Sqlite::relaxed()));
#[cfg(feature = "postgres")]
static POSTGRES: Backend = LazyLock::new(|| Arc::new(Postgres::new(Servers::Auto)));
#[cfg(feature = "redis")]
static REDIS: Backend = LazyLock::new(|| Arc::new(Redis::new(Servers::Auto)));

/// All run on it: a server's factory has its tasks there.
static RUNTIME: LazyLock<std::io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_multi_thread().enable_all().build());

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let (histories, seed) = (number("A2_HISTORIES").unwrap_or(4), number("A2_HISTORY_SEED"));
    let seed = seed.unwrap_or(1);
    let backends: &[&'static Backend] = &[
        &MEMORY,
        #[cfg(feature = "sqlite")]
        &SQLITE,
        #[cfg(feature = "postgres")]
        &POSTGRES,
        #[cfg(feature = "redis")]
        &REDIS,
    ];
    let mut trials = vec![Trial::test("a_seed_is_one_history_in_memory", one_history)];
    for backend in backends.iter().copied() {
        for seed in seed..seed.saturating_add(histories) {
            let name = format!("{}::seed_{seed}", backend.name());
            trials.push(Trial::test(name, move || holds(backend, seed)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn holds(backend: &Arc<dyn Factory>, seed: u64) -> Result<(), Failed> {
    let runtime = RUNTIME.as_ref().map_err(ToString::to_string)?;
    let factory = Arc::clone(backend);
    let run = runtime.spawn(async move { history::run(&*factory, &Plan::new(seed)).await });
    let report = runtime.block_on(run)??;
    println!("{}: {} answered, {} unknown", backend.name(), report.answered, report.unknown);
    assert!(report.unknown > 0, "no answer was lost");
    match report.violations.split_at_checked(10) {
        None if report.violations.is_empty() => Ok(()),
        some => {
            let shown = some.map_or(&report.violations[..], |(first, _)| first);
            let lines: Vec<_> = shown.iter().map(ToString::to_string).collect();
            Err(format!("{} violations\n{}", report.violations.len(), lines.join("\n")).into())
        }
    }
}

/// On one thread a seed stands for one history.
fn one_history() -> Result<(), Failed> {
    let run = || -> Result<_, Failed> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let plan = Plan::new(11);
        let report = runtime.block_on(history::run(&Memory::default(), &plan))?;
        let mut notes = report.history.notes;
        for note in &mut notes {
            // Pages of what is pending are in no order.
            if let Note::Ended { answer: Answer::Sessions { sessions, .. }, .. } = note {
                sessions.clear();
            }
        }
        Ok(notes)
    };
    let (one, other) = (run()?, run()?);
    assert!(one.len() > 1_000, "{} notes", one.len());
    if let Some((one, other)) = one.iter().zip(&other).find(|(one, other)| one != other) {
        return Err(format!("{one:?}\nis, the second time,\n{other:?}").into());
    }
    assert_eq!(one.len(), other.len());
    Ok(())
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
