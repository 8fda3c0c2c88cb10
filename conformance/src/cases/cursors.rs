//! The listing of a session's cursors.

use a2_core::{Cursor, DispatchState, Page, PageToken};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    all: rules(R59);
    "cursors.list.unknown_session" => unknown_session: rules(R1);
    "cursors.list.consumer_kind_name" => consumer_kind_name;
    "cursors.list.names_bytewise" => names_bytewise: rules(R8);
    "cursors.list.event_cursors_by_head" => event_cursors_by_head;
    "cursors.list.head_and_clear" => head_and_clear;
    "cursors.list.state" => list_state: rules(R21);
    "cursors.list.queued_are_not_heads" => queued_are_not_heads: rules(R16);
    "cursors.list.changes_nothing" => changes_nothing;
    "cursors.shown.idle_lanes_and_logs" => idle_lanes_and_logs: rules(R16);
    "cursors.shown.dead_letters" => shown_dead_letters: rules(R23);
    "cursors.shown.after_a_clear" => after_a_clear: rules(R70);
    "cursors.shown.after_two_clears" => after_two_clears: rules(R70);
    "cursors.position.every_kind" => position_every_kind: rules(R20);
    "cursors.pages.every_size" => every_size: rules(R62);
    "cursors.pages.many_events" => many_events: rules(R62);
    "cursors.pages.while_things_change" => while_things_change: rules(R62);
    "cursors.pages.foreign_token" => foreign_token: rules(R62);
];

async fn unknown_session(cx: Cx) {
    let s = cx.session("unknown");
    let cursors = cx.store().cursors(&s, Page::first()).await.unwrap();
    assert_eq!((cursors.cursors, cursors.next), (vec![], None));
    assert_eq!((cursors.head, cursors.clear_index), (at(0), at(0)));
}

async fn consumer_kind_name(cx: Cx) {
    let s = cx.session("order");
    let served = serve_logs([("b", all_types("a")), ("a", all_types("y"))]);
    let targets = [
        to_event("a"),
        to_event("b"),
        to_lane("b", "z"),
        to_lane("a", "z"),
        to_lane("a", "x"),
    ];
    append_served(&cx, &s, &served, [ev("1").targets(targets)]).await;
    append_served(&cx, &s, &serve_log("a", all_types("w")), [ev_for("2", "a")]).await;
    assert_eq!(
        shown(&cx, &s).await,
        [
            "a lane x 0>1",
            "a lane z 0>1",
            "a log w 1>2",
            "a log y 0>1",
            "a event 0>1",
            "a event 1>2",
            "b lane z 0>1",
            "b log a 0>1",
            "b event 0>1",
        ]
    );
}

async fn names_bytewise(cx: Cx) {
    let s = cx.session("bytes");
    let names = ["é", "", "a", "B", "a b", "~", "10", "9"];
    append(&cx, &s, [ev("1").targets(names.map(|name| to_lane("c", name)))]).await;
    for name in names {
        wake(&cx, &s, "c", all_types(name)).await;
    }
    let listed = cx.store().cursors(&s, Page::first()).await.unwrap().cursors;
    let listed: Vec<_> = listed.iter().map(|cursor| cursor.key.name()).collect();
    let sorted = ["", "10", "9", "B", "a", "a b", "~", "é"];
    assert_eq!(listed, [sorted, sorted].concat());
    let t = cx.session("consumers");
    let consumers = ["é", "a", "B", "a b", "~", "10", "9"];
    append(&cx, &t, [ev("1").targets(consumers.map(to_event))]).await;
    let listed = cx.store().cursors(&t, Page::first()).await.unwrap().cursors;
    let listed: Vec<_> = listed.iter().map(|cursor| cursor.consumer.as_str()).collect();
    assert_eq!(listed, ["10", "9", "B", "a", "a b", "~", "é"]);
}

async fn event_cursors_by_head(cx: Cx) {
    let s = cx.session("numbers");
    append(&cx, &s, many_for_c("e", 12)).await;
    let listed = cx.store().cursors(&s, Page::first()).await.unwrap().cursors;
    let heads: Vec<_> = listed.iter().filter_map(|cursor| cursor.head).collect();
    assert_eq!(heads, (1..=12).map(at).collect::<Vec<_>>(), "as numbers, not as text");
}

