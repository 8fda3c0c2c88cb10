//! Flatness: what one claim and its completion take beside a large backlog, much that is finished or
//! held, a long history, many other sessions; over what they take in an empty store.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use a2_core::{
    Append, ClaimAvailable, Completion, Consumer, Lane, SessionId, Store, Target as Aim,
};
use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::OnceCell;

use super::job::{claimed, complete};
use crate::bench::measure::{Bench, Cx, Series, Spread, Target, Unit};
use crate::bench::payload::{CONSUMER, Data};
use crate::bench::probe::micros;
use crate::bench::stores::{Durability, Engine, Opened, open_file};

/// Cycles of one measurement; their median is taken.
const CYCLES: usize = 300;

/// What the store holds besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Pending,
    Unserved,
    Finished,
    Held,
    History,
    Sessions,
}

impl Beside {
    const ALL: [(Self, &str); 6] = [
        (Self::Pending, "100k pending heads of the consumer"),
        (Self::Unserved, "100k pending heads of an unserved consumer"),
        (Self::Finished, "100k finished heads"),
        (Self::Held, "10k heads held by others"),
        (Self::History, "1M events of history"),
        (Self::Sessions, "100k other sessions with a pending head"),
    ];
}

/// flat: one bench for each thing that must not matter.
pub(super) fn benches(engine: Engine) -> Vec<Bench> {
    let must = match engine {
        Engine::Memory | Engine::Redis => Target::at_most(1.2, None),
        Engine::Sqlite(_) | Engine::Postgres => Target::at_most(1.3, None),
    };
    let bench = |(beside, name): (Beside, &str)| {
        let mut bench = Bench::new(format!("flat: {name}"), engine);
        let empty = bench.add(cycles("empty store", engine, Beside::Nothing));
        let full = bench.add(cycles("claim + complete", engine, beside));
        bench.figure(full, Some(empty), Some(must));
        bench
    };
    Beside::ALL.into_iter().map(bench).collect()
}

fn cycles(name: &str, engine: Engine, beside: Beside) -> Series {
    // Filled once, measured every round.
    let filled = Arc::new(OnceCell::new());
    Series::new(name, Unit::Micros, move |cx| {
        let filled = Arc::clone(&filled);
        async move {
            let filled: &Opened = filled.get_or_try_init(|| fill(engine, beside, &cx)).await?;
            match (engine, filled.folder()) {
                (Engine::Sqlite(durability), Some(folder)) => {
                    let store = reopened(folder, durability).await?;
                    median(&*store, beside).await
                }
                _ => median(&*filled.store, beside).await,
            }
        }
    })
}

async fn reopened(folder: &Path, durability: Durability) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(open_file(folder, durability).await?))
}

/// The median time of a claim and its completion, in microseconds.
async fn median(store: &dyn Store, beside: Beside) -> Result<f64> {
    let data = Data::new()?;
    let session = &data.sessions[0];
    let mut times = Vec::with_capacity(CYCLES);
    for _ in 0..CYCLES {
        if beside != Beside::Pending {
            drop(store.append(session, Append::one(data.event()?)?).await?);
        }
        let claim = data.claim()?;
        let start = Instant::now();
        let head = claimed(store.claim_available(session, claim).await?)?;
        let done = store.complete_attempt(session, complete(&head, &data)).await?;
        times.push(micros(start));
        if !matches!(done.outcome, Completion::Completed(_)) {
            bail!("{:?} was superseded", head.head);
        }
    }
    Ok(Spread::of(times).median)
}

/// Fills a store; without syncing every commit, which takes no part in what is measured.
async fn fill(engine: Engine, beside: Beside, cx: &Cx) -> Result<Opened> {
    let engine = match engine {
        Engine::Sqlite(_) => Engine::Sqlite(Durability::Normal),
        other => other,
    };
    let opened = engine.open(cx).await?;
    let (store, data) = (&*opened.store, Data::new()?);
    let session = &data.sessions[0];
    let own = Aim::event(CONSUMER)?;
    match beside {
        Beside::Nothing => {}
        Beside::Pending => heads(store, &data, &own, 100_000).await?,
        Beside::Unserved => heads(store, &data, &Aim::event("other")?, 100_000).await?,
        Beside::Finished => {
            heads(store, &data, &own, 100_000).await?;
            finish(store, session, &data, 100_000).await?;
        }
        Beside::Held => {
            heads(store, &data, &own, 10_000).await?;
            hold(store, session, 10_000).await?;
        }
        Beside::History => {
            super::project::filled(&opened, &data, 1_000_000).await.map(drop)?;
        }
        Beside::Sessions => {
            let lane = Aim::lane(Consumer::new(CONSUMER)?, Lane::new("lane-1")?)?;
            let others = (0..100_000).map(|n| SessionId::new(format!("other-{n}")));
            stream::iter(others)
                .map_err(anyhow::Error::from)
                .try_for_each_concurrent(64, |other| {
                    let event = data.plain().map(|event| event.target(lane.clone()));
                    async move {
                        drop(store.append(&other, Append::one(event?)?).await?);
                        Ok(())
                    }
                })
                .await?;
        }
    }
    Ok(opened)
}

/// Appends events that are each a head of their own.
async fn heads(store: &dyn Store, data: &Data, aim: &Aim, count: usize) -> Result<()> {
    for _ in 0..count / 10_000 {
        let events = (0..10_000).map(|_| data.plain().map(|event| event.target(aim.clone())));
        let append = Append::new(events.collect::<a2_core::Result<Vec<_>>>()?)?;
        drop(store.append(&data.sessions[0], append).await?);
    }
    Ok(())
}

async fn finish(store: &dyn Store, session: &SessionId, data: &Data, count: usize) -> Result<()> {
    let mut done = 0;
    while done < count {
        let claim = data.claim()?.limit(1_000)?;
        let heads = store.claim_available(session, claim).await?.into_heads();
        if heads.is_empty() {
            bail!("{done} of {count} heads were found");
        }
        done += heads.len();
        stream::iter(heads)
            .map(|head| store.complete_attempt(session, complete(&head, data)))
            .buffer_unordered(64)
            .try_for_each(|done| async move {
                drop(done);
                Ok(())
            })
            .await?;
    }
    Ok(())
}

async fn hold(store: &dyn Store, session: &SessionId, count: usize) -> Result<()> {
    let mut held = 0;
    while held < count {
        let claim = ClaimAvailable::new("somebody-else", Duration::from_secs(24 * 3_600))?;
        let heads = store.claim_available(session, claim.limit(1_000)?).await?.into_heads();
        held += Some(heads.len()).filter(|n| *n > 0).context("heads were to be held")?;
    }
    Ok(())
}
