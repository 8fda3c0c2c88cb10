//! A session's events: those stored, then those that are appended.
//!
//! The stream keeps the index it has yielded and takes what follows: from the ring that the
//! session's streams share, else by reading a page of the log. It sits down with the hub before its
//! first read and looks and waits under one lock, so no event falls between the two.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::vec;

use futures_core::Stream;
use futures_core::future::BoxFuture;
use tokio::time::Sleep;

use crate::{Error, Event, EventStream, Events, Index, ReadRange, Result, SessionId, Store};

use super::hub::{Hub, LogTopic};
use super::polling::{BackOff, Polling, Ticker};
use super::registry::{Cooperative, Seat, Wants};
use super::ring::Chunk;

/// Most events of one read. It also bounds what a slow reader holds.
const PAGE: usize = 256;

/// Where a stream reads a log: every [`Store`] is one.
pub trait LogSource: Send + Sync {
    /// As [`Store::read`].
    fn read_log(
        &self,
        session: &SessionId,
        range: ReadRange,
    ) -> impl Future<Output = Result<Events>> + Send;
}

impl<S: Store> LogSource for S {
    async fn read_log(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        self.read(session, range).await
    }
}

/// The stream behind [`Store::stream`]: `source`'s events of `session` after `start_after`, live as
/// `hub` is told of them.
///
/// Retryable errors of the source are retried for ever, 50 ms to 1 s apart; any other is yielded
/// once and ends the stream. Polling and retries need a tokio runtime.
pub fn event_stream(
    source: impl LogSource + 'static,
    hub: &Hub,
    session: &SessionId,
    start_after: Index,
    polling: impl Into<Polling>,
) -> EventStream {
    EventStream::new(Cooperative(Follower {
        source: Arc::new(source),
        seat: hub.logs().listen(session),
        position: start_after,
        yielded: Index::ZERO,
        page: Vec::new().into_iter(),
        chunk: None,
        place: 0,
        stored_head: Index::ZERO,
        version: None,
        asked_head: Index::ZERO,
        ticker: Ticker::new(polling.into()),
        back_off: BackOff::new(),
        phase: Phase::Follow,
    }))
}

struct Follower<S> {
    source: Arc<S>,
    seat: Seat<SessionId, LogTopic>,
    /// What comes next lies after this.
    position: Index,
    /// The last index yielded, 0 before the first.
    yielded: Index,
    /// What comes next, as far as it was read.
    page: vec::IntoIter<Event>,
    /// What comes next as it was found in the ring: from `place` on.
    chunk: Option<Chunk>,
    place: usize,
    /// The log's head at the last read.
    stored_head: Index,
    /// The topic's version before the last read; none before the first.
    version: Option<u64>,
    /// The highest index told before the last read.
    asked_head: Index,
    ticker: Ticker,
    back_off: BackOff,
    phase: Phase,
}

enum Phase {
    Follow,
    Read(BoxFuture<'static, Result<Events>>),
    BackOff(Pin<Box<Sleep>>),
    End,
}

/// What to do about the next event.
enum Next {
    Ready,
    Read,
    Wait,
}

impl<S: LogSource + 'static> Follower<S> {
    /// The next event of the page or the chunk that is not below a clear that is known by now.
    fn pop(&mut self) -> Option<Event> {
        let clear_index = self.seat.topic().clear_index.load(Ordering::Acquire);
        if let Some(chunk) = &self.chunk {
            if let Some(event) = chunk.get(self.place)
                && event.index.get() >= clear_index
            {
                self.place += 1;
                return Some(event.clone());
            }
            self.chunk = None;
        }
        self.page.find(|event| event.index.get() >= clear_index)
    }

