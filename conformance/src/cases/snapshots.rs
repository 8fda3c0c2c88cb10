//! Snapshots: the latest is kept, reading is one consistent view. Pins are in `pins`.

use a2_core::{
    Index, PutSnapshots, ReadRange, ReadState, ReducerName, SessionId, SnapshotWrite, StateRead,
    StoreExt,
};
use futures_util::future::join_all;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "snapshots.read.empty_session" => read_empty_session: rules(R1, R66);
    "snapshots.read.without_one" => read_without_one: rules(R66);
    "snapshots.read.and_events_after" => read_and_events_after: rules(R66);
    "snapshots.read.at_the_head" => read_at_the_head: rules(R66);
    "snapshots.read.through_hides_the_latest" => read_through_hides_the_latest: rules(R66, R67);
    "snapshots.read.snapshot_through" => read_snapshot_through: rules(R66);
    "snapshots.read.ten_thousand_events" => read_ten_thousand_events: rules(R67), slow;
    "snapshots.read.bytes" => read_bytes: rules(R11, R67), slow;
    "snapshots.read.one_view" => read_one_view: rules(R63, R66);
    "snapshots.put.latest_replaces_older" => put_latest_replaces_older: rules(R63);
    "snapshots.put.equal_replaces" => put_equal_replaces: rules(R65);
    "snapshots.put.late_is_ignored" => put_late_is_ignored: rules(R65, F48);
    "snapshots.put.above_the_head" => put_above_the_head: rules(R37, R65);
    "snapshots.put.same_index_twice" => put_same_index_twice: rules(R65);
    "snapshots.put.concurrent" => put_concurrent: rules(R63, F48);
    "snapshots.put.per_reducer_and_session" => put_per_reducer_and_session: rules(R63);
    "snapshots.clear.gone" => clear_gone: rules(R66, R70);
    "snapshots.clear.below_is_dropped" => clear_below_is_dropped: rules(R65);
    "snapshots.clear.at_the_marker" => clear_at_the_marker: rules(R65, R66);
];

fn reducer(name: &str) -> ReducerName {
    ReducerName::new(name).unwrap()
}

/// Writes snapshots of reducer `r` without pins; those that are stored now.
async fn put<const N: usize>(cx: &Cx, s: &SessionId, writes: [(u64, &str); N]) -> Vec<u64> {
    let writes = writes.map(|(index, state)| SnapshotWrite::new(at(index), json(state)));
    let request = PutSnapshots::new(writes).unwrap();
    let put = cx.store().put_snapshots(s, &reducer("r"), request).await.unwrap();
    put.stored.iter().map(|index| index.get()).collect()
}

async fn read(cx: &Cx, s: &SessionId, read: ReadState) -> StateRead {
    cx.store().read_state(s, &reducer("r"), read).await.unwrap()
}

/// Index and state of the snapshot that was read.
fn found(read: &StateRead) -> Option<(u64, &str)> {
    read.snapshot.as_ref().map(|snapshot| (snapshot.index.get(), snapshot.state.as_str()))
}

fn latest(read: &StateRead) -> Option<u64> {
    read.latest_snapshot.map(Index::get)
}

async fn read_empty_session(cx: Cx) {
    let s = cx.session("empty");
    let read = read(&cx, &s, ReadState::latest()).await;
    assert_eq!((latest(&read), found(&read)), (None, None));
    assert_eq!(read.events, []);
    assert_eq!(read.through_index, 0);
    assert_eq!((read.head.get(), read.clear_index.get()), (0, 0));
}

async fn read_without_one(cx: Cx) {
    let s = cx.session("without");
    append(&cx, &s, many("e", 5)).await;
    let all = read(&cx, &s, ReadState::latest()).await;
    assert_eq!((latest(&all), found(&all)), (None, None));
    assert_eq!(indexes(&all.events), [1, 2, 3, 4, 5]);
    assert_eq!((all.through_index.get(), all.head.get()), (5, 5));
    let three = read(&cx, &s, ReadState::through(at(3))).await;
    assert_eq!(indexes(&three.events), [1, 2, 3]);
    assert_eq!((three.through_index.get(), three.head.get()), (3, 5));
}

