//! One round: workers, harm after harm, then an end in peace, and the check.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use a2_conformance::history::{History, Random, Time, Workload, check};
use a2_conformance::{Losing, Loss};
use a2_core::{Append, NewEvent, SessionId};
use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use super::report::Outcome;
use super::theatre::{Round, Store, Theatre, pause};

/// How long harm is done before all is checked.
const ROUND: Duration = Duration::from_secs(12);
/// How long recovering, ending and draining may take before that is a violation.
const PATIENCE: Duration = Duration::from_secs(90);
const WORKERS: u32 = 8;
const SESSIONS: u32 = 6;
/// How many in a hundred answers are lost on the way to a worker, beside all harm.
const LOSSES: u64 = 2;

pub(super) async fn run(
    theatre: &dyn Theatre,
    outcome: &mut Outcome,
    deadline: Instant,
) -> Result<()> {
    let seed = outcome.seed.wrapping_add(outcome.rounds);
    let round = Round { prefix: format!("round-{}", outcome.rounds), sessions: SESSIONS, seed };
    let stores = theatre.open().await?;
    let first = stores.first().context("no store")?;
    let recorder = theatre.recorder()?;
    let workload = Workload::new(&round.prefix, SESSIONS, seed, Time::Real, &recorder);
    workload.begin(Arc::clone(first)).await?;
    let mut followers = JoinSet::new();
    for (session, store) in (0..SESSIONS as usize).zip(stores.iter().cycle()) {
        let (workload, store) = (workload.clone(), Arc::clone(store));
        followers.spawn(async move { workload.follow(session, store).await });
    }
    let mut workers = JoinSet::new();
    for (number, store) in (1..=WORKERS).zip(stores.iter().cycle()) {
        let (workload, store) = (workload.clone(), losing(Arc::clone(store), seed, number));
        workers.spawn(async move { workload.work(number, None, store).await });
    }
    theatre.send_in(&round, &workload).await?;

    let until = (Instant::now() + ROUND).min(deadline);
    let mut random = Random::of(seed, 0);
    let harms = theatre.harms();
    pause(&mut random, 200, 600).await;
    // Each kind in turn, so that none is left out by chance.
    let mut turn = usize::try_from(random.below(harms.len().max(1) as u64))?;
    let mut done = 0;
    while !harms.is_empty() && (done == 0 || Instant::now() < until) {
        let harm = harms[turn % harms.len()];
        (turn, done) = (turn + 1, done + 1);
        theatre.harm(harm, &mut random).await.with_context(|| format!("the harm `{harm}`"))?;
        let took = recovered(&stores, &round.prefix).await?;
        outcome.harmed(harm, took);
        pause(&mut random, 200, 900).await;
    }
    if harms.is_empty() {
        tokio::time::sleep_until(until.into()).await;
    }
    workload.stop();
    theatre.call_back().await?;
    let all = async { while workers.join_next().await.is_some() {} };
    if tokio::time::timeout(PATIENCE, all).await.is_err() {
        bail!("the workers did not end within {PATIENCE:?}");
    }
    let settled = workload.drain(Arc::clone(first), PATIENCE).await;
    let notes = recorder.notes(theatre.journal().as_deref())?;
    drop(followers);
    let mut history = workload.history(notes);
    history.unanswered_may_vanish = theatre.forgets_unanswered();
    outcome.rounds += 1;
    outcome.count(&history);
    if let Err(text) = settled {
        outcome.violations.push(format!("the round does not settle: {text}"));
    }
    outcome.violations.extend(check(&history).iter().map(ToString::to_string));
    if !outcome.violations.is_empty() {
        let file = keep(&history)?;
        eprintln!("the history is kept in {file}");
    }
    Ok(())
}

/// How long it takes until every handle writes again.
async fn recovered(stores: &[Store], prefix: &str) -> Result<Duration> {
    static PROBES: AtomicU64 = AtomicU64::new(0);
    let start = Instant::now();
    let session = SessionId::new(format!("{prefix}-probe"))?;
    for store in stores {
        let id = format!("probe-{}", PROBES.fetch_add(1, Ordering::Relaxed));
        let append = Append::one(NewEvent::new("probe", &id)?.id(id)?)?;
        loop {
            match store.append(&session, append.clone()).await {
                Ok(_) => break,
                Err(error) if !error.is_retryable() => return Err(error.into()),
                Err(error) if start.elapsed() > PATIENCE => {
                    let text = format!("no write within {PATIENCE:?} after the harm");
                    return Err(anyhow::Error::from(error).context(text));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    }
    Ok(start.elapsed())
}

fn losing(store: Store, seed: u64, worker: u32) -> Store {
    let calls = AtomicU64::new(0);
    Arc::new(Losing::new(store, move |_| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::of(seed, (u64::from(worker) << 32) | call);
        match random.percent(LOSSES) {
            false => Loss::None,
            true if random.percent(50) => Loss::Before,
            true => Loss::After,
        }
    }))
}

/// Writes the notes of a history that violates something, one a line.
fn keep(history: &History) -> Result<String> {
    let file = std::env::temp_dir().join(format!("a2-history-{}.jsonl", std::process::id()));
    let mut lines = BufWriter::new(File::create(&file)?);
    for note in &history.notes {
        serde_json::to_writer(&mut lines, note)?;
        lines.write_all(b"\n")?;
    }
    lines.flush()?;
    Ok(file.display().to_string())
}
