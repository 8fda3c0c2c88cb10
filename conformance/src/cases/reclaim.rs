//! Reclaiming: what lies below the marker goes in bounded pieces, the current lifetime stays.

use a2_core::{
    Failure, LogDeclaration, Page, PutSnapshots, ReadState, ReducerName, RenewClaims, Schedule,
    SessionId, SnapshotWrite, StoreExt, WakeLog,
};
use futures_util::future::join_all;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R73);
    "reclaim.done.nothing_to_do" => nothing_to_do: rules(R1);
    "reclaim.done.in_pieces" => in_pieces: rules(R71);
    "reclaim.done.only_when_nothing_is_left" => only_when_nothing_is_left;
    "reclaim.keeps.reused_ids" => keeps_reused_ids;
    "reclaim.keeps.the_lifetime" => keeps_the_lifetime;
    "reclaim.keeps.timers" => keeps_timers: needs(Timers);
    "reclaim.interrupted.between_calls" => interrupted_between_calls: rules(F46);
    "reclaim.interrupted.within_a_call" => interrupted_within_a_call;
    "reclaim.concurrent.calls_and_appends" => concurrent_calls_and_appends;
    "reclaim.two_lifetimes" => two_lifetimes: rules(R72);
    "reclaim.leases.gone" => leases_gone: rules(F51);
    "reclaim.leases.superseded_after" => leases_superseded_after: rules(R50, R52, R56, F46);
];

/// Calls until done; how many calls it took.
async fn reclaim(cx: &Cx, s: &SessionId) -> usize {
    for call in 1..=1_000 {
        if cx.store().reclaim(s).await.unwrap().done {
            return call;
        }
    }
    panic!("not done after 1,000 calls");
}

/// Events for a consumer's lane and its event cursor, all below a marker.
async fn old_lifetime(cx: &Cx, name: &str, n: usize) -> SessionId {
    let s = cx.session(name);
    let events = many("e", n).into_iter();
    append(cx, &s, events.map(|event| event.targets([to_event("c"), to_lane("c", "l")]))).await;
    assert_eq!(clear(cx, &s).await, n as u64 + 1);
    s
}

async fn nothing_to_do(cx: Cx) {
    let s = cx.session("nothing");
    assert!(cx.store().reclaim(&s).await.unwrap().done, "an unknown session");
    append(&cx, &s, many("e", 3)).await;
    assert!(cx.store().reclaim(&s).await.unwrap().done, "never cleared");
    assert_eq!(indexes(&log(&cx, &s).await), [1, 2, 3]);
}

async fn in_pieces(cx: Cx) {
    let s = old_lifetime(&cx, "pieces", 2_000).await;
    assert!(!cx.store().reclaim(&s).await.unwrap().done, "one call deletes about 256 rows");
    let calls = reclaim(&cx, &s).await;
    assert!(calls >= 5, "2,000 events and 2,000 ids went in {calls} more calls");
    let read = cx.store().read(&s, a2_core::ReadRange::default()).await.unwrap();
    assert_eq!(indexes(&read.events), [2_001]);
    assert_eq!((read.head.get(), read.clear_index.get()), (2_001, 2_001));
    assert!(cx.store().reclaim(&s).await.unwrap().done);
}

async fn only_when_nothing_is_left(cx: Cx) {
    let s = cx.session("all-kinds");
    // Of every kind a little: events, ids, heads, a lane, dead letters, completions, snapshots,
    // pins, types.
    let events = many("e", 9).into_iter();
    let events = events.map(|event| event.targets([to_event("c"), to_lane("c", "l")]));
    let served = serve_log("c", all_types("log"));
    let _ = cx.store().append(&s, batch(events).served(served)).await.unwrap();
    let heads = claim_all(&cx, &s).await;
    finish(&cx, &s, &heads[0]).await;
    bury(&cx, &s, &heads[1]).await;
    let reducer = ReducerName::new("r").unwrap();
    let pinned = SnapshotWrite::new(at(2), json("2")).pins([event_head("c", 5)]).unwrap();
    let writes = [pinned, SnapshotWrite::new(at(9), json("9"))];
    let writes = PutSnapshots::new(writes).unwrap();
    let _ = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
    clear(&cx, &s).await;
    reclaim(&cx, &s).await;
    // Done: nothing is deleted any more.
    let again = cx.store().reclaim(&s).await.unwrap();
    assert_eq!((again.done, again.deleted), (true, 0));
}

