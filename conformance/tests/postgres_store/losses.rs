//! Answers that are lost, connections that end.

use std::time::Duration;

use a2_conformance::servers::{Proxy, fresh_name};
use a2_store_postgres::*;
use tokio::net::TcpListener;

use crate::util::*;

async fn cut_store() -> (Proxy, PostgresStore) {
    let cut = Proxy::before(&url().await).await.unwrap();
    let options = PostgresStore::builder(cut.url()).schema(fresh_name()).max_connections(1);
    let store = options.notifications(false).connect().await.unwrap();
    store.migrate().await.unwrap();
    // Statements are prepared: from here on an operation is one request.
    let at = session("warm");
    let head = claimed(&store, &at, "e").await;
    let _ = store.complete_attempt(&at, complete(&head)).await.unwrap();
    (cut, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_a_lost_answer_finds_what_was_done() {
    let (cut, store) = cut_store().await;
    let at = session("s");
    let lanes = ["a", "b", "c"].map(|id| event(id).target(Target::lane("c", id).unwrap()));
    let batch = Append::new(lanes).unwrap();
    cut.lose_answer_in(1);
    let error = store.append(&at, batch.clone()).await.unwrap_err();
    assert_eq!((error.code(), error.outcome_unknown()), ("STORE_UNAVAILABLE", true), "{error}");
    let again = store.append(&at, batch).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.events.iter().map(|e| e.index.get()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(store.all_cursors(&at).await.unwrap().len(), 3);

    let heads = store.claim_available(&at, claim().limit(1).unwrap()).await.unwrap().into_heads();
    let done = complete(&heads[0]).events([event("k1"), event("k2")]).unwrap();
    // The pool's new connection has to prepare it first.
    let _ = store.complete_attempt(&session("warm"), complete(&heads[0])).await.unwrap();
    cut.lose_answer_in(1);
    let error = store.complete_attempt(&at, done.clone()).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error}");
    let again = store.complete_attempt(&at, done).await.unwrap().outcome.completed().unwrap();
    assert!(again.replayed);
    assert_eq!(again.events.iter().map(|e| e.index.get()).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(store.head(&at).await.unwrap(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_of_a_read_is_not_unknown() {
    let (cut, store) = cut_store().await;
    let at = session("warm");
    store.read(&at, ReadRange::default()).await.unwrap();
    cut.lose_answer_in(1);
    let error = store.read(&at, ReadRange::default()).await.unwrap_err();
    assert!(error.is_retryable() && !error.outcome_unknown(), "{error}");
    assert_eq!(store.read(&at, ReadRange::default()).await.unwrap().head, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_ended_are_replaced() {
    let name = fresh_name();
    let url = format!("{}?application_name={name}", url().await);
    let options = PostgresStore::builder(url).schema(fresh_name()).max_connections(4);
    let store = options.connect().await.unwrap();
    store.migrate().await.unwrap();
    let (client, at) = (client().await, session("s"));
    for round in 0..10 {
        let kill = format!(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity
             where application_name = '{name}'"
        );
        count(&client, &kill).await;
        until("the store works again", || async {
            let appended = store.append(&at, append(&round.to_string())).await;
            match appended {
                Ok(_) => true,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    false
                }
            }
        })
        .await;
    }
    assert_eq!(store.head(&at).await.unwrap(), 10);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let error = PostgresStore::connect(format!("postgres://u@127.0.0.1:{port}/d")).await;
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.outcome_unknown()), ("STORE_UNAVAILABLE", false), "{error}");
}

#[tokio::test]
async fn an_operation_ends_in_time() {
    let schema = fresh_name();
    let options = PostgresStore::builder(url().await).schema(&schema);
    options.clone().connect().await.unwrap().migrate().await.unwrap();
    let options = options.operation_timeout(Duration::from_millis(300));
    let (store, at) = (options.connect().await.unwrap(), session("s"));
    store.append(&at, append("a")).await.unwrap();
    // Somebody holds the table.
    let mut client = client().await;
    let transaction = client.transaction().await.unwrap();
    let lock = format!("lock table {schema}.a2_events in access exclusive mode");
    transaction.batch_execute(&lock).await.unwrap();
    let error = store.append(&at, append("b")).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    transaction.rollback().await.unwrap();
    until("it works again", || async { store.append(&at, append("b")).await.is_ok() }).await;
    assert_eq!(store.head(&at).await.unwrap(), 2);
}
