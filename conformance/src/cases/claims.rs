//! Claiming: what is a candidate, in which order, how many, busy and settled.

use std::time::Duration;

use a2_core::{Append, Cause, ClaimAvailable, CompleteAttempt, DispatchState, NewEvent};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: both;
    "claims.settled.unknown_session" => settled_unknown_session: rules(R1, R47);
    "claims.settled.no_targets" => settled_no_targets: rules(R17, R47);
    "claims.settled.completed" => settled_completed: rules(R47);
    "claims.settled.dead_letters_only" => settled_dead_letters_only: rules(R23, R47);
    "claims.settled.cleared" => settled_cleared: rules(R47, R70);
    "claims.answer.event" => answer_event: rules(R48);
    "claims.answer.head_and_clear" => answer_head_and_clear: rules(R48);
    "claims.state.first_attempt" => state_first_attempt: rules(R21, R39, R45), manual;
    "claims.state.next_attempt" => state_next_attempt: rules(R21, R22, R45), manual;
    "claims.state.new_head_is_empty" => state_new_head_is_empty: rules(R21);
    "claims.order.index_before_consumer" => order_index_before_consumer: rules(R26);
    "claims.order.consumer_kind_name" => order_consumer_kind_name: rules(R26);
    "claims.order.names_bytewise" => order_names_bytewise: rules(R8, R26);
    "claims.order.due_before_later_free" => order_due_before_later_free: rules(R45);
    "claims.order.free_before_later_due" => order_free_before_later_due: rules(R45);
    "claims.limit.first_in_order" => limit_first_in_order: rules(R26, R45);
    "claims.limit.default_64" => limit_default_64: rules(R10, R45);
    "claims.limit.bounds" => limit_bounds: rules(R10, R14);
    "claims.bytes.past_16_mib" => bytes_past_16_mib: rules(R11), slow;
    "claims.busy.exact" => busy_exact: rules(R24, R47), manual;
    "claims.busy.own_lease_too" => busy_own_lease_too: rules(R24, R47);
    "claims.busy.soonest" => busy_soonest: rules(R47), manual;
    "claims.busy.at_least_1_ms" => busy_at_least_1_ms: rules(R47), manual;
    "claims.busy.retry_hold" => busy_retry_hold: rules(R24, R47), manual;
    "claims.busy.free_ones_are_claimed" => busy_free_ones_are_claimed: rules(R45);
    "claims.busy.of_served_only" => busy_of_served_only: rules(R19, R44, R47), manual;
    "claims.busy.excluded" => busy_excluded: rules(R44, R47), manual;
    "claims.busy.above_through" => busy_above_through: rules(R44, R47), manual;
    "claims.expiry.exactly_now" => expiry_exactly_now: rules(R33), manual;
    "claims.expiry.hold_exactly_now" => expiry_hold_exactly_now: rules(R33), manual;
    "claims.expiry.clock_set_back" => expiry_clock_set_back: rules(R32), manual;
    "claims.through.bounds" => through_bounds: rules(R44);
    "claims.through.expired_above" => through_expired_above: rules(R44);
    "claims.window.free_heads_unbounded" => window_free_heads_unbounded: rules(R45), manual;
    "claims.window.longest_due_256" => window_longest_due_256: rules(R45), manual;
    "claims.window.of_each_consumer" => window_of_each_consumer: rules(R45), manual;
    "claims.cursors.not_created" => cursors_not_created: rules(R49);
    "claims.cursors.not_moved" => cursors_not_moved: rules(R27, R49);
    "claims.cursors.types_not_recorded" => cursors_types_not_recorded: rules(R49);
    "claims.ttl.clamped" => ttl_clamped: rules(R13, F12), manual;
    "claims.ttl.zero" => ttl_zero: rules(R13, R46, F12);
    "claims.fence.future_attempt" => fence_future_attempt: rules(R25);
];

async fn settled_unknown_session(cx: Cx) {
    let s = cx.session("unknown");
    nothing(&cx, &s).await;
    let one = claim().served(serve(["c"])).max_failures(1).unwrap();
    expect_settled(cx.store().claim_available(&s, one).await);
    assert_eq!(log(&cx, &s).await, []);
}

