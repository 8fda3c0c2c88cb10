//! Streams: from an append to a live subscriber, and what subscribers cost the appends.

use std::sync::Arc;
use std::time::Instant;

use a2_core::{Append, Index, SessionId, Store};
use anyhow::{Context, Result};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::append::own_sessions;
use super::{Targets, rate};
use crate::bench::measure::{Bench, Cx, Series, Target, Unit};
use crate::bench::payload::{Data, SESSIONS};
use crate::bench::probe::micros;
use crate::bench::stores::Engine;
use crate::bench::workers::{Worker, many};

/// Events of one latency measurement.
const EVENTS: usize = 1_000;

/// stream: latency, and throughput with subscribers.
pub(super) fn benches(engine: Engine) -> Vec<Bench> {
    let mut latency = Bench::new("stream: append to subscriber", engine);
    let beside = latency.add(match engine {
        Engine::Memory | Engine::Sqlite(_) => {
            time("append alone, p50", engine, Listener::None, 0.50)
        }
        Engine::Postgres => told("INSERT and NOTIFY to LISTEN, p50", engine),
        Engine::Redis => told("XADD and PUBLISH in a script to SUBSCRIBE, p50", engine),
    });
    let p50 = latency.add(time("same process, p50", engine, Listener::Same, 0.50));
    let p99 = latency.add(time("same process, p99", engine, Listener::Same, 0.99));
    let most = |must, goal| Some(Target::at_most(must, Some(goal)));
    let same = Targets { postgres: most(1.3, 1.1), redis: most(1.3, 1.1), ..Targets::default() };
    latency.figure(p50, Some(beside), same.of(engine));
    latency.figure(p99, Some(beside), None);
    if engine != Engine::Memory {
        let other = latency.add(time("another handle, p50", engine, Listener::Other, 0.50));
        let must = Targets { postgres: most(3.0, 1.5), ..same };
        latency.figure(other, Some(beside), must.of(engine));
    }

    let mut throughput = Bench::new("stream: appends of 16 callers", engine);
    let none = throughput.add(appends("no subscriber", engine, 0));
    let one = throughput.add(appends("1 subscriber", engine, 1));
    let thousand = throughput.add(appends("1,000 subscribers", engine, 1_000));
    throughput.figure(one, Some(none), None);
    let must = if engine == Engine::Redis { 0.6 } else { 0.7 };
    throughput.figure(thousand, Some(none), Some(Target::at_least(must, None)));
    vec![latency, throughput]
}

/// Where the subscriber is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listener {
    None,
    Same,
    Other,
}

/// A percentile of the time from the beginning of an append until a subscriber has its event.
fn time(name: &str, engine: Engine, listener: Listener, percentile: f64) -> Series {
    Series::new(name, Unit::Micros, move |cx| async move {
        let opened = engine.open(&cx).await?;
        let data = Data::new()?;
        let session = &data.sessions[0];
        let store = match listener {
            Listener::Other => opened.another(engine).await?,
            Listener::None | Listener::Same => Arc::clone(&opened.store),
        };
        let (seen, mut sees) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        if listener != Listener::None {
            let mut events = store.stream(session, Index::ZERO);
            tasks.spawn(async move {
                while let Some(Ok(_)) = events.next().await {
                    if seen.send(Instant::now()).is_err() {
                        return;
                    }
                }
            });
            // The first event shows that the subscriber is there.
            drop(opened.store.append(session, Append::one(data.plain()?)?).await?);
            sees.recv().await.context("the stream ended")?;
        }
        // Polls of another handle take milliseconds, not microseconds.
        let polls = listener == Listener::Other && matches!(engine, Engine::Sqlite(_));
        let events = if polls { EVENTS / 10 } else { EVENTS };
        let mut times = Vec::with_capacity(events);
        for _ in 0..events {
            let append = Append::one(data.plain()?)?;
            let start = Instant::now();
            drop(opened.store.append(session, append).await?);
            times.push(match listener {
                Listener::None => micros(start),
                Listener::Same | Listener::Other => {
                    let seen = sees.recv().await.context("the stream ended")?;
                    seen.saturating_duration_since(start).as_secs_f64() * 1e6
                }
            });
        }
        at(percentile, times)
    })
}

fn at(percentile: f64, mut times: Vec<f64>) -> Result<f64> {
    times.sort_by(f64::total_cmp);
    let place = (percentile * (times.len() - 1) as f64).round() as usize;
    times.get(place).copied().context("no time was taken")
}

/// The median time from the beginning of a bare append that tells of itself until it was heard of.
fn told(name: &str, engine: Engine) -> Series {
    Series::new(name, Unit::Micros, move |cx| async move {
        let space = cx.space(engine).await?;
        let (mut teller, mut heard) = space.server.teller(&space.name).await?;
        let mut times = Vec::with_capacity(EVENTS);
        for _ in 0..EVENTS {
            let start = Instant::now();
            teller.tell().await?;
            let seen = heard.recv().await.context("nobody listens")?;
            times.push(seen.saturating_duration_since(start).as_secs_f64() * 1e6);
        }
        at(0.50, times)
    })
}

/// Appends a second of 16 callers over 64 sessions, with subscribers spread over the sessions.
fn appends(name: &str, engine: Engine, subscribers: usize) -> Series {
    rate(name, move |cx: Cx| async move {
        let opened = engine.open(&cx).await?;
        let data = Data::new()?;
        let mut tasks = JoinSet::new();
        let (seen, mut sees) = mpsc::channel(1);
        for n in 0..subscribers {
            let mut events = opened.store.stream(&data.sessions[n % SESSIONS], Index::ZERO);
            let seen = seen.clone();
            tasks.spawn(async move {
                if !matches!(events.next().await, Some(Ok(_))) || seen.send(()).await.is_err() {
                    return;
                }
                while let Some(Ok(_)) = events.next().await {}
            });
        }
        drop(seen);
        // Every subscriber has an event before the clock starts: opening a thousand takes its time.
        for session in &data.sessions {
            drop(opened.store.append(session, Append::one(data.plain()?)?).await?);
        }
        for _ in 0..subscribers {
            sees.recv().await.context("a stream ended")?;
        }
        drop(sees);
        let callers = (0..16).map(|n| Appender {
            store: Arc::clone(&opened.store),
            data: data.clone(),
            sessions: sessions(&data, n).into_iter().cycle(),
        });
        let rate = many(cx.time, engine.stride(), callers.collect()).await;
        // All is given back before the next series begins: subscribers hold the store.
        tasks.shutdown().await;
        drop(opened);
        rate
    })
}

fn sessions(data: &Data, caller: usize) -> Vec<SessionId> {
    own_sessions(caller, 16).into_iter().map(|n| data.sessions[n].clone()).collect()
}

struct Appender {
    store: Arc<dyn Store>,
    data: Data,
    sessions: std::iter::Cycle<std::vec::IntoIter<SessionId>>,
}

impl Worker for Appender {
    async fn turn(&mut self) -> Result<u64> {
        let session = self.sessions.next().context("a caller has sessions")?;
        let append = Append::one(self.data.event()?)?.served(self.data.served.clone());
        drop(self.store.append(&session, append).await?);
        Ok(1)
    }
}
