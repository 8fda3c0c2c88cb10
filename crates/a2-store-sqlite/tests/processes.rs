//! Several processes, and several stores of one process, on one file.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use a2_store_sqlite::rusqlite::Connection;
use a2_store_sqlite::*;
use futures_util::StreamExt;
use support::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

/// Four stores of this process open the file at the same moment.
async fn open_four(path: &std::path::Path) {
    let opened = (0..4).map(|_| tokio::spawn(SqliteStore::open(path.to_owned())));
    for store in futures_util::future::join_all(opened).await {
        store.unwrap().unwrap().close().await.unwrap();
    }
}

#[test]
fn sixteen_stores_of_four_processes_make_one_file() {
    if let Some((path, _)) = is_child() {
        return runtime().block_on(open_four(&path));
    }
    for _ in 0..10 {
        let (_folder, path) = file();
        let start = |_| {
            let mut child = child("sixteen_stores_of_four_processes_make_one_file", &path, "open");
            child.spawn().unwrap()
        };
        all_succeed((0..4).map(start).collect());
        let own = Connection::open(&path).unwrap();
        let (tables, versions): (i64, i64) = own
            .query_row(
                "select (select count(*) from sqlite_schema where type = 'table'
                           and name like 'a2\\_%' escape '\\'),
                        (select count(*) from a2_meta)",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!((tables, versions), (13, 1));
    }
}

const OPERATIONS: usize = 60;
const TASKS: usize = 8;

