//! Appending: indexes, ids, replays, expectations. Fences and pending work are in `fences`.

use std::collections::BTreeSet;

use a2_core::{Append, ErrorKind, EventId, NewEvent, StoreExt};
use futures_util::future::join_all;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "append.index.dense" => index_dense: rules(R2, R40);
    "append.index.another_handle" => index_another_handle: rules(R2), needs(Another);
    "append.index.per_session" => index_per_session: rules(R2);
    "append.answer.equals_the_stored" => answer_equals_the_stored: rules(R3, R40);
    "append.answer.one_created_at" => one_created_at: rules(R3, R40);
    "append.ids.generated" => ids_generated: rules(R41);
    "append.ids.per_session" => ids_per_session: rules(R40, F5);
    "append.ids.twice_in_batch" => ids_twice_in_batch: rules(R14, R40, F4);
    "append.ids.free_after_clear" => ids_free_after_clear: rules(R40, R70, R72);
    "append.replay.whole_batch" => replay_whole_batch: rules(R40, F3);
    "append.replay.in_request_order" => replay_in_request_order: rules(R40);
    "append.replay.across_batches" => replay_across_batches: rules(R40);
    "append.replay.content_not_compared" => replay_content_not_compared: rules(R40);
    "append.replay.before_expected_head" => replay_before_expected_head: rules(R37, R40);
    "append.replay.before_origin" => replay_before_origin: rules(R37, R40);
    "append.replay.before_cause" => replay_before_cause: rules(R37, R40);
    "append.partial.existing" => partial_existing: rules(R36, R40);
    "append.partial.before_expected_head" => partial_before_expected_head: rules(R37, R40);
    "append.partial.after_clear" => partial_after_clear: rules(R40, R70);
    "append.expected_head.matches" => expected_head_matches: rules(R40);
    "append.expected_head.conflict" => expected_head_conflict: rules(R40, R88);
    "append.expected_head.before_origin" => expected_head_before_origin: rules(R37, R40);
    "append.expected_head.one_winner" => expected_head_one_winner: rules(R40);
    "append.origin.below_clear" => origin_below_clear: rules(R40, R88);
    "append.origin.before_cause" => origin_before_cause: rules(R37, R40);
    "append.concurrent.new_session" => concurrent_new_session: rules(R2, R5, F2);
    "append.concurrent.same_batch" => concurrent_same_batch: rules(R36, R38, R40);
];

async fn index_dense(cx: Cx) {
    let s = cx.session("dense");
    let first = append(&cx, &s, [ev("a"), ev("b")]).await;
    let second = append(&cx, &s, [ev("c")]).await;
    assert_eq!(indexes(&first), [1, 2]);
    assert_eq!(indexes(&second), [3]);
    let stored = log(&cx, &s).await;
    assert_eq!(indexes(&stored), [1, 2, 3]);
    assert_eq!(ids(&stored), ["a", "b", "c"]);
}

async fn index_another_handle(cx: Cx) {
    let other = cx.another().await;
    let s = cx.session("handles");
    append(&cx, &s, [ev("a")]).await;
    append(&other, &s, [ev("b")]).await;
    append(&cx, &s, [ev("c")]).await;
    assert_eq!(ids(&log(&cx, &s).await), ["a", "b", "c"]);
    assert_eq!(indexes(&log(&other, &s).await), [1, 2, 3]);
}

async fn index_per_session(cx: Cx) {
    let (a, b) = (cx.session("a"), cx.session("b"));
    append(&cx, &a, [ev("x"), ev("y")]).await;
    assert_eq!(indexes(&append(&cx, &b, [ev("z")]).await), [1]);
    assert_eq!(indexes(&append(&cx, &a, [ev("z")]).await), [3]);
    assert_eq!(ids(&log(&cx, &b).await), ["z"]);
}

