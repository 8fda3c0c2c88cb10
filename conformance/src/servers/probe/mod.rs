//! The few words of each server's protocol that tell whether it answers: no client library is
//! needed for them.

pub(super) mod address;
pub(super) mod postgres;
pub(super) mod redis;

use std::io;
use std::time::{Duration, Instant};

/// How long a server that answers may take for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a server may take until it answers.
pub(super) const START: Duration = Duration::from_secs(60);

/// The answer, or an error when it does not come in time.
async fn in_time<T>(answer: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer")),
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Asks until it is answered, or for as long as a start may take.
pub(super) async fn until_ready<T, F>(probe: impl Fn() -> F) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let deadline = Instant::now() + START;
    loop {
        match probe().await {
            Ok(ready) => return Ok(ready),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}
