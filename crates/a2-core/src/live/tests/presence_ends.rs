//! How presence expires, and how a watcher fails, retries and ends.

use super::presence::{all, by, json, presence, told};
use super::*;
use crate::live::presence_stream;
use crate::{ManualClock, PresenceUpdate};

#[tokio::test]
async fn what_expires_is_told_as_removed_once_no_renewal_is_found() {
    let store = presence("expiry");
    store.set(by("ann").set("x", json("1")).unwrap().seen(index(4)));
    store.set(by("ann").set("y", json("2")).unwrap().seen(index(4)));
    let mut watcher = store.watch();
    assert_eq!(all(&mut watcher), ["rows: ann x=1, ann y=2"]);
    store.clock.set(ms(6_000));
    store.set(by("ann").set("x", json("1")).unwrap().seen(index(4)));
    store.set(by("bob").set("z", json("3")).unwrap());
    assert_eq!(all(&mut watcher), ["bob z=3 at 6000 from own"]);

    let waiting = tokio::spawn(async move {
        let change = told(next(&mut watcher).await.unwrap().unwrap());
        (watcher, change)
    });
    tokio::task::yield_now().await;
    store.clock.set(ms(10_999));
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    store.clock.set(ms(11_000));
    let (mut watcher, change) = waiting.await.unwrap();
    assert_eq!(change, "ann y=null seen 4 at 11000 from own");
    assert!(all(&mut watcher).is_empty());
    store.clock.set(ms(16_000));
    let changes = ["ann x=null seen 4 at 16000 from own", "bob z=null at 16000 from own"];
    assert_eq!(all(&mut watcher), changes);
}

#[tokio::test]
async fn a_renewal_that_ends_sooner_is_heard_of() {
    let store = presence("sooner");
    store.set(by("ann").set("x", json("1")).unwrap());
    let mut watcher = store.watch();
    assert_eq!(all(&mut watcher), ["rows: ann x=1"]);
    let short = PresenceUpdate::new("ann", Duration::from_secs(1)).unwrap();
    store.set(short.set("x", json("1")).unwrap());
    assert!(all(&mut watcher).is_empty());
    store.clock.set(ms(2_000));
    assert_eq!(all(&mut watcher), ["ann x=null at 2000 from own"]);
}

#[tokio::test]
async fn what_expired_and_was_set_again_is_a_change() {
    let store = presence("set-again");
    store.set(by("ann").set("x", json("1")).unwrap());
    let mut watcher = store.watch();
    assert_eq!(all(&mut watcher), ["rows: ann x=1"]);
    store.clock.set(ms(12_000));
    store.set(by("ann").set("x", json("1")).unwrap());
    assert_eq!(all(&mut watcher), ["ann x=1 at 12000 from own"]);
    store.clock.set(ms(22_000));
    assert_eq!(all(&mut watcher), ["ann x=null at 22000 from own"]);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_the_store_keeps_longer_than_this_clock_is_read_again_at_a_pace() {
    let store = presence("clock-ahead");
    store.set(by("ann").set("x", json("1")).unwrap());
    let ahead = ManualClock::at(ms(20_000));
    let clock = Arc::new(ahead.clone());
    let (hub, namespace) = (&store.hub, &store.namespace);
    let mut watcher = presence_stream(store.clone(), hub, namespace, clock, "own".into(), None);
    assert_eq!(all(&mut watcher), ["rows: ann x=1"]);
    let quiet = tokio::time::timeout(Duration::from_millis(400), watcher.next()).await;
    assert!(quiet.is_err());
    // At 0, 50, 150 and 350 ms.
    assert_eq!(store.reads(), 4);
    store.clock.set(ms(11_000));
    let change = told(next(&mut watcher).await.unwrap().unwrap());
    assert_eq!(change, "ann x=null at 20000 from own");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_is_read_again_and_patches_go_on() {
    let store = presence("down");
    lock(&store.answers).extend([unavailable(), unavailable()]);
    let mut watcher = store.watch();
    let start = tokio::time::Instant::now();
    assert_eq!(told(next(&mut watcher).await.unwrap().unwrap()), "rows: ");
    assert_eq!(start.elapsed(), Duration::from_millis(150));

    lock(&store.answers).push_back(unavailable());
    let _untold = store.write("other", by("ann").set("x", json("1")).unwrap());
    store.hub.wake(&store.namespace);
    assert!(all(&mut watcher).is_empty());
    store.set(by("bob").set("x", json("2")).unwrap());
    assert_eq!(all(&mut watcher), ["bob x=2 at 1000 from own"]);
    let change = told(next(&mut watcher).await.unwrap().unwrap());
    assert_eq!(change, "ann x=1 at 1000 from ");
    assert!(all(&mut watcher).is_empty());

    lock(&store.answers).push_back(Error::not_configured("no tables"));
    store.hub.wake(&store.namespace);
    assert_eq!(next_code(&mut watcher).await, "STORE_NOT_CONFIGURED");
    assert!(next(&mut watcher).await.is_none());
}

#[tokio::test]
async fn closing_ends_every_watcher_once() {
    let store = presence("closing");
    let mut watcher = store.watch();
    let mut unpolled = store.watch();
    assert_eq!(all(&mut watcher), ["rows: "]);
    let waiting = tokio::spawn(async move {
        let code = next_code(&mut watcher).await;
        (code, next(&mut watcher).await.is_none(), next(&mut watcher).await.is_none())
    });
    tokio::task::yield_now().await;
    store.hub.close();
    assert_eq!(waiting.await.unwrap(), ("CLOSED", true, true));
    assert_eq!(next_code(&mut unpolled).await, "CLOSED");
    let mut later = store.watch();
    assert_eq!(next_code(&mut later).await, "CLOSED");
    assert!(next(&mut later).await.is_none());
}

#[tokio::test]
async fn a_watcher_is_there_until_it_is_dropped() {
    let store = presence("dropped");
    let (first, second) = (store.watch(), store.watch());
    assert_eq!(store.hub.watched_namespaces(), std::slice::from_ref(&store.namespace));
    drop(first);
    assert!(store.hub.has_watchers());
    drop(second);
    assert!(!store.hub.has_watchers());
    assert!(store.hub.watched_namespaces().is_empty());
}
