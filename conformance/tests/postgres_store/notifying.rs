//! What telling others costs those who commit: nobody waits for the lock that NOTIFY holds, which is
//! the whole server's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use a2_conformance::servers::{PostgresOptions, PostgresServer, Servers, fresh_name};
use a2_store_postgres::tokio_postgres::{AsyncMessage, Client, NoTls};
use a2_store_postgres::*;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::poll_fn;

use crate::util::*;

const APPENDERS: usize = 64;

/// Appends in sessions of its own, until it is told to stop or has made so many.
async fn append_much(
    store: PostgresStore,
    who: usize,
    most: usize,
    stop: Arc<AtomicBool>,
) -> usize {
    let at = session(&format!("s{who}"));
    let mut made = 0;
    while made < most && !stop.load(Ordering::Relaxed) {
        let new = NewEvent::new("t", &made).unwrap();
        store.append(&at, Append::one(new).unwrap()).await.unwrap();
        made += 1;
    }
    made
}

/// The channel that the store of this name listens on.
async fn channel(client: &Client, application: &str) -> String {
    let sql = format!(
        "select query from pg_stat_activity
         where application_name = '{application}' and query like 'listen %'"
    );
    for _ in 0..3_000 {
        if let Some(row) = client.query_opt(&sql, &[]).await.unwrap() {
            return row.get::<_, String>(0).trim_start_matches("listen ").to_owned();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody listens")
}

async fn client_of(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A connection that counts what is told on the channel.
async fn counting(url: &str, channel: &str) -> (Client, Arc<AtomicUsize>) {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&count);
    tokio::spawn(async move {
        let mut messages = poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(_) = message {
                told.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    client.batch_execute(&format!("listen {channel}")).await.unwrap();
    (client, count)
}

/// A server on which a commit waits for ever when its session asks for a copy of it: there is none.
async fn server_without_standby() -> PostgresServer {
    let options = PostgresOptions::new()
        .setting("synchronous_standby_names", "nobody")
        .setting("synchronous_commit", "local");
    options.start(Servers::Local).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_do_not_wait_for_notifications() {
    let server = server_without_standby().await;
    let application = fresh_name();
    let url = format!("{}?application_name={application}", server.url());
    let options = PostgresStore::builder(url).schema(fresh_name());
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    store.migrate().await.unwrap();
    let mut stream = other.stream(&session("s0"), Index::ZERO);
    assert!(is_waiting(&mut stream));
    let sampler = client_of(server.url()).await;
    let channel = channel(&sampler, &application).await;
    let (_listening, told) = counting(server.url(), &channel).await;

    // Somebody else notifies and has the lock until they are interrupted.
    let holder = client_of(server.url()).await;
    let holds = tokio::spawn(async move {
        let commit = "set synchronous_commit = on; notify somebody;
                      select pg_logical_emit_message(true, 'a2', 'a copy of this is waited for')";
        holder.batch_execute(commit).await
    });
    let held = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                where l.locktype = 'object' and l.database = 0 and a.wait_event = 'SyncRep'";
    until("the lock is held", || async { count(&sampler, held).await == 1 }).await;

    let never = Arc::new(AtomicBool::new(false));
    let work = (0..APPENDERS).map(|who| append_much(store.clone(), who, 40, Arc::clone(&never)));
    let made = join_all(work.map(tokio::spawn).collect::<Vec<_>>()).await;
    assert_eq!(made.into_iter().map(Result::unwrap).sum::<usize>(), 40 * APPENDERS);
    assert_eq!(count(&sampler, held).await, 1, "the lock was let go");
    assert_eq!(told.load(Ordering::Relaxed), 0);

    let interrupt = "select count(pg_cancel_backend(pid)) from pg_stat_activity
                     where wait_event = 'SyncRep'";
    assert_eq!(count(&sampler, interrupt).await, 1);
    holds.await.unwrap().unwrap();
    for index in 1..=40 {
        assert_eq!(next(&mut stream).await.index, index);
    }
    // What waited meanwhile was told in one.
    let told = told.load(Ordering::Relaxed);
    assert!((1..=2).contains(&told), "{told} notifications");
}

/// Measures: `--ignored --nocapture`. The same work with notifications and without, by turns.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures for a minute"]
async fn what_notifications_cost() {
    let options = PostgresStore::builder(url().await).schema(fresh_name());
    options.clone().connect().await.unwrap().migrate().await.unwrap();
    let sampler = client().await;
    let mut rates = [Vec::new(), Vec::new()];
    let mut longest = Duration::ZERO;
    for turn in 0..8 {
        let on = turn % 2 == 0;
        let store = options.clone().notifications(on).connect().await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let work = (0..APPENDERS)
            .map(|who| append_much(store.clone(), who, usize::MAX, Arc::clone(&stop)))
            .map(tokio::spawn)
            .collect::<Vec<_>>();
        let start = Instant::now();
        let mut waited_since = None;
        while start.elapsed() < Duration::from_secs(8) {
            let waits = "select count(*) from pg_locks
                         where locktype = 'object' and database = 0 and not granted";
            match count(&sampler, waits).await {
                0 => waited_since = None,
                _ => {
                    let since = *waited_since.get_or_insert(Instant::now());
                    longest = longest.max(since.elapsed());
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.store(true, Ordering::Relaxed);
        let made: usize = join_all(work).await.into_iter().map(Result::unwrap).sum();
        rates[usize::from(on)].push(made as f64 / start.elapsed().as_secs_f64());
        store.close().await;
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let [off, on] = [mean(&rates[0]), mean(&rates[1])];
    println!("commits a second: {off:.0} without, {on:.0} with: {:.0} %", 100.0 * on / off);
    println!("longest wait for the lock of NOTIFY: {longest:?}");
}
