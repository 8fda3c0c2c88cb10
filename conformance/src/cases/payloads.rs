//! Payloads and states come back byte for byte, by every path.

use a2_core::{
    FailAttempt, Failure, Field, FireTimers, Index, Json, NewEvent, Page, PresenceChange,
    PresenceUpdate, PutSnapshots, ReadState, ReducerName, Schedule, SessionId, SnapshotWrite,
    StoreExt,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "payloads.exact.append_and_read" => append_and_read: rules(R4, F27, F28);
    "payloads.exact.stream" => stream: rules(R4, F27, F28);
    "payloads.exact.claim_and_dead_letter" => claim_and_dead_letter: rules(R4, F27, F28);
    "payloads.exact.run" => run: rules(R4, F27, F28);
    "payloads.exact.returned_events" => returned_events: rules(R4, F27, F28);
    "payloads.exact.snapshot" => snapshot: rules(R4, F26, F27, F28);
    "payloads.exact.timer" => timer: rules(R4, F27, F28), needs(Timers);
    "payloads.exact.presence" => presence: rules(R4, F26, F27, F28), needs(Presence);
    "payloads.exact.presence_watch" => presence_watch: rules(R4, F27, F28), needs(Presence);
    "payloads.exact.error_text" => error_text: rules(R12, F26);
    "payloads.white_space.dropped" => white_space_dropped: rules(R4);
    "payloads.nul.within_a_batch" => nul_within_a_batch: rules(R4, F26);
    "payloads.depth.limit" => depth_limit: rules(R10, R14, F29);
    "payloads.depth.deepest_everywhere" => depth_deepest_everywhere: rules(R4, R10, F29);
];

/// JSON texts that some parser, column type or script changes.
const EXACT: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1.10",
    "1e400",
    "-1E+400",
    "1e-400",
    "0.1000000000000000055511151231257827",
    "3.141592653589793238462643383279502884197",
    // Numbers that doubles round and cjson prints with 14 digits.
    "100000000000000",
    "9007199254740991",
    "9007199254740993",
    "130775545883395173",
    "12345678901234567890",
    "-9223372036854775808",
    "9223372036854775807",
    "18446744073709551615",
    "123456789012345678901234567890123456789012345678901234567890",
    r#""""#,
    r#"" ""#,
    r#""\u0000""#,
    r#""x\u0000y""#,
    r#""\ud800""#,
    r#""\udc00\ud800""#,
    r#""\ud83e\udd80""#,
    r#""🦀""#,
    r#""\u00e9""#,
    r#""é""#,
    r#""\/""#,
    r#""/""#,
    r#""\\u0000""#,
    r#""\"\\\b\f\n\r\t""#,
    "\"\u{2028}\u{2029}\u{7f}\u{feff}\u{ffff}\u{10ffff}\"",
    r#""'; -- $1 ?1 %s {}""#,
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    r#"{"a":[],"o":{},"n":[[],{},[[]]],"z":null}"#,
    r#"{"":""}"#,
    r#"{"b":1,"a":2,"B":3}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"a":{"x":1},"a":{"y":2}}"#,
    r#"{"\u0000":1,"\u0061":2,"a":3}"#,
    r#"{"__proto__":1,"$type":"x","@class":"y"}"#,
    r#"[1,1.0,1e0,"1",true,null]"#,
];

fn texts<'a>(payloads: impl IntoIterator<Item = &'a Json>) -> Vec<&'a str> {
    payloads.into_iter().map(Json::as_str).collect()
}

fn payloads(events: &[a2_core::Event]) -> Vec<&str> {
    texts(events.iter().map(|event| &event.payload))
}

fn every_payload(prefix: &str) -> Vec<NewEvent> {
    let event = |(i, text): (usize, &&str)| event("t", text).id(format!("{prefix}{i}")).unwrap();
    EXACT.iter().enumerate().map(event).collect()
}

async fn append_and_read(cx: Cx) {
    let s = cx.session("read");
    let request = batch(every_payload("e"));
    let appended = cx.store().append(&s, request.clone()).await.unwrap();
    assert_eq!(payloads(&appended.events), EXACT);
    assert_eq!(payloads(&log(&cx, &s).await), EXACT);
    let replayed = cx.store().append(&s, request).await.unwrap();
    assert!(replayed.replayed);
    assert_eq!(payloads(&replayed.events), EXACT);
}

async fn stream(cx: Cx) {
    let s = cx.session("stream");
    append(&cx, &s, every_payload("history")).await;
    let mut stream = cx.store().stream(&s, Index::ZERO);
    for text in EXACT {
        assert_eq!(next(&cx, &mut stream).await.payload.as_str(), *text);
    }
    append(&cx, &s, every_payload("live")).await;
    for text in EXACT {
        assert_eq!(next(&cx, &mut stream).await.payload.as_str(), *text);
    }
}

