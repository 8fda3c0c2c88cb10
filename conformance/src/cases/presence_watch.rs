//! Watching presence: the namespace as it is, then every change.

use a2_core::{Namespace, PresenceChange, PresencePatch, PresenceRow, PresenceStream};

use super::presence::{changes, set, update};
use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R87), needs(Presence);
    "presence.watch.rows_first" => rows_first: both;
    "presence.watch.own_patches" => own_patches: both;
    "presence.watch.removed" => removed: both;
    "presence.watch.no_change_is_silent" => no_change_is_silent: rules(R85), both;
    "presence.watch.seen" => seen: both;
    "presence.watch.other_handles" => other_handles: both, needs(Presence, Another);
    "presence.watch.expiry" => expiry: both;
    "presence.watch.expiry_of_some_fields" => expiry_of_some_fields;
    "presence.watch.expiry_put_off" => expiry_put_off;
    "presence.watch.expired_before" => expired_before: rules(R86), both;
    "presence.watch.namespaces" => namespaces: rules(R84), both;
    "presence.watch.several" => several: both;
    "presence.watch.dropped" => dropped;
    "presence.watch.converges" => converges: both, needs(Presence, Another);
];

async fn first(cx: &Cx, watch: &mut PresenceStream) -> Vec<PresenceRow> {
    match next(cx, watch).await {
        PresenceChange::Rows(rows) => rows.rows,
        PresenceChange::Patch(patch) => panic!("expected the rows first, got {patch:?}"),
    }
}

async fn patch(cx: &Cx, watch: &mut PresenceStream) -> PresencePatch {
    match next(cx, watch).await {
        PresenceChange::Patch(patch) => patch,
        PresenceChange::Rows(rows) => panic!("expected a patch, got {rows:?}"),
    }
}

/// A watch whose first item, an empty namespace, has been read.
async fn watching(cx: &Cx, ns: &Namespace) -> PresenceStream {
    let mut watch = cx.presence().watch_presence(ns);
    assert_eq!(first(cx, &mut watch).await, []);
    watch
}

async fn write(cx: &Cx, ns: &Namespace, field: &str, value: &str) -> Option<PresencePatch> {
    set(cx, ns, update("p", 60_000).set(field, json(value)).unwrap()).await
}

async fn rows_first(cx: Cx) {
    let ns = cx.namespace("rows");
    write(&cx, &ns, "x", "1").await;
    write(&cx, &ns, "y", "2").await;
    let mut watch = cx.presence().watch_presence(&ns);
    let rows = first(&cx, &mut watch).await;
    assert_eq!(rows, cx.presence().read_presence(&ns).await.unwrap().rows);
    assert_eq!(rows.len(), 2);
    write(&cx, &ns, "x", "3").await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("x", "3")]);
}

async fn own_patches(cx: Cx) {
    let ns = cx.namespace("own");
    let mut watch = watching(&cx, &ns).await;
    for value in ["1", "2", "3"] {
        let made = write(&cx, &ns, "x", value).await.unwrap();
        assert_eq!(patch(&cx, &mut watch).await, made, "what the write answered");
    }
}

async fn removed(cx: Cx) {
    let ns = cx.namespace("removed");
    write(&cx, &ns, "x", "1").await;
    let mut watch = cx.presence().watch_presence(&ns);
    assert_eq!(first(&cx, &mut watch).await.len(), 1);
    write(&cx, &ns, "x", "null").await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("x", "-")]);
}

async fn no_change_is_silent(cx: Cx) {
    let ns = cx.namespace("silent");
    let mut watch = watching(&cx, &ns).await;
    write(&cx, &ns, "x", "1").await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("x", "1")]);
    assert_eq!(write(&cx, &ns, "x", "1").await, None);
    write(&cx, &ns, "y", "2").await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("y", "2")], "nothing in between");
}

async fn seen(cx: Cx) {
    let ns = cx.namespace("seen");
    let mut watch = watching(&cx, &ns).await;
    for index in [1, 2] {
        let write = update("p", 60_000).set("x", json("1")).unwrap().seen(at(index));
        set(&cx, &ns, write).await;
        assert_eq!(patch(&cx, &mut watch).await.seen, Some(at(index)));
    }
}

async fn other_handles(cx: Cx) {
    let ns = cx.namespace("handles");
    let other = cx.another().await;
    let mut watch = watching(&cx, &ns).await;
    let theirs = write(&other, &ns, "x", "1").await.unwrap();
    assert_eq!(patch(&cx, &mut watch).await, theirs);
    let mine = write(&cx, &ns, "x", "2").await.unwrap();
    assert_eq!(patch(&cx, &mut watch).await, mine);
    assert_ne!(mine.source, theirs.source);
}

