//! Streams and hints across stores: the connection that listens is lost, there is none.

use std::time::Duration;

use a2_conformance::servers::fresh_name;
use a2_store_postgres::*;

use crate::util::*;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_listening_connection_is() {
    let name = fresh_name();
    let url = format!("{}?application_name={name}", url().await);
    let options = PostgresStore::builder(url).schema(fresh_name());
    let options = options.polling(Duration::from_millis(20), Duration::from_millis(200));
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    store.migrate().await.unwrap();
    let (client, at) = (client().await, session("s"));
    let mut stream = store.stream(&at, Index::ZERO);
    let mut index = 0;
    for round in 0..20 {
        let kill = format!(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity
             where query like 'listen %' and application_name = '{name}'"
        );
        count(&client, &kill).await;
        for n in 0..10 {
            other.append(&at, append(&format!("{round}-{n}"))).await.unwrap();
        }
        for _ in 0..10 {
            index += 1;
            assert_eq!(next(&mut stream).await.index, index);
        }
    }
}

#[tokio::test]
async fn without_notifications_streams_look_by_themselves() {
    let options = made().await.notifications(false);
    let options = options.polling(Duration::from_millis(5), Duration::from_millis(50));
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    let at = session("s");
    let mut stream = store.stream(&at, Index::ZERO);
    for index in 1..=20 {
        other.append(&at, append(&index.to_string())).await.unwrap();
        assert_eq!(next(&mut stream).await.index, index);
    }
    let _ = other.clear(&at, Clear::new()).await.unwrap();
    let marker = next(&mut stream).await;
    assert_eq!((marker.index.get(), marker.event_type.as_str()), (21, "a2.clear"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_long_names_are_told_apart() {
    let options = made().await.polling(Duration::from_secs(60), Duration::from_secs(60));
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    let long = "s".repeat(70);
    let names = [format!("{long}1"), format!("{long}2"), "\u{20ac}".repeat(22)];
    let mut streams: Vec<_> =
        names.iter().map(|name| store.stream(&session(name), Index::ZERO)).collect();
    for stream in &mut streams {
        assert!(is_waiting(stream));
    }
    // As large as no notification can be.
    for (name, stream) in names.iter().zip(&mut streams) {
        for len in [7_900, 8_000, 8_100, 100_000, 1_000_000] {
            let payload = "x".repeat(len);
            let new = NewEvent::new("t", &payload).unwrap();
            other.append(&session(name), Append::one(new).unwrap()).await.unwrap();
            let event = next(stream).await;
            assert_eq!((event.session.as_str(), event.payload.byte_len()), (&**name, len + 2));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_presence_values_reach_others_with_their_source() {
    let options = made().await;
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    let ns = Namespace::new("room").unwrap();
    let mut watch = store.watch_presence(&ns);
    assert_eq!(next(&mut watch).await, PresenceChange::Rows(PresenceRows::new(Vec::new())));
    for len in [10, 60_000] {
        let value = Json::from_serialize(&"v".repeat(len)).unwrap();
        let update = PresenceUpdate::new("ann", Duration::from_secs(60)).unwrap();
        let update = update.set("text", value).unwrap();
        let patch = other.set_presence(&ns, update).await.unwrap().unwrap();
        assert_eq!(next(&mut watch).await, PresenceChange::Patch(patch));
    }
}

#[tokio::test]
async fn without_notifications_hints_come_from_what_is_pending() {
    let options = made().await.notifications(false);
    let options = options.polling(Duration::from_millis(5), Duration::from_millis(50));
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    let mut hints = store.watch_pending(Served::ALL);
    assert!(is_waiting(&mut hints));
    other.append(&session("s"), append("e")).await.unwrap();
    assert_eq!(next(&mut hints).await.session, session("s"));
}
