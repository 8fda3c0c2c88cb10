//! What a server itself does of a workload, by callers with a writer and sessions of their own.

use anyhow::{Context, Result};

use super::append::own_sessions;
use super::rate;
use crate::bench::limits::{Limit, Reads, Write, Writes};
use crate::bench::measure::{Cx, Series};
use crate::bench::payload::PAYLOAD;
use crate::bench::servers::Space;
use crate::bench::stores::Engine;
use crate::bench::workers::{Worker, many, one};

/// What one turn of a caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Append { count: usize },
    Job,
}

/// A caller and its sessions, taken in turn.
pub(super) struct Caller {
    writer: Box<dyn Writes>,
    turn: Turn,
    sessions: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl Caller {
    /// Number `n` of `of`.
    pub(super) fn new(writer: Box<dyn Writes>, turn: Turn, n: usize, of: usize) -> Self {
        Self { writer, turn, sessions: own_sessions(n, of).into_iter().cycle() }
    }
}

impl Worker for Caller {
    async fn turn(&mut self) -> Result<u64> {
        let session = self.sessions.next().unwrap_or_default();
        match self.turn {
            Turn::Append { count } => {
                self.writer.write(Write::Append { session, count }).await?;
                Ok(count as u64)
            }
            Turn::Job => {
                self.writer.write(Write::Enqueue { session }).await?;
                let index = self.writer.write(Write::Claim { session }).await?;
                self.writer.write(Write::Complete { session, index }).await?;
                Ok(1)
            }
        }
    }
}

/// Turns of so many callers, on a server.
pub(super) fn on_server(
    name: &str,
    engine: Engine,
    limit: Limit,
    callers: usize,
    turn: Turn,
) -> Series {
    rate(name, move |cx| async move {
        let space = cx.space(engine).await?;
        let writers = space.server.writers(&space.name, limit, callers).await?;
        let of = writers.len();
        let workers = writers.into_iter().enumerate();
        let mut workers: Vec<_> =
            workers.map(|(n, writer)| Caller::new(writer, turn, n, of)).collect();
        match workers.len() {
            1 => one(cx.time, engine.stride(), workers.remove(0)).await,
            _ => many(cx.time, engine.stride(), workers).await,
        }
    })
}

/// A log on a server, as it is read without A2. The space goes with it.
pub(super) struct Log {
    pub(super) reads: Box<dyn Reads>,
    _space: Space,
}

impl Log {
    /// Of so many events, with a snapshot at this index.
    pub(super) async fn filled(
        cx: &Cx,
        engine: Engine,
        events: usize,
        snapshot: usize,
    ) -> Result<Self> {
        let space = cx.space(engine).await?;
        let snapshot = (i64::try_from(snapshot)?, folded());
        let reader = space.server.reader(&space.name, events, (snapshot.0, &snapshot.1));
        Ok(Self { reads: reader.await.context("filling a log")?, _space: space })
    }
}

/// A state of some 2 KB.
pub(super) fn folded() -> String {
    format!("[{}]", [PAYLOAD; 10].join(","))
}

/// What a read of a log is on this engine without A2.
pub(super) fn read_name(engine: Engine) -> &'static str {
    if engine == Engine::Redis { "XRANGE" } else { "SELECT" }
}
