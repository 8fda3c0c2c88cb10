//! 0.21 and 0.22: a row for each run of a cursor.

use std::time::Duration;

use a2_store_postgres::*;

use crate::old::{Release, SESSION, Schema};
use crate::tell::*;

const BOTH: [Release; 2] = [Release::V0_21, Release::V0_22];

/// Upgraded, with a store whose clock stands at 6,000.
async fn upgraded(release: Release) -> (Schema, PostgresStore) {
    let schema = Schema::of(release).await;
    let (store, _) = schema.store_at(6_000).await;
    store.migrate().await.unwrap();
    (schema, store)
}

#[tokio::test]
async fn events_come_back_as_they_were_written() {
    for release in BOTH {
        let (_schema, store) = upgraded(release).await;
        let expected = [
            "3 e3 a2.clear null 1003",
            r#"4 e4 a {"n":12345678901234567890,"f":1.0,"u":"\u0000\ud800","e":[{},[]],"e":1e400} 1004"#,
            "5 e5 b \"q\" \"a  b\" 1005",
            r#"6 e6 a [1,2,{"a":"x y"}] 1006"#,
            "7 r1 a 7 1007 by done:1 event 4 1",
            "8 r2 b \"q\" 8 1007 by done:1 event 4 1",
            "9 r3 a 9 1009 by lanes lane [L {1}] 4 2",
            "10 e10 a 10 1010 by logs log [audit] 8 3",
            "11 e11 a 11 1011 by a2.handlers event 4 1",
            "12 e12 a 12 1012",
        ];
        assert_eq!(events(&store, SESSION).await, expected, "{release:?}");
        assert_eq!(events(&store, "other").await, ["1 o1 a true 2001"]);
    }
}