async fn settled_no_targets(cx: Cx) {
    let s = cx.session("untargeted");
    append(&cx, &s, many("e", 3)).await;
    nothing(&cx, &s).await;
}

async fn settled_completed(cx: Cx) {
    let s = cx.session("completed");
    append(&cx, &s, [ev_for("a", "c"), ev_on("b", "l")]).await;
    for head in claim_all(&cx, &s).await {
        finish(&cx, &s, &head).await;
    }
    nothing(&cx, &s).await;
}

async fn settled_dead_letters_only(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    nothing(&cx, &s).await;
}

async fn settled_cleared(cx: Cx) {
    let s = cx.session("cleared");
    append(&cx, &s, [ev_for("a", "c"), ev_on("b", "l"), ev_on("c", "l")]).await;
    let leased = take(&cx, &s, claim().limit(1).unwrap()).await;
    assert_eq!(refs(&leased), [event_head("c", 1)]);
    clear(&cx, &s).await;
    nothing(&cx, &s).await;
}

async fn answer_event(cx: Cx) {
    let s = cx.session("event");
    let new = event("order.placed", r#"{"b":1.0,"a":[]}"#).id("o-1").unwrap();
    let stored = append(&cx, &s, [ev("first"), new.target(to_lane("c", "l"))]).await;
    let head = claim_the_one(&cx, &s).await;
    assert_eq!(head.head, lane_head("c", "l", 2));
    assert_eq!(head.event, stored[1]);
    assert_eq!(head.event.index, at(2));
    assert_eq!(head.event.id, "o-1");
    assert_eq!(head.event.event_type, "order.placed");
    assert_eq!(head.event.payload.as_str(), r#"{"b":1.0,"a":[]}"#);
    assert_eq!(head.event.session, s);
    assert_eq!(head.event.cause, None);
    assert_eq!(head.run, []);
    assert_eq!(head.attempt(), 1);
}

async fn answer_head_and_clear(cx: Cx) {
    let s = cx.session("positions");
    append(&cx, &s, [ev_for("a", "c"), ev("b"), ev("c")]).await;
    let first = expect_claimed(cx.store().claim_available(&s, claim()).await);
    assert_eq!((first.head, first.clear_index), (at(3), at(0)));
    clear(&cx, &s).await;
    append(&cx, &s, [ev_for("a", "c"), ev("b")]).await;
    let second = expect_claimed(cx.store().claim_available(&s, claim()).await);
    assert_eq!(refs(&second.heads), [event_head("c", 5)]);
    assert_eq!((second.head, second.clear_index), (at(6), at(4)));
}

async fn state_first_attempt(cx: Cx) {
    let s = cx.session("first");
    append(&cx, &s, [ev_for("a", "c")]).await;
    cx.pass(ms(7)).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(30))).await;
    assert_eq!(head.state, first_attempt(time(7), time(37)));
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
}

async fn state_next_attempt(cx: Cx) {
    let s = cx.session("next");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let first = claim_the_one(&cx, &s).await;
    assert_eq!(release(&cx, &s, [first.attempt_ref()]).await, [first.attempt_ref()]);
    cx.pass(ms(5)).await;
    let second = take_one(&cx, &s, claim_as(WORKER, ms(30))).await;
    let mut expected = first_attempt(time(5), time(35));
    expected.attempt_count = 2;
    expected.first_claimed_at = Some(time(0));
    assert_eq!(second.state, expected);
}

async fn state_new_head_is_empty(cx: Cx) {
    let s = cx.session("empty");
    append(&cx, &s, many_on_l("e", 2)).await;
    let first = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&first)).await;
    let second = claim_the_one(&cx, &s).await;
    assert_eq!((second.attempt(), second.state.failure_count), (2, 1));
    finish(&cx, &s, &second).await;
    let fresh = state(&cx, &s, &lane_head("c", "l", 2)).await;
    assert_eq!(fresh, DispatchState::default(), "nothing of the head before is left");
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 1);
}

