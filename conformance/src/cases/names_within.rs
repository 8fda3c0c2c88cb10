//! Hostile names within what a store keeps as a whole: causes, completions, pins, timers, lists.

use a2_core::{
    Cause, ClaimAvailable, CursorRef, FireTimers, LogDeclaration, Page, PutSnapshots, ReadState,
    Redrive, RedriveAction, ReducerName, Schedule, Served, ServedConsumer, SnapshotWrite, StoreExt,
};

use super::names::HOSTILE;
use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R8);
    "names.within.causes" => causes: rules(R3, F30);
    "names.within.completions" => completions: rules(R52, F32);
    "names.within.pins" => pins: rules(R64, F30);
    "names.within.timers" => timers: rules(R74, F32), needs(Timers);
    "names.within.served_and_excluded" => served_and_excluded: rules(R19, R44);
    "names.within.dead_letters" => dead_letters: rules(R58, R62);
    "names.within.markers" => markers: rules(R68, F32);
];

/// One event for the lane of each name, consumer and lane of the same name; all claimed.
async fn claimed(cx: &Cx, s: &a2_core::SessionId) -> Vec<a2_core::DispatchedHead> {
    append(cx, s, [ev("parent").targets(HOSTILE.iter().map(|name| to_lane(name, name)))]).await;
    let heads = take(cx, s, claim().limit(1_000).unwrap()).await;
    assert_eq!(heads.len(), HOSTILE.len());
    heads
}

async fn causes(cx: Cx) {
    let s = cx.session("causes");
    let heads = claimed(&cx, &s).await;
    for head in &heads {
        append(&cx, &s, [event("t", "null").cause(head.cause())]).await;
    }
    let stored = log(&cx, &s).await;
    for (event, head) in stored[1..].iter().zip(&heads) {
        assert_eq!(event.cause, Some(Cause::new(head.head.clone(), 1)));
    }
    // Of a log as well, whose name stands where a lane's does.
    let entries = HOSTILE.iter().map(|name| {
        ServedConsumer::new(*name).unwrap().log(LogDeclaration::new(*name).unwrap())
    });
    let s = cx.session("log-causes");
    let request = batch([ev("a")]).served(Served::only(entries).unwrap());
    let _ = cx.store().append(&s, request).await.unwrap();
    for head in take(&cx, &s, claim().limit(1_000).unwrap()).await {
        let name = head.head.consumer.as_str();
        let stored = append(&cx, &s, [event("t", "null").cause(head.cause())]).await;
        assert_eq!(stored[0].cause, Some(Cause::new(log_head(name, name, 1), 1)));
    }
}

