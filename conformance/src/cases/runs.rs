//! Claiming log heads in runs of many events.

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: rules(R48), both;
    "claims.run.untyped" => untyped;
    "claims.run.one_by_default" => one_by_default;
    "claims.run.typed" => typed_run;
    "claims.run.ends_with_the_log" => ends_with_the_log;
    "claims.run.capped_by_through" => capped_by_through: rules(R44);
    "claims.run.undeclared_appends" => undeclared_appends;
    "claims.run.logs_alone" => logs_alone;
    "claims.run.is_one_head" => is_one_head: rules(R45);
    "claims.run.not_before_the_head" => not_before_the_head;
    "claims.run.completed_through_its_end" => completed_through_its_end: rules(R55);
    "claims.run.bytes_past_16_mib" => bytes_past_16_mib: rules(R11), slow;
    "claims.run.none_past_16_mib" => none_past_16_mib: rules(R11), slow;
    "claims.run.bounds" => bounds: rules(R10, R14);
];

async fn untyped(cx: Cx) {
    let s = cx.session("untyped");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 5)).await;
    let head = take_one(&cx, &s, claim().run(3).unwrap()).await;
    assert_eq!(head.head, log_head("c", "l", 1));
    assert_eq!(head.event.id, "e1");
    assert_eq!(ids(&head.run), ["e2", "e3"]);
    assert_eq!(head.run_through(), at(3));
}

async fn one_by_default(cx: Cx) {
    let s = cx.session("default");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 5)).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!(head.run, []);
    assert_eq!(head.run_through(), at(1));
}

async fn typed_run(cx: Cx) {
    let s = cx.session("typed");
    let served = serve_log("c", only_types("l", ["x", "z"]));
    let types = ["y", "x", "y", "y", "z", "x", "y", "x"];
    let events = types.into_iter().enumerate().map(|(i, t)| typed(&format!("{}", i + 1), t));
    append_served(&cx, &s, &served, events).await;
    let head = take_one(&cx, &s, claim().run(3).unwrap()).await;
    assert_eq!(head.head, log_head("c", "l", 2));
    assert_eq!(indexes(&head.run), [5, 6]);
    assert_eq!(release(&cx, &s, [head.attempt_ref()]).await.len(), 1);
    let head = take_one(&cx, &s, claim().run(1_000).unwrap()).await;
    assert_eq!(indexes(&head.run), [5, 6, 8]);
    assert_eq!(head.run_through(), at(8));
}

async fn ends_with_the_log(cx: Cx) {
    let s = cx.session("end");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 3)).await;
    let head = take_one(&cx, &s, claim().run(100).unwrap()).await;
    assert_eq!(indexes(&head.run), [2, 3]);
}

async fn capped_by_through(cx: Cx) {
    let s = cx.session("capped");
    let served =
        serve_logs([("c", all_types("all")), ("d", only_types("some", ["t"]))]);
    append_served(&cx, &s, &served, many("e", 5)).await;
    let heads = take(&cx, &s, claim().run(10).unwrap().through(at(3))).await;
    assert_eq!(refs(&heads), [log_head("c", "all", 1), log_head("d", "some", 1)]);
    assert_eq!(indexes(&heads[0].run), [2, 3]);
    assert_eq!(indexes(&heads[1].run), [2, 3]);
}

async fn undeclared_appends(cx: Cx) {
    let s = cx.session("undeclared");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("a")]).await;
    append(&cx, &s, [ev("b"), ev_for("c", "d")]).await;
    let only = claim().run(10).unwrap().served(serve(["c"]));
    assert_eq!(ids(&take_one(&cx, &s, only).await.run), ["b", "c"]);
}

async fn logs_alone(cx: Cx) {
    let s = cx.session("alone");
    let targets = || [to_event("c"), to_lane("c", "l")];
    append(&cx, &s, [ev("a").targets(targets()), ev("b").targets(targets())]).await;
    let heads = take(&cx, &s, claim().run(10).unwrap()).await;
    assert_eq!(refs(&heads), [event_head("c", 1), lane_head("c", "l", 1), event_head("c", 2)]);
    assert!(heads.iter().all(|head| head.run.is_empty()));
}

async fn is_one_head(cx: Cx) {
    let s = cx.session("one");
    let served = serve_logs([("c", all_types("l")), ("d", all_types("l"))]);
    append_served(&cx, &s, &served, many("e", 4)).await;
    let heads = take(&cx, &s, claim().run(3).unwrap().limit(2).unwrap()).await;
    assert_eq!(refs(&heads), [log_head("c", "l", 1), log_head("d", "l", 1)]);
    assert_eq!(indexes(&heads[0].run), [2, 3]);
    assert_eq!(indexes(&heads[1].run), [2, 3]);
}

async fn not_before_the_head(cx: Cx) {
    let s = cx.session("before");
    append(&cx, &s, [ev("a")]).await;
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("b"), ev("c")]).await;
    let head = take_one(&cx, &s, claim().run(10).unwrap()).await;
    assert_eq!((head.head.index, indexes(&head.run)), (at(2), vec![3]));
}

async fn completed_through_its_end(cx: Cx) {
    let s = cx.session("through");
    let served = serve_log("c", only_types("l", ["x"]));
    let types = ["x", "y", "x", "y", "x"];
    let events = types.into_iter().enumerate().map(|(i, t)| typed(&format!("{}", i + 1), t));
    append_served(&cx, &s, &served, events).await;
    let head = take_one(&cx, &s, claim().run(2).unwrap()).await;
    assert_eq!(head.run_through(), at(3));
    settle(&cx, &s, complete(&head).through(head.run_through()).unwrap()).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 3>5"]);
}

async fn bytes_past_16_mib(cx: Cx) {
    let s = cx.session("bytes");
    let served = serve_logs([("c", all_types("all")), ("d", only_types("some", ["t"]))]);
    // 6 MiB each: the third is the one past 16 MiB.
    let payload = format!("\"{}\"", "x".repeat(6 * 1024 * 1024 - 2));
    let big = |id: u32| event("t", &payload).id(format!("{id}")).unwrap();
    append_served(&cx, &s, &served, (1..=4).map(big)).await;
    for consumer in ["c", "d"] {
        let head = take_one(&cx, &s, claim().run(10).unwrap().served(serve([consumer]))).await;
        assert_eq!((head.head.index, indexes(&head.run)), (at(1), vec![2, 3]));
    }
}

async fn none_past_16_mib(cx: Cx) {
    // 9 MiB each: with the log's head 16 MiB are passed already.
    let payload = format!("\"{}\"", "x".repeat(9 * 1024 * 1024 - 2));
    let big = |id: &str| event("t", &payload).id(id).unwrap();
    for log in [all_types("all"), only_types("some", ["t"])] {
        let s = cx.session("past");
        append(&cx, &s, [big("1").target(to_event("a"))]).await;
        append_served(&cx, &s, &serve_log("c", log), [big("2"), ev("3")]).await;
        let heads = take(&cx, &s, claim().run(10).unwrap()).await;
        assert_eq!(heads.len(), 2);
        assert_eq!(heads[0].head, event_head("a", 1));
        assert_eq!((heads[1].head.index, indexes(&heads[1].run)), (at(2), vec![]));
    }
}

async fn bounds(_: Cx) {
    assert_code(claim().run(0), "INVALID_INPUT");
    assert_code(claim().run(1_001), "INVALID_INPUT");
    assert_eq!(claim().run(1_000).unwrap().max_run(), 1_000);
}
