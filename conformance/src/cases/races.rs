//! Many workers at once: who gets a head, and that it is one of them.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use a2_core::{Claim, Completion, Failure, SessionId, WakeLog};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::Cx;
use crate::case::cases;
use crate::dispatch::*;
use crate::kit::*;

cases![
    "claims.race.one_lease_a_lane_f17" => one_lease_a_lane_f17: rules(R15, R36, F17), both;
    "claims.race.one_lease_a_log" => one_lease_a_log: rules(R15, R36, F17);
    "claims.race.event_heads_once" => event_heads_once: rules(R36, R39, R45), both;
    "claims.race.two_handles" => two_handles: rules(R15, R36, F17), needs(Another);
    "claims.race.taking_over" => taking_over: rules(R25, R46);
    "claims.race.lapse_or_complete_f7" => lapse_or_complete_f7: rules(R25, R36, F7);
    "complete.race.same_attempt" => same_attempt: rules(R38, R52);
    "complete.race.same_returned_id" => same_returned_id: rules(R36, R52);
    "fail.race.same_attempt" => fail_same_attempt: rules(R38, R56);
    "lanes.race.appended_while_drained" => appended_while_drained: rules(R15, R36);
    "logs.race.woken_while_appended_f19" => woken_while_appended_f19: rules(R28, R36, F19);
];

/// What the workers of one cursor saw.
#[derive(Default)]
struct Seen {
    leases: AtomicUsize,
    claims: AtomicUsize,
    finished: Mutex<Vec<u64>>,
    /// Told whenever there may be something to claim again.
    changed: Notify,
}

impl Seen {
    fn finished(&self) -> usize {
        self.finished.lock().unwrap().len()
    }
}

/// Works on a session's one cursor until `events` are finished; every 20th attempt fails.
async fn work(cx: Cx, s: SessionId, seen: Arc<Seen>, events: usize) {
    loop {
        let mut changed = pin!(seen.changed.notified());
        changed.as_mut().enable();
        if seen.finished() == events {
            return;
        }
        let Claim::Claimed(claimed) = cx.store().claim_available(&s, claim()).await.unwrap() else {
            // Busy, or idle until more is appended.
            changed.await;
            continue;
        };
        assert_eq!(claimed.heads.len(), 1);
        let head = &claimed.heads[0];
        assert_eq!(seen.leases.fetch_add(1, Ordering::SeqCst), 0, "one live lease at any moment");
        let fails = seen.claims.fetch_add(1, Ordering::SeqCst) % 20 == 19;
        tokio::task::yield_now().await;
        if !fails {
            seen.finished.lock().unwrap().push(head.head.index.get());
        }
        seen.leases.fetch_sub(1, Ordering::SeqCst);
        if fails {
            let _ = failed(&cx, &s, fail(head)).await;
        } else {
            finish(&cx, &s, head).await;
        }
        seen.changed.notify_waiters();
    }
}

async fn work_together(handles: Vec<Cx>, s: &SessionId, events: usize) -> Vec<u64> {
    work_until(handles, s, events, Arc::default()).await
}

