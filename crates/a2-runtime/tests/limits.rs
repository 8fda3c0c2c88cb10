//! How much runs at the same time, and whose turn it is.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_runtime::{Context, Runtime, concurrent};
use a2_store_memory::MemoryStore;
use support::*;
use tokio::sync::{Semaphore, mpsc};

/// Counts how many run now and how many ever did at the same time.
#[derive(Default)]
struct Count {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Count {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_consumer_and_the_runtime_have_their_limits() {
    let store = MemoryStore::new();
    let all = Arc::new(Count::default());
    let consumer = |name: &str, own: &Arc<Count>| {
        let (all, own) = (Arc::clone(&all), Arc::clone(own));
        concurrent(name, move |_: Order, _: Context| {
            let (all, own) = (Arc::clone(&all), Arc::clone(&own));
            async move {
                all.enter();
                own.enter();
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                own.leave();
                all.leave();
                Ok(())
            }
        })
    };
    let (few, many) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let runtime = Runtime::builder(store.clone())
        .concurrency(5)
        .consumer(consumer("few", &few).concurrency(2))
        .consumer(consumer("many", &many))
        .build()
        .unwrap();
    for name in ["a", "b", "c"] {
        runtime.session(name).unwrap().append(vec![placed("tea"); 30]).await.unwrap();
    }
    runtime.start();
    settled(&store).await;
    let most = |count: &Count| count.most.load(Ordering::SeqCst);
    assert_eq!((most(&few), most(&all)), (2, 5));
    assert!(most(&many) >= 3, "the others' places are used: {}", most(&many));
}

#[tokio::test]
async fn a_session_with_much_work_lets_others_go_on() {
    let store = MemoryStore::new();
    let order = Arc::new(Mutex::new(Vec::new()));
    let gate = Arc::new(Semaphore::new(0));
    let (told, mut begun) = mpsc::unbounded_channel();
    let (seen, opened) = (Arc::clone(&order), Arc::clone(&gate));
    let handler = move |_: Order, cx: Context| {
        let (seen, opened) = (Arc::clone(&seen), Arc::clone(&opened));
        told.send(()).unwrap();
        async move {
            opened.acquire().await?.forget();
            seen.lock().unwrap().push(cx.session().id().to_string());
            Ok(())
        }
    };
    let runtime = Runtime::builder(store.clone()).concurrency(1).consumer(concurrent("c", handler));
    let runtime = runtime.build().unwrap();
    runtime.start();
    // One session has the only place and a thousand events; ten others come later.
    runtime.session("big").unwrap().append(vec![placed("tea"); 1_000]).await.unwrap();
    begun.recv().await.unwrap();
    for n in 0..10 {
        runtime.session(format!("small-{n}")).unwrap().append(placed("tea")).await.unwrap();
    }
    // They stand in line before the first of the thousand is done.
    tokio::task::yield_now().await;
    gate.add_permits(2_000);
    settled(&store).await;
    let order = order.lock().unwrap();
    let last_small = order.iter().rposition(|name| name.starts_with("small")).unwrap();
    // A turn is sixteen events at most, and each of the ten had to wait for one at most.
    assert!(last_small <= 11 * 17, "the last of the others came at {last_small}");
}

#[tokio::test]
async fn more_sessions_than_there_is_room_for_take_turns() {
    let store = MemoryStore::new();
    let bill = |_: Order, _| async { Ok(sent("tea")) };
    let runtime = Runtime::builder(store.clone())
        .sessions(3)
        .consumer(concurrent("c", bill))
        .build()
        .unwrap();
    for n in 0..50 {
        runtime.session(format!("s{n}")).unwrap().append(placed("tea")).await.unwrap();
    }
    runtime.start();
    for n in 0..50 {
        event_at(&store, &format!("s{n}"), 2).await;
    }
    let _ = runtime.shutdown(Duration::from_secs(60)).await;
    settled(&store).await;
}
