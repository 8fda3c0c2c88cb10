//! `cargo xtask`: what a contributor and CI run, as code, so that both run the same.
//!
//! This binary is small on purpose: it is built before anything else is checked, so it must not
//! need the stores. What needs them (`conformance`, `bench`, `faults`) is the binary `lab` of this package.

mod ci;
mod package;
mod readme;
mod repo;
mod run;
mod suite;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The workspace's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that a change must pass; only the given steps, when some are given.
    Ci(ci::Args),
    /// Check the rules that no compiler knows: file sizes, links, headers, manifests, licences.
    Tidy,
    /// Write `sql/postgres/schema.sql` from the files of its folder.
    Schema,
    /// Pack every crate that is published and build each from its own archive.
    Package,
    /// Run the conformance suite against the backends (`--help` for its options).
    #[command(disable_help_flag = true)]
    Conformance(Forwarded),
    /// Measure the backends beside the bare engines (`--help` for its options).
    #[command(disable_help_flag = true)]
    Bench(Forwarded),
    /// Kill servers and processes, cut connections and check what the stores did meanwhile
    /// (`--help` for its options).
    #[command(disable_help_flag = true)]
    Faults(Forwarded),
    /// Start real servers until Ctrl-C, or while a command runs (`--help` for its options).
    #[command(disable_help_flag = true)]
    Servers(Forwarded),
}

/// Options that are handed on as they are.
#[derive(clap::Args)]
struct Forwarded {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
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
    let root = repo::root()?;
    match command {
        Command::Ci(args) => ci::run(&root, &args),
        Command::Tidy => tidy::run(&root),
        Command::Schema => tidy::schema::write(&root),
        Command::Package => package::run(&root),
        Command::Conformance(forwarded) => {
            let features = run::suite_features(&forwarded.args);
            let cargo_args = features.as_deref().map(|features| ["--features", features]);
            let cargo_args = cargo_args.as_ref().map_or(&[][..], |args| &args[..]);
            run::lab(&root, "conformance", &forwarded.args, cargo_args)
        }
        Command::Bench(forwarded) => {
            let features = run::suite_features(&forwarded.args);
            let mut cargo_args = vec!["--profile", "bench"];
            cargo_args.extend(features.iter().flat_map(|features| ["--features", features]));
            run::lab(&root, "bench", &forwarded.args, &cargo_args)
        }
        Command::Faults(forwarded) => {
            let features = run::suite_features(&forwarded.args);
            let cargo_args = features.as_deref().map(|features| ["--features", features]);
            let cargo_args = cargo_args.as_ref().map_or(&[][..], |args| &args[..]);
            run::lab(&root, "faults", &forwarded.args, cargo_args)
        }
        Command::Servers(forwarded) => {
            let features = run::servers_features(&forwarded.args);
            run::lab(&root, "servers", &forwarded.args, &["--features", features])
        }
    }
}
