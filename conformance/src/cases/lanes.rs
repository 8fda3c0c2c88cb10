//! Lanes: one after the other, in log order, whatever happens to the head.

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "lanes.order.within_a_batch" => within_a_batch: rules(R15);
    "lanes.order.across_batches" => across_batches: rules(R15);
    "lanes.order.appended_while_leased" => appended_while_leased: rules(R15);
    "lanes.order.retry_never_overtaken_f16" => retry_never_overtaken_f16: rules(R15, R24, F16);
    "lanes.order.lapsed_head_first" => lapsed_head_first: rules(R15, R46);
    "lanes.order.long_lane" => long_lane: rules(R15, R54);
    "lanes.head.one_at_a_time" => one_at_a_time: rules(R15, R16);
    "lanes.head.lanes_side_by_side" => lanes_side_by_side: rules(R15);
    "lanes.head.two_consumers" => two_consumers: rules(R15);
    "lanes.head.lane_and_log_of_one_name" => lane_and_log_of_one_name: rules(R16);
    "lanes.head.lane_and_event_cursors" => lane_and_event_cursors: rules(R15);
    "lanes.head.empty_name" => empty_name: rules(R7, R15);
    "lanes.head.two_lanes_one_event" => two_lanes_one_event: rules(R15, R17);
    "lanes.head.target_twice" => target_twice: rules(R17);
    "lanes.head.replay_queues_nothing" => replay_queues_nothing: rules(R40);
    "lanes.blocked.dead_letter" => dead_letter: rules(R23);
    "lanes.blocked.retried" => retried: rules(R23, R60);
    "lanes.blocked.skipped" => skipped: rules(R60);
    "lanes.blocked.appended_meanwhile" => appended_meanwhile: rules(R23);
    "lanes.emptied.idle" => emptied: rules(R16, R20);
    "lanes.emptied.refilled" => refilled: rules(R15, R20);
    "lanes.emptied.by_a_skip" => emptied_by_a_skip: rules(R60);
    "lanes.cleared.queue_is_gone" => queue_is_gone: rules(R70);
    "lanes.cleared.dead_head_is_gone" => dead_head_is_gone: rules(R70);
    "lanes.cleared.position" => cleared_position: rules(R20);
    "lanes.cleared.leases_f51" => leases_f51: rules(R70, R73, F51);
];

async fn within_a_batch(cx: Cx) {
    let s = cx.session("batch");
    let events = ["a", "b", "a", "a", "b"].into_iter().enumerate();
    append(&cx, &s, events.map(|(i, lane)| ev_on(&format!("{i}"), lane))).await;
    let a = claim().exclude([the_lane("c", "b")]).unwrap();
    let expected = [lane_head("c", "a", 1), lane_head("c", "a", 3), lane_head("c", "a", 4)];
    assert_eq!(drain(&cx, &s, a).await, expected);
    let expected = [lane_head("c", "b", 2), lane_head("c", "b", 5)];
    assert_eq!(drain(&cx, &s, claim()).await, expected);
}

async fn across_batches(cx: Cx) {
    let s = cx.session("batches");
    for i in 0..3 {
        let lane = [format!("a{i}"), format!("b{i}")].map(|id| ev_on(&id, "l"));
        append(&cx, &s, lane.into_iter().chain([ev(&format!("c{i}"))])).await;
    }
    let expected = [1, 2, 4, 5, 7, 8].map(|index| lane_head("c", "l", index));
    assert_eq!(drain(&cx, &s, claim()).await, expected);
}

async fn appended_while_leased(cx: Cx) {
    let s = cx.session("leased");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    append(&cx, &s, [ev_on("b", "l")]).await;
    busy(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>1"]);
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
    finish(&cx, &s, &head).await;
    assert_eq!(claim_the_one(&cx, &s).await.head, lane_head("c", "l", 2));
}

async fn retry_never_overtaken_f16(cx: Cx) {
    let s = cx.session("f16");
    append(&cx, &s, many_on_l("e", 3)).await;
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head).retry_after(secs(1))).await;
    for left in [1_000, 750, 500, 250] {
        for _ in 0..4 {
            assert_eq!(busy(&cx, &s).await, ms(left), "nothing during the hold");
        }
        cx.pass(ms(250)).await;
    }
    let expected = [1, 2, 3].map(|index| lane_head("c", "l", index));
    assert_eq!(drain(&cx, &s, claim()).await, expected);
}

async fn lapsed_head_first(cx: Cx) {
    let s = cx.session("lapsed");
    append(&cx, &s, many_on_l("e", 2)).await;
    claim_and_lapse(&cx, &s).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!((head.head.clone(), head.attempt()), (lane_head("c", "l", 1), 2));
    busy(&cx, &s).await;
}

