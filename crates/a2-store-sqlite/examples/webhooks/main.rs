//! A small service on real input: GitHub webhook deliveries, notified, triaged and summed up.
//!
//! `cargo run --release --example webhooks -- [DATABASE] [--json]`
//!
//! A session per repository holds its deliveries and what they led to. Three consumers follow it:
//! `notify` (each delivery on its own, concurrently), `triage` (a lane per issue, pull request,
//! discussion or milestone, one delivery after the other) and `summary` (a log cursor over some
//! types, many events an attempt). The services they use fail now and then, the first release of
//! `triage` has a bug, and one delivery cannot be handled at all.
//!
//! Kill the program whenever you like and start it again: it ends with the same result.

mod board;
mod github;
mod handlers;
mod operator;
mod report;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use a2_store_sqlite::{SqliteStore, Store};

/// Nothing but opening it knows which store it is.
type Db = Arc<dyn Store>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (path, as_json) = arguments()?;
    eprintln!("database  {}", path.display());
    let db: Db = Arc::new(SqliteStore::open(&path).await?);

    // The workers start while the deliveries are still coming in.
    let release = operator::current_release(&db).await?;
    let ingest = tokio::spawn(github::ingest(db.clone()));
    let arriving = ingest.abort_handle();
    worker::work_until_settled(&db, release, &arriving).await?;
    ingest.await??;

    // What is left are dead letters: somebody has to look at them.
    let release = operator::fix_and_redrive(&db).await?;
    worker::work_until_settled(&db, release, &arriving).await?;

    let report = report::of(&db).await?;
    println!("{}", if as_json { report.json() } else { report.tables() });
    Ok(())
}

/// The database (beside this program unless one is named) and whether the report is to be JSON.
fn arguments() -> anyhow::Result<(PathBuf, bool)> {
    let (mut path, mut as_json) = (std::env::current_exe()?.with_file_name("webhooks.db"), false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => as_json = true,
            flag if flag.starts_with('-') => anyhow::bail!("usage: webhooks [DATABASE] [--json]"),
            database => path = database.into(),
        }
    }
    Ok((path, as_json))
}
