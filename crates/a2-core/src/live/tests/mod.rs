//! A log, timers and presence rows in memory, as far as the streams ask for them.

mod hints;
mod presence;
mod presence_ends;
mod ring;
mod stream;
mod stream_ends;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt};

use crate::{
    Error, Event, EventId, EventType, Events, Index, Json, ReadRange, Result, SessionId, Timestamp,
};

use super::registry::lock;
use super::{Hub, LogSource};

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn index(index: u32) -> Index {
    Index::from(index)
}

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// The stream's next item; fails the test when none comes.
async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    let waited = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
    waited.expect("the stream gave nothing for a minute")
}

/// Polls once: none when the stream has nothing to give now.
fn now<S: Stream + Unpin>(stream: &mut S) -> Option<Option<S::Item>> {
    tokio::task::coop::unconstrained(stream.next()).now_or_never()
}

/// The code of the error that comes next.
async fn next_code<T: std::fmt::Debug, S>(stream: &mut S) -> &'static str
where
    S: Stream<Item = Result<T>> + Unpin,
{
    next(stream).await.expect("the stream ended").expect_err("no error").code()
}

/// One session's log. Appending to it tells nobody.
#[derive(Clone)]
struct TestLog(Arc<Mutex<Stored>>);

struct Stored {
    session: SessionId,
    /// What a read finds; index 1 first.
    events: Vec<Event>,
    clear_index: Index,
    /// What the next reads answer instead.
    answers: VecDeque<Result<Events>>,
    /// The ranges that were read.
    reads: Vec<(u64, usize)>,
    /// While set, reads do not answer.
    hangs: bool,
}

impl TestLog {
    fn new(name: &str) -> Self {
        Self(Arc::new(Mutex::new(Stored {
            session: session(name),
            events: Vec::new(),
            clear_index: Index::ZERO,
            answers: VecDeque::new(),
            reads: Vec::new(),
            hangs: false,
        })))
    }

    fn with(name: &str, events: usize) -> Self {
        let log = Self::new(name);
        log.append(events);
        log
    }

    fn put(&self, event_type: EventType, payload: Json) -> Event {
        let mut stored = lock(&self.0);
        let place = Index::new(stored.events.len() as u64 + 1).unwrap();
        let id = EventId::new(format!("e{place}")).unwrap();
        let session = stored.session.clone();
        let event = Event::new(session, place, id, event_type, payload, ms(1_000), None);
        stored.events.push(event.clone());
        event
    }

    fn append(&self, count: usize) -> Vec<Event> {
        let event_type = EventType::new("t").unwrap();
        (0..count).map(|_| self.put(event_type.clone(), Json::null())).collect()
    }

    fn append_payload(&self, bytes: usize) -> Vec<Event> {
        let payload = Json::from_serialize(&"x".repeat(bytes)).unwrap();
        vec![self.put(EventType::new("t").unwrap(), payload)]
    }

    fn clear(&self) -> Event {
        let marker = self.put(EventType::CLEAR, Json::null());
        lock(&self.0).clear_index = marker.index;
        marker
    }

    /// Forgets what lies above `head`, as a database restored from a backup does.
    fn truncate(&self, head: usize) {
        lock(&self.0).events.truncate(head);
    }

    fn answer(&self, answer: Result<Events>) {
        lock(&self.0).answers.push_back(answer);
    }

    fn hang(&self, hangs: bool) {
        lock(&self.0).hangs = hangs;
    }

    fn reads(&self) -> usize {
        lock(&self.0).reads.len()
    }

    fn ranges(&self) -> Vec<(u64, usize)> {
        lock(&self.0).reads.clone()
    }

    /// The page (after, after + limit], from the marker on.
    fn page(&self, range: ReadRange) -> Result<Events> {
        let mut stored = lock(&self.0);
        stored.reads.push((range.start_after().get(), range.max_events()));
        if let Some(answer) = stored.answers.pop_front() {
            return answer;
        }
        let from = range.start_after().max(stored.clear_index.previous()).get() as usize;
        let events = stored.events.iter().skip(from).take(range.max_events()).cloned().collect();
        let head = Index::new(stored.events.len() as u64).unwrap();
        Ok(Events::new(events, head, stored.clear_index))
    }
}

impl LogSource for TestLog {
    async fn read_log(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        assert_eq!(*session, lock(&self.0).session);
        let hangs = lock(&self.0).hangs;
        if hangs {
            std::future::pending::<()>().await;
        }
        self.page(range)
    }
}

fn unavailable() -> Error {
    Error::unavailable("down")
}

/// A hub, a log with `events` events, and its name.
fn fixture(name: &str, events: usize) -> (Hub, TestLog, SessionId) {
    (Hub::new(), TestLog::with(name, events), session(name))
}
