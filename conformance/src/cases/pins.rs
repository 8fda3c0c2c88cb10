//! Pins: an older snapshot is kept while a live head names it.

use a2_core::{
    HeadRef, Index, PutSnapshots, ReadState, Redrive, RedriveAction, ReducerName, ReleaseClaims,
    SessionId, SnapshotWrite,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "pins.keep.older_while_live" => keep_older_while_live: rules(R63, R64);
    "pins.keep.written_below_the_latest" => keep_written_below_the_latest: rules(R65);
    "pins.keep.earlier_calls_count" => keep_earlier_calls_count: rules(R64);
    "pins.keep.same_index_merges_pins" => keep_same_index_merges_pins: rules(R65);
    "pins.keep.every_kind_of_head" => keep_every_kind_of_head: rules(R16, R64);
    "pins.keep.through_retry_release_and_lapse" => keep_through_retry_release_and_lapse: rules(R64);
    "pins.keep.newest_at_or_below" => keep_newest_at_or_below: rules(R66, R67);
    "pins.ignored.not_live" => ignored_not_live: rules(R64);
    "pins.ignored.redriven_is_live_again" => ignored_redriven_is_live_again: rules(R64);
    "pins.released.completed" => released_completed: rules(R52, R64);
    "pins.released.skipped" => released_skipped: rules(R64);
    "pins.released.dead_lettered" => released_dead_lettered: rules(R56, R64);
    "pins.released.lapsed_to_death" => released_lapsed_to_death: rules(R64);
    "pins.released.cleared" => released_cleared: rules(R64, R70);
    "pins.released.by_the_last_of_two" => released_by_the_last_of_two: rules(R64);
    "pins.released.latest_stays" => released_latest_stays: rules(R63);
    "pins.per_reducer" => per_reducer: rules(R64);
];

fn reducer() -> ReducerName {
    ReducerName::new("r").unwrap()
}

/// Five events, each for consumer `c`, nothing claimed.
async fn five(cx: &Cx, name: &str) -> SessionId {
    let s = cx.session(name);
    append(cx, &s, many("e", 5).into_iter().map(|event| event.target(to_event("c")))).await;
    s
}

async fn put(cx: &Cx, s: &SessionId, index: u64, state: &str, pins: &[HeadRef]) -> Vec<u64> {
    let write = SnapshotWrite::new(at(index), json(state)).pins(pins.to_vec()).unwrap();
    let request = PutSnapshots::new([write]).unwrap();
    let put = cx.store().put_snapshots(s, &reducer(), request).await.unwrap();
    put.stored.into_iter().map(Index::get).collect()
}

/// The newest snapshot at or below an index.
async fn at_or_below(cx: &Cx, s: &SessionId, through: u64) -> Option<(u64, String)> {
    let read = cx.store().read_state(s, &reducer(), ReadState::through(at(through))).await;
    let snapshot = read.unwrap().snapshot?;
    Some((snapshot.index.get(), snapshot.state.as_str().to_owned()))
}

fn some(index: u64, state: &str) -> Option<(u64, String)> {
    Some((index, state.to_owned()))
}

/// A snapshot at 1 pinned by `c`'s event 2, and a newer one.
async fn pinned(cx: &Cx, name: &str) -> SessionId {
    let s = five(cx, name).await;
    assert_eq!(put(cx, &s, 1, "1", &[event_head("c", 2)]).await, [1]);
    assert_eq!(put(cx, &s, 4, "4", &[]).await, [4]);
    assert_eq!(at_or_below(cx, &s, 3).await, some(1, "1"), "pinned");
    s
}

/// Event 2's head, claimed.
async fn second(cx: &Cx, s: &SessionId) -> a2_core::DispatchedHead {
    let heads = take(cx, s, claim().limit(2).unwrap()).await;
    assert_eq!(heads[1].head, event_head("c", 2));
    heads[1].clone()
}

async fn keep_older_while_live(cx: Cx) {
    let s = pinned(&cx, "older").await;
    assert_eq!(put(&cx, &s, 5, "5", &[]).await, [5]);
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "1"));
    assert_eq!(at_or_below(&cx, &s, 4).await, some(1, "1"), "4 was the latest, and not pinned");
    assert_eq!(at_or_below(&cx, &s, 5).await, some(5, "5"));
}

async fn keep_written_below_the_latest(cx: Cx) {
    let s = five(&cx, "below").await;
    put(&cx, &s, 4, "4", &[]).await;
    assert_eq!(put(&cx, &s, 2, "2", &[event_head("c", 3)]).await, [2]);
    assert_eq!(at_or_below(&cx, &s, 3).await, some(2, "2"));
    assert_eq!(at_or_below(&cx, &s, 5).await, some(4, "4"), "the latest is still the latest");
}

async fn keep_earlier_calls_count(cx: Cx) {
    let s = pinned(&cx, "earlier").await;
    // Older than the latest, without a pin of its own: the earlier call's counts.
    assert_eq!(put(&cx, &s, 1, "\"1b\"", &[]).await, [1]);
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "\"1b\""));
}

