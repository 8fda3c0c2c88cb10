//! Everything that a change must pass, as CI runs it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::{package, readme, repo, run, tidy};

/// Which steps to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The steps, in this order; all of them when none is given.
    steps: Vec<Step>,
}

/// One step. Cheap ones first, so that a slip is told soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The code is formatted.
    Fmt,
    /// The repository's own rules hold.
    Tidy,
    /// No lint fires, in tests, benches and examples too.
    Clippy,
    /// The documentation builds and its links resolve.
    Doc,
    /// The README's test command: unit tests, conformance cases, doc tests.
    Test,
    /// Real servers start, answer and stop; Postgres, Redis and PgBouncer must be installed.
    Servers,
    /// The stores that need a server: the suite, the model test and their own tests.
    Stores,
    /// Servers and processes are killed while the stores work; what must hold is checked.
    Faults,
    /// The README's other commands and its program run.
    Readme,
    /// Every published crate builds from its own archive.
    Package,
}

/// What no step but those that name it builds, so that `cargo test` needs no server.
const SERVERS: &str = "xtask/postgres,xtask/redis";

/// A store that needs a server.
struct Served {
    /// Its feature of the suite's package. Its own tests are the binaries `name_…`.
    name: &'static str,
    /// The backends of the suite, and what of it each runs.
    suites: &'static [(&'static str, Cases)],
}

/// Which cases a suite is run on.
enum Cases {
    All,
    /// Those whose names contain one of these.
    Some(&'static [&'static str]),
}

/// Every case once, where the most could go wrong; then what a pooler could break: cases in which
/// connections meet, wait, are told something or are given up.
const STORES: &[Served] = &[
    Served {
        name: "postgres",
        suites: &[
            ("postgres-odd", Cases::All),
            (
                "postgres-pgbouncer",
                Cases::Some(&[
                    "another_handle",
                    "close.",
                    "crowds.cancelled",
                    "hints.",
                    "limits.batch",
                    "presence.watch",
                    ".race.",
                    "retries.",
                    "streams.",
                ]),
            ),
        ],
    },
    // Its own tests have the suite on a cluster among them.
    Served { name: "redis", suites: &[("redis", Cases::All)] },
];

/// Runs the steps and stops at the first that fails.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let steps = if args.steps.is_empty() { Step::value_variants() } else { &args.steps };
    let mut times: Vec<(Step, Duration)> = Vec::new();
    for &step in steps {
        eprintln!("\n==> {}", name(step));
        let start = Instant::now();
        let done = run_step(root, step).with_context(|| format!("step {}", name(step)));
        times.push((step, start.elapsed()));
        eprintln!("<== {}: {:.1} s", name(step), start.elapsed().as_secs_f64());
        if done.is_err() {
            print_times(&times);
            return done;
        }
    }
    print_times(&times);
    eprintln!("all {} steps passed", times.len());
    Ok(())
}

fn run_step(root: &Path, step: Step) -> Result<()> {
    let mut cargo = run::cargo(root);
    match step {
        Step::Fmt => run::echoed(cargo.args(["fmt", "--all", "--check"])),
        Step::Tidy => tidy::run(root),
        Step::Clippy => {
            cargo.args(["clippy", "--workspace", "--all-targets", "--features", SERVERS]);
            run::echoed(cargo.args(["--", "-D", "warnings"]))
        }
        Step::Doc => {
            cargo.args(["doc", "--workspace", "--no-deps", "--features", SERVERS]);
            run::echoed(cargo.env("RUSTDOCFLAGS", "-D warnings"))
        }
        Step::Test => run::echoed(cargo.args(readme::test_command(root)?)),
        Step::Servers => {
            // The workspace's features and these: what the tests before have built serves again.
            cargo.args(["test", "--workspace", "--features", SERVERS]);
            run::echoed(cargo.args(["--test", "servers", "--bin", "lab"]))
        }
        Step::Stores => STORES.iter().try_for_each(|store| stores(root, store)),
        Step::Faults => faults(root),
        Step::Readme => readme::run(root),
        Step::Package => package::run(root),
    }
}

/// Everything is built as the tests are: what they have built serves again.
fn stores(root: &Path, store: &Served) -> Result<()> {
    let cargo = |command| {
        let mut cargo = run::cargo(root);
        cargo.args([command, "--workspace", "--features", SERVERS]);
        cargo
    };
    let tests = || cargo("test");
    // The suite's program, and an example that the tests kill.
    run::echoed(cargo("build").args(["--bin", "lab", "--example", "projection"]))?;
    let own = format!("{}_*", store.name);
    run::echoed(tests().args(["--test", &own]))?;
    for test in ["model", "histories"] {
        run::echoed(tests().args(["--test", test, "--", &format!("{}::", store.name)]))?;
    }
    for (backend, cases) in store.suites {
        let mut lab = Command::new(repo::binary(root, "lab")?);
        lab.current_dir(root).args(["conformance", "--backend", backend]);
        if let Cases::Some(filters) = cases {
            lab.args(filters.iter().flat_map(|filter| ["--filter", *filter]));
        }
        run::echoed(&mut lab)?;
    }
    Ok(())
}

/// One round each, one after the other: they wait for leases and restarts more than they compute.
fn faults(root: &Path) -> Result<()> {
    let mut build = run::cargo(root);
    build.args(["build", "--workspace", "--features", SERVERS, "--bin", "lab"]);
    run::echoed(&mut build)?;
    let mut lab = Command::new(repo::binary(root, "lab")?);
    lab.current_dir(root).args(["faults", "--minutes", "0.2"]);
    let backends = ["memory", "sqlite", "postgres", "redis", "redis-failover", "redis-cluster"];
    lab.args(backends.iter().flat_map(|backend| ["--backend", *backend]));
    run::echoed(&mut lab)
}

fn name(step: Step) -> String {
    format!("{step:?}").to_lowercase()
}

fn print_times(times: &[(Step, Duration)]) {
    eprintln!();
    for (step, time) in times {
        eprintln!("{:>8}  {:>7.1} s", name(*step), time.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_called_what_its_argument_is() {
        for step in Step::value_variants() {
            let argument = step.to_possible_value().unwrap();
            assert_eq!(name(*step), argument.get_name());
        }
    }
}
