//! What is refused, and that nothing is changed then.

use a2_store_postgres::*;

use crate::old::{RELEASES, Release, SCHEMA, SESSION, Schema};

const HANDLERS: [Release; 2] = [Release::V0_17, Release::V0_20];
const CURSORS: [Release; 2] = [Release::V0_21, Release::V0_22];

/// Refused by `migrate`, by the plain file, and by its first statement alone; what is there stays.
async fn refused(release: Release, damage: &str, words: &[&str]) {
    let schema = Schema::of(release).await;
    schema.run(damage).await;
    let (catalog, rows) = (schema.catalog().await, schema.rows().await);
    let error = schema.store().await.migrate().await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{release:?} {damage}: {error}");
    assert!(!error.is_retryable());
    let said = error.to_string();
    for word in words {
        assert!(said.contains(word), "{release:?} {damage}: no {word:?} in {said}");
    }
    let first = SCHEMA.split("--> statement-breakpoint").next().unwrap();
    for text in [SCHEMA, first] {
        assert!(schema.client.batch_execute(text).await.is_err());
        schema.run("rollback").await;
    }
    assert_eq!(schema.catalog().await, catalog, "{release:?} {damage}");
    assert_eq!(schema.rows().await, rows, "{release:?} {damage}");
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test]
async fn an_event_that_breaks_a_limit_is_named() {
    let long = "ü".repeat(257);
    let deep = nested(128);
    let table: [(String, &[&str]); 10] = [
        ("event_id = ''".into(), &["event_id must be 1 to 512 bytes"]),
        (format!("event_id = '{long}'"), &["event_id must be 1 to 512 bytes"]),
        ("event_type = ''".into(), &["event_type must be 1 to 512 bytes"]),
        ("session_id = ''".into(), &["session_id must be 1 to 512 bytes"]),
        ("idx = 0".into(), &["idx must be 1 to 9007199254740991"]),
        (format!("payload = '{deep}'"), &["payload must", "127"]),
        (format!(r#"payload = '{{"a]\"":"]","b":{}}}'"#, nested(127)), &["payload must", "127"]),
        (r#"cause = '{"attempt":1}'"#.into(), &["cause must be an attempt"]),
        (
            r#"cause = '{"consumer":"","index":1,"attempt":1}'"#.into(),
            &["cause must be an attempt"],
        ),
        (r#"cause = '[]'"#.into(), &["cause must be an attempt"]),
    ];
    for (set, words) in table {
        for release in RELEASES {
            let (session, at) = match release {
                Release::V0_17 | Release::V0_20 => ("Überall", 3),
                Release::V0_21 | Release::V0_22 => ("other", 1),
            };
            let damage =
                format!("update a2_events set {set} where session_id = '{session}' and idx = {at}");
            let row = match &*set {
                "session_id = ''" => format!("(, {at}) of"),
                "idx = 0" => format!("({session}, 0) of"),
                _ => format!("({session}, {at}) of"),
            };
            let words: Vec<_> = words.iter().copied().chain([&*row]).collect();
            refused(release, &damage, &words).await;
        }
    }
}

#[tokio::test]
async fn what_is_just_within_the_limits_is_kept() {
    for release in RELEASES {
        let schema = Schema::of(release).await;
        let name = "n".repeat(512);
        let payload = nested(127);
        // More brackets than levels, most of them in a string.
        let wide = format!(r#"[[],[],"{}"]"#, "[{".repeat(200));
        schema
            .run(&format!(
                "insert into a2_events (session_id, idx, event_id, event_type, payload, created_at)
                 values ('{name}', 1, '{name}', '{name}', '{payload}', 1), ('{name}', 2, 'w', 't', '{wide}', 1)"
            ))
            .await;
        let store = schema.store().await;
        store.migrate_with(Migrate::new().drop_unfinished()).await.unwrap();
        let session = SessionId::new(&name).unwrap();
        let read = store.read(&session, ReadRange::default()).await.unwrap().events;
        assert_eq!(read[0].id.as_str(), name);
        assert_eq!(read[0].payload.as_str(), payload);
        assert_eq!(read[1].payload.as_str(), wide);
    }
}

#[tokio::test]
async fn other_rows_that_break_a_limit_are_named() {
    let long = "n".repeat(513);
    let deep = nested(128);
    let damage = format!("update a2_snapshots set state = '{deep}'");
    for release in RELEASES {
        refused(release, &damage, &["of a2_snapshots cannot be kept: state must"]).await;
    }
    let cursor = "session_id = 'other'";
    let table = [
        (
            format!("update a2_cursors set consumer = '' where {cursor}"),
            "of a2_cursors cannot be kept: consumer must",
        ),
        (
            format!("update a2_cursors set lane = '{long}' where {cursor}"),
            "of a2_cursors cannot be kept: lane must",
        ),
        (
            format!("update a2_cursors set lane = null where {cursor}"),
            "of a2_cursors cannot be kept: kind must",
        ),
        (
            format!("update a2_cursors set kind = 'x' where {cursor}"),
            "of a2_cursors cannot be kept: kind must",
        ),
        (
            format!("update a2_cursors set types = '{{}}' where {cursor}"),
            "of a2_cursors cannot be kept: types must",
        ),
        (
            format!("update a2_cursors set claim_holder = '' where {cursor}"),
            "of a2_cursors cannot be kept: claim_holder must",
        ),
        (
            format!("update a2_lane_events set lane = '{long}' where {cursor}"),
            "of a2_lane_events cannot be kept: lane must",
        ),
        (
            format!("update a2_snapshot_history set state = '{deep}'"),
            "of a2_snapshot_history cannot be kept: state must",
        ),
        (
            format!("update a2_presence set field = '{long}' where field = 'f'"),
            "of a2_presence cannot be kept: field must",
        ),
        (
            "update a2_cursors set attempt_count = -1 where consumer = 'logs'".into(),
            "of a2_cursors cannot be kept: attempt_count must",
        ),
        (
            "update a2_snapshot_history set up_to_index = -1 where up_to_index = 4".into(),
            "of a2_snapshot_history cannot be kept: up_to_index must",
        ),
        (
            "update a2_presence set value = to_json(repeat('x', 65536))".into(),
            "of a2_presence cannot be kept: value must be at most 65536 bytes",
        ),
        ("update a2_clears set clear_index = 4".into(), "(s: 'x' {y} %, 4) of a2_clears"),
        (
            "update a2_lane_events set done = true where idx = 7 and session_id <> 'other'".into(),
            "(s: 'x' {y} %, lanes, L {1}, 7) of a2_lane_events",
        ),
        (
            "update a2_lane_events set done = false where idx = 5".into(),
            "(s: 'x' {y} %, lanes, L {1}, 6) of a2_lane_events",
        ),
    ];
    for (damage, words) in table {
        for release in CURSORS {
            refused(release, &damage, &[words]).await;
        }
    }
}

#[tokio::test]
async fn what_fails_half_way_or_at_the_end_changes_nothing() {
    let raises = "create function raises() returns trigger language plpgsql as $$
        begin raise exception 'not this row'; end $$;
        create trigger raises before update on a2_events for each row execute function raises()";
    for release in RELEASES {
        refused(release, raises, &["not this row"]).await;
    }
    // The last thing that is done.
    let holds = "create view holds as select processed_at from a2_events";
    for release in HANDLERS {
        refused(release, holds, &["processed_at"]).await;
    }
    let holds = "create view holds as select * from a2_cursors";
    for release in CURSORS {
        refused(release, holds, &["a2_cursors"]).await;
    }
}

#[tokio::test]
async fn a_marker_that_the_clears_do_not_know_is_refused() {
    for release in CURSORS {
        let words = &["a2_clears", "must name the latest event of type a2.clear"];
        refused(release, "delete from a2_clears", words).await;
        refused(release, "update a2_clears set clear_index = 2", words).await;
    }
}

#[tokio::test]
async fn tables_of_two_layouts_are_refused() {
    for release in CURSORS {
        let both = "alter table a2_events add column processed_at bigint";
        refused(release, both, &["two earlier layouts", "a2_cursors"]).await;
    }
}

#[tokio::test]
async fn an_id_that_is_owned_twice_is_refused() {
    let schema = Schema::of(Release::V0_22).await;
    schema.run("update a2_events set event_id = 'e4' where event_id = 'e12'").await;
    let (catalog, rows) = (schema.catalog().await, schema.rows().await);
    let error = schema.store().await.migrate().await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    assert!(error.to_string().contains(&format!("{SESSION}, 12")), "{error}");
    assert_eq!((schema.catalog().await, schema.rows().await), (catalog, rows));
}

#[tokio::test]
async fn only_the_owner_may_upgrade() {
    for release in RELEASES {
        let schema = Schema::of(release).await;
        let role = format!("{}_role", schema.name);
        let grants = format!(
            "create role {role} login password 'pw';
             grant all on schema {name} to {role};
             grant select, insert, update, delete on all tables in schema {name} to {role}",
            name = schema.name
        );
        schema.run(&grants).await;
        let mut config: tokio_postgres::Config = crate::old::url().await.parse().unwrap();
        config.user(&role).password("pw");
        let manager = deadpool_postgres::Manager::new(config, tokio_postgres::NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).max_size(1).build().unwrap();
        let store = PostgresStore::pool_builder(pool).schema(&schema.name).connect().await.unwrap();
        let rows = schema.rows().await;
        let error = store.migrate().await.unwrap_err();
        assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
        let said = error.to_string();
        assert!(said.contains("must be run by") && said.contains("who owns"), "{said}");
        assert_eq!(schema.rows().await, rows);
    }
}

#[tokio::test]
async fn a_snapshot_that_is_older_than_the_lock_is_refused() {
    let schema = Schema::of(Release::V0_22).await;
    let script = format!("begin isolation level repeatable read; {SCHEMA}");
    let error = schema.client.batch_execute(&script).await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("A2002"), "{error}");
}

#[tokio::test]
async fn tables_of_another_kind_are_refused() {
    let foreign = "create table a2_events (id bigint primary key, what text)";
    let keyed =
        "create table a2_events (session_id text, idx bigint, event_id text, event_type text,
        payload json, cause json, created_at bigint, lane text, processed_at bigint)";
    for (make, missing) in [(foreign, "no a2_events."), (keyed, "no primary key (session_id, idx)")]
    {
        let schema = Schema::empty().await;
        schema.run(make).await;
        let error = schema.store().await.migrate().await.unwrap_err();
        assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
        let said = error.to_string();
        assert!(said.contains("another layout") && said.contains(missing), "{said}");
    }
}
