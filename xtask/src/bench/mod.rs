//! The benchmarks: every figure stands beside what the bare engine does for the same work, measured
//! in the same run by turns, so that the ratio says something about A2 and not about the machine.

mod limits;
mod measure;
mod payload;
mod peers;
mod probe;
mod report;
mod servers;
mod stores;
mod workers;
mod workloads;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Serialize;

use measure::Cx;
use peers::Peers;
use probe::Machine;
use report::Report;
use servers::Servers;
use stores::{Durability, Engine};
use workloads::Workload;

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A backend to measure, repeatable; memory and sqlite when none is given.
    #[arg(long = "backend", value_name = "NAME")]
    backends: Vec<Backend>,
    /// Where the servers of backends that need one come from. Memory and SQLite need none.
    #[arg(long, default_value = "auto")]
    servers: crate::conformance::Servers,
    /// A workload, repeatable; all of them when none is given.
    #[arg(long = "workload", value_name = "NAME")]
    workloads: Vec<Workload>,
    /// Measure what others offer on SQLite beside A2, too: builds the package `xtask/peers`.
    #[arg(long)]
    peers: bool,
    /// How many rounds; three at least, so that a median says something.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(3..=100))]
    rounds: u16,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Where files are made; the disk that is measured. The target folder when not given.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write everything to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the results into this Markdown file: those of each backend that was measured between
    /// `<!-- results: NAME -->` and `<!-- end of results: NAME -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print the bytes of memory that one of these takes: a process of its own measures it.
    #[arg(long, hide = true)]
    held: Option<HeldArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Backend {
    Memory,
    Sqlite,
    Postgres,
    Redis,
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    /// With the durabilities that it is measured with.
    fn engines(self) -> &'static [Engine] {
        match self {
            Self::Memory => &[Engine::Memory],
            Self::Sqlite => &[Engine::Sqlite(Durability::Full), Engine::Sqlite(Durability::Normal)],
            Self::Postgres => &[Engine::Postgres],
            Self::Redis => &[Engine::Redis],
        }
    }
}

/// What of the memory store is counted in bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeldArg {
    Session,
    Stream,
}

impl HeldArg {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Stream => "stream",
        }
    }
}

/// Measures and prints; an error when a figure misses what it must reach.
pub(crate) async fn run(args: Args) -> Result<()> {
    let time = Duration::try_from_secs_f64(args.seconds).context("--seconds")?;
    let target = target_folder()?;
    let dir = args.dir.unwrap_or_else(|| target.join("bench"));
    std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let mut cx = Cx { dir, time, servers: Servers::default() };
    if let Some(held) = args.held {
        println!("{}", workloads::held(held, &cx).await?);
        return Ok(());
    }
    if cfg!(debug_assertions) {
        bail!("an unoptimised build says nothing: `cargo xtask bench` builds an optimised one");
    }
    let mut backends = vec![Backend::Memory, Backend::Sqlite];
    if !args.backends.is_empty() {
        backends = args.backends;
        let mut seen = Vec::new();
        backends.retain(|backend| {
            !seen.contains(backend) && {
                seen.push(*backend);
                true
            }
        });
    }
    let all = Workload::value_variants();
    let workloads = if args.workloads.is_empty() { all } else { &args.workloads };

    let peers = args.peers.then(|| Peers::build(&target)).transpose()?;
    let machine = Machine::this(&cx.dir)?;
    for backend in &backends {
        cx.servers.start(*backend, args.servers).await?;
    }
    let mut benches = Vec::new();
    for workload in workloads {
        for mut bench in workload.benches(&backends) {
            if let Some(peers) = &peers {
                peers.join(*workload, &mut bench);
            }
            benches.push(bench.run(&cx, usize::from(args.rounds)).await?);
        }
    }
    let engines = backends.iter().map(|backend| {
        let server = cx.servers.of(*backend);
        (*backend, server.map_or_else(|| machine.engine(*backend), |server| server.facts()))
    });
    let engines = engines.collect();
    let report = Report { machine, engines, seconds: args.seconds, peers: args.peers, benches };
    println!("{}\n\n{}\n\n{}", report.facts(&backends), report.table(), report.legend(&backends));
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, json).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.markdown {
        report.write_into(path)?;
    }
    let missed = report.missed();
    if !missed.is_empty() {
        bail!("{} figures miss what they must reach:\n  {}", missed.len(), missed.join("\n  "));
    }
    Ok(())
}

/// What cargo builds into: on the disk that the project lies on.
fn target_folder() -> Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let target = exe.ancestors().nth(2).context("the program lies in the target folder")?;
    Ok(target.to_owned())
}
