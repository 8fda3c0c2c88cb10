//! What a case gets: its store, its clock, fresh names, deadlines.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use a2_core::{
    EventId, Index, ManualClock, Namespace, Presence, SessionId, Store, StoreLimits, Timers,
    Timestamp,
};

use crate::factory::{Closer, Limiter, Loser, Opener};
use crate::trace::{Trace, Traced};
use crate::{BoxError, Subject};

/// When the manual clock starts: 2023-11-14T22:13:20Z.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A case's surroundings. Clones are the same store.
#[derive(Clone)]
pub struct Cx {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
}

struct Shared {
    clock: Option<ManualClock>,
    stretch: u32,
    trace: Arc<Trace>,
}

struct Handle {
    store: Traced<Arc<dyn Store>>,
    timers: Option<Traced<Arc<dyn Timers>>>,
    presence: Option<Traced<Arc<dyn Presence>>>,
    another: Option<Opener>,
    limited: Option<Limiter>,
    close: Option<Closer>,
    lose_event: Option<Loser>,
    // Dropped last, after the stores above.
    _guards: Vec<Box<dyn Any + Send + Sync>>,
}

impl Handle {
    fn new(subject: Subject, trace: &Arc<Trace>) -> Arc<Self> {
        let Subject { store, timers, presence, another, limited, close, lose_event, guards } =
            subject;
        Arc::new(Self {
            store: Traced::new(store, trace),
            timers: timers.map(|timers| Traced::new(timers, trace)),
            presence: presence.map(|presence| Traced::new(presence, trace)),
            another,
            limited,
            close,
            lose_event,
            _guards: guards,
        })
    }
}

impl Cx {
    pub(crate) fn new(
        subject: Subject,
        clock: Option<ManualClock>,
        stretch: u32,
        trace: Arc<Trace>,
    ) -> Self {
        let handle = Handle::new(subject, &trace);
        Self { shared: Arc::new(Shared { clock, stretch, trace }), handle }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &self.handle.store
    }

    /// The store's timers; the case must say that it needs them.
    ///
    /// # Panics
    /// When the store has none.
    #[must_use]
    pub fn timers(&self) -> &dyn Timers {
        match &self.handle.timers {
            Some(timers) => timers,
            None => panic!("the case uses timers without `needs(Timers)`"),
        }
    }

    /// The store's presence; the case must say that it needs it.
    ///
    /// # Panics
    /// When the store has none.
    #[must_use]
    pub fn presence(&self) -> &dyn Presence {
        match &self.handle.presence {
            Some(presence) => presence,
            None => panic!("the case uses presence without `needs(Presence)`"),
        }
    }

    /// Another handle on the same data with the same clock; the case must say that it needs one.
    ///
    /// # Panics
    /// When there is none, or it cannot be opened.
    pub async fn another(&self) -> Self {
        let Some(open) = &self.handle.another else {
            panic!("the case uses a second handle without `needs(Another)`");
        };
        self.beside(open().await)
    }

    /// Another handle on the same data with the same clock and these limits; the case must say that it
    /// needs them.
    ///
    /// # Panics
    /// When there are none, or it cannot be opened.
    pub async fn limited(&self, limits: StoreLimits) -> Self {
        let Some(open) = &self.handle.limited else {
            panic!("the case lowers limits without `needs(Limits)`");
        };
        self.beside(open(limits).await)
    }

    fn beside(&self, opened: Result<Subject, BoxError>) -> Self {
        match opened {
            Ok(subject) => {
                let handle = Handle::new(subject, &self.shared.trace);
                Self { shared: Arc::clone(&self.shared), handle }
            }
            Err(error) => panic!("a second handle could not be opened: {}", chain(&error)),
        }
    }

    /// Closes the store; the case must say that it needs that.
    ///
    /// # Panics
    /// When it cannot be closed.
    pub async fn close(&self) {
        let Some(close) = &self.handle.close else {
            panic!("the case closes the store without `needs(Close)`");
        };
        if let Err(error) = close().await {
            panic!("the store could not be closed: {}", chain(&error));
        }
    }

    /// Takes an event out of what is stored; the case must say that it needs that.
    ///
    /// # Panics
    /// When there is no way.
    pub async fn lose_event(&self, session: &SessionId, index: Index) {
        let Some(lose) = &self.handle.lose_event else {
            panic!("the case damages the store without `needs(Damage)`");
        };
        if let Err(error) = lose(session.clone(), index).await {
            panic!("the event could not be taken out: {}", chain(&error));
        }
    }

    /// A session nobody else uses; another one with each call.
    #[must_use]
    pub fn session(&self, name: &str) -> SessionId {
        valid(SessionId::new(unique(name)))
    }

    /// A presence namespace nobody else uses; another one with each call.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Namespace {
        valid(Namespace::new(unique(name)))
    }

    /// A name nobody else uses, for cases that make their own.
    #[must_use]
    pub fn unique(&self, name: &str) -> String {
        unique(name)
    }

    /// The injected clock. It starts at 1,700,000,000,000 ms.
    ///
    /// # Panics
    /// When the case runs with the store's real clock.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        match &self.shared.clock {
            Some(clock) => clock,
            None => panic!("the case uses the manual clock in a live run"),
        }
    }

    /// Whether the store keeps its real clock.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.shared.clock.is_none()
    }

    /// Lets this much time pass by the store's clock: the manual clock is moved; in a live run it
    /// takes that long.
    pub async fn pass(&self, time: Duration) {
        match &self.shared.clock {
            Some(clock) => clock.advance(time),
            // A little more than asked for: the store's clock is not this one.
            None => tokio::time::sleep(time + Duration::from_millis(10)).await,
        }
    }

    /// What `future` gives, if it does so within `deadline` of real time (stretched on slow
    /// servers).
    ///
    /// # Panics
    /// When the deadline passes.
    pub async fn within<T>(&self, deadline: Duration, future: impl Future<Output = T>) -> T {
        match tokio::time::timeout(deadline * self.shared.stretch, future).await {
            Ok(value) => value,
            Err(_) => panic!("not done within {:?}", deadline * self.shared.stretch),
        }
    }

    /// Asks again and again until `ask` gives a value; ten seconds of real time at most (stretched
    /// on slow servers).
    ///
    /// # Panics
    /// When the deadline passes; `what` says what did not happen.
    pub async fn eventually<T, Fut>(&self, what: &str, mut ask: impl FnMut() -> Fut) -> T
    where
        Fut: Future<Output = Option<T>>,
    {
        let deadline = Duration::from_secs(10) * self.shared.stretch;
        let asked = tokio::time::timeout(deadline, async {
            loop {
                if let Some(value) = ask().await {
                    return value;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        match asked.await {
            Ok(value) => value,
            Err(_) => panic!("{what}: not within {deadline:?}"),
        }
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("live", &self.is_live()).finish_non_exhaustive()
    }
}

fn unique(name: &str) -> String {
    format!("{name}-{}", EventId::generate())
}

fn valid<T>(name: a2_core::Result<T>) -> T {
    match name {
        Ok(name) => name,
        Err(error) => panic!("the case's name: {error}"),
    }
}

/// An error with its sources on one line.
pub(crate) fn chain(error: &BoxError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