async fn answer_equals_the_stored(cx: Cx) {
    let s = cx.session("fields");
    let new = event("order.placed", r#"{"total":12}"#).id("evt-1").unwrap().target(to_event("c"));
    let appended = cx.store().append(&s, batch([new])).await.unwrap();
    assert!(!appended.replayed);
    let [stored] = &appended.events[..] else { panic!("one event: {appended:?}") };
    assert_eq!(stored.id, "evt-1");
    assert_eq!(stored.event_type, "order.placed");
    assert_eq!(stored.payload.as_str(), r#"{"total":12}"#);
    assert_eq!(stored.index, 1);
    assert_eq!(stored.session, s);
    assert_eq!(stored.created_at.as_millis(), 1_700_000_000_000);
    assert_eq!(stored.cause, None);
    assert_eq!(log(&cx, &s).await, appended.events);
}

async fn one_created_at(cx: Cx) {
    let s = cx.session("times");
    append(&cx, &s, [ev("a"), ev("b"), ev("c")]).await;
    cx.pass(ms(5)).await;
    append(&cx, &s, [ev("d")]).await;
    let times: Vec<_> = log(&cx, &s).await.iter().map(|e| e.created_at.as_millis()).collect();
    let first = 1_700_000_000_000;
    assert_eq!(times, [first, first, first, first + 5]);
}

async fn ids_generated(cx: Cx) {
    let s = cx.session("generated");
    let request = batch([event("t", "1"), event("t", "1"), event("t", "1")]);
    let first = cx.store().append(&s, request.clone()).await.unwrap();
    let distinct: BTreeSet<_> = first.events.iter().map(|e| e.id.clone()).collect();
    assert_eq!(distinct.len(), 3);
    // The ids were made with the request: sent again it is a replay.
    let again = cx.store().append(&s, request).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.events, first.events);
    assert_eq!(cx.store().head(&s).await.unwrap(), 3);
}

async fn ids_per_session(cx: Cx) {
    let (a, b) = (cx.session("a"), cx.session("b"));
    let mut replayed = Vec::new();
    for s in [&a, &b, &a, &b] {
        replayed.push(cx.store().append(s, batch([ev("e1")])).await.unwrap().replayed);
    }
    assert_eq!(replayed, [false, false, true, true]);
    assert_eq!(ids(&log(&cx, &a).await), ["e1"]);
    assert_eq!(ids(&log(&cx, &b).await), ["e1"]);
}

async fn ids_twice_in_batch(cx: Cx) {
    let s = cx.session("twice");
    let error = assert_code(Append::new([ev("x"), ev("y"), ev("x")]), "INVALID_INPUT");
    assert_eq!(error.to_string(), "events[2].id: must not be twice in one batch");
    assert_eq!(cx.store().head(&s).await.unwrap(), 0);
}

async fn ids_free_after_clear(cx: Cx) {
    let s = cx.session("free");
    append(&cx, &s, [ev("a")]).await;
    clear(&cx, &s).await;
    let again = cx.store().append(&s, batch([ev("a")])).await.unwrap();
    assert!(!again.replayed, "an id below the clear is free");
    assert_eq!(indexes(&again.events), [3]);
    // And owned again in this lifetime.
    let replay = cx.store().append(&s, batch([ev("a")])).await.unwrap();
    assert!(replay.replayed);
    assert_eq!(indexes(&replay.events), [3]);
}

async fn replay_whole_batch(cx: Cx) {
    let s = cx.session("replay");
    let first = append(&cx, &s, [ev("a"), ev("b")]).await;
    append(&cx, &s, [ev("c")]).await;
    let again = cx.store().append(&s, batch([ev("a"), ev("b")])).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.events, first);
    assert_eq!(cx.store().head(&s).await.unwrap(), 3);
}

async fn replay_in_request_order(cx: Cx) {
    let s = cx.session("order");
    append(&cx, &s, [ev("a"), ev("b"), ev("c")]).await;
    let again = cx.store().append(&s, batch([ev("c"), ev("a")])).await.unwrap();
    assert!(again.replayed);
    assert_eq!(ids(&again.events), ["c", "a"]);
    assert_eq!(indexes(&again.events), [3, 1]);
}

async fn replay_across_batches(cx: Cx) {
    let s = cx.session("across");
    append(&cx, &s, [ev("a")]).await;
    append(&cx, &s, [ev("b")]).await;
    let both = cx.store().append(&s, batch([ev("a"), ev("b")])).await.unwrap();
    assert!(both.replayed);
    assert_eq!(indexes(&both.events), [1, 2]);
}