async fn keep_same_index_merges_pins(cx: Cx) {
    let s = five(&cx, "merged").await;
    put(&cx, &s, 4, "4", &[]).await;
    let write = |state: &str, pin: u64| {
        let pins = [event_head("c", pin)];
        SnapshotWrite::new(at(1), json(state)).pins(pins).unwrap()
    };
    let request = PutSnapshots::new([write("1", 2), write("2", 3)]).unwrap();
    let put = cx.store().put_snapshots(&s, &reducer(), request).await.unwrap();
    assert_eq!(put.stored, [at(1)]);
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "2"), "the last state");
    let heads = claim_all(&cx, &s).await;
    finish(&cx, &s, &heads[2]).await;
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "2"), "the first write's pin holds it");
    finish(&cx, &s, &heads[1]).await;
    assert_eq!(at_or_below(&cx, &s, 3).await, None);
}

async fn keep_every_kind_of_head(cx: Cx) {
    let s = cx.session("kinds");
    let event = ev("a").target(to_event("c")).target(to_lane("c", "x"));
    let request = batch([event]).served(serve_log("c", all_types("x")));
    let _ = cx.store().append(&s, request).await.unwrap();
    append(&cx, &s, many("e", 9)).await;
    let kinds = [event_head("c", 1), lane_head("c", "x", 1), log_head("c", "x", 1)];
    put(&cx, &s, 9, "9", &[]).await;
    for (index, head) in [2, 4, 6].into_iter().zip(&kinds) {
        assert_eq!(put(&cx, &s, index, "1", std::slice::from_ref(head)).await, [index]);
    }
    let heads = claim_all(&cx, &s).await;
    assert_eq!(refs(&heads), kinds);
    // Each releases its own, though all are heads of index 1, two of the same name.
    finish(&cx, &s, &heads[1]).await;
    assert_eq!(at_or_below(&cx, &s, 5).await, some(2, "1"));
    assert_eq!(at_or_below(&cx, &s, 8).await, some(6, "1"));
    finish(&cx, &s, &heads[2]).await;
    assert_eq!(at_or_below(&cx, &s, 8).await, some(2, "1"));
    finish(&cx, &s, &heads[0]).await;
    assert_eq!(at_or_below(&cx, &s, 8).await, None);
}

async fn keep_through_retry_release_and_lapse(cx: Cx) {
    let s = pinned(&cx, "retries").await;
    let head = second(&cx, &s).await;
    let _ = cx.store().fail_attempt(&s, fail(&head)).await.unwrap();
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "1"), "failed, to be retried");
    let again = take(&cx, &s, claim().limit(1).unwrap()).await;
    assert_eq!(again[0].head, event_head("c", 2));
    let release = ReleaseClaims::new(WORKER, [again[0].attempt_ref()]).unwrap();
    assert_eq!(cx.store().release_claims(&s, release).await.unwrap().released.len(), 1);
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "1"), "released");
    take(&cx, &s, claim_as(WORKER, ms(10)).limit(1).unwrap()).await;
    cx.pass(ms(10)).await;
    take(&cx, &s, claim().limit(1).unwrap()).await;
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "1"), "lapsed and taken over");
}

async fn keep_newest_at_or_below(cx: Cx) {
    let s = five(&cx, "newest").await;
    let pin = [event_head("c", 5)];
    for index in [1, 3, 4] {
        put(&cx, &s, index, &index.to_string(), &pin).await;
    }
    put(&cx, &s, 5, "5", &[]).await;
    for (through, expected) in [(1, 1), (2, 1), (3, 3), (4, 4), (5, 5)] {
        let found = at_or_below(&cx, &s, through).await;
        assert_eq!(found, some(expected, &expected.to_string()), "through {through}");
    }
    let capped = ReadState::latest().snapshot_through(at(3));
    let read = cx.store().read_state(&s, &reducer(), capped).await.unwrap();
    assert_eq!(read.snapshot.unwrap().index, 3);
    assert_eq!(indexes(&read.events), [4, 5]);
    assert_eq!(read.latest_snapshot, Some(at(5)));
}

async fn ignored_not_live(cx: Cx) {
    let s = five(&cx, "not-live").await;
    let heads = take(&cx, &s, claim().limit(2).unwrap()).await;
    finish(&cx, &s, &heads[0]).await;
    bury(&cx, &s, &heads[1]).await;
    put(&cx, &s, 4, "4", &[]).await;
    for (pin, why) in [
        (event_head("c", 1), "completed"),
        (event_head("c", 2), "dead-lettered"),
        (event_head("d", 3), "no such consumer"),
        (lane_head("c", "", 3), "no such lane"),
        (log_head("c", "", 3), "no such log"),
        (event_head("c", 9), "no such index"),
    ] {
        assert_eq!(put(&cx, &s, 3, "3", &[pin]).await, [] as [u64; 0], "{why}");
        assert_eq!(at_or_below(&cx, &s, 3).await, None, "{why}");
    }
    // One that is live among those that are not is enough.
    let pins = [event_head("c", 1), event_head("c", 3)];
    assert_eq!(put(&cx, &s, 3, "3", &pins).await, [3]);
}

