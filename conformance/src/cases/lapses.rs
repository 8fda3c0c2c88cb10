//! Leases that lapse: what that counts as, and the failure budgets it is measured by.

use a2_core::{Failure, Served, ServedConsumer};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: rules(R46), both;
    "claims.lapse.counts_one_failure" => counts_one_failure: rules(R21, F13), manual;
    "claims.lapse.by_whoever_claims" => by_whoever_claims;
    "claims.lapse.counts_every_time" => counts_every_time: rules(F13);
    "claims.lapse.no_budget_never_dead" => no_budget_never_dead;
    "claims.lapse.not_after_a_hold" => not_after_a_hold;
    "claims.lapse.not_after_a_release" => not_after_a_release: rules(R51);
    "claims.lapse.not_before_it_is_claimed" => not_before_it_is_claimed;
    "claims.lapse.not_when_excluded" => not_when_excluded: rules(R44);
    "claims.budget.dead_lettered" => dead_lettered: rules(R23), manual;
    "claims.budget.of_one" => budget_of_one;
    "claims.budget.crashes_f13" => crashes_f13: rules(F13);
    "claims.budget.last_attempt_lost_f14" => last_attempt_lost_f14: rules(R60, F14);
    "claims.budget.counts_failures_too" => counts_failures_too;
    "claims.budget.passed_before" => passed_before;
    "claims.budget.free_head_is_claimed" => free_head_is_claimed;
    "claims.budget.entry_is_lower" => entry_is_lower: rules(R19);
    "claims.budget.entry_is_higher" => entry_is_higher: rules(R19);
    "claims.budget.entry_of_another" => entry_of_another: rules(R19);
    "claims.budget.dead_one_takes_the_limit" => dead_one_takes_the_limit;
    "claims.budget.beside_claimed_ones" => beside_claimed_ones;
    "claims.budget.fences_the_lapsed" => fences_the_lapsed: rules(R22, R25);
    "claims.budget.of_then_claim" => of_then_claim: rules(R54);
    "claims.budget.dead_one_has_no_run" => dead_one_has_no_run;
    "claims.budget.pins" => budget_pins: rules(R64);
];

async fn counts_one_failure(cx: Cx) {
    let s = cx.session("counts");
    append(&cx, &s, [ev_on("a", "l")]).await;
    take_one(&cx, &s, claim_as("dies", ms(100))).await;
    cx.pass(ms(250)).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(30))).await;
    let mut expected = first_attempt(time(250), time(280));
    expected.attempt_count = 2;
    expected.first_claimed_at = Some(time(0));
    expected.failure_count = 1;
    expected.last_failed_at = Some(time(250));
    expected.last_failed_attempt = Some(1);
    expected.last_error = Some("lease expired".to_owned());
    assert_eq!(head.state, expected);
    assert_eq!(state(&cx, &s, &head.head).await, expected);
}

async fn by_whoever_claims(cx: Cx) {
    let s = cx.session("self");
    append(&cx, &s, [ev_on("a", "l")]).await;
    take_one(&cx, &s, claim_as(WORKER, ms(20))).await;
    cx.pass(ms(20)).await;
    let again = claim_the_one(&cx, &s).await;
    assert_eq!((again.attempt(), again.state.failure_count), (2, 1), "also its own holder");
}

async fn counts_every_time(cx: Cx) {
    let s = cx.session("every");
    append(&cx, &s, [ev_for("a", "c")]).await;
    for lapses in 0..4 {
        let head = claim_and_lapse(&cx, &s).await;
        assert_eq!((head.attempt(), head.state.failure_count), (lapses + 1, lapses));
        assert_eq!(head.state.last_failed_attempt, (lapses > 0).then_some(lapses));
    }
}

async fn no_budget_never_dead(cx: Cx) {
    let s = cx.session("never");
    append(&cx, &s, [ev_for("a", "c")]).await;
    for _ in 0..12 {
        take_one(&cx, &s, claim_as("dies", ms(1))).await;
        cx.pass(ms(1)).await;
    }
    let head = claim_the_one(&cx, &s).await;
    assert_eq!((head.attempt(), head.state.failure_count), (13, 12));
    assert_eq!(dead(&cx, &s).await, []);
}

