//! Finding work: which sessions have some, and when. Each case has a store of its own.

use std::collections::BTreeMap;

use a2_core::{
    FireTimers, Page, PageToken, PendingPage, Redrive, RedriveAction, Schedule, Served, SessionId,
    StoreExt, TimerKey, Timestamp, WakeLog,
};
use futures_util::TryStreamExt;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R78), own;
    "pending.live_heads" => live_heads;
    "pending.every_kind_of_cursor" => every_kind_of_cursor: rules(R15);
    "pending.busy_ones_count" => busy_ones_count;
    "pending.dead_letters_do_not" => dead_letters_do_not: rules(R23);
    "pending.served" => served: rules(R19);
    "pending.undeclared_appends_wait" => undeclared_appends_wait: rules(R27);
    "pending.cleared" => cleared: rules(R70);
    "pending.not_before.never_late" => not_before_never_late;
    "pending.not_before.earliest_of_many" => not_before_earliest_of_many;
    "pending.timers" => timers: own, needs(Timers);
    "pending.timers.next_due" => timers_next_due: own, needs(Timers);
    "pending.timers.cleared" => timers_cleared: rules(R70), own, needs(Timers);
    "pending.pages" => pages;
    "pending.pages.while_working" => pages_while_working;
    "pending.pages.foreign_token" => pages_foreign_token: rules(R62);
    "pending.another_handle" => another_handle: own, needs(Another);
];

/// One whole pass: every session with its earliest `not_before`.
async fn pass(cx: &Cx, served: Served) -> BTreeMap<String, Timestamp> {
    let mut all = BTreeMap::new();
    let mut page = Page::first().limit(7).unwrap();
    loop {
        let request = PendingPage::new(served.clone()).page(page.clone());
        let answer = cx.store().pending(request).await.unwrap();
        assert!(answer.sessions.len() <= 7);
        for found in answer.sessions {
            let at = all.entry(found.session.as_str().to_owned()).or_insert(found.not_before);
            *at = found.not_before.min(*at);
        }
        match answer.next {
            Some(token) => page = page.and_then(token),
            None => return all,
        }
    }
}

