//! The conformance suite from the command line: progress, what failed, then a table of groups and
//! backends. A backend that cannot be had is a failure, never left out in silence.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "postgres")]
use a2_conformance::backends::Postgres;
#[cfg(feature = "redis")]
use a2_conformance::backends::Redis;
use a2_conformance::backends::{Memory, Sqlite};
use a2_conformance::{Counts, Factory, Filter, Options, Report, all_scenarios};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};

/// How to run the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A backend to test, repeatable; memory and sqlite when none is given.
    #[arg(long = "backend", value_name = "NAME")]
    backends: Vec<Backend>,
    /// Where the servers of backends that need one come from. Memory and SQLite need none.
    #[arg(long, default_value = "auto")]
    servers: Servers,
    /// Only cases whose name contains this text, or one of these.
    #[arg(long = "filter", value_name = "TEXT")]
    filters: Vec<String>,
    /// Print the names of the cases and run nothing.
    #[arg(long)]
    list: bool,
    /// Write docs/conformance.md, what the suite checks rule by rule, and run nothing.
    #[arg(long)]
    report: bool,
    /// Write the results of every case to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How many cases run at once; twice the cores by default.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Run the cases in the order that this number stands for, not in that of the suite.
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Run everything this often on the same stores, each time shuffled anew if it is shuffled.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backend {
    Memory,
    Sqlite,
    Postgres,
    PostgresOdd,
    PostgresPgbouncer,
    Redis,
    RedisCluster,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Servers {
    /// A URL from the environment, else Docker, else binaries of this machine.
    Auto,
    /// Docker alone.
    Docker,
    /// Binaries of this machine alone.
    Local,
    /// URLs from the environment alone.
    Url,
}

impl Backend {
    #[cfg_attr(not(any(feature = "postgres", feature = "redis")), expect(unused_variables))]
    fn factory(self, servers: Servers) -> Result<Arc<dyn Factory>> {
        match self {
            Self::Memory => Ok(Arc::new(Memory::default())),
            Self::Sqlite => Ok(Arc::new(Sqlite::default())),
            #[cfg(feature = "postgres")]
            Self::Postgres => Ok(Arc::new(Postgres::new(servers.into()))),
            #[cfg(feature = "postgres")]
            Self::PostgresOdd => Ok(Arc::new(Postgres::oddly_set(servers.into()))),
            #[cfg(feature = "postgres")]
            Self::PostgresPgbouncer => Ok(Arc::new(Postgres::through_pgbouncer(servers.into()))),
            #[cfg(not(feature = "postgres"))]
            Self::Postgres | Self::PostgresOdd | Self::PostgresPgbouncer => {
                bail!("this program was built without it: add --features postgres")
            }
            #[cfg(feature = "redis")]
            Self::Redis => Ok(Arc::new(Redis::new(servers.into()))),
            #[cfg(feature = "redis")]
            Self::RedisCluster => Ok(Arc::new(Redis::cluster(servers.into()))),
            #[cfg(not(feature = "redis"))]
            Self::Redis | Self::RedisCluster => {
                bail!("this program was built without it: add --features redis")
            }
        }
    }

    fn needs_server(self) -> bool {
        !matches!(self, Self::Memory | Self::Sqlite)
    }
}

/// Runs the suite; an error when any case failed.
pub(crate) async fn run(args: Args) -> Result<()> {
    if args.report {
        return crate::coverage::write();
    }
    let filter = Filter::containing(args.filters);
    let names: Vec<_> =
        all_scenarios().map(|s| s.name()).filter(|name| filter.selects(name)).collect();
    if args.list {
        names.iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    if names.is_empty() {
        bail!("no case has a name that contains the filter; --list shows all");
    }
    let embedded = [Backend::Memory, Backend::Sqlite];
    let backends = if args.backends.is_empty() { &embedded[..] } else { &args.backends };
    // All of them before the first runs, so that a missing one is told at once.
    let factory = |backend: &Backend| backend.factory(args.servers);
    let factories: Vec<_> = backends.iter().map(factory).collect::<Result<_>>()?;
    if args.servers != Servers::Auto && !backends.iter().any(|backend| backend.needs_server()) {
        eprintln!("--servers changes nothing: the chosen backends need no server");
    }

    let mut report = Report::default();
    for factory in factories {
        for round in 0..args.repeat {
            let mut options = Options::default();
            if let Some(jobs) = args.jobs {
                options = options.jobs(jobs);
            }
            if let Some(seed) = args.shuffle {
                options = options.shuffle(seed.wrapping_add(round));
            }
            report.merge(run_on(Arc::clone(&factory), &filter, names.len(), options).await);
        }
    }
    if let Some(path) = &args.json {
        std::fs::write(path, report.to_json()).with_context(|| path.display().to_string())?;
    }
    report.failures().for_each(|failure| println!("\n{failure}"));
    println!("\n{}", table(&report));
    let failed = report.failures().count();
    if !report.is_success() {
        bail!("{failed} of {} cases failed", report.results.len());
    }
    println!("all {} cases passed or lack a capability", report.results.len());
    Ok(())
}

async fn run_on(
    factory: Arc<dyn Factory>,
    filter: &Filter,
    cases: usize,
    options: Options,
) -> Report {
    let backend = factory.name().to_owned();
    eprintln!("{backend}: {cases} cases");
    let done = AtomicUsize::new(0);
    let options = options.on_progress(move |result| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if result.is_failure() {
            eprintln!("{backend}: {done}/{cases} FAILED {}", result.case);
        } else if done.is_multiple_of(50) || done == cases {
            eprintln!("{backend}: {done}/{cases}");
        }
    });
    a2_conformance::run(factory, filter, options).await
}

/// Groups × backends, with a line of sums.
fn table(report: &Report) -> Table {
    let backends = report.backends();
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    let heads = backends.iter().flat_map(|backend| [(*backend).to_owned(), "time".to_owned()]);
    table.set_header(std::iter::once("group".to_owned()).chain(heads));
    let mut sums = vec![Counts::default(); backends.len()];
    for (group, by_backend) in report.groups() {
        let mut row = vec![group.to_owned()];
        for (sum, backend) in sums.iter_mut().zip(&backends) {
            let counts = by_backend.get(backend).copied().unwrap_or_default();
            sum.passed += counts.passed;
            sum.failed += counts.failed;
            sum.lacking += counts.lacking;
            sum.millis += counts.millis;
            row.extend(cells(counts));
        }
        table.add_row(row);
    }
    table.add_row(std::iter::once("all".to_owned()).chain(sums.into_iter().flat_map(cells)));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn cells(counts: Counts) -> [String; 2] {
    let mut text = format!("{} passed", counts.passed);
    if counts.failed > 0 {
        text.push_str(&format!(", {} FAILED", counts.failed));
    }
    if counts.lacking > 0 {
        text.push_str(&format!(", {} lacking", counts.lacking));
    }
    let seconds = std::time::Duration::from_millis(counts.millis).as_secs_f64();
    [text, format!("{seconds:.1} s")]
}

#[cfg(test)]
mod tests {
    use a2_conformance::{Capability, CaseResult, Outcome};

    use super::*;

    fn result(backend: &str, case: &str, outcome: Outcome) -> CaseResult {
        CaseResult { backend: backend.to_owned(), case: case.to_owned(), outcome, millis: 1_500 }
    }

    #[test]
    fn failures_stand_in_the_table() {
        let failed = Outcome::Failed { message: "no".to_owned(), operations: Vec::new() };
        let lacks = Outcome::Lacks { capability: Capability::Timers };
        let results = vec![
            result("memory", "append.a", Outcome::Passed),
            result("memory", "append.b", failed),
            result("sqlite", "append.a", Outcome::Passed),
            result("sqlite", "timers.a", lacks),
        ];
        let text = table(&Report { results }).to_string();
        let row = |name: &str| text.lines().find(|l| l.contains(name)).unwrap().to_owned();
        assert!(row("append").contains("1 passed, 1 FAILED"), "{text}");
        assert!(row("append").contains("3.0 s"), "{text}");
        assert!(row("timers").contains("0 passed, 1 lacking"), "{text}");
        assert!(row("all").contains("1 passed, 1 lacking"), "{text}");
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn a_backend_that_was_not_built_in_is_an_error() {
        for backend in [Backend::Redis, Backend::RedisCluster] {
            let error =
                backend.factory(Servers::Auto).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains("add --features redis"), "{error}");
        }
    }
}