async fn not_after_a_hold(cx: Cx) {
    let s = cx.session("hold");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head).retry_after(ms(20))).await;
    cx.pass(ms(20)).await;
    let head = take_one(&cx, &s, claim().max_failures(2).unwrap()).await;
    assert_eq!((head.attempt(), head.state.failure_count), (2, 1));
    assert_eq!(head.state.last_error.as_deref(), Some("boom"));
}

async fn not_after_a_release(cx: Cx) {
    let s = cx.session("release");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = take_one(&cx, &s, claim_as(WORKER, ms(20))).await;
    assert_eq!(release(&cx, &s, [head.attempt_ref()]).await.len(), 1);
    cx.pass(ms(20)).await;
    let head = take_one(&cx, &s, claim().max_failures(1).unwrap()).await;
    assert_eq!((head.attempt(), head.state.failure_count), (2, 0));
    assert_eq!(head.state.last_error, None);
}

async fn not_before_it_is_claimed(cx: Cx) {
    let s = cx.session("lazy");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let head = claim_and_lapse(&cx, &s).await;
    assert_eq!(state(&cx, &s, &head.head).await, head.state, "a listing changes nothing");
    assert_eq!(dead(&cx, &s).await, []);
}

async fn not_when_excluded(cx: Cx) {
    let s = cx.session("excluded");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_and_lapse(&cx, &s).await;
    let without = claim().exclude([the_lane("c", "l")]).unwrap().max_failures(1).unwrap();
    expect_settled(cx.store().claim_available(&s, without).await);
    assert_eq!(state(&cx, &s, &head.head).await, head.state);
    finish(&cx, &s, &head).await;
}

async fn dead_lettered(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, [ev_on("a", "l")]).await;
    take_one(&cx, &s, claim_as(WORKER, ms(100))).await;
    cx.pass(ms(150)).await;
    let heads = take(&cx, &s, claim().max_failures(1).unwrap()).await;
    assert_eq!(refs(&heads), [lane_head("c", "l", 1)]);
    let mut expected = first_attempt(time(0), time(0));
    expected.attempt_count = 2;
    expected.claim_holder = None;
    expected.claim_expires_at = None;
    expected.failure_count = 1;
    expected.last_failed_at = Some(time(150));
    expected.last_failed_attempt = Some(1);
    expected.last_error = Some("lease expired".to_owned());
    expected.failed_at = Some(time(150));
    assert_eq!(heads[0].state, expected);
    assert_eq!(heads[0].event.id, "a");
    assert_eq!(dead(&cx, &s).await, heads);
    nothing(&cx, &s).await;
}

async fn budget_of_one(cx: Cx) {
    let s = cx.session("one");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let one = || claim_as("w", ms(20)).max_failures(1).unwrap();
    assert_eq!(take_one(&cx, &s, one()).await.attempt(), 1, "nothing has lapsed yet");
    cx.pass(ms(20)).await;
    let heads = take(&cx, &s, one()).await;
    assert!(heads[0].state.failed_at.is_some());
    assert_eq!(heads[0].state.failure_count, 1);
}

async fn crashes_f13(cx: Cx) {
    let s = cx.session("f13");
    append(&cx, &s, many_on_l("e", 2)).await;
    let three = || claim_as("dies", ms(20)).max_failures(3).unwrap();
    for attempt in 1..=3 {
        assert_eq!(take_one(&cx, &s, three()).await.attempt(), attempt);
        cx.pass(ms(20)).await;
    }
    let heads = take(&cx, &s, three()).await;
    assert_eq!(refs(&heads), [lane_head("c", "l", 1)]);
    let state = &heads[0].state;
    assert!(state.failed_at.is_some(), "not handed out for running");
    assert_eq!((state.attempt_count, state.failure_count), (4, 3));
    assert_eq!(state.last_error.as_deref(), Some("lease expired"));
    nothing(&cx, &s).await;
    assert!(skip(&cx, &s, &heads[0].head).await);
    assert_eq!(take_one(&cx, &s, three()).await.head, lane_head("c", "l", 2));
}

