//! A session, as a program uses it through the runtime.

use std::fmt;
use std::sync::Arc;

use a2_core::{
    Append, Appended, Cause, Clear, DispatchedHead, Error, ErrorKind, EventId, EventStream,
    Events as Page, HeadRef, Index, ReadRange, Redrive, RedriveAction, Result, SessionId, StoreExt,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::Instrument;

use crate::inflight::Running;
use crate::runtime::Inner;
use crate::{IntoEvents, telemetry};

/// One session: to append to, to read, to schedule in, to clear. Cheap to clone.
///
/// From [`Runtime::session`](crate::Runtime::session), or in a handler from
/// [`Context::session`](crate::Context::session), where everything it writes carries the attempt.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<Inner>,
    pub(crate) id: SessionId,
    pub(crate) origin: Option<Arc<Origin>>,
}

/// The attempt that a handler's session belongs to.
pub(crate) struct Origin {
    pub(crate) cause: Cause,
    pub(crate) parent: EventId,
    pub(crate) running: Arc<Running>,
}

impl Session {
    pub(crate) fn new(inner: Arc<Inner>, id: SessionId, origin: Option<Arc<Origin>>) -> Self {
        Self { inner, id, origin }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Another session through the same runtime. It carries no attempt: an attempt is one session's.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the name breaks a rule.
    pub fn other<S>(&self, session: S) -> Result<Self>
    where
        S: TryInto<SessionId>,
        Error: From<S::Error>,
    {
        Ok(Self::new(Arc::clone(&self.inner), session.try_into()?, None))
    }

    /// Appends events, all or none, for every consumer of this program that takes them; their handlers
    /// are started at once where the runtime is. Await it.
    ///
    /// Events without an id get one: to append without fear of doing it twice, give an id, and append
    /// again whenever the answer was lost. In a handler prefer to *return* events: those are written
    /// with the completion, exactly once.
    ///
    /// # Errors
    /// As [`Store::append`](a2_core::Store::append). In a handler `SUPERSEDED_ATTEMPT` or
    /// `SESSION_CLEARED` once the attempt is no longer current.
    pub fn append(&self, events: impl IntoEvents) -> Appending<'_> {
        let append = events.into_events().and_then(|events| {
            let aimed = events.into_iter().map(|event| self.inner.registry.aim(event));
            let caused = aimed.map(|event| {
                event.map(|event| match &self.origin {
                    Some(origin) => event.cause(origin.cause.clone()),
                    None => event,
                })
            });
            let append = Append::new(caused.collect::<Result<Vec<_>>>()?)?;
            Ok(append.served(self.inner.registry.served.clone()))
        });
        let append = append.map(|append| match &self.origin {
            Some(origin) => append.origin_index(origin.cause.head.index),
            None => append,
        });
        Appending { session: self, append }
    }

    /// Reads a range of the log.
    ///
    /// # Errors
    /// As [`Store::read`](a2_core::Store::read).
    pub async fn read(&self, range: ReadRange) -> Result<Page> {
        self.inner.store.read(&self.id, range).await
    }

    /// The log's last index.
    ///
    /// # Errors
    /// As [`Store::read`](a2_core::Store::read).
    pub async fn head(&self) -> Result<Index> {
        self.inner.store.head(&self.id).await
    }

    /// Every event after `start_after`, then those that are appended.
    pub fn stream(&self, start_after: Index) -> EventStream {
        self.inner.store.stream(&self.id, start_after)
    }

    /// Starts the session's next lifetime: everything before is gone, handlers that work on it are
    /// cancelled, timers are dropped. Answers the index of the marker that the new lifetime starts with.
    ///
    /// In a handler this supersedes the handler's own attempt: what it returns is not appended.
    ///
    /// # Errors
    /// As [`Store::clear`](a2_core::Store::clear). In a handler `SUPERSEDED_ATTEMPT` once the attempt is
    /// no longer current.
    pub async fn clear(&self) -> Result<Index> {
        let clear = match &self.origin {
            Some(origin) => Clear::new().cause(origin.cause.clone()),
            None => Clear::new(),
        };
        let cleared = self.told(self.inner.store.clear(&self.id, clear).await)?;
        self.inner.inflight.cleared(&self.id, cleared.clear_index);
        Ok(cleared.clear_index)
    }