    /// Looks for the next event, and waits for it if there is none.
    fn look(&mut self, cx: &Context<'_>) -> Next {
        let topic = self.seat.topic();
        let mut state = topic.state();
        if self.version != Some(state.version) {
            return Next::Read;
        }
        if let Some((chunk, place)) = state.ring.find(self.position.next()) {
            (self.chunk, self.place) = (Some(chunk), place);
            return Next::Ready;
        }
        // A head that was told before the last read and not found by it is not asked for again.
        let told = state.head > self.position && state.head > self.asked_head;
        if told || self.stored_head > self.position {
            return Next::Read;
        }
        let old = state.waiters.put(self.seat.slot(), cx.waker(), Wants::Changes);
        if state.waiters.all_wait() {
            state.ring.clear();
        }
        drop(state);
        drop(old);
        // Gives back the page's memory.
        self.page = Vec::new().into_iter();
        Next::Wait
    }

    fn read(&mut self) -> BoxFuture<'static, Result<Events>> {
        let state = self.seat.topic().state();
        self.version = Some(state.version);
        self.asked_head = state.head;
        drop(state);
        let (source, session) = (Arc::clone(&self.source), self.seat.key().clone());
        let range = ReadRange::after(self.position).limit(PAGE);
        Box::pin(async move { source.read_log(&session, range?).await })
    }

    /// Takes in a page, which follows the position or starts at a clear marker after it.
    fn accept(&mut self, page: Events) -> Result<()> {
        let corrupt =
            |index, reason: String| Err(Error::corrupt(Some(self.seat.key()), Some(index), reason));
        if page.head < self.yielded {
            let reason = format!("the log's head is {}, this index was streamed", page.head);
            return corrupt(self.yielded, reason);
        }
        let mut expected = self.position.next().max(page.clear_index);
        for event in &page.events {
            if event.index != expected {
                return corrupt(expected, format!("index {} follows in its place", event.index));
            }
            expected = expected.next();
        }
        if page.events.is_empty() && page.head > self.position {
            return corrupt(expected, format!("missing, the log's head is {}", page.head));
        }
        self.stored_head = page.head;
        self.page = page.events.into_iter();
        Ok(())
    }

    fn end(&mut self, error: Error) -> Poll<Option<Result<Event>>> {
        self.phase = Phase::End;
        (self.chunk, self.page) = (None, Vec::new().into_iter());
        Poll::Ready(Some(Err(error)))
    }
}

impl<S: LogSource + 'static> Stream for Follower<S> {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if matches!(this.phase, Phase::End) {
            return Poll::Ready(None);
        }
        loop {
            if this.seat.is_closed() {
                return this.end(Error::closed());
            }
            match &mut this.phase {
                Phase::Follow => {
                    if let Some(event) = this.pop() {
                        this.position = event.index;
                        this.yielded = event.index;
                        this.ticker.hurry();
                        return Poll::Ready(Some(Ok(event)));
                    }
                    match this.look(cx) {
                        Next::Ready => {}
                        Next::Read => this.phase = Phase::Read(this.read()),
                        Next::Wait => {
                            // Closing may have come before the waker was put down.
                            if this.seat.is_closed() {
                                continue;
                            }
                            ready!(this.ticker.poll_tick(cx));
                            this.phase = Phase::Read(this.read());
                        }
                    }
                }
                Phase::Read(read) => match read.as_mut().poll(cx) {
                    Poll::Ready(Ok(page)) => {
                        this.back_off.reset();
                        this.phase = Phase::Follow;
                        if let Err(error) = this.accept(page) {
                            return this.end(error);
                        }
                    }
                    Poll::Ready(Err(error)) if error.is_retryable() => {
                        this.phase = Phase::BackOff(Box::pin(this.back_off.sleep()));
                    }
                    Poll::Ready(Err(error)) => return this.end(error),
                    Poll::Pending => {
                        this.seat.wait_for_close(cx);
                        if this.seat.is_closed() {
                            continue;
                        }
                        return Poll::Pending;
                    }
                },
                Phase::BackOff(sleep) => {
                    if sleep.as_mut().poll(cx).is_ready() {
                        this.phase = Phase::Read(this.read());
                        continue;
                    }
                    this.seat.wait_for_close(cx);
                    if this.seat.is_closed() {
                        continue;
                    }
                    return Poll::Pending;
                }
                Phase::End => return Poll::Ready(None),
            }
        }
    }
}
