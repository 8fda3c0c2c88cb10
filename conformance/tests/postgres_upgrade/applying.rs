//! Ways of applying the schema to a database of an earlier release: they all come to the same.

use std::time::Duration;

use futures_util::future::join_all;

use crate::old::{RELEASES, Release, SCHEMA, Schema, connect};

/// As a tool that sends one statement a query, each in a transaction of its own.
async fn statement_by_statement(schema: &Schema) {
    for statement in SCHEMA.split("--> statement-breakpoint") {
        schema.client.query(statement, &[]).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_upgraded_is_what_a_new_schema_is() {
    let new = Schema::empty().await;
    new.run(SCHEMA).await;
    let expected = new.catalog().await;
    assert!(expected.len() > 100);
    let migrated = Schema::empty().await;
    migrated.store().await.migrate().await.unwrap();
    assert_eq!(migrated.catalog().await, expected);
    for release in RELEASES {
        let old = Schema::of(release).await;
        old.store().await.migrate().await.unwrap();
        assert_eq!(old.catalog().await, expected, "{release:?}");
        // An index of the user's own stays.
        let own = "select indexname::text from pg_indexes
            where schemaname = current_schema() and indexname = 'my_own'";
        let handlers = matches!(release, Release::V0_17 | Release::V0_20);
        assert_eq!(old.texts(own).await.len(), usize::from(handlers));
    }
}

#[tokio::test]
async fn as_one_script_or_statement_by_statement_it_comes_to_the_same() {
    for release in RELEASES {
        let (one, script, single) =
            (Schema::of(release).await, Schema::of(release).await, Schema::of(release).await);
        one.store().await.migrate().await.unwrap();
        script.run(SCHEMA).await;
        statement_by_statement(&single).await;
        let (catalog, rows) = (one.catalog().await, one.rows().await);
        for other in [script, single] {
            assert_eq!(other.catalog().await, catalog, "{release:?}");
            assert_eq!(other.rows().await, rows, "{release:?}");
        }
    }
}

#[tokio::test]
async fn again_it_changes_nothing_and_waits_for_nobody() {
    for release in RELEASES {
        let schema = Schema::of(release).await;
        let store = schema.store().await;
        store.migrate().await.unwrap();
        let (catalog, rows) = (schema.catalog().await, schema.rows().await);
        // A writer in the midst of its transaction.
        let writer = connect(&schema.name).await;
        let lock = "begin; lock table a2_events, a2_heads, a2_snapshots in row exclusive mode";
        writer.batch_execute(lock).await.unwrap();
        let again = async {
            store.migrate().await.unwrap();
            schema.run(SCHEMA).await;
            statement_by_statement(&schema).await;
        };
        tokio::time::timeout(Duration::from_secs(30), again).await.expect("it waited");
        assert_eq!((schema.catalog().await, schema.rows().await), (catalog, rows), "{release:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_upgrade_at_once() {
    for release in RELEASES {
        let (one, many) = (Schema::of(release).await, Schema::of(release).await);
        one.store().await.migrate().await.unwrap();
        join_all((0..8).map(|_| async { many.store().await.migrate().await.unwrap() })).await;
        assert_eq!(many.rows().await, one.rows().await, "{release:?}");
    }
}

#[tokio::test]
async fn a_role_that_may_make_schemas_and_owns_the_tables_is_enough() {
    let schema = Schema::of(Release::V0_22).await;
    let role = format!("{}_owner", schema.name);
    let tables = "select relname::text from pg_class
        where relnamespace = current_schema()::regnamespace and relkind = 'r'";
    schema
        .run(&format!(
            "create role {role} login password 'pw'; grant all on schema {} to {role}",
            schema.name
        ))
        .await;
    for table in schema.texts(tables).await {
        schema.run(&format!("alter table {table} owner to {role}")).await;
    }
    schema.run(&format!("alter function a2_batch owner to {role}; set role {role}")).await;
    schema.run(SCHEMA).await;
    assert_eq!(
        schema.texts("select event_id from a2_events where session_id = 'other'").await,
        ["o1"]
    );
}

#[tokio::test]
async fn tables_of_another_schema_are_left_alone() {
    for release in RELEASES {
        let (first, empty, other) =
            (Schema::of(release).await, Schema::empty().await, Schema::of(release).await);
        let untouched = (other.catalog().await, other.rows().await);
        for schema in [&first, &empty] {
            schema.run(&format!("set search_path to {}, {}", schema.name, other.name)).await;
            schema.run(SCHEMA).await;
            assert_eq!((other.catalog().await, other.rows().await), untouched, "{release:?}");
        }
        assert!(first.rows().await.iter().any(|row| row.starts_with("a2_events")));
        assert_eq!(empty.rows().await, [""; 0]);
    }
}
