//! Appending: one event with one lane target, and a hundred events at once.

use std::sync::Arc;
use std::time::Instant;

use a2_core::{Append, Store};
use anyhow::Result;

use super::limited::{Caller, Turn, on_server};
use super::{OF_SAME_ROWS, Targets, least, rate};
use crate::bench::limits::sqlite::{Bare, Grouped, Lone, Rows, Same};
use crate::bench::limits::{Limit, Write};
use crate::bench::measure::{Bench, Cx, Series, Target};
use crate::bench::payload::{Data, SESSIONS};
use crate::bench::stores::{Durability, Engine};
use crate::bench::workers::{Worker, many, one as one_caller};

/// Events of one batch.
const BATCH: usize = 100;

/// append-1.
pub(super) fn one(engine: Engine) -> Bench {
    let mut bench = Bench::new("append-1", engine);
    let ours = bench.add(ours("A2", engine, 1, Kind::One));
    if engine == Engine::Memory {
        bench.figure(ours, None, least(1e6, 2e6));
        return bench;
    }
    let must = Targets {
        sqlite: least(0.55, 0.9),
        postgres: least(0.5, 0.85),
        redis: least(0.8, 0.9),
        ..Targets::default()
    };
    beside(&mut bench, ours, 1, must.of(engine));
    bench
}

/// append-16.
pub(super) fn sixteen(engine: Engine) -> Bench {
    let mut bench = Bench::new("append-16", engine);
    let many = bench.add(ours("A2", engine, 16, Kind::One));
    if engine == Engine::Memory {
        let one = bench.add(ours("A2 with 1 caller", engine, 1, Kind::One));
        bench.figure(many, Some(one), Some(Target::at_least(1.6, None)));
        return bench;
    }
    let must = Targets {
        sqlite: least(0.65, 0.8),
        postgres: least(0.75, 1.2),
        redis: least(0.25, 0.45),
        ..Targets::default()
    };
    beside(&mut bench, many, 16, must.of(engine));
    bench
}

/// Adds the limits of one append, and A2's figures over them.
fn beside(bench: &mut Bench, ours: usize, callers: usize, must: Option<Target>) {
    let engine = bench.engine();
    let grouped = grouped(engine, callers);
    let name = if engine == Engine::Redis { "XADD" } else { "INSERT" };
    let bare =
        bench.add(limit(&format!("{grouped}{name}"), engine, Limit::Bare, callers, Kind::One));
    bench.figure(ours, Some(bare), must);
    if engine == Engine::Redis {
        let name = "XADD, INCR, ZADD, HSET, PUBLISH in a script";
        let script = bench.add(limit(name, engine, Limit::Script, callers, Kind::One));
        bench.figure(ours, Some(script), None);
    }
    let same = bench.add(limit(
        &format!("{grouped}same {}", rows(engine)),
        engine,
        Limit::Same,
        callers,
        Kind::One,
    ));
    bench.figure(ours, Some(same), Some(OF_SAME_ROWS));
}

/// Whether several callers' writes are committed in groups: one file has one writer.
pub(super) fn grouped(engine: Engine, callers: usize) -> &'static str {
    if callers > 1 && matches!(engine, Engine::Sqlite(_)) { "grouped " } else { "" }
}

/// What an engine's layout consists of.
pub(super) fn rows(engine: Engine) -> &'static str {
    if engine == Engine::Redis { "keys" } else { "rows" }
}

/// batch-1 and batch-16, in events a second: with a lane target on every event and without targets.
pub(super) fn batch(engine: Engine, callers: usize) -> Bench {
    let mut bench = Bench::new(format!("batch-{callers}"), engine);
    let plain = bench.add(ours("A2, no targets", engine, callers, Kind::PlainBatch));
    let queued = bench.add(ours("A2, a target each", engine, callers, Kind::Batch));
    let name = match engine {
        Engine::Memory => {
            bench.figure(plain, None, None);
            bench.figure(queued, None, None);
            return bench;
        }
        Engine::Sqlite(_) => "100 INSERTs",
        Engine::Postgres => "INSERT of 100 rows",
        Engine::Redis => "100 XADDs in a pipeline",
    };
    let name = format!("{}{name}", grouped(engine, callers));
    let bare = bench.add(limit(&name, engine, Limit::Bare, callers, Kind::Batch));
    let same = format!("same {}, a target each", rows(engine));
    let same = bench.add(limit(&same, engine, Limit::Same, callers, Kind::Batch));
    let must = Targets {
        sqlite: least(0.3, 0.6),
        postgres: least(0.25, 0.5),
        redis: least(0.35, 0.8),
        ..Targets::default()
    };
    let must = must.of(engine).filter(|_| callers == 16);
    bench.figure(plain, Some(bare), must);
    bench.figure(queued, Some(bare), must);
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

fn limit(name: &str, engine: Engine, limit: Limit, callers: usize, kind: Kind) -> Series {
    match (engine, limit) {
        (Engine::Sqlite(durability), Limit::Same) => {
            of_sqlite::<Same>(name, durability, callers, kind)
        }
        (Engine::Sqlite(durability), _) => of_sqlite::<Bare>(name, durability, callers, kind),
        _ => on_server(name, engine, limit, callers, kind.turn()),
    }
}

fn of_sqlite<R: Rows>(name: &str, durability: Durability, callers: usize, kind: Kind) -> Series {
    rate(name, move |cx| async move {
        if callers == 1 {
            return tokio::task::spawn_blocking(move || lone::<R>(&cx, durability, kind)).await?;
        }
        let writer = Grouped::open::<R>(&cx, durability)?;
        let callers =
            (0..callers).map(|n| Caller::new(Box::new(writer.clone()), kind.turn(), n, callers));
        many(cx.time, Engine::Sqlite(durability).stride(), callers.collect()).await
    })
}

impl Kind {
    // For the same rows, one event with one target is what the queue takes.
    fn events(self) -> usize {
        if self == Self::One { 1 } else { BATCH }
    }

    fn turn(self) -> Turn {
        Turn::Append { count: self.events() }
    }
}

fn lone<R: Rows>(cx: &Cx, durability: Durability, kind: Kind) -> Result<f64> {
    let mut lone = Lone::<R>::open(cx, durability)?;
    let mut sessions = (0..SESSIONS).cycle();
    let mut turn = || {
        let session = sessions.next().unwrap_or_default();
        lone.write(Write::Append { session, count: kind.events() })
    };
    let warm = Instant::now();
    while warm.elapsed() < cx.time / 10 {
        turn()?;
    }
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < cx.time {
        turn()?;
        done += kind.events() as u64;
    }
    Ok(crate::bench::workers::per_second(done, start))
}
