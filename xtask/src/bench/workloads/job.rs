//! The cycle of a job: append, claim, complete; and the same with the next claim in the completion.

use std::sync::Arc;
use std::time::Instant;

use a2_core::{Append, Claim, CompleteAttempt, Completion, DispatchedHead, Store};
use anyhow::{Result, bail};

use super::append::own_sessions;
use super::{OF_SAME_ROWS, rate, target};
use crate::bench::limits::{Bare, Grouped, Lone, Rows, Same, Write};
use crate::bench::measure::{Bench, Cx, Series, Target};
use crate::bench::payload::{Data, SESSIONS};
use crate::bench::stores::{Durability, Engine};
use crate::bench::workers::{Worker, many, one, per_second};

/// job-1 and job-16, in full cycles a second.
pub(super) fn bench(engine: Engine, workers: usize) -> Bench {
    let mut bench = Bench::new(format!("job-{workers}"), engine.name());
    let plain = bench.add(ours("A2", engine, workers, Cycle::ThreeCalls));
    let then = bench.add(ours("A2, then_claim", engine, workers, Cycle::ThenClaim));
    let Engine::Sqlite(durability) = engine else {
        let must = (workers == 1).then(|| Target::at_least(3e5, Some(6e5)));
        bench.figure(plain, None, must);
        bench.figure(then, None, None);
        return bench;
    };
    let grouped = if workers == 1 { "" } else { "grouped " };
    let name = format!("{grouped}INSERT, UPDATE RETURNING, UPDATE");
    let bare = bench.add(limit::<Bare>(&name, durability, workers));
    let same = bench.add(limit::<Same>(&format!("{grouped}same rows"), durability, workers));
    let must = match workers {
        1 => Target::at_least(0.65, Some(0.9)),
        _ => Target::at_least(0.4, Some(0.6)),
    };
    bench.figure(plain, Some(bare), target(engine, None, Some(must)));
    bench.figure(plain, Some(same), Some(OF_SAME_ROWS));
    bench.figure(then, Some(bare), target(engine, None, Some(must)));
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

fn limit<R: Rows>(name: &str, durability: Durability, workers: usize) -> Series {
    rate(name, move |cx| async move {
        if workers == 1 {
            return tokio::task::spawn_blocking(move || lone::<R>(&cx, durability)).await?;
        }
        let writer = Grouped::open::<R>(&cx, durability)?;
        let callers = (0..workers).map(|n| GroupedCycler {
            writer: writer.clone(),
            sessions: own_sessions(n, workers).into_iter().cycle(),
        });
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

struct GroupedCycler {
    writer: Grouped,
    sessions: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl Worker for GroupedCycler {
    async fn turn(&mut self) -> Result<u64> {
        let session = self.sessions.next().unwrap_or_default();
        self.writer.write(Write::Enqueue { session }).await?;
        let index = self.writer.write(Write::Claim { session }).await?;
        self.writer.write(Write::Complete { session, index }).await?;
        Ok(1)
    }
}