async fn claim_and_dead_letter(cx: Cx) {
    let s = cx.session("claim");
    let events = every_payload("e").into_iter();
    append(&cx, &s, events.map(|event| event.target(to_event("c")))).await;
    let heads = claim_all(&cx, &s).await;
    assert_eq!(texts(heads.iter().map(|head| &head.event.payload)), EXACT);
    for head in &heads {
        bury(&cx, &s, head).await;
    }
    let dead = cx.store().dead_letters(&s, Page::first()).await.unwrap().heads;
    assert_eq!(texts(dead.iter().map(|head| &head.event.payload)), EXACT);
}

async fn run(cx: Cx) {
    let s = cx.session("run");
    let served = serve_log("c", all_types("log"));
    let _ = cx.store().append(&s, batch(every_payload("e")).served(served)).await.unwrap();
    let heads = take(&cx, &s, claim().run(1_000).unwrap()).await;
    let all: Vec<_> = std::iter::once(&heads[0].event).chain(&heads[0].run).collect();
    assert_eq!(texts(all.iter().map(|event| &event.payload)), EXACT);
}

async fn returned_events(cx: Cx) {
    let s = cx.session("returned");
    append(&cx, &s, [ev("parent").target(to_lane("c", "l"))]).await;
    let head = claim_one(&cx, &s, "c").await;
    let request = complete(&head).events(every_payload("child")).unwrap();
    let completed = cx.store().complete_attempt(&s, request.clone()).await;
    assert_eq!(payloads(&expect_completed(completed).events), EXACT);
    let replayed = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert!(replayed.replayed);
    assert_eq!(payloads(&replayed.events), EXACT);
    assert_eq!(payloads(&log(&cx, &s).await[1..]), EXACT);
}

async fn snapshot(cx: Cx) {
    let s = cx.session("snapshot");
    append(&cx, &s, [ev("a")]).await;
    let reducer = ReducerName::new("r").unwrap();
    for text in EXACT {
        let writes = PutSnapshots::new([SnapshotWrite::new(at(1), json(text))]).unwrap();
        let _ = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
        let read = cx.store().read_state(&s, &reducer, ReadState::latest()).await.unwrap();
        assert_eq!(read.snapshot.unwrap().state.as_str(), *text);
    }
}

async fn timer(cx: Cx) {
    let s = cx.session("timer");
    for (i, event) in every_payload("e").into_iter().enumerate() {
        let timer = Schedule::new(format!("{i:03}"), ms(i as u64), event).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
    }
    let listed = cx.timers().timers(&s, Page::first()).await.unwrap().timers;
    assert_eq!(texts(listed.iter().map(|timer| timer.event.payload())), EXACT);
    cx.pass(secs(1)).await;
    let fired = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!(payloads(&fired.events), EXACT);
    assert_eq!(payloads(&log(&cx, &s).await), EXACT);
}

async fn presence(cx: Cx) {
    let ns = cx.namespace("presence");
    // A value of null removes: it is left out.
    let kept: Vec<_> = EXACT.iter().copied().filter(|text| *text != "null").collect();
    let mut update = PresenceUpdate::new("p", secs(60)).unwrap();
    for (i, text) in kept.iter().enumerate() {
        update = update.set(format!("{i:03}"), json(text)).unwrap();
    }
    let patch = cx.presence().set_presence(&ns, update).await.unwrap().unwrap();
    assert_eq!(texts(patch.values.values().map(|value| value.as_ref().unwrap())), kept);
    let rows = cx.presence().read_presence(&ns).await.unwrap().rows;
    assert_eq!(texts(rows.iter().map(|row| &row.value)), kept);
}

async fn presence_watch(cx: Cx) {
    let ns = cx.namespace("watch");
    let mut watch = cx.presence().watch_presence(&ns);
    let first = next(&cx, &mut watch).await;
    assert!(matches!(first, PresenceChange::Rows(rows) if rows.rows.is_empty()));
    for text in EXACT.iter().filter(|text| **text != "null") {
        let update = PresenceUpdate::new("p", secs(60)).unwrap().set("f", json(text)).unwrap();
        cx.presence().set_presence(&ns, update).await.unwrap();
        let PresenceChange::Patch(patch) = next(&cx, &mut watch).await else { panic!("a patch") };
        let value = patch.values[&Field::new("f").unwrap()].as_ref();
        assert_eq!(value.unwrap().as_str(), *text);
    }
}

