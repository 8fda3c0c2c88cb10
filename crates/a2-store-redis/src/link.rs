//! One client of the driver: a task that has a connection to each server, and connects again.
//!
//! The driver's clients do not end by being dropped: a link ends the task that it began.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::ClientLike;
use fred::types::ConnectHandle;
use futures_util::FutureExt;
use tokio::task::JoinError;
use tokio::time::Instant;

/// Waits between looks at whether it is connected.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(50);
/// How long the answers that are on their way may take when it is closed.
const CLOSING: Duration = Duration::from_secs(2);
/// How long a new connection is given before another is made.
const RENEWED: Duration = Duration::from_secs(1);

/// A client and its task.
#[derive(Debug)]
pub(crate) struct Link {
    client: Client,
    state: Mutex<State>,
    renewing: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct State {
    task: Option<Task>,
    is_closed: bool,
}

/// What is found of the task.
enum Found {
    Runs,
    /// It was begun just now.
    Begun,
    Ended(Task),
}

impl Link {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, state: Mutex::default(), renewing: Arc::default() }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether it is connected and not closed, as far as is known.
    pub(crate) fn is_ready(&self) -> bool {
        let state = self.state();
        let runs = state.task.as_ref().is_some_and(|task| !task.0.is_finished());
        runs && !state.is_closed && self.client.is_connected()
    }

    /// Waits until it is connected; begins to connect if nobody has.
    ///
    /// # Errors
    /// It cannot connect, or not by then: nothing was sent.
    pub(crate) async fn ready(&self, until: Instant) -> Result<(), DriverError> {
        let (mut wait, mut has_begun) = (FIRST_LOOK, false);
        loop {
            match self.look(!has_begun)? {
                Found::Runs if self.client.is_connected() => return Ok(()),
                Found::Runs => {}
                Found::Begun => has_begun = true,
                Found::Ended(task) => return Err(why(task.await)),
            }
            if Instant::now() >= until {
                return Err(DriverError::new(DriverKind::Backpressure, "not connected in time"));
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_LOOK);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, begins: bool) -> Result<Found, DriverError> {
        let mut state = self.state();
        if state.is_closed {
            return Err(DriverError::new(DriverKind::Backpressure, "the store is closed"));
        }
        match state.task.take_if(|task| task.0.is_finished()) {
            Some(task) if !begins => Ok(Found::Ended(task)),
            None if state.task.is_some() => Ok(Found::Runs),
            _ => {
                state.task = Some(Task::begin(&self.client));
                Ok(Found::Begun)
            }
        }
    }

    /// Connects anew beside the work that goes on: what this connection leads to is not what it was.
    pub(crate) fn renew(&self) {
        if self.renewing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (client, renewing) = (self.client.clone(), Arc::clone(&self.renewing));
        tokio::spawn(async move {
            // Should it fail, the driver tries again by itself.
            let _ = tokio::time::timeout(RENEWED, client.force_reconnection()).await;
            tokio::time::sleep(RENEWED).await;
            renewing.store(false, Ordering::Release);
        });
    }

    /// Waits for the answers that are on their way, and closes the connections.
    pub(crate) async fn close(&self) {
        let task = {
            let mut state = self.state();
            state.is_closed = true;
            state.task.take()
        };
        if task.is_some() && self.client.is_connected() {
            // A server that does not answer is left without a farewell.
            let _ = tokio::time::timeout(CLOSING, self.client.quit()).await;
        }
        if let Some(task) = task {
            task.0.abort();
            // The connections are closed once the task is gone.
            let _ = task.await;
        }
    }
}

/// What a client does, until this is dropped.
#[derive(Debug)]
pub(crate) struct Task(ConnectHandle);

impl Task {
    /// Begins to connect.
    pub(crate) fn begin(client: &impl ClientLike) -> Self {
        Self(client.connect())
    }

    /// Waits until the client is connected.
    ///
    /// # Errors
    /// It cannot connect.
    pub(crate) async fn connected(&mut self, client: &impl ClientLike) -> Result<(), DriverError> {
        let mut wait = FIRST_LOOK;
        while !client.is_connected() {
            tokio::select! {
                ended = &mut *self => return Err(why(ended)),
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(LAST_LOOK);
        }
        Ok(())
    }
}

/// Resolves when the client has ended.
impl Future for Task {
    type Output = Result<Result<(), DriverError>, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_unpin(cx)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a task ended that was to connect.
fn why(ended: Result<Result<(), DriverError>, JoinError>) -> DriverError {
    match ended {
        Ok(Err(error)) => error,
        Ok(Ok(())) => DriverError::new(DriverKind::Backpressure, "the connection was closed"),
        Err(error) => DriverError::new(DriverKind::Backpressure, error.to_string()),
    }
}
