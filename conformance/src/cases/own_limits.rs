//! A store's own limits: lower ones than the model's, which bound what is given to it and nothing that
//! it has.

use a2_core::{
    Append, Clear, CompleteAttempt, Error, FireTimers, PresenceUpdate, PutSnapshots, ReadRange,
    ReadState, ReducerName, Result, Schedule, SnapshotWrite, StoreExt, StoreLimits,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: needs(Limits), rules(R91);
    "limits.own.payload" => payload: rules(R14);
    "limits.own.batch_events" => batch_events: rules(R14);
    "limits.own.event_targets" => event_targets: rules(R14);
    "limits.own.batch_targets" => batch_targets: rules(R14);
    "limits.own.batch_bytes" => batch_bytes: rules(R14);
    "limits.own.returned" => returned: rules(R14, R52);
    "limits.own.snapshots" => snapshots: rules(R14);
    "limits.own.timer" => timer: rules(R14), needs(Limits, Timers);
    "limits.own.presence" => presence: rules(R14), needs(Limits, Presence);
    "limits.own.never_higher" => never_higher: rules(R10, R14);
    "limits.own.of_each_handle" => of_each_handle;
    "limits.own.append_sent_again" => append_sent_again: rules(R92);
    "limits.own.completion_sent_again" => completion_sent_again: rules(R92);
    "limits.own.before_other_checks" => before_other_checks: rules(R92);
    "limits.own.what_is_stored_stays" => what_is_stored_stays: rules(R92);
    "limits.own.timers_that_are_set_fire" => timers_that_are_set_fire:
        rules(R92), needs(Limits, Timers);
];

/// A JSON string of this many bytes.
fn text_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

/// An event of this id with a payload of this many bytes.
fn sized(id: &str, bytes: usize) -> a2_core::NewEvent {
    event("t", &text_of(bytes)).id(id).unwrap()
}

/// A handle on the case's data with lower limits.
async fn limited(cx: &Cx, lower: impl FnOnce(StoreLimits) -> Result<StoreLimits>) -> Cx {
    cx.limited(lower(StoreLimits::new()).unwrap()).await
}

/// Expects a refusal in these words.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T>, text: &str) {
    let error: Error = assert_code(result, "INVALID_INPUT");
    assert_eq!(error.to_string(), text);
}

async fn payload(cx: Cx) {
    let s = cx.session("payload");
    let small = limited(&cx, |limits| limits.json_bytes(100)).await;
    let above = batch([sized("a", 100), sized("b", 101)]);
    assert_refused(
        small.store().append(&s, above).await,
        "events[1].payload: must be at most 100 bytes",
    );
    assert_eq!(small.store().head(&s).await.unwrap(), 0, "nothing was written");
    assert_eq!(ids(&append(&small, &s, [sized("a", 100), sized("b", 100)]).await), ["a", "b"]);
}

async fn batch_events(cx: Cx) {
    let s = cx.session("events");
    let small = limited(&cx, |limits| limits.batch_events(3)).await;
    assert_refused(
        small.store().append(&s, batch(many("e", 4))).await,
        "events: must be at most 3 in one batch",
    );
    assert_eq!(small.store().head(&s).await.unwrap(), 0, "nothing was written");
    assert_eq!(indexes(&append(&small, &s, many("e", 3)).await), [1, 2, 3]);
    let nothing = small.store().append(&s, batch([])).await.unwrap();
    assert_eq!(nothing.events, []);
}

async fn event_targets(cx: Cx) {
    let s = cx.session("of-one");
    let small = limited(&cx, |limits| limits.event_targets(2)).await;
    let lanes = |n: usize| (0..n).map(|i| to_lane("c", &format!("l{i}")));
    let above = batch([ev("a").targets(lanes(2)), ev("b").targets(lanes(3))]);
    assert_refused(small.store().append(&s, above).await, "events[1].targets: must be at most 2");
    assert_eq!(small.store().head(&s).await.unwrap(), 0, "nothing was written");
    // The same target twice counts once.
    let twice = lanes(2).chain(lanes(2));
    append(&small, &s, [ev("a").targets(twice), ev("b").targets(lanes(2))]).await;
    assert_eq!(small.store().all_cursors(&s).await.unwrap().len(), 2);
}

