//! Events that a completion returns: what they are stored as, and whose heads they become.

use a2_core::{Append, Cause};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: rules(R52);
    "complete.returned.cause" => cause: rules(R3);
    "complete.returned.one_batch" => one_batch: rules(R36);
    "complete.returned.on_its_own_lane" => on_its_own_lane;
    "complete.returned.behind_what_waits" => behind_what_waits: rules(R15);
    "complete.returned.for_event_cursors" => for_event_cursors: rules(R15);
    "complete.returned.target_twice" => target_twice: rules(R17);
    "complete.returned.own_log_untyped" => own_log_untyped: rules(R31);
    "complete.returned.own_log_typed" => own_log_typed: rules(R31);
    "complete.returned.own_log_takes_none" => own_log_takes_none: rules(R31);
    "complete.returned.own_log_declared_types" => own_log_declared_types: rules(R27, R31);
    "complete.returned.own_log_recorded_types" => own_log_recorded_types: rules(R31);
    "complete.returned.own_log_after_through" => own_log_after_through: rules(R31, R55);
    "complete.returned.other_log_declared" => other_log_declared: rules(R27, R29);
    "complete.returned.other_log_missing" => other_log_missing: rules(R27, R28);
    "complete.returned.other_log_of_same_consumer" => other_log_of_same_consumer: rules(R27, R28);
    "complete.returned.other_log_not_declared" => other_log_not_declared: rules(R27);
    "complete.returned.other_log_takes_none" => other_log_takes_none: rules(R27);
    "complete.returned.none_touches_no_log" => none_touches_no_log: rules(R27);
    "complete.returned.owned_from_then_on" => owned_from_then_on: rules(R40);
];

async fn cause(cx: Cx) {
    let s = cx.session("cause");
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &serve_log("c", all_types("l")), [new]).await;
    let heads = claim_all(&cx, &s).await;
    let mut expected = vec![None];
    for (i, head) in heads.iter().enumerate() {
        finish_with(&cx, &s, head, [ev(&format!("k{i}"))]).await;
        expected.push(Some(Cause::new(head.head.clone(), 1)));
    }
    let causes: Vec<_> = log(&cx, &s).await.into_iter().map(|event| event.cause.clone()).collect();
    assert_eq!(causes, expected);
}

async fn one_batch(cx: Cx) {
    let s = cx.session("batch");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    append(&cx, &s, [ev("between")]).await;
    cx.pass(ms(70)).await;
    let new = event("order.paid", r#"{"n":1.0}"#).id("k1").unwrap();
    let stored = finish_with(&cx, &s, &head, [new, ev("k2"), ev("k3")]).await;
    assert_eq!(indexes(&stored), [3, 4, 5]);
    assert_eq!(ids(&stored), ["k1", "k2", "k3"]);
    assert!(stored.iter().all(|event| event.created_at == time(70)));
    assert_eq!(stored[0].event_type, "order.paid");
    assert_eq!(stored[0].payload.as_str(), r#"{"n":1.0}"#);
    assert_eq!(log(&cx, &s).await[2..], stored);
}

async fn on_its_own_lane(cx: Cx) {
    let s = cx.session("own");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    let returned = complete(&head).events([ev_on("k1", "l"), ev_on("k2", "l")]).unwrap();
    let appended = completed(&cx, &s, returned).await;
    assert!(appended.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>2"]);
    let expected = [lane_head("c", "l", 2), lane_head("c", "l", 3)];
    assert_eq!(drain(&cx, &s, claim()).await, expected);
}

async fn behind_what_waits(cx: Cx) {
    let s = cx.session("behind");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    append(&cx, &s, [ev_on("b", "l")]).await;
    finish_with(&cx, &s, &head, [ev_on("k", "l")]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>2"]);
    let expected = [lane_head("c", "l", 2), lane_head("c", "l", 3)];
    assert_eq!(drain(&cx, &s, claim()).await, expected);
}

async fn for_event_cursors(cx: Cx) {
    let s = cx.session("events");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    let returned = [ev_for("k1", "c"), ev("k2"), ev_for("k3", "d")];
    finish_with(&cx, &s, &head, returned).await;
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 2), event_head("d", 4)]);
}

async fn target_twice(cx: Cx) {
    let s = cx.session("twice");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    let twice = [to_lane("c", "l"), to_event("c"), to_lane("c", "l"), to_event("c")];
    finish_with(&cx, &s, &head, [ev("k").targets(twice)]).await;
    let expected = [event_head("c", 2), lane_head("c", "l", 2)];
    assert_eq!(drain(&cx, &s, claim()).await, expected);
}

async fn own_log_untyped(cx: Cx) {
    let s = cx.session("untyped");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("a")]).await;
    let head = claim_the_one(&cx, &s).await;
    let returned = complete(&head).events([ev("k1"), ev("k2")]).unwrap();
    let appended = completed(&cx, &s, returned).await;
    assert!(appended.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c log l 1>2"]);
    assert_eq!(drain(&cx, &s, claim()).await, [log_head("c", "l", 2), log_head("c", "l", 3)]);
}

