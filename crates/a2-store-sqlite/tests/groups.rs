//! Operations that share a transaction do not share their failures, and a full disk loses nothing.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use a2_store_sqlite::rusqlite::Connection;
use a2_store_sqlite::*;
use support::*;
use tokio::task::JoinHandle;

/// Keeps the writer at work until the sender is dropped, so that what is sent meanwhile queues.
async fn hold(store: &SqliteStore) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let at = session("holder");
    store.append(&at, append("hold")).await.unwrap();
    let head = store.claim_available(&at, claim("w")).await.unwrap().into_heads().remove(0);
    let complete = CompleteAttempt::new(head.head.clone(), head.attempt());
    let (let_go, held) = mpsc::channel::<()>();
    let (working, works) = tokio::sync::oneshot::channel();
    let mut working = Some(working);
    let store = store.clone();
    let task = tokio::spawn(async move {
        let write = move |_: &Connection| {
            if let Some(working) = working.take() {
                working.send(()).unwrap();
            }
            // An error is what the drop of the sender is.
            let _ = held.recv();
            Ok(())
        };
        let _ = store.complete_attempt_with(&at, complete, write).await.unwrap();
    });
    works.await.unwrap();
    (let_go, task)
}

/// Spawns an operation and waits until it was polled: by then it queues.
async fn queue<T: Send + 'static>(
    operation: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let (polled, was_polled) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let mut operation = std::pin::pin!(operation);
        let mut polled = Some(polled);
        std::future::poll_fn(move |cx| {
            let answer = operation.as_mut().poll(cx);
            if let Some(polled) = polled.take() {
                // Nobody waits when the test has failed.
                let _ = polled.send(());
            }
            answer
        })
        .await
    });
    was_polled.await.unwrap();
    task
}