async fn order_index_before_consumer(cx: Cx) {
    let s = cx.session("index");
    let events = [
        ev("1").target(to_lane("z", "z")),
        ev("2").target(to_event("y")),
        ev("3").target(to_lane("x", "a")),
        ev("4").target(to_event("a")),
    ];
    append(&cx, &s, events).await;
    assert_eq!(
        refs(&claim_all(&cx, &s).await),
        [lane_head("z", "z", 1), event_head("y", 2), lane_head("x", "a", 3), event_head("a", 4)]
    );
}

async fn order_consumer_kind_name(cx: Cx) {
    let s = cx.session("kind");
    let served = serve_logs([("b", all_types("a")), ("a", all_types("l"))]);
    let targets = [
        to_lane("b", "y"),
        to_lane("a", "z"),
        to_event("b"),
        to_lane("a", "m"),
        to_event("a"),
        to_lane("b", "x"),
    ];
    append_served(&cx, &s, &served, [ev("1").targets(targets)]).await;
    assert_eq!(
        refs(&claim_all(&cx, &s).await),
        [
            event_head("a", 1),
            lane_head("a", "m", 1),
            lane_head("a", "z", 1),
            log_head("a", "l", 1),
            event_head("b", 1),
            lane_head("b", "x", 1),
            lane_head("b", "y", 1),
            log_head("b", "a", 1),
        ]
    );
}

async fn order_names_bytewise(cx: Cx) {
    let s = cx.session("bytes");
    let consumers = ["é", "a", "Z", "_", "a b", "10", "9"].map(to_event);
    let lanes = ["é", "", "a", "B", "a:1", "a b", "~"].map(|lane| to_lane("lanes", lane));
    append(&cx, &s, [ev("1").targets(consumers), ev("2").targets(lanes)]).await;
    let heads = claim_all(&cx, &s).await;
    let consumers: Vec<_> = heads[..7].iter().map(|head| head.head.consumer.as_str()).collect();
    assert_eq!(consumers, ["10", "9", "Z", "_", "a", "a b", "é"]);
    let lanes: Vec<_> = heads[7..].iter().map(|head| head.head.cursor.name()).collect();
    assert_eq!(lanes, ["", "B", "a", "a b", "a:1", "~", "é"]);
}

async fn order_due_before_later_free(cx: Cx) {
    let s = cx.session("due");
    append(&cx, &s, many_for_c("e", 2)).await;
    take(&cx, &s, claim_as("lapsing", ms(20)).limit(1).unwrap()).await;
    cx.pass(ms(20)).await;
    let one = take_one(&cx, &s, claim().limit(1).unwrap()).await;
    assert_eq!(one.head, event_head("c", 1));
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 2)]);
}

async fn order_free_before_later_due(cx: Cx) {
    let s = cx.session("free");
    append(&cx, &s, many_for_c("e", 3)).await;
    let lapsing = claim_as("lapsing", ms(20)).exclude([the_event("c", 2)]).unwrap();
    assert_eq!(refs(&take(&cx, &s, lapsing).await), [event_head("c", 1), event_head("c", 3)]);
    cx.pass(ms(20)).await;
    let all = claim_all(&cx, &s).await;
    assert_eq!(refs(&all), [event_head("c", 1), event_head("c", 2), event_head("c", 3)]);
    assert_eq!(all.iter().map(|head| head.attempt()).collect::<Vec<_>>(), [2, 1, 2]);
}

async fn limit_first_in_order(cx: Cx) {
    let s = cx.session("limit");
    let both = || [to_event("z"), to_lane("a", "l")];
    append(&cx, &s, [ev("1").targets(both()), ev("2").targets(both())]).await;
    let two = || claim().limit(2).unwrap();
    assert_eq!(refs(&take(&cx, &s, two()).await), [lane_head("a", "l", 1), event_head("z", 1)]);
    assert_eq!(refs(&take(&cx, &s, two()).await), [event_head("z", 2)], "the lane is at 1");
}

async fn limit_default_64(cx: Cx) {
    let s = cx.session("default");
    append(&cx, &s, many_for_c("e", 65)).await;
    let first = claim_all(&cx, &s).await;
    assert_eq!(first.len(), 64);
    assert_eq!(first[63].head, event_head("c", 64));
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 65)]);
}