#[tokio::test]
async fn cursors_stand_where_they_stood() {
    for release in BOTH {
        let (_schema, store) = upgraded(release).await;
        let expected = [
            "events event 3 4 attempt 2 first 5000 last 5100 holder w '1' until 9000 failures 1 \
             failed-at 5050 failed-attempt 1 error \"bo\\u{1}om\"",
            "events event 4 5 attempt 3 first 5000 last 5200 until 8000 failures 2 failed-at 5250 \
             failed-attempt 3 error \"later\"",
            "events event 5 6 attempt 4 first 5000 last 5300 failures 3 failed-at 5350 \
             failed-attempt 4 error \"never\" dead-at 5350",
            "lanes lane [] 3 10",
            "lanes lane [L {1}] 5 6 attempt 1 first 5000 last 5000 holder w2 until 5500",
            "lanes lane [dead] 3 11 attempt 2 first 5000 last 5100 failures 2 failed-at 5150 \
             failed-attempt 2 error \"poison\" dead-at 5150",
            "lanes lane [idle] 12 idle",
            "logs log [audit] 8 9 attempt 1 first 5000 last 5000 holder w3 until 9500",
            "logs log [new] 12 idle",
            "logs log [old] 3 idle",
            "logs log [through] 10 11",
            "logs log [typed] 8 idle",
        ];
        assert_eq!(cursors(&store, SESSION).await, expected, "{release:?}");
        assert_eq!(cursors(&store, "other").await, ["lanes lane [l] 0 1"]);
        let dead = store.all_dead_letters(&session(SESSION)).await.unwrap();
        let expected = [
            "events event 6 e6 attempt 4 first 5000 last 5300 failures 3 failed-at 5350 \
             failed-attempt 4 error \"never\" dead-at 5350",
            "lanes lane [dead] 11 e11 attempt 2 first 5000 last 5100 failures 2 failed-at 5150 \
             failed-attempt 2 error \"poison\" dead-at 5150",
        ];
        assert_eq!(dead.iter().map(head).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn a_completion_that_is_sent_again_is_a_replay() {
    for release in BOTH {
        let (_schema, store) = upgraded(release).await;
        let table: [(HeadRef, u64, &[&str], &str); 11] = [
            (head_ref("done:1", CursorKey::Event, 4), 1, &["r1", "r2"], "replayed [7, 8]"),
            (head_ref("done:1", CursorKey::Event, 4), 2, &["r1", "r2"], "superseded"),
            (head_ref("done:1", CursorKey::Event, 4), 1, &["r1"], "PARTIAL_DUPLICATE_BATCH"),
            (head_ref("lanes", lane("L {1}"), 4), 2, &["r3"], "replayed [9]"),
            (head_ref("lanes", lane("L {1}"), 5), 1, &[], "superseded"),
            (head_ref("lanes", lane("idle"), 12), 5, &[], "replayed []"),
            (head_ref("logs", log("audit"), 8), 3, &["e10"], "replayed [10]"),
            (head_ref("logs", log("audit"), 7), 1, &[], "superseded"),
            (head_ref("logs", log("typed"), 5), 1, &[], "replayed []"),
            (head_ref("logs", log("through"), 7), 2, &[], "replayed []"),
            (head_ref("logs", log("old"), 1), 1, &[], "superseded"),
        ];
        for (head, attempt, ids, expected) in table {
            let case = format!("{release:?} {head:?} {attempt} {ids:?}");
            let done = complete(head, attempt, ids);
            let answer = store.complete_attempt(&session(SESSION), done).await;
            assert_eq!(completion(answer), expected, "{case}");
        }
    }
}

#[tokio::test]
async fn work_goes_on_where_it_was() {
    for release in BOTH {
        let (schema, store) = upgraded(release).await;
        let at = session(SESSION);
        let pending = store.pending(PendingPage::new(Served::ALL)).await.unwrap().sessions;
        let pending: Vec<_> = pending
            .iter()
            .map(|found| (found.session.as_str(), found.not_before.as_millis()))
            .collect();
        assert_eq!(pending, [("other", 6_000), (SESSION, 6_000)]);
        // The lease of a lane's head has run out; the others' run on.
        let claim = ClaimAvailable::new("new", Duration::from_secs(60)).unwrap();
        let heads = store.claim_available(&at, claim.clone()).await.unwrap().into_heads();
        let expected = [
            "lanes lane [L {1}] 6 e6 attempt 2 first 5000 last 6000 holder new until 66000 \
             failures 1 failed-at 6000 failed-attempt 1 error \"lease expired\"",
            "lanes lane [] 10 e10 attempt 1 first 6000 last 6000 holder new until 66000",
            "logs log [through] 11 e11 attempt 1 first 6000 last 6000 holder new until 66000",
        ];
        assert_eq!(heads.iter().map(head).collect::<Vec<_>>(), expected, "{release:?}");

        // Whoever held a lease before the upgrade completes; what lapsed does not. Queues move on.
        let finish = async |head: HeadRef, attempt: u64, ids: &[&str]| {
            completion(store.complete_attempt(&at, complete(head, attempt, ids)).await)
        };
        let leased = head_ref("events", CursorKey::Event, 4);
        assert_eq!(finish(leased, 2, &["new"]).await, "completed [13]");
        assert_eq!(finish(head_ref("lanes", lane("L {1}"), 6), 1, &[]).await, "superseded");
        assert_eq!(finish(head_ref("lanes", lane("L {1}"), 6), 2, &[]).await, "completed []");
        assert_eq!(finish(head_ref("logs", log("audit"), 9), 1, &[]).await, "completed []");
        let dead = head_ref("lanes", lane("dead"), 11);
        assert!(
            store.redrive(&at, Redrive::new(dead, RedriveAction::Skip)).await.unwrap().redriven
        );
        let heads = store.claim_available(&at, claim).await.unwrap().into_heads();
        let heads: Vec<_> =
            heads.iter().map(|found| (found.head.index.get(), found.attempt())).collect();
        assert_eq!(heads, [(7, 1), (10, 1), (12, 1)]);

        // The typed log takes what it took.
        let typed = NewEvent::new("b \"q\"", &1).unwrap().id("typed").unwrap();
        let types = LogTypes::only([EventType::new("b \"q\"").unwrap()]).unwrap();
        let declared = LogDeclaration::new("typed").unwrap().types(types);
        let served = ServedConsumer::new("logs").unwrap().log(declared);
        let append = Append::one(typed).unwrap().served(Served::only([served]).unwrap());
        assert_eq!(store.append(&at, append).await.unwrap().events[0].index, 14);
        let listed = cursors(&store, SESSION).await;
        assert!(listed.contains(&"logs log [typed] 8 14".to_owned()), "{listed:?}");

        let _ = store.clear(&at, Clear::new()).await.unwrap();
        while !store.reclaim(&at).await.unwrap().done {}
        let left = "select count(*)::text from a2_heads where session_id <> 'other'";
        assert_eq!(schema.texts(left).await, ["0"]);
    }
}

#[tokio::test]
async fn the_latest_snapshot_and_what_a_live_head_pins_stay() {
    for release in BOTH {
        let (schema, store) = upgraded(release).await;
        let at = session(SESSION);
        let state = async |reducer: &str, read: ReadState| {
            let reducer = ReducerName::new(reducer).unwrap();
            let read = store.read_state(&at, &reducer, read).await.unwrap();
            read.snapshot.map(|found| (found.index.get(), found.state.as_str().to_owned()))
        };
        let latest = Some((9, r#"{"s":9,"z":"\u0000"}"#.to_owned()));
        assert_eq!(state("sum 'r'", ReadState::latest()).await, latest);
        let below = ReadState::latest().snapshot_through(index(8));
        assert_eq!(state("sum 'r'", below.clone()).await, Some((5, "[5,5]".to_owned())));
        assert_eq!(state("old", ReadState::latest()).await, None);
        // The pin goes with its head.
        let done = complete(head_ref("events", CursorKey::Event, 4), 2, &[]);
        assert_eq!(completion(store.complete_attempt(&at, done).await), "completed []");
        assert_eq!(state("sum 'r'", below).await, None);
        assert_eq!(schema.texts("select up_to_index::text from a2_snapshots").await, ["9"]);
    }
}

#[tokio::test]
async fn ids_are_those_of_the_lifetime() {
    for release in BOTH {
        let (_schema, store) = upgraded(release).await;
        let append = async |name: &str, id: &str| {
            let event = NewEvent::new("t", &1).unwrap().id(id).unwrap();
            let done = store.append(&session(name), Append::one(event).unwrap()).await.unwrap();
            (done.events[0].index.get(), done.replayed)
        };
        assert_eq!(append(SESSION, "e1").await, (13, false));
        assert_eq!(append(SESSION, "e5").await, (5, true));
        assert_eq!(append(SESSION, "e3").await, (3, true));
        assert_eq!(append("other", "e4").await, (2, false));
    }
}

#[tokio::test]
async fn presence_that_has_not_expired_stays() {
    for release in BOTH {
        let (_schema, store) = upgraded(release).await;
        let rows = store.read_presence(&Namespace::new("n:1").unwrap()).await.unwrap().rows;
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (row.participant.as_str(), row.field.as_str(), row.value.as_str(), row.seen))
            .collect();
        assert_eq!(rows, [("p \"2\"", "f", r#"{"a":1}"#, Some(index(7)))]);
    }
}

#[tokio::test]
async fn a_kind_that_is_not_written_is_told_by_the_lane() {
    let (plain, untold) = (Schema::of(Release::V0_22).await, Schema::of(Release::V0_22).await);
    let untell = "alter table a2_cursors alter column kind drop not null;
        update a2_cursors set kind = null where kind <> 'log'";
    untold.run(untell).await;
    for schema in [&plain, &untold] {
        schema.store().await.migrate().await.unwrap();
    }
    assert_eq!(untold.rows().await, plain.rows().await);
}

#[tokio::test]
async fn a_lane_without_a_head_goes_on_with_what_waits() {
    let schema = Schema::of(Release::V0_22).await;
    schema.run("update a2_cursors set head = null where consumer = 'lanes'").await;
    let store = schema.store().await;
    store.migrate().await.unwrap();
    let lanes = async |name: &str| {
        let mut lanes = cursors(&store, name).await;
        lanes.retain(|line| line.starts_with("lanes"));
        lanes
    };
    let expected = [
        "lanes lane [] 3 10",
        "lanes lane [L {1}] 5 6",
        "lanes lane [dead] 3 11",
        "lanes lane [idle] 12 idle",
    ];
    assert_eq!(lanes(SESSION).await, expected);
    assert_eq!(lanes("other").await, ["lanes lane [l] 0 1"]);
}

#[tokio::test]
async fn what_was_returned_elsewhere_counts_as_skipped() {
    let schema = Schema::of(Release::V0_22).await;
    let elsewhere =
        "update a2_cursors set returned_event_ids = '{r1,e10}' where consumer = 'done:1';
        update a2_lane_events set returned_event_ids = '{none}' where idx = 12 and done;
        update a2_cursors set returned_event_ids = '{none}' where completed_idx = 12";
    schema.run(elsewhere).await;
    let store = schema.store().await;
    store.migrate().await.unwrap();
    for (head, attempt, ids) in [
        (head_ref("done:1", CursorKey::Event, 4), 1, &["r1", "e10"][..]),
        (head_ref("lanes", lane("idle"), 12), 5, &["none"]),
    ] {
        let done = complete(head, attempt, ids);
        assert_eq!(completion(store.complete_attempt(&session(SESSION), done).await), "superseded");
    }
}

#[tokio::test]
async fn an_error_that_is_too_long_is_cut_on_a_character() {
    let schema = Schema::of(Release::V0_22).await;
    // 65,535 bytes, and a character of two.
    let long =
        "update a2_cursors set last_error = repeat('e', 65535) || 'ü!' where failed_at is not null";
    schema.run(long).await;
    let store = schema.store().await;
    store.migrate().await.unwrap();
    let dead = store.all_dead_letters(&session(SESSION)).await.unwrap();
    assert_eq!(dead[0].state.last_error.as_deref(), Some(&*"e".repeat(65_535)));
}
