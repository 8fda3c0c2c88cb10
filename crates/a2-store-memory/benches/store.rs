//! What the operations of the memory store take: appends, a job's cycle, and claims beside a lot of
//! state that must not slow them.
//!
//! A store keeps all it is given, so each measurement works in rounds on fresh stores, and only the
//! operations themselves are timed.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use a2_store_memory::{
    Append, Claim, ClaimAvailable, CompleteAttempt, Json, MemoryStore, NewEvent, Served,
    ServedConsumer, SessionId, Store, Target,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::Runtime;

const SESSIONS: usize = 64;
const LANES: usize = 16;
/// Operations on one store before the next is made.
const ROUND: u64 = 100_000;

fn payload() -> String {
    let lines = (1..=4).map(|n| format!(r#"{{"sku":"tea-{n:04}","count":{n},"price":3.50}}"#));
    let lines = lines.collect::<Vec<_>>().join(",");
    format!(r#"{{"order":"order-17","customer":"c-4711","lines":[{lines}]}}"#)
}

struct Load {
    sessions: Vec<SessionId>,
    lanes: Vec<String>,
    payload: Json,
}

impl Load {
    fn new() -> Self {
        Self {
            sessions: (0..SESSIONS).map(|n| session(&format!("session-{n}"))).collect(),
            lanes: (0..LANES).map(|n| format!("order-{n}")).collect(),
            payload: Json::parse(payload()).unwrap(),
        }
    }

    fn session(&self, n: u64) -> &SessionId {
        &self.sessions[n as usize % SESSIONS]
    }

    /// An append as a program builds it, with a payload that is JSON text already.
    fn append(&self, n: u64) -> Append {
        let lane = &self.lanes[n as usize / SESSIONS % LANES];
        let event = NewEvent::from_json("order.placed", self.payload.clone()).unwrap();
        Append::one(event.target(Target::lane("billing", lane.as_str()).unwrap())).unwrap()
    }
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// Times `iterations` of an operation, each round on a fresh store.
fn rounds(iterations: u64, mut round: impl FnMut(&MemoryStore, u64) -> Duration) -> Duration {
    let mut total = Duration::ZERO;
    let mut left = iterations;
    while left > 0 {
        let n = left.min(ROUND);
        total += round(&MemoryStore::new(), n);
        left -= n;
    }
    total
}

fn append(c: &mut Criterion) {
    let (runtime, load) = (current(), Load::new());
    let mut group = c.benchmark_group("append");
    group.throughput(Throughput::Elements(1));
    group.bench_function("1", |b| {
        b.iter_custom(|iterations| {
            rounds(iterations, |store, n| {
                runtime.block_on(async {
                    let start = Instant::now();
                    for i in 0..n {
                        let _ =
                            black_box(store.append(load.session(i), load.append(i)).await.unwrap());
                    }
                    start.elapsed()
                })
            })
        });
    });
    group.bench_function("1, payload serialized", |b| {
        let value: serde_json::Value = load.payload.deserialize().unwrap();
        b.iter_custom(|iterations| {
            rounds(iterations, |store, n| {
                runtime.block_on(async {
                    let start = Instant::now();
                    for i in 0..n {
                        let lane = load.lanes[i as usize / SESSIONS % LANES].as_str();
                        let event = NewEvent::new("order.placed", &value).unwrap();
                        let event = event.target(Target::lane("billing", lane).unwrap());
                        let append = Append::one(event).unwrap();
                        let _ = black_box(store.append(load.session(i), append).await.unwrap());
                    }
                    start.elapsed()
                })
            })
        });
    });
    group.bench_function("building the request alone", |b| {
        let mut i = 0;
        b.iter(|| {
            i += 1;
            load.append(i)
        });
    });
    group.finish();
}

/// 16 callers over 64 sessions, on as many threads as there are cores.
fn append_16(c: &mut Criterion) {
    let (runtime, load) = (Runtime::new().unwrap(), Arc::new(Load::new()));
    let mut group = c.benchmark_group("append");
    group.throughput(Throughput::Elements(1));
    group.bench_function("16", |b| {
        b.iter_custom(|iterations| {
            let iterations = iterations.max(16);
            rounds(iterations, |store, n| {
                runtime.block_on(async {
                    let start = Instant::now();
                    let callers = (0..16).map(|caller| {
                        let (store, load) = (store.clone(), Arc::clone(&load));
                        tokio::spawn(async move {
                            for i in (caller..n).step_by(16) {
                                let append = load.append(i);
                                let _ =
                                    black_box(store.append(load.session(i), append).await.unwrap());
                            }
                        })
                    });
                    for caller in callers.collect::<Vec<_>>() {
                        caller.await.unwrap();
                    }
                    start.elapsed()
                })
            })
        });
    });
    group.finish();
}

fn claim_one() -> ClaimAvailable {
    let claim = ClaimAvailable::new("worker-1", Duration::from_secs(30)).unwrap();
    claim.limit(1).unwrap().served(served())
}

fn served() -> Served {
    Served::only([ServedConsumer::new("billing").unwrap()]).unwrap()
}

async fn claim_and_complete(store: &MemoryStore, session: &SessionId, claim: &ClaimAvailable) {
    let claimed = store.claim_available(session, claim.clone()).await.unwrap();
    let Claim::Claimed(claimed) = claimed else { panic!("nothing to claim") };
    let head = &claimed.heads[0];
    let complete = CompleteAttempt::new(head.head.clone(), head.attempt());
    let _ = black_box(store.complete_attempt(session, complete).await.unwrap());
}

fn job(c: &mut Criterion) {
    let (runtime, load) = (current(), Load::new());
    let mut group = c.benchmark_group("job");
    group.throughput(Throughput::Elements(1));
    group.bench_function("1", |b| {
        let claim = claim_one();
        b.iter_custom(|iterations| {
            rounds(iterations, |store, n| {
                runtime.block_on(async {
                    let start = Instant::now();
                    for i in 0..n {
                        let session = load.session(i);
                        let _ = store.append(session, load.append(i)).await.unwrap();
                        claim_and_complete(store, session, &claim).await;
                    }
                    start.elapsed()
                })
            })
        });
    });
    group.finish();
}

/// Events of consumer `consumer`, each on a lane of its own from `from` on.
async fn fill(store: &MemoryStore, session: &SessionId, consumer: &str, from: usize, n: usize) {
    for first in (from..from + n).step_by(1_000) {
        let events = (first..(first + 1_000).min(from + n)).map(|lane| {
            let event = NewEvent::new("order.placed", "x").unwrap();
            event.target(Target::lane(consumer, format!("lane-{lane}")).unwrap())
        });
        let _ = store.append(session, Append::new(events).unwrap()).await.unwrap();
    }
}

/// One claim and completion beside what must not slow them, against the same on an empty store.
fn flat(c: &mut Criterion) {
    const MANY: usize = 100_000;
    let runtime = current();
    let mut group = c.benchmark_group("flat");
    group.throughput(Throughput::Elements(1));
    for beside in
        ["empty", "pending", "unserved", "finished", "held by others", "history", "other sessions"]
    {
        let (store, session) = (MemoryStore::new(), session("s"));
        runtime.block_on(async {
            match beside {
                "pending" => fill(&store, &session, "billing", 0, MANY).await,
                "unserved" => fill(&store, &session, "other", 0, MANY).await,
                "finished" => {
                    fill(&store, &session, "billing", 0, MANY).await;
                    for _ in 0..MANY {
                        claim_and_complete(&store, &session, &claim_one()).await;
                    }
                }
                "held by others" => {
                    fill(&store, &session, "billing", 0, 10_000).await;
                    for _ in 0..10 {
                        let claim = ClaimAvailable::new("other", Duration::from_secs(3_600));
                        let claim = claim.unwrap().limit(1_000).unwrap();
                        let _ = store.claim_available(&session, claim).await.unwrap();
                    }
                }
                "history" => {
                    for _ in 0..100 {
                        let events = (0..10_000).map(|_| NewEvent::new("note", "x").unwrap());
                        let _ = store.append(&session, Append::new(events).unwrap()).await.unwrap();
                    }
                }
                "other sessions" => {
                    for n in 0..MANY {
                        let other = SessionId::new(format!("other-{n}")).unwrap();
                        fill(&store, &other, "billing", 0, 1).await;
                    }
                }
                _ => {}
            }
        });
        // On lanes that nobody holds.
        let mut next = 0;
        group.bench_function(beside, |b| {
            let claim = claim_one();
            b.iter_custom(|iterations| {
                let (mut total, mut left) = (Duration::ZERO, iterations as usize);
                runtime.block_on(async {
                    while left > 0 {
                        let n = left.min(100);
                        fill(&store, &session, "billing", MANY + next % 1_000, n).await;
                        next += n;
                        let start = Instant::now();
                        for _ in 0..n {
                            claim_and_complete(&store, &session, &claim).await;
                        }
                        total += start.elapsed();
                        left -= n;
                    }
                });
                total
            });
        });
    }
    group.finish();
}

fn current() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = append, append_16, job, flat
}
criterion_main!(benches);
