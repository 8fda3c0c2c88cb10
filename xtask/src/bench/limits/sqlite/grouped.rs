//! Several callers behind one writer: what waits is committed together.

use std::thread::JoinHandle;

use a2_core::async_trait;
use anyhow::{Context, Result};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use super::{Rows, Write, open};
use crate::bench::limits::Writes;
use crate::bench::measure::Cx;
use crate::bench::stores::Durability;

/// Most writes of one group.
const GROUP: usize = 64;

type Job = (Write, oneshot::Sender<rusqlite::Result<i64>>);

/// The writer's thread and the way to it. Clones share it; the file goes with the last.
#[derive(Clone)]
pub(crate) struct Grouped {
    jobs: mpsc::Sender<Job>,
    _writer: std::sync::Arc<Writer>,
}

struct Writer {
    thread: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Grouped {
    /// In a fresh file.
    pub(crate) fn open<R: Rows>(cx: &Cx, durability: Durability) -> Result<Self> {
        let folder = cx.folder()?;
        let connection = open(folder.path(), durability)?;
        let rows = R::create(&connection)?;
        let (jobs, queue) = mpsc::channel(256);
        let thread = std::thread::Builder::new()
            .name("limit-writer".to_owned())
            .spawn(move || write_groups(&connection, rows, queue))?;
        let writer = Writer { thread: Some(thread), _folder: folder };
        Ok(Self { jobs, _writer: std::sync::Arc::new(writer) })
    }
}

#[async_trait]
impl Writes for Grouped {
    /// Answered when its group is committed.
    async fn write(&mut self, write: Write) -> Result<i64> {
        let (answer, answered) = oneshot::channel();
        self.jobs.send((write, answer)).await.context("the writer is gone")?;
        Ok(answered.await.context("the writer is gone")??)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The channel is closed by now: the thread ends with what it holds.
        self.thread.take().map(JoinHandle::join);
    }
}

fn write_groups<R: Rows>(connection: &Connection, mut rows: R, mut queue: mpsc::Receiver<Job>) {
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
        let (writes, answers): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        // Nothing fails here but the disk: then the whole group is told nothing and ends.
        let Ok(results) = commit(connection, &mut rows, &writes) else { return };
        for (answer, result) in answers.into_iter().zip(results) {
            drop(answer.send(Ok(result)));
        }
    }
}

fn commit<R: Rows>(c: &Connection, rows: &mut R, writes: &[Write]) -> rusqlite::Result<Vec<i64>> {
    c.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let results = writes.iter().map(|write| write.run(rows, c)).collect::<rusqlite::Result<_>>()?;
    c.prepare_cached("COMMIT")?.execute([])?;
    Ok(results)
}
