//! What others are told of: also what was answered to nobody, also by a store that is closed.

use std::time::Duration;

use a2_conformance::servers::fresh_name;
use a2_store_postgres::*;
use futures_util::future::join_all;

use crate::losses::Cut;
use crate::util::*;

/// So long that nobody finds anything by looking.
const NEVER: Duration = Duration::from_secs(3_600);

/// Two handles that find nothing by looking.
async fn two() -> (PostgresStore, PostgresStore) {
    let options = made().await.polling(NEVER, NEVER);
    (options.clone().connect().await.unwrap(), options.connect().await.unwrap())
}

/// A handle whose answers can be lost, and two others. None finds anything by looking.
async fn three() -> (Cut, PostgresStore, PostgresStore, PostgresStore) {
    let (cut, schema) = (Cut::start().await, fresh_name());
    let options = |url: &str| {
        let options = PostgresStore::builder(url).schema(&schema).max_connections(1);
        options.polling(NEVER, NEVER)
    };
    let direct = url().await;
    let (other, watching) =
        (options(&direct).connect().await.unwrap(), options(&direct).connect().await.unwrap());
    other.migrate().await.unwrap();
    (cut.clone(), options(&cut.url).connect().await.unwrap(), other, watching)
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
    cut.after(1);
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
    let timer = Schedule::new("t", Duration::ZERO, event("fired")).unwrap();
    other.schedule(&at, timer).await.unwrap();
    cut.after(1);
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
    cut.after(1);
    let error = store.set_presence(&ns, update(2)).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error}");
    let PresenceChange::Patch(patch) = next(&mut watch).await else { panic!("no patch") };
    let value = patch.values.values().next().cloned().flatten().unwrap();
    assert_eq!(value.as_str(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_closed_tells_what_is_under_way() {
    let (_, watching) = two().await;
    let schema = format!("{watching:?}").split('"').nth(1).unwrap().to_owned();
    for round in 0..10 {
        let options = PostgresStore::builder(url().await).schema(&schema).max_connections(2);
        let store = options.connect().await.unwrap();
        let at = session(&format!("s{round}"));
        let mut stream = watching.stream(&at, Index::ZERO);
        store.append(&at, append("first")).await.unwrap();
        assert_eq!(next(&mut stream).await.index, 1);
        let appends = (0..40).map(|n| {
            let (store, at) = (store.clone(), at.clone());
            tokio::spawn(async move { store.append(&at, append(&n.to_string())).await })
        });
        let appends: Vec<_> = appends.collect();
        // Some of them have begun.
        while store.head(&at).await.unwrap() == 1 {}
        store.close().await;
        let done = join_all(appends).await.into_iter().map(Result::unwrap);
        let last = done.filter_map(|done| Some(done.ok()?.events[0].index)).max();
        while Some(next(&mut stream).await.index) < last {}
    }
}