async fn completions(cx: Cx) {
    let s = cx.session("completions");
    append(&cx, &s, [ev("parent").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    let children = HOSTILE.iter().map(|name| {
        // Id, type, target: everything of the event has the name.
        let event_type = if *name == "a2.clear" { "t" } else { name };
        event(event_type, "null").id(*name).unwrap().target(to_lane(name, name))
    });
    let request = complete(&head).events(children).unwrap();
    let done = expect_completed(cx.store().complete_attempt(&s, request.clone()).await);
    assert_eq!(ids(&done.events), HOSTILE);
    let again = expect_completed(cx.store().complete_attempt(&s, request.clone()).await);
    assert!(again.replayed);
    assert_eq!(again.events, done.events);
    // The same ids in another order are others.
    let reversed: Vec<_> = request.returned().iter().rev().cloned().collect();
    let other = complete(&head).events(reversed).unwrap();
    assert_code(cx.store().complete_attempt(&s, other).await, "PARTIAL_DUPLICATE_BATCH");
    for (i, name) in HOSTILE.iter().enumerate() {
        let head = claim_one(&cx, &s, name).await;
        assert_eq!(head.head, lane_head(name, name, i as u64 + 2));
    }
}

async fn pins(cx: Cx) {
    let s = cx.session("pins");
    let heads = claimed(&cx, &s).await;
    let n = HOSTILE.len() as u64;
    append(&cx, &s, many("e", HOSTILE.len() + 1)).await;
    let reducer = ReducerName::new("r").unwrap();
    let writes = heads.iter().enumerate().map(|(i, head)| {
        SnapshotWrite::new(at(i as u64 + 1), json("1")).pins([head.head.clone()]).unwrap()
    });
    let latest = SnapshotWrite::new(at(n + 2), json("2"));
    let writes = PutSnapshots::new(writes.chain([latest])).unwrap();
    let put = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
    assert_eq!(put.stored.len(), HOSTILE.len() + 1);
    // Each head lets go of its own.
    for (i, head) in heads.iter().enumerate() {
        let index = at(i as u64 + 1);
        let read = ReadState::through(index);
        let before = cx.store().read_state(&s, &reducer, read.clone()).await.unwrap();
        assert_eq!(before.snapshot.map(|found| found.index), Some(index), "{head:?}");
        finish(&cx, &s, head).await;
        let after = cx.store().read_state(&s, &reducer, read).await.unwrap();
        assert_eq!(after.snapshot, None, "{head:?}");
    }
}

async fn timers(cx: Cx) {
    let s = cx.session("timers");
    for (i, name) in HOSTILE.iter().enumerate() {
        let event_type = if *name == "a2.clear" { "t" } else { name };
        let event = event(event_type, "null").id(*name).unwrap();
        let event = event.targets([to_event(name), to_lane(name, name)]);
        let timer = Schedule::new(format!("{i:03}"), ms(i as u64), event).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    let listed = cx.timers().timers(&s, Page::first()).await.unwrap().timers;
    for (timer, name) in listed.iter().zip(HOSTILE) {
        assert_eq!(timer.event.event_id().unwrap().as_str(), *name);
        assert_eq!(timer.event.target_list(), [to_event(name), to_lane(name, name)]);
    }
    cx.pass(secs(1)).await;
    let fired = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!(ids(&fired.events), HOSTILE);
    for (i, name) in HOSTILE.iter().enumerate() {
        let heads = take(&cx, &s, claim().served(serve([name]))).await;
        let index = i as u64 + 1;
        assert_eq!(refs(&heads), [event_head(name, index), lane_head(name, name, index)]);
    }
}

async fn served_and_excluded(cx: Cx) {
    let s = cx.session("excluded");
    append(&cx, &s, [ev("a").targets(HOSTILE.iter().map(|name| to_lane(name, name)))]).await;
    let everyone = || {
        let entries = HOSTILE.iter().map(|name| ServedConsumer::new(*name).unwrap());
        claim().served(Served::only(entries).unwrap()).limit(1_000).unwrap()
    };
    let excluded = |name: &str| -> ClaimAvailable {
        let others = HOSTILE.iter().filter(|other| **other != name).map(|other| {
            let head = lane_head(other, other, 1);
            CursorRef::lane(head.consumer.clone(), a2_core::Lane::new(other).unwrap())
        });
        everyone().exclude(others).unwrap()
    };
    for name in HOSTILE {
        let heads = take(&cx, &s, excluded(name)).await;
        assert_eq!(refs(&heads), [lane_head(name, name, 1)], "all but {name:?} are excluded");
    }
    let _ = expect_busy(cx.store().claim_available(&s, everyone()).await);
}

async fn dead_letters(cx: Cx) {
    let s = cx.session("dead");
    let heads = claimed(&cx, &s).await;
    for head in &heads {
        bury(&cx, &s, head).await;
    }
    // Small pages: their tokens hold the names.
    let mut listed = Vec::new();
    let mut page = Page::first().limit(2).unwrap();
    loop {
        let dead = cx.store().dead_letters(&s, page.clone()).await.unwrap();
        listed.extend(refs(&dead.heads));
        match dead.next {
            Some(token) => page = page.and_then(token),
            None => break,
        }
    }
    assert_eq!(listed, refs(&heads));
    for (i, head) in listed.into_iter().enumerate() {
        let action = if i % 2 == 0 { RedriveAction::Retry } else { RedriveAction::Skip };
        assert!(cx.store().redrive(&s, Redrive::new(head, action)).await.unwrap().redriven);
    }
    assert_eq!(cx.store().all_dead_letters(&s).await.unwrap(), []);
}

async fn markers(cx: Cx) {
    let s = cx.session("markers");
    for (i, name) in HOSTILE.iter().enumerate() {
        append(&cx, &s, [ev(&format!("a{i}"))]).await;
        let request = a2_core::Clear::new().id(*name).unwrap();
        let first = cx.store().clear(&s, request.clone()).await.unwrap();
        // Two events a round, one marker.
        assert_eq!(first.clear_index.get(), 3 * i as u64 + 2);
        let b = format!("b{i}");
        append(&cx, &s, [ev(&b)]).await;
        let again = cx.store().clear(&s, request).await.unwrap();
        assert_eq!(again.clear_index, first.clear_index, "{name:?} is found");
        assert_eq!(ids(&log(&cx, &s).await), [*name, &*b]);
    }
}
