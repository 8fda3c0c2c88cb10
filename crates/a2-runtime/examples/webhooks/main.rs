//! A small service on real input: GitHub webhook deliveries, notified, triaged and summed up.
//!
//! `cargo run -p a2-runtime --example webhooks -- [STORE] [--json]`
//!
//! STORE is a SQLite file (one beside the program by default) or the URL of a Postgres or a Redis.
//! A session per repository holds its deliveries and what they led to. Three consumers follow it:
//! `notify` (each delivery on its own, concurrently), `triage` (a lane per issue, discussion or
//! milestone, one delivery after the other) and `summary` (the log, many events an attempt). The services
//! they use fail now and then, the first release of `triage` has a bug, and one delivery cannot be
//! handled at all.
//!
//! Kill the program whenever you like and start it again: it ends with the same result.

mod board;
mod github;
mod handlers;
mod operator;
mod report;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use anyhow::Result;

use support::{Arguments, settle};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse()?;
    support::show_failures();
    // It handles nothing: for a person to look at things.
    let desk = arguments.builder().await?.build()?;

    // The handlers start while the deliveries are still coming in.
    let release = operator::current_release(&desk).await?;
    let runtime = handlers::runtime(arguments.builder().await?, release)?;
    runtime.start();
    github::ingest(&runtime).await?;
    settle(&runtime).await?;
    runtime.shutdown(Duration::from_secs(5)).await;

    // What is left are dead letters: somebody has to look at them.
    let release = operator::fix_and_redrive(&desk).await?;
    let runtime = handlers::runtime(arguments.builder().await?, release)?;
    runtime.start();
    settle(&runtime).await?;
    runtime.shutdown(Duration::from_secs(5)).await;

    let report = report::of(&desk).await?;
    println!("{}", if arguments.json { report.json() } else { report.tables() });
    Ok(())
}
