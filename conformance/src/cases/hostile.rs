//! Generated input: names, payloads and page tokens that nobody thought of, with pieces of SQL, Lua and
//! the servers' protocols among them, in every field at once.

use std::collections::BTreeSet;

use a2_core::{
    ClaimAvailable, Clear, FailAttempt, Failure, FireTimers, LogDeclaration, NewEvent, Page,
    PageToken, PendingPage, PresenceUpdate, PutSnapshots, ReadState, ReducerName, Result, Schedule,
    Served, ServedConsumer, SessionId, SnapshotWrite, StoreExt, Target, TimerKey,
};
use proptest::collection::vec;
use proptest::prelude::{Just, any};
use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use proptest::{option, prop_oneof, sample};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "hostile.generated.names" => names: rules(R7, R8, F30, F31, F32), needs(Timers, Presence);
    "hostile.generated.payloads" => payloads: rules(R4, R10, F26, F27, F28), needs(Timers, Presence);
    "hostile.generated.tokens" => tokens: rules(R14, R62, R77, R78), own, needs(Timers);
];

/// What ends a string, a statement, a script or a request somewhere.
const PIECES: &[&str] = &[
    "'",
    "\"",
    "\\",
    "';",
    "'); drop table a2_events; --",
    "$$; select pg_sleep(9); $$",
    "\\'; delete from a2_sessions; --",
    "E'\\\\x00'",
    "U&'\\0041'",
    "]]",
    "]] redis.call('flushall') --[[",
    "\" .. redis.call('flushall') .. \"",
    "KEYS[1]",
    "ARGV[#ARGV]",
    "return redis.error_reply('x')",
    "\r\n*1\r\n$8\r\nFLUSHALL\r\n",
    "{}",
    "{0}",
    "{a}:l",
    ":l",
    "%00",
    "%s%n",
    "\\u0000",
    "\u{1}",
    "\u{fffd}",
    "\u{feff}",
    "\u{202e}",
    "/*",
    "*/",
    "--",
    "${x}",
    "{{x}}",
    "../",
    "NULL",
    "-1",
    "18446744073709551616",
];

/// A name of 1 to 512 bytes without U+0000.
fn name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => sample::select(PIECES).prop_map(str::to_owned),
        2 => vec(any::<char>(), 1..8).prop_map(String::from_iter),
        1 => "[a-z0-9]{1,40}",
        1 => vec(any::<char>(), 30..90).prop_map(String::from_iter),
    ];
    vec(piece, 1..8).prop_map(|pieces| {
        let mut name = pieces.concat().replace('\0', "");
        while name.len() > 512 {
            name.pop();
        }
        if name.is_empty() { "x".to_owned() } else { name }
    })
}