async fn work_until(handles: Vec<Cx>, s: &SessionId, events: usize, seen: Arc<Seen>) -> Vec<u64> {
    let mut tasks = JoinSet::new();
    for cx in handles {
        tasks.spawn(work(cx, s.clone(), Arc::clone(&seen), events));
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    std::mem::take(&mut *seen.finished.lock().unwrap())
}

async fn one_lease_a_lane_f17(cx: Cx) {
    let s = cx.session("f17");
    append(&cx, &s, many_on_l("e", 150)).await;
    let finished = work_together(vec![cx.clone(); 32], &s, 150).await;
    assert_eq!(finished, (1..=150).collect::<Vec<_>>(), "in order, each once");
    nothing(&cx, &s).await;
}

async fn one_lease_a_log(cx: Cx) {
    let s = cx.session("log");
    append_served(&cx, &s, &serve_log("c", all_types("l")), many("e", 40)).await;
    let finished = work_together(vec![cx.clone(); 6], &s, 40).await;
    assert_eq!(finished, (1..=40).collect::<Vec<_>>());
    assert_eq!(shown(&cx, &s).await, ["c log l 40>-"]);
}

async fn two_handles(cx: Cx) {
    let s = cx.session("handles");
    append(&cx, &s, many_on_l("e", 40)).await;
    let other = cx.another().await;
    let handles = vec![cx.clone(), other.clone(), cx.clone(), other];
    assert_eq!(work_together(handles, &s, 40).await, (1..=40).collect::<Vec<_>>());
    nothing(&cx, &s).await;
}

async fn event_heads_once(cx: Cx) {
    let s = cx.session("once");
    append(&cx, &s, many_for_c("e", 120)).await;
    let mut tasks = JoinSet::new();
    for worker in 0..8 {
        let (cx, s) = (cx.clone(), s.clone());
        tasks.spawn(async move {
            let claim = claim_as(&format!("w{worker}"), secs(60)).limit(1 + worker).unwrap();
            let mut mine = Vec::new();
            loop {
                match cx.store().claim_available(&s, claim.clone()).await.unwrap() {
                    Claim::Claimed(claimed) => mine.extend(claimed.heads),
                    Claim::Busy(_) => return mine,
                    Claim::Settled => panic!("all of it is leased"),
                }
            }
        });
    }
    let mut heads = tasks.join_all().await.concat();
    heads.sort_by_key(|head| head.head.index);
    assert_eq!(refs(&heads), (1..=120).map(|i| event_head("c", i)).collect::<Vec<_>>());
    assert!(heads.iter().all(|head| head.attempt() == 1));
}

async fn taking_over(cx: Cx) {
    for _ in 0..10 {
        let s = cx.session("over");
        append(&cx, &s, [ev_on("a", "l")]).await;
        let lapsed = claim_and_lapse(&cx, &s).await;
        let mut tasks = JoinSet::new();
        for _ in 0..6 {
            let (cx, s) = (cx.clone(), s.clone());
            tasks.spawn(async move {
                cx.store().claim_available(&s, claim()).await.unwrap().into_heads()
            });
        }
        let heads = tasks.join_all().await.concat();
        assert_eq!(heads.len(), 1, "one takes over");
        assert_eq!((heads[0].attempt(), heads[0].state.failure_count), (2, 1));
        superseded(&cx, &s, complete(&lapsed)).await;
        finish(&cx, &s, &heads[0]).await;
    }
}

async fn lapse_or_complete_f7(cx: Cx) {
    for round in 0..100 {
        let s = cx.session("f7");
        append(&cx, &s, [ev_on("a", "l")]).await;
        let head = take_one(&cx, &s, claim_as("a", ms(50))).await;
        cx.pass(ms(50)).await;
        let finisher = {
            let (cx, s, head) = (cx.clone(), s.clone(), head.clone());
            async move {
                let request = complete(&head).events([ev("k")]).unwrap();
                cx.store().complete_attempt(&s, request).await.unwrap().outcome
            }
        };
        let rival = {
            let (cx, s) = (cx.clone(), s.clone());
            async move { cx.store().claim_available(&s, claim_as("b", secs(60))).await.unwrap() }
        };
        let (finisher, rival) = if round % 2 == 0 {
            let finisher = tokio::spawn(finisher);
            (finisher, tokio::spawn(rival))
        } else {
            let rival = tokio::spawn(rival);
            (tokio::spawn(finisher), rival)
        };
        match (finisher.await.unwrap(), rival.await.unwrap()) {
            (Completion::Completed(appended), Claim::Settled) => {
                assert_eq!(indexes(&appended.events), [2]);
            }
            (Completion::Superseded, Claim::Claimed(claimed)) => {
                assert_eq!(claimed.heads[0].attempt(), 2);
                finish_with(&cx, &s, &claimed.heads[0], [ev("k")]).await;
            }
            both => panic!("exactly one of them has it: {both:?}"),
        }
        assert_eq!(ids(&log(&cx, &s).await), ["a", "k"]);
        nothing(&cx, &s).await;
    }
}

async fn same_attempt(cx: Cx) {
    for _ in 0..10 {
        let s = cx.session("same");
        append(&cx, &s, many_on_l("e", 2)).await;
        let head = claim_the_one(&cx, &s).await;
        let mut tasks = JoinSet::new();
        for _ in 0..4 {
            let (cx, s, head) = (cx.clone(), s.clone(), head.clone());
            tasks.spawn(async move {
                let request = complete(&head).events([ev("k1"), ev("k2")]).unwrap();
                let answer = cx.store().complete_attempt(&s, request).await;
                let appended = expect_completed(answer);
                assert_eq!(indexes(&appended.events), [3, 4]);
                appended.replayed
            });
        }
        let replayed = tasks.join_all().await;
        assert_eq!(replayed.iter().filter(|replayed| !**replayed).count(), 1, "one is the first");
        assert_eq!(shown(&cx, &s).await, ["c lane l 1>2"], "it moved by one");
        assert_eq!(log(&cx, &s).await.len(), 4);
    }
}

async fn same_returned_id(cx: Cx) {
    let s = cx.session("returned");
    append(&cx, &s, many_for_c("e", 6)).await;
    let mut tasks = JoinSet::new();
    for head in claim_all(&cx, &s).await {
        let (cx, s) = (cx.clone(), s.clone());
        tasks.spawn(async move {
            let request = complete(&head).events([ev("k")]).unwrap();
            match cx.store().complete_attempt(&s, request).await {
                Ok(answer) => {
                    let appended = answer.outcome.completed().expect("every attempt is current");
                    assert!(!appended.replayed);
                    true
                }
                Err(error) => {
                    assert_eq!(error.code(), "PARTIAL_DUPLICATE_BATCH");
                    finish(&cx, &s, &head).await;
                    false
                }
            }
        });
    }
    let won = tasks.join_all().await;
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "one event owns the id");
    assert_eq!(log(&cx, &s).await.len(), 7);
    nothing(&cx, &s).await;
}

