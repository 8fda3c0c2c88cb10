//! Limits: what is at one works, what is above is refused before anything is written.

use a2_core::{
    Append, ClaimAvailable, Consumer, CursorRef, EventType, Json, LogTypes, NewEvent, Page,
    PresenceUpdate, PutSnapshots, ReadRange, ReadState, ReducerName, ReleaseClaims, RenewClaims,
    Schedule, Served, ServedConsumer, SnapshotWrite, StoreExt,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "limits.batch.ten_thousand_events" => batch_events: rules(R10, F34), slow;
    "limits.batch.ten_thousand_returned_events" => batch_returned_events:
        rules(R10, R52, F34), slow;
    "limits.batch.past_sixteen_bits_of_parameters" => batch_parameters: rules(R10, R36, F34), slow;
    "limits.batch.refused_at_event_9000" => batch_refused_late: rules(R36, R40, R52, F34), slow;
    "limits.batch.targets" => batch_targets: rules(R10, R14);
    "limits.batch.bytes" => batch_bytes: rules(R10, R14), slow;
    "limits.payload.longest" => payload_longest: rules(R10, F35), slow;
    "limits.payload.too_long" => payload_too_long: rules(R10, R14, F35), slow;
    "limits.state.longest" => state_longest: rules(R10, F35), slow;
    "limits.served.entries" => served_entries: rules(R10, R19);
    "limits.served.types" => served_types: rules(R10, R18);
    "limits.claim.limit_and_run" => claim_limit_and_run: rules(R10, R48);
    "limits.claim.lists" => claim_lists: rules(R10, R50, R51), slow;
    "limits.claim.bytes" => claim_bytes: rules(R11), slow;
    "limits.snapshots.writes" => snapshot_writes: rules(R10, R65);
    "limits.snapshots.pins" => snapshot_pins: rules(R10);
    "limits.pages.cursors" => pages_cursors: rules(R62);
    "limits.pages.dead_letters" => pages_dead_letters: rules(R62);
    "limits.pages.timers" => pages_timers: rules(R62, R75), needs(Timers);
    "limits.pages.size" => pages_size: rules(R10, R62);
    "limits.presence.fields_and_values" => presence_fields_and_values: rules(R10), needs(Presence);
    "limits.budget.zero" => budget_zero: rules(R13, R14, R46);
    "limits.timers.event" => timers_event: rules(R14);
];

/// A JSON string of this many bytes.
fn text_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

async fn batch_events(cx: Cx) {
    let s = cx.session("events");
    assert_code(Append::new(many("e", 10_001)), "INVALID_INPUT");
    let events = many("e", 10_000).into_iter().enumerate().map(|(i, event)| {
        event.targets([to_lane("c", "l"), to_lane("c", &format!("lane{}", i % 10))])
    });
    let appended = append(&cx, &s, events).await;
    assert_eq!(appended.len(), 10_000);
    assert_eq!((appended[0].index.get(), appended[9_999].index.get()), (1, 10_000));
    let stored = log(&cx, &s).await;
    assert!(stored == appended, "the stored events are those answered");
    let heads = claim_all(&cx, &s).await;
    assert_eq!(heads.len(), 11, "the lane of all and the ten lanes");
    assert_eq!(refs(&heads)[..2], [lane_head("c", "l", 1), lane_head("c", "lane0", 1)]);
}