async fn last_attempt_lost_f14(cx: Cx) {
    for action in ["skip", "retry"] {
        let s = cx.session("f14");
        append(&cx, &s, many_on_l("e", 2)).await;
        let two = || claim_as(WORKER, ms(20)).max_failures(2).unwrap();
        let head = take_one(&cx, &s, two()).await;
        let outcome = failed(&cx, &s, fail(&head).max_failures(2).unwrap()).await;
        assert_eq!(outcome, Failure::Failed { failure_count: 1 });
        assert_eq!(take_one(&cx, &s, two()).await.attempt(), 2);
        cx.pass(ms(20)).await;
        let heads = take(&cx, &s, two()).await;
        assert!(heads[0].state.failed_at.is_some(), "no manual unlock");
        nothing(&cx, &s).await;
        assert_eq!(refs(&dead(&cx, &s).await), [lane_head("c", "l", 1)]);
        if action == "skip" {
            assert!(skip(&cx, &s, &heads[0].head).await);
            assert_eq!(take_one(&cx, &s, two()).await.head, lane_head("c", "l", 2));
        } else {
            assert!(retry(&cx, &s, &heads[0].head).await);
            let head = take_one(&cx, &s, two()).await;
            assert_eq!((head.head.index, head.state.failure_count), (at(1), 0));
            let outcome = failed(&cx, &s, fail(&head).max_failures(2).unwrap()).await;
            assert_eq!(outcome, Failure::Failed { failure_count: 1 }, "the budget is back");
        }
    }
}

async fn counts_failures_too(cx: Cx) {
    let s = cx.session("both");
    append(&cx, &s, [ev_for("a", "c")]).await;
    for failure_count in 1..=2 {
        let head = claim_the_one(&cx, &s).await;
        assert_eq!(failed(&cx, &s, fail(&head)).await, Failure::Failed { failure_count });
    }
    claim_and_lapse(&cx, &s).await;
    let heads = take(&cx, &s, claim().max_failures(3).unwrap()).await;
    assert!(heads[0].state.failed_at.is_some());
    assert_eq!((heads[0].state.attempt_count, heads[0].state.failure_count), (4, 3));
    assert_eq!(heads[0].state.last_failed_attempt, Some(3));
}

async fn passed_before(cx: Cx) {
    let s = cx.session("passed");
    append(&cx, &s, [ev_for("a", "c")]).await;
    for _ in 0..4 {
        let head = claim_the_one(&cx, &s).await;
        let _ = failed(&cx, &s, fail(&head)).await;
    }
    claim_and_lapse(&cx, &s).await;
    let heads = take(&cx, &s, claim().max_failures(2).unwrap()).await;
    assert!(heads[0].state.failed_at.is_some());
    assert_eq!(heads[0].state.failure_count, 5);
}

async fn free_head_is_claimed(cx: Cx) {
    let s = cx.session("free");
    append(&cx, &s, [ev_for("a", "c")]).await;
    for _ in 0..3 {
        let head = claim_the_one(&cx, &s).await;
        let _ = failed(&cx, &s, fail(&head)).await;
    }
    let head = take_one(&cx, &s, claim().max_failures(1).unwrap()).await;
    assert_eq!((head.attempt(), head.state.failure_count), (4, 3), "only a lapse is measured");
}

async fn entry_is_lower(cx: Cx) {
    let s = cx.session("lower");
    append(&cx, &s, [ev_for("a", "c")]).await;
    claim_and_lapse(&cx, &s).await;
    let lower = claim().max_failures(9).unwrap().served(serve_c_with_budget(1));
    assert!(take(&cx, &s, lower).await[0].state.failed_at.is_some());
}

async fn entry_is_higher(cx: Cx) {
    let s = cx.session("higher");
    append(&cx, &s, [ev_for("a", "c")]).await;
    let higher = || claim_as("w", ms(20)).max_failures(1).unwrap().served(serve_c_with_budget(2));
    for attempt in 1..=2 {
        assert_eq!(take_one(&cx, &s, higher()).await.attempt(), attempt);
        cx.pass(ms(20)).await;
    }
    let heads = take(&cx, &s, higher()).await;
    assert!(heads[0].state.failed_at.is_some());
    assert_eq!(heads[0].state.failure_count, 2);
}

async fn entry_of_another(cx: Cx) {
    let s = cx.session("another");
    append(&cx, &s, [ev_for("a", "c"), ev_for("b", "d"), ev_for("c", "e")]).await;
    take(&cx, &s, claim_as("w", ms(20))).await;
    cx.pass(ms(20)).await;
    let entry = |consumer, budget| {
        ServedConsumer::new(consumer).unwrap().max_failures(budget).unwrap()
    };
    let plain = ServedConsumer::new("e").unwrap();
    let served = Served::only([entry("c", 1), entry("d", 2), plain]).unwrap();
    let heads = take(&cx, &s, claim().served(served)).await;
    let dead: Vec<_> = heads.iter().map(|head| head.state.failed_at.is_some()).collect();
    assert_eq!(dead, [true, false, false], "c's budget is spent; e has none at all");
}

