//! temp
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use a2_core::*;
use a2_store_memory::MemoryStore;
use futures_util::StreamExt;

async fn run(subs: usize, yielding: bool) -> (f64, u64) {
    let store = MemoryStore::new();
    let sessions: Vec<SessionId> = (0..64).map(|i| SessionId::new(format!("session-{i}")).unwrap()).collect();
    let got = Arc::new(AtomicU64::new(0));
    let mut tasks = vec![];
    for i in 0..subs {
        let mut s = store.stream(&sessions[i % 64], Index::ZERO);
        let got = got.clone();
        tasks.push(tokio::spawn(async move { while let Some(Ok(_)) = s.next().await { got.fetch_add(1, Ordering::Relaxed); } }));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let payload = serde_json::json!({"text": "x".repeat(180)});
    let json = Json::from_serialize(&payload).unwrap();
    let n = 20_000u64;
    let start = Instant::now();
    let mut app = vec![];
    for t in 0..16usize {
        let (store, sessions, json) = (store.clone(), sessions.clone(), json.clone());
        app.push(tokio::spawn(async move {
            for k in 0..n {
                let session = &sessions[(t * 4 + (k as usize % 4)) % 64];
                let e = NewEvent::from_json("t", json.clone()).unwrap().target(Target::lane("c", "l").unwrap());
                store.append(session, Append::one(e).unwrap()).await.unwrap();
                if yielding { tokio::task::yield_now().await; }
            }
        }));
    }
    for a in app { a.await.unwrap(); }
    let rate = (16 * n) as f64 / start.elapsed().as_secs_f64();
    let seen = got.load(Ordering::Relaxed);
    for t in tasks { t.abort(); }
    (rate, seen)
}

fn main() {
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    rt.block_on(async {
        for yielding in [false, true] {
            for _ in 0..3 {
                for subs in [0, 1, 1000] {
                    let (rate, seen) = tokio::spawn(run(subs, yielding)).await.unwrap();
                    println!("yielding {yielding} subs {subs}: {:.0}/s, seen {seen}", rate);
                }
            }
        }
        // latency
        let store = MemoryStore::new();
        let s = SessionId::new("s").unwrap();
        let json = Json::parse("{\"a\":1}").unwrap();
        for round in 0..3 {
            let mut stream = store.stream(&s, a2_core::StoreExt::head(&store, &s).await.unwrap());
            let (tx, mut rx) = tokio::sync::mpsc::channel::<Instant>(8);
            let base = Instant::now();
            let sub = tokio::spawn(async move {
                let mut lat = vec![];
                for _ in 0..5000 { let at = rx.recv().await.unwrap(); let _ = stream.next().await.unwrap().unwrap(); lat.push(at.elapsed()); }
                lat.sort(); lat
            });
            for _ in 0..5000 { tokio::time::sleep(Duration::from_micros(50)).await;
                let e = NewEvent::from_json("t", json.clone()).unwrap();
                let at = Instant::now();
                store.append(&s, Append::one(e).unwrap()).await.unwrap();
                tx.send(at).await.unwrap(); }
            let lat = sub.await.unwrap();
            println!("append->stream p50 {:?} p99 {:?}  ({:?})", lat[2500], lat[4950], base.elapsed());
            let (tx, mut rx) = tokio::sync::mpsc::channel::<Instant>(8);
            let sub = tokio::spawn(async move {
                let mut lat = vec![];
                for _ in 0..5000 { let at = rx.recv().await.unwrap(); lat.push(at.elapsed()); }
                lat.sort(); lat
            });
            for _ in 0..5000 { tokio::time::sleep(Duration::from_micros(50)).await; tx.send(Instant::now()).await.unwrap(); }
            let lat = sub.await.unwrap();
            println!("bare channel p50 {:?} p99 {:?} round {round}", lat[2500], lat[4950]);
        }
    });
}