async fn head_and_clear(cx: Cx) {
    let s = cx.session("session");
    append(&cx, &s, [ev_for("a", "c"), ev("b")]).await;
    let cursors = cx.store().cursors(&s, Page::first()).await.unwrap();
    assert_eq!((cursors.head, cursors.clear_index), (at(2), at(0)));
    clear(&cx, &s).await;
    append(&cx, &s, [ev("c")]).await;
    let cursors = cx.store().cursors(&s, Page::first()).await.unwrap();
    assert_eq!((cursors.head, cursors.clear_index), (at(4), at(3)));
}

async fn list_state(cx: Cx) {
    let s = cx.session("state");
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &serve_log("c", all_types("l")), [new]).await;
    let fresh = cx.store().cursors(&s, Page::first()).await.unwrap().cursors;
    assert!(fresh.iter().all(|cursor| cursor.state == DispatchState::default()));
    let heads = claim_all(&cx, &s).await;
    let _ = failed(&cx, &s, fail(&heads[1]).retry_after(secs(1))).await;
    let listed = cx.store().cursors(&s, Page::first()).await.unwrap().cursors;
    assert_eq!(listed[2].state, heads[0].state);
    assert_eq!(listed[1].state, heads[2].state);
    let held = &listed[0].state;
    assert_eq!((held.failure_count, &held.claim_holder), (1, &None));
    assert_eq!(held.claim_expires_at, Some(time(1_000)));
}

async fn queued_are_not_heads(cx: Cx) {
    let s = cx.session("queued");
    append(&cx, &s, many_on_l("e", 5)).await;
    append_served(&cx, &s, &serve_log("d", all_types("l")), many("f", 5)).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 0>1", "d log l 5>6"]);
}

async fn changes_nothing(cx: Cx) {
    let s = cx.session("nothing");
    append(&cx, &s, many_on_l("e", 2)).await;
    let head = claim_and_lapse(&cx, &s).await;
    for _ in 0..2 {
        assert_eq!(shown(&cx, &s).await, ["c lane l 0>1"]);
    }
    finish(&cx, &s, &head).await;
}

async fn idle_lanes_and_logs(cx: Cx) {
    let s = cx.session("idle");
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &serve_log("c", all_types("l")), [new]).await;
    for head in claim_all(&cx, &s).await {
        finish(&cx, &s, &head).await;
    }
    let listed = cx.store().cursors(&s, Page::first()).await.unwrap().cursors;
    let lines: Vec<_> = listed.iter().map(line).collect();
    assert_eq!(lines, ["c lane l 1>-", "c log l 1>-"], "an event cursor only with a head");
    assert!(listed.iter().all(|cursor| cursor.state == DispatchState::default()));
}

async fn shown_dead_letters(cx: Cx) {
    let s = cx.session("dead");
    let new = ev("a").targets([to_event("c"), to_lane("c", "l")]);
    append_served(&cx, &s, &serve_log("c", all_types("l")), [new]).await;
    for head in claim_all(&cx, &s).await {
        bury(&cx, &s, &head).await;
    }
    let listed = cx.store().cursors(&s, Page::first()).await.unwrap().cursors;
    let lines: Vec<_> = listed.iter().map(line).collect();
    assert_eq!(lines, ["c lane l 0>1", "c log l 0>1", "c event 0>1"]);
    assert!(listed.iter().all(|cursor| cursor.state.failed_at == Some(time(0))));
}

async fn after_a_clear(cx: Cx) {
    let s = cx.session("clear");
    let new = ev("a").targets([to_event("c"), to_lane("c", "idle")]);
    append_served(&cx, &s, &serve_log("c", all_types("idle")), [new]).await;
    for head in claim_all(&cx, &s).await {
        finish(&cx, &s, &head).await;
    }
    let new = ev("b").targets([to_event("c"), to_lane("c", "live"), to_lane("c", "again")]);
    append_served(&cx, &s, &serve_log("c", all_types("live")), [new]).await;
    claim_all(&cx, &s).await;
    clear(&cx, &s).await;
    let listed = cx.store().cursors(&s, Page::first()).await.unwrap().cursors;
    let lines: Vec<_> = listed.iter().map(line).collect();
    assert_eq!(lines, ["c log idle 3>-", "c log live 3>-"]);
    assert!(listed.iter().all(|cursor| cursor.state == DispatchState::default()));
    append(&cx, &s, [ev("c"), ev_on("d", "again")]).await;
    let expected = ["c lane again 3>5", "c log idle 3>-", "c log live 3>-"];
    assert_eq!(shown(&cx, &s).await, expected);
}

