//! Reading 10,000 events of one session in one answer.

use std::time::Instant;

use a2_core::{Index, ReadRange};
use anyhow::{Result, bail};

use super::limited::{Log, read_name};
use super::project::filled;
use super::{Targets, least, rate};
use crate::bench::limits::sqlite::{Select, scan};
use crate::bench::measure::{Bench, Cx};
use crate::bench::payload::Data;
use crate::bench::stores::Engine;
use crate::bench::workers::{Stride, Worker, one, per_second};

const EVENTS: usize = 10_000;

/// read-10k, in events a second.
pub(super) fn bench(engine: Engine) -> Bench {
    let mut bench = Bench::new("read-10k", engine);
    let ours = bench.add(rate("A2", move |cx| async move {
        let opened = engine.open(&cx).await?;
        let session = filled(&opened, &Data::new()?, EVENTS).await?;
        let time = cx.time;
        one(time, Stride::Each, Reader { opened, session }).await
    }));
    if engine == Engine::Memory {
        bench.figure(ours, None, None);
        return bench;
    }
    let bare = bench.add(rate(read_name(engine), move |cx| async move {
        if let Engine::Sqlite(_) = engine {
            return tokio::task::spawn_blocking(move || selected(&cx)).await?;
        }
        let log = Log::filled(&cx, engine, EVENTS, EVENTS).await?;
        one(cx.time, engine.stride(), log).await
    }));
    let must = Targets {
        sqlite: least(0.4, 0.6),
        postgres: least(0.65, 0.85),
        redis: least(0.9, 2.0),
        ..Targets::default()
    };
    bench.figure(ours, Some(bare), must.of(engine));
    bench
}

impl Worker for Log {
    async fn turn(&mut self) -> Result<u64> {
        let read = self.reads.scan(0, EVENTS).await?;
        if read != EVENTS {
            bail!("{read} events were read, not {EVENTS}");
        }
        Ok(EVENTS as u64)
    }
}

struct Reader {
    opened: crate::bench::stores::Opened,
    session: a2_core::SessionId,
}

impl Worker for Reader {
    async fn turn(&mut self) -> Result<u64> {
        let range = ReadRange::after(Index::ZERO).limit(EVENTS)?;
        let read = self.opened.store.read(&self.session, range).await?.events.len();
        if read != EVENTS {
            bail!("{read} events were read, not {EVENTS}");
        }
        Ok(EVENTS as u64)
    }
}

fn selected(cx: &Cx) -> Result<f64> {
    let select = Select::filled(cx, EVENTS, None)?;
    scan(&select, 0, EVENTS)?;
    let (start, mut read) = (Instant::now(), 0);
    while start.elapsed() < cx.time {
        read += scan(&select, 0, EVENTS)? as u64;
    }
    Ok(per_second(read, start))
}
