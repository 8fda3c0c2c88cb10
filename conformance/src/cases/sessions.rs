//! Listing sessions. Each case has a store of its own.

use std::collections::BTreeMap;

use a2_core::{Append, Page, PageToken, ReadRange, Schedule, SessionId, StoreExt, WakeLog};
use futures_util::TryStreamExt;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R77), own;
    "sessions.none" => none;
    "sessions.head_and_clear" => head_and_clear;
    "sessions.only_appended_to" => only_appended_to: rules(R1);
    "sessions.only_appended_to.timers" => only_appended_to_timers: rules(R1), needs(Timers);
    "sessions.stay_after_reclaim" => stay_after_reclaim;
    "sessions.pages" => pages: rules(R62);
    "sessions.pages.while_appending" => pages_while_appending: rules(R62);
    "sessions.pages.foreign_token" => pages_foreign_token: rules(R62);
    "sessions.another_handle" => another_handle: needs(Another);
];

/// Every session with head and clear index, page by page; each must be listed once.
async fn list(cx: &Cx, page_size: usize) -> BTreeMap<String, (u64, u64)> {
    let mut all = BTreeMap::new();
    let mut page = Page::first().limit(page_size).unwrap();
    loop {
        let answer = cx.store().sessions(page.clone()).await.unwrap();
        assert!(answer.sessions.len() <= page_size);
        for info in answer.sessions {
            let name = info.session.as_str().to_owned();
            let earlier = all.insert(name, (info.head.get(), info.clear_index.get()));
            assert_eq!(earlier, None, "{:?} is listed twice", info.session);
        }
        match answer.next {
            Some(token) => page = page.and_then(token),
            None => return all,
        }
    }
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

async fn none(cx: Cx) {
    let answer = cx.store().sessions(Page::first()).await.unwrap();
    assert_eq!((answer.sessions, answer.next), (Vec::new(), None));
}

async fn head_and_clear(cx: Cx) {
    append(&cx, &session("a"), many("e", 3)).await;
    append(&cx, &session("b"), many("e", 1)).await;
    append(&cx, &session("c"), many("e", 2)).await;
    clear(&cx, &session("c")).await;
    append(&cx, &session("c"), [ev("new")]).await;
    let expected = [("a", (3, 0)), ("b", (1, 0)), ("c", (4, 3))];
    let expected = expected.map(|(name, indexes)| (name.to_owned(), indexes)).into();
    assert_eq!(list(&cx, 100).await, expected);
}

async fn only_appended_to(cx: Cx) {
    append(&cx, &session("yes"), [ev("a")]).await;
    let no = session("no");
    let _ = cx.store().append(&no, Append::new([]).unwrap()).await.unwrap();
    let _ = cx.store().read(&no, ReadRange::default()).await.unwrap();
    let wake = WakeLog::new("c", all_types("log")).unwrap();
    let _ = cx.store().wake_log(&no, wake).await.unwrap();
    let _ = cx.store().clear(&no, a2_core::Clear::new()).await.unwrap();
    let _ = cx.store().reclaim(&no).await.unwrap();
    expect_settled(cx.store().claim_available(&no, claim()).await);
    let refused = batch([ev("a")]).expected_head(at(1));
    assert_code(cx.store().append(&no, refused).await, "HEAD_CONFLICT");
    assert_eq!(list(&cx, 100).await.into_keys().collect::<Vec<_>>(), ["yes"]);
}

async fn only_appended_to_timers(cx: Cx) {
    let s = session("timer");
    let timer = Schedule::new("k", secs(1), ev("a")).unwrap();
    let _ = cx.timers().schedule(&s, timer).await.unwrap();
    assert_eq!(list(&cx, 100).await, BTreeMap::new());
    cx.pass(secs(1)).await;
    let _ = cx.timers().fire_timers(&s, a2_core::FireTimers::new()).await.unwrap();
    assert_eq!(list(&cx, 100).await, [("timer".to_owned(), (1, 0))].into());
}

async fn stay_after_reclaim(cx: Cx) {
    let s = session("kept");
    append(&cx, &s, many("e", 3)).await;
    clear(&cx, &s).await;
    while !cx.store().reclaim(&s).await.unwrap().done {}
    assert_eq!(list(&cx, 100).await, [("kept".to_owned(), (4, 4))].into());
}

async fn pages(cx: Cx) {
    for i in 0..250 {
        append(&cx, &session(&format!("s{i:03}")), [ev("a")]).await;
    }
    let expected: Vec<_> = (0..250).map(|i| format!("s{i:03}")).collect();
    for page_size in [1, 7, 100, 250, 1_000] {
        let listed: Vec<_> = list(&cx, page_size).await.into_keys().collect();
        assert_eq!(listed, expected, "pages of {page_size}");
    }
    assert_eq!(cx.store().sessions(Page::first()).await.unwrap().sessions.len(), 100);
    let store = cx.store();
    let all: Vec<_> = (&store).all_sessions().try_collect().await.unwrap();
    assert_eq!(all.len(), 250);
}

async fn pages_while_appending(cx: Cx) {
    for i in 0..50 {
        append(&cx, &session(&format!("s{i:03}")), [ev("a")]).await;
    }
    let mut found = Vec::new();
    let mut page = Page::first().limit(7).unwrap();
    for round in 0..1_000 {
        let answer = cx.store().sessions(page.clone()).await.unwrap();
        found.extend(answer.sessions.iter().map(|info| info.session.as_str().to_owned()));
        let Some(token) = answer.next else { break };
        page = page.and_then(token);
        // Those of before grow and new ones come, before and behind the place of the pass.
        append(&cx, &session("s010"), [ev(&format!("b{round}"))]).await;
        append(&cx, &session(&format!("a{round}")), [ev("a")]).await;
        append(&cx, &session(&format!("z{round}")), [ev("a")]).await;
    }
    for i in 0..50 {
        let name = format!("s{i:03}");
        let times = found.iter().filter(|found| **found == name).count();
        assert_eq!(times, 1, "{name} was there throughout");
    }
}

async fn pages_foreign_token(cx: Cx) {
    for name in ["a", "b", "c"] {
        append(&cx, &session(name), [ev("a").target(to_event("c"))]).await;
    }
    for bytes in [&b""[..], b"junk", b"[]", b"\"a\"", b"\xff\xfe", b"null"] {
        let page = Page::at(PageToken::from_bytes(bytes));
        assert_code(cx.store().sessions(page).await, "INVALID_INPUT");
    }
    let one = Page::first().limit(1).unwrap();
    let own = cx.store().sessions(one.clone()).await.unwrap().next.unwrap();
    assert_eq!(cx.store().sessions(Page::at(own.clone())).await.unwrap().sessions.len(), 2);
    assert_code(cx.store().cursors(&session("a"), Page::at(own.clone())).await, "INVALID_INPUT");
    assert_code(cx.store().dead_letters(&session("a"), Page::at(own)).await, "INVALID_INPUT");
}

async fn another_handle(cx: Cx) {
    let other = cx.another().await;
    append(&cx, &session("a"), [ev("a")]).await;
    append(&other, &session("b"), [ev("a")]).await;
    let expected = list(&cx, 100).await;
    assert_eq!(expected.len(), 2);
    assert_eq!(list(&other, 100).await, expected);
}
