//! The queue of `apalis` on SQLite: callers push, one worker with as many handlers fetches and
//! acknowledges in batches.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use apalis::prelude::*;
use apalis_sqlite::{Config, SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteStorage};
use futures_util::StreamExt;
use serde_json::value::RawValue;
use sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::{Cx, rate};

/// Kept as text, so that no handler parses it.
type Job = Box<RawValue>;

const DONE: &str = "SELECT count(*) FROM Jobs WHERE status = 'Done'";

/// Push, fetch, acknowledge: a caller pushes its next job when one was handled, so that as many are
/// under way as there are callers. What is counted are the acknowledgements in the database.
pub(crate) async fn jobs(cx: &Cx, callers: usize) -> Result<f64> {
    let pool = open(cx).await?;
    let (woken, wakes) = futures_channel::mpsc::unbounded::<()>();
    // As fast as its options go: no second write that locks a job, a fetch as soon as a push is
    // committed. A wake-up that comes during a fetch is lost, hence the interval.
    let config = Config::default().queue("jobs").batch_size(callers).lock_tasks(false);
    let strategy =
        Strategy::new().stream(wakes.ready_chunks(callers)).interval(Duration::from_millis(1));
    let storage = SqliteStorage::<Job>::new(&pool).with_config(config);
    let handled = Arc::new(Semaphore::new(0));
    let worker = WorkerBuilder::new("worker-1")
        .backend(storage.clone().poll_with_strategy(strategy))
        .data(Arc::clone(&handled))
        .build(handle);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { Ok(worker.run().await?) });
    for _ in 0..callers {
        let (mut storage, woken, handled) = (storage.clone(), woken.clone(), Arc::clone(&handled));
        let job = RawValue::from_string(cx.payload.clone())?;
        tasks.spawn(async move {
            loop {
                storage.push(job.clone()).await?;
                woken.unbounded_send(())?;
                handled.acquire().await?.forget();
            }
        });
    }
    rate(cx.time, tasks, async || {
        let done: i64 = sqlx::query_scalar(DONE).fetch_one(&pool).await?;
        Ok(u64::try_from(done)?)
    })
    .await
}

async fn handle(job: Job, handled: Data<Arc<Semaphore>>) -> Result<(), BoxDynError> {
    std::hint::black_box(job);
    handled.add_permits(1);
    Ok(())
}

/// One connection, which was fastest for one caller and for 16: every step writes.
async fn open(cx: &Cx) -> Result<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(&cx.file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    // The connection that makes the tables is left with synchronous=OFF.
    let setup = SqlitePool::connect_with(options.clone()).await?;
    SqliteStorage::setup(&setup).await?;
    setup.close().await;
    Ok(SqlitePoolOptions::new().max_connections(1).connect_with(options).await?)
}