async fn batch_targets(cx: Cx) {
    let s = cx.session("of-all");
    let small = limited(&cx, |limits| limits.batch_targets(3)).await;
    let lanes = |n: usize| (0..n).map(|i| to_lane("c", &format!("l{i}")));
    let above = batch([ev("a").targets(lanes(2)), ev("b").targets(lanes(2))]);
    assert_refused(
        small.store().append(&s, above).await,
        "events: must have at most 3 targets in one batch",
    );
    assert_eq!(small.store().head(&s).await.unwrap(), 0, "nothing was written");
    append(&small, &s, [ev("a").targets(lanes(2)), ev("b").targets(lanes(1))]).await;
    assert_eq!(
        refs(&claim_all(&small, &s).await),
        [lane_head("c", "l0", 1), lane_head("c", "l1", 1)]
    );
}

async fn batch_bytes(cx: Cx) {
    let s = cx.session("bytes");
    let small = limited(&cx, |limits| limits.batch_bytes(100)).await;
    // Two ids and two types of one byte, a consumer and a lane of one byte, payloads.
    let events = |last: usize| [sized("a", 50).target(to_lane("c", "l")), sized("b", last)];
    assert_refused(
        small.store().append(&s, batch(events(45))).await,
        "events: must have at most 100 bytes in one batch",
    );
    assert_eq!(small.store().head(&s).await.unwrap(), 0, "nothing was written");
    assert_eq!(indexes(&append(&small, &s, events(44)).await), [1, 2]);
}

async fn returned(cx: Cx) {
    let s = cx.session("returned");
    append(&cx, &s, [ev("p").target(to_event("c")), ev("q").target(to_event("c"))]).await;
    let small = limited(&cx, |limits| {
        limits
            .json_bytes(100)?
            .batch_events(2)?
            .event_targets(2)?
            .batch_targets(3)?
            .batch_bytes(200)
    })
    .await;
    let one = claim().limit(1).unwrap();
    let head = take(&small, &s, one.clone()).await.remove(0);
    let lanes = |n: usize| (0..n).map(|i| to_lane("d", &format!("l{i}")));
    let two_and = |n: usize| [ev("a").targets(lanes(2)), ev("b").targets(lanes(n))];
    for (events, text) in [
        (vec![sized("a", 101)], "events[0].payload: must be at most 100 bytes"),
        (many("e", 3), "events: must be at most 2 in one batch"),
        (vec![ev("a").targets(lanes(3))], "events[0].targets: must be at most 2"),
        (two_and(2).into(), "events: must have at most 3 targets in one batch"),
        (
            vec![sized("a", 100), sized("b", 100)],
            "events: must have at most 200 bytes in one batch",
        ),
    ] {
        let above = complete(&head).events(events).unwrap().then_claim(one.clone());
        assert_refused(small.store().complete_attempt(&s, above).await, text);
    }
    // Nothing was done and nothing claimed; the claim stands.
    assert_eq!(small.store().head(&s).await.unwrap(), 2);
    let fits = complete(&head).events(two_and(1)).unwrap().then_claim(one);
    let done = small.store().complete_attempt(&s, fits).await;
    let claim = done.as_ref().unwrap().claim.clone();
    assert_eq!(indexes(&expect_completed(done).events), [3, 4]);
    let next = expect_claimed(Ok(claim.unwrap())).heads;
    assert_eq!((refs(&next), next[0].attempt()), (vec![event_head("c", 2)], 1));
}

async fn snapshots(cx: Cx) {
    let s = cx.session("snapshots");
    append(&cx, &s, many("e", 3)).await;
    let small =
        limited(&cx, |limits| limits.json_bytes(100)?.snapshot_writes(2)?.batch_bytes(150)).await;
    let reducer = ReducerName::new("r").unwrap();
    let put = |sizes: &[usize]| {
        let write =
            |(index, bytes): (u64, &usize)| SnapshotWrite::new(at(index), json(&text_of(*bytes)));
        PutSnapshots::new((1..).zip(sizes).map(write)).unwrap()
    };
    for (sizes, text) in [
        (&[50, 101][..], "writes[1].state: must be at most 100 bytes"),
        (&[10, 10, 10], "writes: must be at most 2"),
        (&[51, 100], "writes: must have at most 150 bytes of state"),
    ] {
        assert_refused(small.store().put_snapshots(&s, &reducer, put(sizes)).await, text);
    }
    let read = small.store().read_state(&s, &reducer, ReadState::latest()).await.unwrap();
    assert_eq!(read.latest_snapshot, None, "nothing was stored");
    let done = small.store().put_snapshots(&s, &reducer, put(&[50, 100])).await.unwrap();
    assert_eq!(done.latest_snapshot, Some(at(2)));
}

