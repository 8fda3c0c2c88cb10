//! Clearing: a marker starts a new lifetime, what was before it is gone at once.

use a2_core::{
    Clear, Cleared, Failure, LogDeclaration, PutSnapshots, Redrive, RedriveAction, ReducerName,
    ReleaseClaims, RenewClaims, Schedule, SessionId, SnapshotWrite, StoreExt, WakeLog,
};
use futures_util::future::join_all;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "clear.answer.indexes" => answer_indexes: rules(R68, R72);
    "clear.answer.empty_session" => answer_empty_session: rules(R68);
    "clear.answer.head_is_the_marker" => answer_head_is_the_marker: rules(R68);
    "clear.if_last_index.matches" => if_last_index_matches: rules(R68);
    "clear.if_last_index.differs" => if_last_index_differs: rules(R68);
    "clear.if_last_index.already_done" => if_last_index_already_done: rules(R68);
    "clear.id.already_done" => id_already_done: rules(R38, R68);
    "clear.id.before_everything" => id_before_everything: rules(R37, R68);
    "clear.cause.current" => cause_current: rules(R68, R69);
    "clear.cause.not_current" => cause_not_current: rules(R25, R68);
    "clear.cause.after_already_done" => cause_after_already_done: rules(R37, R68);
    "clear.cause.before_if_last_index" => cause_before_if_last_index: rules(R37, R68);
    "clear.cause.before_empty" => cause_before_empty: rules(R37, R68);
    "clear.heads.superseded" => heads_superseded: rules(R50, R51, R52, R56, R70, F46);
    "clear.heads.every_kind_and_state" => heads_every_kind_and_state: rules(R70, F46);
    "clear.queues.gone" => queues_gone: rules(R59, R70);
    "clear.queues.new_event_first" => queues_new_event_first: rules(R70, R72, F51);
    "clear.dead_letters.gone" => dead_letters_gone: rules(R58, R60, R70, F46);
    "clear.logs.go_on" => logs_go_on: rules(R20, R70);
    "clear.logs.backfill_from_the_marker" => logs_backfill_from_the_marker: rules(R28);
    "clear.completions.forgotten" => completions_forgotten: rules(R52, R70);
    "clear.timers.origin_below" => timers_origin_below: rules(R70, R74), needs(Timers);
    "clear.capacity.free_at_once" => capacity_free_at_once: rules(R70, F47);
    "clear.twice" => twice: rules(R70, R72);
    "clear.during_completions" => during_completions: rules(R36, R70, F46);
    "clear.concurrent.same_request" => concurrent_same_request: rules(R68);
    "clear.type.alike" => type_alike: rules(R8, R9, R69);
    "clear.type.by_clear_alone" => type_by_clear_alone: rules(R9, R73), needs(Timers);
    "clear.pending.none" => pending_none: rules(R42, R70);
];

/// cleared, index, clear_index.
fn parts(cleared: &Cleared) -> (bool, u64, u64) {
    (cleared.cleared, cleared.index.get(), cleared.clear_index.get())
}

async fn cleared(cx: &Cx, s: &SessionId, request: Clear) -> (bool, u64, u64) {
    parts(&cx.store().clear(s, request).await.unwrap())
}

async fn answer_indexes(cx: Cx) {
    let s = cx.session("answer");
    append(&cx, &s, many("e", 3)).await;
    assert_eq!(cleared(&cx, &s, Clear::new()).await, (true, 4, 4));
    assert_eq!(indexes(&append(&cx, &s, [ev("x")]).await), [5]);
    assert_eq!(cleared(&cx, &s, Clear::new()).await, (true, 6, 6));
}

async fn answer_empty_session(cx: Cx) {
    let s = cx.session("empty");
    assert_eq!(cleared(&cx, &s, Clear::new()).await, (true, 0, 0));
    assert_eq!(cx.store().head(&s).await.unwrap(), 0);
    assert_eq!(indexes(&append(&cx, &s, [ev("a")]).await), [1]);
}

async fn answer_head_is_the_marker(cx: Cx) {
    let s = cx.session("marker");
    append(&cx, &s, [ev("a")]).await;
    assert_eq!(cleared(&cx, &s, Clear::new()).await, (true, 2, 2));
    assert_eq!(cleared(&cx, &s, Clear::new()).await, (true, 2, 2));
    assert_eq!(cx.store().head(&s).await.unwrap(), 2);
}

async fn if_last_index_matches(cx: Cx) {
    let s = cx.session("matches");
    append(&cx, &s, many("e", 3)).await;
    assert_eq!(cleared(&cx, &s, Clear::new().if_last_index(at(3))).await, (true, 4, 4));
}

