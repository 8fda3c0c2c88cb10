//! Presence: ephemeral fields, each with its own ttl. Watching is in `presence_watch`.

use a2_core::{Json, Namespace, PresencePatch, PresenceRow, PresenceUpdate, Timestamp};
use futures_util::future::join_all;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: needs(Presence);
    "presence.empty" => empty: rules(R84), both;
    "presence.row.fields" => row_fields: rules(R84);
    "presence.row.order" => row_order: rules(R8, R84), both;
    "presence.patch.fields" => patch_fields: rules(R85);
    "presence.write.last_wins_per_field" => write_last_wins_per_field: rules(R84), both;
    "presence.write.null_removes" => write_null_removes: rules(R84, R85), both;
    "presence.write.set_and_remove" => write_set_and_remove: rules(R84, R85), both;
    "presence.write.equal_is_no_change" => write_equal_is_no_change: rules(R85), both;
    "presence.write.equal_renews" => write_equal_renews: rules(R85);
    "presence.write.equal_means_bytes" => write_equal_means_bytes: rules(R4, R85), both;
    "presence.write.some_equal" => write_some_equal: rules(R85), both;
    "presence.write.no_fields" => write_no_fields: rules(R85), both;
    "presence.seen.changed_is_a_change" => seen_changed_is_a_change: rules(R85), both;
    "presence.seen.of_the_last_write" => seen_of_the_last_write: rules(R84), both;
    "presence.ttl.exactly_now_is_expired" => ttl_exactly_now_is_expired: rules(R33, R86);
    "presence.ttl.gone_after" => ttl_gone_after: rules(R84, R86), both;
    "presence.ttl.each_field_its_own" => ttl_each_field_its_own: rules(R84, F50);
    "presence.ttl.renewed_by_a_write" => ttl_renewed_by_a_write: rules(R84, F50);
    "presence.ttl.shortened" => ttl_shortened: rules(R84, F50), both;
    "presence.ttl.set_again_after_expiry" => ttl_set_again_after_expiry: rules(R85), both;
    "presence.ttl.removed_after_expiry" => ttl_removed_after_expiry: rules(R85), both;
    "presence.ttl.zero_and_huge" => ttl_zero_and_huge: rules(R13, F12, F50);
    "presence.namespaces" => namespaces: rules(R84), both;
    "presence.another_handle" => another_handle: rules(R84), both, needs(Presence, Another);
    "presence.concurrent" => concurrent: rules(R84), both;
    "presence.dropped_writes" => dropped_writes: rules(R36, F50);
];

const MINUTE: u64 = 60_000;

pub(super) fn update(participant: &str, ttl: u64) -> PresenceUpdate {
    PresenceUpdate::new(participant, ms(ttl)).unwrap()
}

pub(super) async fn set(cx: &Cx, ns: &Namespace, update: PresenceUpdate) -> Option<PresencePatch> {
    cx.presence().set_presence(ns, update).await.unwrap()
}

async fn rows(cx: &Cx, ns: &Namespace) -> Vec<PresenceRow> {
    cx.presence().read_presence(ns).await.unwrap().rows
}

/// participant/field=value, in the order of the rows.
async fn brief(cx: &Cx, ns: &Namespace) -> Vec<String> {
    let brief =
        |row: &PresenceRow| format!("{}/{}={}", row.participant, row.field, row.value.as_str());
    rows(cx, ns).await.iter().map(brief).collect()
}

/// The patch's fields and values; `-` for removed.
pub(super) fn changes(patch: &PresencePatch) -> Vec<(&str, &str)> {
    patch
        .values
        .iter()
        .map(|(field, value)| (field.as_str(), value.as_ref().map_or("-", Json::as_str)))
        .collect()
}

async fn empty(cx: Cx) {
    let ns = cx.namespace("empty");
    assert_eq!(rows(&cx, &ns).await, []);
    assert_eq!(set(&cx, &ns, update("p", MINUTE).remove("f").unwrap()).await, None);
    assert_eq!(rows(&cx, &ns).await, []);
}