/// Transactions in the WAL: the frames of its present generation that end one.
fn commits(path: &Path) -> usize {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let wal = std::fs::read(PathBuf::from(name)).unwrap();
    let (header, frames) = wal.split_at(32);
    let salt = &header[16..24];
    let ends = |frame: &&[u8]| frame[8..16] == *salt && frame[4..8] != [0; 4];
    frames.chunks_exact(24 + 4096).filter(ends).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_queues_is_committed_together_and_each_has_its_own_answer() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let at = session("s");
    store.append(&at, append("there")).await.unwrap();

    let (let_go, holder) = hold(&store).await;
    let mut tasks = Vec::new();
    for i in 0..20 {
        let (store, at) = (store.clone(), at.clone());
        tasks.push(
            queue(async move {
                // Every fourth one is refused: it repeats a part of what is there.
                let mut events = vec![event(&format!("e{i}"))];
                if i % 4 == 0 {
                    events.push(event("there"));
                }
                store.append(&at, Append::new(events).unwrap()).await
            })
            .await,
        );
    }
    let before = commits(&path);
    drop(let_go);
    holder.await.unwrap();
    let mut indexes = Vec::new();
    for (i, task) in tasks.into_iter().enumerate() {
        match task.await.unwrap() {
            Ok(appended) => indexes.push(appended.events[0].index.get()),
            Err(error) => {
                assert_eq!(error.code(), "PARTIAL_DUPLICATE_BATCH");
                assert_eq!(i % 4, 0);
            }
        }
    }
    indexes.sort_unstable();
    assert_eq!(indexes, (2..=16).collect::<Vec<_>>());
    assert_eq!(ids(&store, &at).await.len(), 16);
    // The holder's and the group's.
    assert_eq!(commits(&path) - before, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_that_does_not_fit_the_disk_fails_alone() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let at = session("limited");
    store.append(&at, append("first")).await.unwrap();
    let head = store.claim_available(&at, claim("w")).await.unwrap().into_heads().remove(0);
    // The connection may not make the file longer than some pages more.
    let complete = CompleteAttempt::new(head.head.clone(), head.attempt());
    let limit = |pages: i64| {
        move |tx: &Connection| {
            let now: i64 = tx.query_row("pragma page_count", [], |row| row.get(0))?;
            let sql = format!("pragma max_page_count = {}", now + pages);
            tx.query_row(&sql, [], |row| row.get::<_, i64>(0))?;
            Ok(())
        }
    };
    let _ = store.complete_attempt_with(&at, complete, limit(20)).await.unwrap();

    let (let_go, holder) = hold(&store).await;
    let big = Json::from_serialize(&"x".repeat(500_000)).unwrap();
    let mut tasks = Vec::new();
    for i in 0..6 {
        let (store, big) = (store.clone(), big.clone());
        tasks.push(
            queue(async move {
                let at = session(&format!("s{i}"));
                let payload = if i == 3 { big } else { Json::null() };
                let event = NewEvent::from_json("t", payload).unwrap().id("e").unwrap();
                store.append(&at, Append::one(event).unwrap()).await
            })
            .await,
        );
    }
    drop(let_go);
    holder.await.unwrap();
    for (i, task) in tasks.into_iter().enumerate() {
        let answer = task.await.unwrap();
        let stored = ids(&store, &session(&format!("s{i}"))).await;
        if i == 3 {
            let error = answer.unwrap_err();
            assert_eq!(error.code(), "STORE_UNAVAILABLE");
            assert!(error.is_retryable() && !error.outcome_unknown());
            assert!(error.to_string().contains("a2.db: append: "), "{error}");
            assert_eq!(stored, Vec::<String>::new());
        } else {
            assert_eq!(answer.unwrap().events[0].index, 1);
            assert_eq!(stored, ["e"]);
        }
    }

    // With room again the same call is done.
    let event = NewEvent::from_json("t", big).unwrap().id("e").unwrap();
    let retry = Append::one(event).unwrap();
    assert!(store.append(&session("s3"), retry.clone()).await.is_err());
    store.append(&at, append("second")).await.unwrap();
    let head = store.claim_available(&at, claim("w")).await.unwrap().into_heads().remove(0);
    let complete = CompleteAttempt::new(head.head.clone(), head.attempt());
    let _ = store.complete_attempt_with(&at, complete, limit(1_000_000)).await.unwrap();
    assert_eq!(store.append(&session("s3"), retry).await.unwrap().events[0].index, 1);
    let check: String = Connection::open(&path)
        .unwrap()
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_waits_too_long_is_not_done() {
    let (_folder, path) = file();
    let store = SqliteStore::builder(&path)
        .operation_timeout(std::time::Duration::from_millis(20))
        .open()
        .await
        .unwrap();
    let (let_go, holder) = hold(&store).await;
    let late = {
        let store = store.clone();
        queue(async move { store.append(&session("s"), append("e")).await }).await
    };
    // The time that counts is the system's.
    std::thread::sleep(std::time::Duration::from_millis(40));
    drop(let_go);
    holder.await.unwrap();
    let error = late.await.unwrap().unwrap_err();
    assert_eq!(error.code(), "STORE_UNAVAILABLE");
    assert!(!error.outcome_unknown());
    assert_eq!(ids(&store, &session("s")).await, Vec::<String>::new());
    store.append(&session("s"), append("e")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_dropped_while_it_queues_is_not_done() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let (let_go, holder) = hold(&store).await;
    let dropped = {
        let store = store.clone();
        queue(async move { store.append(&session("s"), append("dropped")).await }).await
    };
    let kept = {
        let store = store.clone();
        queue(async move { store.append(&session("s"), append("kept")).await }).await
    };
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    drop(let_go);
    holder.await.unwrap();
    assert_eq!(kept.await.unwrap().unwrap().events[0].index, 1);
    assert_eq!(ids(&store, &session("s")).await, ["kept"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn closing_finishes_what_queues() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let (let_go, holder) = hold(&store).await;
    let queued = {
        let store = store.clone();
        queue(async move { store.append(&session("s"), append("queued")).await }).await
    };
    // Not by `queue`: closing may wait for the holder within its first poll.
    let closing = tokio::spawn({
        let store = store.clone();
        async move { store.close().await }
    });
    until("the store refuses", || format!("{store:?}").contains("closed: true"));
    assert_eq!(store.append(&session("s"), append("late")).await.unwrap_err().code(), "CLOSED");
    drop(let_go);
    holder.await.unwrap();
    closing.await.unwrap().unwrap();
    assert_eq!(queued.await.unwrap().unwrap().events[0].index, 1);
    let again = SqliteStore::open(&path).await.unwrap();
    assert_eq!(ids(&again, &session("s")).await, ["queued"]);
}
