//! Waking a log: the same rules without an append.

use a2_core::{StoreExt, WakeLog};
use futures_util::TryStreamExt;

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: rules(R61);
    "wake_log.answer.all_of_it" => answer_all_of_it;
    "wake_log.answer.cleared" => answer_cleared: rules(R70);
    "wake_log.missing.at_the_logs_head" => missing_at_the_logs_head: rules(R28, F19);
    "wake_log.missing.empty_session" => missing_empty_session: rules(R28, F19);
    "wake_log.missing.empty_session_backfill" => missing_empty_session_backfill: rules(R28);
    "wake_log.missing.empty_session_is_no_session" => empty_session_is_no_session:
        rules(R1, R77), own;
    "wake_log.missing.backfill" => missing_backfill: rules(R28);
    "wake_log.missing.backfill_typed" => missing_backfill_typed: rules(R28);
    "wake_log.missing.just_cleared" => missing_just_cleared: rules(R28);
    "wake_log.idle.next_it_takes" => idle_next_it_takes: rules(R29);
    "wake_log.idle.nothing_it_takes" => idle_nothing_it_takes: rules(R20, R29);
    "wake_log.idle.types_recorded" => idle_types_recorded: rules(R27, R29);
    "wake_log.idle.below_the_clear" => idle_below_the_clear: rules(R20);
    "wake_log.idle.back_to_fewer_types" => idle_back_to_fewer_types: rules(R29);
    "wake_log.head.kept" => head_kept: rules(R30);
    "wake_log.head.types_recorded" => head_types_recorded: rules(R27, R30);
    "wake_log.head.dead_letter_stays" => head_dead_letter_stays: rules(R23, R30);
    "wake_log.again.nothing_changes" => again_nothing_changes;
    "wake_log.again.position_stays" => again_position_stays: rules(R29, F20);
    "wake_log.other.cursors_untouched" => other_cursors_untouched: rules(R27);
];

async fn answer_all_of_it(cx: Cx) {
    let s = cx.session("answer");
    append(&cx, &s, many("e", 3)).await;
    let request = WakeLog::new("c", all_types("l").backfill()).unwrap();
    let woken = cx.store().wake_log(&s, request.clone()).await.unwrap();
    assert_eq!((woken.head, woken.clear_index), (at(3), at(0)));
    assert_eq!(line(&woken.cursor), "c log l 0>1");
    let head = claim_the_one(&cx, &s).await;
    let woken = cx.store().wake_log(&s, request).await.unwrap();
    assert_eq!(woken.cursor.state, head.state);
    assert_eq!(cx.store().all_cursors(&s).await.unwrap(), [woken.cursor]);
}

async fn answer_cleared(cx: Cx) {
    let s = cx.session("cleared");
    append(&cx, &s, many("e", 2)).await;
    wake(&cx, &s, "c", all_types("l").backfill()).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("e", 2)).await;
    let request = WakeLog::new("c", all_types("l")).unwrap();
    let woken = cx.store().wake_log(&s, request).await.unwrap();
    assert_eq!((woken.head, woken.clear_index), (at(5), at(3)));
    assert_eq!(line(&woken.cursor), "c log l 3>4");
    assert_eq!(woken.cursor.state.attempt_count, 0);
}

async fn missing_at_the_logs_head(cx: Cx) {
    let s = cx.session("head");
    append(&cx, &s, many("e", 3)).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 3>-");
    nothing(&cx, &s).await;
    append(&cx, &s, [ev("later")]).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 3>4");
    assert_eq!(claim_the_one(&cx, &s).await.event.id, "later");
}