async fn limit_bounds(cx: Cx) {
    let s = cx.session("bounds");
    assert_code(claim().limit(0), "INVALID_INPUT");
    assert_code(claim().limit(1_001), "INVALID_INPUT");
    append(&cx, &s, many_for_c("e", 2)).await;
    assert_eq!(take(&cx, &s, claim().limit(1_000).unwrap()).await.len(), 2);
}

async fn bytes_past_16_mib(cx: Cx) {
    let s = cx.session("bytes");
    // Exactly 16 MiB of JSON text, and one byte (the smallest there is).
    let whole = format!("\"{}\"", "x".repeat(16 * 1024 * 1024 - 2));
    let big = event("t", &whole).id("1").unwrap().target(to_event("c"));
    let small = |id: &str| event("t", "1").id(id).unwrap().target(to_event("c"));
    append(&cx, &s, [big, small("2"), small("3")]).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [event_head("c", 1), event_head("c", 2)], "2 is the one past 16 MiB");
    assert_eq!(heads[0].event.payload.byte_len(), 16_777_216);
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 3)]);
}

async fn busy_exact(cx: Cx) {
    let s = cx.session("exact");
    append(&cx, &s, [ev_for("a", "c")]).await;
    take_one(&cx, &s, claim_as(WORKER, ms(1_500))).await;
    assert_eq!(busy(&cx, &s).await, ms(1_500));
    cx.pass(ms(1_100)).await;
    assert_eq!(busy(&cx, &s).await, ms(400));
}

async fn busy_own_lease_too(cx: Cx) {
    let s = cx.session("own");
    append(&cx, &s, [ev_for("a", "c")]).await;
    claim_the_one(&cx, &s).await;
    let retry_after = busy_for(&cx, &s, claim()).await;
    assert!(retry_after >= ms(1) && retry_after <= secs(60), "{retry_after:?}");
}

async fn busy_soonest(cx: Cx) {
    let s = cx.session("soonest");
    append(&cx, &s, [ev_for("a", "c"), ev_for("b", "d"), ev_on("c", "l")]).await;
    for ttl in [900, 300, 600] {
        take(&cx, &s, claim_as(WORKER, ms(ttl)).limit(1).unwrap()).await;
    }
    assert_eq!(busy(&cx, &s).await, ms(300));
    cx.pass(ms(300)).await;
    assert_eq!(take_one(&cx, &s, claim()).await.head, event_head("d", 2));
    assert_eq!(busy(&cx, &s).await, ms(300), "the lane's lease is the next");
}

async fn busy_at_least_1_ms(cx: Cx) {
    let s = cx.session("least");
    append(&cx, &s, [ev_for("a", "c")]).await;
    // A nanosecond counts as a whole millisecond.
    let head = take_one(&cx, &s, claim_as(WORKER, Duration::from_nanos(1))).await;
    assert_eq!(head.state.claim_expires_at, Some(time(1)));
    assert_eq!(busy(&cx, &s).await, ms(1));
}

async fn busy_retry_hold(cx: Cx) {
    let s = cx.session("hold");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head).retry_after(secs(5))).await;
    assert_eq!(busy(&cx, &s).await, secs(5));
}

async fn busy_free_ones_are_claimed(cx: Cx) {
    let s = cx.session("some");
    append(&cx, &s, many_for_c("e", 3)).await;
    let first = take(&cx, &s, claim().exclude([the_event("c", 2)]).unwrap()).await;
    assert_eq!(refs(&first), [event_head("c", 1), event_head("c", 3)]);
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 2)]);
}

async fn busy_of_served_only(cx: Cx) {
    let s = cx.session("served");
    append(&cx, &s, [ev_for("a", "c"), ev_for("b", "d")]).await;
    take_one(&cx, &s, claim_as(WORKER, secs(1)).served(serve(["c"]))).await;
    take_one(&cx, &s, claim_as(WORKER, secs(9)).served(serve(["d"]))).await;
    assert_eq!(busy_for(&cx, &s, claim().served(serve(["d"]))).await, secs(9));
    assert_eq!(busy_for(&cx, &s, claim().served(serve(["c", "d"]))).await, secs(1));
    expect_settled(cx.store().claim_available(&s, claim().served(serve(["e"]))).await);
}

