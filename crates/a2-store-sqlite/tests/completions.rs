//! `complete_attempt_with`: the user's SQL and the completion, both or neither.

#![allow(clippy::unwrap_used)]

mod support;

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use a2_store_sqlite::rusqlite::{Connection, ErrorCode};
use a2_store_sqlite::*;
use support::*;

async fn claimed(store: &SqliteStore, at: &SessionId, id: &str) -> DispatchedHead {
    store.append(at, append(id)).await.unwrap();
    let heads = store.claim_available(at, claim("w")).await.unwrap().into_heads();
    assert_eq!(heads.len(), 1);
    heads[0].clone()
}

fn complete(head: &DispatchedHead) -> CompleteAttempt {
    CompleteAttempt::new(head.head.clone(), head.attempt())
}

fn totals(conn: &Connection) -> i64 {
    conn.query_row("select count(*) from totals", [], |row| row.get(0)).unwrap()
}

fn insert(tx: &Connection) -> Result<(), BoxError> {
    tx.execute("insert into totals values (1)", [])?;
    Ok(())
}

/// A store beside a table of the user's.
async fn with_totals() -> (tempfile::TempDir, Connection, SqliteStore) {
    let (folder, path) = file();
    let own = Connection::open(&path).unwrap();
    own.execute_batch("create table totals (orders integer not null check (orders > 0))").unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    (folder, own, store)
}

#[tokio::test]
async fn both_are_committed() {
    let (_folder, own, store) = with_totals().await;
    let at = session("s");
    let head = claimed(&store, &at, "e").await;
    let next = complete(&head).events([event("returned")]).unwrap().then_claim(claim("w"));
    let done = store.complete_attempt_with(&at, next, insert).await.unwrap();
    let appended = done.outcome.completed().unwrap();
    assert_eq!(appended.events[0].index, 2);
    assert_eq!(appended.events[0].cause, Some(head.cause()));
    assert!(!appended.replayed);
    assert_eq!(done.claim.unwrap().into_heads()[0].head.index, 2);
    assert_eq!(totals(&own), 1);
}

#[tokio::test]
async fn a_replay_answers_and_does_not_write_again() {
    let (_folder, own, store) = with_totals().await;
    let at = session("s");
    let head = claimed(&store, &at, "e").await;
    let done = complete(&head).events([event("returned")]).unwrap();
    let _ = store.complete_attempt_with(&at, done.clone(), insert).await.unwrap();
    let again = store.complete_attempt_with(&at, done, insert).await.unwrap();
    let again = again.outcome.completed().unwrap();
    assert!(again.replayed);
    assert_eq!(again.events[0].index, 2);
    assert_eq!(totals(&own), 1);
}

#[tokio::test]
async fn a_superseded_attempt_writes_nothing() {
    let (_folder, own, store) = with_totals().await;
    let at = session("s");
    let head = claimed(&store, &at, "e").await;
    let release = ReleaseClaims::new("w", [head.attempt_ref()]).unwrap();
    let _ = store.release_claims(&at, release).await.unwrap();
    let done = complete(&head).events([event("returned")]).unwrap().then_claim(claim("w"));
    let done = store.complete_attempt_with(&at, done, insert).await.unwrap();
    assert_eq!(done.outcome, Completion::Superseded);
    // The claim that was asked for is made all the same.
    assert_eq!(done.claim.unwrap().into_heads()[0].attempt(), 2);
    assert_eq!(totals(&own), 0);
    assert_eq!(ids(&store, &at).await, ["e"]);
}

#[tokio::test]
async fn what_the_completion_refuses_rolls_all_back() {
    let (_folder, own, store) = with_totals().await;
    let at = session("s");
    let head = claimed(&store, &at, "e").await;
    let twice = complete(&head).events([event("e")]).unwrap();
    let error = store.complete_attempt_with(&at, twice, insert).await.unwrap_err();
    assert_eq!(error.code(), "PARTIAL_DUPLICATE_BATCH");
    assert_eq!(totals(&own), 0);
    // The claim stays.
    let done = store.complete_attempt_with(&at, complete(&head), insert).await.unwrap();
    assert!(matches!(done.outcome, Completion::Completed(_)));
    assert_eq!(totals(&own), 1);
}

