//! Passes over all sessions, for programs with log consumers: what others appended without declaring
//! the log, and old sessions that a new log is to read from their beginning.
//!
//! How far a pass got is kept in the store, in a session of the runtime's own, as snapshots of what is
//! no reducer's: a process that starts goes on where the last one was.

use std::sync::Arc;
use std::time::Duration;

use a2_core::{
    Append, Consumer, ErrorKind, Index, Json, LogDeclaration, NewEvent, Page, PageToken,
    PutSnapshots, ReadState, ReducerName, Result, Served, SessionId, SnapshotWrite, WakeLog,
};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock;
use crate::runtime::Inner;
use crate::sweep::Rounds;

/// The session that the runtime keeps its own things in. No consumer reads it.
const OWN: &str = "a2.runtime";
/// How many logs are woken at the same time.
const AT_ONCE: usize = 8;
/// Between two pages: a pass is to be felt by nobody.
const REST: Duration = Duration::from_millis(20);

/// Whether this is the runtime's own session.
pub(crate) fn is_own(session: &SessionId) -> bool {
    session.as_str() == OWN
}

/// How far a log's pass got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    consumer: String,
    log: String,
    /// Where to go on; none at the beginning.
    token: Option<PageToken>,
    /// How many passes were finished.
    finished: u64,
}

/// Where the progress of a log's passes is kept.
struct Keeper<'a> {
    inner: &'a Inner,
    session: SessionId,
    name: ReducerName,
    index: Index,
}

impl<'a> Keeper<'a> {
    async fn new(inner: &'a Inner, consumer: &Consumer, log: &LogDeclaration) -> Result<Self> {
        let session = SessionId::new(OWN)?;
        // Names may be as long as a reducer's, so both together are not its name.
        let both = [consumer.as_str(), log.name().as_str()].join("\0");
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, both.as_bytes());
        // A snapshot needs an event to be of.
        let event = NewEvent::new(OWN, &())?.id(OWN)?;
        let append = Append::one(event)?.served(Served::only([])?);
        let appended = inner.store.append(&session, append).await?;
        let index = appended.events.first().map_or(Index::ZERO, |event| event.index);
        Ok(Self { inner, session, name: ReducerName::new(format!("a2.pass@{id}"))?, index })
    }

    async fn load(&self) -> Result<Progress> {
        let latest = ReadState::latest();
        let read = self.inner.store.read_state(&self.session, &self.name, latest).await?;
        Ok(read.snapshot.and_then(|snapshot| snapshot.state.deserialize().ok()).unwrap_or_default())
    }

    async fn save(&self, progress: &Progress) -> Result<()> {
        let write = SnapshotWrite::new(self.index, Json::from_serialize(progress)?);
        let put = PutSnapshots::new([write])?;
        self.inner.store.put_snapshots(&self.session, &self.name, put).await?;
        Ok(())
    }
}

/// Whether an error is none of one session's.
fn fails_all(error: &a2_core::Error) -> bool {
    error.is_retryable()
        || matches!(error.kind(), ErrorKind::Closed | ErrorKind::StoreNotConfigured { .. })
}

impl Inner {
    /// Makes one pass after the other, with long pauses.
    pub(crate) async fn run_passes(self: Arc<Self>) {
        let logs: Vec<_> =
            self.registry.served.declarations().map(|(c, l)| (c.clone(), l.clone())).collect();
        if logs.is_empty() {
            return;
        }
        let mut rounds = Rounds::new(self.options.pass_every);
        loop {
            for (consumer, log) in &logs {
                let mut resumed = true;
                // Who went on where another one was has not seen what came before that.
                while resumed && !self.stopping.is_cancelled() {
                    resumed = match self.pass(consumer, log).await {
                        Ok(resumed) => resumed,
                        Err(error) => {
                            tracing::warn!(%consumer, %error, "a pass was not finished");
                            if self.end_if_closed(&error) {
                                return;
                            }
                            false
                        }
                    };
                }
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = clock::sleep(&self.clock, rounds.next()) => {}
            }
        }
    }

    /// One pass; answers whether it was one that another had begun.
    async fn pass(self: &Arc<Self>, consumer: &Consumer, log: &LogDeclaration) -> Result<bool> {
        let keeper = Keeper::new(self, consumer, log).await?;
        let mut progress = keeper.load().await?;
        let resumed = progress.token.is_some();
        progress.consumer = consumer.to_string();
        progress.log = log.name().to_string();
        while !self.stopping.is_cancelled() {
            let page = progress.token.take().map_or_else(Page::first, Page::at);
            let sessions = match self.store.sessions(page).await {
                // Another release of the store wrote the token.
                Err(error) if matches!(error.kind(), ErrorKind::InvalidInput { .. }) => {
                    self.store.sessions(Page::first()).await?
                }
                answer => answer?,
            };
            let woken = stream::iter(sessions.sessions.into_iter().map(|found| found.session))
                .filter(|session| std::future::ready(!is_own(session)))
                .map(|session| async move {
                    match self.wake_log(&session, consumer, log).await {
                        Ok(true) => self.wake(&session),
                        Ok(false) => {}
                        // One session that cannot be read keeps no other from being found.
                        Err(error) if !fails_all(&error) => {
                            tracing::error!(%session, %consumer, %error, "a log was not woken");
                        }
                        Err(error) => return Err(error),
                    }
                    Ok::<_, a2_core::Error>(())
                })
                .buffer_unordered(AT_ONCE)
                .collect::<Vec<_>>()
                .await;
            // A page is done when all of it is.
            woken.into_iter().collect::<Result<()>>()?;
            progress.token = sessions.next;
            if progress.token.is_none() {
                progress.finished += 1;
            }
            keeper.save(&progress).await?;
            if progress.token.is_none() {
                tracing::debug!(%consumer, "a pass over all sessions is finished");
                return Ok(resumed);
            }
            tokio::time::sleep(REST).await;
        }
        Ok(resumed)
    }

    /// Brings a log up to date; answers whether it has something to work on.
    pub(crate) async fn wake_log(
        &self,
        session: &SessionId,
        consumer: &Consumer,
        log: &LogDeclaration,
    ) -> Result<bool> {
        let wake = WakeLog::new(consumer, log.clone())?;
        let cursor = self.store.wake_log(session, wake).await?.cursor;
        Ok(cursor.head.is_some() && !cursor.state.is_dead())
    }
}