async fn ignored_redriven_is_live_again(cx: Cx) {
    let s = five(&cx, "redriven").await;
    let head = second(&cx, &s).await;
    bury(&cx, &s, &head).await;
    put(&cx, &s, 4, "4", &[]).await;
    let retry = Redrive::new(head.head.clone(), RedriveAction::Retry);
    assert!(cx.store().redrive(&s, retry).await.unwrap().redriven);
    assert_eq!(put(&cx, &s, 1, "1", &[head.head]).await, [1]);
}

async fn released_completed(cx: Cx) {
    let s = pinned(&cx, "completed").await;
    let head = second(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(at_or_below(&cx, &s, 3).await, None);
    assert_eq!(at_or_below(&cx, &s, 5).await, some(4, "4"));
    assert_eq!(put(&cx, &s, 1, "1", &[]).await, [] as [u64; 0], "no pin counts any more");
}

async fn released_skipped(cx: Cx) {
    let s = five(&cx, "skipped").await;
    let head = second(&cx, &s).await;
    bury(&cx, &s, &head).await;
    let retry = Redrive::new(head.head.clone(), RedriveAction::Retry);
    assert!(cx.store().redrive(&s, retry).await.unwrap().redriven);
    put(&cx, &s, 1, "1", std::slice::from_ref(&head.head)).await;
    put(&cx, &s, 4, "4", &[]).await;
    let again = claim_one(&cx, &s, "c").await;
    assert_eq!(again.head, head.head);
    bury(&cx, &s, &again).await;
    let skip = Redrive::new(head.head, RedriveAction::Skip);
    assert!(cx.store().redrive(&s, skip).await.unwrap().redriven);
    assert_eq!(at_or_below(&cx, &s, 3).await, None);
}

async fn released_dead_lettered(cx: Cx) {
    let s = pinned(&cx, "dead").await;
    let head = second(&cx, &s).await;
    bury(&cx, &s, &head).await;
    assert_eq!(at_or_below(&cx, &s, 3).await, None);
    // A redrive does not bring it back.
    let retry = Redrive::new(head.head, RedriveAction::Retry);
    assert!(cx.store().redrive(&s, retry).await.unwrap().redriven);
    assert_eq!(at_or_below(&cx, &s, 3).await, None);
}

async fn released_lapsed_to_death(cx: Cx) {
    let s = pinned(&cx, "lapsed").await;
    take(&cx, &s, claim_as(WORKER, ms(10)).limit(2).unwrap()).await;
    cx.pass(ms(10)).await;
    let heads = take(&cx, &s, claim().limit(2).unwrap().max_failures(1).unwrap()).await;
    assert!(heads[1].state.failed_at.is_some(), "{:?}", heads[1]);
    assert_eq!(at_or_below(&cx, &s, 3).await, None);
}

async fn released_cleared(cx: Cx) {
    let s = pinned(&cx, "cleared").await;
    assert_eq!(clear(&cx, &s).await, 6);
    append(&cx, &s, [ev("new")]).await;
    assert_eq!(at_or_below(&cx, &s, 7).await, None);
    put(&cx, &s, 7, "7", &[]).await;
    // A head below the clear is not live, one of the old lifetime's snapshots is nothing.
    assert_eq!(put(&cx, &s, 6, "6", &[event_head("c", 2)]).await, [] as [u64; 0]);
}

async fn released_by_the_last_of_two(cx: Cx) {
    let s = five(&cx, "two").await;
    let pins = [event_head("c", 1), event_head("c", 2)];
    put(&cx, &s, 1, "1", &pins).await;
    put(&cx, &s, 4, "4", &[]).await;
    let heads = take(&cx, &s, claim().limit(2).unwrap()).await;
    finish(&cx, &s, &heads[0]).await;
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "1"));
    finish(&cx, &s, &heads[1]).await;
    assert_eq!(at_or_below(&cx, &s, 3).await, None);
}

async fn released_latest_stays(cx: Cx) {
    let s = five(&cx, "stays").await;
    put(&cx, &s, 3, "3", &[event_head("c", 1)]).await;
    let head = claim_one(&cx, &s, "c").await;
    finish(&cx, &s, &head).await;
    assert_eq!(at_or_below(&cx, &s, 5).await, some(3, "3"), "the latest is always kept");
    put(&cx, &s, 4, "4", &[]).await;
    assert_eq!(at_or_below(&cx, &s, 3).await, None);
}

async fn per_reducer(cx: Cx) {
    let s = pinned(&cx, "reducers").await;
    let other = ReducerName::new("other").unwrap();
    let write = |index: u64| SnapshotWrite::new(at(index), json("0"));
    for index in [4, 1] {
        let request = PutSnapshots::new([write(index)]).unwrap();
        let _ = cx.store().put_snapshots(&s, &other, request).await.unwrap();
    }
    // The pin names `r`'s snapshot, not the other's.
    let read = cx.store().read_state(&s, &other, ReadState::through(at(3))).await.unwrap();
    assert_eq!(read.snapshot, None);
    assert_eq!(at_or_below(&cx, &s, 3).await, some(1, "1"));
}
