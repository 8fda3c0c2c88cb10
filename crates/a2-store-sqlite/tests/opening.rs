//! What a store makes of the file it is given: new ones, foreign ones, newer ones, broken ones.

#![allow(clippy::unwrap_used)]

mod support;

use a2_store_sqlite::rusqlite::Connection;
use a2_store_sqlite::*;
use support::*;

async fn refused(path: &std::path::Path) -> Error {
    SqliteStore::open(path).await.map(|_| ()).unwrap_err()
}

#[tokio::test]
async fn exactly_the_named_file_is_made() {
    let (folder, _) = file();
    for name in ["with space.db", "a?b.db", "a#b.db", "a%20b.db", "🦀.db", "mode=memory", ":x:"] {
        let path = folder.path().join(name);
        let store = SqliteStore::open(&path).await.unwrap();
        store.append(&session("s"), append("e")).await.unwrap();
        store.close().await.unwrap();
        let made: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(made, [name]);
        let again = SqliteStore::open(&path).await.unwrap();
        assert_eq!(ids(&again, &session("s")).await, ["e"]);
        again.close().await.unwrap();
        std::fs::remove_file(path).unwrap();
    }
}

#[tokio::test]
async fn what_names_no_file_is_refused() {
    for path in ["", ":memory:", "file:a2.db", "file::memory:?cache=shared"] {
        let error = refused(std::path::Path::new(path)).await;
        assert_eq!(error.code(), "INVALID_INPUT", "{path:?}");
    }
    let (folder, path) = file();
    assert_eq!(refused(folder.path()).await.code(), "STORE_NOT_CONFIGURED");
    let nowhere = folder.path().join("no/such/folder/a2.db");
    let error = refused(&nowhere).await;
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
    assert!(error.to_string().contains("no/such/folder/a2.db"), "{error}");
    assert!(!path.exists());
}

#[tokio::test]
async fn the_users_own_tables_stay() {
    let (_folder, path) = file();
    let own = Connection::open(&path).unwrap();
    own.execute_batch(
        "pragma application_id = 77; pragma user_version = 12;
         create table totals (orders integer); insert into totals values (3);",
    )
    .unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    store.append(&session("s"), append("e")).await.unwrap();
    store.close().await.unwrap();
    let number = |sql: &str| own.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("select orders from totals"), 3);
    assert_eq!(number("pragma application_id"), 77);
    assert_eq!(number("pragma user_version"), 12);
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused() {
    let (_folder, path) = file();
    SqliteStore::open(&path).await.unwrap().close().await.unwrap();
    let own = Connection::open(&path).unwrap();
    own.execute("update a2_meta set value = 2 where key = 'schema'", []).unwrap();
    let error = refused(&path).await;
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
    assert!(error.to_string().contains("of version 2, this program knows version 1"), "{error}");
    own.execute("update a2_meta set value = 1 where key = 'schema'", []).unwrap();
    SqliteStore::open(&path).await.unwrap();
}

#[tokio::test]
async fn foreign_tables_of_the_same_names_are_refused_and_left_alone() {
    let foreign = [
        "create table a2_events (x)",
        "create table a2_meta (x)",
        "create table a2_meta (key text, value text)",
        "create table a2_meta (key text, value text); insert into a2_meta values ('schema', 'x')",
        "create table a2_meta (key text, value text); insert into a2_meta values ('schema', 0)",
        "create table a2_meta (key text, value text); insert into a2_meta values ('schema', -1)",
    ];
    for sql in foreign {
        let (_folder, path) = file();
        let own = Connection::open(&path).unwrap();
        own.execute_batch(sql).unwrap();
        let error = refused(&path).await;
        assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{sql}: {error}");
        let tables: i64 = own
            .query_row("select count(*) from sqlite_schema where type = 'table'", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(tables, 1, "{sql}");
    }
}

#[tokio::test]
async fn another_encoding_is_refused() {
    let (_folder, path) = file();
    let own = Connection::open(&path).unwrap();
    own.execute_batch("pragma encoding = 'UTF-16'; create table t (x);").unwrap();
    let error = refused(&path).await;
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
    assert!(error.to_string().contains("UTF-16"), "{error}");
}

#[tokio::test]
async fn what_is_no_database_is_corrupt() {
    let (_folder, path) = file();
    std::fs::write(&path, "this is not a database, but long enough to look at. ".repeat(100))
        .unwrap();
    let error = refused(&path).await;
    assert_eq!(error.code(), "CORRUPT");
    assert!(error.to_string().contains("a2.db"), "{error}");
}

#[tokio::test]
async fn a_damaged_file_is_corrupt_and_the_store_goes_on() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    for i in 0..200 {
        store.append(&session("s"), append(&format!("e{i}"))).await.unwrap();
    }
    store.close().await.unwrap();
    let own = Connection::open(&path).unwrap();
    let page: i64 = own
        .query_row("select rootpage from sqlite_schema where name = 'a2_events'", [], |row| {
            row.get(0)
        })
        .unwrap();
    drop(own);
    let mut bytes = std::fs::read(&path).unwrap();
    let start = (page as usize - 1) * 4096;
    bytes[start..start + 4096].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();

    let store = SqliteStore::open(&path).await.unwrap();
    let read = store.read(&session("s"), ReadRange::default()).await.unwrap_err();
    assert_eq!(read.code(), "CORRUPT");
    assert!(read.to_string().contains("a2.db: read: "), "{read}");
    let error = store.append(&session("s"), append("new")).await.unwrap_err();
    assert_eq!(error.code(), "CORRUPT");
    assert!(error.to_string().contains("a2.db: append: "), "{error}");
    assert!(!error.is_retryable());
    // What lies elsewhere is still there.
    assert_eq!(store.sessions(Page::first()).await.unwrap().sessions[0].head, 200);
}

