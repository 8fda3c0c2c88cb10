//! `complete_attempt_with`: the user's SQL and the completion, both or neither.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use a2_conformance::servers::fresh_name;
use a2_store_postgres::deadpool_postgres::Transaction;
use a2_store_postgres::tokio_postgres::Client;
use a2_store_postgres::*;
use futures_util::future::BoxFuture;

use crate::util::*;

/// A table of the user's, and a statement that adds a row to it.
struct Totals {
    client: Client,
    table: String,
}

impl Totals {
    async fn new() -> Self {
        let (client, table) = (client().await, fresh_name());
        let sql = format!("create table {table} (orders int not null check (orders > 0))");
        client.batch_execute(&sql).await.unwrap();
        Self { client, table }
    }

    async fn rows(&self) -> i64 {
        count(&self.client, &format!("select count(*) from {}", self.table)).await
    }

    fn insert(&self, orders: i32) -> String {
        format!("insert into {} values ({orders})", self.table)
    }
}

fn run<'a>(tx: &'a Transaction<'_>, sql: &str) -> BoxFuture<'a, Result<(), BoxError>> {
    let sql = sql.to_owned();
    Box::pin(async move { Ok(tx.batch_execute(&sql).await?) })
}

#[tokio::test]
async fn both_are_committed() {
    let (store, totals, at) = (store().await, Totals::new().await, session("s"));
    let head = claimed(&store, &at, "e").await;
    let returned = event("returned").target(Target::event("c").unwrap());
    let done = complete(&head).events([returned]).unwrap().then_claim(claim());
    let insert = totals.insert(1);
    let done = store.complete_attempt_with(&at, done, |tx| run(tx, &insert)).await.unwrap();
    let appended = done.outcome.completed().unwrap();
    assert_eq!((appended.events[0].index.get(), appended.replayed), (2, false));
    assert_eq!(appended.events[0].cause, Some(head.cause()));
    assert_eq!(done.claim.unwrap().into_heads()[0].head.index, 2);
    assert_eq!(totals.rows().await, 1);
}

#[tokio::test]
async fn a_replay_answers_and_does_not_write_again() {
    let (store, totals, at) = (store().await, Totals::new().await, session("s"));
    let head = claimed(&store, &at, "e").await;
    let done = complete(&head).events([event("returned")]).unwrap();
    let insert = totals.insert(1);
    for replayed in [false, true] {
        let done = store.complete_attempt_with(&at, done.clone(), |tx| run(tx, &insert)).await;
        let appended = done.unwrap().outcome.completed().unwrap();
        assert_eq!((appended.events[0].index.get(), appended.replayed), (2, replayed));
    }
    assert_eq!(totals.rows().await, 1);
}

#[tokio::test]
async fn a_superseded_attempt_writes_nothing() {
    let (store, totals, at) = (store().await, Totals::new().await, session("s"));
    let head = claimed(&store, &at, "e").await;
    let release = ReleaseClaims::new("w", [head.attempt_ref()]).unwrap();
    let _ = store.release_claims(&at, release).await.unwrap();
    let (insert, done) = (totals.insert(1), complete(&head).then_claim(claim()));
    let done = store.complete_attempt_with(&at, done, |tx| run(tx, &insert)).await.unwrap();
    assert_eq!(done.outcome, Completion::Superseded);
    assert_eq!(done.claim.unwrap().into_heads()[0].attempt(), 2, "it claims all the same");
    assert_eq!(totals.rows().await, 0);
}

#[tokio::test]
async fn a_failing_write_rolls_everything_back() {
    let (store, totals, at) = (store().await, Totals::new().await, session("s"));
    let head = claimed(&store, &at, "e").await;
    let broken = format!("{}; {}", totals.insert(1), totals.insert(0));
    let done = complete(&head).events([event("returned")]).unwrap();
    let error = store.complete_attempt_with(&at, done.clone(), |tx| run(tx, &broken)).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), "INVALID_INPUT");
    assert!(error.to_string().starts_with("write: "), "{error}");
    assert!(error.source().unwrap().is::<tokio_postgres::Error>());
    let refused =
        store.complete_attempt_with(&at, done.clone(), |_| Box::pin(async { Err("no".into()) }));
    let error = refused.await.unwrap_err();
    assert_eq!(error.to_string(), "write: failed: no");
    assert_eq!((totals.rows().await, store.head(&at).await.unwrap().get()), (0, 1));
    // The claim stays, and the connections can be used.
    let insert = totals.insert(1);
    let done = store.complete_attempt_with(&at, done, |tx| run(tx, &insert)).await.unwrap();
    assert!(done.outcome.completed().is_some());
    assert_eq!(totals.rows().await, 1);
}

