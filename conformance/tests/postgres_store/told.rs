//! What others are told of: also what was answered to nobody, also by a store that is closed.

use std::time::Duration;

use a2_conformance::servers::{Proxy, fresh_name};
use a2_store_postgres::*;

use crate::util::*;

/// So long that nobody finds anything by looking.
const NEVER: Duration = Duration::from_secs(3_600);

/// Two handles that find nothing by looking.
async fn two() -> (PostgresStore, PostgresStore) {
    let options = made().await.polling(NEVER, NEVER);
    (options.clone().connect().await.unwrap(), options.connect().await.unwrap())
}

/// A handle whose answers can be lost, and two others. None finds anything by looking.
async fn three() -> (Proxy, PostgresStore, PostgresStore, PostgresStore) {
    let (cut, schema) = (Proxy::before(&url().await).await.unwrap(), fresh_name());
    let options = |url: &str| {
        let options = PostgresStore::builder(url).schema(&schema).max_connections(1);
        options.polling(NEVER, NEVER)
    };
    let direct = url().await;
    let (other, watching) =
        (options(&direct).connect().await.unwrap(), options(&direct).connect().await.unwrap());
    other.migrate().await.unwrap();
    let store = options(cut.url()).connect().await.unwrap();
    (cut, store, other, watching)
}

/// A redrive whose answer is lost, and how the same again is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_that_was_answered_to_nobody() {
    let (cut, store, other, watching) = three().await;
    let at = session("s");
    let head = claimed(&other, &at, "e").await;
    let fail = FailAttempt::new(head.head.clone(), head.attempt(), "no").max_failures(1).unwrap();
    let _ = other.fail_attempt(&at, fail).await.unwrap();
    let redrive = || Redrive::new(head.head.clone(), RedriveAction::Retry);
    // What it needs is prepared.
    let _ = store.redrive(&session("another"), redrive()).await;

    let mut hints = watching.watch_pending(Served::ALL);
    heard(&other, &mut hints).await;
    cut.lose_answer_in(1);
    let error = store.redrive(&at, redrive()).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error}");
    while next(&mut hints).await.session != at {}
    assert!(!store.redrive(&at, redrive()).await.unwrap().redriven);
}

/// Waits until the watcher hears.
async fn heard(other: &PostgresStore, hints: &mut WorkHints) {
    let at = session("probe");
    assert!(is_waiting(hints));
    let mut events = 0;
    loop {
        events += 1;
        other.append(&at, append(&events.to_string())).await.unwrap();
        let hint = tokio::time::timeout(Duration::from_millis(100), next(hints)).await;
        if hint.is_ok_and(|hint| hint.session == at) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_whose_events_were_answered_to_nobody() {
    let (cut, store, other, watching) = three().await;
    let at = session("s");
    let fire = || FireTimers::new();
    store.fire_timers(&at, fire()).await.unwrap();
    other.append(&at, append("e")).await.unwrap();
    let mut stream = watching.stream(&at, Index::ZERO);
    assert_eq!(next(&mut stream).await.index, 1);
    // From here on it hears.
    other.append(&at, append("probe")).await.unwrap();
    assert_eq!(next(&mut stream).await.index, 2);
    let timer = Schedule::new("t", Duration::ZERO, event("fired")).unwrap();
    other.schedule(&at, timer).await.unwrap();
    cut.lose_answer_in(1);
    let error = store.fire_timers(&at, fire()).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error}");
    assert_eq!(next(&mut stream).await.id, "fired");
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_whose_writer_was_not_answered() {
    let (cut, store, _, watching) = three().await;
    let ns = Namespace::new("room").unwrap();
    let update = |value: u32| {
        let update = PresenceUpdate::new("ann", Duration::from_secs(600)).unwrap();
        update.set("x", Json::from_serialize(&value).unwrap()).unwrap()
    };
    let mut watch = watching.watch_presence(&ns);
    assert_eq!(next(&mut watch).await, PresenceChange::Rows(PresenceRows::new(Vec::new())));
    store.set_presence(&ns, update(1)).await.unwrap();
    assert!(matches!(next(&mut watch).await, PresenceChange::Patch(_)));
    cut.lose_answer_in(1);
    let error = store.set_presence(&ns, update(2)).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error}");
    let PresenceChange::Patch(patch) = next(&mut watch).await else { panic!("no patch") };
    let value = patch.values.values().next().cloned().flatten().unwrap();
    assert_eq!(value.as_str(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_closed_tells_what_is_under_way() {
    let (store, watching) = two().await;
    let at = session("s");
    let mut stream = watching.stream(&at, Index::ZERO);
    // From the second on it hears.
    for (id, index) in [("first", 1), ("second", 2)] {
        store.append(&at, append(id)).await.unwrap();
        assert_eq!(next(&mut stream).await.index, index);
    }
    // An append waits for the session's lock when the store is closed.
    let (mut client, sampler) = (client().await, client().await);
    let transaction = client.transaction().await.unwrap();
    let schema = format!("{watching:?}").split('"').nth(1).unwrap().to_owned();
    let lock = format!("select {schema}.a2_lock_1('s', false)");
    transaction.batch_execute(&lock).await.unwrap();
    let (appending, closing) = (store.clone(), store.clone());
    let append = tokio::spawn(async move { appending.append(&session("s"), append("last")).await });
    let waiting = format!(
        "select count(*) from pg_stat_activity
         where wait_event = 'advisory' and query like '%\"{schema}\".a2_append%'"
    );
    until("it waits", || async { count(&sampler, &waiting).await == 1 }).await;
    let close = tokio::spawn(async move { closing.close().await });
    until("it closes", || async { store.head(&at).await.is_err() }).await;
    transaction.rollback().await.unwrap();
    assert_eq!(append.await.unwrap().unwrap().events[0].index, 3);
    assert_eq!(next(&mut stream).await.index, 3);
    close.await.unwrap();
}
