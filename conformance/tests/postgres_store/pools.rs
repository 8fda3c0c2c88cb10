//! Connections: few of them, somebody else's, through a pooler, cancelled in the midst.

use std::time::Duration;

use a2_conformance::servers::{self, Servers, fresh_name};
use a2_store_postgres::deadpool_postgres::{Manager, Pool};
use a2_store_postgres::tokio_postgres::NoTls;
use a2_store_postgres::*;
use futures_util::future::join_all;

use crate::util::*;

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_does_for_streams_and_work() {
    let store = made().await.max_connections(1).connect().await.unwrap();
    let idle = session("idle");
    let mut streams: Vec<_> = (0..50).map(|_| store.stream(&idle, Index::ZERO)).collect();
    for stream in &mut streams {
        assert!(is_waiting(stream));
    }
    let work = (0..40).map(|i| {
        let store = store.clone();
        async move {
            let at = session(&format!("work{i}"));
            let head = claimed(&store, &at, "e").await;
            let done = store.complete_attempt(&at, complete(&head)).await.unwrap();
            assert!(done.outcome.completed().is_some());
        }
    });
    let done = tokio::time::timeout(Duration::from_secs(30), join_all(work)).await;
    assert_eq!(done.expect("not within 30 s").len(), 40);
    store.append(&idle, append("e")).await.unwrap();
    for stream in &mut streams {
        assert_eq!(next(stream).await.index, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_leave_no_transaction_open() {
    let name = fresh_name();
    let url = format!("{}?application_name={name}", url().await);
    let schema = fresh_name();
    let options = PostgresStore::builder(url).schema(schema).max_connections(1);
    let store = options.notifications(false).connect().await.unwrap();
    store.migrate().await.unwrap();
    let at = session("s");
    for i in 0..300_u64 {
        let (id, wait) = (format!("e{i}"), Duration::from_micros(i % 60 * 50));
        let call = async {
            let _ = store.append(&at, append(&id)).await;
            let _ = store.claim_available(&at, claim()).await;
            let _ = store.clear(&at, Clear::new()).await;
        };
        let _ = tokio::time::timeout(wait, call).await;
    }
    store.append(&at, append("last")).await.unwrap();
    let client = client().await;
    let open = format!(
        "select count(*) from pg_stat_activity
         where application_name = '{name}' and state like 'idle in transaction%'"
    );
    assert_eq!(count(&client, &open).await, 0);
    let all = format!("select count(*) from pg_stat_activity where application_name = '{name}'");
    assert_eq!(count(&client, &all).await, 1);
}

#[tokio::test]
async fn a_given_pool_is_used_and_stays_open() {
    let schema = fresh_name();
    let manager = Manager::new(url().await.parse().unwrap(), NoTls);
    let pool = Pool::builder(manager).max_size(2).build().unwrap();
    let options = PostgresStore::pool_builder(pool.clone()).schema(schema);
    let options = options.polling(Duration::from_millis(5), Duration::from_millis(50));
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    store.migrate().await.unwrap();
    let at = session("s");
    let head = claimed(&store, &at, "e").await;
    let done = store.complete_attempt(&at, complete(&head).events([event("f")]).unwrap()).await;
    assert!(done.unwrap().outcome.completed().is_some());
    // Nobody tells it: it looks.
    let mut stream = other.stream(&at, Index::from(2));
    store.append(&at, append("g")).await.unwrap();
    assert_eq!(next(&mut stream).await.id, "g");
    store.close().await;
    assert!(!pool.is_closed());
    assert_eq!(other.head(&at).await.unwrap(), 3);
}

/// The server ends what takes too long: nobody who has given up waits for a lock.
#[tokio::test]
async fn what_takes_too_long_ends_at_the_server() {
    let (name, schema) = (fresh_name(), fresh_name());
    let url = format!("{}?application_name={name}", url().await);
    let own = PostgresStore::builder(&url).schema(&schema);
    own.clone().connect().await.unwrap().migrate().await.unwrap();
    let manager = Manager::new(url.parse().unwrap(), NoTls);
    let pool = Pool::builder(manager).max_size(2).build().unwrap();
    let given = PostgresStore::pool_builder(pool).schema(&schema);
    let mut locking = client().await;
    let watching = client().await;
    let transaction = locking.transaction().await.unwrap();
    let lock = format!("lock table {schema}.a2_events in access exclusive mode");
    transaction.batch_execute(&lock).await.unwrap();
    for options in [own.clone(), own.statements(Statements::Unnamed), given] {
        let options = options.operation_timeout(Duration::from_millis(300));
        let store = options.connect().await.unwrap();
        let error = store.append(&session("s"), append("e")).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        let waiting = format!(
            "select count(*) from pg_stat_activity
             where application_name = '{name}' and state = 'active'"
        );
        until("nobody waits", || async { count(&watching, &waiting).await == 0 }).await;
    }
    transaction.rollback().await.unwrap();
}

#[tokio::test]
async fn a_stricter_isolation_level_is_refused() {
    let options = made().await;
    let strict =
        format!("{}?options=-c%20default_transaction_isolation%3Dserializable", url().await);
    let schema = fresh_name();
    let store = PostgresStore::builder(strict).schema(schema).connect().await.unwrap();
    store.migrate().await.unwrap();
    let error = store.append(&session("s"), append("e")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    drop(options);
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_pooler_in_transaction_mode() {
    let server = servers::postgres(Servers::Auto).await.unwrap();
    let bouncer = servers::PgBouncerOptions::new().setting("default_pool_size", 2);
    let bouncer = bouncer.start(&server).await.unwrap();
    let options = PostgresStore::builder(bouncer.url())
        .schema(fresh_name())
        .statements(Statements::Unnamed)
        .listen_at(server.url());
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    store.migrate().await.unwrap();
    let at = session("s");
    let mut stream = other.stream(&at, Index::ZERO);
    let appends = (0..40).map(|i| {
        let (store, at) = (store.clone(), at.clone());
        async move { store.append(&at, append(&i.to_string())).await.unwrap() }
    });
    join_all(appends).await;
    for index in 1..=40 {
        assert_eq!(next(&mut stream).await.index, index);
    }
    let heads = store.claim_available(&at, claim()).await.unwrap().into_heads();
    let done = store.complete_attempt(&at, complete(&heads[0])).await.unwrap();
    assert!(done.outcome.completed().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_advisory_locks_of_others() {
    let client = client().await;
    client
        .batch_execute(
            "do $$ begin
               for n in -10..1000 loop perform pg_advisory_lock(n); end loop;
               for a in 0..20 loop for b in 0..20 loop perform pg_advisory_lock(a, b); end loop; end loop;
             end $$",
        )
        .await
        .unwrap();
    let options = fresh().await.operation_timeout(Duration::from_secs(10));
    let store = options.connect().await.unwrap();
    store.migrate().await.unwrap();
    for n in 0..50 {
        let at = session(&n.to_string());
        let head = claimed(&store, &at, "e").await;
        let _ = store.complete_attempt(&at, complete(&head)).await.unwrap();
    }
    client.batch_execute("select pg_advisory_unlock_all()").await.unwrap();
}

/// A runtime that ends while requests are under way and wait.
#[test]
fn a_runtime_may_end_in_the_midst() {
    let made = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().unwrap()
    };
    let first = made();
    let store = first.block_on(async { made_store().await });
    for i in 0..200 {
        let store = store.clone();
        first.spawn(async move {
            let at = session(&format!("s{}", i % 8));
            let _ = store.append(&at, append(&i.to_string())).await;
        });
    }
    first.block_on(tokio::task::yield_now());
    drop(first);
    // Another runtime goes on with the same store.
    made().block_on(async {
        let appended = until_done(&store).await;
        assert_eq!(appended.events[0].id, "after");
    });
}

async fn made_store() -> PostgresStore {
    made().await.connect().await.unwrap()
}

/// The first runtime's connections ended with it.
async fn until_done(store: &PostgresStore) -> Appended {
    for _ in 0..100 {
        match store.append(&session("after"), append("after")).await {
            Ok(appended) => return appended,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    panic!("the store does not work any more")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_session_does_not_stop_the_others() {
    let options = made().await.max_connections(4);
    let store = options.operation_timeout(Duration::from_secs(20)).connect().await.unwrap();
    let at = session("locked");
    store.append(&at, append("e")).await.unwrap();
    // Somebody holds the session's lock.
    let mut client = client().await;
    let transaction = client.transaction().await.unwrap();
    let schema = format!("{store:?}").split('"').nth(1).unwrap().to_owned();
    let lock = format!("select {schema}.a2_lock_1('locked', false)");
    transaction.batch_execute(&lock).await.unwrap();
    let waiting = (0..50).map(|i| {
        let (store, at) = (store.clone(), at.clone());
        tokio::spawn(async move { store.append(&at, append(&i.to_string())).await })
    });
    let waiting: Vec<_> = waiting.collect();
    for i in 0..50 {
        let free = session(&format!("free{i}"));
        let free = store.append(&free, append("e"));
        let done = tokio::time::timeout(Duration::from_secs(5), free).await;
        done.expect("a stranger waited").unwrap();
    }
    transaction.rollback().await.unwrap();
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    assert_eq!(store.head(&at).await.unwrap(), 51);
}
