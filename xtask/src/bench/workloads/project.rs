//! A projection: a log consumer takes a whole log in runs, many events an attempt.

use std::sync::Arc;
use std::time::Instant;

use a2_core::{
    Append, Claim, ClaimAvailable, CompleteAttempt, Completion, Consumer, Index, LogDeclaration,
    ReadRange, Served, ServedConsumer, SessionId, Store, WakeLog,
};
use anyhow::{Context, Result, bail};

use super::limited::{Log, read_name};
use super::rate;
use crate::bench::limits::sqlite::{Select, pages};
use crate::bench::measure::{Bench, Cx, Series};
use crate::bench::payload::{Data, HOLDER, TTL};
use crate::bench::stores::{Engine, Opened};
use crate::bench::workers::per_second;

/// Events of the log.
const EVENTS: usize = 100_000;
/// Events of one run, and of one page of the reads beside it.
const RUN: usize = 1_000;

/// project, in events a second.
pub(super) fn bench(engine: Engine) -> Bench {
    let mut bench = Bench::new("project", engine);
    let ours = bench.add(rate("A2, in runs of 1,000", move |cx| projected(engine, cx)));
    let read = bench.add(rate("A2's read", move |cx| read(engine, cx)));
    bench.figure(ours, Some(read), None);
    if engine != Engine::Memory {
        let bare = bench.add(bare(engine));
        bench.figure(ours, Some(bare), None);
    }
    bench
}

/// A session with a log of `events`, appended in large batches for nobody.
pub(super) async fn filled(opened: &Opened, data: &Data, events: usize) -> Result<SessionId> {
    let session = data.sessions[0].clone();
    let mut left = events;
    while left > 0 {
        let count = left.min(10_000);
        let batch = (0..count).map(|_| data.plain()).collect::<a2_core::Result<Vec<_>>>()?;
        drop(opened.store.append(&session, Append::new(batch)?).await?);
        left -= count;
    }
    Ok(session)
}

async fn projected(engine: Engine, cx: Cx) -> Result<f64> {
    let opened = engine.open(&cx).await?;
    let session = filled(&opened, &Data::new()?, EVENTS).await?;
    let consumer = Consumer::new("projection")?;
    let log = LogDeclaration::new("all")?.backfill();
    let served = Served::only([ServedConsumer::new(&consumer)?.log(log.clone())])?;
    drop(opened.store.wake_log(&session, WakeLog::new(&consumer, log)?).await?);
    let claim = ClaimAvailable::new(HOLDER, TTL)?.limit(1)?.run(RUN)?.served(served.clone());

    let start = Instant::now();
    let mut taken = 0;
    let mut found = opened.store.claim_available(&session, claim.clone()).await?;
    while let Claim::Claimed(claimed) = found {
        let head = claimed.heads.into_iter().next().context("a head was claimed")?;
        taken += 1 + head.run.len();
        let complete = CompleteAttempt::new(head.head.clone(), head.attempt())
            .through(head.run_through())?
            .served(served.clone())
            .then_claim(claim.clone());
        let done = opened.store.complete_attempt(&session, complete).await?;
        if !matches!(done.outcome, Completion::Completed(_)) {
            bail!("{:?} was superseded", head.head);
        }
        found = done.claim.context("a claim was asked for")?;
    }
    if taken != EVENTS {
        bail!("{taken} events were taken, not {EVENTS}");
    }
    Ok(per_second(EVENTS as u64, start))
}

async fn read(engine: Engine, cx: Cx) -> Result<f64> {
    let opened = engine.open(&cx).await?;
    let session = filled(&opened, &Data::new()?, EVENTS).await?;
    let store: &Arc<dyn Store> = &opened.store;
    let start = Instant::now();
    let (mut after, mut taken) = (Index::ZERO, 0);
    while taken < EVENTS {
        let page = store.read(&session, ReadRange::after(after).limit(RUN)?).await?;
        after = page.events.last().context("the log ends early")?.index;
        taken += page.events.len();
    }
    Ok(per_second(EVENTS as u64, start))
}

fn bare(engine: Engine) -> Series {
    rate(read_name(engine), move |cx| async move {
        if let Engine::Sqlite(_) = engine {
            return tokio::task::spawn_blocking(move || {
                let select = Select::filled(&cx, EVENTS, None)?;
                let start = Instant::now();
                let read = pages(&select, RUN)?;
                Ok(per_second(read, start))
            })
            .await?;
        }
        let mut log = Log::filled(&cx, engine, EVENTS, EVENTS).await?;
        let (start, mut read) = (Instant::now(), 0);
        while read < EVENTS {
            read += log.reads.scan(i64::try_from(read)?, RUN).await?;
        }
        Ok(per_second(read as u64, start))
    })
}
