//! Everything that a change must pass, as CI runs it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::{package, readme, run, tidy};

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
    /// The README's other commands and its program run.
    Readme,
    /// Every published crate builds from its own archive.
    Package,
}

/// What no step but those that name it builds, so that `cargo test` needs no server.
const SERVERS: &str = "xtask/servers";

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
        Step::Readme => readme::run(root),
        Step::Package => package::run(root),
    }
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