async fn error_text(cx: Cx) {
    let s = cx.session("error");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let exact = "x\0y\n🦀 \u{fffd} \u{7f}\\u0000 '\"%$1";
    let longest = "x".repeat(64 * 1024);
    // Cut at 64 KiB, on a character boundary.
    let long = format!("{}é and more", "x".repeat(65_535));
    for (given, kept) in
        [(exact, exact), ("", ""), (&longest, &*longest), (&long, &"x".repeat(65_535))]
    {
        let head = claim_one(&cx, &s, "c").await;
        let fail = FailAttempt::new(head.head.clone(), head.attempt(), given);
        let failed = cx.store().fail_attempt(&s, fail).await.unwrap().outcome;
        assert!(matches!(failed, Failure::Failed { .. }));
        let cursors = cx.store().all_cursors(&s).await.unwrap();
        assert!(cursors[0].state.last_error.as_deref() == Some(kept), "{} bytes", given.len());
    }
}

async fn white_space_dropped(cx: Cx) {
    let s = cx.session("space");
    let padded = " { \"a b\" :\t[ 1 ,\n2 ] , \"c\" : \" : \" }\r\n";
    append(&cx, &s, [event("t", padded)]).await;
    assert_eq!(payloads(&log(&cx, &s).await), [r#"{"a b":[1,2],"c":" : "}"#]);
}

async fn nul_within_a_batch(cx: Cx) {
    let s = cx.session("nul");
    let nul = r#"{"a":"x\u0000y","\u0000":1}"#;
    let three = |prefix: &str| {
        [("1", "1"), ("2", nul), ("3", "3")]
            .map(|(n, text)| event("t", text).id(format!("{prefix}{n}")).unwrap())
    };
    append(&cx, &s, three("a").map(|event| event.target(to_lane("c", "l")))).await;
    let head = claim_one(&cx, &s, "c").await;
    let request = complete(&head).events(three("b")).unwrap();
    let completed = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert_eq!(payloads(&completed.events), ["1", nul, "3"]);
    assert_eq!(payloads(&log(&cx, &s).await), ["1", nul, "3", "1", nul, "3"]);
    // The handle goes on.
    assert_eq!(indexes(&append(&cx, &s, [ev("after")]).await), [7]);
}

/// Serializes as an array nested this deep.
struct Nested(usize);

impl serde::Serialize for Nested {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0 > 1).then(|| Self(self.0 - 1)))
    }
}

/// An array nested this deep.
fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

async fn depth_limit(cx: Cx) {
    let s = cx.session("depth");
    append(&cx, &s, [ev("before")]).await;
    for depth in [128, 129, 200, 1_000, 100_000] {
        let error = assert_code(Json::parse(nested(depth)), "INVALID_INPUT");
        assert_eq!(error.to_string(), "json: must nest at most 127 arrays and objects");
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_code(Json::parse(objects), "INVALID_INPUT");
        // Built in memory: refused on the way down, before the stack ends.
        assert_code(NewEvent::new("t", &Nested(depth)), "INVALID_INPUT");
    }
    for depth in [1, 127] {
        append(&cx, &s, [NewEvent::new("t", &Nested(depth)).unwrap()]).await;
    }
    append(&cx, &s, [ev("after")]).await;
    let (one, deepest) = (nested(1), nested(127));
    assert_eq!(payloads(&log(&cx, &s).await), ["null", &one, &deepest, "null"]);
}

async fn depth_deepest_everywhere(cx: Cx) {
    let s: SessionId = cx.session("deepest");
    let deepest = nested(127);
    append(&cx, &s, [event("t", &deepest).target(to_event("c")), ev("b")]).await;
    let head = claim_one(&cx, &s, "c").await;
    assert_eq!(head.event.payload.as_str(), deepest);
    let child = event("t", &deepest).id("child").unwrap();
    let request = complete(&head).events([child]).unwrap();
    let completed = expect_completed(cx.store().complete_attempt(&s, request).await);
    assert_eq!(payloads(&completed.events), [&deepest]);
    let reducer = ReducerName::new("r").unwrap();
    let writes = PutSnapshots::new([SnapshotWrite::new(at(2), json(&deepest))]).unwrap();
    let _ = cx.store().put_snapshots(&s, &reducer, writes).await.unwrap();
    let read = cx.store().read_state(&s, &reducer, ReadState::latest()).await.unwrap();
    assert_eq!(read.snapshot.unwrap().state.as_str(), deepest);
    assert_eq!(payloads(&read.events), [&deepest]);
    let value: serde_json::Value = read.events[0].payload.deserialize().unwrap();
    assert_eq!(Json::from_serialize(&value).unwrap().as_str(), deepest);
}