async fn read_and_events_after(cx: Cx) {
    let s = cx.session("after");
    let appended = append(&cx, &s, many("e", 5)).await;
    assert_eq!(put(&cx, &s, [(3, r#"{"n":3}"#)]).await, [3]);
    let all = read(&cx, &s, ReadState::latest()).await;
    assert_eq!((latest(&all), found(&all)), (Some(3), Some((3, r#"{"n":3}"#))));
    assert_eq!(all.events, appended[3..]);
    assert_eq!((all.through_index.get(), all.head.get(), all.clear_index.get()), (5, 5, 0));
    let four = read(&cx, &s, ReadState::through(at(4))).await;
    assert_eq!(found(&four), Some((3, r#"{"n":3}"#)));
    assert_eq!(indexes(&four.events), [4]);
    assert_eq!(four.through_index, 4);
}

async fn read_at_the_head(cx: Cx) {
    let s = cx.session("head");
    append(&cx, &s, many("e", 5)).await;
    put(&cx, &s, [(5, "5")]).await;
    for through in [ReadState::latest(), ReadState::through(at(5)), ReadState::through(at(99))] {
        let read = read(&cx, &s, through).await;
        assert_eq!(found(&read), Some((5, "5")));
        assert_eq!(read.events, []);
        assert_eq!(read.through_index, 5);
    }
}

async fn read_through_hides_the_latest(cx: Cx) {
    let s = cx.session("hidden");
    append(&cx, &s, many("e", 5)).await;
    put(&cx, &s, [(4, "4")]).await;
    let read = read(&cx, &s, ReadState::through(at(3))).await;
    assert_eq!((latest(&read), found(&read)), (Some(4), None));
    assert_eq!(indexes(&read.events), [1, 2, 3]);
    assert_eq!(read.through_index, 3);
}

async fn read_snapshot_through(cx: Cx) {
    let s = cx.session("capped");
    append(&cx, &s, many("e", 5)).await;
    put(&cx, &s, [(3, "3")]).await;
    let capped = read(&cx, &s, ReadState::latest().snapshot_through(at(2))).await;
    assert_eq!((latest(&capped), found(&capped)), (Some(3), None));
    assert_eq!(indexes(&capped.events), [1, 2, 3, 4, 5]);
    let equal = read(&cx, &s, ReadState::latest().snapshot_through(at(3))).await;
    assert_eq!(found(&equal), Some((3, "3")));
    assert_eq!(indexes(&equal.events), [4, 5]);
    // A snapshot above `through` is of no use, whatever the cap says.
    let above = read(&cx, &s, ReadState::through(at(2)).snapshot_through(at(4))).await;
    assert_eq!(found(&above), None);
    assert_eq!(indexes(&above.events), [1, 2]);
}

async fn read_ten_thousand_events(cx: Cx) {
    let s = cx.session("many");
    append(&cx, &s, many("e", 10_000)).await;
    append(&cx, &s, many("f", 5)).await;
    let first = read(&cx, &s, ReadState::latest()).await;
    assert_eq!(first.events.len(), 10_000);
    assert_eq!((first.through_index.get(), first.head.get()), (10_000, 10_005));
    let rest = cx.store().read(&s, ReadRange::after(first.through_index)).await.unwrap();
    assert_eq!(ids(&rest.events), ["f1", "f2", "f3", "f4", "f5"]);
    put(&cx, &s, [(3, "3")]).await;
    let second = read(&cx, &s, ReadState::latest()).await;
    assert_eq!((second.events[0].index.get(), second.events.len()), (4, 10_000));
    assert_eq!(second.through_index, 10_003);
}

async fn read_bytes(cx: Cx) {
    let s = cx.session("bytes");
    let six_mib = format!("\"{}\"", "x".repeat(6 * 1024 * 1024));
    for _ in 0..5 {
        append(&cx, &s, [event("t", &six_mib)]).await;
    }
    put(&cx, &s, [(1, "1")]).await;
    let read = read(&cx, &s, ReadState::latest()).await;
    assert_eq!(indexes(&read.events), [2, 3, 4], "the third passes 16 MiB");
    assert_eq!((read.through_index.get(), read.head.get()), (4, 5));
}

async fn read_one_view(cx: Cx) {
    let s = cx.session("view");
    let writer = tokio::spawn({
        let (cx, s) = (cx.clone(), s.clone());
        async move {
            for round in 0..60 {
                let last = append(&cx, &s, many(&format!("{round}-"), 3)).await[2].index.get();
                put(&cx, &s, [(last - 1, &last.to_string())]).await;
                if round % 4 == 3 {
                    clear(&cx, &s).await;
                }
            }
        }
    });
    let mut last = 0;
    while last < 195 {
        let state = read(&cx, &s, ReadState::latest()).await;
        let (head, cleared) = (state.head.get(), state.clear_index.get());
        // The events follow the snapshot, which is of the lifetime that the answer names.
        let after = found(&state).map_or(cleared.max(1), |(index, _)| index + 1);
        assert!(after >= cleared, "{state:?}");
        assert_eq!(indexes(&state.events), (after..=head).collect::<Vec<u64>>());
        assert_eq!(latest(&state), found(&state).map(|(index, _)| index));
        assert_eq!(state.through_index.get(), head);
        assert!(head >= last, "the head went back from {last} to {head}");
        last = head;
    }
    writer.await.unwrap();
}

async fn put_latest_replaces_older(cx: Cx) {
    let s = cx.session("latest");
    append(&cx, &s, many("e", 5)).await;
    assert_eq!(put(&cx, &s, [(2, "2")]).await, [2]);
    assert_eq!(put(&cx, &s, [(4, "4")]).await, [4]);
    let all = read(&cx, &s, ReadState::latest()).await;
    assert_eq!((latest(&all), found(&all)), (Some(4), Some((4, "4"))));
    // Nothing names the older one: it is gone.
    let before = read(&cx, &s, ReadState::through(at(3))).await;
    assert_eq!((latest(&before), found(&before)), (Some(4), None));
}

async fn put_equal_replaces(cx: Cx) {
    let s = cx.session("equal");
    append(&cx, &s, many("e", 3)).await;
    put(&cx, &s, [(3, "1")]).await;
    assert_eq!(put(&cx, &s, [(3, "2")]).await, [3]);
    assert_eq!(found(&read(&cx, &s, ReadState::latest()).await), Some((3, "2")));
}

async fn put_late_is_ignored(cx: Cx) {
    let s = cx.session("late");
    append(&cx, &s, many("e", 100)).await;
    put(&cx, &s, [(100, "100")]).await;
    let late = PutSnapshots::new([SnapshotWrite::new(at(90), json("90"))]).unwrap();
    let answer = cx.store().put_snapshots(&s, &reducer("r"), late).await.unwrap();
    assert!(answer.stored.is_empty());
    assert_eq!(answer.latest_snapshot, Some(at(100)));
    assert_eq!(found(&read(&cx, &s, ReadState::latest()).await), Some((100, "100")));
    assert_eq!(found(&read(&cx, &s, ReadState::through(at(95))).await), None);
}

async fn put_above_the_head(cx: Cx) {
    let s = cx.session("above");
    append(&cx, &s, many("e", 3)).await;
    let write = |index| SnapshotWrite::new(at(index), json("1"));
    let request = PutSnapshots::new([write(2), write(4)]).unwrap();
    assert_code(cx.store().put_snapshots(&s, &reducer("r"), request).await, "INVALID_INPUT");
    let after = read(&cx, &s, ReadState::latest()).await;
    assert_eq!(latest(&after), None, "nothing of the call is stored");
    let empty = cx.session("above-nothing");
    let request = PutSnapshots::new([write(1)]).unwrap();
    let answer = cx.store().put_snapshots(&empty, &reducer("r"), request).await;
    assert_code(answer, "INVALID_INPUT");
}

async fn put_same_index_twice(cx: Cx) {
    let s = cx.session("twice");
    append(&cx, &s, many("e", 3)).await;
    assert_eq!(put(&cx, &s, [(3, "1"), (2, "9"), (3, "2")]).await, [3]);
    assert_eq!(found(&read(&cx, &s, ReadState::latest()).await), Some((3, "2")));
}

async fn put_concurrent(cx: Cx) {
    let s = cx.session("concurrent");
    append(&cx, &s, many("e", 16)).await;
    let watcher = tokio::spawn({
        let (cx, s) = (cx.clone(), s.clone());
        async move {
            let mut seen = 0;
            while seen < 16 {
                let state = read(&cx, &s, ReadState::latest()).await;
                let now = latest(&state).unwrap_or(0);
                assert!(now >= seen, "the latest went back from {seen} to {now}");
                assert_eq!(found(&state).map_or(0, |(index, _)| index), now);
                seen = now;
                tokio::task::yield_now().await;
            }
        }
    });
    let shuffled = [7, 2, 16, 11, 1, 9, 14, 3, 12, 5, 15, 8, 4, 10, 6, 13];
    let writers = shuffled.map(|index: u64| {
        let (cx, s) = (cx.clone(), s.clone());
        tokio::spawn(async move { put(&cx, &s, [(index, &index.to_string())]).await })
    });
    for written in join_all(writers).await {
        written.unwrap();
    }
    watcher.await.unwrap();
    let last = read(&cx, &s, ReadState::latest()).await;
    assert_eq!((latest(&last), found(&last)), (Some(16), Some((16, "16"))));
}

async fn put_per_reducer_and_session(cx: Cx) {
    let (a, b) = (cx.session("a"), cx.session("b"));
    for (s, r, state) in [(&a, "r", "1"), (&a, "q", "2"), (&b, "r", "3")] {
        append(&cx, s, many("e", 3)).await;
        let writes = PutSnapshots::new([SnapshotWrite::new(at(2), json(state))]).unwrap();
        let _ = cx.store().put_snapshots(s, &reducer(r), writes).await.unwrap();
    }
    for (s, r, expected) in
        [(&a, "r", Some("1")), (&a, "q", Some("2")), (&b, "r", Some("3")), (&b, "q", None)]
    {
        let read = cx.store().read_state(s, &reducer(r), ReadState::latest()).await.unwrap();
        assert_eq!(read.snapshot.as_ref().map(|snapshot| snapshot.state.as_str()), expected);
    }
}

async fn clear_gone(cx: Cx) {
    let s = cx.session("cleared");
    append(&cx, &s, many("e", 3)).await;
    put(&cx, &s, [(2, "2")]).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 2)).await;
    let read = read(&cx, &s, ReadState::latest()).await;
    assert_eq!((latest(&read), found(&read)), (None, None));
    assert_eq!(indexes(&read.events), [4, 5, 6], "from the marker on");
    assert_eq!((read.through_index.get(), read.clear_index.get()), (6, 4));
}

async fn clear_below_is_dropped(cx: Cx) {
    let s = cx.session("dropped");
    append(&cx, &s, many("e", 3)).await;
    clear(&cx, &s).await;
    append(&cx, &s, many("new", 2)).await;
    assert_eq!(put(&cx, &s, [(3, "3"), (5, "5")]).await, [5]);
    let state = read(&cx, &s, ReadState::latest()).await;
    assert_eq!((latest(&state), found(&state)), (Some(5), Some((5, "5"))));
    assert_eq!(put(&cx, &s, [(1, "1")]).await, [] as [u64; 0]);
    assert_eq!(cx.store().head(&s).await.unwrap(), 6);
}

async fn clear_at_the_marker(cx: Cx) {
    let s = cx.session("at-marker");
    append(&cx, &s, many("e", 3)).await;
    assert_eq!(clear(&cx, &s).await, 4);
    append(&cx, &s, many("new", 1)).await;
    // The marker is an event of the new lifetime: a state folded up to it is kept.
    assert_eq!(put(&cx, &s, [(4, "4")]).await, [4]);
    let read = read(&cx, &s, ReadState::latest()).await;
    assert_eq!(found(&read), Some((4, "4")));
    assert_eq!(indexes(&read.events), [5]);
}