async fn expiry(cx: Cx) {
    let ns = cx.namespace("expiry");
    let mut watch = watching(&cx, &ns).await;
    let write = update("p", 200).set("x", json("1")).unwrap().set("y", json("2")).unwrap();
    set(&cx, &ns, write).await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("x", "1"), ("y", "2")]);
    cx.pass(ms(200)).await;
    let mut gone = Vec::new();
    while gone.len() < 2 {
        let patch = patch(&cx, &mut watch).await;
        assert_eq!(patch.participant, "p");
        gone.extend(changes(&patch).iter().map(|(f, value)| format!("{f}{value}")));
    }
    gone.sort();
    assert_eq!(gone, ["x-", "y-"]);
}

async fn expiry_of_some_fields(cx: Cx) {
    let ns = cx.namespace("some");
    let mut watch = watching(&cx, &ns).await;
    set(&cx, &ns, update("p", 100).set("short", json("1")).unwrap()).await;
    set(&cx, &ns, update("p", 60_000).set("long", json("2")).unwrap()).await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("short", "1")]);
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("long", "2")]);
    cx.pass(ms(100)).await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("short", "-")]);
    set(&cx, &ns, update("p", 60_000).set("long", json("3")).unwrap()).await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("long", "3")]);
}

async fn expiry_put_off(cx: Cx) {
    let ns = cx.namespace("put-off");
    let mut watch = watching(&cx, &ns).await;
    let beat = || update("p", 100).set("x", json("1")).unwrap();
    set(&cx, &ns, beat()).await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("x", "1")]);
    for _ in 0..5 {
        cx.pass(ms(60)).await;
        assert_eq!(set(&cx, &ns, beat()).await, None);
    }
    // Renewed in time: what comes next is the next write's.
    write(&cx, &ns, "y", "2").await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("y", "2")]);
    cx.pass(ms(100)).await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("x", "-")]);
}

async fn expired_before(cx: Cx) {
    let ns = cx.namespace("before");
    set(&cx, &ns, update("p", 100).set("x", json("1")).unwrap()).await;
    cx.pass(ms(100)).await;
    let mut watch = watching(&cx, &ns).await;
    write(&cx, &ns, "y", "2").await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("y", "2")], "never there, never gone");
}

async fn namespaces(cx: Cx) {
    let (a, b) = (cx.namespace("a"), cx.namespace("b"));
    let mut watch = watching(&cx, &a).await;
    write(&cx, &b, "x", "1").await;
    write(&cx, &a, "x", "2").await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("x", "2")]);
}

async fn several(cx: Cx) {
    let ns = cx.namespace("several");
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(watching(&cx, &ns).await);
    }
    write(&cx, &ns, "x", "1").await;
    for watch in &mut watches {
        assert_eq!(changes(&patch(&cx, watch).await), [("x", "1")]);
    }
    watches.truncate(1);
    write(&cx, &ns, "x", "2").await;
    assert_eq!(changes(&patch(&cx, &mut watches[0]).await), [("x", "2")]);
}

async fn dropped(cx: Cx) {
    let ns = cx.namespace("dropped");
    for round in 0..200 {
        let mut watch = cx.presence().watch_presence(&ns);
        if round % 2 == 0 {
            let _ = is_waiting(&mut watch);
        }
    }
    let mut watch = watching(&cx, &ns).await;
    write(&cx, &ns, "x", "1").await;
    assert_eq!(changes(&patch(&cx, &mut watch).await), [("x", "1")]);
}

async fn converges(cx: Cx) {
    let ns = cx.namespace("converges");
    let other = cx.another().await;
    let mut watch = watching(&cx, &ns).await;
    let writers = [cx.clone(), other].map(|cx| {
        let ns = ns.clone();
        tokio::spawn(async move {
            for i in 0..50 {
                write(&cx, &ns, "x", &i.to_string()).await;
            }
        })
    });
    for writer in writers {
        writer.await.unwrap();
    }
    write(&cx, &ns, "last", "1").await;
    // Applying the patches in their order gives what is stored, whatever was merged. The other
    // handle's may come after this one's own.
    let (mut x, mut last) = (String::new(), false);
    while x != "49" || !last {
        let patch = patch(&cx, &mut watch).await;
        let changes = changes(&patch);
        if let Some((_, value)) = changes.iter().find(|(field, _)| *field == "x") {
            x = (*value).to_owned();
        }
        last |= changes.iter().any(|(field, _)| *field == "last");
    }
}
