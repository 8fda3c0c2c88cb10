//! Timers: durable delayed appends, each fired once.

use a2_core::{
    Appended, FireTimers, Index, LogDeclaration, Page, Schedule, SessionId, StoreExt, Timer,
    TimerKey, Timestamp,
};
use futures_util::future::join_all;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: needs(Timers);
    "timers.schedule.answers_when_due" => schedule_answers_when_due: rules(R34, R74);
    "timers.schedule.at_once" => schedule_at_once: rules(R74, R76), both;
    "timers.schedule.replaces" => schedule_replaces: rules(R74);
    "timers.schedule.replaces_with_later" => schedule_replaces_with_later: rules(R74);
    "timers.schedule.generated_id" => schedule_generated_id: rules(R41, R74), both;
    "timers.schedule.empty_session" => schedule_empty_session: rules(R1, R74), both;
    "timers.schedule.origin_cleared" => schedule_origin_cleared: rules(R37, R74), both;
    "timers.schedule.origin_at_the_clear" => schedule_origin_at_the_clear: rules(R74), both;
    "timers.unschedule.whether_there_was_one" => unschedule_whether: rules(R75), both;
    "timers.list.fields" => list_fields: rules(R75);
    "timers.list.by_key" => list_by_key: rules(R8, R75);
    "timers.fire.not_before_due" => fire_not_before_due: rules(R76);
    "timers.fire.exactly_when_due" => fire_exactly_when_due: rules(R33, R76);
    "timers.fire.when_due" => fire_when_due: rules(R76), both;
    "timers.fire.the_event" => fire_the_event: rules(R3, R76);
    "timers.fire.once" => fire_once: rules(R76), both;
    "timers.fire.in_order_of_due_time" => fire_in_order_of_due_time: rules(R76);
    "timers.fire.limit" => fire_limit: rules(R10, R76);
    "timers.fire.default_limit" => fire_default_limit: rules(R10, R76);
    "timers.fire.owned_id_counts_as_fired" => fire_owned_id_counts_as_fired: rules(R76), both;
    "timers.fire.owned_among_others" => fire_owned_among_others: rules(R76), both;
    "timers.fire.two_of_one_id" => fire_two_of_one_id: rules(R76), both;
    "timers.fire.origin_cleared_later" => fire_origin_cleared_later: rules(R70, R74), both;
    "timers.fire.without_origin_outlives_clear" => fire_without_origin_outlives_clear:
        rules(R70, R74), both;
    "timers.fire.queues_and_logs" => fire_queues_and_logs: rules(R27, R76), both;
    "timers.fire.has_pending" => fire_has_pending: rules(R42), both;
    "timers.fire.wakes_streams" => fire_wakes_streams: rules(R80), both;
    "timers.fire.concurrent" => fire_concurrent: rules(R36, R76), both;
    "timers.fire.another_handle" => fire_another_handle: rules(R76), both, needs(Timers, Another);
    "timers.per_session" => per_session: rules(R74), both;
    "timers.many" => many_timers: rules(R76);
];

fn due_in(key: &str, after: u64, id: &str) -> Schedule {
    Schedule::new(key, ms(after), ev(id)).unwrap()
}

async fn schedule(cx: &Cx, s: &SessionId, timer: Schedule) -> Timestamp {
    cx.timers().schedule(s, timer).await.unwrap().due_at
}

async fn fire(cx: &Cx, s: &SessionId) -> Appended {
    cx.timers().fire_timers(s, FireTimers::new()).await.unwrap()
}

async fn list(cx: &Cx, s: &SessionId) -> Vec<Timer> {
    cx.timers().timers(s, Page::first().limit(1_000).unwrap()).await.unwrap().timers
}

async fn keys(cx: &Cx, s: &SessionId) -> Vec<String> {
    list(cx, s).await.iter().map(|timer| timer.key.as_str().to_owned()).collect()
}

async fn schedule_answers_when_due(cx: Cx) {
    let s = cx.session("due");
    assert_eq!(schedule(&cx, &s, due_in("k", 1_500, "a")).await.as_millis(), 1_700_000_001_500);
    cx.pass(ms(10)).await;
    assert_eq!(schedule(&cx, &s, due_in("l", 1_500, "b")).await.as_millis(), 1_700_000_001_510);
    assert_eq!(cx.store().head(&s).await.unwrap(), 0, "nothing is appended yet");
}

