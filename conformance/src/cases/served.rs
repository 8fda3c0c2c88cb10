//! What a deployment serves: whose heads it is given, whose logs it moves.

use a2_core::{LogDeclaration, Served, ServedConsumer};

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "served.all.filters_nothing" => all_filters_nothing: rules(R19);
    "served.all.declares_no_log" => all_declares_no_log: rules(R19);
    "served.empty.serves_nothing" => empty_serves_nothing: rules(R19, R42);
    "served.list.those_alone" => those_alone: rules(R19, R44);
    "served.list.all_of_a_consumers_cursors" => all_of_a_consumers_cursors: rules(R19);
    "served.list.names_exactly" => names_exactly: rules(R8, R19);
    "served.list.order_does_not_matter" => order_does_not_matter: rules(R19, R26);
    "served.list.whole_256" => whole_256: rules(R10, R19);
    "served.list.limit_over_all" => limit_over_all: rules(R26, R45);
    "served.log.declared_or_not" => log_declared_or_not: rules(R19, R27);
    "served.log.several" => log_several: rules(R19, R27);
    "served.request.consumer_once" => consumer_once: rules(R14, R19);
    "served.request.bounds" => bounds: rules(R10, R14, R19);
];

async fn all_filters_nothing(cx: Cx) {
    let s = cx.session("all");
    let served = serve_log("d", all_types("l"));
    append_served(&cx, &s, &served, [ev("a").targets([to_event("c"), to_lane("e", "l")])]).await;
    let heads = take(&cx, &s, claim().served(Served::ALL)).await;
    assert_eq!(refs(&heads), [event_head("c", 1), log_head("d", "l", 1), lane_head("e", "l", 1)]);
}

async fn all_declares_no_log(cx: Cx) {
    let s = cx.session("declares");
    append_served(&cx, &s, &Served::ALL, [ev("a")]).await;
    assert_eq!(shown(&cx, &s).await, [""; 0]);
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("b")]).await;
    let head = claim_the_one(&cx, &s).await;
    finish(&cx, &s, &head).await;
    append_served(&cx, &s, &Served::ALL, [ev("c")]).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 2>-"]);
}

async fn empty_serves_nothing(cx: Cx) {
    let s = cx.session("empty");
    let request = batch([ev_for("a", "c"), ev_on("b", "l")]).served(serve([]));
    assert!(!cx.store().append(&s, request).await.unwrap().has_pending);
    expect_settled(cx.store().claim_available(&s, claim().served(serve([]))).await);
    let heads = claim_all(&cx, &s).await;
    assert_eq!(heads.len(), 2, "they are queued all the same");
    expect_settled(cx.store().claim_available(&s, claim().served(serve([]))).await);
    let none = complete(&heads[0]).served(serve([]));
    assert!(!completed(&cx, &s, none).await.has_pending);
}

async fn those_alone(cx: Cx) {
    let s = cx.session("alone");
    append(&cx, &s, [ev("a").targets(["b", "c", "d", "e"].map(to_event))]).await;
    let heads = take(&cx, &s, claim().served(serve(["c", "e", "x"]))).await;
    assert_eq!(refs(&heads), [event_head("c", 1), event_head("e", 1)]);
    assert_eq!(refs(&claim_all(&cx, &s).await), [event_head("b", 1), event_head("d", 1)]);
}

async fn all_of_a_consumers_cursors(cx: Cx) {
    let s = cx.session("cursors");
    let new = ev("a").targets([to_event("c"), to_lane("c", "x"), to_lane("c", "y")]);
    append_served(&cx, &s, &serve_log("c", all_types("one")), [new]).await;
    append_served(&cx, &s, &serve_log("c", all_types("two")), [ev_for("b", "d")]).await;
    let other = serve_log("c", all_types("three"));
    let heads = take(&cx, &s, claim().served(other)).await;
    assert_eq!(
        refs(&heads),
        [
            event_head("c", 1),
            lane_head("c", "x", 1),
            lane_head("c", "y", 1),
            log_head("c", "one", 1),
            log_head("c", "two", 2),
        ],
        "whatever log is declared"
    );
}

