//! Whatever polls the futures, and whenever they are dropped, the store works.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use a2_store_sqlite::*;
use futures_util::StreamExt;
use support::*;

/// One of everything.
async fn exercise(store: &SqliteStore, name: &str) {
    let at = session(name);
    let mut stream = store.stream(&at, Index::ZERO);
    store.append(&at, append("e1")).await.unwrap();
    let heads = store.claim_available(&at, claim("w")).await.unwrap().into_heads();
    let done = CompleteAttempt::new(heads[0].head.clone(), 1).events([event("e2")]).unwrap();
    let _ = store.complete_attempt(&at, done).await.unwrap();
    assert_eq!(ids(store, &at).await, ["e1", "e2"]);
    assert_eq!(stream.next().await.unwrap().unwrap().index, 1);
    assert_eq!(stream.next().await.unwrap().unwrap().index, 2);
    let at_once = (0..8).map(|i| {
        let (store, at) = (store.clone(), session(&format!("{name}-{i}")));
        async move { store.append(&at, append("e")).await.unwrap() }
    });
    assert_eq!(futures_util::future::join_all(at_once).await.len(), 8);
}

#[tokio::test]
async fn on_a_current_thread_runtime() {
    let (_folder, path) = file();
    exercise(&SqliteStore::open(path).await.unwrap(), "s").await;
    exercise(&SqliteStore::in_memory().await.unwrap(), "s").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn on_a_multi_thread_runtime() {
    let (_folder, path) = file();
    let store = SqliteStore::open(path).await.unwrap();
    exercise(&store, "main").await;
    let spawned = store.clone();
    tokio::spawn(async move { exercise(&spawned, "spawned").await }).await.unwrap();
    exercise(&SqliteStore::in_memory().await.unwrap(), "s").await;
}

/// `block_in_place` panics here.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_local_set() {
    let (_folder, path) = file();
    let store = SqliteStore::open(path).await.unwrap();
    let set = tokio::task::LocalSet::new();
    set.run_until(async {
        exercise(&store, "outer").await;
        let inner = store.clone();
        tokio::task::spawn_local(async move { exercise(&inner, "inner").await }).await.unwrap();
    })
    .await;
    exercise(&SqliteStore::in_memory().await.unwrap(), "s").await;
}

#[test]
fn without_a_runtime() {
    let (_folder, path) = file();
    poll_by_hand(Box::pin(async {
        let store = SqliteStore::open(path).await.unwrap();
        let at = session("s");
        store.append(&at, append("e1")).await.unwrap();
        assert_eq!(ids(&store, &at).await, ["e1"]);
        store.close().await.unwrap();
    }));
}

/// An executor without any runtime behind it.
fn poll_by_hand(mut future: std::pin::Pin<Box<dyn Future<Output = ()> + '_>>) {
    use std::task::{Context, Wake, Waker};
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    while future.as_mut().poll(&mut context).is_pending() {
        std::thread::park();
    }
}

#[test]
fn from_one_runtime_to_the_next() {
    let (_folder, path) = file();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime().block_on(SqliteStore::open(path)).unwrap();
    for i in 0..3 {
        runtime().block_on(exercise(&store, &format!("s{i}")));
    }
    let multi = tokio::runtime::Runtime::new().unwrap();
    multi.block_on(exercise(&store, "multi"));
    // A thread that blocks may also block on the store.
    let (handle, blocking) = (multi.handle().clone(), store.clone());
    multi
        .block_on(multi.spawn_blocking(move || handle.block_on(exercise(&blocking, "blocking"))))
        .unwrap();
}

