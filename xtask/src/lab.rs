//! `cargo xtask conformance`, `bench` and `faults`: the commands that have the stores linked in.

mod bench;
mod conformance;
mod coverage;
mod faults;
#[cfg(feature = "servers")]
mod servers;
mod suite;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The commands that need the stores themselves.
#[derive(Parser)]
#[command(name = "cargo xtask", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the conformance suite against the backends.
    Conformance(conformance::Args),
    /// Measure the backends beside the bare engines.
    Bench(bench::Args),
    /// Harm what the stores stand on, and check what they did.
    Faults(faults::Args),
    /// What `faults` starts and kills.
    #[command(hide = true)]
    FaultsWorker(faults::worker::Args),
    /// Start real servers.
    #[cfg(feature = "servers")]
    Servers(servers::Args),
}

fn main() -> ExitCode {
    match dispatch(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match command {
        Command::Conformance(args) => runtime.block_on(conformance::run(args)),
        Command::Bench(args) => runtime.block_on(bench::run(args)),
        Command::Faults(args) => runtime.block_on(faults::run(args)),
        Command::FaultsWorker(args) => runtime.block_on(faults::worker::run(args)),
        #[cfg(feature = "servers")]
        Command::Servers(args) => runtime.block_on(servers::run(args)),
    }
}