async fn timer(cx: Cx) {
    let s = cx.session("timer");
    let small =
        limited(&cx, |limits| limits.json_bytes(100)?.event_targets(2)?.batch_bytes(50)).await;
    let lanes = |n: usize| (0..n).map(|i| to_lane("d", &format!("l{i}")));
    let timer = |event| Schedule::new("k", secs(1), event).unwrap();
    for (event, text) in [
        (sized("a", 101), "event.payload: must be at most 100 bytes"),
        (ev("a").targets(lanes(3)), "event.targets: must be at most 2"),
        (sized("a", 49), "event: must have at most 50 bytes"),
    ] {
        assert_refused(small.timers().schedule(&s, timer(event)).await, text);
    }
    let fewer = limited(&cx, |limits| limits.batch_targets(1)).await;
    assert_refused(
        fewer.timers().schedule(&s, timer(ev("a").targets(lanes(2)))).await,
        "event.targets: must be at most 1",
    );
    let page = small.timers().timers(&s, a2_core::Page::first()).await.unwrap();
    assert_eq!(page.timers, [], "none was set");
    let _ = small.timers().schedule(&s, timer(sized("a", 48))).await.unwrap();
    let page = small.timers().timers(&s, a2_core::Page::first()).await.unwrap();
    assert_eq!(page.timers.len(), 1);
}

async fn presence(cx: Cx) {
    let ns = cx.namespace("own");
    let small = limited(&cx, |limits| limits.presence_fields(2)?.presence_value_bytes(10)).await;
    let update = || PresenceUpdate::new("p", secs(60)).unwrap();
    let above = update().set("f", json(&text_of(11))).unwrap();
    assert_refused(
        small.presence().set_presence(&ns, above).await,
        "value: must be at most 10 bytes",
    );
    let fits = update().set("f", json(&text_of(10))).unwrap().remove("g").unwrap();
    let above = fits.clone().remove("h").unwrap();
    assert_refused(small.presence().set_presence(&ns, above).await, "fields: must be at most 2");
    assert_eq!(small.presence().read_presence(&ns).await.unwrap().rows, []);
    let _ = small.presence().set_presence(&ns, fits).await.unwrap();
    assert_eq!(small.presence().read_presence(&ns).await.unwrap().rows.len(), 1);
}

async fn never_higher(_: Cx) {
    let limits = StoreLimits::new();
    for most in [0, 16 * 1024 * 1024 + 1] {
        assert_refused(limits.json_bytes(most), "json_bytes: must be 1 to 16777216");
    }
    for most in [0, 10_001] {
        assert_refused(limits.batch_events(most), "batch_events: must be 1 to 10000");
    }
    for most in [0, 20_001] {
        assert_refused(limits.batch_targets(most), "batch_targets: must be 1 to 20000");
    }
    for most in [0, 101] {
        assert_refused(limits.event_targets(most), "event_targets: must be 1 to 100");
        assert_refused(limits.snapshot_writes(most), "snapshot_writes: must be 1 to 100");
    }
    for most in [0, 64 * 1024 * 1024 + 1] {
        assert_refused(limits.batch_bytes(most), "batch_bytes: must be 1 to 67108864");
    }
    for most in [0, 65] {
        assert_refused(limits.presence_fields(most), "presence_fields: must be 1 to 64");
    }
    for most in [0, 64 * 1024 + 1] {
        let refused = limits.presence_value_bytes(most);
        assert_refused(refused, "presence_value_bytes: must be 1 to 65536");
    }
}

async fn of_each_handle(cx: Cx) {
    let s = cx.session("handles");
    let small = limited(&cx, |limits| limits.json_bytes(100)).await;
    let smaller = limited(&cx, |limits| limits.json_bytes(50)).await;
    assert_code(smaller.store().append(&s, batch([sized("a", 51)])).await, "INVALID_INPUT");
    assert_code(small.store().append(&s, batch([sized("a", 101)])).await, "INVALID_INPUT");
    append(&small, &s, [sized("a", 51)]).await;
    append(&cx, &s, [sized("b", 101)]).await;
    assert_eq!(ids(&log(&smaller, &s).await), ["a", "b"]);
}