    /// The dead letters: events whose handlers failed for the last time.
    ///
    /// # Errors
    /// As [`Store::dead_letters`](a2_core::Store::dead_letters).
    pub async fn dead_letters(&self) -> Result<Vec<DispatchedHead>> {
        self.inner.store.all_dead_letters(&self.id).await
    }

    /// Gives a dead letter its whole budget again, and tries it at once. Answers whether it was one.
    ///
    /// # Errors
    /// As [`Store::redrive`](a2_core::Store::redrive).
    pub async fn retry(&self, dead: &HeadRef) -> Result<bool> {
        self.redrive(dead, RedriveAction::Retry).await
    }

    /// Takes a dead letter as done; its lane or log goes on. Answers whether it was one.
    ///
    /// # Errors
    /// As [`Store::redrive`](a2_core::Store::redrive).
    pub async fn skip(&self, dead: &HeadRef) -> Result<bool> {
        self.redrive(dead, RedriveAction::Skip).await
    }

    async fn redrive(&self, dead: &HeadRef, action: RedriveAction) -> Result<bool> {
        let redrive = Redrive::new(dead.clone(), action);
        let redrive = redrive.served(self.inner.registry.served.clone());
        let redriven = self.inner.store.redrive(&self.id, redrive).await?;
        if redriven.has_pending {
            self.inner.wake(&self.id);
        }
        Ok(redriven.redriven)
    }

    /// Takes note of an answer that says that the attempt is over.
    pub(crate) fn told<T>(&self, answer: Result<T>) -> Result<T> {
        if let (Err(error), Some(origin)) = (&answer, &self.origin)
            && matches!(
                error.kind(),
                ErrorKind::SupersededAttempt | ErrorKind::SessionCleared { .. }
            )
        {
            origin.running.lose();
        }
        answer
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("attempt", &self.origin.as_ref().map(|origin| &origin.cause))
            .finish_non_exhaustive()
    }
}

/// An append that is about to be made: `session.append(event).await`.
///
/// ```
/// # use a2_runtime::{Events, Runtime};
/// # use a2_store_memory::{MemoryStore, Index};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # enum Account { Opened }
/// # impl Events for Account {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> a2_core::Result<()> {
/// let runtime = Runtime::builder(MemoryStore::new()).build()?;
/// let account = runtime.session("account-7")?;
/// account.append(Account::Opened).expected_head(Index::ZERO).await?;
/// let again = account.append(Account::Opened).expected_head(Index::ZERO).await;
/// assert_eq!(again.unwrap_err().code(), "HEAD_CONFLICT");
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is appended until this is awaited"]
pub struct Appending<'a> {
    session: &'a Session,
    append: Result<Append>,
}

impl Appending<'_> {
    /// Appends only if this is the log's head (`HEAD_CONFLICT` otherwise).
    pub fn expected_head(mut self, head: Index) -> Self {
        self.append = self.append.map(|append| append.expected_head(head));
        self
    }

    /// Appends only if the session was not cleared after this index (`SESSION_CLEARED` otherwise).
    pub fn origin_index(mut self, origin: Index) -> Self {
        self.append = self.append.map(|append| append.origin_index(origin));
        self
    }

    async fn run(self) -> Result<Appended> {
        let (session, append) = (self.session, self.append?);
        let inner = &session.inner;
        let groups = inner.registry.groups_for(append.events());
        let span = telemetry::append_span(&session.id, append.events());
        let asked = inner.clock.now();
        let answer = inner.store.append(&session.id, append).instrument(span).await;
        let appended = session.told(answer)?;
        inner.telemetry.appended(appended.events.len(), inner.clock.now().since(asked));
        inner.own.note(&session.id);
        if appended.has_pending {
            inner.wake_groups(&session.id, groups);
        }
        Ok(appended)
    }
}

impl<'a> IntoFuture for Appending<'a> {
    type Output = Result<Appended>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.run().boxed()
    }
}

impl fmt::Debug for Appending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appending")
            .field("session", &self.session.id)
            .field("append", &self.append)
            .finish()
    }
}
