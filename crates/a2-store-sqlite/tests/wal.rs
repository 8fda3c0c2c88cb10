//! The WAL stays short, whatever is open.

#![allow(clippy::unwrap_used)]

mod support;

use a2_store_sqlite::*;
use futures_util::StreamExt;
use support::*;

const MIB: u64 = 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn open_streams_and_pages_do_not_keep_it_from_starting_over() {
    let (_folder, path) = file();
    let store = SqliteStore::builder(&path).synchronous(Synchronous::Normal).open().await.unwrap();
    for i in 0..5 {
        store.append(&session("read"), append(&format!("e{i}"))).await.unwrap();
    }
    let mut streams: Vec<_> = (0..3).map(|_| store.stream(&session("read"), Index::ZERO)).collect();
    for stream in &mut streams {
        assert_eq!(stream.next().await.unwrap().unwrap().index, 1);
    }
    let read = session("read");
    let mut half_read = Box::pin(store.read_all(&read, Index::ZERO));
    assert_eq!(half_read.next().await.unwrap().unwrap().index, 1);

    let payload = Json::from_serialize(&"x".repeat(MIB as usize)).unwrap();
    let mut longest = 0;
    for i in 0..300 {
        let event = NewEvent::from_json("t", payload.clone()).unwrap();
        let at = session(&format!("write-{}", i % 7));
        store.append(&at, Append::one(event).unwrap()).await.unwrap();
        longest = longest.max(length(&path, "-wal"));
    }
    assert!(longest < 64 * MIB, "{longest}");
    assert_eq!(half_read.next().await.unwrap().unwrap().index, 2);
    drop((streams, half_read));
    store.close().await.unwrap();
    assert_eq!(length(&path, "-wal"), 0);
}

/// A disk that is full has no room for the next commit, and SQLite writes the log back after commits alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_has_filled_the_disk_is_written_back_once_it_can_be() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    let at = session("s");
    let large = |kib: usize| {
        let payload = Json::from_serialize(&"x".repeat(kib * 1024)).unwrap();
        Append::one(NewEvent::from_json("t", payload).unwrap()).unwrap()
    };
    store.append(&at, append("e")).await.unwrap();
    let head = store.claim_available(&at, claim("w")).await.unwrap().into_heads().remove(0);

    // Somebody reads: nothing that comes after can be written back.
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("begin; select count(*) from sqlite_schema").unwrap();
    for _ in 0..60 {
        store.append(&at, large(100)).await.unwrap();
    }
    // The file has no room for more than some pages.
    let complete = CompleteAttempt::new(head.head.clone(), head.attempt());
    let limit = |tx: &rusqlite::Connection| {
        let pages: i64 = tx.query_row("pragma page_count", [], |row| row.get(0))?;
        let most = format!("pragma max_page_count = {}", pages + 20);
        tx.query_row(&most, [], |row| row.get::<_, i64>(0))?;
        Ok(())
    };
    let _ = store.complete_attempt_with(&at, complete, limit).await.unwrap();
    let full = length(&path, "-wal");
    assert!(full > 5 * MIB, "{full}");
    reader.execute_batch("commit").unwrap();

    let refused = store.append(&at, large(1_000)).await.unwrap_err();
    assert_eq!(refused.code(), "STORE_UNAVAILABLE");
    // The next commit needs no room: the log has begun anew.
    store.append(&at, append("small")).await.unwrap();
    let now = length(&path, "-wal");
    assert!(now <= full, "{now} after {full}");
}

/// An event of 200 bytes with one target, in one session and over many.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_a_target_takes_less_than_700_bytes() {
    let payload = Json::from_serialize(&"x".repeat(198)).unwrap();
    for sessions in [1, 64] {
        let (_folder, path) = file();
        let store = SqliteStore::open(&path).await.unwrap();
        for i in 0..100_usize {
            let events = (0..100).map(|_| {
                NewEvent::from_json("order.placed", payload.clone())
                    .unwrap()
                    .target(Target::lane("billing", "order-17").unwrap())
            });
            let at = session(&format!("session-{}", i % sessions));
            store.append(&at, Append::new(events).unwrap()).await.unwrap();
        }
        store.close().await.unwrap();
        let bytes = length(&path, "") / 10_000;
        assert!(bytes <= 700, "{bytes} bytes an event over {sessions} sessions");
        println!("{bytes} bytes an event over {sessions} sessions");
    }
}