async fn append_sent_again(cx: Cx) {
    let s = cx.session("again");
    let request = batch([sized("a", 101)]);
    let first = cx.store().append(&s, request.clone()).await.unwrap();
    let small = limited(&cx, |limits| limits.json_bytes(100)).await;
    assert_refused(
        small.store().append(&s, request.clone()).await,
        "events[0].payload: must be at most 100 bytes",
    );
    let again = cx.store().append(&s, request).await.unwrap();
    assert!(again.replayed && again.events == first.events);
    // A batch is judged by what is sent, not by what is stored under its ids.
    let shorter = small.store().append(&s, batch([sized("a", 100)])).await.unwrap();
    assert!(shorter.replayed && shorter.events == first.events);
}

async fn completion_sent_again(cx: Cx) {
    let s = cx.session("again");
    append(&cx, &s, [ev("p").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    let request = complete(&head).events([sized("a", 101)]).unwrap();
    let first = expect_completed(cx.store().complete_attempt(&s, request.clone()).await);
    let small = limited(&cx, |limits| limits.json_bytes(100)).await;
    assert_refused(
        small.store().complete_attempt(&s, request.clone()).await,
        "events[0].payload: must be at most 100 bytes",
    );
    let again = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert!(again.replayed && again.events == first.events);
}

async fn before_other_checks(cx: Cx) {
    let s = cx.session("first");
    append(&cx, &s, [ev("a"), ev("p").target(to_event("c"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    finish(&cx, &s, &head).await;
    let small = limited(&cx, |limits| limits.json_bytes(100)).await;
    let text = "events[0].payload: must be at most 100 bytes";
    let above = |event: a2_core::NewEvent| Append::new([event, ev("a")]).unwrap();
    // In part a duplicate, and another head than the expected one; a cause that is over.
    let conflict = above(sized("x", 101)).expected_head(at(7));
    assert_refused(small.store().append(&s, conflict).await, text);
    let over = above(sized("x", 101).cause(head.cause()));
    assert_refused(small.store().append(&s, over).await, text);
    // Superseded; an index that does not exist.
    let superseded = CompleteAttempt::new(head.head.clone(), head.attempt() + 1);
    let unknown = CompleteAttempt::new(event_head("c", 9), 1);
    for request in [superseded, unknown] {
        let request = request.events([sized("x", 101)]).unwrap();
        assert_refused(small.store().complete_attempt(&s, request).await, text);
    }
    // A snapshot above the log's head.
    let reducer = ReducerName::new("r").unwrap();
    let write = SnapshotWrite::new(at(9), json(&text_of(101)));
    let put = PutSnapshots::new([write]).unwrap();
    assert_refused(
        small.store().put_snapshots(&s, &reducer, put).await,
        "writes[0].state: must be at most 100 bytes",
    );
}

async fn what_is_stored_stays(cx: Cx) {
    let s = cx.session("stored");
    let lanes = (0..3).map(|i| to_lane("c", &format!("l{i}")));
    append(&cx, &s, [sized("a", 200).targets(lanes), sized("b", 200), sized("d", 200)]).await;
    let reducer = ReducerName::new("r").unwrap();
    let put = PutSnapshots::new([SnapshotWrite::new(at(1), json(&text_of(200)))]).unwrap();
    let _ = cx.store().put_snapshots(&s, &reducer, put).await.unwrap();
    let small = limited(&cx, |limits| {
        limits.json_bytes(1)?.batch_events(1)?.batch_targets(1)?.event_targets(1)?.batch_bytes(1)
    })
    .await;
    let read = small.store().read(&s, ReadRange::default()).await.unwrap().events;
    assert_eq!(ids(&read), ["a", "b", "d"]);
    assert_eq!(read[0].payload, json(&text_of(200)));
    let mut stream = small.store().stream(&s, at(0));
    assert_eq!(next(&small, &mut stream).await, read[0]);
    let state = small.store().read_state(&s, &reducer, ReadState::latest()).await.unwrap();
    assert_eq!(state.snapshot.unwrap().state, json(&text_of(200)));
    let heads = claim_all(&small, &s).await;
    assert_eq!(heads.len(), 3);
    assert_eq!(heads[0].event, read[0]);
    finish(&small, &s, &heads[0]).await;
    let cleared = small.store().clear(&s, Clear::new()).await.unwrap();
    assert_eq!((cleared.cleared, cleared.clear_index), (true, at(4)));
}

async fn timers_that_are_set_fire(cx: Cx) {
    let s = cx.session("set");
    for key in ["a", "b"] {
        let timer = Schedule::new(key, secs(1), sized(key, 200)).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    let small = limited(&cx, |limits| limits.json_bytes(100)?.batch_events(1)).await;
    cx.pass(secs(1)).await;
    let fired = small.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!(ids(&fired.events), ["a", "b"]);
}
