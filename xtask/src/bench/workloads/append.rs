//! Appending: one event with one lane target, and a hundred events at once.

use std::sync::Arc;
use std::time::Instant;

use a2_core::{Append, Store};
use anyhow::Result;

use super::{OF_SAME_ROWS, rate, target};
use crate::bench::limits::{Bare, Grouped, Lone, Rows, Same, Write};
use crate::bench::measure::{Bench, Cx, Series, Target};
use crate::bench::payload::{Data, SESSIONS};
use crate::bench::stores::{Durability, Engine};
use crate::bench::workers::{Worker, many, one as one_caller};

/// Events of one batch.
const BATCH: usize = 100;

/// append-1.
pub(super) fn one(engine: Engine) -> Bench {
    let mut bench = Bench::new("append-1", engine.name());
    let ours = bench.add(ours("A2", engine, 1, Kind::One));
    match engine {
        Engine::Memory => bench.figure(ours, None, Some(Target::at_least(1e6, Some(2e6)))),
        Engine::Sqlite(durability) => {
            let bare = bench.add(limit::<Bare>("INSERT", durability, 1, Kind::One));
            let same = bench.add(limit::<Same>("same rows", durability, 1, Kind::One));
            let must = target(engine, None, Some(Target::at_least(0.55, Some(0.9))));
            bench.figure(ours, Some(bare), must);
            bench.figure(ours, Some(same), Some(OF_SAME_ROWS));
        }
    }
    bench
}

/// append-16.
pub(super) fn sixteen(engine: Engine) -> Bench {
    let mut bench = Bench::new("append-16", engine.name());
    let many = bench.add(ours("A2", engine, 16, Kind::One));
    match engine {
        Engine::Memory => {
            let one = bench.add(ours("A2 with 1 caller", engine, 1, Kind::One));
            bench.figure(many, Some(one), Some(Target::at_least(1.6, None)));
        }
        Engine::Sqlite(durability) => {
            let bare = bench.add(limit::<Bare>("grouped INSERT", durability, 16, Kind::One));
            let same = bench.add(limit::<Same>("grouped same rows", durability, 16, Kind::One));
            let must = target(engine, None, Some(Target::at_least(0.65, Some(0.8))));
            bench.figure(many, Some(bare), must);
            bench.figure(many, Some(same), Some(OF_SAME_ROWS));
        }
    }
    bench
}

/// batch-1 and batch-16, in events a second: with a lane target on every event and without targets.
pub(super) fn batch(engine: Engine, callers: usize) -> Bench {
    let mut bench = Bench::new(format!("batch-{callers}"), engine.name());
    let plain = bench.add(ours("A2, no targets", engine, callers, Kind::PlainBatch));
    let queued = bench.add(ours("A2, a target each", engine, callers, Kind::Batch));
    let Engine::Sqlite(durability) = engine else {
        bench.figure(plain, None, None);
        bench.figure(queued, None, None);
        return bench;
    };
    let name = if callers == 1 { "100 INSERTs" } else { "grouped 100 INSERTs" };
    let bare = bench.add(limit::<Bare>(name, durability, callers, Kind::Batch));
    let same =
        bench.add(limit::<Same>("same rows, a target each", durability, callers, Kind::Batch));
    let must = (callers == 16).then(|| Target::at_least(0.3, Some(0.6)));
    bench.figure(plain, Some(bare), target(engine, None, must));
    bench.figure(queued, Some(bare), target(engine, None, must));
    bench.figure(queued, Some(same), Some(OF_SAME_ROWS));
    bench
}

/// What one turn appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    One,
    Batch,
    PlainBatch,
}

fn ours(name: &str, engine: Engine, callers: usize, kind: Kind) -> Series {
    rate(name, move |cx| async move {
        let opened = engine.open(&cx).await?;
        let data = Data::new()?;
        let mut callers: Vec<_> =
            (0..callers).map(|n| Appender::new(&opened.store, &data, kind, n, callers)).collect();
        match callers.len() {
            1 => one_caller(cx.time, engine.stride(), callers.remove(0)).await,
            _ => many(cx.time, engine.stride(), callers).await,
        }
    })
}

struct Appender {
    store: Arc<dyn Store>,
    data: Data,
    kind: Kind,
    /// The caller's own sessions, taken in turn.
    sessions: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl Appender {
    fn new(store: &Arc<dyn Store>, data: &Data, kind: Kind, n: usize, of: usize) -> Self {
        let sessions = own_sessions(n, of).into_iter().cycle();
        Self { store: Arc::clone(store), data: data.clone(), kind, sessions }
    }
}

/// The sessions of caller `n` of `of`.
pub(super) fn own_sessions(n: usize, of: usize) -> Vec<usize> {
    (0..SESSIONS).skip(n).step_by(of).collect()
}

impl Worker for Appender {
    async fn turn(&mut self) -> Result<u64> {
        let Some(n) = self.sessions.next() else { return Ok(0) };
        let session = &self.data.sessions[n];
        if self.kind == Kind::One {
            let append = Append::one(self.data.event()?)?.served(self.data.served.clone());
            let appended = self.store.append(session, append).await?;
            return Ok(appended.events.len() as u64);
        }
        let event = || if self.kind == Kind::Batch { self.data.event() } else { self.data.plain() };
        let events = (0..BATCH).map(|_| event()).collect::<a2_core::Result<Vec<_>>>()?;
        let append = Append::new(events)?.served(self.data.served.clone());
        Ok(self.store.append(session, append).await?.events.len() as u64)
    }
}

fn limit<R: Rows>(name: &str, durability: Durability, callers: usize, kind: Kind) -> Series {
    rate(name, move |cx| async move {
        if callers == 1 {
            return tokio::task::spawn_blocking(move || lone::<R>(&cx, durability, kind)).await?;
        }
        let writer = Grouped::open::<R>(&cx, durability)?;
        let callers = (0..callers).map(|n| GroupedAppender {
            writer: writer.clone(),
            kind,
            sessions: own_sessions(n, callers).into_iter().cycle(),
        });
        many(cx.time, Engine::Sqlite(durability).stride(), callers.collect()).await
    })
}

impl Kind {
    fn write(self, session: usize) -> Write {
        match self {
            // For the same rows, one event with one target is what the queue takes.
            Self::One => Write::Append { session, count: 1 },
            Self::Batch | Self::PlainBatch => Write::Append { session, count: BATCH },
        }
    }

    fn events(self) -> u64 {
        if self == Self::One { 1 } else { BATCH as u64 }
    }
}

fn lone<R: Rows>(cx: &Cx, durability: Durability, kind: Kind) -> Result<f64> {
    let mut lone = Lone::<R>::open(cx, durability)?;
    let mut sessions = (0..SESSIONS).cycle();
    let mut turn = || lone.write(kind.write(sessions.next().unwrap_or_default()));
    let warm = Instant::now();
    while warm.elapsed() < cx.time / 10 {
        turn()?;
    }
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < cx.time {
        turn()?;
        done += kind.events();
    }
    Ok(crate::bench::workers::per_second(done, start))
}

struct GroupedAppender {
    writer: Grouped,
    kind: Kind,
    sessions: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl Worker for GroupedAppender {
    async fn turn(&mut self) -> Result<u64> {
        let session = self.sessions.next().unwrap_or_default();
        self.writer.write(self.kind.write(session)).await?;
        Ok(self.kind.events())
    }
}
