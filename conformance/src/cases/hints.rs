//! Hints of `watch_pending`. They may be lost, so a case does again what should cause one until it
//! comes; what must never come is not asked for.

use a2_core::{Redrive, RedriveAction, Schedule, Served, SessionId, WorkHints};
use futures_util::StreamExt;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    all: rules(R79);
    "hints.append" => on_append: both;
    "hints.append.undeclared" => on_undeclared_append: both;
    "hints.append.another_handle" => on_append_of_another_handle: both, needs(Another);
    "hints.returned_events" => on_returned_events: both;
    "hints.redrive" => on_redrive: both;
    "hints.timer_due" => on_timer_due: both, needs(Timers);
    "hints.timer_due.another_handle" => on_timer_due_of_another: both, needs(Timers, Another);
    "hints.several_watchers" => several_watchers;
    "hints.dropped" => dropped;
];

/// Whether a hint for this session comes soon; others' are passed over.
async fn hinted(hints: &mut WorkHints, s: &SessionId) -> bool {
    let hint = async {
        while let Some(hint) = hints.next().await {
            if hint.unwrap().session == *s {
                return;
            }
        }
        panic!("the hints ended");
    };
    tokio::time::timeout(ms(300), hint).await.is_ok()
}

/// Does something until it is hinted at.
async fn until_hinted<Fut>(
    cx: &Cx,
    hints: &mut WorkHints,
    s: &SessionId,
    mut cause: impl FnMut(usize) -> Fut,
) where
    Fut: Future<Output = ()>,
{
    let hinted = async {
        for round in 0.. {
            cause(round).await;
            if hinted(hints, s).await {
                return;
            }
        }
    };
    cx.within(secs(15), hinted).await;
}

async fn on_append(cx: Cx) {
    let s = cx.session("append");
    let mut hints = cx.store().watch_pending(serve(["c"]));
    until_hinted(&cx, &mut hints, &s, |round| {
        let (cx, s) = (cx.clone(), s.clone());
        async move {
            append(&cx, &s, [ev(&format!("e{round}")).target(to_event("c"))]).await;
        }
    })
    .await;
}

async fn on_undeclared_append(cx: Cx) {
    let s = cx.session("undeclared");
    // Served is a log; the appender knows nothing of it.
    let mut hints = cx.store().watch_pending(serve_log("c", all_types("log")));
    until_hinted(&cx, &mut hints, &s, |round| {
        let (cx, s) = (cx.clone(), s.clone());
        async move {
            append(&cx, &s, [ev(&format!("e{round}"))]).await;
        }
    })
    .await;
}

async fn on_append_of_another_handle(cx: Cx) {
    let s = cx.session("another");
    let other = cx.another().await;
    let mut hints = cx.store().watch_pending(Served::ALL);
    until_hinted(&cx, &mut hints, &s, |round| {
        let (other, s) = (other.clone(), s.clone());
        async move {
            append(&other, &s, [ev(&format!("e{round}")).target(to_event("c"))]).await;
        }
    })
    .await;
}

async fn on_returned_events(cx: Cx) {
    let s = cx.session("returned");
    append(&cx, &s, many("e", 100).into_iter().map(|event| event.target(to_event("c")))).await;
    let mut hints = cx.store().watch_pending(Served::ALL);
    while hinted(&mut hints, &s).await {}
    until_hinted(&cx, &mut hints, &s, |round| {
        let (cx, s) = (cx.clone(), s.clone());
        async move {
            let head = claim_one(&cx, &s, "c").await;
            let child = ev(&format!("child{round}")).target(to_event("d"));
            let request = complete(&head).events([child]).unwrap();
            let done = cx.store().complete_attempt(&s, request).await;
            assert!(!expect_completed(done).replayed);
        }
    })
    .await;
}

async fn on_redrive(cx: Cx) {
    let s = cx.session("redrive");
    append(&cx, &s, [ev("a").target(to_event("c"))]).await;
    let mut hints = cx.store().watch_pending(Served::ALL);
    while hinted(&mut hints, &s).await {}
    until_hinted(&cx, &mut hints, &s, |_| {
        let (cx, s) = (cx.clone(), s.clone());
        async move {
            let head = claim_one(&cx, &s, "c").await;
            bury(&cx, &s, &head).await;
            let retry = Redrive::new(head.head, RedriveAction::Retry);
            assert!(cx.store().redrive(&s, retry).await.unwrap().redriven);
        }
    })
    .await;
}

/// Sets a timer with `by` and lets the time pass, until the timer is hinted at.
async fn timer(cx: &Cx, hints: &mut WorkHints, by: &Cx) {
    let s = cx.session("timer");
    let hinted = async {
        for round in 0.. {
            let timer = Schedule::new("k", ms(100), ev(&format!("e{round}"))).unwrap();
            let _ = by.timers().schedule(&s, timer).await.unwrap();
            if !cx.is_live() {
                // Who has heard of this append has heard of the timer, and waits for it.
                let elsewhere = cx.session("elsewhere");
                until_hinted(cx, hints, &elsewhere, |round| {
                    let (by, elsewhere) = (by.clone(), elsewhere.clone());
                    async move {
                        append(&by, &elsewhere, [ev(&format!("e{round}"))]).await;
                    }
                })
                .await;
            }
            cx.pass(ms(100)).await;
            if hinted(hints, &s).await {
                return;
            }
        }
    };
    cx.within(secs(30), hinted).await;
}

async fn on_timer_due(cx: Cx) {
    let mut hints = cx.store().watch_pending(serve(["c"]));
    timer(&cx, &mut hints, &cx).await;
}

async fn on_timer_due_of_another(cx: Cx) {
    let other = cx.another().await;
    let mut hints = cx.store().watch_pending(serve(["c"]));
    timer(&cx, &mut hints, &other).await;
}

async fn several_watchers(cx: Cx) {
    let s = cx.session("several");
    for consumer in ["a", "b", "c"] {
        let mut hints = cx.store().watch_pending(serve([consumer]));
        let mut all = cx.store().watch_pending(Served::ALL);
        for hints in [&mut hints, &mut all] {
            until_hinted(&cx, hints, &s, |round| {
                let (cx, s) = (cx.clone(), s.clone());
                async move {
                    let id = cx.unique(&format!("{consumer}{round}"));
                    append(&cx, &s, [ev(&id).target(to_event(consumer))]).await;
                }
            })
            .await;
        }
    }
}

async fn dropped(cx: Cx) {
    let s = cx.session("dropped");
    for round in 0..200 {
        let mut hints = cx.store().watch_pending(Served::ALL);
        if round % 2 == 0 {
            // Once polled, once not.
            let _ = is_waiting(&mut hints);
        }
    }
    let mut hints = cx.store().watch_pending(Served::ALL);
    until_hinted(&cx, &mut hints, &s, |round| {
        let (cx, s) = (cx.clone(), s.clone());
        async move {
            append(&cx, &s, [ev(&format!("e{round}"))]).await;
        }
    })
    .await;
}