async fn batch_returned_events(cx: Cx) {
    let s = cx.session("returned");
    append(&cx, &s, [ev("parent").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    assert_code(complete(&head).events(many("e", 10_001)), "INVALID_INPUT");
    let events = many("e", 10_000).into_iter().map(|event| event.target(to_lane("c", "l")));
    let request = complete(&head).events(events).unwrap();
    let completed = expect_completed(cx.store().complete_attempt(&s, request.clone()).await);
    assert_eq!(completed.events.len(), 10_000);
    assert_eq!(completed.events[9_999].index, 10_001);
    assert_eq!(completed.events[9_999].cause, Some(head.cause()));
    let replayed = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert!(replayed.replayed);
    assert!(replayed.events == completed.events);
    assert_eq!(cx.store().head(&s).await.unwrap(), 10_001);
}

async fn batch_parameters(cx: Cx) {
    // 65,536 parameters are passed with 9, with 8 and with fewer for each event.
    for n in [7_282, 8_192] {
        let s = cx.session("parameters");
        let events = many("e", n).into_iter().enumerate().map(|(i, event)| {
            event.targets([to_event("c"), to_lane("c", &format!("lane{}", i % 3))])
        });
        let appended = append(&cx, &s, events).await;
        assert_eq!((appended.len(), appended[n - 1].index.get()), (n, n as u64));
        let again = cx.store().append(&s, batch(many("e", n))).await.unwrap();
        assert!(again.replayed && again.events == appended);
        let last = claim().served(serve(["c"])).limit(1_000).unwrap();
        let heads = take(&cx, &s, last).await;
        assert_eq!((heads.len(), heads[0].head.clone()), (1_000, event_head("c", 1)));
    }
}

async fn batch_refused_late(cx: Cx) {
    let s = cx.session("late");
    let targeted = ["a", "b"].map(|id| ev(id).target(to_event("c")));
    append(&cx, &s, [ev("e9000")].into_iter().chain(targeted)).await;
    let [done, current] = &claim_all(&cx, &s).await[..] else { panic!("two heads") };
    finish(&cx, &s, done).await;
    // Its id is owned.
    let owned = cx.store().append(&s, batch(many("e", 10_000))).await;
    assert_code(owned, "PARTIAL_DUPLICATE_BATCH");
    let owned = complete(current).events(many("e", 10_000)).unwrap();
    assert_code(cx.store().complete_attempt(&s, owned).await, "PARTIAL_DUPLICATE_BATCH");
    // Its cause is over.
    let mut events = many("x", 10_000);
    events[8_999] = ev("x9000").cause(done.cause());
    assert_code(cx.store().append(&s, batch(events)).await, "SUPERSEDED_ATTEMPT");
    // Of none of them anything is left, neither an event nor an id; the claim still stands.
    assert_eq!(ids(&log(&cx, &s).await), ["e9000", "a", "b"]);
    let mut events = many("e", 10_000);
    events.remove(8_999);
    let appended = append(&cx, &s, events).await;
    assert_eq!((appended[0].index.get(), appended[9_998].index.get()), (4, 10_002));
    let returned = complete(current).events(many("x", 10_000)).unwrap();
    let completed = expect_completed(cx.store().complete_attempt(&s, returned).await);
    assert_eq!((completed.replayed, completed.events[9_999].index.get()), (false, 20_002));
}

async fn batch_targets(cx: Cx) {
    let s = cx.session("targets");
    let lanes = |n: usize| (0..n).map(|i| to_lane("c", &format!("l{i}")));
    assert_code(Append::new([ev("a").targets(lanes(101))]), "INVALID_INPUT");
    let hundred = |n: usize| many("e", n).into_iter().map(|event| event.targets(lanes(100)));
    let one_more = hundred(200).chain([ev("x").target(to_lane("c", "l"))]);
    assert_code(Append::new(one_more), "INVALID_INPUT");
    // 20,000 targets.
    append(&cx, &s, hundred(200)).await;
    let cursors = cx.store().all_cursors(&s).await.unwrap();
    assert_eq!(cursors.len(), 100);
    assert!(cursors.iter().all(|cursor| cursor.head == Some(at(1))));
}

async fn batch_bytes(cx: Cx) {
    let s = cx.session("bytes");
    // Four payloads, four ids of two bytes, four types of one byte: 64 MiB in all.
    let longest = Json::parse(text_of(16 * 1024 * 1024)).unwrap();
    let fitting = Json::parse(text_of(16 * 1024 * 1024 - 12)).unwrap();
    let events = |last: &Json| {
        let payloads = [&longest, &longest, &longest, last];
        ["e1", "e2", "e3", "e4"]
            .into_iter()
            .zip(payloads.map(Json::clone))
            .map(|(id, json)| NewEvent::from_json("t", json).unwrap().id(id).unwrap())
    };
    assert_code(Append::new(events(&longest)), "INVALID_INPUT");
    assert_eq!(indexes(&append(&cx, &s, events(&fitting)).await), [1, 2, 3, 4]);
    assert_eq!(cx.store().head(&s).await.unwrap(), 4);
    let last = cx.store().read(&s, ReadRange::after(at(3))).await.unwrap().events;
    assert!(last[0].payload == fitting);
}

async fn payload_longest(cx: Cx) {
    let s = cx.session("longest");
    let longest = Json::parse(text_of(16 * 1024 * 1024)).unwrap();
    let event = NewEvent::from_json("t", longest.clone()).unwrap().id("a").unwrap();
    let appended = append(&cx, &s, [event.target(to_event("c"))]).await;
    assert!(appended[0].payload == longest);
    append(&cx, &s, [ev("b")]).await;
    let read = cx.store().read(&s, ReadRange::default().limit(1).unwrap()).await.unwrap();
    assert!(read.events[0].payload == longest);
    let head = claim_one(&cx, &s, "c").await;
    assert!(head.event.payload == longest);
    let mut stream = cx.store().stream(&s, at(0));
    assert!(next(&cx, &mut stream).await.payload == longest);
    assert_eq!(next(&cx, &mut stream).await.id, "b");
}

async fn payload_too_long(cx: Cx) {
    let s = cx.session("too-long");
    let error = assert_code(Json::parse(text_of(16 * 1024 * 1024 + 1)), "INVALID_INPUT");
    assert_eq!(error.to_string(), "json: must be at most 16777216 bytes");
    // 300 MiB: refused on the way, without being built.
    let mib = "x".repeat(1024 * 1024);
    let huge = vec![mib.as_str(); 300];
    let error = assert_code(NewEvent::new("t", &huge), "INVALID_INPUT");
    assert_eq!(error.to_string(), "payload: must be at most 16777216 bytes");
    append(&cx, &s, [ev("a")]).await;
    assert_eq!(cx.store().head(&s).await.unwrap(), 1);
}

async fn state_longest(cx: Cx) {
    let s = cx.session("state");
    append(&cx, &s, [ev("a")]).await;
    let reducer = ReducerName::new("r").unwrap();
    let longest = Json::parse(text_of(16 * 1024 * 1024)).unwrap();
    let writes = PutSnapshots::new([SnapshotWrite::new(at(1), longest.clone())]).unwrap();
    let _ = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
    let read = cx.store().read_state(&s, &reducer, ReadState::latest()).await.unwrap();
    assert!(read.snapshot.unwrap().state == longest);
}

async fn served_entries(cx: Cx) {
    let s = cx.session("entries");
    let entries = |n: usize| {
        (0..n).map(|i| {
            ServedConsumer::new(format!("c{i}")).unwrap().log(all_types(&format!("log{i}")))
        })
    };
    assert_code(Served::only(entries(257)), "INVALID_INPUT");
    let served = Served::only(entries(256)).unwrap();
    let appended = cx.store().append(&s, batch([ev("a")]).served(served.clone())).await.unwrap();
    assert!(appended.has_pending);
    let heads = take(&cx, &s, claim().served(served).limit(1_000).unwrap()).await;
    assert_eq!(heads.len(), 256);
    let twice = [ServedConsumer::new("c").unwrap(), ServedConsumer::new("c").unwrap()];
    assert_code(Served::only(twice), "INVALID_INPUT");
}

async fn served_types(cx: Cx) {
    let s = cx.session("types");
    let types = |n: usize| (0..n).map(|i| EventType::new(format!("type{i}")).unwrap());
    assert_code(LogTypes::only(types(101)), "INVALID_INPUT");
    assert_code(LogTypes::only([]), "INVALID_INPUT");
    let hundred = all_types("log").types(LogTypes::only(types(100)).unwrap());
    let events = (0..200).map(|i| event(&format!("type{i}"), "null"));
    let request = batch(events).served(serve_log("c", hundred.clone()));
    let _ = cx.store().append(&s, request).await.unwrap();
    let run = claim().served(serve_log("c", hundred)).run(1_000).unwrap();
    let heads = take(&cx, &s, run).await;
    assert_eq!(heads[0].run.len(), 99, "the first hundred events, the head among them");
    assert_eq!(heads[0].run_through(), at(100));
}

async fn claim_limit_and_run(cx: Cx) {
    let s = cx.session("claim");
    let served = serve_log("reader", all_types("log"));
    let events = many("e", 1_001).into_iter().enumerate();
    // Four consumers: no more than 256 due of each take part in one claim.
    let events = events.map(|(i, event)| event.target(to_event(&format!("c{}", i % 4))));
    let _ = cx.store().append(&s, batch(events).served(served)).await.unwrap();
    for n in [0, 1_001] {
        assert_code(claim().limit(n), "INVALID_INPUT");
        assert_code(claim().run(n), "INVALID_INPUT");
    }
    let most = claim().served(serve(["c0", "c1", "c2", "c3"])).limit(1_000).unwrap();
    let heads = take(&cx, &s, most).await;
    assert_eq!(heads.len(), 1_000);
    assert_eq!(heads[999].head, event_head("c3", 1_000));
    let longest = claim().served(serve(["reader"])).run(1_000).unwrap();
    let heads = take(&cx, &s, longest).await;
    assert_eq!((heads.len(), heads[0].run.len()), (1, 999));
    assert_eq!(heads[0].run_through(), at(1_000));
    // 64 when no limit is given.
    let s = cx.session("default");
    append(&cx, &s, many("e", 65).into_iter().map(|event| event.target(to_event("c")))).await;
    assert_eq!(claim_all(&cx, &s).await.len(), 64);
    assert_eq!(claim_all(&cx, &s).await.len(), 1);
}

async fn claim_lists(cx: Cx) {
    let s = cx.session("lists");
    append(&cx, &s, [ev("a").target(to_event("c")), ev("b").target(to_lane("c", "l"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    let unknown = |n: u64| {
        let heads = (0..n).map(|i| event_head("c", i + 1_000));
        heads.map(|head| a2_core::AttemptRef::new(head, 1))
    };
    let renewals = unknown(9_999).chain([head.attempt_ref()]);
    let renew = RenewClaims::new(WORKER, renewals, secs(60)).unwrap();
    let renewal = cx.store().renew_claims(&s, renew).await.unwrap();
    assert_eq!(renewal.renewed, [head.attempt_ref()]);
    assert_eq!(renewal.superseded, []);
    let releases = unknown(9_999).chain([head.attempt_ref()]);
    let release = ReleaseClaims::new(WORKER, releases).unwrap();
    let released = cx.store().release_claims(&s, release).await.unwrap();
    assert_eq!(released.released, [head.attempt_ref()]);
    assert_code(RenewClaims::new(WORKER, unknown(10_001), secs(60)), "INVALID_INPUT");
    assert_code(ReleaseClaims::new(WORKER, unknown(10_001)), "INVALID_INPUT");
    let c = Consumer::new("c").unwrap();
    let cursors = |n: u64| (1..=n).map(|i| CursorRef::event(c.clone(), at(i)));
    assert_code(claim().exclude(cursors(10_001)), "INVALID_INPUT");
    let heads = take(&cx, &s, claim().exclude(cursors(10_000)).unwrap()).await;
    assert_eq!(refs(&heads), [lane_head("c", "l", 2)]);
}

async fn claim_bytes(cx: Cx) {
    let s = cx.session("bytes");
    let six_mib = text_of(6 * 1024 * 1024);
    for _ in 0..4 {
        append(&cx, &s, [event("t", &six_mib).target(to_event("c"))]).await;
    }
    // The third passes 16 MiB.
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), [event_head("c", 1), event_head("c", 2), event_head("c", 3)]);
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("c", 4)]);
}

async fn snapshot_writes(cx: Cx) {
    let s = cx.session("writes");
    append(&cx, &s, many("e", 101)).await;
    let writes = |n: u64| (1..=n).map(|i| SnapshotWrite::new(at(i), json(&i.to_string())));
    assert_code(PutSnapshots::new(writes(101)), "INVALID_INPUT");
    let reducer = ReducerName::new("r").unwrap();
    let put = PutSnapshots::new(writes(100)).unwrap();
    let put = cx.store().put_snapshots(&s, &reducer, put).await.unwrap();
    assert_eq!(put.stored, [at(100)], "the others are older and not pinned");
    assert_eq!(put.latest_snapshot, Some(at(100)));
}

async fn snapshot_pins(cx: Cx) {
    let s = cx.session("pins");
    append(&cx, &s, many("e", 101).into_iter().map(|event| event.target(to_event("c")))).await;
    let pins = |n: u64| (1..=n).map(|i| event_head("c", i));
    assert_code(SnapshotWrite::new(at(1), json("1")).pins(pins(101)), "INVALID_INPUT");
    let pinned = SnapshotWrite::new(at(1), json("1")).pins(pins(100)).unwrap();
    let writes = PutSnapshots::new([pinned, SnapshotWrite::new(at(2), json("2"))]).unwrap();
    let reducer = ReducerName::new("r").unwrap();
    let put = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
    assert_eq!(put.stored, [at(1), at(2)]);
}

async fn pages_size(cx: Cx) {
    assert_code(Page::first().limit(0), "INVALID_INPUT");
    assert_code(Page::first().limit(1_001), "INVALID_INPUT");
    let s = cx.session("pages");
    append(&cx, &s, many("e", 1_001).into_iter().map(|event| event.target(to_event("c")))).await;
    let page = cx.store().cursors(&s, Page::first()).await.unwrap();
    assert_eq!(page.cursors.len(), 100, "the default");
    let page = cx.store().cursors(&s, Page::first().limit(1_000).unwrap()).await.unwrap();
    assert_eq!(page.cursors.len(), 1_000);
    let rest = cx.store().cursors(&s, Page::at(page.next.unwrap())).await.unwrap();
    assert_eq!((rest.cursors.len(), rest.next), (1, None));
}

async fn pages_cursors(cx: Cx) {
    let s = cx.session("cursors");
    append(&cx, &s, many("e", 7).into_iter().map(|event| event.target(to_event("c")))).await;
    let mut page = Page::first().limit(3).unwrap();
    let mut sizes = Vec::new();
    let mut heads = Vec::new();
    loop {
        let answer = cx.store().cursors(&s, page.clone()).await.unwrap();
        assert_eq!(answer.head, 7);
        sizes.push(answer.cursors.len());
        heads.extend(answer.cursors.iter().map(|cursor| cursor.head.unwrap().get()));
        match answer.next {
            Some(token) => page = page.and_then(token),
            None => break,
        }
    }
    assert!(sizes.iter().all(|size| *size <= 3), "{sizes:?}");
    assert_eq!(heads, [1, 2, 3, 4, 5, 6, 7]);
    // Another listing's token is no token.
    let token = cx.store().cursors(&s, Page::first().limit(3).unwrap()).await.unwrap().next;
    let foreign = Page::at(token.unwrap());
    assert_code(cx.store().dead_letters(&s, foreign.clone()).await, "INVALID_INPUT");
    assert_code(cx.store().sessions(foreign).await, "INVALID_INPUT");
    let junk = Page::at(a2_core::PageToken::from_bytes(*b"\xff{junk"));
    assert_code(cx.store().cursors(&s, junk).await, "INVALID_INPUT");
}

async fn pages_dead_letters(cx: Cx) {
    let s = cx.session("dead");
    append(&cx, &s, many("e", 7).into_iter().map(|event| event.target(to_event("c")))).await;
    for head in claim_all(&cx, &s).await {
        bury(&cx, &s, &head).await;
    }
    let mut page = Page::first().limit(3).unwrap();
    let mut heads = Vec::new();
    loop {
        let answer = cx.store().dead_letters(&s, page.clone()).await.unwrap();
        assert!(answer.heads.len() <= 3);
        heads.extend(refs(&answer.heads).iter().map(|head| head.index.get()));
        match answer.next {
            Some(token) => page = page.and_then(token),
            None => break,
        }
    }
    assert_eq!(heads, [1, 2, 3, 4, 5, 6, 7]);
    let token = cx.store().dead_letters(&s, Page::first().limit(3).unwrap()).await.unwrap().next;
    assert_code(cx.store().cursors(&s, Page::at(token.unwrap())).await, "INVALID_INPUT");
}

async fn pages_timers(cx: Cx) {
    let s = cx.session("timers");
    for key in ["a", "b", "c", "d", "e", "f", "g"] {
        let timer = Schedule::new(key, secs(1), ev(key)).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    let mut page = Page::first().limit(3).unwrap();
    let mut keys = Vec::new();
    loop {
        let answer = cx.timers().timers(&s, page.clone()).await.unwrap();
        assert!(answer.timers.len() <= 3);
        keys.extend(answer.timers.iter().map(|timer| timer.key.as_str().to_owned()));
        match answer.next {
            Some(token) => page = page.and_then(token),
            None => break,
        }
    }
    assert_eq!(keys, ["a", "b", "c", "d", "e", "f", "g"]);
    let token = cx.timers().timers(&s, Page::first().limit(3).unwrap()).await.unwrap().next;
    assert_code(cx.store().cursors(&s, Page::at(token.unwrap())).await, "INVALID_INPUT");
}

async fn presence_fields_and_values(cx: Cx) {
    let ns = cx.namespace("limits");
    let update = || PresenceUpdate::new("p", secs(60)).unwrap();
    let largest = json(&text_of(64 * 1024));
    assert_code(update().set("f", json(&text_of(64 * 1024 + 1))), "INVALID_INPUT");
    let mut most = update();
    for i in 0..64 {
        most = most.set(format!("f{i:02}"), largest.clone()).unwrap();
    }
    assert_code(most.clone().set("one more", json("1")), "INVALID_INPUT");
    assert_code(most.clone().remove("one more"), "INVALID_INPUT");
    let patch = cx.presence().set_presence(&ns, most).await.unwrap().unwrap();
    assert_eq!(patch.values.len(), 64);
    let rows = cx.presence().read_presence(&ns).await.unwrap().rows;
    assert_eq!(rows.len(), 64);
    assert!(rows.iter().all(|row| row.value == largest));
}

async fn budget_zero(cx: Cx) {
    let s = cx.session("budget");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    assert_code(claim().max_failures(0), "INVALID_INPUT");
    assert_code(fail(&head).max_failures(0), "INVALID_INPUT");
    assert_code(ServedConsumer::new("c").unwrap().max_failures(0), "INVALID_INPUT");
    assert_code(ClaimAvailable::new("w", std::time::Duration::ZERO), "INVALID_INPUT");
    finish(&cx, &s, &head).await;
}

async fn timers_event(cx: Cx) {
    let s = cx.session("timer");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    // A timer outlives the attempt: it has no cause, and as many targets as any event.
    assert_code(Schedule::new("k", secs(1), ev("x").cause(head.cause())), "INVALID_INPUT");
    let lanes = (0..101).map(|i| to_lane("c", &i.to_string()));
    assert_code(Schedule::new("k", secs(1), ev("x").targets(lanes)), "INVALID_INPUT");
}
