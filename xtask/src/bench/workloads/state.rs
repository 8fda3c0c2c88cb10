//! Snapshots: reading a state from one that lies 100 events back, and writing pinned ones.

use std::time::Instant;

use a2_core::{
    Append, HeadRef, Index, Json, PutSnapshots, ReadState, ReducerName, SessionId, SnapshotWrite,
};
use anyhow::{Context, Result, bail};

use super::limited::{Log, folded};
use super::project::filled;
use super::rate;
use crate::bench::limits::sqlite::{Select, state, write_snapshots};
use crate::bench::measure::{Bench, Cx, Series};
use crate::bench::payload::{Data, REDUCER};
use crate::bench::stores::{Durability, Engine, Opened};
use crate::bench::workers::{Worker, one, per_second};

const EVENTS: usize = 10_000;
const BACK: usize = 100;

/// state: reads and writes a second.
pub(super) fn bench(engine: Engine) -> Bench {
    let mut bench = Bench::new("state", engine);
    let reads = bench.add(rate("A2's read_state", move |cx| async move {
        let stateful = Stateful::open(engine, &cx).await?;
        one(cx.time, engine.stride(), ReadsState(stateful)).await
    }));
    let writes = bench.add(rate("A2's put_snapshots, pinned", move |cx| async move {
        let stateful = Stateful::open(engine, &cx).await?;
        one(cx.time, engine.stride(), PutsSnapshots(stateful, 0)).await
    }));
    let (read, write) = match engine {
        Engine::Memory => {
            bench.figure(reads, None, None);
            bench.figure(writes, None, None);
            return bench;
        }
        Engine::Sqlite(_) => ("two SELECTs", "two INSERTs"),
        Engine::Postgres => ("two SELECTs", "INSERT into two tables"),
        Engine::Redis => ("ZREVRANGE, HGET, XRANGE", "ZADD and two HSETs in a script"),
    };
    let (bare_reads, bare_writes) = match engine {
        Engine::Sqlite(durability) => (
            bare(read, durability, |select, _| state(select).map(|_| ())),
            bare(write, durability, |select, turn| {
                write_snapshots(select, i64::try_from(turn % EVENTS)? + 1, &folded())
            }),
        ),
        _ => (
            rate(read, move |cx| async move {
                let log = Log::filled(&cx, engine, EVENTS, EVENTS - BACK).await?;
                one(cx.time, engine.stride(), ReadsBare(log)).await
            }),
            rate(write, move |cx| async move {
                let log = Log::filled(&cx, engine, EVENTS, EVENTS - BACK).await?;
                one(cx.time, engine.stride(), PutsBare(log, 0)).await
            }),
        ),
    };
    let (bare_reads, bare_writes) = (bench.add(bare_reads), bench.add(bare_writes));
    bench.figure(reads, Some(bare_reads), None);
    bench.figure(writes, Some(bare_writes), None);
    bench
}

struct ReadsBare(Log);

impl Worker for ReadsBare {
    async fn turn(&mut self) -> Result<u64> {
        let read = self.0.reads.state().await?;
        if read != BACK {
            bail!("{BACK} events were to be read, not {read}");
        }
        Ok(1)
    }
}

struct PutsBare(Log, usize);

impl Worker for PutsBare {
    async fn turn(&mut self) -> Result<u64> {
        let index = i64::try_from(self.1 % EVENTS)? + 1;
        self.1 += 1;
        self.0.reads.put(index, &folded()).await?;
        Ok(1)
    }
}

/// A session with a log, a snapshot 100 events before its end, and a live head.
struct Stateful {
    opened: Opened,
    session: SessionId,
    reducer: ReducerName,
    state: Json,
    pin: HeadRef,
}

impl Stateful {
    async fn open(engine: Engine, cx: &Cx) -> Result<Self> {
        let opened = engine.open(cx).await?;
        let data = Data::new()?;
        let session = filled(&opened, &data, EVENTS - 1).await?;
        let appended = opened.store.append(&session, Append::one(data.event()?)?).await?;
        let index = appended.events.first().context("one event was appended")?.index;
        let pin = HeadRef::new(data.target.consumer().clone(), data.target.cursor_key(), index);
        let (reducer, state) = (ReducerName::new(REDUCER)?, Json::parse(folded())?);
        let snapshot = Index::new((EVENTS - BACK) as u64)?;
        let put = PutSnapshots::new([SnapshotWrite::new(snapshot, state.clone())])?;
        drop(opened.store.put_snapshots(&session, &reducer, put).await?);
        Ok(Self { opened, session, reducer, state, pin })
    }
}

struct ReadsState(Stateful);

impl Worker for ReadsState {
    async fn turn(&mut self) -> Result<u64> {
        let Stateful { opened, session, reducer, .. } = &self.0;
        let read = opened.store.read_state(session, reducer, ReadState::latest()).await?;
        if read.snapshot.is_none() || read.events.len() != BACK {
            bail!("a snapshot and {BACK} events were to be read, not {}", read.events.len());
        }
        Ok(1)
    }
}

struct PutsSnapshots(Stateful, usize);

impl Worker for PutsSnapshots {
    async fn turn(&mut self) -> Result<u64> {
        let Stateful { opened, session, reducer, state, pin } = &self.0;
        let index = Index::new((self.1 % EVENTS) as u64 + 1)?;
        self.1 += 1;
        let write = SnapshotWrite::new(index, state.clone()).pins([pin.clone()])?;
        let put = opened.store.put_snapshots(session, reducer, PutSnapshots::new([write])?).await?;
        if put.stored != [index] {
            bail!("the snapshot at {index} was to be stored, not {:?}", put.stored);
        }
        Ok(1)
    }
}

fn bare(name: &str, durability: Durability, turn: fn(&Select, usize) -> Result<()>) -> Series {
    rate(name, move |cx| async move {
        tokio::task::spawn_blocking(move || {
            let snapshot = i64::try_from(EVENTS - BACK)?;
            let select = Select::filled(&cx, EVENTS, Some((snapshot, &folded())))?;
            let select = select.durability(durability)?;
            let (start, mut done) = (Instant::now(), 0);
            while start.elapsed() < cx.time {
                turn(&select, done)?;
                done += 1;
            }
            Ok(per_second(done as u64, start))
        })
        .await?
    })
}
