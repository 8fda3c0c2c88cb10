//! What a server stores and writes for an event, a job and a session.

use a2_core::{SessionId, StoreExt};
use anyhow::{Context, Result};
use futures_util::{TryStreamExt, stream};

use super::footprint::{EVENTS, fill, work};
use crate::bench::measure::{Bench, Cx, Series, Target, Unit};
use crate::bench::payload::Data;
use crate::bench::servers::Weight;
use crate::bench::stores::{Engine, Opened};

/// Jobs whose writes are counted, and sessions whose bytes are.
const JOBS: usize = 2_000;
const HELD: usize = 20_000;

/// What is done between two looks at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Events,
    Jobs,
    Sessions,
}

/// Adds the series and figures of a server.
pub(super) fn add(bench: &mut Bench) {
    let engine = bench.engine();
    let mut add = |name, unit, act, part: fn(Weight) -> f64, target| {
        let series = bench.add(Series::new(name, unit, move |cx| weigh(engine, cx, act, part)));
        bench.figure(series, None, target);
    };
    let most = |must| Some(Target::at_most(must, None));
    let (bytes, count) = (Unit::Bytes, Unit::Count);
    if engine == Engine::Redis {
        add("memory, an event with 1 target", bytes, Act::Events, |w| w.bytes, most(700.0));
        add("memory, a completed job", bytes, Act::Jobs, |w| w.bytes, None);
        add("memory, a session with 1 event", bytes, Act::Sessions, |w| w.bytes, most(8_192.0));
        return;
    }
    add("tables and indexes, an event with 1 target", bytes, Act::Events, |w| w.bytes, None);
    add("tables and indexes, a completed job", bytes, Act::Jobs, |w| w.bytes, None);
    add("write-ahead log, an event with 1 target", bytes, Act::Events, |w| w.log, None);
    add("write-ahead log, a completed job", bytes, Act::Jobs, |w| w.log, None);
    add("versions of rows, a completed job", count, Act::Jobs, |w| w.rows, most(4.0));
    add("entries of indexes, a completed job", count, Act::Jobs, |w| w.entries, most(12.0));
}

async fn weigh(engine: Engine, cx: Cx, act: Act, part: fn(Weight) -> f64) -> Result<f64> {
    let opened = engine.open(&cx).await?;
    let data = Data::new()?;
    let space = opened.space().context("a store on a server")?;
    let mark = space.server.mark().await?;
    let count = match act {
        Act::Events => {
            fill(&opened, &data).await?;
            EVENTS
        }
        Act::Jobs => {
            work(&opened, &data, JOBS).await?;
            JOBS
        }
        Act::Sessions => {
            sessions(&opened, &data).await?;
            HELD
        }
    };
    let weight = space.server.weigh(&space.name, &mark).await?;
    Ok(part(weight) / count as f64)
}

async fn sessions(opened: &Opened, data: &Data) -> Result<()> {
    let names = (0..HELD).map(|n| SessionId::new(format!("held-{n}")));
    stream::iter(names)
        .map_err(anyhow::Error::from)
        .try_for_each_concurrent(64, |session| async move {
            drop(opened.store.append_one(&session, data.event()?).await?);
            Ok(())
        })
        .await
}
