//! The end of a history: what is left is found by passes alone and worked off, then everything is read.
#![allow(clippy::unwrap_used, reason = "the workload's own requests are within every limit")]

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use a2_core::{
    ClaimAvailable, CompleteAttempt, CursorKey, FireTimers, Index, Page, PendingPage, ReadRange,
    Redrive, RedriveAction, Result, SessionId, Store, Timers, WakeLog,
};
use futures_util::StreamExt;

use super::note::Note;
use super::recorded::Recorded;
use super::work::{Time, Workload, logs, served};

/// The number of who drains.
pub(super) const LAST: u32 = u32::MAX;

struct Drain<'a> {
    shared: &'a Workload,
    store: Recorded<Arc<dyn Timers>>,
    deadline: Instant,
}

type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

impl Workload {
    /// Works off what is left and reads everything. Every worker has ended, and the store answers again.
    ///
    /// # Errors
    /// It is not done within that time, or something was refused: what.
    pub async fn drain(&self, store: Arc<dyn Timers>, within: Duration) -> Result<(), String> {
        let store = Recorded::new(store, &self.recorder, LAST);
        let deadline = Instant::now() + within;
        let drain = Drain { shared: self, store, deadline };
        self.recorder.take(Note::Draining);
        while !drain.round().await? {
            // Every lease and every timer of the workers is over then.
            let millis = if matches!(self.time, Time::Manual(_)) { 60_000 } else { 20 };
            self.pass(millis).await;
        }
        self.recorder.take(Note::Settled);
        drain.read_all().await
    }

    /// Follows a session from its beginning, until all that is in it was given; then it waits until it is
    /// dropped.
    pub async fn follow(&self, session: usize, store: Arc<dyn Timers>) {
        let Some(name) = self.sessions.get(session) else { return };
        let store = Recorded::new(store, &self.recorder, LAST);
        let mut stream = store.stream(name, Index::ZERO);
        let followed = self.followed.get(session);
        while let Some(Ok(event)) = stream.next().await {
            if let Some(followed) = followed {
                followed.store(event.index.get(), std::sync::atomic::Ordering::Relaxed);
            }
        }
    }
}

impl Drain<'_> {
    async fn insist<'f, T>(&self, what: &str, call: impl Fn() -> Call<'f, T>) -> Result<T, String> {
        loop {
            match call().await {
                Ok(done) => return Ok(done),
                Err(error) if !error.is_retryable() => {
                    return Err(format!("{what} is refused: {error}"));
                }
                Err(error) if Instant::now() > self.deadline => {
                    return Err(format!("{what} is not answered: {error}"));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Whether there was nothing to do.
    async fn round(&self) -> Result<bool, String> {
        if Instant::now() > self.deadline {
            return Err("not all work could be done".to_owned());
        }
        let mut idle = true;
        for session in &self.shared.sessions {
            for (consumer, log) in logs() {
                let wake = WakeLog::new(consumer.as_str(), log).unwrap();
                self.insist("a wake", || self.store.wake_log(session, wake.clone())).await?;
            }
            let fire = FireTimers::new().served(served(true));
            let fire = || self.store.fire_timers(session, fire.clone());
            idle &= self.insist("firing", fire).await?.events.is_empty();
            idle &= self.redrive_all(session).await?;
        }
        let pending = self.pass().await?;
        idle &= pending.is_empty();
        for session in &pending {
            self.work_off(session).await?;
        }
        Ok(idle)
    }

    async fn redrive_all(&self, session: &SessionId) -> Result<bool, String> {
        let list = || self.store.dead_letters(session, Page::first());
        let dead = self.insist("a list of dead letters", list).await?.heads;
        for head in &dead {
            let retries = head.head.index.get() % 2 == 0;
            let action = if retries { RedriveAction::Retry } else { RedriveAction::Skip };
            let redrive = Redrive::new(head.head.clone(), action).served(served(true));
            let call = || self.store.redrive(session, redrive.clone());
            let _ = self.insist("a redrive", call).await?;
        }
        Ok(dead.is_empty())
    }

    /// The history's sessions that a pass finds.
    async fn pass(&self) -> Result<BTreeSet<SessionId>, String> {
        let (mut found, mut page) = (BTreeSet::new(), Page::first());
        loop {
            let request = PendingPage::new(served(true)).page(page.clone());
            let call = || self.store.pending(request.clone());
            let listed = self.insist("a pass", call).await?;
            let names = listed.sessions.into_iter().map(|pending| pending.session);
            found.extend(names.filter(|name| self.shared.sessions.contains(name)));
            match listed.next {
                Some(token) => page = page.and_then(token),
                None => return Ok(found),
            }
        }
    }

    async fn work_off(&self, session: &SessionId) -> Result<(), String> {
        loop {
            let claim = ClaimAvailable::new("last", Duration::from_secs(20)).unwrap();
            let claim = claim.served(served(true)).run(50).unwrap();
            let call = || self.store.claim_available(session, claim.clone());
            let heads = self.insist("a claim", call).await?.into_heads();
            if heads.is_empty() {
                return Ok(());
            }
            for head in heads.iter().filter(|head| !head.state.is_dead()) {
                let mut done = CompleteAttempt::new(head.head.clone(), head.attempt());
                if let CursorKey::Log(_) = head.head.cursor {
                    done = done.through(head.run_through()).unwrap();
                }
                let done = done.served(served(true));
                let call = || self.store.complete_attempt(session, done.clone());
                let _ = self.insist("a completion", call).await?;
            }
        }
    }

    async fn read_all(&self) -> Result<(), String> {
        for (place, session) in self.shared.sessions.iter().enumerate() {
            let mut after = Index::ZERO;
            let head = loop {
                let range = ReadRange::after(after);
                let read = || self.store.read(session, range.clone());
                let page = self.insist("a read", read).await?;
                after = page.events.last().map_or(page.head, |event| event.index);
                if after >= page.head {
                    break page.head;
                }
            };
            let mut page = Page::first();
            loop {
                let list = || self.store.cursors(session, page.clone());
                match self.insist("a list of cursors", list).await?.next {
                    Some(token) => page = page.and_then(token),
                    None => break,
                }
            }
            let list = || self.store.timers(session, Page::first());
            self.insist("a list of timers", list).await?;
            self.stream_is_up_to(place, head).await;
        }
        Ok(())
    }

    /// Waits for the stream that follows the session, if any does; that it came is checked later.
    async fn stream_is_up_to(&self, session: usize, head: Index) {
        let Some(followed) = self.shared.followed.get(session) else { return };
        while followed.load(std::sync::atomic::Ordering::Relaxed) < head.get()
            && Instant::now() < self.deadline
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
