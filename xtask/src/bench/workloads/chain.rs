//! A workflow in its steady state: every completion returns one event for the next lane and claims
//! it in the same call.

use std::sync::Arc;

use a2_core::{Append, Completion, DispatchedHead, EventId, Lane, NewEvent, Store, Target};
use anyhow::{Context, Result, bail};

use super::append::own_sessions;
use super::job::{claimed, complete};
use super::rate;
use crate::bench::measure::Bench;
use crate::bench::payload::{CONSUMER, Data, TYPE};
use crate::bench::stores::Engine;
use crate::bench::workers::{Worker, many};

const WORKERS: usize = 16;
/// The lanes that a chain goes through, over and over.
const LANES: usize = 8;

/// chain-16, in completions a second.
pub(super) fn bench(engine: Engine) -> Bench {
    let mut bench = Bench::new("chain-16", engine);
    let ours = bench.add(rate("A2", move |cx| async move {
        let opened = engine.open(&cx).await?;
        let data = Data::new()?;
        let lanes =
            (0..LANES).map(|n| Ok(Target::lane(CONSUMER, Lane::new(format!("lane-{n}"))?)?));
        let lanes: Arc<[Target]> = lanes.collect::<Result<Vec<_>>>()?.into();
        let workers = (0..WORKERS).map(|n| Linker {
            store: Arc::clone(&opened.store),
            data: data.clone(),
            lanes: Arc::clone(&lanes),
            sessions: own_sessions(n, WORKERS).into_iter().map(|session| (session, None)).collect(),
            next: 0,
        });
        many(cx.time, engine.stride(), workers.collect()).await
    }));
    bench.figure(ours, None, None);
    bench
}

fn event(data: &Data) -> a2_core::Result<NewEvent> {
    NewEvent::from_json(TYPE, data.payload.clone())
}

struct Linker {
    store: Arc<dyn Store>,
    data: Data,
    lanes: Arc<[Target]>,
    /// The worker's own sessions, each with the head that it holds there.
    sessions: Vec<(usize, Option<DispatchedHead>)>,
    next: usize,
}

impl Worker for Linker {
    async fn prepare(&mut self) -> Result<()> {
        for (number, held) in &mut self.sessions {
            let session = &self.data.sessions[*number];
            let first = event(&self.data)?.target(self.lanes[0].clone());
            drop(self.store.append(session, Append::one(first)?).await?);
            *held = Some(claimed(self.store.claim_available(session, self.data.claim()?).await?)?);
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<u64> {
        let place = self.next;
        self.next = (place + 1) % self.sessions.len();
        let (number, held) = &mut self.sessions[place];
        let session = &self.data.sessions[*number];
        let head = held.take().context("a head is held in every session")?;
        let lane = usize::try_from(head.head.index.get())? % LANES;
        let child = event(&self.data)?.id(EventId::generate())?.target(self.lanes[lane].clone());
        let complete = complete(&head, &self.data).events([child])?.then_claim(self.data.claim()?);
        let done = self.store.complete_attempt(session, complete).await?;
        if !matches!(done.outcome, Completion::Completed(_)) {
            bail!("{:?} was superseded", head.head);
        }
        *held = Some(claimed(done.claim.context("a claim was asked for")?)?);
        Ok(1)
    }
}