async fn own_log_typed(cx: Cx) {
    let s = cx.session("typed");
    let served = serve_log("c", only_types("l", ["x"]));
    append_served(&cx, &s, &served, [typed("a", "x")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish_with(&cx, &s, &head, [typed("k1", "y"), typed("k2", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>3"]);
}

async fn own_log_takes_none(cx: Cx) {
    let s = cx.session("none");
    let served = serve_log("c", only_types("l", ["x"]));
    append_served(&cx, &s, &served, [typed("a", "x")]).await;
    let head = claim_the_one(&cx, &s).await;
    let returned = complete(&head).events([typed("k1", "y")]).unwrap();
    let appended = completed(&cx, &s, returned).await;
    assert!(!appended.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c log l 1>-"]);
}

async fn own_log_declared_types(cx: Cx) {
    let s = cx.session("declared");
    let served = serve_log("c", only_types("l", ["x"]));
    append_served(&cx, &s, &served, [typed("a", "x"), typed("b", "x")]).await;
    let head = claim_the_one(&cx, &s).await;
    let other = serve_log("c", only_types("l", ["y"]));
    let returned = [typed("k1", "x"), typed("k2", "y"), typed("k3", "y")];
    settle(&cx, &s, complete(&head).events(returned).unwrap().served(other)).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>4"], "b is not taken any more");
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 4>5"], "the declaration was recorded");
}

async fn own_log_recorded_types(cx: Cx) {
    let s = cx.session("recorded");
    let served = serve_log("c", only_types("l", ["x"]));
    append_served(&cx, &s, &served, [typed("a", "x"), typed("b", "y"), typed("c", "x")]).await;
    let head = claim_the_one(&cx, &s).await;
    // Another log of the same consumer says nothing about this one.
    let other = serve_log("c", all_types("m"));
    settle(&cx, &s, complete(&head).served(other)).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>3"]);
}

async fn own_log_after_through(cx: Cx) {
    let s = cx.session("through");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 3)).await;
    let head = claim_the_one(&cx, &s).await;
    let whole = complete(&head).through(at(3)).unwrap().events([ev("k")]).unwrap();
    settle(&cx, &s, whole).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 3>4"]);
}

async fn other_log_declared(cx: Cx) {
    let s = cx.session("declared");
    let served = serve_log("d", only_types("l", ["x"]));
    append_served(&cx, &s, &served, [typed("a", "x")]).await;
    let idle = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &idle).await;
    append(&cx, &s, [ev_on("b", "w")]).await;
    let head = claim_the_one(&cx, &s).await;
    let returned = [typed("k1", "y"), typed("k2", "x")];
    let complete = complete(&head).events(returned).unwrap().served(served);
    assert!(completed(&cx, &s, complete).await.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c lane w 2>-", "d log l 1>4"]);
}

async fn other_log_missing(cx: Cx) {
    let s = cx.session("missing");
    append(&cx, &s, [ev("a"), ev_on("b", "w"), ev_on("c", "w")]).await;
    let head = claim_the_one(&cx, &s).await;
    let served = serve_logs([("new", all_types("l")), ("old", all_types("l").backfill())]);
    let returned = complete(&head).events([ev("k1"), ev("k2")]).unwrap().served(served);
    settle(&cx, &s, returned).await;
    assert_eq!(shown(&cx, &s).await, ["c lane w 2>3", "new log l 3>4", "old log l 0>1"]);
}

async fn other_log_of_same_consumer(cx: Cx) {
    let s = cx.session("same");
    append_served(&cx, &s, &serve_log("c", all_types("one")), [ev("a")]).await;
    let head = claim_the_one(&cx, &s).await;
    let served = serve_log("c", all_types("two"));
    let returned = complete(&head).events([ev("k")]).unwrap().served(served);
    settle(&cx, &s, returned).await;
    assert_eq!(shown(&cx, &s).await, ["c log one 1>2", "c log two 1>2"]);
}

async fn other_log_not_declared(cx: Cx) {
    let s = cx.session("undeclared");
    let served = serve_log("d", all_types("l"));
    append_served(&cx, &s, &served, [ev("a")]).await;
    let idle = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &idle).await;
    append(&cx, &s, [ev_on("b", "w")]).await;
    let head = claim_the_one(&cx, &s).await;
    let returned = complete(&head).events([ev("k")]).unwrap();
    let appended = completed(&cx, &s, returned).await;
    assert!(!appended.has_pending);
    assert_eq!(shown(&cx, &s).await, ["c lane w 2>-", "d log l 1>-"]);
    assert_eq!(wake(&cx, &s, "d", all_types("l")).await, "d log l 1>2", "it waits");
}

async fn other_log_takes_none(cx: Cx) {
    let s = cx.session("none");
    append(&cx, &s, [typed("a", "x"), typed("b", "x").target(to_lane("c", "w"))]).await;
    let head = claim_the_one(&cx, &s).await;
    let served = serve_log("d", only_types("l", ["x"]).backfill());
    let returned = complete(&head).events([typed("k", "y")]).unwrap().served(served);
    settle(&cx, &s, returned).await;
    assert_eq!(shown(&cx, &s).await, ["c lane w 2>-"], "no event it takes: no touch");
}

async fn none_touches_no_log(cx: Cx) {
    let s = cx.session("touch");
    append(&cx, &s, [ev_on("a", "w")]).await;
    let head = claim_the_one(&cx, &s).await;
    let served = serve_log("d", all_types("l").backfill());
    settle(&cx, &s, complete(&head).served(served)).await;
    assert_eq!(shown(&cx, &s).await, ["c lane w 1>-"]);
}

async fn owned_from_then_on(cx: Cx) {
    let s = cx.session("owned");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish_with(&cx, &s, &head, [ev("k1"), ev("k2")]).await;
    let appended = cx.store().append(&s, batch([ev("k2"), ev("k1")])).await.unwrap();
    assert!(appended.replayed);
    assert_eq!(indexes(&appended.events), [3, 2]);
    let partly = Append::new([ev("k1"), ev("new")]).unwrap();
    assert_code(cx.store().append(&s, partly).await, "PARTIAL_DUPLICATE_BATCH");
}
