//! Making the tables: by many at once, again, where it cannot be done.

use std::time::Duration;

use a2_conformance::servers::fresh_name;
use a2_store_postgres::*;
use futures_util::future::join_all;

use crate::util::*;

#[tokio::test(flavor = "multi_thread")]
async fn many_make_the_tables_at_once() {
    let schema = fresh_name();
    let stores = join_all((0..16).map(|_| async {
        let options = PostgresStore::builder(url().await).schema(&schema).max_connections(1);
        let store = options.connect().await.unwrap();
        store.migrate().await.unwrap();
        store
    }));
    for (i, store) in stores.await.into_iter().enumerate() {
        store.append(&session("s"), append(&i.to_string())).await.unwrap();
    }
    let client = client().await;
    let twice = format!(
        "select count(*) from (select proname from pg_proc p join pg_namespace n
           on n.oid = p.pronamespace where n.nspname = '{schema}' group by 1 having count(*) > 1) x"
    );
    assert_eq!(count(&client, &twice).await, 0);
}

#[tokio::test]
async fn again_on_a_live_database_waits_for_no_writer() {
    let schema = fresh_name();
    let store = PostgresStore::builder(url().await).schema(&schema).connect().await.unwrap();
    store.migrate().await.unwrap();
    let at = session("s");
    let head = claimed(&store, &at, "e").await;
    // A writer in the midst of its transaction.
    let lock = format!("lock table {schema}.a2_events, {schema}.a2_heads in row exclusive mode");
    let migrated = store.clone();
    let done = store.complete_attempt_with(&at, complete(&head), move |tx| {
        let (migrated, lock) = (migrated.clone(), lock.clone());
        Box::pin(async move {
            tx.batch_execute(&lock).await?;
            Ok(migrated.migrate().await?)
        })
    });
    let done = tokio::time::timeout(Duration::from_secs(30), done).await.expect("it waited");
    assert!(done.unwrap().outcome.completed().is_some());
    assert_eq!(store.head(&at).await.unwrap(), 1);
}

#[tokio::test]
async fn without_tables_it_says_what_to_apply() {
    let store = fresh().await.connect().await.unwrap();
    let s = session("s");
    for error in [
        store.append(&s, append("e")).await.unwrap_err(),
        store.read(&s, ReadRange::default()).await.unwrap_err(),
        store.claim_available(&s, claim()).await.unwrap_err(),
        store.sessions(Page::first()).await.unwrap_err(),
    ] {
        assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
        assert!(error.to_string().contains("sql/postgres/schema"), "{error}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn another_encoding_is_refused() {
    let (client, name) = (client().await, fresh_name());
    let create = format!(
        "create database {name} encoding 'SQL_ASCII' template template0 lc_collate 'C' lc_ctype 'C'"
    );
    client.batch_execute(&create).await.unwrap();
    let other = format!("{} dbname={name}", as_parameters(&url().await));
    let error = PostgresStore::connect(other).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
    assert!(error.to_string().contains("UTF8"), "{error}");
    client.batch_execute(&format!("drop database {name} with (force)")).await.unwrap();
}

/// A URL as parameters, without its database.
fn as_parameters(url: &str) -> String {
    use tokio_postgres::config::Host;
    let config: tokio_postgres::Config = url.parse().unwrap();
    let mut text = String::new();
    if let Some(Host::Tcp(host)) = config.get_hosts().first() {
        text += &format!("host={host} ");
    }
    if let Some(port) = config.get_ports().first() {
        text += &format!("port={port} ");
    }
    if let Some(user) = config.get_user() {
        text += &format!("user={user} ");
    }
    if let Some(password) = config.get_password() {
        text += &format!("password='{}' ", String::from_utf8_lossy(password));
    }
    text
}

#[tokio::test]
async fn two_schemas_of_a_database_know_nothing_of_each_other() {
    let (one, two) = (store().await, store().await);
    let at = session("s");
    let mut stream = two.stream(&at, Index::ZERO);
    one.append(&at, append("one")).await.unwrap();
    two.append(&at, append("two")).await.unwrap();
    assert_eq!(next(&mut stream).await.id, "two");
    assert_eq!(one.read(&at, ReadRange::default()).await.unwrap().events[0].id, "one");
}

#[tokio::test]
async fn a_schema_may_have_any_name() {
    let name = format!("a2.a2_\"'$a2$ {}", fresh_name());
    let options = PostgresStore::builder(url().await).schema(name);
    let store = options.connect().await.unwrap();
    store.migrate().await.unwrap();
    store.append(&session("s"), append("e")).await.unwrap();
    assert_eq!(store.head(&session("s")).await.unwrap(), 1);
}

#[tokio::test]
async fn a_role_that_owns_nothing_can_use_it() {
    let (schema, role) = (fresh_name(), fresh_name());
    let owner = PostgresStore::builder(url().await).schema(&schema).connect().await.unwrap();
    owner.migrate().await.unwrap();
    let client = client().await;
    let grants = format!(
        "create role {role} login password 'pw';
         grant usage on schema {schema} to {role};
         grant select, insert, update, delete on all tables in schema {schema} to {role}"
    );
    client.batch_execute(&grants).await.unwrap();
    let mut config: tokio_postgres::Config = url().await.parse().unwrap();
    config.user(&role).password("pw");
    let manager = deadpool_postgres::Manager::new(config, tokio_postgres::NoTls);
    let pool = deadpool_postgres::Pool::builder(manager).max_size(2).build().unwrap();
    let store = PostgresStore::pool_builder(pool).schema(&schema).connect().await.unwrap();
    let error = store.append(&session("s"), append("e")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    let execute = format!("grant execute on all functions in schema {schema} to {role}");
    client.batch_execute(&execute).await.unwrap();
    let head = claimed(&store, &session("s"), "e").await;
    let _ = store.complete_attempt(&session("s"), complete(&head)).await.unwrap();
    // Applying it again by another role leaves it alone, or says that it may not.
    assert_eq!(owner.head(&session("s")).await.unwrap(), 1);
}