async fn after_two_clears(cx: Cx) {
    let s = cx.session("clears");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev_on("a", "l")]).await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 3>-", "c log l 2>-"]);
    clear(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 4>-"]);
}

async fn position_every_kind(cx: Cx) {
    let s = cx.session("position");
    append(&cx, &s, [ev("a"), ev("b")]).await;
    let new = |id| ev(id).targets([to_event("c"), to_lane("c", "l")]);
    let served = serve_log("c", all_types("l"));
    append_served(&cx, &s, &served, [new("c"), ev("d"), new("e")]).await;
    assert_eq!(
        shown(&cx, &s).await,
        ["c lane l 0>3", "c log l 2>3", "c event 2>3", "c event 4>5"]
    );
    for head in take(&cx, &s, claim().through(at(3))).await {
        finish(&cx, &s, &head).await;
    }
    assert_eq!(shown(&cx, &s).await, ["c lane l 3>5", "c log l 3>4", "c event 4>5"]);
}

async fn every_size(cx: Cx) {
    let s = cx.session("pages");
    for consumer in ["a", "b", "c"] {
        let targets = [
            to_event(consumer),
            to_lane(consumer, ""),
            to_lane(consumer, "l"),
        ];
        let id = format!("{consumer}1");
        append_served(
            &cx,
            &s,
            &serve_log(consumer, all_types("l")),
            [ev(&id).targets(targets), ev_for(&format!("{consumer}2"), consumer)],
        )
        .await;
    }
    let all = cx.store().cursors(&s, page(100)).await.unwrap().cursors;
    assert_eq!(all.len(), 15);
    for size in [1, 2, 3, 4, 7, 14, 15, 16] {
        let mut paged: Vec<Cursor> = Vec::new();
        let mut next = page(size);
        for _ in 0..20 {
            let answer = cx.store().cursors(&s, next.clone()).await.unwrap();
            assert!(answer.cursors.len() <= size);
            paged.extend(answer.cursors);
            match answer.next {
                Some(token) => next = next.and_then(token),
                None => break,
            }
        }
        assert_eq!(paged, all, "in pages of {size}");
    }
}

async fn many_events(cx: Cx) {
    let s = cx.session("many");
    append(&cx, &s, many_for_c("e", 205)).await;
    let first = cx.store().cursors(&s, Page::first()).await.unwrap();
    assert_eq!(first.cursors.len(), 100, "by default");
    assert_eq!(first.cursors[99].head, Some(at(100)));
    let second = cx.store().cursors(&s, Page::at(first.next.unwrap())).await.unwrap();
    assert_eq!(second.cursors[0].head, Some(at(101)));
    let third = cx.store().cursors(&s, Page::at(second.next.unwrap())).await.unwrap();
    assert_eq!((third.cursors.len(), third.next), (5, None));
    assert_eq!(cx.store().cursors(&s, page(1_000)).await.unwrap().cursors.len(), 205);
}

async fn while_things_change(cx: Cx) {
    let s = cx.session("change");
    append(&cx, &s, many_for_c("e", 6)).await;
    let first = cx.store().cursors(&s, page(2)).await.unwrap();
    for head in take(&cx, &s, claim().limit(3).unwrap()).await {
        finish(&cx, &s, &head).await;
    }
    append(&cx, &s, [ev_on("g", "a")]).await;
    let rest = cx.store().cursors(&s, page(100).and_then(first.next.unwrap())).await.unwrap();
    let lines: Vec<_> = rest.cursors.iter().map(line).collect();
    let expected = ["c event 3>4", "c event 4>5", "c event 5>6"];
    assert_eq!(lines, expected, "what was there throughout, nothing twice");
}

async fn foreign_token(cx: Cx) {
    let s = cx.session("token");
    append(&cx, &s, many_for_c("e", 2)).await;
    for head in claim_all(&cx, &s).await {
        bury(&cx, &s, &head).await;
    }
    let foreign = cx.store().dead_letters(&s, page(1)).await.unwrap().next.unwrap();
    let junk = PageToken::from_bytes(*b"junk");
    for token in [foreign, junk] {
        assert_code(cx.store().cursors(&s, Page::at(token)).await, "INVALID_INPUT");
    }
}