async fn schedule_at_once(cx: Cx) {
    let s = cx.session("at-once");
    schedule(&cx, &s, due_in("k", 0, "a")).await;
    assert_eq!(ids(&fire(&cx, &s).await.events), ["a"]);
}

async fn schedule_replaces(cx: Cx) {
    let s = cx.session("replaces");
    schedule(&cx, &s, due_in("k", 5_000, "first")).await;
    schedule(&cx, &s, due_in("k", 1_000, "second").origin_index(at(0))).await;
    let [timer] = &list(&cx, &s).await[..] else { panic!("one timer") };
    assert_eq!(timer.event.event_id().unwrap().as_str(), "second");
    assert_eq!(timer.due_at.as_millis(), 1_700_000_001_000);
    assert_eq!(timer.origin_index, Some(Index::ZERO));
    cx.pass(ms(1_000)).await;
    assert_eq!(ids(&fire(&cx, &s).await.events), ["second"]);
    cx.pass(ms(60_000)).await;
    assert_eq!(fire(&cx, &s).await.events, [], "the first never fires");
}

async fn schedule_replaces_with_later(cx: Cx) {
    let s = cx.session("later");
    schedule(&cx, &s, due_in("k", 1_000, "first").origin_index(at(0))).await;
    schedule(&cx, &s, due_in("k", 5_000, "second")).await;
    assert_eq!(list(&cx, &s).await[0].origin_index, None);
    cx.pass(ms(4_999)).await;
    assert_eq!(fire(&cx, &s).await.events, []);
    cx.pass(ms(1)).await;
    assert_eq!(ids(&fire(&cx, &s).await.events), ["second"]);
}

async fn schedule_generated_id(cx: Cx) {
    let s = cx.session("generated");
    let timer = Schedule::new("k", ms(10), event("t", "1")).unwrap();
    schedule(&cx, &s, timer.clone()).await;
    cx.pass(ms(10)).await;
    let fired = fire(&cx, &s).await.events;
    // Sent again after it fired, as after a lost answer: its id, made with the request, is owned.
    schedule(&cx, &s, timer.clone()).await;
    cx.pass(ms(10)).await;
    let _ = fire(&cx, &s).await;
    assert_eq!(log(&cx, &s).await, fired);
    assert_eq!(fired[0].id, *timer.event().event_id().unwrap());
    assert_eq!(list(&cx, &s).await, []);
}

async fn schedule_empty_session(cx: Cx) {
    let s = cx.session("empty");
    schedule(&cx, &s, due_in("k", 0, "a")).await;
    assert_eq!(cx.store().head(&s).await.unwrap(), 0);
    let fired = fire(&cx, &s).await;
    assert_eq!(indexes(&fired.events), [1]);
}

async fn schedule_origin_cleared(cx: Cx) {
    let s = cx.session("cleared");
    append(&cx, &s, many("e", 2)).await;
    clear(&cx, &s).await;
    schedule(&cx, &s, due_in("kept", 1_000, "a")).await;
    for origin in [0, 2] {
        let timer = due_in("kept", 500, "b").origin_index(at(origin));
        let error = assert_code(cx.timers().schedule(&s, timer).await, "SESSION_CLEARED");
        let expected = a2_core::ErrorKind::SessionCleared { clear_index: at(3) };
        assert_eq!(*error.kind(), expected);
    }
    let kept = list(&cx, &s).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].event.event_id().unwrap().as_str(), "a", "not replaced");
}

async fn schedule_origin_at_the_clear(cx: Cx) {
    let s = cx.session("at-clear");
    append(&cx, &s, many("e", 2)).await;
    assert_eq!(clear(&cx, &s).await, 3);
    schedule(&cx, &s, due_in("k", 0, "a").origin_index(at(3))).await;
    schedule(&cx, &s, due_in("l", 0, "b").origin_index(at(4))).await;
    assert_eq!(fire(&cx, &s).await.events.len(), 2);
}

async fn unschedule_whether(cx: Cx) {
    let s = cx.session("unschedule");
    let key = TimerKey::new("k").unwrap();
    assert!(!cx.timers().unschedule(&s, &key).await.unwrap().removed);
    schedule(&cx, &s, due_in("k", 0, "a")).await;
    schedule(&cx, &s, due_in("l", 0, "b")).await;
    assert!(cx.timers().unschedule(&s, &key).await.unwrap().removed);
    assert!(!cx.timers().unschedule(&s, &key).await.unwrap().removed);
    assert_eq!(ids(&fire(&cx, &s).await.events), ["b"]);
    assert!(!cx.timers().unschedule(&s, &TimerKey::new("l").unwrap()).await.unwrap().removed);
}