async fn if_last_index_differs(cx: Cx) {
    let s = cx.session("differs");
    append(&cx, &s, many("e", 3)).await;
    for last in [0, 2, 4] {
        let request = Clear::new().if_last_index(at(last));
        assert_eq!(cleared(&cx, &s, request).await, (false, 3, 0), "if last is {last}");
    }
    assert_eq!(ids(&log(&cx, &s).await), ["e1", "e2", "e3"]);
    let empty = cx.session("differs-empty");
    assert_eq!(cleared(&cx, &empty, Clear::new().if_last_index(at(1))).await, (false, 0, 0));
}

async fn if_last_index_already_done(cx: Cx) {
    let s = cx.session("already");
    append(&cx, &s, many("e", 3)).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 2)).await;
    // The marker is at 4: whoever asked to clear at 3 has been served.
    assert_eq!(cleared(&cx, &s, Clear::new().if_last_index(at(3))).await, (true, 6, 4));
    assert_eq!(indexes(&log(&cx, &s).await), [4, 5, 6]);
}

async fn id_already_done(cx: Cx) {
    let s = cx.session("id");
    append(&cx, &s, many("e", 3)).await;
    let request = Clear::new();
    assert_eq!(cleared(&cx, &s, request.clone()).await, (true, 4, 4));
    append(&cx, &s, many("new", 2)).await;
    assert_eq!(cleared(&cx, &s, request).await, (true, 6, 4), "sent again, it finds the marker");
    assert_eq!(ids(&log(&cx, &s).await)[1..], ["new1", "new2"]);
}

async fn id_before_everything(cx: Cx) {
    let s = cx.session("id-first");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    let request = Clear::new().id("marker").unwrap().cause(head.cause()).if_last_index(at(1));
    assert_eq!(cleared(&cx, &s, request.clone()).await, (true, 2, 2));
    append(&cx, &s, [ev("b")]).await;
    // The cause is no longer current and the head has moved on: it is done all the same.
    assert_eq!(cleared(&cx, &s, request).await, (true, 3, 2));
}