async fn found(cx: &Cx, served: Served) -> Vec<String> {
    pass(cx, served).await.into_keys().collect()
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

const NOTHING: [&str; 0] = [];

async fn live_heads(cx: Cx) {
    assert_eq!(found(&cx, Served::ALL).await, NOTHING);
    append(&cx, &session("without"), [ev("a")]).await;
    append(&cx, &session("with"), [ev("a").target(to_lane("c", "l"))]).await;
    assert_eq!(found(&cx, Served::ALL).await, ["with"]);
    let head = claim_one(&cx, &session("with"), "c").await;
    finish(&cx, &session("with"), &head).await;
    assert_eq!(found(&cx, Served::ALL).await, NOTHING);
    append(&cx, &session("with"), [ev("b").target(to_lane("c", "l"))]).await;
    assert_eq!(found(&cx, Served::ALL).await, ["with"]);
}

async fn every_kind_of_cursor(cx: Cx) {
    append(&cx, &session("event"), [ev("a").target(to_event("c"))]).await;
    append(&cx, &session("lane"), [ev("a").target(to_lane("c", ""))]).await;
    let log = serve_log("c", all_types(""));
    let _ = cx.store().append(&session("log"), batch([ev("a")]).served(log)).await.unwrap();
    assert_eq!(found(&cx, serve(["c"])).await, ["event", "lane", "log"]);
}

async fn busy_ones_count(cx: Cx) {
    let (leased, held) = (session("leased"), session("held"));
    for s in [&leased, &held] {
        append(&cx, s, [ev("a").target(to_event("c"))]).await;
        let head = claim_one(&cx, s, "c").await;
        if s == &held {
            let fail = fail(&head).retry_after(secs(30));
            let _ = cx.store().fail_attempt(s, fail).await.unwrap();
        }
    }
    assert_eq!(found(&cx, Served::ALL).await, ["held", "leased"]);
}

async fn dead_letters_do_not(cx: Cx) {
    let s = session("dead");
    append(&cx, &s, many("e", 2).into_iter().map(|event| event.target(to_lane("c", "l")))).await;
    let head = claim_one(&cx, &s, "c").await;
    bury(&cx, &s, &head).await;
    assert_eq!(found(&cx, Served::ALL).await, NOTHING, "the lane is blocked");
    let retry = Redrive::new(head.head.clone(), RedriveAction::Retry);
    assert!(cx.store().redrive(&s, retry).await.unwrap().redriven);
    assert_eq!(found(&cx, Served::ALL).await, ["dead"]);
    let again = claim_one(&cx, &s, "c").await;
    bury(&cx, &s, &again).await;
    let skip = Redrive::new(head.head, RedriveAction::Skip);
    assert!(cx.store().redrive(&s, skip).await.unwrap().redriven);
    assert_eq!(found(&cx, Served::ALL).await, ["dead"], "its next event");
}

async fn served(cx: Cx) {
    for name in ["a", "b", "c"] {
        append(&cx, &session(name), [ev("e").target(to_event(name))]).await;
    }
    append(&cx, &session("bc"), [ev("e").targets([to_event("b"), to_lane("c", "l")])]).await;
    assert_eq!(found(&cx, Served::ALL).await, ["a", "b", "bc", "c"]);
    assert_eq!(found(&cx, serve(["b"])).await, ["b", "bc"]);
    assert_eq!(found(&cx, serve(["a", "c"])).await, ["a", "bc", "c"]);
    assert_eq!(found(&cx, serve(["nobody"])).await, NOTHING);
    assert_eq!(found(&cx, serve([])).await, NOTHING, "an empty list serves nothing");
}

async fn undeclared_appends_wait(cx: Cx) {
    let s = session("waits");
    append(&cx, &s, [ev("a")]).await;
    let log = all_types("log").backfill();
    assert_eq!(found(&cx, serve_log("c", log.clone())).await, NOTHING, "asking touches nothing");
    let _ = cx.store().wake_log(&s, WakeLog::new("c", log).unwrap()).await.unwrap();
    assert_eq!(found(&cx, serve(["c"])).await, ["waits"]);
}

async fn cleared(cx: Cx) {
    let s = session("cleared");
    append(&cx, &s, many("e", 9).into_iter().map(|event| event.target(to_lane("c", "l")))).await;
    claim_one(&cx, &s, "c").await;
    clear(&cx, &s).await;
    while !cx.store().reclaim(&s).await.unwrap().done {}
    assert_eq!(found(&cx, Served::ALL).await, NOTHING);
    cx.pass(secs(120)).await;
    assert_eq!(found(&cx, Served::ALL).await, NOTHING);
}

async fn not_before_never_late(cx: Cx) {
    let (free, leased, held) = (session("free"), session("leased"), session("held"));
    for s in [&free, &leased, &held] {
        append(&cx, s, [ev("a").target(to_event("c"))]).await;
    }
    take(&cx, &leased, claim_as(WORKER, secs(10))).await;
    let head = claim_one(&cx, &held, "c").await;
    let fail = fail(&head).retry_after(secs(20));
    let _ = cx.store().fail_attempt(&held, fail).await.unwrap();
    let pass = pass(&cx, Served::ALL).await;
    // A lower bound: what can be claimed then is not promised later.
    assert!(pass["free"].as_millis() <= 1_700_000_000_000, "{pass:?}");
    assert!(pass["leased"].as_millis() <= 1_700_000_010_000, "{pass:?}");
    assert!(pass["held"].as_millis() <= 1_700_000_020_000, "{pass:?}");
}

async fn not_before_earliest_of_many(cx: Cx) {
    let s = session("many");
    append(&cx, &s, many("e", 3).into_iter().map(|event| event.target(to_event("c")))).await;
    for ttl in [30, 10, 20] {
        take(&cx, &s, claim_as(WORKER, secs(ttl)).limit(1).unwrap()).await;
    }
    let before = pass(&cx, Served::ALL).await["many"];
    assert!(before.as_millis() <= 1_700_000_010_000, "{before:?}");
    // An event that comes to a session whose work is all busy can be claimed at once.
    append(&cx, &s, [ev("new").target(to_event("d"))]).await;
    let before = pass(&cx, Served::ALL).await["many"];
    assert!(before.as_millis() <= 1_700_000_000_000, "{before:?}");
}

async fn timers(cx: Cx) {
    let s = session("timer");
    let timer = Schedule::new("k", secs(5), ev("a")).unwrap();
    let _ = cx.timers().schedule(&s, timer).await.unwrap();
    // Whoever asks: a timer is nobody's in particular.
    for served in [Served::ALL, serve(["nobody"]), serve([])] {
        let pass = pass(&cx, served).await;
        assert!(pass["timer"].as_millis() <= 1_700_000_005_000, "{pass:?}");
    }
    cx.pass(secs(5)).await;
    let _ = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!(found(&cx, Served::ALL).await, NOTHING, "fired, without a target");
    let timer = Schedule::new("k", secs(5), ev("b")).unwrap();
    let _ = cx.timers().schedule(&s, timer).await.unwrap();
    assert_eq!(found(&cx, Served::ALL).await, ["timer"]);
    assert!(cx.timers().unschedule(&s, &TimerKey::new("k").unwrap()).await.unwrap().removed);
    assert_eq!(found(&cx, Served::ALL).await, NOTHING);
}

async fn timers_next_due(cx: Cx) {
    let s = session("timers");
    for (key, after) in [("a", 30), ("b", 10), ("c", 20)] {
        let timer = Schedule::new(key, secs(after), ev(key)).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    let not_before = pass(&cx, Served::ALL).await["timers"];
    assert_eq!(not_before.as_millis(), 1_700_000_010_000, "pending knows the next due time");
    let later = Schedule::new("b", secs(60), ev("b")).unwrap();
    let _ = cx.timers().schedule(&s, later).await.unwrap();
    let not_before = pass(&cx, Served::ALL).await["timers"];
    assert_eq!(not_before.as_millis(), 1_700_000_020_000);
}

async fn timers_cleared(cx: Cx) {
    let s = session("timer");
    append(&cx, &s, [ev("a")]).await;
    let timer = Schedule::new("k", secs(5), ev("b")).unwrap().origin_index(at(1));
    let _ = cx.timers().schedule(&s, timer).await.unwrap();
    assert_eq!(found(&cx, Served::ALL).await, ["timer"]);
    clear(&cx, &s).await;
    while !cx.store().reclaim(&s).await.unwrap().done {}
    assert_eq!(found(&cx, Served::ALL).await, NOTHING);
}

async fn pages(cx: Cx) {
    let mut expected = Vec::new();
    for i in 0..150 {
        let name = format!("s{i:03}");
        let to = if i % 3 == 0 { "c" } else { "d" };
        append(&cx, &session(&name), [ev("a").targets([to_event(to), to_lane(to, "l")])]).await;
        if i % 3 == 0 {
            expected.push(name);
        }
    }
    assert_eq!(found(&cx, serve(["c"])).await, expected);
    assert_eq!(found(&cx, Served::ALL).await.len(), 150);
    let store = cx.store();
    let all: Vec<_> = (&store).all_pending(serve(["c", "d"])).try_collect().await.unwrap();
    let names: std::collections::BTreeSet<_> = all.iter().map(|found| &found.session).collect();
    assert_eq!(names.len(), 150);
}

async fn pages_while_working(cx: Cx) {
    for i in 0..60 {
        append(&cx, &session(&format!("s{i:03}")), [ev("a").target(to_event("c"))]).await;
    }
    // Every third is worked off or gets busy while the pass goes on; the others are to be found.
    let mut listed = Vec::new();
    let mut page = Page::first().limit(3).unwrap();
    for round in 0..1_000 {
        let request = PendingPage::new(Served::ALL).page(page.clone());
        let answer = cx.store().pending(request).await.unwrap();
        listed.extend(answer.sessions.iter().map(|found| found.session.as_str().to_owned()));
        let Some(token) = answer.next else { break };
        page = page.and_then(token);
        if round < 20 {
            let s = session(&format!("s{:03}", round * 3));
            let head = claim_one(&cx, &s, "c").await;
            if round % 2 == 0 {
                finish(&cx, &s, &head).await;
            }
        }
    }
    for i in (0..60).filter(|i| i % 3 != 0) {
        let name = format!("s{i:03}");
        assert!(listed.contains(&name), "{name} had work throughout");
    }
}

async fn pages_foreign_token(cx: Cx) {
    for name in ["a", "b", "c"] {
        append(&cx, &session(name), [ev("a").target(to_event("c"))]).await;
    }
    let one = Page::first().limit(1).unwrap();
    let token = cx.store().sessions(one).await.unwrap().next.unwrap();
    for token in [token, PageToken::from_bytes(*b"junk")] {
        let request = PendingPage::new(Served::ALL).page(Page::at(token));
        assert_code(cx.store().pending(request).await, "INVALID_INPUT");
    }
}

async fn another_handle(cx: Cx) {
    let other = cx.another().await;
    append(&cx, &session("a"), [ev("a").target(to_event("c"))]).await;
    append(&other, &session("b"), [ev("a").target(to_event("c"))]).await;
    assert_eq!(found(&cx, Served::ALL).await, ["a", "b"]);
    assert_eq!(found(&other, Served::ALL).await, ["a", "b"]);
    let head = claim_one(&other, &session("a"), "c").await;
    finish(&other, &session("a"), &head).await;
    assert_eq!(found(&cx, Served::ALL).await, ["b"]);
}