async fn list_fields(cx: Cx) {
    let s = cx.session("fields");
    append(&cx, &s, [ev("e")]).await;
    let event = event("reminder", r#"{"n":1.0}"#)
        .id("r")
        .unwrap()
        .targets([to_lane("c", "l"), to_event("d")]);
    let timer = Schedule::new("k", ms(250), event.clone()).unwrap().origin_index(at(1));
    schedule(&cx, &s, timer).await;
    let [timer] = &list(&cx, &s).await[..] else { panic!("one timer") };
    assert_eq!(timer.key, "k");
    assert_eq!(timer.due_at.as_millis(), 1_700_000_000_250);
    assert_eq!(timer.event, event);
    assert_eq!(timer.origin_index, Some(at(1)));
}

async fn list_by_key(cx: Cx) {
    let s = cx.session("keys");
    for (i, key) in ["b", "a", "10", "9", "B", "ä"].into_iter().enumerate() {
        schedule(&cx, &s, due_in(key, i as u64, key)).await;
    }
    assert_eq!(keys(&cx, &s).await, ["10", "9", "B", "a", "b", "ä"]);
    // Those that are due are listed until they fire.
    cx.pass(ms(2)).await;
    assert_eq!(keys(&cx, &s).await.len(), 6);
    let fired = fire(&cx, &s).await;
    assert_eq!(ids(&fired.events), ["b", "a", "10"]);
    assert_eq!(keys(&cx, &s).await, ["9", "B", "ä"]);
}

async fn fire_not_before_due(cx: Cx) {
    let s = cx.session("early");
    schedule(&cx, &s, due_in("k", 1_000, "a")).await;
    cx.pass(ms(999)).await;
    let fired = fire(&cx, &s).await;
    assert_eq!(fired.events, []);
    assert_eq!(cx.store().head(&s).await.unwrap(), 0);
    assert_eq!(keys(&cx, &s).await, ["k"]);
}

async fn fire_exactly_when_due(cx: Cx) {
    let s = cx.session("exact");
    schedule(&cx, &s, due_in("k", 1_000, "a")).await;
    cx.pass(ms(1_000)).await;
    assert_eq!(ids(&fire(&cx, &s).await.events), ["a"]);
}

async fn fire_when_due(cx: Cx) {
    let s = cx.session("due");
    schedule(&cx, &s, due_in("far", 3_600_000, "far")).await;
    schedule(&cx, &s, due_in("near", 50, "near")).await;
    cx.pass(ms(50)).await;
    assert_eq!(ids(&fire(&cx, &s).await.events), ["near"]);
    assert_eq!(keys(&cx, &s).await, ["far"]);
}

async fn fire_the_event(cx: Cx) {
    let s = cx.session("event");
    append(&cx, &s, [ev("e")]).await;
    let event = event("reminder", r#"{"n":1.0}"#).id("r").unwrap();
    schedule(&cx, &s, Schedule::new("k", ms(100), event).unwrap()).await;
    cx.pass(ms(700)).await;
    let fired = fire(&cx, &s).await;
    let [stored] = &fired.events[..] else { panic!("one event: {fired:?}") };
    assert_eq!(stored.id, "r");
    assert_eq!(stored.event_type, "reminder");
    assert_eq!(stored.payload.as_str(), r#"{"n":1.0}"#);
    assert_eq!(stored.index, 2);
    assert_eq!(stored.created_at.as_millis(), 1_700_000_000_700, "when it was appended");
    assert_eq!(stored.cause, None);
    assert_eq!(log(&cx, &s).await[1..], fired.events);
}

async fn fire_once(cx: Cx) {
    let s = cx.session("once");
    schedule(&cx, &s, due_in("k", 0, "a")).await;
    assert_eq!(fire(&cx, &s).await.events.len(), 1);
    assert_eq!(fire(&cx, &s).await.events, []);
    cx.pass(ms(20)).await;
    assert_eq!(fire(&cx, &s).await.events, []);
    assert_eq!(ids(&log(&cx, &s).await), ["a"]);
    assert_eq!(list(&cx, &s).await, []);
}

async fn fire_in_order_of_due_time(cx: Cx) {
    let s = cx.session("order");
    for (key, after) in [("a", 300), ("b", 100), ("c", 200), ("d", 60_000)] {
        schedule(&cx, &s, due_in(key, after, key)).await;
    }
    cx.pass(ms(500)).await;
    let fired = fire(&cx, &s).await;
    assert_eq!(ids(&fired.events), ["b", "c", "a"]);
    assert_eq!(indexes(&fired.events), [1, 2, 3]);
    assert_eq!(ids(&log(&cx, &s).await), ["b", "c", "a"]);
}

async fn fire_limit(cx: Cx) {
    let s = cx.session("limit");
    for (key, after) in [("a", 30), ("b", 10), ("c", 20)] {
        schedule(&cx, &s, due_in(key, after, key)).await;
    }
    cx.pass(ms(100)).await;
    let two = FireTimers::new().limit(2).unwrap();
    let fired = cx.timers().fire_timers(&s, two).await.unwrap();
    assert_eq!(ids(&fired.events), ["b", "c"]);
    assert_eq!(ids(&fire(&cx, &s).await.events), ["a"]);
    assert_code(FireTimers::new().limit(0), "INVALID_INPUT");
    assert_code(FireTimers::new().limit(1_001), "INVALID_INPUT");
}

async fn fire_default_limit(cx: Cx) {
    let s = cx.session("default");
    for i in 0..101 {
        schedule(&cx, &s, due_in(&format!("k{i:03}"), i, &format!("e{i}"))).await;
    }
    cx.pass(secs(1)).await;
    let fired = fire(&cx, &s).await.events;
    assert_eq!(fired.len(), 100);
    assert_eq!(fired[99].id, "e99");
    assert_eq!(ids(&fire(&cx, &s).await.events), ["e100"]);
}

async fn fire_owned_id_counts_as_fired(cx: Cx) {
    let s = cx.session("owned");
    append(&cx, &s, [event("t", "1").id("a").unwrap()]).await;
    let again = event("u", "2").id("a").unwrap().target(to_event("c"));
    schedule(&cx, &s, Schedule::new("k", ms(0), again).unwrap()).await;
    let _ = fire(&cx, &s).await;
    let stored = log(&cx, &s).await;
    assert_eq!(ids(&stored), ["a"]);
    assert_eq!(stored[0].payload.as_str(), "1");
    assert_eq!(list(&cx, &s).await, [], "it counts as fired");
    expect_settled(cx.store().claim_available(&s, claim()).await);
}

async fn fire_owned_among_others(cx: Cx) {
    let s = cx.session("among");
    append(&cx, &s, [ev("b")]).await;
    for (i, key) in ["a", "b", "c"].into_iter().enumerate() {
        schedule(&cx, &s, due_in(key, i as u64, key)).await;
    }
    cx.pass(ms(10)).await;
    let _ = fire(&cx, &s).await;
    assert_eq!(ids(&log(&cx, &s).await), ["b", "a", "c"]);
    assert_eq!(list(&cx, &s).await, []);
}

async fn fire_two_of_one_id(cx: Cx) {
    let s = cx.session("two");
    schedule(&cx, &s, due_in("k", 1, "same")).await;
    schedule(&cx, &s, due_in("l", 2, "same")).await;
    schedule(&cx, &s, due_in("m", 3, "other")).await;
    cx.pass(ms(10)).await;
    let _ = fire(&cx, &s).await;
    assert_eq!(ids(&log(&cx, &s).await), ["same", "other"]);
    assert_eq!(list(&cx, &s).await, []);
}

async fn fire_origin_cleared_later(cx: Cx) {
    let s = cx.session("dropped");
    append(&cx, &s, many("e", 2)).await;
    schedule(&cx, &s, due_in("k", 100, "a").origin_index(at(2))).await;
    clear(&cx, &s).await;
    cx.pass(ms(200)).await;
    assert_eq!(fire(&cx, &s).await.events, []);
    assert_eq!(indexes(&log(&cx, &s).await), [3], "the marker alone");
    let key = TimerKey::new("k").unwrap();
    assert!(!cx.timers().unschedule(&s, &key).await.unwrap().removed, "it is gone");
}

async fn fire_without_origin_outlives_clear(cx: Cx) {
    let s = cx.session("outlives");
    append(&cx, &s, many("e", 2)).await;
    // Its id is free again in the new lifetime.
    schedule(&cx, &s, due_in("k", 100, "e1")).await;
    clear(&cx, &s).await;
    cx.pass(ms(100)).await;
    let fired = fire(&cx, &s).await;
    assert_eq!((ids(&fired.events), indexes(&fired.events)), (vec!["e1"], vec![4]));
}

async fn fire_queues_and_logs(cx: Cx) {
    let s = cx.session("queues");
    let event = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    schedule(&cx, &s, Schedule::new("k", ms(0), event).unwrap()).await;
    let request = FireTimers::new().served(serve_log("c", LogDeclaration::new("log").unwrap()));
    let fired = cx.timers().fire_timers(&s, request).await.unwrap();
    assert!(fired.has_pending);
    let heads = claim_all(&cx, &s).await;
    let expected = [event_head("c", 1), lane_head("c", "l", 1), log_head("c", "log", 1)];
    assert_eq!(refs(&heads), expected);
}

async fn fire_has_pending(cx: Cx) {
    let s = cx.session("pending");
    assert!(!fire(&cx, &s).await.has_pending);
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    assert!(fire(&cx, &s).await.has_pending, "answered also when nothing fires");
    let other = FireTimers::new().served(serve(["d"]));
    assert!(!cx.timers().fire_timers(&s, other).await.unwrap().has_pending);
}

async fn fire_wakes_streams(cx: Cx) {
    let s = cx.session("streams");
    let mut stream = cx.store().stream(&s, Index::ZERO);
    append(&cx, &s, [ev("a")]).await;
    assert_eq!(next(&cx, &mut stream).await.id, "a");
    schedule(&cx, &s, due_in("k", 0, "b")).await;
    assert_eq!(fire(&cx, &s).await.events.len(), 1);
    assert_eq!(next(&cx, &mut stream).await.id, "b");
}

async fn fire_concurrent(cx: Cx) {
    let s = cx.session("concurrent");
    for i in 0..40 {
        schedule(&cx, &s, due_in(&format!("k{i}"), 0, &format!("e{i}"))).await;
    }
    let tasks = (0..8).map(|_| {
        let (cx, s) = (cx.clone(), s.clone());
        tokio::spawn(async move {
            let mut fired = 0;
            for _ in 0..20 {
                let some = FireTimers::new().limit(3).unwrap();
                fired += cx.timers().fire_timers(&s, some).await.unwrap().events.len();
            }
            fired
        })
    });
    let fired: usize = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(fired, 40, "each by one call");
    assert_eq!(indexes(&log(&cx, &s).await), (1..=40).collect::<Vec<u64>>());
    assert_eq!(list(&cx, &s).await, []);
}

async fn fire_another_handle(cx: Cx) {
    let s = cx.session("handles");
    let other = cx.another().await;
    schedule(&cx, &s, due_in("k", 100, "a")).await;
    assert_eq!(keys(&other, &s).await, ["k"]);
    cx.pass(ms(100)).await;
    assert_eq!(ids(&fire(&other, &s).await.events), ["a"]);
    assert_eq!(fire(&cx, &s).await.events, []);
    assert_eq!(ids(&log(&cx, &s).await), ["a"]);
}

async fn per_session(cx: Cx) {
    let (a, b) = (cx.session("a"), cx.session("b"));
    schedule(&cx, &a, due_in("k", 0, "x")).await;
    schedule(&cx, &b, due_in("k", 0, "y")).await;
    assert_eq!(ids(&fire(&cx, &a).await.events), ["x"]);
    assert_eq!(keys(&cx, &b).await, ["k"]);
    assert_eq!(ids(&fire(&cx, &b).await.events), ["y"]);
}

async fn many_timers(cx: Cx) {
    let s = cx.session("many");
    for i in (0..300).rev() {
        schedule(&cx, &s, due_in(&format!("k{i:03}"), i, &format!("e{i}"))).await;
    }
    cx.pass(secs(1)).await;
    let most = FireTimers::new().limit(1_000).unwrap();
    let fired = cx.timers().fire_timers(&s, most).await.unwrap().events;
    let expected: Vec<_> = (0..300).map(|i| format!("e{i}")).collect();
    assert_eq!(ids(&fired), expected);
}
