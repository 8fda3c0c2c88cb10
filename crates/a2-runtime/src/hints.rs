//! Hints: a session may have work.
//!
//! A hint does not say what happened, nor who did it. What this process appended itself it works on
//! without being told, so the hints of its own appends are put off for a moment and looked at together:
//! others may have appended there as well.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2_core::SessionId;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::runtime::Inner;

/// After the hints ended, or failed.
const REST: Duration = Duration::from_secs(1);
/// How long a hint counts as that of an own append, and is put off.
const OWN: Duration = Duration::from_millis(250);
/// How many sessions are looked at at the same time because of hints.
const AT_ONCE: usize = 16;
/// How many sessions' own appends are remembered at most.
const MOST: usize = 10_000;

/// Sessions that this process appended to lately.
#[derive(Default)]
pub(crate) struct OwnAppends(Mutex<HashMap<SessionId, Instant>>);

impl OwnAppends {
    pub(crate) fn note(&self, session: &SessionId) {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= MOST {
            own.retain(|_, at| at.elapsed() < OWN);
        }
        if own.len() < MOST {
            own.insert(session.clone(), Instant::now());
        }
    }

    fn is_recent(&self, session: &SessionId) -> bool {
        let own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own.get(session).is_some_and(|at| at.elapsed() < OWN)
    }
}

/// Hints that were put off, in order of their times.
#[derive(Default)]
struct PutOff {
    queue: VecDeque<(Instant, SessionId)>,
    sessions: HashMap<SessionId, ()>,
}

impl PutOff {
    fn push(&mut self, session: SessionId) {
        if self.sessions.len() < MOST && self.sessions.insert(session.clone(), ()).is_none() {
            self.queue.push_back((Instant::now() + OWN, session));
        }
    }

    fn pop(&mut self) -> Option<SessionId> {
        let (_, session) = self.queue.pop_front()?;
        self.sessions.remove(&session);
        Some(session)
    }

    async fn due(&self) {
        match self.queue.front() {
            Some((at, _)) => tokio::time::sleep_until(*at).await,
            None => std::future::pending().await,
        }
    }
}

impl Inner {
    /// Follows the store's hints.
    pub(crate) async fn run_hints(self: Arc<Self>) {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let mut put_off = PutOff::default();
        loop {
            let mut hints = self.store.watch_pending(self.registry.served.clone());
            loop {
                let session = tokio::select! {
                    () = self.stopping.cancelled() => return,
                    () = put_off.due() => put_off.pop(),
                    hint = hints.next() => match hint {
                        Some(Ok(hint)) if self.own.is_recent(&hint.session) => {
                            put_off.push(hint.session);
                            None
                        }
                        Some(Ok(hint)) => Some(hint.session),
                        Some(Err(error)) => {
                            tracing::warn!(%error, "hints failed");
                            self.end_if_closed(&error);
                            break;
                        }
                        None => break,
                    },
                };
                let Some(session) = session else { continue };
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let inner = Arc::clone(&self);
                self.spawn(async move {
                    inner.look(&session).await;
                    drop(place);
                });
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = tokio::time::sleep(REST) => {}
            }
        }
    }

    /// Looks what there is to do in a session, whoever made it.
    pub(crate) async fn look(self: &Arc<Self>, session: &SessionId) {
        if crate::pass::is_own(session) {
            return;
        }
        // Work that stands there already does not wait for the rest.
        self.wake(session);
        self.fire(session).await;
        let mut moved = false;
        for (consumer, log) in self.registry.served.declarations() {
            match self.wake_log(session, consumer, log).await {
                Ok(has_head) => moved |= has_head,
                Err(error) => tracing::warn!(%session, %consumer, %error, "a log was not woken"),
            }
        }
        if moved {
            self.wake(session);
        }
    }
}