async fn missing_empty_session(cx: Cx) {
    let s = cx.session("empty");
    let request = WakeLog::new("c", all_types("l")).unwrap();
    let woken = cx.store().wake_log(&s, request).await.unwrap();
    assert_eq!((woken.head, woken.clear_index), (at(0), at(0)));
    assert_eq!(line(&woken.cursor), "c log l 0>-");
    assert_eq!(shown(&cx, &s).await, ["c log l 0>-"]);
    append(&cx, &s, [ev("a")]).await;
    let served = serve_log("c", all_types("l"));
    append_served(&cx, &s, &served, [ev("b")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 0>1"], "every later event counts");
}

async fn missing_empty_session_backfill(cx: Cx) {
    let s = cx.session("backfill");
    assert_eq!(wake(&cx, &s, "c", all_types("l").backfill()).await, "c log l 0>-");
    append(&cx, &s, [ev("a")]).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 0>1");
}

async fn empty_session_is_no_session(cx: Cx) {
    let s = cx.session("none");
    wake(&cx, &s, "c", all_types("l")).await;
    let store = cx.store();
    let sessions: Vec<_> = (&store).all_sessions().try_collect().await.unwrap();
    assert_eq!(sessions.len(), 0, "it exists from its first append");
    nothing(&cx, &s).await;
    append(&cx, &s, [ev("a")]).await;
    let sessions: Vec<_> = (&store).all_sessions().try_collect().await.unwrap();
    assert_eq!(sessions.len(), 1);
}

async fn missing_backfill(cx: Cx) {
    let s = cx.session("backfill");
    append(&cx, &s, many("e", 2)).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l").backfill()).await, "c log l 0>1");
    assert_eq!(drain(&cx, &s, claim()).await, [log_head("c", "l", 1), log_head("c", "l", 2)]);
}

async fn missing_backfill_typed(cx: Cx) {
    let s = cx.session("typed");
    append(&cx, &s, [typed("1", "y"), typed("2", "x"), typed("3", "y")]).await;
    let xs = || only_types("l", ["x"]).backfill();
    assert_eq!(wake(&cx, &s, "c", xs()).await, "c log l 0>2");
    let none = only_types("l", ["z"]).backfill();
    assert_eq!(wake(&cx, &s, "d", none).await, "d log l 0>-");
    append(&cx, &s, [typed("4", "z")]).await;
    assert_eq!(wake(&cx, &s, "d", only_types("l", ["y"])).await, "d log l 0>1");
}

async fn missing_just_cleared(cx: Cx) {
    let s = cx.session("cleared");
    append(&cx, &s, many("e", 2)).await;
    clear(&cx, &s).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 3>-");
    assert_eq!(wake(&cx, &s, "d", all_types("l").backfill()).await, "d log l 3>-");
    append(&cx, &s, many("e", 2)).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 3>4");
    assert_eq!(wake(&cx, &s, "d", all_types("l")).await, "d log l 3>4");
    assert_eq!(wake(&cx, &s, "e", all_types("l")).await, "e log l 5>-");
    assert_eq!(wake(&cx, &s, "f", all_types("l").backfill()).await, "f log l 3>4");
}

async fn idle_next_it_takes(cx: Cx) {
    let s = cx.session("next");
    let xs = || only_types("l", ["x"]);
    assert_eq!(wake(&cx, &s, "c", xs()).await, "c log l 0>-");
    append(&cx, &s, [typed("1", "y"), typed("2", "x"), typed("3", "x")]).await;
    assert_eq!(wake(&cx, &s, "c", xs()).await, "c log l 0>2");
    assert_eq!(drain(&cx, &s, claim()).await, [log_head("c", "l", 2), log_head("c", "l", 3)]);
}

async fn idle_nothing_it_takes(cx: Cx) {
    let s = cx.session("nothing");
    let xs = || only_types("l", ["x"]);
    append(&cx, &s, [typed("1", "y")]).await;
    assert_eq!(wake(&cx, &s, "c", xs()).await, "c log l 1>-");
    append(&cx, &s, [typed("2", "y"), typed("3", "y")]).await;
    assert_eq!(wake(&cx, &s, "c", xs()).await, "c log l 1>-", "it has passed nothing");
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["y"])).await, "c log l 1>2");
}

async fn idle_types_recorded(cx: Cx) {
    let s = cx.session("recorded");
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["x"])).await, "c log l 0>-");
    let both = only_types("l", ["x", "y"]);
    append(&cx, &s, [typed("1", "x"), typed("2", "y"), typed("3", "z")]).await;
    assert_eq!(wake(&cx, &s, "c", both).await, "c log l 0>1");
    assert_eq!(drain(&cx, &s, claim()).await, [log_head("c", "l", 1), log_head("c", "l", 2)]);
}