/// Eight tasks append to sessions they share with everybody, claim and complete there.
async fn mixed(store: &SqliteStore, who: &str) {
    let tasks = (0..TASKS).map(|task| {
        let (store, who) = (store.clone(), format!("{who}-{task}"));
        tokio::spawn(async move {
            for i in 0..OPERATIONS {
                let at = session(&format!("shared-{}", i % 3));
                store.append(&at, append(&format!("{who}-{i}"))).await.unwrap();
                let claimed = store.claim_available(&at, claim(&who).limit(1).unwrap());
                for head in claimed.await.unwrap().into_heads() {
                    let done = CompleteAttempt::new(head.head.clone(), head.attempt());
                    let done = store.complete_attempt(&at, done).await.unwrap().outcome;
                    assert!(matches!(done, Completion::Completed(_)));
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

#[test]
fn no_process_loses_another_ones_update() {
    if let Some((path, who)) = is_child() {
        return runtime().block_on(async {
            let store = SqliteStore::open(&path).await.unwrap();
            mixed(&store, &who).await;
            store.close().await.unwrap();
        });
    }
    let (_folder, path) = file();
    let start = |who| child("no_process_loses_another_ones_update", &path, who).spawn().unwrap();
    all_succeed(["a", "b", "c"].map(start).into());
    runtime().block_on(async {
        let store = SqliteStore::open(&path).await.unwrap();
        let mut all = 0;
        for i in 0..3 {
            let at = session(&format!("shared-{i}"));
            let mut ids = ids(&store, &at).await;
            all += ids.len();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), 3 * TASKS * OPERATIONS / 3);
            // Every append was followed by a claim of one head: nothing is left, nothing was twice.
            let left = store.claim_available(&at, claim("last")).await.unwrap();
            assert_eq!(left, Claim::Settled);
        }
        assert_eq!(all, 3 * TASKS * OPERATIONS);
    });
    let own = Connection::open(&path).unwrap();
    let twice: i64 = own
        .query_row("select count(*) from a2_heads where attempt_count <> 1", [], |r| r.get(0))
        .unwrap();
    assert_eq!(twice, 0);
}

/// Appends, presence and redrives of another process.
async fn write_for_the_watchers(path: &std::path::Path) {
    let store = SqliteStore::open(path).await.unwrap();
    let at = session("watched");
    for i in 0..20 {
        store.append(&at, append(&format!("e{i}"))).await.unwrap();
    }
    let _ = store.clear(&at, Clear::new().id("marker").unwrap()).await.unwrap();
    store.append(&at, append("after")).await.unwrap();
    let update = PresenceUpdate::new("p", Duration::from_secs(60)).unwrap();
    let update = update.set("field", Json::parse("1").unwrap()).unwrap();
    store.set_presence(&Namespace::new("n").unwrap(), update).await.unwrap();
    store.close().await.unwrap();
}

#[test]
fn what_another_process_writes_wakes_streams_and_watchers() {
    if let Some((path, _)) = is_child() {
        return runtime().block_on(write_for_the_watchers(&path));
    }
    let (_folder, path) = file();
    runtime().block_on(async {
        let store = SqliteStore::open(&path).await.unwrap();
        let mut stream = store.stream(&session("watched"), Index::ZERO);
        let mut hints = store.watch_pending(Served::ALL);
        let mut presence = store.watch_presence(&Namespace::new("n").unwrap());
        let Some(Ok(PresenceChange::Rows(rows))) = presence.next().await else {
            panic!("the namespace comes first");
        };
        assert_eq!(rows.rows, []);
        let watch = tokio::spawn(async move {
            let mut seen = Vec::new();
            while seen.last().is_none_or(|(_, id)| id != "after") {
                let event = stream.next().await.unwrap().unwrap();
                seen.push((event.index.get(), event.id.as_str().to_owned()));
            }
            let hint = hints.next().await.unwrap().unwrap();
            let Some(Ok(PresenceChange::Patch(patch))) = presence.next().await else {
                panic!("then the changes");
            };
            (seen, hint, patch)
        });
        let mut child =
            child("what_another_process_writes_wakes_streams_and_watchers", &path, "write");
        let child = child.spawn().unwrap();
        let (seen, hint, patch) =
            tokio::time::timeout(Duration::from_secs(60), watch).await.unwrap().unwrap();
        all_succeed(vec![child]);
        // In order, without a gap but at the marker, which may be a jump.
        let marker = seen.iter().position(|(index, id)| *index == 21 && id == "marker").unwrap();
        for (i, (index, id)) in seen[..marker].iter().enumerate() {
            assert_eq!((*index, id.as_str()), (i as u64 + 1, format!("e{i}").as_str()));
        }
        assert_eq!(seen[marker + 1..], [(22, "after".to_owned())]);
        assert_eq!(hint.session, session("watched"));
        assert_eq!(patch.participant, "p");
        assert_eq!(patch.values[&Field::new("field").unwrap()], Some(Json::parse("1").unwrap()));
        assert!(!patch.source.is_empty());
        store.close().await.unwrap();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_of_one_process_share_a_file() {
    let (_folder, path) = file();
    let stores = [
        SqliteStore::open(&path).await.unwrap(),
        SqliteStore::open(&path).await.unwrap(),
        SqliteStore::builder(&path).synchronous(Synchronous::Normal).open().await.unwrap(),
    ];
    let tasks = stores.iter().enumerate().map(|(i, store)| {
        let store = store.clone();
        tokio::spawn(async move { mixed(&store, &format!("store-{i}")).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let all: usize = {
        let mut all = 0;
        for i in 0..3 {
            all += ids(&stores[0], &session(&format!("shared-{i}"))).await.len();
        }
        all
    };
    assert_eq!(all, 3 * TASKS * OPERATIONS);
}

#[tokio::test]
async fn a_writer_that_does_not_let_go_makes_others_unavailable() {
    let (_folder, path) = file();
    let store = SqliteStore::builder(&path)
        .operation_timeout(Duration::from_millis(50))
        .open()
        .await
        .unwrap();
    let own = Connection::open(&path).unwrap();
    own.execute_batch("begin immediate").unwrap();
    let error = store.append(&session("s"), append("e")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_UNAVAILABLE");
    assert!(!error.outcome_unknown());
    // Reading does not wait for a writer.
    assert_eq!(ids(&store, &session("s")).await, Vec::<String>::new());
    own.execute_batch("rollback").unwrap();
    store.append(&session("s"), append("e")).await.unwrap();
    assert_eq!(ids(&store, &session("s")).await, ["e"]);
}