async fn replay_content_not_compared(cx: Cx) {
    let s = cx.session("content");
    append(&cx, &s, [event("t", "1").id("a").unwrap()]).await;
    let other = event("u", "2").id("a").unwrap().target(to_lane("c", "l"));
    let again = cx.store().append(&s, batch([other])).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.events[0].event_type, "t");
    assert_eq!(again.events[0].payload.as_str(), "1");
    assert!(!again.has_pending, "nothing was queued");
    assert_eq!(cx.store().all_cursors(&s).await.unwrap(), []);
}

async fn replay_before_expected_head(cx: Cx) {
    let s = cx.session("expected");
    let request = batch([ev("a")]).expected_head(at(0));
    let first = cx.store().append(&s, request.clone()).await.unwrap();
    append(&cx, &s, [ev("b")]).await;
    let again = cx.store().append(&s, request).await.unwrap();
    assert!(again.replayed, "the head has moved on since, the events are there");
    assert_eq!(again.events, first.events);
}

async fn replay_before_origin(cx: Cx) {
    let s = cx.session("origin");
    append(&cx, &s, [ev("a")]).await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev("x")]).await;
    let stale = batch([ev("x")]).origin_index(at(1));
    assert!(cx.store().append(&s, stale).await.unwrap().replayed);
}

async fn replay_before_cause(cx: Cx) {
    let s = cx.session("cause");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    let request = batch([ev("x").cause(head.cause())]);
    let first = cx.store().append(&s, request.clone()).await.unwrap();
    finish(&cx, &s, &head).await;
    let again = cx.store().append(&s, request).await.unwrap();
    assert!(again.replayed, "the attempt has ended since, the event is there");
    assert_eq!(again.events, first.events);
}

async fn partial_existing(cx: Cx) {
    let s = cx.session("partial");
    append(&cx, &s, [ev("c"), ev("a")]).await;
    let events = ["a", "b", "c"].map(|id| ev(id).target(to_lane("c", "l")));
    let error = assert_code(cx.store().append(&s, batch(events)).await, "PARTIAL_DUPLICATE_BATCH");
    let ErrorKind::PartialDuplicateBatch { existing } = error.kind() else { panic!("{error}") };
    let expected = ["a", "c"].map(|id| EventId::new(id).unwrap());
    assert_eq!(existing[..], expected, "the existing ids, in the order of the batch");
    assert_eq!(ids(&log(&cx, &s).await), ["c", "a"]);
    expect_settled(cx.store().claim_available(&s, claim()).await);
}

async fn partial_before_expected_head(cx: Cx) {
    let s = cx.session("partial-head");
    append(&cx, &s, [ev("a")]).await;
    let request = batch([ev("a"), ev("b")]).expected_head(at(7));
    assert_code(cx.store().append(&s, request).await, "PARTIAL_DUPLICATE_BATCH");
}

async fn partial_after_clear(cx: Cx) {
    let s = cx.session("partial-clear");
    append(&cx, &s, [ev("a"), ev("b")]).await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev("b")]).await;
    let request = batch([ev("a"), ev("b")]);
    let error = assert_code(cx.store().append(&s, request).await, "PARTIAL_DUPLICATE_BATCH");
    let ErrorKind::PartialDuplicateBatch { existing } = error.kind() else { panic!("{error}") };
    assert_eq!(existing[..], [EventId::new("b").unwrap()], "`a` is free since the clear");
}

async fn expected_head_matches(cx: Cx) {
    let s = cx.session("head");
    let first = batch([ev("a"), ev("b")]).expected_head(at(0));
    assert_eq!(indexes(&cx.store().append(&s, first).await.unwrap().events), [1, 2]);
    let next = batch([ev("c")]).expected_head(at(2));
    assert_eq!(indexes(&cx.store().append(&s, next).await.unwrap().events), [3]);
}

async fn expected_head_conflict(cx: Cx) {
    let s = cx.session("conflict");
    append(&cx, &s, [ev("a"), ev("b")]).await;
    for expected in [0, 1, 3] {
        let request = batch([ev("c")]).expected_head(at(expected));
        let error = assert_code(cx.store().append(&s, request).await, "HEAD_CONFLICT");
        let ErrorKind::HeadConflict { expected: e, actual } = error.kind() else {
            panic!("{error}")
        };
        assert_eq!((e.get(), actual.get()), (expected, 2));
    }
    assert_eq!(cx.store().head(&s).await.unwrap(), 2);
}

