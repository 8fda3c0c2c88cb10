//! The handlers releases: dispatch state on the events.

use a2_store_postgres::*;

use crate::old::{HANDLERS_UNFINISHED, Release, SCHEMA, Schema};
use crate::tell::*;

const ORDER: &str = "order '17' {x}";

#[tokio::test]
async fn events_stay_and_causes_get_the_consumer_of_handlers() {
    for release in [Release::V0_17, Release::V0_20] {
        let schema = Schema::of(release).await;
        let store = schema.store().await;
        store.migrate().await.unwrap();
        let payload = match release {
            // As jsonb has it.
            Release::V0_17 => r#"{"note":"a [b] \" c","total":[1.0,{}]}"#,
            _ => r#"{"total":[1.0,{}],"note":"a [b] \" c"}"#,
        };
        let expected = [
            &format!("1 evt:1 order.placed {payload} 1001"),
            "2 evt:2 order.paid [] 1200 by a2.handlers lane [a \"lane\"] 1 2",
            "3 evt:3 order.paid null 1200 by a2.handlers lane [a \"lane\"] 1 2",
            "4 evt:4 order.sent \"x\" 1300 by a2.handlers event 2 1",
        ];
        assert_eq!(events(&store, ORDER).await, expected, "{release:?}");
        let expected =
            ["2 evt:6 a2.clear null 2200", "3 evt:7 new 2 2300 by a2.handlers event 1 1"];
        assert_eq!(events(&store, "Überall").await, expected);

        let sessions = store.sessions(Page::first()).await.unwrap().sessions;
        let sessions: Vec<_> = sessions
            .iter()
            .map(|found| (found.session.as_str(), found.head.get(), found.clear_index.get()))
            .collect();
        // In the order of their bytes.
        assert_eq!(sessions, [(ORDER, 4, 0), ("Überall", 3, 2)]);
        for name in [ORDER, "Überall"] {
            assert_eq!(cursors(&store, name).await, [""; 0]);
        }
        assert_eq!(store.pending(PendingPage::new(Served::ALL)).await.unwrap().sessions, []);
    }
}

#[tokio::test]
async fn the_latest_snapshots_of_the_lifetime_stay() {
    for release in [Release::V0_17, Release::V0_20] {
        let schema = Schema::of(release).await;
        let store = schema.store().await;
        store.migrate().await.unwrap();
        let latest = async |name: &str, reducer: &str| {
            let reducer = ReducerName::new(reducer).unwrap();
            let read =
                store.read_state(&session(name), &reducer, ReadState::latest()).await.unwrap();
            read.snapshot.map(|found| (found.index.get(), found.state.as_str().to_owned()))
        };
        assert_eq!(latest(ORDER, "sum").await, Some((3, r#"{"sum":[1,2]}"#.to_owned())));
        assert_eq!(latest("Überall", "n").await, Some((3, "2".to_owned())));
        assert_eq!(latest("Überall", "sum").await, None);
        let kept = "select count(*)::text from a2_snapshots";
        assert_eq!(schema.texts(kept).await, ["2"]);
    }
}

#[tokio::test]
async fn the_logs_go_on() {
    let schema = Schema::of(Release::V0_20).await;
    let store = schema.store().await;
    store.migrate().await.unwrap();
    let at = session("Überall");
    let append = |id: &str| {
        let event = NewEvent::new("t", &1).unwrap().id(id).unwrap();
        Append::one(event.target(Target::event("c").unwrap())).unwrap()
    };
    // Below the marker an id is free, above it it is owned.
    assert_eq!(store.append(&at, append("evt:5")).await.unwrap().events[0].index, 4);
    assert!(store.append(&at, append("evt:7")).await.unwrap().replayed);
    let claim = ClaimAvailable::new("w", std::time::Duration::from_secs(60)).unwrap();
    let heads = store.claim_available(&at, claim).await.unwrap().into_heads();
    let done = complete(heads[0].head.clone(), 1, &["evt:8"]);
    assert_eq!(completion(store.complete_attempt(&at, done).await), "completed [5]");
    assert_eq!(store.reclaim(&at).await.unwrap(), Reclaimed::new(1, true));
}

#[tokio::test]
async fn unfinished_work_is_refused_unless_it_is_to_be_dropped() {
    let schema = Schema::of(Release::V0_20).await;
    schema.run(HANDLERS_UNFINISHED).await;
    let (catalog, rows) = (schema.catalog().await, schema.rows().await);
    let store = schema.store().await;
    let error = store.migrate().await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
    assert!(!error.is_retryable());
    let said = error.to_string();
    assert!(said.contains("3, the first one in session waiting at index 1"), "{said}");
    assert_eq!((schema.catalog().await, schema.rows().await), (catalog, rows));

    store.migrate_with(Migrate::new().drop_unfinished()).await.unwrap();
    let expected = ["1 evt:8 t 1 3000", "2 evt:9 t 1 3001", "3 evt:10 t 1 3002"];
    assert_eq!(events(&store, "waiting").await, expected);
    assert_eq!(cursors(&store, "waiting").await, [""; 0]);
}

#[tokio::test]
async fn the_plain_file_drops_unfinished_work() {
    let schema = Schema::of(Release::V0_17).await;
    schema.run(HANDLERS_UNFINISHED).await;
    schema.run(SCHEMA).await;
    assert_eq!(events(&schema.store().await, "waiting").await.len(), 3);
}