async fn busy_excluded(cx: Cx) {
    let s = cx.session("excluded");
    append(&cx, &s, [ev_for("a", "c"), ev_on("b", "l")]).await;
    take(&cx, &s, claim_as(WORKER, secs(3)).limit(1).unwrap()).await;
    take(&cx, &s, claim_as(WORKER, secs(8))).await;
    // What is excluded may be what the answer is about, but never longer than the others wait.
    let rest = claim().exclude([the_event("c", 1)]).unwrap();
    let retry_after = busy_for(&cx, &s, rest).await;
    assert!(retry_after >= ms(1) && retry_after <= secs(8), "{retry_after:?}");
    let none = claim().exclude([the_event("c", 1), the_lane("c", "l")]).unwrap();
    expect_settled(cx.store().claim_available(&s, none).await);
}

async fn busy_above_through(cx: Cx) {
    let s = cx.session("above");
    append(&cx, &s, [ev_for("a", "c"), ev_on("b", "l")]).await;
    take(&cx, &s, claim_as(WORKER, secs(8)).limit(1).unwrap()).await;
    take(&cx, &s, claim_as(WORKER, secs(3))).await;
    let retry_after = busy_for(&cx, &s, claim().through(at(1))).await;
    assert!(retry_after >= ms(1) && retry_after <= secs(8), "{retry_after:?}");
    expect_settled(cx.store().claim_available(&s, claim().through(at(0))).await);
}

async fn expiry_exactly_now(cx: Cx) {
    let s = cx.session("now");
    append(&cx, &s, [ev_for("a", "c")]).await;
    take_one(&cx, &s, claim_as(WORKER, ms(100))).await;
    cx.pass(ms(99)).await;
    assert_eq!(busy(&cx, &s).await, ms(1));
    cx.pass(ms(1)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn expiry_hold_exactly_now(cx: Cx) {
    let s = cx.session("hold");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head).retry_after(ms(100))).await;
    cx.pass(ms(99)).await;
    assert_eq!(busy(&cx, &s).await, ms(1));
    cx.pass(ms(1)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 2);
}

async fn expiry_clock_set_back(cx: Cx) {
    let s = cx.session("back");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(100))).await;
    cx.clock().set(time(-500));
    assert_eq!(busy(&cx, &s).await, ms(600));
    let renewal = renew(&cx, &s, [head.attempt_ref()], ms(100)).await;
    assert_eq!(renewal.renewed, [head.attempt_ref()]);
    assert_eq!(busy(&cx, &s).await, ms(100));
    cx.pass(ms(100)).await;
    let next = claim_the_one(&cx, &s).await;
    assert_eq!((next.attempt(), next.state.last_failed_at), (2, Some(time(-400))));
    assert_eq!(next.state.first_claimed_at, Some(time(0)));
}

async fn through_bounds(cx: Cx) {
    let s = cx.session("through");
    append(&cx, &s, many_for_c("e", 4)).await;
    let up_to = |index| claim().through(at(index));
    expect_settled(cx.store().claim_available(&s, up_to(0)).await);
    assert_eq!(refs(&take(&cx, &s, up_to(2)).await), [event_head("c", 1), event_head("c", 2)]);
    assert_eq!(refs(&take(&cx, &s, up_to(3)).await), [event_head("c", 3)]);
    assert_eq!(refs(&take(&cx, &s, up_to(99)).await), [event_head("c", 4)]);
}

async fn through_expired_above(cx: Cx) {
    let s = cx.session("lapsed");
    append(&cx, &s, [ev("a"), ev_on("b", "l")]).await;
    claim_and_lapse(&cx, &s).await;
    let below = claim().through(at(1)).max_failures(1).unwrap();
    expect_settled(cx.store().claim_available(&s, below).await);
    let head = take_one(&cx, &s, claim().through(at(2))).await;
    assert_eq!((head.attempt(), head.state.failure_count), (2, 1));
}

async fn window_free_heads_unbounded(cx: Cx) {
    let s = cx.session("free");
    append(&cx, &s, many_for_c("e", 300)).await;
    let heads = take(&cx, &s, claim().limit(1_000).unwrap()).await;
    let indexes: Vec<_> = heads.iter().map(|head| head.head.index.get()).collect();
    assert_eq!(indexes, (1..=300).collect::<Vec<_>>());
}