async fn expected_head_before_origin(cx: Cx) {
    let s = cx.session("both");
    append(&cx, &s, [ev("a")]).await;
    clear(&cx, &s).await;
    let request = batch([ev("b")]).expected_head(at(1)).origin_index(at(1));
    assert_code(cx.store().append(&s, request).await, "HEAD_CONFLICT");
}

async fn expected_head_one_winner(cx: Cx) {
    let s = cx.session("winner");
    let racers = (0..12).map(|i| {
        let (cx, s) = (cx.clone(), s.clone());
        tokio::spawn(async move {
            let request = batch([ev(&format!("e{i}"))]).expected_head(at(0));
            match cx.store().append(&s, request).await {
                Ok(_) => true,
                Err(error) => {
                    assert_eq!(error.code(), "HEAD_CONFLICT");
                    false
                }
            }
        })
    });
    let won = join_all(racers).await.into_iter().filter(|won| *won.as_ref().unwrap()).count();
    assert_eq!(won, 1);
    assert_eq!(cx.store().head(&s).await.unwrap(), 1);
}

async fn origin_below_clear(cx: Cx) {
    let s = cx.session("origin");
    let never_cleared = batch([ev("a")]).origin_index(at(0));
    assert!(cx.store().append(&s, never_cleared).await.is_ok());
    clear(&cx, &s).await;
    for origin in [0, 1] {
        let request = batch([ev("b")]).origin_index(at(origin));
        let error = assert_code(cx.store().append(&s, request).await, "SESSION_CLEARED");
        assert_eq!(*error.kind(), ErrorKind::SessionCleared { clear_index: at(2) });
    }
    assert_eq!(cx.store().head(&s).await.unwrap(), 2);
    let at_the_marker = batch([ev("b")]).origin_index(at(2));
    assert!(cx.store().append(&s, at_the_marker).await.is_ok());
    let above = batch([ev("c")]).origin_index(at(3));
    assert!(cx.store().append(&s, above).await.is_ok());
}

async fn origin_before_cause(cx: Cx) {
    let s = cx.session("origin-cause");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    clear(&cx, &s).await;
    let request = batch([ev("b").cause(head.cause())]).origin_index(at(1));
    assert_code(cx.store().append(&s, request).await, "SESSION_CLEARED");
}

async fn concurrent_new_session(cx: Cx) {
    for round in 0..20 {
        let s = cx.session("new");
        let tasks = (0..20).map(|i| {
            let (cx, s) = (cx.clone(), s.clone());
            tokio::spawn(async move {
                let id = format!("{round}-{i}");
                let appended = append(&cx, &s, [ev(&id)]).await;
                (appended[0].index.get(), id)
            })
        });
        let mut acknowledged: Vec<_> =
            join_all(tasks).await.into_iter().map(Result::unwrap).collect();
        acknowledged.sort();
        let given: Vec<u64> = acknowledged.iter().map(|(index, _)| *index).collect();
        assert_eq!(given, (1..=20).collect::<Vec<_>>(), "each index once, without a hole");
        let expected: Vec<_> = acknowledged.iter().map(|(_, id)| id.as_str()).collect();
        assert_eq!(ids(&log(&cx, &s).await), expected);
    }
}

async fn concurrent_same_batch(cx: Cx) {
    let s = cx.session("same");
    let request = batch((0..5).map(|_| event("t", "{}")).collect::<Vec<NewEvent>>());
    let tasks = (0..8).map(|_| {
        let (cx, s, request) = (cx.clone(), s.clone(), request.clone());
        tokio::spawn(async move { cx.store().append(&s, request).await.unwrap() })
    });
    let answers: Vec<_> = join_all(tasks).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1);
    for answer in &answers {
        assert_eq!(indexes(&answer.events), [1, 2, 3, 4, 5]);
    }
    assert_eq!(cx.store().head(&s).await.unwrap(), 5);
}
