//! What is stored and what is held: bytes on disk an event and a job, bytes of memory a session and
//! an open stream.

use std::path::Path;
use std::process::Command;

use a2_core::{Append, Index, SessionId, StoreExt};
use anyhow::{Context, Result};
use futures_util::{FutureExt, StreamExt};
use rusqlite::Connection;

use super::job::{claimed, complete};
use crate::bench::HeldArg;
use crate::bench::measure::{Bench, Cx, Series, Target, Unit};
use crate::bench::payload::{Data, SESSIONS};
use crate::bench::probe::resident_bytes;
use crate::bench::stores::{Durability, Engine, FILE, Opened};

/// Events whose bytes on disk are counted.
pub(super) const EVENTS: usize = 20_000;
/// Jobs whose bytes in the write-ahead log are counted: few enough that it is not yet checkpointed.
const JOBS: usize = 100;
/// Sessions and streams whose bytes in memory are counted.
const HELD: usize = 20_000;

/// footprint, in bytes each.
pub(super) fn bench(engine: Engine) -> Bench {
    let mut bench = Bench::new("footprint", engine);
    if engine == Engine::Memory {
        for (name, held) in [
            ("memory, a session with 1 event", HeldArg::Session),
            ("memory, an open stream", HeldArg::Stream),
        ] {
            let series = bench.add(bytes(name, move |cx| async move { in_child(held, &cx) }));
            bench.figure(series, None, None);
        }
        return bench;
    }
    if let Engine::Postgres | Engine::Redis = engine {
        super::weight::add(&mut bench);
        return bench;
    }
    // What is written is the same at either durability; this one is done sooner.
    let engine = Engine::Sqlite(Durability::Normal);
    let event =
        bench.add(bytes("file, an event with 1 target", move |cx| on_disk(engine, cx, false)));
    let job = bench.add(bytes("file, a completed job", move |cx| on_disk(engine, cx, true)));
    let wal = bench.add(bytes("write-ahead log, a job", move |cx| in_wal(engine, cx)));
    bench.figure(event, None, Some(Target::at_most(700.0, None)));
    bench.figure(job, None, None);
    bench.figure(wal, None, None);
    bench
}

fn bytes<F, Fut>(name: &str, measure: F) -> Series
where
    F: Fn(Cx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<f64>> + Send + 'static,
{
    Series::new(name, Unit::Bytes, measure)
}

/// Bytes of the file an event, or a job that is done.
async fn on_disk(engine: Engine, cx: Cx, work: bool) -> Result<f64> {
    let opened = engine.open(&cx).await?;
    let data = Data::new()?;
    fill(&opened, &data).await?;
    if work {
        for session in &data.sessions {
            while work_off(&opened, session, &data).await? {}
        }
    }
    let path = opened.folder().context("a file")?.join(FILE);
    Ok(checkpointed(&path)? / EVENTS as f64)
}

/// Appends the events.
pub(super) async fn fill(opened: &Opened, data: &Data) -> Result<()> {
    for batch in 0..EVENTS / 100 {
        let session = &data.sessions[batch % SESSIONS];
        let events = (0..100).map(|_| data.event()).collect::<a2_core::Result<Vec<_>>>()?;
        drop(opened.store.append(session, Append::new(events)?).await?);
    }
    Ok(())
}

/// Claims and completes the next job of the session; false when there is none.
async fn work_off(opened: &Opened, session: &SessionId, data: &Data) -> Result<bool> {
    let claim = opened.store.claim_available(session, data.claim()?).await?;
    let heads = claim.into_heads();
    for head in &heads {
        drop(opened.store.complete_attempt(session, complete(head, data)).await?);
    }
    Ok(!heads.is_empty())
}

/// The file's length once everything is in it.
fn checkpointed(path: &Path) -> Result<f64> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(std::fs::metadata(path)?.len() as f64)
}

/// Bytes that a job adds to the write-ahead log: append, claim, complete.
async fn in_wal(engine: Engine, cx: Cx) -> Result<f64> {
    let opened = engine.open(&cx).await?;
    let data = Data::new()?;
    let path = opened.folder().context("a file")?.join(FILE);
    checkpointed(&path)?;
    work(&opened, &data, JOBS).await?;
    let wal = path.with_extension("db-wal");
    Ok(std::fs::metadata(wal)?.len() as f64 / JOBS as f64)
}

/// Appends, claims and completes so many jobs, one after the other.
pub(super) async fn work(opened: &Opened, data: &Data, jobs: usize) -> Result<()> {
    for n in 0..jobs {
        let session = &data.sessions[n % SESSIONS];
        drop(opened.store.append_one(session, data.event()?).await?);
        let head = claimed(opened.store.claim_available(session, data.claim()?).await?)?;
        drop(opened.store.complete_attempt(session, complete(&head, data)).await?);
    }
    Ok(())
}

/// Measures in a process of its own, whose memory nothing else has used.
fn in_child(held: HeldArg, cx: &Cx) -> Result<f64> {
    let mut child = Command::new(std::env::current_exe()?);
    child.args(["bench", "--held", held.name(), "--dir"]).arg(&cx.dir);
    let output = child.output().context("the measuring process")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Bytes of memory that one of many sessions or streams takes, in this process.
pub(crate) async fn held(what: HeldArg, cx: &Cx) -> Result<f64> {
    let told = "this system does not tell how much memory a process holds";
    let opened = Engine::Memory.open(cx).await?;
    let data = Data::new()?;
    let names = (0..HELD).map(|n| SessionId::new(format!("session-{n}")));
    let sessions = names.collect::<a2_core::Result<Vec<_>>>()?;
    let mut before = resident_bytes().context(told)?;
    for session in &sessions {
        drop(opened.store.append_one(session, data.event()?).await?);
    }
    let mut streams = Vec::with_capacity(HELD);
    if what == HeldArg::Stream {
        before = resident_bytes().context(told)?;
        for session in &sessions {
            let mut stream = opened.store.stream(session, Index::ZERO);
            stream.next().await.context("one event is stored")??;
            // Waiting for the next event is what an open stream does.
            let next = stream.next().now_or_never();
            anyhow::ensure!(next.is_none(), "the stream has one event");
            streams.push(stream);
        }
    }
    let after = resident_bytes().context(told)?;
    drop(streams);
    Ok((after - before) / HELD as f64)
}
