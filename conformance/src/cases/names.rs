//! Names: hostile ones in every field come back as they are, never collide and mean nothing.

use std::collections::BTreeSet;

use a2_core::{
    Consumer, EventId, Field, Holder, Json, Lane, LogName, Namespace, Page, Participant,
    PresenceUpdate, PutSnapshots, ReadState, ReducerName, RenewClaims, Schedule, SessionId,
    SnapshotWrite, StoreExt, Target, TimerKey, WakeLog,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "names.hostile.sessions" => hostile_sessions: rules(R7, R8, F30, F31, F32), own;
    "names.hostile.event_ids" => hostile_event_ids: rules(R7, R8, F32);
    "names.hostile.types" => hostile_types: rules(R7, R8, R18, F32);
    "names.hostile.consumers" => hostile_consumers: rules(R7, R8, F32);
    "names.hostile.lanes" => hostile_lanes: rules(R7, R8, F30, F32);
    "names.hostile.logs" => hostile_logs: rules(R7, R8, F30, F32);
    "names.hostile.reducers" => hostile_reducers: rules(R7, R8, F32);
    "names.hostile.holders" => hostile_holders: rules(R7, R8, F32);
    "names.hostile.timer_keys" => hostile_timer_keys: rules(R7, R8, F32), needs(Timers);
    "names.hostile.presence" => hostile_presence: rules(R7, R8, F32), needs(Presence);
    "names.hostile.namespaces" => hostile_namespaces: rules(R7, R8, F31, F32), own, needs(Presence);
    "names.glued.consumer_and_lane" => glued_consumer_and_lane: rules(R8, F30);
    "names.glued.session_and_id" => glued_session_and_id: rules(R8, F30);
    "names.glued.session_and_reducer" => glued_session_and_reducer: rules(R8, F30);
    "names.glued.lane_and_index" => glued_lane_and_index: rules(R8, F30);
    "names.glued.lane_and_log" => glued_lane_and_log: rules(R8, R16, F30);
    "names.glued.presence" => glued_presence: rules(R8, F30), needs(Presence);
    "names.order.heads_bytewise" => order_heads_bytewise: rules(R8, R26);
    "names.order.cursors_bytewise" => order_cursors_bytewise: rules(R8, R59, R62);
    "names.length.longest" => length_longest: rules(R7);
    "names.length.longest_timer_key" => length_longest_timer_key: rules(R7), needs(Timers);
    "names.length.longest_presence" => length_longest_presence: rules(R7), needs(Presence);
    "names.rules.refused" => rules_refused: rules(R7, R9, R14, F26);
];

/// Names that a store with habits of its own would change, confuse or trip over.
pub(super) const HOSTILE: &[&str] = &[
    " ",
    "  ",
    "a b",
    "a",
    "A",
    "a ",
    " a",
    "🦀",
    "👩‍👩‍👧",
    "\u{e9}",
    "e\u{301}",
    "ß",
    "SS",
    "İ",
    ":",
    "a:b",
    "::",
    "{}",
    "}",
    "}{",
    "a}b",
    "{x",
    "{x}",
    "{x}y",
    "{{a}}",
    "#",
    "a#b",
    "'",
    "\"",
    "`",
    "\\",
    "\\\\",
    "\\u0000",
    "%",
    "%s",
    "_",
    "*",
    "?",
    "[a-z]",
    "a|b",
    "a,b",
    "a;b",
    "a/b",
    "../",
    "../../etc/passwd",
    ".",
    "..",
    "\n",
    "\r\n",
    "\t",
    "\u{1}",
    "\u{1f}",
    "\u{7f}",
    "\u{200b}",
    "\u{202e}",
    "\u{feff}",
    "\u{ffff}",
    "\u{10ffff}",
    "$1",
    "?1",
    "--",
    "'; DROP TABLE events; --",
    "log",
    "head",
    "meta",
    "event",
    "lane",
    "a2",
    "a2.clear",
    "null",
    "true",
    "NaN",
    "Infinity",
    "0",
    "-0",
    "7",
    "007",
    "7.0",
    "+7",
    " 7",
    "0x10",
    "1e3",
    "1000",
    "15E2621",
    "9007199254740993",
    "[1,2]",
    "{\"a\":1}",
];

const SEPARATORS: &[&str] = &[
    ":", "/", "|", ".", ",", ";", "#", "%", "\\", "'", "\"", " ", "\t", "\r", "\n", "\u{1f}",
    "log", "head", "meta", "\u{1}", "-", "_", "~", "{", "}",
];