async fn row_fields(cx: Cx) {
    let ns = cx.namespace("row");
    cx.pass(ms(5)).await;
    let write = update("ada", 1_500).set("cursor", json(r#"{"x":1.0}"#)).unwrap().seen(at(7));
    set(&cx, &ns, write).await;
    let [row] = &rows(&cx, &ns).await[..] else { panic!("one row") };
    assert_eq!(row.participant, "ada");
    assert_eq!(row.field, "cursor");
    assert_eq!(row.value.as_str(), r#"{"x":1.0}"#);
    assert_eq!(row.seen, Some(at(7)));
    assert_eq!(row.updated_at.as_millis(), 1_700_000_000_005);
    assert_eq!(row.expires_at.as_millis(), 1_700_000_001_505);
    cx.pass(ms(10)).await;
    set(&cx, &ns, update("ada", 2_000).set("cursor", json("2")).unwrap()).await;
    let [row] = &rows(&cx, &ns).await[..] else { panic!("one row") };
    assert_eq!((row.value.as_str(), row.seen), ("2", None));
    assert_eq!(row.updated_at.as_millis(), 1_700_000_000_015);
    assert_eq!(row.expires_at.as_millis(), 1_700_000_002_015);
}

async fn row_order(cx: Cx) {
    let ns = cx.namespace("order");
    for participant in ["b", "ä", "a", "B"] {
        for field in ["y", "x", "X"] {
            set(&cx, &ns, update(participant, MINUTE).set(field, json("1")).unwrap()).await;
        }
    }
    let expected = [
        "B/X=1", "B/x=1", "B/y=1", "a/X=1", "a/x=1", "a/y=1", "b/X=1", "b/x=1", "b/y=1", "ä/X=1",
        "ä/x=1", "ä/y=1",
    ];
    assert_eq!(brief(&cx, &ns).await, expected);
}

async fn patch_fields(cx: Cx) {
    let ns = cx.namespace("patch");
    cx.pass(ms(3)).await;
    let write = update("ada", MINUTE).set("x", json("1")).unwrap();
    let write = write.set("y", json("[2]")).unwrap().seen(at(9));
    let patch = set(&cx, &ns, write).await.unwrap();
    assert_eq!(patch.participant, "ada");
    assert_eq!(patch.seen, Some(at(9)));
    assert_eq!(patch.at.as_millis(), 1_700_000_000_003);
    assert_eq!(changes(&patch), [("x", "1"), ("y", "[2]")]);
    assert_ne!(patch.source, "");
    // The source names the handle, not the write or the participant.
    let again = set(&cx, &ns, update("bob", MINUTE).set("x", json("1")).unwrap()).await;
    assert_eq!(again.unwrap().source, patch.source);
}

async fn write_last_wins_per_field(cx: Cx) {
    let ns = cx.namespace("last");
    let write = update("p", MINUTE).set("x", json("1")).unwrap();
    set(&cx, &ns, write.set("y", json("1")).unwrap()).await;
    let patch = set(&cx, &ns, update("p", MINUTE).set("x", json("2")).unwrap()).await;
    assert_eq!(changes(&patch.unwrap()), [("x", "2")]);
    set(&cx, &ns, update("q", MINUTE).set("x", json("3")).unwrap()).await;
    assert_eq!(brief(&cx, &ns).await, ["p/x=2", "p/y=1", "q/x=3"]);
}

async fn write_null_removes(cx: Cx) {
    let ns = cx.namespace("null");
    let three = |value: &str| {
        ["x", "y", "z"]
            .into_iter()
            .fold(update("p", MINUTE), |update, field| update.set(field, json(value)).unwrap())
    };
    set(&cx, &ns, three("1")).await;
    let patch = set(&cx, &ns, update("p", MINUTE).set("x", Json::null()).unwrap()).await;
    assert_eq!(changes(&patch.unwrap()), [("x", "-")]);
    let patch = set(&cx, &ns, update("p", MINUTE).remove("y").unwrap()).await;
    assert_eq!(changes(&patch.unwrap()), [("y", "-")]);
    assert_eq!(brief(&cx, &ns).await, ["p/z=1"]);
    assert_eq!(set(&cx, &ns, update("p", MINUTE).remove("x").unwrap()).await, None, "no change");
}

async fn write_set_and_remove(cx: Cx) {
    let ns = cx.namespace("mixed");
    let write = update("p", MINUTE).set("x", json("1")).unwrap();
    set(&cx, &ns, write.set("y", json("1")).unwrap()).await;
    let write = update("p", MINUTE).remove("x").unwrap().set("z", json("2")).unwrap();
    let patch = set(&cx, &ns, write.remove("never").unwrap()).await.unwrap();
    assert_eq!(changes(&patch), [("x", "-"), ("z", "2")], "what there was not is no change");
    assert_eq!(brief(&cx, &ns).await, ["p/y=1", "p/z=2"]);
}

async fn write_equal_is_no_change(cx: Cx) {
    let ns = cx.namespace("equal");
    let write = update("p", MINUTE).set("x", json(r#"{"a":1}"#)).unwrap().seen(at(3));
    assert!(set(&cx, &ns, write.clone()).await.is_some());
    assert_eq!(set(&cx, &ns, write.clone()).await, None);
    assert_eq!(set(&cx, &ns, write).await, None);
    assert_eq!(brief(&cx, &ns).await, [r#"p/x={"a":1}"#]);
}

async fn write_equal_renews(cx: Cx) {
    let ns = cx.namespace("renews");
    let write = update("p", 1_000).set("x", json("1")).unwrap();
    set(&cx, &ns, write.clone()).await;
    cx.pass(ms(600)).await;
    assert_eq!(set(&cx, &ns, write).await, None);
    let [row] = &rows(&cx, &ns).await[..] else { panic!("one row") };
    assert_eq!(row.expires_at.as_millis(), 1_700_000_001_600);
    cx.pass(ms(999)).await;
    assert_eq!(brief(&cx, &ns).await, ["p/x=1"]);
    cx.pass(ms(1)).await;
    assert_eq!(rows(&cx, &ns).await, []);
}

async fn write_equal_means_bytes(cx: Cx) {
    let ns = cx.namespace("bytes");
    for value in ["1", "1.0", "\"1\"", "\"é\"", "\"\\u00e9\"", r#"{"a":1,"b":2}"#] {
        let patch = set(&cx, &ns, update("p", MINUTE).set("x", json(value)).unwrap()).await;
        assert_eq!(changes(&patch.unwrap()), [("x", value)]);
    }
    let patch = set(&cx, &ns, update("p", MINUTE).set("x", json(r#"{"b":2,"a":1}"#)).unwrap());
    assert_eq!(changes(&patch.await.unwrap()), [("x", r#"{"b":2,"a":1}"#)]);
}

async fn write_some_equal(cx: Cx) {
    let ns = cx.namespace("some");
    let write = update("p", MINUTE).set("x", json("1")).unwrap();
    set(&cx, &ns, write.clone().set("y", json("1")).unwrap()).await;
    let patch = set(&cx, &ns, write.set("y", json("2")).unwrap()).await.unwrap();
    assert_eq!(changes(&patch), [("y", "2")], "the patch is what changed");
}

async fn write_no_fields(cx: Cx) {
    let ns = cx.namespace("no-fields");
    assert_eq!(set(&cx, &ns, update("p", MINUTE)).await, None);
    set(&cx, &ns, update("p", MINUTE).set("x", json("1")).unwrap()).await;
    assert_eq!(set(&cx, &ns, update("p", MINUTE)).await, None);
    assert_eq!(brief(&cx, &ns).await, ["p/x=1"]);
}

async fn seen_changed_is_a_change(cx: Cx) {
    let ns = cx.namespace("seen");
    let write = || update("p", MINUTE).set("x", json("1")).unwrap();
    set(&cx, &ns, write().seen(at(1))).await;
    let patch = set(&cx, &ns, write().seen(at(2))).await.unwrap();
    assert_eq!((patch.participant.as_str(), patch.seen), ("p", Some(at(2))));
    assert_eq!(rows(&cx, &ns).await[0].seen, Some(at(2)));
    assert_eq!(set(&cx, &ns, write().seen(at(2))).await, None);
    // To an earlier index, too.
    assert_eq!(set(&cx, &ns, write().seen(at(1))).await.unwrap().seen, Some(at(1)));
}

async fn seen_of_the_last_write(cx: Cx) {
    let ns = cx.namespace("seen-last");
    set(&cx, &ns, update("p", MINUTE).set("x", json("1")).unwrap().seen(at(1))).await;
    set(&cx, &ns, update("p", MINUTE).set("y", json("1")).unwrap().seen(at(2))).await;
    set(&cx, &ns, update("p", MINUTE).set("y", json("2")).unwrap()).await;
    let rows = rows(&cx, &ns).await;
    assert_eq!((rows[0].field.as_str(), rows[0].seen), ("x", Some(at(1))));
    assert_eq!((rows[1].field.as_str(), rows[1].seen), ("y", None));
}

async fn ttl_exactly_now_is_expired(cx: Cx) {
    let ns = cx.namespace("exact");
    set(&cx, &ns, update("p", 1_000).set("x", json("1")).unwrap()).await;
    cx.pass(ms(999)).await;
    assert_eq!(brief(&cx, &ns).await, ["p/x=1"]);
    cx.pass(ms(1)).await;
    assert_eq!(rows(&cx, &ns).await, []);
}

async fn ttl_gone_after(cx: Cx) {
    let ns = cx.namespace("gone");
    set(&cx, &ns, update("long", MINUTE).set("x", json("1")).unwrap()).await;
    set(&cx, &ns, update("short", 50).set("x", json("1")).unwrap()).await;
    cx.pass(ms(50)).await;
    assert_eq!(brief(&cx, &ns).await, ["long/x=1"]);
}

async fn ttl_each_field_its_own(cx: Cx) {
    let ns = cx.namespace("own");
    set(&cx, &ns, update("p", 1_000).set("x", json("1")).unwrap()).await;
    set(&cx, &ns, update("p", 10_000).set("y", json("1")).unwrap()).await;
    cx.pass(ms(500)).await;
    set(&cx, &ns, update("p", 1_000).set("x", json("2")).unwrap()).await;
    cx.pass(ms(999)).await;
    assert_eq!(brief(&cx, &ns).await, ["p/x=2", "p/y=1"]);
    cx.pass(ms(1)).await;
    assert_eq!(brief(&cx, &ns).await, ["p/y=1"], "x at 1.5 s");
    cx.pass(ms(8_500)).await;
    assert_eq!(rows(&cx, &ns).await, [], "y at 10 s");
}

async fn ttl_renewed_by_a_write(cx: Cx) {
    let ns = cx.namespace("renewed");
    for i in 0..10 {
        let write = update("p", 100).set("x", json(&i.to_string())).unwrap();
        assert!(set(&cx, &ns, write).await.is_some());
        cx.pass(ms(99)).await;
        assert_eq!(brief(&cx, &ns).await, [format!("p/x={i}")]);
    }
    cx.pass(ms(1)).await;
    assert_eq!(rows(&cx, &ns).await, []);
}

async fn ttl_shortened(cx: Cx) {
    let ns = cx.namespace("shortened");
    set(&cx, &ns, update("p", 10_000).set("x", json("1")).unwrap()).await;
    assert_eq!(set(&cx, &ns, update("p", 100).set("x", json("1")).unwrap()).await, None);
    cx.pass(ms(100)).await;
    assert_eq!(rows(&cx, &ns).await, [], "the last write's ttl counts");
}

async fn ttl_set_again_after_expiry(cx: Cx) {
    let ns = cx.namespace("again");
    let write = || update("p", 50).set("x", json("1")).unwrap();
    assert!(set(&cx, &ns, write()).await.is_some());
    cx.pass(ms(50)).await;
    let patch = set(&cx, &ns, update("p", MINUTE).set("x", json("1")).unwrap()).await;
    assert_eq!(changes(&patch.unwrap()), [("x", "1")], "it was gone: that is a change");
    assert_eq!(brief(&cx, &ns).await, ["p/x=1"]);
}

async fn ttl_removed_after_expiry(cx: Cx) {
    let ns = cx.namespace("removed");
    set(&cx, &ns, update("p", 50).set("x", json("1")).unwrap()).await;
    cx.pass(ms(50)).await;
    assert_eq!(set(&cx, &ns, update("p", 50).remove("x").unwrap()).await, None);
}

async fn ttl_zero_and_huge(cx: Cx) {
    let ns = cx.namespace("huge");
    assert_code(PresenceUpdate::new("p", std::time::Duration::ZERO), "INVALID_INPUT");
    for (participant, ttl) in
        [("max", std::time::Duration::MAX), ("u64", std::time::Duration::from_millis(u64::MAX))]
    {
        let write = PresenceUpdate::new(participant, ttl).unwrap();
        set(&cx, &ns, write.set("x", json("1")).unwrap()).await;
    }
    let nano = PresenceUpdate::new("nano", std::time::Duration::from_nanos(1)).unwrap();
    set(&cx, &ns, nano.set("x", json("1")).unwrap()).await;
    let expiries: Vec<_> = rows(&cx, &ns).await.iter().map(|row| row.expires_at).collect();
    // 365 days; parts of a millisecond round up.
    let expected = [1_731_536_000_000, 1_700_000_000_001, 1_731_536_000_000];
    assert_eq!(expiries, expected.map(Timestamp::from_millis));
}

async fn namespaces(cx: Cx) {
    let (a, b) = (cx.namespace("a"), cx.namespace("b"));
    set(&cx, &a, update("p", MINUTE).set("x", json("1")).unwrap()).await;
    set(&cx, &b, update("p", MINUTE).set("x", json("2")).unwrap()).await;
    set(&cx, &b, update("p", MINUTE).set("y", json("3")).unwrap()).await;
    set(&cx, &a, update("p", MINUTE).remove("x").unwrap()).await;
    assert_eq!(rows(&cx, &a).await, []);
    assert_eq!(brief(&cx, &b).await, ["p/x=2", "p/y=3"]);
}

async fn another_handle(cx: Cx) {
    let ns = cx.namespace("handles");
    let other = cx.another().await;
    let mine = set(&cx, &ns, update("p", MINUTE).set("x", json("1")).unwrap()).await.unwrap();
    assert_eq!(brief(&other, &ns).await, ["p/x=1"]);
    let write = update("p", MINUTE).set("x", json("2")).unwrap();
    let theirs = set(&other, &ns, write).await.unwrap();
    assert_eq!(changes(&theirs), [("x", "2")]);
    assert_eq!(brief(&cx, &ns).await, ["p/x=2"]);
    assert_ne!(mine.source, theirs.source, "each handle is a source of its own");
}

async fn concurrent(cx: Cx) {
    let ns = cx.namespace("concurrent");
    let tasks = (0..8).map(|task| {
        let (cx, ns) = (cx.clone(), ns.clone());
        tokio::spawn(async move {
            for i in 0..25 {
                let shared = update("shared", MINUTE).set(format!("f{task}"), json("1"));
                set(&cx, &ns, shared.unwrap()).await;
                let own = update(&format!("p{task}"), MINUTE).set("n", json(&i.to_string()));
                assert!(set(&cx, &ns, own.unwrap()).await.is_some());
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    let mut expected: Vec<_> = (0..8).map(|task| format!("p{task}/n=24")).collect();
    expected.extend((0..8).map(|task| format!("shared/f{task}=1")));
    assert_eq!(brief(&cx, &ns).await, expected);
}

async fn dropped_writes(cx: Cx) {
    let ns = cx.namespace("dropped");
    for round in 0..200 {
        let wait = std::time::Duration::from_micros((round * 31) % 800);
        let value = json(&round.to_string());
        let write = update("p", 1_000).set("x", value.clone()).unwrap().set("y", value).unwrap();
        let _ = tokio::time::timeout(wait, cx.presence().set_presence(&ns, write)).await;
    }
    // Whole or not at all, and none without a ttl.
    let stored = rows(&cx, &ns).await;
    if let [x, y] = &stored[..] {
        assert_eq!(x.value, y.value);
    } else {
        assert_eq!(stored, []);
    }
    cx.pass(ms(1_000)).await;
    assert_eq!(rows(&cx, &ns).await, []);
    set(&cx, &ns, update("p", MINUTE).set("x", json("1")).unwrap()).await;
    assert_eq!(brief(&cx, &ns).await, ["p/x=1"]);
}