async fn fail_same_attempt(cx: Cx) {
    let s = cx.session("fail");
    append(&cx, &s, [ev_on("a", "l")]).await;
    let head = claim_the_one(&cx, &s).await;
    let mut tasks = JoinSet::new();
    for _ in 0..6 {
        let (cx, s, head) = (cx.clone(), s.clone(), head.clone());
        tasks.spawn(async move { failed(&cx, &s, fail(&head).retry_after(secs(5))).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes, [Failure::Failed { failure_count: 1 }; 6], "it counts once");
}

async fn appended_while_drained(cx: Cx) {
    let s = cx.session("drained");
    let seen = Arc::<Seen>::default();
    let mut appenders = JoinSet::new();
    for appender in 0..3 {
        let (cx, s, seen) = (cx.clone(), s.clone(), Arc::clone(&seen));
        appenders.spawn(async move {
            for i in 0..10 {
                append(&cx, &s, [ev_on(&format!("{appender}-{i}"), "l")]).await;
                seen.changed.notify_waiters();
            }
        });
    }
    let finished = work_until(vec![cx.clone(); 4], &s, 30, seen).await;
    appenders.join_all().await;
    assert_eq!(finished, (1..=30).collect::<Vec<_>>());
    nothing(&cx, &s).await;
    assert_eq!(shown(&cx, &s).await, ["c lane l 30>-"]);
}

async fn woken_while_appended_f19(cx: Cx) {
    for round in 0..15 {
        let s = cx.session("f19");
        if round % 2 == 0 {
            append(&cx, &s, [ev("first")]).await;
        }
        let mut appenders = JoinSet::new();
        for appender in 0..4 {
            let (cx, s) = (cx.clone(), s.clone());
            appenders.spawn(async move {
                for i in 0..4 {
                    append(&cx, &s, [ev(&format!("{appender}-{i}"))]).await;
                    tokio::task::yield_now().await;
                }
            });
        }
        let request = WakeLog::new("c", all_types("l")).unwrap();
        let woken = cx.store().wake_log(&s, request).await.unwrap();
        let position = woken.cursor.position.get();
        assert_eq!((woken.head.get(), woken.cursor.head), (position, None), "it starts idle");
        append(&cx, &s, [ev("after")]).await;
        appenders.join_all().await;
        wake(&cx, &s, "c", all_types("l")).await;
        let head = log(&cx, &s).await.len() as u64;
        let offered = drain(&cx, &s, claim()).await;
        let expected: Vec<_> = (position + 1..=head).map(|i| log_head("c", "l", i)).collect();
        assert_eq!(offered, expected, "every later event, the next one first");
        assert!(!offered.is_empty());
    }
}