/// JSON text as it is kept: any nesting, any string, any number.
fn json_text() -> BoxedStrategy<String> {
    let string = prop_oneof![
        name().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just("\"\\u0000\"".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("\"\\/\\b\\f\"".to_owned()),
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?",
        string.clone(),
    ];
    let string = string.boxed();
    leaf.prop_recursive(6, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(|items| format!("[{}]", items.join(","))),
            vec((string.clone(), inner), 0..6).prop_map(|fields| {
                let fields: Vec<_> =
                    fields.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
    .boxed()
}

/// The same values in every run.
fn sample<T: std::fmt::Debug>(runner: &mut TestRunner, of: &impl Strategy<Value = T>) -> T {
    of.new_tree(runner).unwrap().current()
}

async fn names(cx: Cx) {
    let mut runner = TestRunner::deterministic();
    for round in 0..60 {
        let mut next = || sample(&mut runner, &name());
        let s = SessionId::new(format!("{}{}", cut(next(), 400), cx.unique(""))).unwrap();
        let (id, kind, consumer, lane, log) = (next(), next(), next(), next(), next());
        let (holder, reducer, key, error) = (next(), next(), next(), next());
        let (participant, field) = (next(), next());
        let kind = if kind == "a2.clear" { "x".to_owned() } else { kind };
        let log_declared = LogDeclaration::new(&*log).unwrap();
        let entry = ServedConsumer::new(&*consumer).unwrap().log(log_declared);
        let served = Served::only([entry]).unwrap();
        let new = event(&kind, "1").id(&*id).unwrap();
        let new = new.target(Target::lane(&*consumer, &*lane).unwrap());
        let appended = cx.store().append(&s, batch([new]).served(served.clone())).await.unwrap();
        assert!(appended.has_pending, "round {round}");
        let stored = log_of(&cx, &s).await;
        assert_eq!(stored, appended.events);
        assert_eq!((stored[0].id.as_str(), stored[0].event_type.as_str()), (&*id, &*kind));

        let pending = PendingPage::new(served.clone());
        let mut page = Page::first().limit(1_000).unwrap();
        let found = loop {
            let listed = cx.store().pending(pending.clone().page(page.clone())).await.unwrap();
            if listed.sessions.iter().any(|found| found.session == s) {
                break true;
            }
            match listed.next {
                Some(token) => page = page.and_then(token),
                None => break false,
            }
        };
        assert!(found, "{s:?} is pending");

        let claim = ClaimAvailable::new(&*holder, secs(60)).unwrap().served(served.clone());
        let heads = take(&cx, &s, claim).await;
        assert_eq!(refs(&heads), [lane_head(&consumer, &lane, 1), log_head(&consumer, &log, 1)]);
        assert_eq!(heads[0].state.claim_holder.as_ref().unwrap().as_str(), holder);
        let failed = FailAttempt::new(heads[0].head.clone(), 1, &*error).max_failures(1).unwrap();
        let failed = cx.store().fail_attempt(&s, failed).await.unwrap().outcome;
        assert_eq!(failed, Failure::DeadLettered { failure_count: 1 });
        let dead = cx.store().all_dead_letters(&s).await.unwrap();
        assert_eq!(dead[0].state.last_error.as_deref(), Some(&*error));
        let child = event(&kind, "2").id("child").unwrap();
        let done = complete(&heads[1]).events([child]).unwrap().served(served);
        let done = expect_completed(cx.store().complete_attempt(&s, done).await);
        assert_eq!(done.events[0].cause, Some(heads[1].cause()));

        let reducer = ReducerName::new(&*reducer).unwrap();
        let put = PutSnapshots::new([SnapshotWrite::new(at(2), json("[]"))]).unwrap();
        cx.store().put_snapshots(&s, &reducer, put).await.unwrap();
        let state = cx.store().read_state(&s, &reducer, ReadState::latest()).await.unwrap();
        assert_eq!(state.snapshot.unwrap().index, 2);

        let timer = Schedule::new(&*key, secs(0), event(&kind, "3")).unwrap();
        let _ = cx.timers().schedule(&s, timer).await.unwrap();
        let listed = cx.timers().timers(&s, Page::first()).await.unwrap().timers;
        assert_eq!(listed[0].key, TimerKey::new(&*key).unwrap());
        let fired = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
        assert_eq!(indexes(&fired.events), [3]);

        let ns = cx.namespace(&cut(next(), 400));
        let update = PresenceUpdate::new(&*participant, secs(60)).unwrap();
        let update = update.set(&*field, json("1")).unwrap();
        cx.presence().set_presence(&ns, update).await.unwrap();
        let rows = cx.presence().read_presence(&ns).await.unwrap().rows;
        assert_eq!((rows[0].participant.as_str(), rows[0].field.as_str()), (&*participant, &*field));

        // A clear of one session is none of another.
        let _ = cx.store().clear(&s, Clear::new().id(&*id).unwrap()).await.unwrap();
        assert_eq!(ids(&log_of(&cx, &s).await), [&*id]);
        while !cx.store().reclaim(&s).await.unwrap().done {}
        assert_eq!(ids(&log_of(&cx, &s).await), [&*id]);
    }
}

fn cut(mut name: String, bytes: usize) -> String {
    while name.len() > bytes {
        name.pop();
    }
    name
}

async fn log_of(cx: &Cx, s: &SessionId) -> Vec<a2_core::Event> {
    log(cx, s).await
}

async fn payloads(cx: Cx) {
    let mut runner = TestRunner::deterministic();
    let (s, ns, fold) = (cx.session("s"), cx.namespace("n"), ReducerName::new("r").unwrap());
    let texts: Vec<String> = (0..150).map(|_| sample(&mut runner, &json_text())).collect();
    let events = texts.iter().map(|text| {
        let new = NewEvent::from_json("t", json(text)).unwrap();
        new.target(to_event("c"))
    });
    append(&cx, &s, events).await;
    let stored = log(&cx, &s).await;
    let found: Vec<_> = stored.iter().map(|event| event.payload.as_str()).collect();
    assert_eq!(found, texts);
    let claimed = take(&cx, &s, claim().limit(1_000).unwrap()).await;
    let found: Vec<_> = claimed.iter().map(|head| head.event.payload.as_str()).collect();
    assert_eq!(found, texts);
    for (n, text) in texts.iter().enumerate().take(60) {
        let index = at(n as u64 + 1);
        let put = PutSnapshots::new([SnapshotWrite::new(index, json(text))]).unwrap();
        cx.store().put_snapshots(&s, &fold, put).await.unwrap();
        let read = ReadState::through(index);
        let state = cx.store().read_state(&s, &fold, read).await.unwrap().snapshot.unwrap();
        assert_eq!(state.state.as_str(), text);
        let child = NewEvent::from_json("t", json(text)).unwrap().id(format!("k{n}")).unwrap();
        let done = complete(&claimed[n]).events([child]).unwrap();
        let done = expect_completed(cx.store().complete_attempt(&s, done).await);
        assert_eq!(done.events[0].payload.as_str(), text);
        let timer = NewEvent::from_json("t", json(text)).unwrap();
        let _ = cx.timers().schedule(&s, Schedule::new("k", secs(0), timer).unwrap()).await.unwrap();
        let fired = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
        assert_eq!(fired.events[0].payload.as_str(), text);
        if text != "null" && text.len() < 60_000 {
            let update = PresenceUpdate::new("p", secs(60)).unwrap().set("f", json(text)).unwrap();
            cx.presence().set_presence(&ns, update).await.unwrap();
            let rows = cx.presence().read_presence(&ns).await.unwrap().rows;
            assert_eq!(rows[0].value.as_str(), text);
        }
    }
}

/// How a token is changed.
fn changes() -> impl Strategy<Value = Vec<(usize, Option<u8>, Option<&'static str>)>> {
    let byte = option::weighted(0.5, any::<u8>());
    let number = sample::select(
        &["18446744073709551615", "-1", "1e9", "9007199254740993", "\\u0000", "null", "[]", "256"][..],
    );
    vec((any::<usize>(), byte, option::weighted(0.4, number)), 1..4)
}

fn changed(token: &[u8], changes: &[(usize, Option<u8>, Option<&'static str>)]) -> Vec<u8> {
    let mut bytes = token.to_vec();
    for (place, byte, text) in changes {
        let place = place % (bytes.len() + 1);
        match (byte, text) {
            (_, Some(text)) => {
                // In place of a number, if one stands there.
                let digits = bytes[place..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                bytes.splice(place..place + digits, text.bytes());
            }
            (Some(byte), None) if place < bytes.len() => bytes[place] = *byte,
            _ => bytes.truncate(place),
        }
    }
    bytes
}

/// Every listing with a token that has been tampered with: a page, or `INVALID_INPUT`.
async fn tokens(cx: Cx) {
    let s = cx.session("s");
    append(&cx, &s, many("e", 6).into_iter().map(|event| event.target(to_event("c")))).await;
    for head in take(&cx, &s, claim().limit(3).unwrap()).await {
        bury(&cx, &s, &head).await;
    }
    for key in ["a", "b", "c"] {
        let _ = cx.timers().schedule(&s, Schedule::new(key, secs(60), ev(key)).unwrap()).await;
    }
    for name in ["one", "two", "three"] {
        append(&cx, &cx.session(name), [ev("e").target(to_event("c"))]).await;
    }
    let mut valid = BTreeSet::new();
    for listing in 0..5 {
        let first = Page::first().limit(1).unwrap();
        let token = list(&cx, listing, &s, first).await.unwrap();
        valid.extend(token.map(|token| token.as_bytes().to_vec()));
    }
    assert!(valid.len() >= 4, "{} listings have a second page", valid.len());
    let mut runner = TestRunner::deterministic();
    let (mut pages, mut refused) = (0, 0);
    for token in &valid {
        for round in 0..120 {
            let bytes = match round {
                0 => token.clone(),
                _ => changed(token, &sample(&mut runner, &changes())),
            };
            for listing in 0..5 {
                let page = Page::at(PageToken::from_bytes(bytes.clone())).limit(2).unwrap();
                match list(&cx, listing, &s, page).await {
                    Ok(_) => pages += 1,
                    Err(error) => {
                        let text = String::from_utf8_lossy(&bytes);
                        assert_eq!(error.code(), "INVALID_INPUT", "{listing}, {text}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(pages > 0 && refused > 0, "{pages} pages, {refused} refused");
    // All is as it was.
    assert_eq!(log(&cx, &s).await.len(), 6);
    assert_eq!(cx.store().all_dead_letters(&s).await.unwrap().len(), 3);
}

async fn list(cx: &Cx, listing: u8, s: &SessionId, page: Page) -> Result<Option<PageToken>> {
    Ok(match listing {
        0 => cx.store().sessions(page).await?.next,
        1 => cx.store().pending(PendingPage::new(serve(["c"])).page(page)).await?.next,
        2 => cx.store().cursors(s, page).await?.next,
        3 => cx.store().dead_letters(s, page).await?.next,
        _ => cx.timers().timers(s, page).await?.next,
    })
}

/// What is generated is what is kept: no text is changed when it is read as JSON.
#[cfg(test)]
mod tests {
    use a2_core::Json;

    use super::*;

    #[test]
    fn generated_text_is_already_compact() {
        let mut runner = TestRunner::deterministic();
        for _ in 0..200 {
            let text = sample(&mut runner, &json_text());
            assert_eq!(Json::parse(&text).unwrap().as_str(), text);
            let name = sample(&mut runner, &name());
            assert!((1..=512).contains(&name.len()) && !name.contains('\0'), "{name:?}");
        }
    }
}