/// Drops operations at every point that a timer finds.
async fn storm(store: &SqliteStore) {
    let at = session("storm");
    for i in 0..300_u64 {
        let patience = Duration::from_micros((i * 37) % 700);
        let id = format!("e{i}");
        let pair = Append::new([event(&id), event(&format!("{id}-b"))]).unwrap();
        let _ = tokio::time::timeout(patience, store.append(&at, pair)).await;
        let _ = tokio::time::timeout(patience, store.read(&at, ReadRange::default())).await;
        let limited = claim("w").limit(1).unwrap();
        let claimed = tokio::time::timeout(patience, store.claim_available(&at, limited)).await;
        if let Ok(Ok(Claim::Claimed(claimed))) = claimed {
            let head = &claimed.heads[0];
            let done = CompleteAttempt::new(head.head.clone(), head.attempt());
            let _ = tokio::time::timeout(patience, store.complete_attempt(&at, done)).await;
        }
        if i % 50 == 49 {
            let clear = tokio::time::timeout(patience, store.clear(&at, Clear::new()));
            let _ = clear.await;
        }
    }
    // What was dropped while it ran is done by the time a later operation is.
    exercise(store, "after").await;
    // Every batch is wholly there or wholly absent, and the store works.
    let left = ids(store, &at).await;
    let (pairs, markers): (Vec<_>, Vec<_>) = left.iter().partition(|id| id.starts_with('e'));
    assert!(markers.len() <= 1);
    assert!(pairs.chunks(2).all(|pair| format!("{}-b", pair[0]) == *pair[1]), "{pairs:?}");
}

#[tokio::test]
async fn dropped_futures_leave_the_store_usable_on_one_thread() {
    let (_folder, path) = file();
    storm(&SqliteStore::open(path).await.unwrap()).await;
    storm(&SqliteStore::in_memory().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_futures_leave_the_store_usable() {
    let (_folder, path) = file();
    let store = SqliteStore::open(path).await.unwrap();
    // Somebody else keeps the writer busy, so that operations queue.
    let busy = store.clone();
    let neighbour = tokio::spawn(async move {
        for i in 0.. {
            busy.append(&session("busy"), append(&format!("e{i}"))).await.unwrap();
        }
    });
    storm(&store).await;
    neighbour.abort();
}

#[tokio::test]
async fn a_reader_gets_its_own_answer_after_others_were_dropped() {
    let (_folder, path) = file();
    let store = SqliteStore::open(path).await.unwrap();
    for name in ["a", "b"] {
        store.append(&session(name), append(&format!("of-{name}"))).await.unwrap();
    }
    for i in 0..500_u64 {
        let patience = Duration::from_micros(i % 250);
        let (a, b) = (session("a"), session("b"));
        let _ = tokio::time::timeout(patience, store.read(&a, ReadRange::default())).await;
        assert_eq!(ids(&store, &b).await, ["of-b"]);
        assert_eq!(store.cursors(&b, Page::first()).await.unwrap().cursors[0].head.unwrap(), 1);
    }
}

#[tokio::test]
async fn after_closing_everything_is_closed() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let at = session("s");
    let mut stream = store.stream(&at, Index::ZERO);
    let mut idle = store.stream(&session("idle"), Index::ZERO);
    let mut hints = store.watch_pending(Served::ALL);
    let namespace = Namespace::new("n").unwrap();
    let mut presence = store.watch_presence(&namespace);
    store.append(&at, append("e")).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().index, 1);
    let clone = store.clone();
    store.close().await.unwrap();
    store.close().await.unwrap();
    let closed = |error: Option<Error>| assert_eq!(error.unwrap().code(), "CLOSED");
    closed(clone.append(&at, append("late")).await.err());
    closed(clone.read(&at, ReadRange::default()).await.err());
    closed(clone.claim_available(&at, claim("w")).await.err());
    closed(clone.sessions(Page::first()).await.err());
    closed(clone.read_presence(&namespace).await.err());
    closed(stream.next().await.unwrap().err());
    assert!(stream.next().await.is_none());
    closed(idle.next().await.unwrap().err());
    closed(hints.next().await.unwrap().err());
    loop {
        match presence.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => break closed(Some(error)),
        }
    }
    closed(clone.stream(&at, Index::ZERO).next().await.unwrap().err());
    assert_eq!(length(&path, "-wal"), 0);
    assert!(length(&path, "") > 0);
}