async fn dead_one_takes_the_limit(cx: Cx) {
    let s = cx.session("limit");
    append(&cx, &s, many_for_c("e", 3)).await;
    take(&cx, &s, claim_as("w", ms(20)).limit(2).unwrap()).await;
    cx.pass(ms(20)).await;
    let two = claim().limit(2).unwrap().max_failures(1).unwrap();
    let heads = take(&cx, &s, two).await;
    assert_eq!(refs(&heads), [event_head("c", 1), event_head("c", 2)]);
    assert!(heads.iter().all(|head| head.state.failed_at.is_some()));
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 3)]);
}

async fn beside_claimed_ones(cx: Cx) {
    let s = cx.session("beside");
    append(&cx, &s, many_for_c("e", 3)).await;
    let second = claim_as("w", ms(20)).exclude([the_event("c", 1), the_event("c", 3)]).unwrap();
    take(&cx, &s, second).await;
    cx.pass(ms(20)).await;
    let heads = take(&cx, &s, claim().max_failures(1).unwrap()).await;
    assert_eq!(refs(&heads), [event_head("c", 1), event_head("c", 2), event_head("c", 3)]);
    let dead: Vec<_> = heads.iter().map(|head| head.state.failed_at.is_some()).collect();
    assert_eq!(dead, [false, true, false]);
    finish(&cx, &s, &heads[0]).await;
    superseded(&cx, &s, complete(&heads[1])).await;
    finish(&cx, &s, &heads[2]).await;
}

async fn fences_the_lapsed(cx: Cx) {
    let s = cx.session("fence");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let lapsed = take_one(&cx, &s, claim_as(WORKER, ms(20))).await;
    cx.pass(ms(20)).await;
    take(&cx, &s, claim().max_failures(1).unwrap()).await;
    let before = dead(&cx, &s).await;
    superseded(&cx, &s, complete(&lapsed)).await;
    assert_eq!(failed(&cx, &s, fail(&lapsed)).await, Failure::Superseded);
    let renewal = renew(&cx, &s, [lapsed.attempt_ref()], secs(60)).await;
    assert_eq!((renewal.renewed, renewal.superseded), (vec![], vec![lapsed.attempt_ref()]));
    assert_eq!(release(&cx, &s, [lapsed.attempt_ref()]).await, []);
    assert_eq!(dead(&cx, &s).await, before);
    assert!(retry(&cx, &s, &lapsed.head).await);
    superseded(&cx, &s, complete(&lapsed)).await;
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 3);
}

async fn of_then_claim(cx: Cx) {
    let s = cx.session("then");
    append(&cx, &s, [ev_for("a", "c"), ev_for("b", "d")]).await;
    take_one(&cx, &s, claim_as("w", ms(20)).served(serve(["c"]))).await;
    cx.pass(ms(20)).await;
    let head = claim_one(&cx, &s, "d").await;
    let then = complete(&head).then_claim(claim().max_failures(1).unwrap());
    let heads = expect_claimed(Ok(then_claimed(&cx, &s, then).await)).heads;
    assert_eq!(refs(&heads), [event_head("c", 1)]);
    assert!(heads[0].state.failed_at.is_some());
}

async fn dead_one_has_no_run(cx: Cx) {
    let s = cx.session("run");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 3)).await;
    claim_and_lapse(&cx, &s).await;
    let heads = take(&cx, &s, claim().run(3).unwrap().max_failures(1).unwrap()).await;
    assert_eq!(refs(&heads), [log_head("c", "l", 1)]);
    assert!(heads[0].state.failed_at.is_some());
    assert_eq!(heads[0].run, []);
}

async fn budget_pins(cx: Cx) {
    let s = cx.session("pins");
    append(&cx, &s, [ev("a"), ev_on("b", "l")]).await;
    pin(&cx, &s, &[lane_head("c", "l", 2)]).await;
    claim_and_lapse(&cx, &s).await;
    claim_and_lapse(&cx, &s).await;
    assert!(is_pinned(&cx, &s).await, "a lapse alone releases nothing");
    take(&cx, &s, claim().max_failures(2).unwrap()).await;
    assert!(!is_pinned(&cx, &s).await);
}
