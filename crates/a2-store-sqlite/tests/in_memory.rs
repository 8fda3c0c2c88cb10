//! A store in memory: one database, whoever asks and however often.

#![allow(clippy::unwrap_used)]

mod support;

use a2_store_sqlite::*;
use support::*;

/// What is in memory is seen by every call: there is no second connection with a database of its
/// own, neither at once nor after the store has been idle.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_memory_is_one_for_all_its_calls() {
    let (store, other) =
        (SqliteStore::in_memory().await.unwrap(), SqliteStore::in_memory().await.unwrap());
    let at = session("shared");
    for round in 0..3 {
        let tasks = (0..16).map(|task| {
            let (store, at) = (store.clone(), at.clone());
            tokio::spawn(async move {
                let id = format!("{round}-{task}");
                store.append(&at, append(&id)).await.unwrap();
                assert!(ids(&store, &at).await.contains(&id));
                let claimed = store.claim_available(&at, claim(&id).limit(1).unwrap()).await;
                for head in claimed.unwrap().into_heads() {
                    let done = CompleteAttempt::new(head.head.clone(), head.attempt());
                    let done = store.complete_attempt(&at, done).await.unwrap().outcome;
                    assert!(matches!(done, Completion::Completed(_)));
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert_eq!(ids(&store, &at).await.len(), 16 * (round + 1));
    }
    assert_eq!(store.claim_available(&at, claim("last")).await.unwrap(), Claim::Settled);
    assert_eq!(ids(&other, &at).await, [""; 0], "another store has a memory of its own");
}