async fn names_exactly(cx: Cx) {
    let s = cx.session("exactly");
    let names = ["c", "C", "c ", "c%", "c_", "é"];
    append(&cx, &s, [ev("a").targets(names.map(to_event))]).await;
    for name in ["c%", "C", "é"] {
        let heads = take(&cx, &s, claim().served(serve([name]))).await;
        assert_eq!(refs(&heads), [event_head(name, 1)]);
    }
    let decomposed = serve(["e\u{301}"]);
    expect_settled(cx.store().claim_available(&s, claim().served(decomposed)).await);
}

async fn order_does_not_matter(cx: Cx) {
    let s = cx.session("order");
    append(&cx, &s, [ev("a").targets(["a", "b", "c"].map(to_event))]).await;
    let heads = take(&cx, &s, claim().served(serve(["c", "a", "b"])).limit(2).unwrap()).await;
    assert_eq!(refs(&heads), [event_head("a", 1), event_head("b", 1)]);
}

async fn whole_256(cx: Cx) {
    let s = cx.session("whole");
    let names: Vec<_> = (0..256).map(|i| format!("consumer-{i:03}")).collect();
    let served = Served::only(names.iter().map(|name| {
        let log = LogDeclaration::new("l").unwrap();
        ServedConsumer::new(name).unwrap().log(log).max_failures(3).unwrap()
    }))
    .unwrap();
    append_served(&cx, &s, &served, [ev("a")]).await;
    let heads = take(&cx, &s, claim().served(served).limit(1_000).unwrap()).await;
    let expected: Vec<_> = names.iter().map(|name| log_head(name, "l", 1)).collect();
    assert_eq!(refs(&heads), expected);
}

async fn limit_over_all(cx: Cx) {
    let s = cx.session("limit");
    append(&cx, &s, many_for_c("e", 3)).await;
    append(&cx, &s, [ev_for("d1", "d"), ev_for("d2", "d")]).await;
    let heads = take(&cx, &s, claim().served(serve(["d", "c"])).limit(4).unwrap()).await;
    let expected = [event_head("c", 1), event_head("c", 2), event_head("c", 3), event_head("d", 4)];
    assert_eq!(refs(&heads), expected, "one limit for all of them, in head order");
}

async fn log_declared_or_not(cx: Cx) {
    let s = cx.session("declared");
    append_served(&cx, &s, &serve(["c"]), [ev("a")]).await;
    assert_eq!(shown(&cx, &s).await, [""; 0], "serving a consumer declares nothing");
    append_served(&cx, &s, &serve_log("c", all_types("l")), [ev("b")]).await;
    let head = claim_the_one(&cx, &s).await;
    let plain = complete(&head).events([ev("k")]).unwrap().served(serve(["c"]));
    settle(&cx, &s, plain).await;
    assert_eq!(shown(&cx, &s).await, ["c log l 2>3"], "its own head's completion moves it");
}

async fn log_several(cx: Cx) {
    let s = cx.session("several");
    let served = serve_logs([
        ("c", all_types("l")),
        ("a", only_types("m", ["x"])),
        ("b", only_types("n", ["y"])),
    ]);
    let request = batch([typed("1", "x")]).served(served.clone());
    assert!(cx.store().append(&s, request).await.unwrap().has_pending);
    assert_eq!(shown(&cx, &s).await, ["a log m 0>1", "c log l 0>1"]);
    append_served(&cx, &s, &served, [typed("2", "y")]).await;
    assert_eq!(shown(&cx, &s).await, ["a log m 0>1", "b log n 1>2", "c log l 0>1"]);
}

async fn consumer_once(_: Cx) {
    let plain = ServedConsumer::new("c").unwrap();
    let with_log = ServedConsumer::new("c").unwrap().log(all_types("l"));
    assert_code(Served::only([plain.clone(), with_log]), "INVALID_INPUT");
    assert_code(Served::only([plain.clone(), plain]), "INVALID_INPUT");
}

async fn bounds(_: Cx) {
    let entries = |n: u32| (0..n).map(|i| ServedConsumer::new(format!("{i}")).unwrap());
    assert_code(Served::only(entries(257)), "INVALID_INPUT");
    assert_eq!(Served::only(entries(256)).unwrap().entries().unwrap().len(), 256);
    assert_code(ServedConsumer::new("c").unwrap().max_failures(0), "INVALID_INPUT");
}