async fn long_lane(cx: Cx) {
    let s = cx.session("long");
    append(&cx, &s, many_on_l("e", 150)).await;
    let mut head = claim_the_one(&cx, &s).await;
    for index in 2..=150 {
        let next = then_claimed(&cx, &s, complete(&head).then_claim(claim())).await;
        let mut heads = next.into_heads();
        assert_eq!(refs(&heads), [lane_head("c", "l", index)]);
        head = heads.remove(0);
    }
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 150>-"]);
}

async fn one_at_a_time(cx: Cx) {
    let s = cx.session("one");
    append(&cx, &s, many_on_l("e", 5)).await;
    let heads = take(&cx, &s, claim().limit(1_000).unwrap()).await;
    assert_eq!(refs(&heads), [lane_head("c", "l", 1)]);
    busy(&cx, &s).await;
    expect_settled(cx.store().claim_available(&s, claim().exclude([the_lane("c", "l")]).unwrap()).await);
}

async fn lanes_side_by_side(cx: Cx) {
    let s = cx.session("side");
    append(&cx, &s, [ev_on("1", "b"), ev_on("2", "b"), ev_on("3", "a"), ev_on("4", "c")]).await;
    let heads = claim_all(&cx, &s).await;
    let expected = [lane_head("c", "b", 1), lane_head("c", "a", 3), lane_head("c", "c", 4)];
    assert_eq!(refs(&heads), expected);
    bury(&cx, &s, &heads[1]).await;
    finish(&cx, &s, &heads[0]).await;
    assert_eq!(refs(&claim_all(&cx, &s).await), [lane_head("c", "b", 2)]);
}