async fn window_longest_due_256(cx: Cx) {
    let s = cx.session("window");
    append(&cx, &s, many_for_c("e", 300)).await;
    // The first 44 are due last.
    take(&cx, &s, claim_as("w", secs(2)).limit(44).unwrap()).await;
    take(&cx, &s, claim_as("w", secs(1)).limit(1_000).unwrap()).await;
    cx.pass(secs(2)).await;
    let heads = take(&cx, &s, claim().limit(3).unwrap()).await;
    assert_eq!(refs(&heads), [event_head("c", 45), event_head("c", 46), event_head("c", 47)]);
    // 253 of the longer due are left: the window reaches three of the others.
    let heads = take(&cx, &s, claim().limit(2).unwrap()).await;
    assert!(heads.iter().all(|head| head.head.index <= at(44)), "{heads:?}");
}

async fn window_of_each_consumer(cx: Cx) {
    let s = cx.session("each");
    let both = |event: NewEvent| event.targets([to_event("a"), to_event("b")]);
    append(&cx, &s, many("e", 200).into_iter().map(both)).await;
    assert_eq!(take(&cx, &s, claim_as("w", secs(1)).limit(1_000).unwrap()).await.len(), 400);
    cx.pass(secs(1)).await;
    let heads = take(&cx, &s, claim().limit(1_000).unwrap()).await;
    let expected: Vec<_> =
        (1..=200).flat_map(|i| [event_head("a", i), event_head("b", i)]).collect();
    assert_eq!(refs(&heads), expected);
}

async fn cursors_not_created(cx: Cx) {
    let s = cx.session("created");
    append(&cx, &s, many("e", 2)).await;
    let served = serve_log("c", all_types("l").backfill());
    expect_settled(cx.store().claim_available(&s, claim().served(served)).await);
    assert_eq!(shown(&cx, &s).await, [""; 0]);
}

async fn cursors_not_moved(cx: Cx) {
    let s = cx.session("moved");
    let served = serve_log("c", all_types("l"));
    append_served(&cx, &s, &served, [ev("a")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    append(&cx, &s, [ev("b")]).await;
    expect_settled(cx.store().claim_available(&s, claim().served(served.clone())).await);
    assert_eq!(shown(&cx, &s).await, ["c log l 1>-"]);
    append_served(&cx, &s, &served, [ev("c")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>2"]);
}

async fn cursors_types_not_recorded(cx: Cx) {
    let s = cx.session("recorded");
    let served = serve_log("c", only_types("l", ["x"]));
    let events = [typed("1", "x"), typed("2", "y"), typed("3", "x")];
    append_served(&cx, &s, &served, events).await;
    let other = serve_log("c", only_types("l", ["y"]));
    let head = take_one(&cx, &s, claim().served(other)).await;
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 1>3"]);
}

async fn ttl_clamped(cx: Cx) {
    let s = cx.session("clamped");
    let long = [Duration::MAX, ms(u64::MAX), secs(366 * 24 * 3_600)];
    append(&cx, &s, many_for_c("e", 3)).await;
    for ttl in long {
        let head = take_one(&cx, &s, claim_as(WORKER, ttl).limit(1).unwrap()).await;
        assert_eq!(head.state.claim_expires_at, Some(time(31_536_000_000)), "365 days");
    }
    assert_eq!(busy(&cx, &s).await, ms(31_536_000_000));
}

async fn ttl_zero(_: Cx) {
    assert_code(ClaimAvailable::new("w", ms(0)), "INVALID_INPUT");
    assert_code(claim().max_failures(0), "INVALID_INPUT");
}

async fn fence_future_attempt(cx: Cx) {
    let s = cx.session("future");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await.head;
    superseded(&cx, &s, CompleteAttempt::new(head.clone(), 2)).await;
    superseded(&cx, &s, CompleteAttempt::new(head.clone(), 0)).await;
    let caused = ev("b").cause(Cause::new(head.clone(), 2));
    let appended = cx.store().append(&s, Append::one(caused).unwrap()).await;
    assert_code(appended, "SUPERSEDED_ATTEMPT");
    settle(&cx, &s, CompleteAttempt::new(head, 1)).await;
}
