//! What a call reads: what it answers, not what the session holds.

use std::time::{Duration, Instant};

use a2_conformance::servers::fresh_name;
use a2_store_postgres::*;
use futures_util::future::join_all;

use crate::util::*;

const MANY: usize = 2_000;

#[tokio::test]
async fn a_page_of_cursors_reads_a_page() {
    let schema = fresh_name();
    let store = PostgresStore::builder(url().await).schema(&schema).connect().await.unwrap();
    store.migrate().await.unwrap();
    // What a connection counts is its own, also of the transaction before.
    let (setting, mut client) = (client().await, client().await);
    // Of two consumers each event has a cursor: both are held, or both are dead-lettered.
    let states = [
        ("held", "held_until = 9000000000000, attempt_count = 1, claim_holder = 'w'"),
        ("dead", "status = 2, attempt_count = 1, failure_count = 1, failed_at = 1"),
    ];
    for (name, state) in states {
        let events = (0..MANY).map(|n| {
            let targets = ["a", "b"].map(|consumer| Target::event(consumer).unwrap());
            targets.into_iter().fold(event(&n.to_string()), NewEvent::target)
        });
        store.append(&session(name), Append::new(events).unwrap()).await.unwrap();
        let set = format!("update {schema}.a2_heads set {state} where session_id = '{name}'");
        setting.batch_execute(&set).await.unwrap();
        // The second consumer's, from the middle on.
        let transaction = client.transaction().await.unwrap();
        let page = format!("select n from {schema}.a2_cursors_2('{name}', 'b', 2, '', 1000, 5)");
        let rows = transaction.query(&page, &[]).await.unwrap();
        let positions: Vec<Option<i64>> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(
            positions,
            [None, Some(1_000), Some(1_001), Some(1_002), Some(1_003), Some(1_004)]
        );
        let read = format!(
            "select idx_tup_fetch + seq_tup_read from pg_stat_xact_user_tables
             where schemaname = '{schema}' and relname = 'a2_heads'"
        );
        let read: i64 = transaction.query_one(&read, &[]).await.unwrap().get(0);
        assert!(read < 50, "{name}: {read} rows were read for five");
        transaction.rollback().await.unwrap();
    }
}

/// Appends, claims and completes in so many sessions, and how long a round of it took on the average.
async fn rounds(store: &PostgresStore, sessions: usize, part: usize, rounds: usize) -> Duration {
    let start = Instant::now();
    let work = (0..sessions).map(|who| {
        let store = store.clone();
        tokio::spawn(async move {
            let at = session(&format!("{sessions}-{who}"));
            for round in 0..rounds {
                let head = claimed(&store, &at, &format!("{part}-{round}")).await;
                let _ = store.complete_attempt(&at, complete(&head)).await.unwrap();
            }
        })
    });
    join_all(work).await.into_iter().for_each(Result::unwrap);
    start.elapsed() / u32::try_from(rounds).unwrap()
}

/// Measures: `--ignored --nocapture`. Dead rows stay for as long as somebody else's snapshot is open.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures for some minutes"]
async fn what_dead_rows_cost() {
    let store = store().await;
    let mut client = client().await;
    for (sessions, each) in [(64, 32), (1, 500)] {
        let _ = rounds(&store, sessions, 0, each).await;
        let snapshot = client.build_transaction();
        let snapshot = snapshot.isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
        let snapshot = snapshot.start().await.unwrap();
        snapshot.query("select count(*) from pg_class", &[]).await.unwrap();
        for part in 1..=10 {
            let took = rounds(&store, sessions, part, each).await;
            println!("{sessions} sessions, after {} of each: {took:?} a round", part * each);
        }
        snapshot.rollback().await.unwrap();
    }
}