#[tokio::test]
async fn a_hole_in_the_log_is_corrupt() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    for i in 1..=5 {
        store.append(&session("s"), append(&format!("e{i}"))).await.unwrap();
    }
    let own = Connection::open(&path).unwrap();
    own.execute("delete from a2_events where idx = 3", []).unwrap();
    let error = store.read(&session("s"), ReadRange::default()).await.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Corrupt { index: Some(index), .. } if *index == 3),
        "{error}"
    );
}

#[tokio::test]
async fn a_stored_value_that_reads_as_no_name_is_corrupt() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    store.append(&session("s"), append("e")).await.unwrap();
    let own = Connection::open(&path).unwrap();
    for sql in [
        "update a2_events set type = ''",
        "update a2_events set type = cast(x'ff41' as text)",
        "update a2_events set type = 't', cause = '{}'",
        "update a2_events set cause = null, idx = -1",
    ] {
        own.execute(sql, []).unwrap();
        let read = store.read(&session("s"), ReadRange::default()).await;
        assert_eq!(read.unwrap_err().code(), "CORRUPT", "{sql}");
    }
}

#[tokio::test]
async fn a_missing_table_is_not_configured() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).await.unwrap();
    Connection::open(&path).unwrap().execute_batch("drop table a2_heads").unwrap();
    let error = store.append(&session("s"), append("e")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
    assert!(error.to_string().contains("a2_heads"), "{error}");
    assert_eq!(ids(&store, &session("s")).await, Vec::<String>::new());
}

/// Root may write everywhere, so the child gives its rights up.
#[cfg(unix)]
#[test]
fn a_read_only_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65_534;
    const CHILD_RAN: i32 = 17;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some((path, _)) = is_child() {
        let error = runtime.block_on(refused(&path));
        assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
        assert!(error.to_string().contains("a2.db"), "{error}");
        std::process::exit(CHILD_RAN);
    }
    let (folder, path) = file();
    runtime.block_on(async { SqliteStore::open(&path).await.unwrap().close().await.unwrap() });
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&path, 0o444);
    let rights_hold = std::fs::OpenOptions::new().write(true).open(&path).is_err();
    let try_in_child = || {
        let mut child = child("a_read_only_file_is_refused", &path, "");
        if !rights_hold {
            // The child's binary must be where anybody may read it.
            let copy = folder.path().join("test-binary");
            std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
            set(&copy, 0o755);
            child = std::process::Command::new(copy);
            child
                .args(["--exact", "a_read_only_file_is_refused", "--nocapture"])
                .env("A2_TEST_FILE", &path)
                .stdout(std::process::Stdio::null())
                .uid(NOBODY)
                .gid(NOBODY);
        }
        assert_eq!(child.status().unwrap().code(), Some(CHILD_RAN));
    };
    // The file may be read only; then the file may be written and its folder may not.
    set(folder.path(), 0o777);
    try_in_child();
    set(&path, 0o666);
    set(folder.path(), 0o555);
    try_in_child();
    set(folder.path(), 0o755);
}