async fn two_consumers(cx: Cx) {
    let s = cx.session("consumers");
    let both = || [to_lane("c", "l"), to_lane("d", "l")];
    append(&cx, &s, [ev("1").targets(both()), ev("2").targets(both())]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [lane_head("c", "l", 1), lane_head("d", "l", 1)]);
    finish(&cx, &s, &heads[1]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>1", "d lane l 1>2"]);
    assert_eq!(refs(&claim_all(&cx, &s).await), [lane_head("d", "l", 2)]);
}

async fn lane_and_log_of_one_name(cx: Cx) {
    let s = cx.session("name");
    append_served(&cx, &s, &serve_log("c", all_types("n")), [ev("1"), ev_on("2", "n")]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [log_head("c", "n", 1), lane_head("c", "n", 2)]);
    bury(&cx, &s, &heads[0]).await;
    finish(&cx, &s, &heads[1]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane n 2>-", "c log n 0>1"]);
    assert!(skip(&cx, &s, &heads[0].head).await);
    assert_eq!(shown(&cx, &s).await, ["c lane n 2>-", "c log n 1>2"]);
    let log = claim_the_one(&cx, &s).await;
    assert_eq!((log.head.clone(), log.attempt()), (log_head("c", "n", 2), 1));
}

async fn lane_and_event_cursors(cx: Cx) {
    let s = cx.session("events");
    let both = || [to_event("c"), to_lane("c", "l")];
    append(&cx, &s, [ev("1").targets(both()), ev("2").targets(both())]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [event_head("c", 1), lane_head("c", "l", 1), event_head("c", 2)]);
    finish(&cx, &s, &heads[0]).await;
    finish(&cx, &s, &heads[2]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>1"], "the lane is where it was");
    finish(&cx, &s, &heads[1]).await;
    assert_eq!(claim_the_one(&cx, &s).await.head, lane_head("c", "l", 2));
}

async fn empty_name(cx: Cx) {
    let s = cx.session("empty");
    let served = serve_log("c", all_types(""));
    let new = ev("1").targets([to_event("c"), to_lane("c", ""), to_lane("c", "l")]);
    append_served(&cx, &s, &served, [new, ev_on("2", "")]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(
        refs(&heads),
        [
            event_head("c", 1),
            lane_head("c", "", 1),
            lane_head("c", "l", 1),
            log_head("c", "", 1),
        ]
    );
    finish(&cx, &s, &heads[1]).await;
    assert_eq!(
        shown(&cx, &s).await,
        ["c lane  1>2", "c lane l 0>1", "c log  0>1", "c event 0>1"]
    );
}

async fn two_lanes_one_event(cx: Cx) {
    let s = cx.session("two");
    append(&cx, &s, [ev("1").targets([to_lane("c", "a"), to_lane("c", "b")])]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [lane_head("c", "a", 1), lane_head("c", "b", 1)]);
    finish(&cx, &s, &heads[1]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane a 0>1", "c lane b 1>-"]);
}

async fn target_twice(cx: Cx) {
    let s = cx.session("twice");
    let twice = [to_lane("c", "l"), to_lane("d", "l"), to_lane("c", "l")];
    append(&cx, &s, [ev("1").targets(twice.clone()), ev("2").targets(twice)]).await;
    let c = claim().served(serve(["c"]));
    assert_eq!(drain(&cx, &s, c).await, [lane_head("c", "l", 1), lane_head("c", "l", 2)]);
}

async fn replay_queues_nothing(cx: Cx) {
    let s = cx.session("replay");
    append(&cx, &s, many_on_l("e", 2)).await;
    append(&cx, &s, many_on_l("e", 2)).await;
    append(&cx, &s, [ev_on("e1", "another"), ev_for("e2", "another")]).await;
    assert_eq!(drain(&cx, &s, claim()).await, [lane_head("c", "l", 1), lane_head("c", "l", 2)]);
    append(&cx, &s, many_on_l("e", 2)).await;
    nothing(&cx, &s).await;
}

async fn dead_letter(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    cx.pass(secs(86_400)).await;
    nothing(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>1"], "it stays its lane's head");
}

async fn retried(cx: Cx) {
    let s = cx.session("retried");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    assert!(retry(&cx, &s, &head.head).await);
    assert_eq!(drain(&cx, &s, claim()).await, [lane_head("c", "l", 1), lane_head("c", "l", 2)]);
}

async fn skipped(cx: Cx) {
    let s = cx.session("skipped");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    assert!(skip(&cx, &s, &head.head).await);
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>2"]);
    assert_eq!(drain(&cx, &s, claim()).await, [lane_head("c", "l", 2)]);
}

async fn appended_meanwhile(cx: Cx) {
    let s = cx.session("meanwhile");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    append(&cx, &s, [ev_on("b", "l"), ev_on("c", "l")]).await;
    nothing(&cx, &s).await;
    assert!(skip(&cx, &s, &head.head).await);
    assert_eq!(drain(&cx, &s, claim()).await, [lane_head("c", "l", 2), lane_head("c", "l", 3)]);
}

async fn emptied(cx: Cx) {
    let s = cx.session("emptied");
    append(&cx, &s, [ev("a"), ev_on("b", "l"), ev("c")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    nothing(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 2>-"]);
    append(&cx, &s, [ev("d"), ev_on("e", "other")]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 2>-", "c lane other 0>5"]);
}

async fn refilled(cx: Cx) {
    let s = cx.session("refilled");
    for index in [1, 3, 5] {
        append(&cx, &s, [ev_on(&format!("{index}"), "l"), ev(&format!("{index}+"))]).await;
        let head = claim_the_one(&cx, &s).await;
        assert_eq!((head.head.clone(), head.attempt()), (lane_head("c", "l", index), 1));
        finish(&cx, &s, &head).await;
        nothing(&cx, &s).await;
    }
    assert_eq!(shown(&cx, &s).await, ["c lane l 5>-"]);
}

async fn emptied_by_a_skip(cx: Cx) {
    let s = cx.session("skip");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    assert!(skip(&cx, &s, &head.head).await);
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>-"]);
    append(&cx, &s, [ev_on("b", "l")]).await;
    assert_eq!(claim_the_one(&cx, &s).await.head, lane_head("c", "l", 2));
}

async fn queue_is_gone(cx: Cx) {
    let s = cx.session("gone");
    append(&cx, &s, many_on_l("e", 3)).await;
    let head = claim_the_one(&cx, &s).await;
    clear(&cx, &s).await;
    nothing(&cx, &s).await;
    append(&cx, &s, [ev_on("a", "l")]).await;
    let fresh = claim_the_one(&cx, &s).await;
    assert_eq!((fresh.head.clone(), fresh.attempt()), (lane_head("c", "l", 5), 1));
    superseded(&cx, &s, complete(&head)).await;
    finish(&cx, &s, &fresh).await;
    nothing(&cx, &s).await;
}

async fn dead_head_is_gone(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev_on("a", "l")]).await;
    assert_eq!(claim_the_one(&cx, &s).await.head, lane_head("c", "l", 4), "nothing blocks it");
    assert_eq!(dead(&cx, &s).await, []);
    assert!(!skip(&cx, &s, &head.head).await);
}

async fn cleared_position(cx: Cx) {
    let s = cx.session("position");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(clear(&cx, &s).await, 3);
    append(&cx, &s, [ev("a"), ev_on("b", "l"), ev_on("c", "l")]).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 3>5"], "the clear index");
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 5>6"]);
}

async fn leases_f51(cx: Cx) {
    let s = cx.session("f51");
    append(&cx, &s, many_for_c("e", 5)).await;
    append(&cx, &s, [ev_on("a", "l")]).await;
    assert_eq!(take(&cx, &s, claim_as(WORKER, secs(10))).await.len(), 6);
    clear(&cx, &s).await;
    for _ in 0..1_000 {
        if cx.store().reclaim(&s).await.unwrap().done {
            break;
        }
    }
    cx.pass(secs(20)).await;
    for _ in 0..20 {
        nothing(&cx, &s).await;
    }
    assert_eq!(shown(&cx, &s).await, [""; 0]);
    append(&cx, &s, [ev_on("new", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!((head.head.clone(), head.attempt()), (lane_head("c", "l", 8), 1));
    assert_eq!(head.event.id, "new");
}