#[tokio::test]
async fn what_gives_way_to_another_transaction_runs_again() {
    let (store, totals, at) = (store().await, Totals::new().await, session("s"));
    let head = claimed(&store, &at, "e").await;
    let (insert, calls) = (totals.insert(1), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let done = store.complete_attempt_with(&at, complete(&head), move |tx| {
        let mut sql = insert.clone();
        if counted.fetch_add(1, Ordering::Relaxed) < 2 {
            sql += "; do $$ begin raise exception using errcode = '40P01'; end $$";
        }
        run(tx, &sql)
    });
    let done = done.await.unwrap();
    assert!(done.outcome.completed().is_some());
    assert_eq!((calls.load(Ordering::Relaxed), totals.rows().await), (3, 1));
}

#[tokio::test]
async fn the_users_statements_are_planned_as_usual() {
    let (store, at) = (store().await, session("s"));
    let head = claimed(&store, &at, "e").await;
    let check = "do $$ begin \
                 if current_setting('enable_seqscan') <> 'on' \
                 or current_setting('plan_cache_mode') <> 'auto' then raise exception 'no'; end if; \
                 end $$";
    let done = store.complete_attempt_with(&at, complete(&head), |tx| run(tx, check)).await;
    assert!(done.unwrap().outcome.completed().is_some());
}

#[tokio::test]
async fn a_dropped_future_leaves_nothing_behind() {
    let options = made().await.max_connections(1);
    let (store, totals, at) = (options.connect().await.unwrap(), Totals::new().await, session("s"));
    let head = claimed(&store, &at, "e").await;
    let insert = totals.insert(1);
    let started = Arc::new(tokio::sync::Notify::new());
    let never = store.complete_attempt_with(&at, complete(&head), |tx| {
        let insert = run(tx, &insert);
        let started = Arc::clone(&started);
        Box::pin(async move {
            insert.await?;
            started.notify_one();
            std::future::pending().await
        })
    });
    tokio::select! {
        done = never => panic!("{done:?}"),
        () = started.notified() => {}
    }
    // The only connection is free again, and its transaction over.
    let insert = totals.insert(1);
    let done = store.complete_attempt_with(&at, complete(&head), |tx| run(tx, &insert)).await;
    assert!(done.unwrap().outcome.completed().is_some());
    assert_eq!(totals.rows().await, 1);
}

/// The user's SQL fails in ways of its own: the same again fails again.
#[tokio::test]
async fn what_the_user_breaks_is_the_users() {
    let (store, totals, at) = (store().await, Totals::new().await, session("s"));
    let head = claimed(&store, &at, "e").await;
    let parent = format!("{}_parent", totals.table);
    let tables = format!(
        "create table {parent} (id int primary key);
         alter table {} add foreign key (orders) references {parent}
           deferrable initially deferred",
        totals.table
    );
    totals.client.batch_execute(&tables).await.unwrap();
    let broken = [
        // A constraint that is checked at the commit.
        totals.insert(7),
        "do $$ begin raise exception 'no'; end $$".to_owned(),
        "select 1 / 0".to_owned(),
    ];
    for sql in broken {
        let done = store.complete_attempt_with(&at, complete(&head), |tx| run(tx, &sql)).await;
        let error = done.unwrap_err();
        assert_eq!(error.code(), "INVALID_INPUT", "{sql}: {error}");
        assert!(error.to_string().starts_with("write: "), "{error}");
    }
    // A failure that is passed over.
    let ignored = store.complete_attempt_with(&at, complete(&head), |tx| {
        let broken = run(tx, "select 1 / 0");
        Box::pin(async move {
            drop(broken.await);
            Ok(())
        })
    });
    assert_eq!(ignored.await.unwrap_err().code(), "INVALID_INPUT");
    let done = store.complete_attempt(&at, complete(&head)).await.unwrap();
    assert!(done.outcome.completed().is_some());
    assert_eq!(totals.rows().await, 0);
}

#[tokio::test]
async fn what_is_above_the_stores_limits_is_refused_before_anything_is_run() {
    let (options, totals, at) = (made().await, Totals::new().await, session("s"));
    let limits = StoreLimits::new().batch_events(1).unwrap();
    let small = options.clone().limits(limits).connect().await.unwrap();
    let store = options.connect().await.unwrap();
    let head = claimed(&store, &at, "e").await;
    let above = complete(&head).events([event("x"), event("y")]).unwrap();
    let (insert, ran) = (totals.insert(1), AtomicUsize::new(0));
    let refused = small.complete_attempt_with(&at, above.clone(), |tx| {
        ran.fetch_add(1, Ordering::Relaxed);
        run(tx, &insert)
    });
    let error = refused.await.unwrap_err();
    assert_eq!(error.code(), "INVALID_INPUT");
    assert_eq!(error.to_string(), "events: must be at most 1 in one batch");
    assert_eq!((ran.load(Ordering::Relaxed), totals.rows().await), (0, 0));
    // Also when it was done before, by a store that takes more.
    let _ = store.complete_attempt_with(&at, above.clone(), |tx| run(tx, &insert)).await.unwrap();
    let again = small.complete_attempt_with(&at, above, |tx| run(tx, &insert)).await;
    assert_eq!(again.unwrap_err().code(), "INVALID_INPUT");
    assert_eq!(totals.rows().await, 1);
}
