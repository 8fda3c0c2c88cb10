//! How long a namespace's keys live.

use std::time::Duration;

use a2_store_redis::*;

use crate::util::*;

fn update(who: &str, field: &str, ttl: Duration) -> PresenceUpdate {
    PresenceUpdate::new(who, ttl).unwrap().set(field, Json::parse("1").unwrap()).unwrap()
}

#[tokio::test]
async fn the_server_forgets_a_namespace_with_its_last_field() {
    let space = Space::new().await;
    let store = space.store().await;
    let room = Namespace::new("room").unwrap();
    for (field, ttl) in [("x", 600), ("y", 60)] {
        let _ = store.set_presence(&room, update("ann", field, Duration::from_secs(ttl))).await;
    }
    let keys = [space.keys("p").await, space.keys("x").await].concat();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in keys {
        let left = space.number(&["PTTL", &key]).await;
        assert!((500_000..=600_000).contains(&left), "{left} ms");
    }
    let gone = PresenceUpdate::new("ann", Duration::from_secs(1)).unwrap();
    let gone = gone.remove("x").unwrap().remove("y").unwrap();
    let _ = store.set_presence(&room, gone).await.unwrap();
    assert_eq!(space.keys("p").await, [""; 0]);
}

#[tokio::test]
async fn with_another_clock_the_server_forgets_nothing() {
    let space = Space::new().await;
    let room = Namespace::new("room").unwrap();
    let live = space.store().await;
    let _ = live.set_presence(&room, update("ann", "x", Duration::from_secs(600))).await.unwrap();
    let (store, _) = space.timed().await;
    let _ = store.set_presence(&room, update("bob", "x", Duration::from_secs(1))).await.unwrap();
    for key in [space.keys("p").await, space.keys("x").await].concat() {
        assert_eq!(space.number(&["PTTL", &key]).await, -1);
    }
}

#[tokio::test]
async fn a_write_drops_64_expired_fields() {
    let space = Space::new().await;
    let (store, clock) = space.timed().await;
    let room = Namespace::new("room").unwrap();
    for n in 0..100 {
        let one = update(&format!("p{n}"), "x", Duration::from_secs(1));
        let _ = store.set_presence(&room, one).await.unwrap();
    }
    clock.advance(Duration::from_secs(1));
    for left in [37, 1] {
        let one = update("ann", "x", Duration::from_secs(1));
        let _ = store.set_presence(&room, one).await.unwrap();
        let key = &space.keys("p").await[0];
        assert_eq!(space.number(&["HLEN", key]).await, left);
    }
}

#[tokio::test]
async fn a_large_namespace_is_read_whole() {
    let space = Space::new().await;
    let (store, _) = space.timed().await;
    let room = Namespace::new("room").unwrap();
    for n in 0..1_000 {
        let one = update(&format!("p{n:03}"), "x", Duration::from_secs(1));
        let _ = store.set_presence(&room, one).await.unwrap();
    }
    let rows = store.read_presence(&room).await.unwrap().rows;
    let names: Vec<_> = rows.iter().map(|row| row.participant.as_str().to_owned()).collect();
    assert_eq!(names, (0..1_000).map(|n| format!("p{n:03}")).collect::<Vec<_>>());
}
