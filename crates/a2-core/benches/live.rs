//! What telling a hub costs the one who commits, and what an event costs the one who streams.
//! `cargo bench -p a2-core --bench live`.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark may panic, its groups are no API"
)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use a2_core::live::{Hub, LogSource, event_stream};
use a2_core::{
    Event, EventId, EventStream, EventType, Events, Index, Json, ReadRange, Result, SessionId,
    Timestamp,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::coop::unconstrained;

/// A log of which nothing but the head is kept: its streams are in step and never read a page.
#[derive(Clone, Default)]
struct Head(Arc<AtomicU64>);

impl LogSource for Head {
    async fn read_log(&self, _: &SessionId, _: ReadRange) -> Result<Events> {
        Ok(Events::new(Vec::new(), self.index(), Index::ZERO))
    }
}

impl Head {
    fn index(&self) -> Index {
        Index::new(self.0.load(Ordering::Relaxed)).unwrap()
    }
}

struct Session {
    hub: Hub,
    head: Head,
    last: Mutex<Event>,
}

impl Session {
    fn new() -> Self {
        let last = Event::new(
            SessionId::new("order-17").unwrap(),
            Index::ZERO,
            EventId::generate(),
            EventType::new("order.placed").unwrap(),
            Json::from_serialize(&"x".repeat(200)).unwrap(),
            Timestamp::EPOCH,
            None,
        );
        Self { hub: Hub::new(), head: Head::default(), last: Mutex::new(last) }
    }

    /// A stream that waits at the head.
    fn stream(&self) -> EventStream {
        let session = self.last.lock().unwrap().session.clone();
        let mut stream =
            event_stream(self.head.clone(), &self.hub, &session, self.head.index(), None);
        assert!(unconstrained(stream.next()).now_or_never().is_none());
        stream
    }

    fn streams(&self, count: usize) -> Vec<EventStream> {
        (0..count).map(|_| self.stream()).collect()
    }

    fn append(&self) {
        let mut last = self.last.lock().unwrap();
        last.index = Index::new(self.head.0.fetch_add(1, Ordering::Relaxed) + 1).unwrap();
        self.hub.appended(&last.session, black_box(std::slice::from_ref(&last)));
    }
}

/// Takes what is there, until the stream waits.
fn take(stream: &mut EventStream, count: usize) {
    for _ in 0..count {
        drop(black_box(unconstrained(stream.next()).now_or_never().unwrap()));
    }
    assert!(unconstrained(stream.next()).now_or_never().is_none());
}

fn appended(c: &mut Criterion) {
    let mut group = c.benchmark_group("appended");
    let session = Session::new();
    group.bench_function("nobody listens", |b| b.iter(|| session.append()));
    let elsewhere = SessionId::new("order-18").unwrap();
    let stream = event_stream(Head::default(), &session.hub, &elsewhere, Index::ZERO, None);
    group.bench_function("another session's stream", |b| b.iter(|| session.append()));
    drop(stream);
    let streams = session.streams(16);
    group.bench_function("16 streams that are behind", |b| b.iter(|| session.append()));
    drop(streams);
    let mut streams = session.streams(16);
    group.throughput(Throughput::Elements(16));
    group.bench_function("16 streams that take it", |b| {
        b.iter(|| {
            session.append();
            for stream in &mut streams {
                take(stream, 1);
            }
        });
    });
    group.throughput(Throughput::Elements(16 * 64));
    group.bench_function("16 streams that take 64 at once", |b| {
        b.iter(|| {
            for _ in 0..64 {
                session.append();
            }
            for stream in &mut streams {
                take(stream, 64);
            }
        });
    });
    group.finish();
}

/// From the append to a task that streams and back, beside the same through a channel.
fn round_trip(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut group = c.benchmark_group("round trip");
    group.measurement_time(Duration::from_secs(5));
    group.bench_function("a bare channel", |b| {
        b.iter_custom(|rounds| {
            runtime.block_on(async {
                let (send, mut receive) = mpsc::channel::<u64>(16);
                let (answer, mut answers) = mpsc::channel::<u64>(16);
                tokio::spawn(async move {
                    while let Some(n) = receive.recv().await {
                        answer.send(n).await.unwrap();
                    }
                });
                let pings = tokio::spawn(async move {
                    let start = Instant::now();
                    for n in 0..rounds {
                        send.send(n).await.unwrap();
                        answers.recv().await.unwrap();
                    }
                    start.elapsed()
                });
                pings.await.unwrap()
            })
        });
    });
    group.bench_function("a stream", |b| {
        b.iter_custom(|rounds| {
            runtime.block_on(async {
                let session = Session::new();
                let mut stream = session.stream();
                let (answer, mut answers) = mpsc::channel::<u64>(16);
                tokio::spawn(async move {
                    while let Some(event) = stream.next().await {
                        if answer.send(event.unwrap().index.get()).await.is_err() {
                            return;
                        }
                    }
                });
                let pings = tokio::spawn(async move {
                    let start = Instant::now();
                    for _ in 0..rounds {
                        session.append();
                        answers.recv().await.unwrap();
                    }
                    start.elapsed()
                });
                pings.await.unwrap()
            })
        });
    });
    group.finish();
}

criterion_group!(benches, appended, round_trip);
criterion_main!(benches);
