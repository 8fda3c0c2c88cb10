//! Closing a store: streams end, calls are refused, leases are left to themselves.

use std::fmt::Debug;

use a2_core::{
    Clear, FireTimers, Page, PendingPage, PresenceChange, PresenceUpdate, PutSnapshots, ReadRange,
    ReadState, Redrive, RedriveAction, ReducerName, ReleaseClaims, RenewClaims, Result, Schedule,
    Served, SnapshotWrite, TimerKey, WakeLog,
};
use futures_util::{Stream, StreamExt};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R90), own, needs(Close);
    "close.calls.refused" => calls_refused: rules(R88);
    "close.calls.nothing_written" => nothing_written: rules(R36), needs(Close, Another);
    "close.calls.timers" => timers_refused: rules(R88), needs(Close, Timers);
    "close.calls.presence" => presence_refused: rules(R88), needs(Close, Presence);
    "close.calls.twice" => twice;
    "close.streams.waiting" => stream_waiting: rules(R82);
    "close.streams.behind" => stream_behind: rules(R82);
    "close.streams.opened_after" => stream_opened_after: rules(R82);
    "close.streams.hints" => hints_end;
    "close.streams.presence" => presence_watch_ends: needs(Close, Presence);
    "close.leases.run_out" => leases_run_out: needs(Close, Another);
];

fn closed<T: Debug>(answer: Result<T>) {
    let error = assert_code(answer, "CLOSED");
    assert!(!error.is_retryable(), "the same call never succeeds later");
    assert!(!error.outcome_unknown(), "it was not done");
}

/// Yields `CLOSED`, and then nothing more.
async fn ends<T: Debug>(cx: &Cx, stream: &mut (impl Stream<Item = Result<T>> + Unpin)) {
    closed(cx.within(secs(10), stream.next()).await.expect("the end is told"));
    assert!(cx.within(secs(10), stream.next()).await.is_none(), "once");
}

async fn calls_refused(cx: Cx) {
    let s = cx.session("calls");
    append(&cx, &s, [ev("a").target(to_event("c")), ev("b").target(to_event("c"))]).await;
    let head = claim_all(&cx, &s).await.remove(0);
    cx.close().await;
    let (store, reducer) = (cx.store(), ReducerName::new("r").unwrap());
    let claims = [head.attempt_ref()];
    closed(store.append(&s, batch([ev("c")])).await);
    closed(store.read(&s, ReadRange::default()).await);
    closed(store.claim_available(&s, claim()).await);
    let renew = RenewClaims::new(WORKER, claims.clone(), secs(1)).unwrap();
    closed(store.renew_claims(&s, renew).await);
    closed(store.release_claims(&s, ReleaseClaims::new(WORKER, claims).unwrap()).await);
    closed(store.complete_attempt(&s, complete(&head)).await);
    closed(store.fail_attempt(&s, fail(&head)).await);
    closed(store.dead_letters(&s, Page::first()).await);
    closed(store.redrive(&s, Redrive::new(head.head, RedriveAction::Retry)).await);
    closed(store.wake_log(&s, WakeLog::new("c", all_types("l")).unwrap()).await);
    closed(store.cursors(&s, Page::first()).await);
    closed(store.read_state(&s, &reducer, ReadState::latest()).await);
    let writes = PutSnapshots::new([SnapshotWrite::new(at(1), json("1"))]).unwrap();
    closed(store.put_snapshots(&s, &reducer, writes).await);
    closed(store.clear(&s, Clear::new()).await);
    closed(store.reclaim(&s).await);
    closed(store.sessions(Page::first()).await);
    closed(store.pending(PendingPage::new(Served::ALL)).await);
    // A session that nobody has ever used, too.
    closed(store.read(&cx.session("unknown"), ReadRange::default()).await);
}

async fn nothing_written(cx: Cx) {
    let s = cx.session("nothing");
    let other = cx.another().await;
    append(&cx, &s, [ev("a")]).await;
    cx.close().await;
    closed(cx.store().append(&s, batch([ev("b")])).await);
    closed(cx.store().clear(&s, Clear::new()).await);
    // Where the other handle is a store of its own, it finds what there was.
    match other.store().read(&s, ReadRange::default()).await {
        Ok(read) => assert_eq!((ids(&read.events), read.clear_index.get()), (vec!["a"], 0)),
        answer => closed(answer),
    }
}

