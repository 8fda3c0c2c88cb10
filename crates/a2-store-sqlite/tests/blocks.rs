//! Ids and types are recorded for eight events at once: on both sides of every such index an id is
//! owned, and a typed log finds its next event, in this lifetime and the next.

#![allow(clippy::unwrap_used)]

mod support;

use a2_store_sqlite::*;
use support::*;

fn typed(id: &str, event_type: &str) -> NewEvent {
    let payload = Json::from_serialize(&1).unwrap();
    NewEvent::from_json(event_type, payload).unwrap().id(id).unwrap()
}

/// Appends `count` events whose first has index `first`: every third is a "third".
async fn fill(store: &SqliteStore, at: &SessionId, first: u64, count: u64) {
    for index in first..first + count {
        let event_type = if index % 3 == 0 { "third" } else { "other" };
        let event = typed(&format!("e{index}"), event_type);
        let appended = store.append(at, Append::one(event).unwrap()).await.unwrap();
        assert_eq!((appended.events[0].index.get(), appended.replayed), (index, false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_owned_on_both_sides_of_a_block() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let at = session("s");
    for (first, clear) in [(1, 12), (13, 24), (25, 33)] {
        let count = clear - first;
        fill(&store, &at, first, count).await;
        for index in first..clear {
            let again = Append::one(typed(&format!("e{index}"), "other")).unwrap();
            let replayed = store.append(&at, again).await.unwrap();
            assert_eq!((replayed.events[0].index.get(), replayed.replayed), (index, true));
        }
        // What an earlier lifetime owned is free again, also while a batch asks for several.
        if first > 1 {
            let again = [typed("e1", "other"), typed(&format!("e{first}"), "other")];
            let error = store.append(&at, Append::new(again).unwrap()).await.unwrap_err();
            assert_eq!(error.code(), "PARTIAL_DUPLICATE_BATCH");
        }
        assert_eq!(store.clear(&at, Clear::new()).await.unwrap().clear_index.get(), clear);
    }
    while !store.reclaim(&at).await.unwrap().done {}
    drop(store);
    let own = rusqlite::Connection::open(&path).unwrap();
    let left = |table: &str| -> i64 {
        own.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((left("a2_events"), left("a2_ids"), left("a2_types")), (1, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_log_finds_what_is_recorded_and_what_is_not() {
    let (_folder, path) = file();
    let store = SqliteStore::open(path).await.unwrap();
    let at = session("s");
    fill(&store, &at, 1, 21).await;
    let types = LogTypes::only([EventType::new("third").unwrap()]).unwrap();
    let thirds = LogDeclaration::new("log").unwrap().types(types).backfill();
    let woken = WakeLog::new("c", thirds.clone()).unwrap();
    store.wake_log(&at, woken).await.unwrap();
    let served = Served::only([ServedConsumer::new("c").unwrap().log(thirds)]).unwrap();
    let mut seen = Vec::new();
    loop {
        let claimed = store.claim_available(&at, claim("w").served(served.clone())).await.unwrap();
        let Claim::Claimed(claimed) = claimed else { break };
        let head = &claimed.heads[0];
        seen.push(head.head.index.get());
        let done = CompleteAttempt::new(head.head.clone(), head.attempt());
        let completed = store.complete_attempt(&at, done).await.unwrap();
        assert!(matches!(completed.outcome, Completion::Completed(_)));
    }
    assert_eq!(seen, [3, 6, 9, 12, 15, 18, 21]);
}
