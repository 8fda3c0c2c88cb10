//! What others offer on SQLite, one measurement a run: `a2-peers PEER WORKLOAD DIR SECONDS PAYLOAD`
//! prints one line of JSON. Every file is WAL with synchronous=FULL, as A2's beside it.
//!
//! A program of its own, since these crates link another SQLite than A2 does.

mod apalis;
mod sqlite_es;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

/// Streams that a workload spreads over.
const STREAMS: usize = 64;
/// Events that are read at once.
const EVENTS: usize = 10_000;

/// What every measurement is told.
#[derive(Clone)]
struct Cx {
    /// The database, in a fresh folder.
    file: PathBuf,
    time: Duration,
    /// JSON.
    payload: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [peer, workload, dir, seconds, payload] = args.as_slice() else {
        bail!("usage: a2-peers PEER WORKLOAD DIR SECONDS PAYLOAD");
    };
    let time = Duration::try_from_secs_f64(seconds.parse().context("SECONDS")?)?;
    let file = PathBuf::from(dir).join("peer.db");
    let cx = Cx { file, time, payload: payload.clone() };
    let per_second = match (peer.as_str(), workload.as_str()) {
        ("apalis-sqlite", "job-1") => apalis::jobs(&cx, 1).await?,
        ("apalis-sqlite", "job-16") => apalis::jobs(&cx, 16).await?,
        ("sqlite-es", "append-1") => sqlite_es::append(&cx, 1).await?,
        ("sqlite-es", "append-16") => sqlite_es::append(&cx, 16).await?,
        ("sqlite-es", "read-10k") => sqlite_es::read(&cx).await?,
        _ => bail!("{peer} has no workload {workload}"),
    };
    println!("{}", serde_json::json!({ "per_second": per_second }));
    Ok(())
}

/// Operations a second of callers that run until they are dropped, after a warm-up of a tenth of the
/// time, as A2's are measured. `count` tells how many operations are done so far.
async fn rate(
    time: Duration,
    mut callers: JoinSet<Result<()>>,
    count: impl AsyncFn() -> Result<u64>,
) -> Result<f64> {
    let timed = async {
        tokio::time::sleep(time / 10).await;
        let (before, start) = (count().await?, Instant::now());
        tokio::time::sleep(time).await;
        Ok((count().await? - before) as f64 / start.elapsed().as_secs_f64())
    };
    tokio::select! {
        rate = timed => rate,
        Some(ended) = callers.join_next() => {
            ended??;
            bail!("a caller ended")
        }
    }
}

/// Appends a second of `callers`, each in a loop over streams of its own. `append` is given a stream
/// and how many events it has.
async fn appends<F, Fut>(time: Duration, callers: usize, append: F) -> Result<f64>
where
    F: Fn(usize, usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let done = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let (append, done) = (append.clone(), Arc::clone(&done));
        tasks.spawn(async move {
            for events in 0.. {
                for stream in (caller..STREAMS).step_by(callers) {
                    append(stream, events).await?;
                    done.fetch_add(1, Relaxed);
                }
            }
            Ok(())
        });
    }
    rate(time, tasks, async || Ok(done.load(Relaxed))).await
}

/// Events a second that `read` gives, called over and over.
async fn reads(time: Duration, read: impl AsyncFn() -> Result<usize>) -> Result<f64> {
    let (mut start, mut warm, mut done) = (Instant::now(), false, 0);
    loop {
        let found = read().await?;
        if found != EVENTS {
            bail!("{found} events were read, not {EVENTS}");
        }
        done += found;
        if !warm && start.elapsed() >= time / 10 {
            (start, warm, done) = (Instant::now(), true, 0);
        } else if warm && start.elapsed() >= time {
            return Ok(done as f64 / start.elapsed().as_secs_f64());
        }
    }
}
