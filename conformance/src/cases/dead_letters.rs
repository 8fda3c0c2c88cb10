//! Dead letters: the listing, and what becomes of them.

use a2_core::{DispatchedHead, NewEvent, Page, PageToken, Redrive, RedriveAction, SessionId};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "dead_letters.list.unknown_session" => unknown_session: rules(R1, R58);
    "dead_letters.list.only_dead_ones" => only_dead_ones: rules(R58);
    "dead_letters.list.in_head_order" => in_head_order: rules(R26, R58);
    "dead_letters.list.event_and_state" => event_and_state: rules(R58);
    "dead_letters.list.above_the_clear" => above_the_clear: rules(R58, R70);
    "dead_letters.list.by_lapse_and_by_failure" => by_lapse_and_by_failure: rules(R46, R58);
    "dead_letters.pages.every_size" => every_size: rules(R58, R62);
    "dead_letters.pages.foreign_token" => foreign_token: rules(R62);
    "dead_letters.retry.keeps_the_other_fields" => retry_keeps_the_other_fields: rules(R22, R60);
    "dead_letters.retry.claimable_at_once" => retry_claimable_at_once: rules(R60);
    "dead_letters.retry.whole_budget" => retry_whole_budget: rules(R60);
    "dead_letters.retry.every_kind" => retry_every_kind: rules(R60);
    "dead_letters.retry.dies_again" => retry_dies_again: rules(R60);
    "dead_letters.skip.every_kind" => skip_every_kind: rules(R31, R60);
    "dead_letters.skip.no_event" => skip_no_event: rules(R60);
    "dead_letters.skip.pending" => skip_pending: rules(R42, R60);
    "dead_letters.redriven.false_otherwise" => false_otherwise: rules(R60);
    "dead_letters.redriven.false_when_cleared" => false_when_cleared: rules(R60, R70);
    "dead_letters.redriven.once" => once: rules(R60);
    "dead_letters.redriven.has_pending" => has_pending: rules(R42, R60);
    "dead_letters.redriven.only_that_head" => only_that_head: rules(R60);
    "dead_letters.race.one_retry_f15" => one_retry_f15: rules(R36, R60, F15);
    "dead_letters.race.retry_or_skip_f15" => retry_or_skip_f15: rules(R36, R60, F15);
];

/// A session with two events on `c`'s lane `l`, the first a dead letter.
async fn one_dead(cx: &Cx, name: &str) -> (SessionId, DispatchedHead) {
    let s = cx.session(name);
    append(cx, &s, many_on_l("e", 2)).await;
    let head = claim_the_one(cx, &s).await;
    bury(cx, &s, &head).await;
    (s, head)
}

/// A session whose one event is dead-lettered on a cursor of each kind.
async fn one_of_each_kind(cx: &Cx, name: &str) -> (SessionId, Vec<DispatchedHead>) {
    let s = cx.session(name);
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(cx, &s, &serve_log("c", all_types("l")), [new]).await;
    let heads = claim_all(cx, &s).await;
    assert_eq!(heads.len(), 3);
    for head in &heads {
        bury(cx, &s, head).await;
    }
    (s, heads)
}

async fn unknown_session(cx: Cx) {
    let s = cx.session("unknown");
    let answer = cx.store().dead_letters(&s, Page::first()).await.unwrap();
    assert_eq!((answer.heads, answer.next), (vec![], None));
}

async fn only_dead_ones(cx: Cx) {
    let s = cx.session("only");
    append(&cx, &s, many_for_c("e", 5)).await;
    let heads = take(&cx, &s, claim().limit(4).unwrap()).await;
    bury(&cx, &s, &heads[1]).await;
    finish(&cx, &s, &heads[2]).await;
    let _ = failed(&cx, &s, fail(&heads[3]).retry_after(secs(9))).await;
    assert_eq!(refs(&dead(&cx, &s).await), [event_head("c", 2)]);
}

async fn in_head_order(cx: Cx) {
    let s = cx.session("order");
    let targets = || [to_event("b"), to_lane("a", "y"), to_lane("a", "x"), to_event("a")];
    let served = serve_log("a", all_types("x"));
    append_served(&cx, &s, &served, [ev("1").targets(targets()), ev_for("2", "a")]).await;
    let mut heads = claim_all(&cx, &s).await;
    heads.reverse();
    for head in &heads {
        bury(&cx, &s, head).await;
        cx.pass(ms(1)).await;
    }
    assert_eq!(
        refs(&dead(&cx, &s).await),
        [
            event_head("a", 1),
            lane_head("a", "x", 1),
            lane_head("a", "y", 1),
            log_head("a", "x", 1),
            event_head("b", 1),
            event_head("a", 2),
        ],
        "whenever they died"
    );
}

