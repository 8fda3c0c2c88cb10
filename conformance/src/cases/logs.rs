//! Log cursors: when they begin, what touches them, which event is next.

use a2_core::{
    Append, EventType, LogDeclaration, LogTypes, Redrive, RedriveAction, SessionId,
};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "logs.missing.no_backfill" => missing_no_backfill: rules(R28);
    "logs.missing.no_backfill_typed" => missing_no_backfill_typed: rules(R28);
    "logs.missing.backfill" => missing_backfill: rules(R28);
    "logs.missing.backfill_typed" => missing_backfill_typed: rules(R18, R28);
    "logs.missing.backfill_after_a_clear" => missing_backfill_after_a_clear: rules(R28);
    "logs.missing.first_batch" => missing_first_batch: rules(R28);
    "logs.touch.append_that_declares" => touch_append_that_declares: rules(R27);
    "logs.touch.not_without_an_event_it_takes" => touch_not_without_an_event_it_takes: rules(R27);
    "logs.touch.not_by_an_empty_batch" => touch_not_by_an_empty_batch: rules(R27);
    "logs.touch.not_by_a_replay" => touch_not_by_a_replay: rules(R27);
    "logs.touch.not_by_a_refusal" => touch_not_by_a_refusal: rules(R27, R37);
    "logs.touch.not_by_another_name" => touch_not_by_another_name: rules(R27);
    "logs.touch.not_by_claim_fail_release" => touch_not_by_claim_fail_release: rules(R27, R49);
    "logs.idle.missed_events_count" => idle_missed_events_count: rules(R29);
    "logs.idle.types_grown" => idle_types_grown: rules(R29, F20);
    "logs.idle.types_shrunk" => idle_types_shrunk: rules(R29);
    "logs.idle.backfill_is_ignored" => idle_backfill_is_ignored: rules(R29);
    "logs.head.kept" => head_kept: rules(R30);
    "logs.head.kept_when_its_type_is_not_taken" => head_kept_when_its_type_is_not_taken: rules(R30);
    "logs.head.types_grown_count_from_it" => head_types_grown_count_from_it: rules(R30, F20);
    "logs.head.types_recorded_while_leased" => head_types_recorded_while_leased: rules(R27, R30);
    "logs.head.lease_survives_a_touch" => head_lease_survives_a_touch: rules(R30);
    "logs.types.case_and_bytes" => types_case_and_bytes: rules(R8, R18);
    "logs.types.hundred" => types_hundred: rules(R10, R18);
    "logs.types.bounds" => types_bounds: rules(R10, R14, R18);
    "logs.types.marker_is_taken_by_none" => types_marker_is_taken_by_none: rules(R18);
    "logs.unserved.appends_between" => unserved_appends_between: rules(R27, R31);
    "logs.unserved.filter_matches_nothing_f18" => unserved_filter_matches_nothing_f18:
        rules(R29, F18);
    "logs.two.consumers_f20" => two_consumers_f20: rules(R15, R29, R30, F20);
    "logs.two.of_one_consumer" => two_of_one_consumer: rules(R15);
    "logs.cleared.goes_on_from_the_marker" => cleared_goes_on_from_the_marker: rules(R70);
    "logs.cleared.idle_and_undeclared" => cleared_idle_and_undeclared: rules(R29, R70);
    "logs.cleared.typed" => cleared_typed: rules(R31, R70);
];

/// An append that declares one log of `c`.
async fn declare(cx: &Cx, s: &SessionId, log: LogDeclaration, events: &[(&str, &str)]) {
    let events = events.iter().map(|(id, event_type)| typed(id, event_type));
    append_served(cx, s, &serve_log("c", log), events).await;
}

/// An append that declares nothing.
async fn plain(cx: &Cx, s: &SessionId, events: &[(&str, &str)]) {
    append(cx, s, events.iter().map(|(id, event_type)| typed(id, event_type))).await;
}

fn xs() -> LogDeclaration {
    only_types("l", ["x"])
}

/// Completes the only head there is, declaring nothing.
async fn step(cx: &Cx, s: &SessionId) {
    let head = claim_the_one(cx, s).await;
    finish(cx, s, &head).await;
}

