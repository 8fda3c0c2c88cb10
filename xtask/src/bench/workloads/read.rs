//! Reading 10,000 events of one session in one answer.

use std::time::Instant;

use a2_core::{Index, ReadRange};
use anyhow::{Result, bail};

use super::project::filled;
use super::{rate, target};
use crate::bench::limits::{Select, scan};
use crate::bench::measure::{Bench, Cx, Target};
use crate::bench::payload::Data;
use crate::bench::stores::Engine;
use crate::bench::workers::{Worker, one, per_second};

const EVENTS: usize = 10_000;

/// read-10k, in events a second.
pub(super) fn bench(engine: Engine) -> Bench {
    let mut bench = Bench::new("read-10k", engine.name());
    let ours = bench.add(rate("A2", move |cx| async move {
        let opened = engine.open(&cx).await?;
        let session = filled(&opened, &Data::new()?, EVENTS).await?;
        let time = cx.time;
        one(time, super::super::workers::Stride::Each, Reader { opened, session }).await
    }));
    let Engine::Sqlite(_) = engine else {
        bench.figure(ours, None, None);
        return bench;
    };
    let bare = bench.add(rate("SELECT", |cx| async move {
        tokio::task::spawn_blocking(move || selected(&cx)).await?
    }));
    bench.figure(ours, Some(bare), target(engine, None, Some(Target::at_least(0.4, Some(0.6)))));
    bench
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