async fn event_and_state(cx: Cx) {
    let s = cx.session("event");
    let new = event("order.placed", r#"{"n":1.0}"#).id("o").unwrap();
    let stored = append(&cx, &s, [new.target(to_lane("c", "l"))]).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    let dead = dead(&cx, &s).await;
    assert_eq!(dead[0].head, lane_head("c", "l", 1));
    assert_eq!(dead[0].event, stored[0]);
    assert_eq!(dead[0].run, []);
    let state = &dead[0].state;
    assert_eq!((state.attempt_count, state.failure_count), (1, 1));
    assert_eq!((state.failed_at, state.last_error.as_deref()), (Some(time(0)), Some("boom")));
}

async fn above_the_clear(cx: Cx) {
    let (s, _) = one_of_each_kind(&cx, "clear").await;
    clear(&cx, &s).await;
    assert_eq!(dead(&cx, &s).await, []);
    append(&cx, &s, [ev_on("b", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    assert_eq!(refs(&dead(&cx, &s).await), [lane_head("c", "l", 3)]);
}

async fn by_lapse_and_by_failure(cx: Cx) {
    let (s, _) = one_dead(&cx, "both").await;
    append(&cx, &s, [ev_for("b", "d")]).await;
    claim_and_lapse(&cx, &s).await;
    take(&cx, &s, claim().max_failures(1).unwrap()).await;
    let dead = dead(&cx, &s).await;
    assert_eq!(refs(&dead), [lane_head("c", "l", 1), event_head("d", 3)]);
    let errors: Vec<_> = dead.iter().filter_map(|head| head.state.last_error.as_deref()).collect();
    assert_eq!(errors, ["boom", "lease expired"]);
}

async fn every_size(cx: Cx) {
    let s = cx.session("pages");
    let both = |event: NewEvent| event.targets([to_event("c"), to_lane("d", "l")]);
    append(&cx, &s, many("e", 6).into_iter().map(both)).await;
    for head in claim_all(&cx, &s).await {
        bury(&cx, &s, &head).await;
    }
    let mut expected: Vec<_> = (1..=6).map(|i| event_head("c", i)).collect();
    expected.insert(1, lane_head("d", "l", 1));
    for size in [1, 2, 3, 6, 7, 8] {
        let (mut paged, mut next) = (Vec::new(), page(size));
        for _ in 0..10 {
            let answer = cx.store().dead_letters(&s, next.clone()).await.unwrap();
            assert!(answer.heads.len() <= size);
            paged.extend(refs(&answer.heads));
            match answer.next {
                Some(token) => next = next.and_then(token),
                None => break,
            }
        }
        assert_eq!(paged, expected, "in pages of {size}");
    }
}

async fn foreign_token(cx: Cx) {
    let (s, _) = one_dead(&cx, "token").await;
    append(&cx, &s, many_for_c("f", 2)).await;
    let foreign = cx.store().cursors(&s, page(1)).await.unwrap().next.unwrap();
    for token in [foreign, PageToken::from_bytes(*b"junk")] {
        assert_code(cx.store().dead_letters(&s, Page::at(token)).await, "INVALID_INPUT");
    }
}

async fn retry_keeps_the_other_fields(cx: Cx) {
    let s = cx.session("fields");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&head)).await;
    cx.pass(ms(10)).await;
    let head = claim_the_one(&cx, &s).await;
    cx.pass(ms(10)).await;
    let _ = failed(&cx, &s, fail(&head).max_failures(2).unwrap()).await;
    let mut expected = dead(&cx, &s).await[0].state.clone();
    cx.pass(ms(10)).await;
    assert!(retry(&cx, &s, &head.head).await);
    expected.failed_at = None;
    expected.failure_count = 0;
    let state = state(&cx, &s, &head.head).await;
    assert_eq!(state, expected);
    assert_eq!(state.attempt_count, 2);
    assert_eq!((state.first_claimed_at, state.last_claimed_at), (Some(time(0)), Some(time(10))));
    assert_eq!((state.last_failed_at, state.last_failed_attempt), (Some(time(20)), Some(2)));
    assert_eq!(state.last_error.as_deref(), Some("boom"));
}

async fn retry_claimable_at_once(cx: Cx) {
    let (s, head) = one_dead(&cx, "once").await;
    assert!(retry(&cx, &s, &head.head).await);
    let next = claim_the_one(&cx, &s).await;
    assert_eq!((next.head.clone(), next.attempt()), (lane_head("c", "l", 1), 2));
    assert_eq!(next.state.failed_at, None);
    superseded(&cx, &s, complete(&head)).await;
    finish(&cx, &s, &next).await;
}

async fn retry_whole_budget(cx: Cx) {
    let s = cx.session("budget");
    append(&cx, &s, [ev_on("a", "l")]).await;
    for _ in 0..2 {
        for failures in 1..=3 {
            assert_eq!(dead(&cx, &s).await, []);
            let head = claim_the_one(&cx, &s).await;
            assert_eq!(head.state.failure_count, failures - 1);
            let _ = failed(&cx, &s, fail(&head).max_failures(3).unwrap()).await;
        }
        assert!(retry(&cx, &s, &lane_head("c", "l", 1)).await);
    }
    assert_eq!(claim_the_one(&cx, &s).await.attempt(), 7);
}

async fn retry_every_kind(cx: Cx) {
    let (s, heads) = one_of_each_kind(&cx, "kinds").await;
    for head in &heads {
        assert!(retry(&cx, &s, &head.head).await);
    }
    assert_eq!(dead(&cx, &s).await, []);
    let again = claim_all(&cx, &s).await;
    assert_eq!(refs(&again), refs(&heads));
    assert!(again.iter().all(|head| head.attempt() == 2));
}

async fn retry_dies_again(cx: Cx) {
    let (s, head) = one_dead(&cx, "again").await;
    assert!(retry(&cx, &s, &head.head).await);
    let head = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &head).await;
    assert_eq!(dead(&cx, &s).await[0].state.attempt_count, 2);
    assert!(skip(&cx, &s, &head.head).await);
    assert_eq!(dead(&cx, &s).await, []);
}

async fn skip_every_kind(cx: Cx) {
    let (s, heads) = one_of_each_kind(&cx, "kinds").await;
    append(&cx, &s, [ev_on("b", "l")]).await;
    for head in &heads {
        assert!(skip(&cx, &s, &head.head).await);
        assert!(!skip(&cx, &s, &head.head).await);
        assert!(!retry(&cx, &s, &head.head).await);
    }
    assert_eq!(dead(&cx, &s).await, []);
    assert_eq!(shown(&cx, &s).await, ["c lane l 1>2", "c log l 1>2"]);
}

async fn skip_no_event(cx: Cx) {
    let (s, head) = one_dead(&cx, "event").await;
    assert!(skip(&cx, &s, &head.head).await);
    assert_eq!(ids(&log(&cx, &s).await), ["e1", "e2"]);
    let next = claim_the_one(&cx, &s).await;
    assert_eq!((next.head.index, next.attempt(), next.state.failure_count), (at(2), 1, 0));
}

async fn skip_pending(cx: Cx) {
    let (s, head) = one_dead(&cx, "pending").await;
    let redriven = redrive(&cx, &s, &head.head, RedriveAction::Skip).await;
    assert!(redriven.redriven && redriven.has_pending, "the lane's next");
    let next = claim_the_one(&cx, &s).await;
    bury(&cx, &s, &next).await;
    let redriven = redrive(&cx, &s, &next.head, RedriveAction::Skip).await;
    assert!(redriven.redriven && !redriven.has_pending);
}

async fn false_otherwise(cx: Cx) {
    let s = cx.session("false");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many_on_l("e", 3)).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [lane_head("c", "l", 1), log_head("c", "l", 1)]);
    finish(&cx, &s, &heads[0]).await;
    let others = [
        lane_head("c", "l", 1),
        lane_head("c", "l", 2),
        lane_head("c", "l", 3),
        log_head("c", "l", 1),
        log_head("c", "l", 2),
        event_head("c", 1),
        lane_head("d", "l", 1),
        lane_head("c", "l", 9),
        lane_head("c", "l", 0),
    ];
    let before = shown(&cx, &s).await;
    for other in &others {
        assert!(!retry(&cx, &s, other).await, "{other:?}");
        assert!(!skip(&cx, &s, other).await, "{other:?}");
    }
    assert_eq!(shown(&cx, &s).await, before);
    finish(&cx, &s, &heads[1]).await;
    let unknown = cx.session("unknown");
    assert!(!skip(&cx, &unknown, &lane_head("c", "l", 1)).await);
}