async fn cause_current(cx: Cx) {
    let s = cx.session("current");
    append(&cx, &s, [ev("a").target(to_lane("c", "l"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    assert_eq!(cleared(&cx, &s, Clear::new().cause(head.cause())).await, (true, 2, 2));
    assert_eq!(log(&cx, &s).await[0].cause, None, "the marker has no cause");
}

async fn cause_not_current(cx: Cx) {
    let s = cx.session("stale");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    finish(&cx, &s, &head).await;
    let answer = cx.store().clear(&s, Clear::new().cause(head.cause())).await;
    assert_code(answer, "SUPERSEDED_ATTEMPT");
    assert_eq!(ids(&log(&cx, &s).await), ["a"]);
}

async fn cause_after_already_done(cx: Cx) {
    let s = cx.session("done-first");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    clear(&cx, &s).await;
    let request = Clear::new().cause(head.cause()).if_last_index(at(1));
    assert_eq!(cleared(&cx, &s, request).await, (true, 2, 2));
}

async fn cause_before_if_last_index(cx: Cx) {
    let s = cx.session("cause-first");
    append(&cx, &s, [ev("a").target(to_event("c")), ev("b")]).await;
    let head = claim_one(&cx, &s, "c").await;
    finish(&cx, &s, &head).await;
    let request = Clear::new().cause(head.cause()).if_last_index(at(1));
    assert_code(cx.store().clear(&s, request).await, "SUPERSEDED_ATTEMPT");
}

async fn cause_before_empty(cx: Cx) {
    let s = cx.session("cause-empty");
    let cause = a2_core::Cause::new(event_head("c", 1), 1);
    let answer = cx.store().clear(&s, Clear::new().cause(cause.clone())).await;
    assert_code(answer, "SUPERSEDED_ATTEMPT");
    append(&cx, &s, [ev("a")]).await;
    clear(&cx, &s).await;
    assert_code(cx.store().clear(&s, Clear::new().cause(cause)).await, "SUPERSEDED_ATTEMPT");
}

/// One event that is a head of `c`'s event cursor, lane `l` and log `l`; all three claimed.
async fn three_claimed(cx: &Cx, name: &str) -> (SessionId, Vec<a2_core::DispatchedHead>) {
    let s = cx.session(name);
    let event = ev("a").target(to_event("c")).target(to_lane("c", "l"));
    let request = batch([event]).served(serve_log("c", all_types("l")));
    let _ = cx.store().append(&s, request).await.unwrap();
    let heads = claim_all(cx, &s).await;
    assert_eq!(heads.len(), 3);
    (s, heads)
}

async fn heads_superseded(cx: Cx) {
    let (s, heads) = three_claimed(&cx, "superseded").await;
    clear(&cx, &s).await;
    let claims: Vec<_> = heads.iter().map(|head| head.attempt_ref()).collect();
    let renew = RenewClaims::new(WORKER, claims.clone(), secs(60)).unwrap();
    let renewal = cx.store().renew_claims(&s, renew).await.unwrap();
    assert_eq!(renewal.renewed, []);
    assert_eq!(renewal.superseded, claims);
    let release = ReleaseClaims::new(WORKER, claims).unwrap();
    assert_eq!(cx.store().release_claims(&s, release).await.unwrap().released, []);
    for head in &heads {
        let returned = complete(head).events([ev("child")]).unwrap();
        expect_superseded(cx.store().complete_attempt(&s, returned).await);
        let failed = cx.store().fail_attempt(&s, fail(head)).await.unwrap();
        assert_eq!(failed.outcome, Failure::Superseded);
    }
    assert_eq!(indexes(&log(&cx, &s).await), [2], "the marker alone");
    assert_eq!(cx.store().all_dead_letters(&s).await.unwrap(), []);
}

async fn heads_every_kind_and_state(cx: Cx) {
    let s = cx.session("states");
    let events = many("e", 5).into_iter().map(|event| event.target(to_event("c")));
    append(&cx, &s, events).await;
    let heads = take(&cx, &s, claim().limit(4).unwrap()).await;
    finish(&cx, &s, &heads[0]).await;
    bury(&cx, &s, &heads[1]).await;
    let held = fail(&heads[2]).retry_after(secs(60));
    let _ = cx.store().fail_attempt(&s, held).await.unwrap();
    // Completed, dead-lettered, held, leased, free.
    clear(&cx, &s).await;
    expect_settled(cx.store().claim_available(&s, claim()).await);
    for head in &heads {
        expect_superseded(cx.store().complete_attempt(&s, complete(head)).await);
    }
    assert_eq!(cx.store().all_cursors(&s).await.unwrap(), []);
    cx.pass(secs(120)).await;
    expect_settled(cx.store().claim_available(&s, claim()).await);
}

async fn queues_gone(cx: Cx) {
    let s = cx.session("queues");
    let events = many("e", 3).into_iter().map(|event| event.target(to_lane("c", "l")));
    append(&cx, &s, events).await;
    clear(&cx, &s).await;
    expect_settled(cx.store().claim_available(&s, claim()).await);
    assert_eq!(cx.store().all_cursors(&s).await.unwrap(), [], "idle since before the clear");
}

async fn queues_new_event_first(cx: Cx) {
    let s = cx.session("first");
    let to_l = |prefix| many(prefix, 3).into_iter().map(|event| event.target(to_lane("c", "l")));
    append(&cx, &s, to_l("old")).await;
    let head = claim_one(&cx, &s, "c").await;
    finish(&cx, &s, &head).await;
    clear(&cx, &s).await;
    append(&cx, &s, to_l("new")).await;
    for index in [5, 6, 7] {
        let head = claim_one(&cx, &s, "c").await;
        assert_eq!(head.head, lane_head("c", "l", index));
        assert_eq!(head.attempt(), 1, "a new head");
        finish(&cx, &s, &head).await;
    }
    let cursors = cx.store().all_cursors(&s).await.unwrap();
    assert_eq!((cursors.len(), cursors[0].position.get(), cursors[0].head), (1, 7, None));
}

async fn dead_letters_gone(cx: Cx) {
    let (s, heads) = three_claimed(&cx, "dead").await;
    for head in &heads {
        bury(&cx, &s, head).await;
    }
    assert_eq!(cx.store().all_dead_letters(&s).await.unwrap().len(), 3);
    clear(&cx, &s).await;
    assert_eq!(cx.store().all_dead_letters(&s).await.unwrap(), []);
    for head in heads {
        for action in [RedriveAction::Retry, RedriveAction::Skip] {
            let redrive = Redrive::new(head.head.clone(), action);
            let redriven = cx.store().redrive(&s, redrive).await.unwrap();
            assert_eq!((redriven.redriven, redriven.has_pending), (false, false));
        }
    }
}

async fn logs_go_on(cx: Cx) {
    let (s, _) = three_claimed(&cx, "logs").await;
    clear(&cx, &s).await;
    let cursors = cx.store().all_cursors(&s).await.unwrap();
    assert_eq!(cursors.len(), 1, "logs are listed always");
    assert_eq!(cursors[0].key, log_head("c", "l", 1).cursor);
    assert_eq!((cursors[0].position.get(), cursors[0].head), (2, None), "at the marker");
    assert_eq!(cursors[0].state, a2_core::DispatchState::default());
    let next = batch([ev("b")]).served(serve_log("c", all_types("l")));
    let _ = cx.store().append(&s, next).await.unwrap();
    let head = claim_one(&cx, &s, "c").await;
    assert_eq!((head.head.clone(), head.attempt()), (log_head("c", "l", 3), 1));
}

async fn logs_backfill_from_the_marker(cx: Cx) {
    let s = cx.session("backfill");
    append(&cx, &s, many("old", 3)).await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev("new")]).await;
    let wake = WakeLog::new("c", LogDeclaration::new("l").unwrap().backfill()).unwrap();
    let woken = cx.store().wake_log(&s, wake).await.unwrap();
    assert_eq!((woken.cursor.position.get(), woken.cursor.head), (4, Some(at(5))));
    assert_eq!((woken.head.get(), woken.clear_index.get()), (5, 4));
}

async fn completions_forgotten(cx: Cx) {
    let s = cx.session("forgotten");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    let request = complete(&head).events([ev("child")]).unwrap();
    let done = cx.store().complete_attempt(&s, request.clone()).await;
    assert_eq!(indexes(&expect_completed(done).events), [2]);
    clear(&cx, &s).await;
    expect_superseded(cx.store().complete_attempt(&s, request).await);
}

async fn timers_origin_below(cx: Cx) {
    let s = cx.session("timers");
    append(&cx, &s, many("e", 2)).await;
    for (key, origin) in [("none", None), ("below", Some(2)), ("first", Some(1))] {
        let mut timer = Schedule::new(key, secs(1), ev(key)).unwrap();
        if let Some(origin) = origin {
            timer = timer.origin_index(at(origin));
        }
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    clear(&cx, &s).await;
    let listed = cx.timers().timers(&s, a2_core::Page::first()).await.unwrap().timers;
    let keys: Vec<_> = listed.iter().map(|timer| timer.key.as_str()).collect();
    assert_eq!(keys, ["none"]);
}

async fn capacity_free_at_once(cx: Cx) {
    let s = cx.session("capacity");
    let to_c = |prefix| many(prefix, 5).into_iter().map(|event| event.target(to_event("c")));
    append(&cx, &s, to_c("old")).await;
    let old = claim_all(&cx, &s).await;
    assert_eq!(old.len(), 5, "every slot is leased");
    clear(&cx, &s).await;
    append(&cx, &s, to_c("new")).await;
    let heads = claim_all(&cx, &s).await;
    let taken: Vec<_> = heads.iter().map(|head| head.event.id.as_str()).collect();
    assert_eq!(taken, ["new1", "new2", "new3", "new4", "new5"]);
}

async fn twice(cx: Cx) {
    let s = cx.session("twice");
    append(&cx, &s, [ev("a").target(to_lane("c", "l"))]).await;
    let first = claim_one(&cx, &s, "c").await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev("a").target(to_lane("c", "l"))]).await;
    let second = claim_one(&cx, &s, "c").await;
    assert_eq!(clear(&cx, &s).await, 4);
    append(&cx, &s, [ev("a").target(to_lane("c", "l"))]).await;
    for head in [first, second] {
        expect_superseded(cx.store().complete_attempt(&s, complete(&head)).await);
    }
    let third = claim_one(&cx, &s, "c").await;
    assert_eq!(third.head, lane_head("c", "l", 5));
    finish(&cx, &s, &third).await;
    assert_eq!(indexes(&log(&cx, &s).await), [4, 5]);
}

async fn during_completions(cx: Cx) {
    for round in 0..100 {
        let s = cx.session("race");
        append(&cx, &s, [ev("a").target(to_event("c"))]).await;
        let head = claim_one(&cx, &s, "c").await;
        let request = complete(&head).events([ev("child").target(to_event("c"))]).unwrap();
        let (a, b) = ((cx.clone(), s.clone()), (cx.clone(), s.clone()));
        let completing = tokio::spawn(async move {
            if round % 2 == 0 {
                tokio::task::yield_now().await;
            }
            a.0.store().complete_attempt(&a.1, request).await
        });
        let clearing = tokio::spawn(async move { clear(&b.0, &b.1).await });
        let done = completing.await.unwrap().unwrap().outcome.completed();
        let marker = clearing.await.unwrap();
        // The child came before the marker or never.
        assert_eq!(marker, if done.is_some() { 3 } else { 2 });
        assert_eq!(indexes(&log(&cx, &s).await), [marker], "the marker alone");
        expect_settled(cx.store().claim_available(&s, claim()).await);
        assert_eq!(cx.store().all_cursors(&s).await.unwrap(), []);
    }
}

async fn concurrent_same_request(cx: Cx) {
    let s = cx.session("same");
    append(&cx, &s, many("e", 3)).await;
    let request = Clear::new();
    let tasks = (0..8).map(|_| {
        let (cx, s, request) = (cx.clone(), s.clone(), request.clone());
        tokio::spawn(async move { cleared(&cx, &s, request).await })
    });
    for answer in join_all(tasks).await {
        assert_eq!(answer.unwrap(), (true, 4, 4));
    }
    assert_eq!(indexes(&log(&cx, &s).await), [4]);
}

async fn pending_none(cx: Cx) {
    let (s, _) = three_claimed(&cx, "pending").await;
    let reducer = ReducerName::new("r").unwrap();
    let pinned = SnapshotWrite::new(at(1), json("1")).pins([event_head("c", 1)]).unwrap();
    let writes = PutSnapshots::new([pinned]).unwrap();
    let _ = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
    clear(&cx, &s).await;
    let appended = cx.store().append(&s, batch([ev("b")])).await.unwrap();
    assert!(!appended.has_pending);
}

async fn type_alike(cx: Cx) {
    let s = cx.session("alike");
    let types = ["A2.CLEAR", "a2.clear ", " a2.clear", "a2.clear\n", "a2.cleared", "a2.clea", "clear"];
    let stored: Vec<_> = types.iter().map(|name| event(name, "null")).collect();
    let mut stored = append(&cx, &s, stored).await;
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    let returned = complete(&head).events([event("A2.Clear", "null").id("b").unwrap()]).unwrap();
    stored.extend(expect_completed(cx.store().complete_attempt(&s, returned).await).events);
    // Ordinary events all of them: nothing is cleared, and they come back as they were given.
    let read = cx.store().read(&s, Default::default()).await.unwrap();
    assert_eq!((read.head.get(), read.clear_index.get()), (9, 0));
    let read: Vec<_> = read.events.into_iter().filter(|event| event.index != 8).collect();
    assert_eq!(read, stored);
    let names: Vec<_> = read.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(names[..7], types);
    assert_eq!(names[7], "A2.Clear");
    assert_eq!(cleared(&cx, &s, Clear::new()).await, (true, 10, 10));
    let [marker] = &log(&cx, &s).await[..] else { panic!("the marker alone") };
    assert_eq!(marker.event_type.as_str(), "a2.clear");
}

async fn type_by_clear_alone(cx: Cx) {
    let s = cx.session("alone");
    let served = serve_log("c", all_types("l").backfill());
    let first = many("e", 3).into_iter().map(|event| event.target(to_lane("c", "l")));
    let _ = cx.store().append(&s, batch(first).served(served)).await.unwrap();
    let heads = claim_all(&cx, &s).await;
    bury(&cx, &s, &heads[0]).await;
    let skip = Redrive::new(heads[0].head.clone(), RedriveAction::Skip);
    assert!(cx.store().redrive(&s, skip).await.unwrap().redriven);
    let returned = complete(&heads[1]).events([ev("returned")]).unwrap();
    expect_completed(cx.store().complete_attempt(&s, returned).await);
    let _ = cx.timers().schedule(&s, Schedule::new("k", ms(1), ev("timer")).unwrap()).await.unwrap();
    cx.pass(ms(1)).await;
    let _ = cx.timers().fire_timers(&s, Default::default()).await.unwrap();
    let write = PutSnapshots::new([SnapshotWrite::new(at(2), json("1"))]).unwrap();
    let _ = cx.store().put_snapshots(&s, &ReducerName::new("r").unwrap(), write).await.unwrap();
    let _ = cx.store().reclaim(&s).await.unwrap();
    let types = |events: &[a2_core::Event]| {
        events.iter().map(|event| event.event_type.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types(&log(&cx, &s).await), ["t"; 5]);
    assert_eq!(cleared(&cx, &s, Clear::new()).await, (true, 6, 6));
    append(&cx, &s, [ev("x")]).await;
    while !cx.store().reclaim(&s).await.unwrap().done {}
    assert_eq!(types(&log(&cx, &s).await), ["a2.clear", "t"]);
    assert_eq!(cx.store().head(&s).await.unwrap(), 7);
}
