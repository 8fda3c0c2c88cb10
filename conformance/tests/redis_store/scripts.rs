//! The server forgets the scripts.

use std::time::Duration;

use a2_conformance::servers::{RedisOptions, RedisServer};
use a2_store_redis::*;
use futures_util::future::join_all;

use crate::util::*;

/// Does everything once, each after `before`.
pub(crate) async fn everything(store: &RedisStore, before: impl AsyncFn()) {
    let (at, minute) = (session("s"), Duration::from_secs(60));
    before().await;
    let new = Append::new(["a", "b", "c"].map(|id| event(id).target(Target::event("c").unwrap())));
    store.append(&at, new.unwrap()).await.unwrap();
    before().await;
    assert_eq!(store.read(&at, ReadRange::default()).await.unwrap().events.len(), 3);
    before().await;
    let claimed = store.claim_available(&at, claim()).await.unwrap().into_heads();
    let [a, b, c] = &claimed[..] else { panic!("{claimed:?}") };
    before().await;
    let renew = RenewClaims::new("w", [a.attempt_ref(), b.attempt_ref()], minute).unwrap();
    assert_eq!(store.renew_claims(&at, renew).await.unwrap().renewed.len(), 2);
    before().await;
    let done = complete(a).events([event("d")]).unwrap();
    assert!(store.complete_attempt(&at, done).await.unwrap().outcome.completed().is_some());
    before().await;
    let fail = FailAttempt::new(b.head.clone(), b.attempt(), "boom").max_failures(1).unwrap();
    let _ = store.fail_attempt(&at, fail).await.unwrap();
    before().await;
    assert_eq!(store.dead_letters(&at, Page::first()).await.unwrap().heads.len(), 1);
    before().await;
    let retry = Redrive::new(b.head.clone(), RedriveAction::Retry);
    assert!(store.redrive(&at, retry).await.unwrap().redriven);
    before().await;
    let release = ReleaseClaims::new("w", [c.attempt_ref()]).unwrap();
    assert_eq!(store.release_claims(&at, release).await.unwrap().released.len(), 1);
    before().await;
    let log = WakeLog::new("l", LogDeclaration::new("log").unwrap()).unwrap();
    store.wake_log(&at, log).await.unwrap();
    before().await;
    assert_eq!(store.all_cursors(&at).await.unwrap().len(), 3);
    before().await;
    let reducer = ReducerName::new("r").unwrap();
    let write = SnapshotWrite::new(Index::from(2), Json::parse("{}").unwrap());
    store.put_snapshots(&at, &reducer, PutSnapshots::new([write]).unwrap()).await.unwrap();
    before().await;
    let state = store.read_state(&at, &reducer, ReadState::latest()).await.unwrap();
    assert!(state.snapshot.is_some());
    for key in ["t", "u"] {
        before().await;
        let timer = Schedule::new(key, Duration::ZERO, event(key)).unwrap();
        store.schedule(&at, timer).await.unwrap();
    }
    before().await;
    assert_eq!(store.timers(&at, Page::first()).await.unwrap().timers.len(), 2);
    before().await;
    assert!(store.unschedule(&at, &TimerKey::new("u").unwrap()).await.unwrap().removed);
    before().await;
    let fired = store.fire_timers(&at, FireTimers::new()).await.unwrap();
    assert_eq!(fired.events.len(), 1);
    before().await;
    assert_eq!(store.sessions(Page::first()).await.unwrap().sessions.len(), 1);
    before().await;
    let pending = store.pending(PendingPage::new(Served::ALL)).await.unwrap();
    assert_eq!(pending.sessions.len(), 1);
    let ns = Namespace::new("room").unwrap();
    before().await;
    let update = PresenceUpdate::new("p", minute).unwrap().set("f", Json::parse("1").unwrap());
    store.set_presence(&ns, update.unwrap()).await.unwrap();
    before().await;
    assert_eq!(store.read_presence(&ns).await.unwrap().rows.len(), 1);
    before().await;
    let mut stream = store.stream(&at, Index::ZERO);
    assert_eq!(next(&mut stream).await.id, "a");
    before().await;
    assert!(store.clear(&at, Clear::new()).await.unwrap().cleared);
    before().await;
    store.reclaim(&at).await.unwrap();
}

async fn flush(server: &RedisServer) {
    command(server, &["SCRIPT", "FLUSH"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_scripts_are_sent_again() {
    let server = own(RedisOptions::new()).await;
    let store = fresh(&server).connect().await.unwrap();
    everything(&store, async || flush(&server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_forgotten_under_load() {
    let server = own(RedisOptions::new()).await;
    let store = fresh(&server).connections(2).connect().await.unwrap();
    let at = session("s");
    let workers = (0..32).map(|worker| {
        let (store, at) = (store.clone(), at.clone());
        async move {
            for n in 0..30 {
                store.append(&at, append(&format!("{worker}-{n}"))).await.unwrap();
            }
        }
    });
    let forget = async {
        while store.head(&at).await.unwrap().get() < 900 {
            flush(&server).await;
        }
    };
    tokio::join!(join_all(workers), forget);
    assert_eq!(ids(&store, &at).await.len(), 960);
}
