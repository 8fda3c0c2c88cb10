//! Workers in a process of their own, on a SQLite file: to be killed.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use a2_conformance::history::{Recorder, Time, Workload};
use a2_store_sqlite::SqliteStore;
use anyhow::Result;
use tokio::task::JoinSet;

/// Which work, as the parent says it.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    file: PathBuf,
    #[arg(long)]
    journal: PathBuf,
    #[arg(long)]
    process: u32,
    #[arg(long)]
    prefix: String,
    #[arg(long)]
    sessions: u32,
    #[arg(long)]
    seed: u64,
}

/// How many work in one process.
pub(super) const WORKERS: u32 = 3;

/// Works until its standard input ends.
pub(crate) async fn run(args: Args) -> Result<()> {
    let recorder = Recorder::journal(&args.journal, args.process)?;
    let (seed, sessions) = (args.seed, args.sessions);
    let workload = Workload::new(&args.prefix, sessions, seed, Time::Real, &recorder);
    let stopped = workload.clone();
    std::thread::spawn(move || {
        // It holds nothing: the end is the word.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopped.stop();
    });
    let builder = SqliteStore::builder(&args.file).operation_timeout(Duration::from_secs(3));
    let store = loop {
        match builder.clone().open().await {
            Ok(store) => break Arc::new(store),
            Err(error) if error.is_retryable() => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error.into()),
        }
    };
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        let (workload, store) = (workload.clone(), Arc::clone(&store));
        let number = args.process * 100 + number;
        workers.spawn(async move { workload.work(number, None, store).await });
    }
    while let Some(ended) = workers.join_next().await {
        ended?;
    }
    Ok(())
}