async fn missing_no_backfill(cx: Cx) {
    let s = cx.session("missing");
    plain(&cx, &s, &[("1", "x"), ("2", "x")]).await;
    declare(&cx, &s, all_types("l"), &[("3", "x"), ("4", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 2>3"]);
    assert_eq!(drain(&cx, &s, claim()).await, [log_head("c", "l", 3), log_head("c", "l", 4)]);
}

async fn missing_no_backfill_typed(cx: Cx) {
    let s = cx.session("typed");
    plain(&cx, &s, &[("1", "x")]).await;
    declare(&cx, &s, xs(), &[("2", "y"), ("3", "y"), ("4", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>4"]);
}

async fn missing_backfill(cx: Cx) {
    let s = cx.session("backfill");
    plain(&cx, &s, &[("1", "x"), ("2", "y")]).await;
    declare(&cx, &s, all_types("l").backfill(), &[("3", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>1"]);
    assert_eq!(drain(&cx, &s, claim()).await, [1, 2, 3].map(|i| log_head("c", "l", i)));
}

async fn missing_backfill_typed(cx: Cx) {
    let s = cx.session("typed");
    plain(&cx, &s, &[("1", "y"), ("2", "x"), ("3", "y")]).await;
    declare(&cx, &s, xs().backfill(), &[("4", "y"), ("5", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>2"]);
    assert_eq!(drain(&cx, &s, claim()).await, [2, 5].map(|i| log_head("c", "l", i)));
}

async fn missing_backfill_after_a_clear(cx: Cx) {
    let s = cx.session("cleared");
    plain(&cx, &s, &[("1", "x"), ("2", "x")]).await;
    clear(&cx, &s).await;
    plain(&cx, &s, &[("1", "x")]).await;
    declare(&cx, &s, all_types("l").backfill(), &[("2", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 3>4"], "neither the marker nor what is below it");
}

async fn missing_first_batch(cx: Cx) {
    let s = cx.session("first");
    declare(&cx, &s, all_types("l"), &[("1", "x"), ("2", "y")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>1"]);
    let head = claim_the_one(&cx, &s).await;
    assert_eq!((head.head.clone(), head.event.id.as_str()), (log_head("c", "l", 1), "1"));
}

async fn touch_append_that_declares(cx: Cx) {
    let s = cx.session("declares");
    declare(&cx, &s, xs(), &[("1", "x")]).await;
    step(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>-"]);
    plain(&cx, &s, &[("2", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>-"], "what nobody declares waits");
    nothing(&cx, &s).await;
    declare(&cx, &s, xs(), &[("3", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>2"]);
}

async fn touch_not_without_an_event_it_takes(cx: Cx) {
    let s = cx.session("takes");
    declare(&cx, &s, xs().backfill(), &[("1", "y")]).await;
    assert_eq!(shown(&cx, &s).await, [""; 0], "no cursor yet");
    declare(&cx, &s, xs(), &[("2", "x")]).await;
    step(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 2>-"]);
    // Neither moves it to 3, nor records the types.
    plain(&cx, &s, &[("3", "z")]).await;
    declare(&cx, &s, only_types("l", ["z"]), &[("4", "y")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 2>-"]);
    declare(&cx, &s, xs(), &[("5", "x"), ("6", "z"), ("7", "x")]).await;
    declare(&cx, &s, only_types("l", ["z"]), &[("8", "x")]).await;
    step(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 5>7"], "x is what is recorded");
}

async fn touch_not_by_an_empty_batch(cx: Cx) {
    let s = cx.session("empty");
    plain(&cx, &s, &[("1", "x")]).await;
    declare(&cx, &s, all_types("l").backfill(), &[]).await;
    assert_eq!(shown(&cx, &s).await, [""; 0]);
}

async fn touch_not_by_a_replay(cx: Cx) {
    let s = cx.session("replay");
    plain(&cx, &s, &[("1", "x")]).await;
    let again = Append::one(typed("1", "x")).unwrap();
    let served = serve_log("c", all_types("l").backfill());
    assert!(cx.store().append(&s, again.served(served)).await.unwrap().replayed);
    assert_eq!(shown(&cx, &s).await, [""; 0]);
}

async fn touch_not_by_a_refusal(cx: Cx) {
    let s = cx.session("refusal");
    plain(&cx, &s, &[("1", "x")]).await;
    let served = serve_log("c", all_types("l").backfill());
    let conflict = Append::one(typed("2", "x")).unwrap().expected_head(at(7)).served(served);
    assert_code(cx.store().append(&s, conflict).await, "HEAD_CONFLICT");
    assert_eq!(shown(&cx, &s).await, [""; 0]);
}

async fn touch_not_by_another_name(cx: Cx) {
    let s = cx.session("name");
    declare(&cx, &s, all_types("l"), &[("1", "x")]).await;
    step(&cx, &s).await;
    declare(&cx, &s, all_types("L"), &[("2", "x")]).await;
    let other = serve_log("d", all_types("l"));
    append_served(&cx, &s, &other, [typed("3", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log L 1>2", "c log l 1>-", "d log l 2>3"]);
}

async fn touch_not_by_claim_fail_release(cx: Cx) {
    let s = cx.session("claims");
    declare(&cx, &s, xs(), &[("1", "x")]).await;
    step(&cx, &s).await;
    append(&cx, &s, [typed("2", "x").target(to_event("c"))]).await;
    let served = serve_log("c", only_types("l", ["x", "y"]).backfill());
    let head = take_one(&cx, &s, claim().served(served.clone())).await;
    assert_eq!(head.head, event_head("c", 2));
    let _ = failed(&cx, &s, fail(&head).then_claim(claim().served(served.clone()))).await;
    let redrive = Redrive::new(head.head.clone(), RedriveAction::Retry);
    let _ = cx.store().redrive(&s, redrive.served(served)).await.unwrap();
    assert_eq!(shown(&cx, &s).await, ["c log l 1>-", "c event 1>2"]);
}

async fn idle_missed_events_count(cx: Cx) {
    let s = cx.session("missed");
    declare(&cx, &s, xs(), &[("1", "x"), ("2", "y")]).await;
    step(&cx, &s).await;
    plain(&cx, &s, &[("3", "y"), ("4", "x"), ("5", "x")]).await;
    declare(&cx, &s, xs(), &[("6", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>4"], "not only the new batch's");
    assert_eq!(drain(&cx, &s, claim()).await, [4, 5, 6].map(|i| log_head("c", "l", i)));
}

async fn idle_types_grown(cx: Cx) {
    let s = cx.session("grown");
    declare(&cx, &s, xs(), &[("1", "x"), ("2", "y"), ("3", "z"), ("4", "y")]).await;
    step(&cx, &s).await;
    declare(&cx, &s, only_types("l", ["x", "y"]), &[("5", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>2"], "from the position when idle");
    assert_eq!(drain(&cx, &s, claim()).await, [2, 4, 5].map(|i| log_head("c", "l", i)));
}

async fn idle_types_shrunk(cx: Cx) {
    let s = cx.session("shrunk");
    declare(&cx, &s, all_types("l"), &[("1", "x")]).await;
    step(&cx, &s).await;
    plain(&cx, &s, &[("2", "y"), ("3", "z")]).await;
    declare(&cx, &s, only_types("l", ["z"]), &[("4", "y"), ("5", "z")]).await;
    assert_eq!(drain(&cx, &s, claim()).await, [3, 5].map(|i| log_head("c", "l", i)));
    assert_eq!(shown(&cx, &s).await, ["c log l 5>-"]);
}

async fn idle_backfill_is_ignored(cx: Cx) {
    let s = cx.session("ignored");
    plain(&cx, &s, &[("1", "x"), ("2", "x")]).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 2>-");
    declare(&cx, &s, all_types("l").backfill(), &[("3", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 2>3"]);
}

async fn head_kept(cx: Cx) {
    let s = cx.session("kept");
    declare(&cx, &s, all_types("l"), &[("1", "x")]).await;
    declare(&cx, &s, all_types("l").backfill(), &[("2", "x"), ("3", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>1"]);
    assert_eq!(drain(&cx, &s, claim()).await, [1, 2, 3].map(|i| log_head("c", "l", i)));
}

async fn head_kept_when_its_type_is_not_taken(cx: Cx) {
    let s = cx.session("type");
    declare(&cx, &s, all_types("l"), &[("1", "x"), ("2", "x"), ("3", "y")]).await;
    declare(&cx, &s, only_types("l", ["y"]), &[("4", "y")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>1"]);
    assert_eq!(drain(&cx, &s, claim()).await, [1, 3, 4].map(|i| log_head("c", "l", i)));
}

async fn head_types_grown_count_from_it(cx: Cx) {
    let s = cx.session("grown");
    let types = [("1", "y"), ("2", "y"), ("3", "x"), ("4", "y"), ("5", "x")];
    declare(&cx, &s, xs(), &types).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>3"]);
    declare(&cx, &s, only_types("l", ["x", "y"]), &[("6", "y")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>3"], "y counts from that head on");
    assert_eq!(drain(&cx, &s, claim()).await, [3, 4, 5, 6].map(|i| log_head("c", "l", i)));
}

async fn head_types_recorded_while_leased(cx: Cx) {
    let s = cx.session("leased");
    declare(&cx, &s, xs(), &[("1", "x"), ("2", "y"), ("3", "x")]).await;
    let head = claim_the_one(&cx, &s).await;
    declare(&cx, &s, only_types("l", ["y"]), &[("4", "y")]).await;
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>2"]);
}

async fn head_lease_survives_a_touch(cx: Cx) {
    let s = cx.session("lease");
    declare(&cx, &s, xs(), &[("1", "x")]).await;
    let head = claim_the_one(&cx, &s).await;
    declare(&cx, &s, all_types("l"), &[("2", "x")]).await;
    wake(&cx, &s, "c", xs()).await;
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
    finish(&cx, &s, &head).await;
}

async fn types_case_and_bytes(cx: Cx) {
    let s = cx.session("bytes");
    let odd = ["x", "X", " x", "x ", "x.*", "é", "e\u{301}"];
    let events = odd.iter().enumerate().map(|(i, t)| typed(&format!("{i}"), t));
    append_served(&cx, &s, &serve_log("c", only_types("l", ["x.*", "é"])), events).await;
    assert_eq!(drain(&cx, &s, claim()).await, [5, 6].map(|i| log_head("c", "l", i)));
}

async fn types_hundred(cx: Cx) {
    let s = cx.session("hundred");
    let names = (0..100).map(|i| EventType::new(format!("type-{i}")).unwrap());
    let hundred = LogDeclaration::new("l").unwrap().types(LogTypes::only(names).unwrap());
    let events = ["type-100", "type-99", "type-1", "type", "type-0"];
    let events = events.iter().enumerate().map(|(i, t)| typed(&format!("{i}"), t));
    append_served(&cx, &s, &serve_log("c", hundred), events).await;
    assert_eq!(drain(&cx, &s, claim()).await, [2, 3, 5].map(|i| log_head("c", "l", i)));
}

async fn types_bounds(_: Cx) {
    let names = |n: u32| (0..n).map(|i| EventType::new(format!("{i}")).unwrap());
    assert_code(LogTypes::only(names(0)), "INVALID_INPUT");
    assert_code(LogTypes::only(names(101)), "INVALID_INPUT");
    let twice = LogTypes::only(names(100).chain(names(100))).unwrap();
    assert_eq!(twice.as_only().unwrap().len(), 100);
}

async fn types_marker_is_taken_by_none(cx: Cx) {
    let s = cx.session("marker");
    declare(&cx, &s, all_types("all"), &[("1", "x")]).await;
    clear(&cx, &s).await;
    assert_eq!(wake(&cx, &s, "c", all_types("all")).await, "c log all 2>-");
    assert_eq!(wake(&cx, &s, "d", all_types("all").backfill()).await, "d log all 2>-");
    let markers = only_types("markers", ["a2.clear"]).backfill();
    assert_eq!(wake(&cx, &s, "e", markers).await, "e log markers 2>-");
    nothing(&cx, &s).await;
}

async fn unserved_appends_between(cx: Cx) {
    let s = cx.session("between");
    declare(&cx, &s, xs(), &[("1", "x")]).await;
    plain(&cx, &s, &[("2", "x")]).await;
    declare(&cx, &s, xs(), &[("3", "x")]).await;
    plain(&cx, &s, &[("4", "y"), ("5", "x")]).await;
    assert_eq!(
        drain(&cx, &s, claim()).await,
        [1, 2, 3, 5].map(|i| log_head("c", "l", i)),
        "a completion looks at all that is stored"
    );
}

async fn unserved_filter_matches_nothing_f18(cx: Cx) {
    let s = cx.session("f18");
    let rare = || only_types("l", ["rare"]);
    assert_eq!(wake(&cx, &s, "c", rare()).await, "c log l 0>-");
    let served = serve_log("c", rare());
    for round in 0..4 {
        let common = (0..500).map(|i| typed(&format!("{round}-{i}"), "common"));
        append_served(&cx, &s, &served, common).await;
        for _ in 0..10 {
            let claim = claim().served(served.clone());
            expect_settled(cx.store().claim_available(&s, claim).await);
        }
        wake(&cx, &s, "c", rare()).await;
    }
    declare(&cx, &s, rare(), &[("rare", "rare")]).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!((head.head.clone(), head.event.id.as_str()), (log_head("c", "l", 2_001), "rare"));
}

async fn two_consumers_f20(cx: Cx) {
    let s = cx.session("f20");
    let served = serve_logs([("x", xs()), ("y", xs())]);
    append_served(&cx, &s, &served, [typed("1", "x"), typed("2", "x")]).await;
    let x = claim().served(serve(["x"]));
    assert_eq!(drain(&cx, &s, x).await, [log_head("x", "l", 1), log_head("x", "l", 2)]);
    assert_eq!(shown(&cx, &s).await, ["x log l 2>-", "y log l 0>1"]);
    assert_eq!(wake(&cx, &s, "x", xs()).await, "x log l 2>-", "touched again: the same position");
    plain(&cx, &s, &[("3", "z"), ("4", "x")]).await;
    assert_eq!(wake(&cx, &s, "x", only_types("l", ["z"])).await, "x log l 2>3");
    assert_eq!(wake(&cx, &s, "y", only_types("l", ["z"])).await, "y log l 0>1");
    let y = claim().served(serve(["y"]));
    assert_eq!(drain(&cx, &s, y).await, [log_head("y", "l", 1), log_head("y", "l", 3)]);
}

async fn two_of_one_consumer(cx: Cx) {
    let s = cx.session("one");
    declare(&cx, &s, all_types("a"), &[("1", "x")]).await;
    declare(&cx, &s, only_types("b", ["y"]), &[("2", "x"), ("3", "y")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log a 0>1", "c log b 1>3"]);
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [log_head("c", "a", 1), log_head("c", "b", 3)]);
    finish(&cx, &s, &heads[0]).await;
    assert_eq!(shown(&cx, &s).await, ["c log a 1>2", "c log b 1>3"]);
}

async fn cleared_goes_on_from_the_marker(cx: Cx) {
    let s = cx.session("marker");
    declare(&cx, &s, all_types("l"), &[("1", "x"), ("2", "x")]).await;
    let head = claim_the_one(&cx, &s).await;
    clear(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 3>-"]);
    nothing(&cx, &s).await;
    superseded(&cx, &s, complete(&head)).await;
    declare(&cx, &s, all_types("l"), &[("1", "x")]).await;
    let fresh = claim_the_one(&cx, &s).await;
    assert_eq!((fresh.head.clone(), fresh.attempt()), (log_head("c", "l", 4), 1));
    assert_eq!(fresh.state.failure_count, 0);
}

async fn cleared_idle_and_undeclared(cx: Cx) {
    let s = cx.session("undeclared");
    declare(&cx, &s, xs(), &[("1", "x")]).await;
    step(&cx, &s).await;
    plain(&cx, &s, &[("2", "x")]).await;
    clear(&cx, &s).await;
    plain(&cx, &s, &[("4", "x")]).await;
    declare(&cx, &s, xs(), &[("5", "x")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 3>4"], "from the marker, missed ones too");
}

async fn cleared_typed(cx: Cx) {
    let s = cx.session("types");
    declare(&cx, &s, xs(), &[("1", "x")]).await;
    clear(&cx, &s).await;
    declare(&cx, &s, xs(), &[("3", "x"), ("4", "y"), ("5", "x")]).await;
    step(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 3>5"]);
}