async fn timers_refused(cx: Cx) {
    let s = cx.session("timers");
    let timer = Schedule::new("k", secs(1), ev("a")).unwrap();
    let _ = cx.timers().schedule(&s, timer.clone()).await.unwrap();
    cx.close().await;
    closed(cx.timers().schedule(&s, timer).await);
    closed(cx.timers().unschedule(&s, &TimerKey::new("k").unwrap()).await);
    closed(cx.timers().timers(&s, Page::first()).await);
    cx.pass(secs(2)).await;
    closed(cx.timers().fire_timers(&s, FireTimers::new()).await);
}

async fn presence_refused(cx: Cx) {
    let ns = cx.namespace("presence");
    let update = PresenceUpdate::new("p", secs(60)).unwrap().set("f", json("1")).unwrap();
    assert!(cx.presence().set_presence(&ns, update.clone()).await.unwrap().is_some());
    cx.close().await;
    closed(cx.presence().set_presence(&ns, update).await);
    closed(cx.presence().read_presence(&ns).await);
}

async fn twice(cx: Cx) {
    let s = cx.session("twice");
    append(&cx, &s, [ev("a")]).await;
    cx.close().await;
    cx.close().await;
    closed(cx.store().read(&s, ReadRange::default()).await);
}

async fn stream_waiting(cx: Cx) {
    let s = cx.session("waiting");
    append(&cx, &s, [ev("a")]).await;
    let mut caught_up = cx.store().stream(&s, at(0));
    assert_eq!(next(&cx, &mut caught_up).await.index, 1);
    let mut unpolled = cx.store().stream(&s, at(1));
    assert!(is_waiting(&mut caught_up));
    cx.close().await;
    ends(&cx, &mut caught_up).await;
    ends(&cx, &mut unpolled).await;
}

async fn stream_behind(cx: Cx) {
    let s = cx.session("behind");
    append(&cx, &s, many("e", 3_000)).await;
    let mut stream = cx.store().stream(&s, at(0));
    assert_eq!(next(&cx, &mut stream).await.index, 1);
    cx.close().await;
    // What it has fetched it may still give: in order, and then the end.
    let mut last = 1;
    loop {
        match cx.within(secs(10), stream.next()).await.expect("the end is told") {
            Ok(event) => {
                last += 1;
                assert_eq!(event.index, last);
            }
            answer => break closed(answer),
        }
    }
    assert!(cx.within(secs(10), stream.next()).await.is_none(), "once");
}

async fn stream_opened_after(cx: Cx) {
    let s = cx.session("after");
    append(&cx, &s, [ev("a")]).await;
    cx.close().await;
    ends(&cx, &mut cx.store().stream(&s, at(0))).await;
}

async fn hints_end(cx: Cx) {
    let mut hints = cx.store().watch_pending(Served::ALL);
    let _ = is_waiting(&mut hints);
    cx.close().await;
    // Hints that were on their way may come first.
    loop {
        match cx.within(secs(10), hints.next()).await {
            Some(Ok(_)) => {}
            Some(answer) => closed(answer),
            None => break,
        }
    }
}

async fn presence_watch_ends(cx: Cx) {
    let ns = cx.namespace("watch");
    let mut watch = cx.presence().watch_presence(&ns);
    assert!(matches!(next(&cx, &mut watch).await, PresenceChange::Rows(_)));
    assert!(is_waiting(&mut watch));
    cx.close().await;
    ends(&cx, &mut watch).await;
}

async fn leases_run_out(cx: Cx) {
    let s = cx.session("leases");
    let other = cx.another().await;
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    assert_eq!(take(&cx, &s, claim_as(WORKER, secs(10))).await[0].attempt(), 1);
    cx.close().await;
    // Closing gives nothing back. Where the handles are one store, nobody is left to see it.
    match other.store().claim_available(&s, claim()).await {
        Err(error) => assert_eq!(error.code(), "CLOSED"),
        busy => {
            assert_eq!(expect_busy(busy).retry_after, secs(10));
            cx.pass(secs(10)).await;
            let head = claim_one(&other, &s, "c").await;
            assert_eq!((head.attempt(), head.state.failure_count), (2, 1));
        }
    }
}