async fn idle_below_the_clear(cx: Cx) {
    let s = cx.session("below");
    wake(&cx, &s, "c", all_types("l")).await;
    append(&cx, &s, many("e", 2)).await;
    clear(&cx, &s).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l").backfill()).await, "c log l 3>-");
    append(&cx, &s, many("e", 1)).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 3>4");
}

async fn idle_back_to_fewer_types(cx: Cx) {
    let s = cx.session("fewer");
    append(&cx, &s, [typed("1", "x"), typed("2", "x"), typed("3", "y")]).await;
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["z"]).backfill()).await, "c log l 0>-");
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["y"])).await, "c log l 0>3");
    assert_eq!(drain(&cx, &s, claim()).await, [log_head("c", "l", 3)]);
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["x"])).await, "c log l 3>-", "never back");
}

async fn head_kept(cx: Cx) {
    let s = cx.session("kept");
    append(&cx, &s, many("e", 2)).await;
    wake(&cx, &s, "c", all_types("l").backfill()).await;
    let head = claim_the_one(&cx, &s).await;
    append(&cx, &s, [ev("more")]).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l").backfill()).await, "c log l 0>1");
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["other"])).await, "c log l 0>1");
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>-"], "nothing of type other");
}

async fn head_types_recorded(cx: Cx) {
    let s = cx.session("recorded");
    let events = [typed("1", "y"), typed("2", "x"), typed("3", "y"), typed("4", "x")];
    append(&cx, &s, events).await;
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["x"]).backfill()).await, "c log l 0>2");
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["x", "y"])).await, "c log l 0>2");
    assert_eq!(drain(&cx, &s, claim()).await, [2, 3, 4].map(|i| log_head("c", "l", i)));
}

async fn head_dead_letter_stays(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, many("e", 2)).await;
    wake(&cx, &s, "c", all_types("l").backfill()).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 0>1");
    nothing(&cx, &s).await;
    assert_eq!(dead(&cx, &s).await.len(), 1);
}

async fn again_nothing_changes(cx: Cx) {
    let s = cx.session("again");
    append(&cx, &s, many("e", 2)).await;
    let request = WakeLog::new("c", all_types("l").backfill()).unwrap();
    let first = cx.store().wake_log(&s, request.clone()).await.unwrap();
    cx.pass(secs(5)).await;
    for _ in 0..3 {
        assert_eq!(cx.store().wake_log(&s, request.clone()).await.unwrap(), first);
    }
    assert_eq!(indexes(&log(&cx, &s).await), [1, 2]);
    assert_eq!(drain(&cx, &s, claim()).await.len(), 2);
    let idle = cx.store().wake_log(&s, request.clone()).await.unwrap();
    assert_eq!(line(&idle.cursor), "c log l 2>-");
    assert_eq!(cx.store().wake_log(&s, request).await.unwrap(), idle);
}

async fn again_position_stays(cx: Cx) {
    let s = cx.session("position");
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["x"])).await, "c log l 0>-");
    append(&cx, &s, many("e", 2)).await;
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["x"])).await, "c log l 0>-");
    append(&cx, &s, [typed("3", "x")]).await;
    assert_eq!(wake(&cx, &s, "c", only_types("l", ["x"])).await, "c log l 0>3");
}

async fn other_cursors_untouched(cx: Cx) {
    let s = cx.session("other");
    wake(&cx, &s, "c", all_types("l")).await;
    wake(&cx, &s, "c", all_types("m")).await;
    wake(&cx, &s, "d", all_types("l")).await;
    append(&cx, &s, [ev_on("a", "l")]).await;
    assert_eq!(wake(&cx, &s, "c", all_types("l")).await, "c log l 0>1");
    let expected = ["c lane l 0>1", "c log l 0>1", "c log m 0>-", "d log l 0>-"];
    assert_eq!(shown(&cx, &s).await, expected);
}