/// The hostile names in bytewise order.
fn sorted(more: &[&'static str]) -> Vec<&'static str> {
    let mut names = [HOSTILE, more].concat();
    names.sort_unstable();
    names
}

async fn hostile_sessions(cx: Cx) {
    for (i, name) in HOSTILE.iter().enumerate() {
        let s = SessionId::new(name).unwrap();
        let appended = append(&cx, &s, [ev(&format!("e{i}"))]).await;
        assert_eq!(indexes(&appended), [1], "{name:?} is a session of its own");
        assert_eq!(appended[0].session, s);
    }
    clear(&cx, &SessionId::new("{}").unwrap()).await;
    let listed = cx.store().sessions(Page::first().limit(1_000).unwrap()).await.unwrap();
    let heads: BTreeSet<_> =
        listed.sessions.iter().map(|info| (info.session.as_str(), info.head.get())).collect();
    let expected: BTreeSet<_> =
        HOSTILE.iter().map(|&name| (name, if name == "{}" { 2 } else { 1 })).collect();
    assert_eq!(heads, expected);
    for (i, name) in HOSTILE.iter().enumerate().filter(|(_, name)| **name != "{}") {
        let stored = log(&cx, &SessionId::new(name).unwrap()).await;
        assert_eq!(ids(&stored), [format!("e{i}")], "{name:?}");
    }
}

async fn hostile_event_ids(cx: Cx) {
    let s = cx.session("ids");
    append(&cx, &s, HOSTILE.iter().map(|name| ev(name))).await;
    assert_eq!(ids(&log(&cx, &s).await), HOSTILE);
    for (i, name) in HOSTILE.iter().enumerate() {
        let again = cx.store().append(&s, batch([ev(name)])).await.unwrap();
        assert!(again.replayed, "{name:?}");
        assert_eq!(indexes(&again.events), [i as u64 + 1], "{name:?}");
    }
    // Differing in what some databases ignore: not owned.
    for name in ["b ", "B", "00", "7.00", "E\u{301}"] {
        assert!(!cx.store().append(&s, batch([ev(name)])).await.unwrap().replayed, "{name:?}");
    }
}

async fn hostile_types(cx: Cx) {
    let s = cx.session("types");
    let types: Vec<_> = HOSTILE.iter().copied().filter(|name| *name != "a2.clear").collect();
    append(&cx, &s, types.iter().map(|name| event(name, "null"))).await;
    let stored: Vec<_> = log(&cx, &s).await.into_iter().map(|e| e.event_type.clone()).collect();
    assert_eq!(stored, types);
    // A log of one type takes its own alone.
    for (i, name) in types.iter().enumerate() {
        let consumer = format!("c{i}");
        let only = only_types("log", [*name]).backfill();
        let woken = WakeLog::new(&consumer, only).unwrap();
        let cursor = cx.store().wake_log(&s, woken).await.unwrap().cursor;
        assert_eq!(cursor.head, Some(at(i as u64 + 1)), "{name:?}");
        let head = claim_one(&cx, &s, &consumer).await;
        finish(&cx, &s, &head).await;
    }
    expect_settled(cx.store().claim_available(&s, claim()).await);
}

async fn hostile_consumers(cx: Cx) {
    let s = cx.session("consumers");
    append(&cx, &s, [ev("e").targets(HOSTILE.iter().map(|name| to_event(name)))]).await;
    for name in HOSTILE {
        let head = claim_one(&cx, &s, name).await;
        assert_eq!(head.head, event_head(name, 1));
        assert_eq!(head.attempt(), 1, "{name:?} is a consumer of its own");
        finish(&cx, &s, &head).await;
        expect_settled(cx.store().claim_available(&s, claim().served(serve([name]))).await);
    }
}

async fn hostile_lanes(cx: Cx) {
    let s = cx.session("lanes");
    let names = sorted(&[""]);
    let events = names.iter().enumerate().map(|(i, name)| {
        let id = format!("e{i}");
        ev(&id).target(Target::lane("c", *name).unwrap())
    });
    append(&cx, &s, events).await;
    let heads = take(&cx, &s, claim().limit(1_000).unwrap()).await;
    for (i, (head, name)) in heads.iter().zip(&names).enumerate() {
        assert_eq!(head.head, lane_head("c", name, i as u64 + 1));
        assert_eq!(head.event.id, EventId::new(format!("e{i}")).unwrap());
    }
    assert_eq!(heads.len(), names.len());
    // Completing one leaves the others.
    for head in heads.iter().step_by(2) {
        finish(&cx, &s, head).await;
    }
    for (i, cursor) in cx.store().all_cursors(&s).await.unwrap().iter().enumerate() {
        let head = (i % 2 == 1).then(|| at(i as u64 + 1));
        assert_eq!((cursor.key.name(), cursor.head), (names[i], head));
    }
}

async fn hostile_logs(cx: Cx) {
    let s = cx.session("logs");
    append(&cx, &s, [ev("a"), ev("b")]).await;
    let names = sorted(&[""]);
    for name in &names {
        let wake = WakeLog::new("c", all_types(name).backfill()).unwrap();
        let woken = cx.store().wake_log(&s, wake).await.unwrap();
        assert_eq!(woken.cursor.head, Some(at(1)), "{name:?} is a cursor of its own");
    }
    let heads = take(&cx, &s, claim().limit(1_000).unwrap()).await;
    let expected: Vec<_> = names.iter().map(|name| log_head("c", name, 1)).collect();
    assert_eq!(refs(&heads), expected);
    finish(&cx, &s, &heads[3]).await;
    for (i, cursor) in cx.store().all_cursors(&s).await.unwrap().iter().enumerate() {
        let head = at(if i == 3 { 2 } else { 1 });
        assert_eq!((cursor.key.name(), cursor.head), (names[i], Some(head)));
    }
}

async fn hostile_reducers(cx: Cx) {
    let s = cx.session("reducers");
    append(&cx, &s, [ev("a")]).await;
    for (i, name) in HOSTILE.iter().enumerate() {
        let write = SnapshotWrite::new(at(1), json(&i.to_string()));
        let writes = PutSnapshots::new([write]).unwrap();
        let put = cx.store().put_snapshots(&s, &ReducerName::new(name).unwrap(), writes).await;
        assert_eq!(put.unwrap().stored, [at(1)]);
    }
    for (i, name) in HOSTILE.iter().enumerate() {
        let reducer = ReducerName::new(name).unwrap();
        let read = cx.store().read_state(&s, &reducer, ReadState::latest()).await.unwrap();
        assert_eq!(read.snapshot.unwrap().state, json(&i.to_string()), "{name:?}");
    }
}

async fn hostile_holders(cx: Cx) {
    let s = cx.session("holders");
    append(&cx, &s, HOSTILE.iter().enumerate().map(|(i, _)| {
        ev(&format!("e{i}")).target(to_event("c"))
    }))
    .await;
    let mut heads = Vec::new();
    for name in HOSTILE {
        let one = claim_as(name, secs(60)).limit(1).unwrap();
        let head = take(&cx, &s, one).await.remove(0);
        assert_eq!(head.state.claim_holder, Some(Holder::new(name).unwrap()));
        heads.push(head.attempt_ref());
    }
    for (i, name) in HOSTILE.iter().enumerate() {
        let renew = RenewClaims::new(*name, heads.clone(), secs(60)).unwrap();
        let renewed = cx.store().renew_claims(&s, renew).await.unwrap();
        assert_eq!(renewed.renewed, [heads[i].clone()], "{name:?} holds its own alone");
        assert_eq!(renewed.superseded, []);
    }
}

async fn hostile_timer_keys(cx: Cx) {
    let s = cx.session("timers");
    for (i, name) in HOSTILE.iter().enumerate() {
        let timer = Schedule::new(*name, secs(i as u64 + 1), ev(&format!("e{i}"))).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    let page = Page::first().limit(1_000).unwrap();
    let listed = cx.timers().timers(&s, page).await.unwrap().timers;
    let keys: Vec<_> = listed.iter().map(|timer| timer.key.as_str()).collect();
    assert_eq!(keys, sorted(&[]), "each its own timer, in bytewise order");
    for name in HOSTILE {
        let key = TimerKey::new(name).unwrap();
        assert!(cx.timers().unschedule(&s, &key).await.unwrap().removed, "{name:?}");
    }
}

async fn hostile_presence(cx: Cx) {
    let ns = cx.namespace("presence");
    for name in HOSTILE {
        let mut update = PresenceUpdate::new(*name, secs(60)).unwrap();
        // As many fields as one call takes; all of them in two calls.
        let (first, second) = HOSTILE.split_at(60);
        for fields in [first, second] {
            for field in fields {
                let value = Json::from_serialize(&(name, field)).unwrap();
                update = update.set(*field, value).unwrap();
            }
            cx.presence().set_presence(&ns, update).await.unwrap();
            update = PresenceUpdate::new(*name, secs(60)).unwrap();
        }
    }
    let rows = cx.presence().read_presence(&ns).await.unwrap().rows;
    let names = sorted(&[]);
    assert_eq!(rows.len(), names.len() * names.len());
    for (i, row) in rows.iter().enumerate() {
        let (participant, field) = (names[i / names.len()], names[i % names.len()]);
        assert_eq!((row.participant.as_str(), row.field.as_str()), (participant, field));
        assert_eq!(row.value, Json::from_serialize(&(participant, field)).unwrap());
    }
}

async fn hostile_namespaces(cx: Cx) {
    for (i, name) in HOSTILE.iter().enumerate() {
        let update = PresenceUpdate::new("p", secs(60)).unwrap();
        let update = update.set("f", json(&i.to_string())).unwrap();
        let patch = cx.presence().set_presence(&Namespace::new(name).unwrap(), update).await;
        assert!(patch.unwrap().is_some());
    }
    for (i, name) in HOSTILE.iter().enumerate() {
        let ns = Namespace::new(name).unwrap();
        let rows = cx.presence().read_presence(&ns).await.unwrap().rows;
        assert_eq!(rows.len(), 1, "{name:?}");
        assert_eq!(rows[0].value, json(&i.to_string()), "{name:?}");
    }
}

async fn glued_consumer_and_lane(cx: Cx) {
    for sep in SEPARATORS {
        let s = cx.session("glued");
        let (long, split) = (format!("a{sep}b"), format!("b{sep}c"));
        let events = [ev("1").target(to_lane(&long, "c")), ev("2").target(to_lane("a", &split))];
        append(&cx, &s, events).await;
        let heads = take(&cx, &s, claim()).await;
        let both = [lane_head(&long, "c", 1), lane_head("a", &split, 2)];
        assert_eq!(refs(&heads), both, "{sep:?}");
        finish(&cx, &s, &heads[0]).await;
        let left: Vec<_> = cx.store().all_cursors(&s).await.unwrap();
        let heads: Vec<_> = left.iter().map(|cursor| cursor.head.map(|i| i.get())).collect();
        assert_eq!(heads, [Some(2), None], "{sep:?}: `a` before `a…b`");
    }
}

async fn glued_session_and_id(cx: Cx) {
    let base = cx.unique("glued");
    for sep in SEPARATORS {
        let long = SessionId::new(format!("{base}{sep}1")).unwrap();
        let short = SessionId::new(format!("{base}{sep}")).unwrap();
        append(&cx, &long, [ev("2")]).await;
        append(&cx, &short, [ev("12"), ev("x")]).await;
        clear(&cx, &short).await;
        assert_eq!(ids(&log(&cx, &long).await), ["2"], "{sep:?}");
        let again = cx.store().append(&long, batch([ev("2")])).await.unwrap();
        assert!(again.replayed, "{sep:?}");
    }
}

async fn glued_session_and_reducer(cx: Cx) {
    let base = cx.unique("glued");
    for sep in SEPARATORS {
        let pairs = [(format!("{base}{sep}r"), "x".to_owned()), (base.clone(), format!("r{sep}x"))];
        for (i, (s, reducer)) in pairs.iter().enumerate() {
            let (s, reducer) = (SessionId::new(s).unwrap(), ReducerName::new(reducer).unwrap());
            append(&cx, &s, [ev("a")]).await;
            let write = SnapshotWrite::new(at(1), json(&i.to_string()));
            let writes = PutSnapshots::new([write]).unwrap();
            let _ = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
        }
        for (i, (s, reducer)) in pairs.iter().enumerate() {
            let (s, reducer) = (SessionId::new(s).unwrap(), ReducerName::new(reducer).unwrap());
            let read = cx.store().read_state(&s, &reducer, ReadState::latest()).await.unwrap();
            assert_eq!(read.snapshot.unwrap().state, json(&i.to_string()), "{sep:?}");
        }
    }
}

async fn glued_lane_and_index(cx: Cx) {
    let s = cx.session("glued");
    let mut events = many("e", 11);
    events[0] = ev("e1").target(to_lane("c", "l1"));
    events[10] = ev("e11").target(to_lane("c", "l"));
    append(&cx, &s, events).await;
    let heads = take(&cx, &s, claim()).await;
    assert_eq!(refs(&heads), [lane_head("c", "l1", 1), lane_head("c", "l", 11)]);
    finish(&cx, &s, &heads[0]).await;
    let left: Vec<_> = cx.store().all_cursors(&s).await.unwrap();
    assert_eq!((left[0].key.name(), left[0].head), ("l", Some(at(11))));
    assert_eq!((left[1].key.name(), left[1].head), ("l1", None));
}

async fn glued_lane_and_log(cx: Cx) {
    for name in ["", "log", "log:x", "lane", "x"] {
        let s = cx.session("same-name");
        let served = serve_log("c", all_types(name));
        let both = batch([ev("a").target(to_lane("c", name))]).served(served);
        assert!(cx.store().append(&s, both).await.unwrap().has_pending);
        let heads = take(&cx, &s, claim()).await;
        assert_eq!(refs(&heads), [lane_head("c", name, 1), log_head("c", name, 1)]);
        bury(&cx, &s, &heads[0]).await;
        finish(&cx, &s, &heads[1]).await;
        let cursors = cx.store().all_cursors(&s).await.unwrap();
        assert_eq!((cursors[0].head, cursors[1].head), (Some(at(1)), None), "{name:?}");
    }
}

async fn glued_presence(cx: Cx) {
    let base = cx.unique("glued");
    for sep in SEPARATORS {
        let namespaces = [format!("{base}{sep}b"), base.clone()];
        let participants = ["c".to_owned(), format!("b{sep}c")];
        for (i, (ns, participant)) in namespaces.iter().zip(&participants).enumerate() {
            // Participant and field are glued the same way.
            let update = PresenceUpdate::new(participant, secs(60)).unwrap();
            let update = update.set("f", json(&i.to_string())).unwrap();
            let ns = Namespace::new(ns).unwrap();
            cx.presence().set_presence(&ns, update).await.unwrap();
            let split = PresenceUpdate::new("c", secs(60)).unwrap();
            let split = split.set(format!("{sep}f"), json("9")).unwrap();
            cx.presence().set_presence(&ns, split).await.unwrap();
        }
        for (i, (ns, participant)) in namespaces.iter().zip(&participants).enumerate() {
            let ns = Namespace::new(ns).unwrap();
            let rows = cx.presence().read_presence(&ns).await.unwrap().rows;
            let own = rows
                .iter()
                .find(|row| row.participant == participant.as_str() && row.field == "f")
                .unwrap();
            assert_eq!(own.value, json(&i.to_string()), "{sep:?}");
        }
    }
}

/// In bytewise order, which no language's collation gives.
const ORDERED: [&str; 10] =
    ["\n", " ", "B", "Z", "a", "a\u{1}", "aa", "\u{e4}", "\u{ffff}", "\u{10000}"];

async fn order_heads_bytewise(cx: Cx) {
    let s = cx.session("heads");
    let mut targets = Vec::new();
    for name in ORDERED.iter().rev() {
        targets.extend([to_lane("c", name), to_event(name)]);
    }
    append(&cx, &s, [ev("a").targets(targets)]).await;
    let heads = take(&cx, &s, claim()).await;
    let mut expected: Vec<_> = ORDERED.iter().map(|name| event_head(name, 1)).collect();
    // `c` comes after `aa` and before `ä`.
    expected.splice(7..7, ORDERED.iter().map(|name| lane_head("c", name, 1)));
    assert_eq!(refs(&heads), expected);
}

async fn order_cursors_bytewise(cx: Cx) {
    let s = cx.session("cursors");
    let targets = ORDERED.iter().rev().map(|name| to_lane("c", name));
    append(&cx, &s, [ev("a").targets(targets)]).await;
    for page_size in [1, 3, 100] {
        let mut names = Vec::new();
        let mut page = Page::first().limit(page_size).unwrap();
        loop {
            let cursors = cx.store().cursors(&s, page.clone()).await.unwrap();
            names.extend(cursors.cursors.iter().map(|cursor| cursor.key.name().to_owned()));
            match cursors.next {
                Some(token) => page = page.and_then(token),
                None => break,
            }
        }
        assert_eq!(names, ORDERED, "pages of {page_size}");
    }
}

/// Names of 512 bytes that differ in the last.
fn longest() -> [String; 2] {
    [format!("{}a", "x".repeat(511)), format!("{}b", "x".repeat(511))]
}

async fn length_longest(cx: Cx) {
    let suffix = cx.unique("");
    let session = format!("{}{suffix}", "🦀".repeat((512 - suffix.len()) / 4));
    let s = SessionId::new(&session).unwrap();
    assert!(session.len() > 508);
    let names = longest();
    let served = serve_log(&names[0], all_types(&names[0]));
    let events = names.iter().map(|name| {
        event(name, "null").id(name).unwrap().targets([to_event(name), to_lane(name, name)])
    });
    let appended = cx.store().append(&s, batch(events).served(served)).await.unwrap();
    assert_eq!(ids(&appended.events), names);
    let heads = take(&cx, &s, claim_as(&names[1], secs(60))).await;
    assert_eq!(refs(&heads), [
        event_head(&names[0], 1),
        lane_head(&names[0], &names[0], 1),
        log_head(&names[0], &names[0], 1),
        event_head(&names[1], 2),
        lane_head(&names[1], &names[1], 2),
    ]);
    assert_eq!(heads[0].state.claim_holder, Some(Holder::new(&names[1]).unwrap()));
    for (name, state) in names.iter().zip(["1", "2"]) {
        let writes = PutSnapshots::new([SnapshotWrite::new(at(2), json(state))]).unwrap();
        let reducer = ReducerName::new(name).unwrap();
        let _ = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
    }
    let first = ReducerName::new(&names[0]).unwrap();
    let read = cx.store().read_state(&s, &first, ReadState::latest()).await.unwrap();
    assert_eq!(read.snapshot.unwrap().state, json("1"));
}

async fn length_longest_timer_key(cx: Cx) {
    let s = cx.session("timers");
    for (i, name) in longest().iter().enumerate() {
        let timer = Schedule::new(name, secs(i as u64), ev(name)).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    let listed = cx.timers().timers(&s, Page::first()).await.unwrap().timers;
    let keys: Vec<_> = listed.iter().map(|timer| timer.key.as_str()).collect();
    assert_eq!(keys, longest());
}

async fn length_longest_presence(cx: Cx) {
    let suffix = cx.unique("");
    let ns = Namespace::new(format!("{}{suffix}", "x".repeat(512 - suffix.len()))).unwrap();
    for name in &longest() {
        let update = PresenceUpdate::new(name, secs(60)).unwrap();
        let update = update.set(name, json("1")).unwrap();
        cx.presence().set_presence(&ns, update).await.unwrap();
    }
    let rows = cx.presence().read_presence(&ns).await.unwrap().rows;
    let names: Vec<_> =
        rows.iter().map(|row| [row.participant.as_str(), row.field.as_str()]).collect();
    let [a, b] = longest();
    assert_eq!(names, [[&a, &a], [&b, &b]]);
}

async fn rules_refused(cx: Cx) {
    let long = "x".repeat(513);
    let of_bytes = "é".repeat(257);
    for text in ["", "a\0b", "\0", &long, &of_bytes] {
        let empty = text.is_empty();
        for (field, result) in [
            ("session", SessionId::new(text).err()),
            ("id", EventId::new(text).err()),
            ("type", a2_core::EventType::new(text).err()),
            ("consumer", Consumer::new(text).err()),
            ("lane", Lane::new(text).err()),
            ("log", LogName::new(text).err()),
            ("reducer", ReducerName::new(text).err()),
            ("holder", Holder::new(text).err()),
            ("key", TimerKey::new(text).err()),
            ("namespace", Namespace::new(text).err()),
            ("participant", Participant::new(text).err()),
            ("field", Field::new(text).err()),
        ] {
            if empty && (field == "lane" || field == "log") {
                assert!(result.is_none(), "{field} may be empty");
                continue;
            }
            let error = result.unwrap_or_else(|| panic!("{field} takes {text:?}"));
            assert_eq!(error.code(), "INVALID_INPUT");
            assert!(error.to_string().starts_with(&format!("{field}: must ")), "{error}");
        }
    }
    // The marker's type is clear's own.
    assert_code(a2_core::NewEvent::new("a2.clear", &()), "INVALID_INPUT");
    // A request with a name that breaks a rule cannot be built, so nothing reaches the store.
    assert_code(Target::lane("c", "a\0"), "INVALID_INPUT");
    let _ = cx;
}