async fn keeps_reused_ids(cx: Cx) {
    let s = old_lifetime(&cx, "reused", 300).await;
    // Half of the old ids get new owners before their old rows are gone.
    append(&cx, &s, many("e", 150)).await;
    assert!(!cx.store().reclaim(&s).await.unwrap().done);
    append(&cx, &s, (151..=200).map(|i| ev(&format!("e{i}")))).await;
    reclaim(&cx, &s).await;
    let again = cx.store().append(&s, batch(many("e", 200))).await.unwrap();
    assert!(again.replayed, "the new owners are remembered");
    assert_eq!(indexes(&again.events), (302..=501).collect::<Vec<u64>>());
    let fresh = cx.store().append(&s, batch([ev("e201")])).await.unwrap();
    assert!(!fresh.replayed, "the old owner is gone");
}

async fn keeps_the_lifetime(cx: Cx) {
    let s = old_lifetime(&cx, "keeps", 300).await;
    let served = serve_log("c", all_types("log"));
    let events = many("new", 4).into_iter();
    let events = events.map(|event| event.targets([to_event("c"), to_lane("c", "l")]));
    let _ = cx.store().append(&s, batch(events).served(served)).await.unwrap();
    let heads = claim_all(&cx, &s).await;
    // Heads of 302: event, lane, log; then the events 303 to 305.
    assert_eq!(refs(&heads)[..3], [
        event_head("c", 302),
        lane_head("c", "l", 302),
        log_head("c", "log", 302)
    ]);
    let returned = complete(&heads[0]).events([ev("child")]).unwrap();
    let done = expect_completed(cx.store().complete_attempt(&s, returned.clone()).await);
    bury(&cx, &s, &heads[3]).await;
    let reducer = ReducerName::new("r").unwrap();
    let pinned = SnapshotWrite::new(at(302), json("1")).pins([event_head("c", 304)]).unwrap();
    let writes = PutSnapshots::new([pinned, SnapshotWrite::new(at(304), json("2"))]).unwrap();
    let _ = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();

    let before = (log(&cx, &s).await, cx.store().all_cursors(&s).await.unwrap());
    let dead = cx.store().all_dead_letters(&s).await.unwrap();
    reclaim(&cx, &s).await;
    assert_eq!(log(&cx, &s).await, before.0);
    assert_eq!(cx.store().all_cursors(&s).await.unwrap(), before.1);
    assert_eq!(cx.store().all_dead_letters(&s).await.unwrap(), dead);
    for (through, state) in [(303, "1"), (305, "2")] {
        let read = ReadState::through(at(through));
        let read = cx.store().read_state(&s, &reducer, read).await.unwrap();
        assert_eq!(read.snapshot.unwrap().state.as_str(), state);
    }
    let again = expect_completed(cx.store().complete_attempt(&s, returned).await);
    assert_eq!((again.replayed, again.events), (true, done.events));
    for head in &heads[1..3] {
        finish(&cx, &s, head).await;
    }
}

async fn keeps_timers(cx: Cx) {
    let s = old_lifetime(&cx, "timers", 300).await;
    let timer = Schedule::new("k", secs(1), ev("timer")).unwrap().origin_index(at(301));
    let _ = cx.timers().schedule(&s, timer).await.unwrap();
    reclaim(&cx, &s).await;
    let listed = cx.timers().timers(&s, Page::first()).await.unwrap().timers;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].key, "k");
}

async fn interrupted_between_calls(cx: Cx) {
    let s = old_lifetime(&cx, "between", 1_000).await;
    // After each piece the lifetime works as if nothing happened.
    for round in 1..=1_000 {
        let done = cx.store().reclaim(&s).await.unwrap().done;
        let id = format!("new{round}");
        append(&cx, &s, [ev(&id).target(to_lane("c", "l"))]).await;
        let head = claim_one(&cx, &s, "c").await;
        assert_eq!((head.event.id.as_str(), head.attempt()), (&*id, 1));
        finish(&cx, &s, &head).await;
        assert_eq!(log(&cx, &s).await[0].index, 1_001);
        // A worker from before the clear is told so whether its rows are gone or not.
        let old = a2_core::CompleteAttempt::new(event_head("c", 1_000), 1);
        expect_superseded(cx.store().complete_attempt(&s, old).await);
        if done {
            return;
        }
    }
    panic!("not done after 1,000 calls");
}