async fn false_when_cleared(cx: Cx) {
    let (s, heads) = one_of_each_kind(&cx, "cleared").await;
    clear(&cx, &s).await;
    for head in &heads {
        assert!(!retry(&cx, &s, &head.head).await);
        assert!(!skip(&cx, &s, &head.head).await);
    }
    nothing(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 2>-"]);
}

async fn once(cx: Cx) {
    let (s, head) = one_dead(&cx, "once").await;
    assert!(retry(&cx, &s, &head.head).await);
    assert!(!retry(&cx, &s, &head.head).await);
    assert!(!skip(&cx, &s, &head.head).await, "it is live");
    assert_eq!(claim_the_one(&cx, &s).await.head, lane_head("c", "l", 1));
}

async fn has_pending(cx: Cx) {
    let (s, head) = one_dead(&cx, "pending").await;
    append(&cx, &s, [ev_for("x", "d")]).await;
    let ask = |served| Redrive::new(head.head.clone(), RedriveAction::Retry).served(served);
    let other = cx.store().redrive(&s, ask(serve(["e"]))).await.unwrap();
    assert!(other.redriven && !other.has_pending);
    for (served, expected) in [(serve(["c"]), true), (serve(["d"]), true), (serve([]), false)] {
        let again = cx.store().redrive(&s, ask(served)).await.unwrap();
        assert_eq!((again.redriven, again.has_pending), (false, expected));
    }
}

async fn only_that_head(cx: Cx) {
    let s = cx.session("only");
    append(&cx, &s, [ev_on("a", "l"), ev_on("b", "m"), ev_for("c", "c")]).await;
    for head in claim_all(&cx, &s).await {
        bury(&cx, &s, &head).await;
    }
    assert!(retry(&cx, &s, &lane_head("c", "m", 2)).await);
    let left = [lane_head("c", "l", 1), event_head("c", 3)];
    assert_eq!(refs(&dead(&cx, &s).await), left);
    assert!(skip(&cx, &s, &event_head("c", 3)).await);
    assert_eq!(refs(&dead(&cx, &s).await), left[..1]);
}

/// Redrives in parallel; how many retries and how many skips won.
async fn race(cx: &Cx, s: &SessionId, actions: [RedriveAction; 8]) -> (usize, usize) {
    let tasks = actions.map(|action| {
        let (cx, s) = (cx.clone(), s.clone());
        tokio::spawn(async move {
            let redriven = redrive(&cx, &s, &lane_head("c", "l", 1), action).await.redriven;
            redriven.then_some(action)
        })
    });
    let mut won = Vec::new();
    for task in tasks {
        won.extend(task.await.unwrap());
    }
    let retries = won.iter().filter(|action| **action == RedriveAction::Retry).count();
    (retries, won.len() - retries)
}

async fn one_retry_f15(cx: Cx) {
    for _ in 0..5 {
        let (s, _) = one_dead(&cx, "f15").await;
        assert_eq!(race(&cx, &s, [RedriveAction::Retry; 8]).await, (1, 0));
        let head = claim_the_one(&cx, &s).await;
        assert_eq!((head.head.clone(), head.attempt()), (lane_head("c", "l", 1), 2));
        busy(&cx, &s).await;
    }
}

async fn retry_or_skip_f15(cx: Cx) {
    for _ in 0..5 {
        let (s, _) = one_dead(&cx, "f15").await;
        let (retry, skip) = (RedriveAction::Retry, RedriveAction::Skip);
        let won = race(&cx, &s, [retry, skip, retry, skip, retry, skip, retry, skip]).await;
        let head = claim_the_one(&cx, &s).await;
        match won {
            (1, 0) => assert_eq!((head.head.index, head.attempt()), (at(1), 2)),
            (0, 1) => assert_eq!((head.head.index, head.attempt()), (at(2), 1)),
            other => panic!("one wins, and once: {other:?}"),
        }
    }
}
