//! Writers of the earlier release that are at work while the schema is upgraded: they are waited for, then
//! they fail.

use std::time::{Duration, Instant};

use a2_store_postgres::tokio_postgres::Client;
use a2_store_postgres::*;

use crate::old::{RELEASES, Release, SESSION, Schema, connect};
use crate::tell::{cursors, events, session};

/// Waits until somebody waits for a lock on this table.
async fn until_waited_for(schema: &Schema, table: &str) {
    let waiting = format!(
        "select 'x' from pg_locks where not granted and relation = '{}.{table}'::regclass",
        schema.name
    );
    let deadline = Instant::now() + Duration::from_secs(30);
    while schema.texts(&waiting).await.is_empty() {
        assert!(Instant::now() < deadline, "nobody waits for {table}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn append(session: &str, idx: i64, id: &str) -> String {
    format!(
        "insert into a2_events (session_id, idx, event_id, event_type, payload, created_at)
         values ('{}', {idx}, '{id}', 'a', '0', 1)",
        session.replace('\'', "''")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_writer_is_waited_for_and_the_next_one_fails() {
    for release in RELEASES {
        let schema = Schema::of(release).await;
        let (name, last) = match release {
            Release::V0_17 | Release::V0_20 => ("Überall", 3),
            Release::V0_21 | Release::V0_22 => (SESSION, 12),
        };
        let writer = connect(&schema.name).await;
        let write = format!("begin; {}", append(name, last + 1, "in time"));
        writer.batch_execute(&write).await.unwrap();
        let store = schema.store().await;
        let migrating = store.clone();
        let options = Migrate::new().drop_unfinished();
        let upgrade = tokio::spawn(async move { migrating.migrate_with(options).await });
        until_waited_for(&schema, "a2_events").await;
        // Behind the upgrade.
        let late = connect(&schema.name).await;
        let write = append(name, last + 2, "too late");
        let late = tokio::spawn(async move { late.batch_execute(&write).await });
        writer.batch_execute("commit").await.unwrap();
        upgrade.await.unwrap().unwrap();
        assert!(late.await.unwrap().is_err(), "{release:?}");
        assert!(writer.batch_execute(&append(name, last + 2, "later")).await.is_err());

        let read = store.read(&session(name), ReadRange::default()).await.unwrap();
        let last = read.events.last().unwrap();
        assert_eq!((last.id.as_str(), read.head), ("in time", last.index));
        if matches!(release, Release::V0_21 | Release::V0_22) {
            old_verbs_fail(&writer).await;
        }
        let next = NewEvent::new("t", &1).unwrap().id("next").unwrap();
        let appended = store.append(&session(name), Append::one(next).unwrap()).await.unwrap();
        assert_eq!(appended.events[0].index.get(), last.index.get() + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_writer_commits_while_it_is_waited_for_is_looked_at() {
    for release in RELEASES {
        let schema = Schema::of(release).await;
        let writer = connect(&schema.name).await;
        writer.batch_execute(&format!("begin; {}", append("new", 1, ""))).await.unwrap();
        let store = schema.store().await;
        let upgrade = tokio::spawn(async move { store.migrate().await });
        until_waited_for(&schema, "a2_events").await;
        writer.batch_execute("commit").await.unwrap();
        let error = upgrade.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("the row (new, 1) of a2_events"), "{release:?} {error}");
    }
}

/// What a process of 0.21 or 0.22 does beside appending.
async fn old_verbs_fail(writer: &Client) {
    for (write, code) in [
        ("update a2_cursors set claim_holder = 'w' where head = 6", "42P01"),
        ("update a2_lane_events set done = true", "42P01"),
        (
            "insert into a2_snapshots (session_id, reducer_name, up_to_index, state)
             values ('s', 'r', 1, '1') on conflict (session_id, reducer_name)
             do update set state = excluded.state",
            "42P10",
        ),
        ("select a2_batch(array['select 1'])", "42883"),
    ] {
        let error = writer.batch_execute(write).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some(code), "{write}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_locks_in_another_order_only_delays_it() {
    for release in [Release::V0_21, Release::V0_22] {
        let schema = Schema::of(release).await;
        let writer = connect(&schema.name).await;
        let locks =
            "begin; update a2_cursors set claim_expires_at = 9001 where claim_holder = 'w ''1'''";
        writer.batch_execute(locks).await.unwrap();
        let store = schema.store().await;
        let migrating = store.clone();
        let upgrade = tokio::spawn(async move { migrating.migrate().await });
        until_waited_for(&schema, "a2_cursors").await;
        // Each waits for the other: one of them has to give way.
        let wrote = writer.batch_execute(&append(SESSION, 13, "e13")).await.is_ok();
        writer.batch_execute("commit").await.unwrap();
        upgrade.await.unwrap().unwrap();

        let events = events(&store, SESSION).await;
        assert_eq!(events.last().unwrap().starts_with("13 e13"), wrote, "{events:?}");
        let until = if wrote { "until 9001" } else { "until 9000" };
        let cursors = cursors(&store, SESSION).await;
        assert!(cursors[0].contains(until), "{cursors:?}");
    }
}