#[tokio::test]
async fn what_the_users_sql_fails_with_rolls_all_back() {
    let (_folder, own, store) = with_totals().await;
    let at = session("s");
    let head = claimed(&store, &at, "e").await;
    let constraint = store
        .complete_attempt_with(&at, complete(&head), |tx| {
            insert(tx)?;
            tx.execute("insert into totals values (0)", [])?;
            Ok(())
        })
        .await
        .unwrap_err();
    assert_eq!(constraint.code(), "INVALID_INPUT");
    assert!(constraint.to_string().starts_with("write: failed: "), "{constraint}");
    let source = constraint.source().unwrap().downcast_ref::<rusqlite::Error>().unwrap();
    assert_eq!(source.sqlite_error_code(), Some(ErrorCode::ConstraintViolation));

    let own_error = store
        .complete_attempt_with(&at, complete(&head), |tx| {
            insert(tx)?;
            Err("no stock".into())
        })
        .await
        .unwrap_err();
    assert_eq!(own_error.to_string(), "write: failed: no stock");
    assert_eq!(own_error.source().unwrap().to_string(), "no stock");

    let panicked = store
        .complete_attempt_with(&at, complete(&head), |tx| {
            insert(tx)?;
            panic!("deliberate")
        })
        .await
        .unwrap_err();
    assert_eq!(panicked.to_string(), "write: failed: panicked: deliberate");

    let ended = store
        .complete_attempt_with(&at, complete(&head), |tx| {
            insert(tx)?;
            tx.execute_batch("rollback")?;
            Ok(())
        })
        .await
        .unwrap_err();
    assert_eq!(ended.to_string(), "write: failed: ended the transaction");

    assert_eq!(totals(&own), 0);
    let done = store.complete_attempt_with(&at, complete(&head), insert).await.unwrap();
    assert!(matches!(done.outcome, Completion::Completed(_)));
    assert_eq!(totals(&own), 1);
}

/// While one task completes with SQL of its own, others' operations go on around it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn others_share_no_transaction_with_it() {
    let (_folder, own, store) = with_totals().await;
    let failed = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for task in 0..8 {
        let (store, failed) = (store.clone(), Arc::clone(&failed));
        tasks.push(tokio::spawn(async move {
            let at = session(&format!("s{task}"));
            for i in 0..20 {
                let head = claimed(&store, &at, &format!("e{i}")).await;
                let fails = i % 4 == 3;
                let write = move |tx: &Connection| {
                    insert(tx)?;
                    if fails { Err("refused".into()) } else { Ok(()) }
                };
                match store.complete_attempt_with(&at, complete(&head), write).await {
                    Ok(done) => assert!(matches!(done.outcome, Completion::Completed(_))),
                    Err(error) => {
                        assert_eq!(error.to_string(), "write: failed: refused");
                        failed.fetch_add(1, Ordering::Relaxed);
                        let _ = store.complete_attempt(&at, complete(&head)).await.unwrap();
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(failed.load(Ordering::Relaxed), 40);
    assert_eq!(totals(&own), 120);
}

#[tokio::test]
async fn what_is_above_the_stores_limits_is_refused_before_anything_is_run() {
    let (folder, own, store) = with_totals().await;
    let limits = StoreLimits::new().batch_events(1).unwrap();
    let small = SqliteStore::builder(folder.path().join("a2.db")).limits(limits);
    let small = small.open().await.unwrap();
    let at = session("s");
    let head = claimed(&store, &at, "e").await;
    let above = complete(&head).events([event("x"), event("y")]).unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let runs = Arc::clone(&ran);
    let refused = small.complete_attempt_with(&at, above.clone(), move |tx| {
        runs.fetch_add(1, Ordering::Relaxed);
        insert(tx)
    });
    let error = refused.await.unwrap_err();
    assert_eq!(error.code(), "INVALID_INPUT");
    assert_eq!(error.to_string(), "events: must be at most 1 in one batch");
    assert_eq!((ran.load(Ordering::Relaxed), totals(&own)), (0, 0));
    // Also when it was done before, by a store that takes more.
    let _ = store.complete_attempt_with(&at, above.clone(), insert).await.unwrap();
    let again = small.complete_attempt_with(&at, above, insert).await;
    assert_eq!(again.unwrap_err().code(), "INVALID_INPUT");
    assert_eq!(totals(&own), 1);
}
