//! The cycle of a job: append, claim, complete; and the same with the next claim in the completion.

use std::sync::Arc;
use std::time::Instant;

use a2_core::{Append, Claim, CompleteAttempt, Completion, DispatchedHead, Store};
use anyhow::{Result, bail};

use super::append::{grouped, own_sessions, rows};
use super::limited::{Caller, Turn, on_server};
use super::{OF_SAME_ROWS, Targets, least, rate};
use crate::bench::limits::sqlite::{Bare, Grouped, Lone, Rows, Same};
use crate::bench::limits::{Limit, Write};
use crate::bench::measure::{Bench, Cx, Series, Target};
use crate::bench::payload::{Data, SESSIONS};
use crate::bench::stores::{Durability, Engine};
use crate::bench::workers::{Worker, many, one, per_second};

/// job-1 and job-16, in full cycles a second.
pub(super) fn bench(engine: Engine, workers: usize) -> Bench {
    let mut bench = Bench::new(format!("job-{workers}"), engine);
    let plain = bench.add(ours("A2", engine, workers, Cycle::ThreeCalls));
    let then = bench.add(ours("A2, then_claim", engine, workers, Cycle::ThenClaim));
    let name = match engine {
        Engine::Memory => {
            let must = (workers == 1).then_some(Target::at_least(3e5, Some(6e5)));
            bench.figure(plain, None, must);
            bench.figure(then, None, None);
            return bench;
        }
        Engine::Sqlite(_) => "INSERT, UPDATE RETURNING, UPDATE",
        Engine::Postgres => "INSERT, UPDATE of a row FOR UPDATE SKIP LOCKED, UPDATE",
        Engine::Redis => "three scripts on a list and a hash",
    };
    let grouped = grouped(engine, workers);
    let bare = bench.add(limit(&format!("{grouped}{name}"), engine, Limit::Bare, workers));
    let same = format!("{grouped}same {}", rows(engine));
    let same = bench.add(limit(&same, engine, Limit::Same, workers));
    let must = match workers {
        1 => Targets {
            sqlite: least(0.65, 0.9),
            postgres: least(0.5, 1.0),
            redis: least(0.75, 1.1),
            ..Targets::default()
        },
        _ => Targets {
            sqlite: least(0.4, 0.6),
            postgres: least(0.9, 1.2),
            redis: least(0.6, 0.85),
            ..Targets::default()
        },
    };
    let must = must.of(engine);
    bench.figure(plain, Some(bare), must);
    bench.figure(plain, Some(same), Some(OF_SAME_ROWS));
    bench.figure(then, Some(bare), must);
    bench
}

/// How a cycle is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cycle {
    ThreeCalls,
    ThenClaim,
}

fn ours(name: &str, engine: Engine, workers: usize, cycle: Cycle) -> Series {
    rate(name, move |cx| async move {
        let opened = engine.open(&cx).await?;
        let data = Data::new()?;
        let mut callers = Vec::new();
        for n in 0..workers {
            let own = own_sessions(n, workers);
            let (store, data) = (Arc::clone(&opened.store), data.clone());
            let held = own.iter().map(|_| None).collect();
            callers.push(Cycler { store, data, cycle, sessions: own, held, next: 0 });
        }
        match callers.len() {
            1 => one(cx.time, engine.stride(), callers.remove(0)).await,
            _ => many(cx.time, engine.stride(), callers).await,
        }
    })
}

struct Cycler {
    store: Arc<dyn Store>,
    data: Data,
    cycle: Cycle,
    sessions: Vec<usize>,
    /// With `then_claim`: the head that is already claimed in each session.
    held: Vec<Option<DispatchedHead>>,
    next: usize,
}

impl Worker for Cycler {
    async fn prepare(&mut self) -> Result<()> {
        if self.cycle == Cycle::ThenClaim {
            // One job of every session is held from now on.
            for (place, number) in self.sessions.iter().enumerate() {
                let session = &self.data.sessions[*number];
                drop(self.store.append(session, Append::one(self.data.event()?)?).await?);
                let claim = self.store.claim_available(session, self.data.claim()?).await?;
                self.held[place] = Some(claimed(claim)?);
            }
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<u64> {
        let place = self.next;
        self.next = (place + 1) % self.sessions.len();
        let session = &self.data.sessions[self.sessions[place]];
        let append = Append::one(self.data.event()?)?.served(self.data.served.clone());
        drop(self.store.append(session, append).await?);
        let head = match self.held[place].take() {
            Some(head) => head,
            None => claimed(self.store.claim_available(session, self.data.claim()?).await?)?,
        };
        let mut complete = complete(&head, &self.data);
        if self.cycle == Cycle::ThenClaim {
            complete = complete.then_claim(self.data.claim()?);
        }
        let done = self.store.complete_attempt(session, complete).await?;
        if !matches!(done.outcome, Completion::Completed(_)) {
            bail!("{:?} was superseded", head.head);
        }
        self.held[place] = done.claim.map(claimed).transpose()?;
        Ok(1)
    }
}

/// The completion of a claimed head.
pub(super) fn complete(head: &DispatchedHead, data: &Data) -> CompleteAttempt {
    CompleteAttempt::new(head.head.clone(), head.attempt()).served(data.served.clone())
}

/// The one head of a claim.
pub(super) fn claimed(claim: Claim) -> Result<DispatchedHead> {
    match claim {
        Claim::Claimed(claimed) if claimed.heads.len() == 1 => {
            claimed.heads.into_iter().next().ok_or_else(|| anyhow::anyhow!("no head"))
        }
        other => bail!("one head was to be claimed: {other:?}"),
    }
}

fn limit(name: &str, engine: Engine, limit: Limit, workers: usize) -> Series {
    match (engine, limit) {
        (Engine::Sqlite(durability), Limit::Same) => of_sqlite::<Same>(name, durability, workers),
        (Engine::Sqlite(durability), _) => of_sqlite::<Bare>(name, durability, workers),
        _ => on_server(name, engine, limit, workers, Turn::Job),
    }
}

fn of_sqlite<R: Rows>(name: &str, durability: Durability, workers: usize) -> Series {
    rate(name, move |cx| async move {
        if workers == 1 {
            return tokio::task::spawn_blocking(move || lone::<R>(&cx, durability)).await?;
        }
        let writer = Grouped::open::<R>(&cx, durability)?;
        let callers =
            (0..workers).map(|n| Caller::new(Box::new(writer.clone()), Turn::Job, n, workers));
        many(cx.time, Engine::Sqlite(durability).stride(), callers.collect()).await
    })
}

fn lone<R: Rows>(cx: &Cx, durability: Durability) -> Result<f64> {
    let mut lone = Lone::<R>::open(cx, durability)?;
    let mut sessions = (0..SESSIONS).cycle();
    let mut turn = || -> Result<()> {
        let session = sessions.next().unwrap_or_default();
        lone.write(Write::Enqueue { session })?;
        let index = lone.write(Write::Claim { session })?;
        lone.write(Write::Complete { session, index })?;
        Ok(())
    };
    let warm = Instant::now();
    while warm.elapsed() < cx.time / 10 {
        turn()?;
    }
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < cx.time {
        turn()?;
        done += 1;
    }
    Ok(per_second(done, start))
}