async fn interrupted_within_a_call(cx: Cx) {
    let s = old_lifetime(&cx, "within", 1_500).await;
    let mut delay = 0;
    for _ in 0..60 {
        // Dropped somewhere on the way: a piece is gone or is not.
        let wait = std::time::Duration::from_micros(delay);
        let answer = tokio::time::timeout(wait, cx.store().reclaim(&s)).await;
        if answer.is_ok_and(|answer| answer.unwrap().done) {
            break;
        }
        delay = (delay + 97) % 1_500;
        assert_eq!(indexes(&log(&cx, &s).await), [1_501]);
    }
    reclaim(&cx, &s).await;
    let fresh = cx.store().append(&s, batch(many("e", 1_500))).await.unwrap();
    assert!(!fresh.replayed);
    assert_eq!(fresh.events[0].index, 1_502);
}

async fn concurrent_calls_and_appends(cx: Cx) {
    let s = old_lifetime(&cx, "concurrent", 1_000).await;
    let reclaimers = (0..4).map(|_| {
        let (cx, s) = (cx.clone(), s.clone());
        tokio::spawn(async move { reclaim(&cx, &s).await })
    });
    let appenders = (0..4).map(|task| {
        let (cx, s) = (cx.clone(), s.clone());
        // They take the old ids.
        tokio::spawn(async move {
            for i in 1..=50 {
                let id = format!("e{}", task * 50 + i);
                append(&cx, &s, [ev(&id).target(to_lane("c", &id))]).await;
            }
            0
        })
    });
    for task in join_all(reclaimers.chain(appenders)).await {
        task.unwrap();
    }
    let stored = log(&cx, &s).await;
    assert_eq!(indexes(&stored), (1_001..=1_201).collect::<Vec<u64>>());
    assert!(cx.store().append(&s, batch(many("e", 200))).await.unwrap().replayed);
    let most = claim().limit(1_000).unwrap();
    assert_eq!(take(&cx, &s, most).await.len(), 200);
}

async fn two_lifetimes(cx: Cx) {
    let s = old_lifetime(&cx, "two", 300).await;
    let _ = cx.store().reclaim(&s).await.unwrap();
    append(&cx, &s, many("e", 300)).await;
    assert_eq!(clear(&cx, &s).await, 602);
    append(&cx, &s, many("e", 3)).await;
    reclaim(&cx, &s).await;
    let stored = log(&cx, &s).await;
    assert_eq!(indexes(&stored), [602, 603, 604, 605]);
    assert_eq!(ids(&stored)[1..], ["e1", "e2", "e3"]);
    assert!(cx.store().append(&s, batch(many("e", 3))).await.unwrap().replayed);
}

async fn leases_gone(cx: Cx) {
    let s = cx.session("leases");
    let mut events = many("e", 6);
    for (i, event) in events.iter_mut().enumerate() {
        let target = if i < 5 { to_event("c") } else { to_lane("c", "l") };
        *event = event.clone().target(target);
    }
    append(&cx, &s, events).await;
    assert_eq!(claim_all(&cx, &s).await.len(), 6);
    clear(&cx, &s).await;
    reclaim(&cx, &s).await;
    cx.pass(secs(120)).await;
    for _ in 0..20 {
        expect_settled(cx.store().claim_available(&s, claim()).await);
    }
    assert_eq!(cx.store().all_cursors(&s).await.unwrap(), []);
    append(&cx, &s, [ev("new").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    assert_eq!((head.event.id.as_str(), head.attempt()), ("new", 1));
}

async fn leases_superseded_after(cx: Cx) {
    let s = cx.session("after");
    let log = LogDeclaration::new("log").unwrap();
    let event = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    let _ = cx.store().append(&s, batch([event]).served(serve_log("c", log.clone()))).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(heads.len(), 3);
    clear(&cx, &s).await;
    append(&cx, &s, [ev("b")]).await;
    reclaim(&cx, &s).await;
    let claims: Vec<_> = heads.iter().map(|head| head.attempt_ref()).collect();
    let renew = RenewClaims::new(WORKER, claims.clone(), secs(60)).unwrap();
    assert_eq!(cx.store().renew_claims(&s, renew).await.unwrap().superseded, claims);
    for head in &heads {
        let returned = complete(head).events([ev("child")]).unwrap();
        expect_superseded(cx.store().complete_attempt(&s, returned).await);
        let failed = cx.store().fail_attempt(&s, fail(head)).await.unwrap();
        assert_eq!(failed.outcome, Failure::Superseded);
        let stale = batch([ev("x").cause(head.cause())]);
        assert_code(cx.store().append(&s, stale).await, "SUPERSEDED_ATTEMPT");
    }
    assert_eq!(indexes(&crate::kit::log(&cx, &s).await), [2, 3]);
    // The log cursor lives on.
    let woken = cx.store().wake_log(&s, WakeLog::new("c", log).unwrap()).await.unwrap();
    assert_eq!((woken.cursor.position.get(), woken.cursor.head), (2, Some(at(3))));
}
