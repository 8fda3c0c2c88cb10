//! What others offer on SQLite, beside A2 and by turns with it: how far ahead it is of what one would
//! take instead.
//!
//! Their crates link another SQLite than the stores do, so they are measured by a program of their
//! own: the package `xtask/peers`, which is no member of the workspace and which no check builds. It
//! is built and started here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Deserialize;

use super::measure::{Bench, Cx, Series, Target, Unit};
use super::payload::PAYLOAD;
use super::stores::{Durability, Engine};
use super::workloads::Workload;

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/Cargo.toml");
const LOCK: &str = include_str!("../../peers/Cargo.lock");
/// How far ahead A2 must be.
const AHEAD: Target = Target::at_least(3.0, None);

/// What the rows of the peers mean, for who reads the table.
pub(crate) const LEGEND: &str = "\
Beside A2 at sqlite FULL stand a queue and an event store of others, measured in a process of their
own: the same payload, as many callers, 64 streams, WAL and synchronous=FULL, and as many connections
as were fastest (one, and four for 16 appending callers: with more, writers wait for each other by
SQLite's timed retries). They do not do the same work. apalis-sqlite (the queue of apalis) keeps no
order per key and no log. One worker, without its second write at the start of a job, is woken by
every push and looks each millisecond besides; it fetches and acknowledges as many jobs at once as
there are callers, and a caller pushes its next job when one was handled. sqlite-es (the store of
cqrs-es) keeps streams with an expected version, but no queue and no cursors, while A2's append puts
its event in a lane as well; it parses the JSON that it reads, and is asked at its repository, since
the framework above it loads the whole stream before each append.";

/// The program that measures them, built.
pub(crate) struct Peers {
    program: PathBuf,
}

impl Peers {
    /// Builds it below `target`.
    pub(crate) fn build(target: &Path) -> Result<Self> {
        let target = target.join("peers");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--release", "--locked", "--manifest-path", MANIFEST, "--target-dir"]);
        // Left by the cargo that runs this; a build script of theirs looks at it and would run anew.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(&name);
            }
        }
        let status = cargo.arg(&target).status().context("cargo build of the peers")?;
        if !status.success() {
            bail!("cargo build of {MANIFEST}: {status}");
        }
        let program = format!("a2-peers{}", std::env::consts::EXE_SUFFIX);
        Ok(Self { program: target.join("release").join(program) })
    }

    /// Puts the one that does the work of `bench` beside A2.
    pub(crate) fn join(&self, workload: Workload, bench: &mut Bench) {
        if bench.engine() != Engine::Sqlite(Durability::Full) {
            return;
        }
        let peer = match workload {
            Workload::Append1 | Workload::Append16 | Workload::Read10k => "sqlite-es",
            Workload::Job1 | Workload::Job16 => "apalis-sqlite",
            _ => return,
        };
        let Some(workload) = workload.to_possible_value() else { return };
        let (program, workload) = (self.program.clone(), workload.get_name().to_owned());
        let name = format!("{peer} {}", version_of(peer).unwrap_or_default());
        let series = Series::new(name, Unit::PerSecond, move |cx| {
            let (program, workload) = (program.clone(), workload.clone());
            async move {
                tokio::task::spawn_blocking(move || measure(&program, peer, &workload, &cx)).await?
            }
        });
        bench.beside(series, AHEAD);
    }
}

/// The version of a package that the peers are built with.
fn version_of(package: &str) -> Option<&'static str> {
    let mut lines = LOCK.lines().skip_while(|line| *line != format!("name = \"{package}\""));
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

/// What the program prints.
#[derive(Deserialize)]
struct Printed {
    per_second: f64,
}

fn measure(program: &Path, peer: &str, workload: &str, cx: &Cx) -> Result<f64> {
    let folder = cx.folder()?;
    let mut command = Command::new(program);
    command.args([peer, workload]).arg(folder.path());
    command.args([&cx.time.as_secs_f64().to_string(), PAYLOAD]).stderr(Stdio::inherit());
    let output = command.output().with_context(|| program.display().to_string())?;
    if !output.status.success() {
        bail!("{}: {}", program.display(), output.status);
    }
    let printed: Printed = serde_json::from_slice(&output.stdout).context("the peers' figure")?;
    Ok(printed.per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_version() {
        for peer in ["apalis-sqlite", "sqlite-es"] {
            assert!(version_of(peer).unwrap().starts_with(|c: char| c.is_ascii_digit()), "{peer}");
        }
        assert_eq!(version_of("no-such-package"), None);
    }
}
