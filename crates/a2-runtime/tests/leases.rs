//! Leases: claims in the steady state, renewals, attempts that were taken over or cleared away.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Context, Handled, RetryPolicy, Runtime, concurrent, lane};
use a2_store_memory::MemoryStore;
use support::watched::*;
use support::*;
use tokio::sync::{Notify, mpsc};

/// A handler that tells of its attempts and stays until its gate is opened, whatever happens to it.
fn held(
    told: mpsc::UnboundedSender<Context>,
    gate: Arc<Notify>,
) -> impl Fn(Order, Context) -> futures_util::future::BoxFuture<'static, Handled<Bill>> {
    move |_, cx| {
        let gate = Arc::clone(&gate);
        told.send(cx).unwrap();
        Box::pin(async move {
            gate.notified().await;
            Ok(sent("tea"))
        })
    }
}

/// When the leases of session `s` end.
async fn expiries(store: &dyn Store) -> Vec<i64> {
    let cursors = store.all_cursors(&session("s")).await.unwrap();
    let ends = cursors.iter().filter_map(|cursor| cursor.state.claim_expires_at);
    ends.map(Timestamp::as_millis).collect()
}

#[tokio::test]
async fn a_completion_claims_what_is_next() {
    let store = Watched::new(MemoryStore::new());
    let all = lane("c", |_: &Order| "l", |_: Order, _| async { Ok(()) });
    let runtime = Runtime::builder(Arc::clone(&store)).consumer(all).build().unwrap();
    runtime.session("s").unwrap().append(vec![placed("tea"); 10]).await.unwrap();
    runtime.start();
    settled(&store).await;
    let claims = store.calls(&["claim_available"]);
    let completions = store.calls(&["complete_attempt"]);
    assert_eq!(completions.iter().filter(|call| call.claims).count(), 10);
    // What a sweep, a hint and the end of the work ask for; not one for each event.
    assert!(claims.len() < 6, "{claims:?}");
}

#[tokio::test]
async fn all_leases_of_a_session_are_renewed_by_one_call_before_a_third_is_left() {
    let (clock, memory, _) = by_hand();
    let store = Watched::new(memory);
    let (told, mut attempts) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let runtime = Runtime::builder(Arc::clone(&store))
        .clock(Arc::new(clock.clone()))
        .ttl(Duration::from_secs(30))
        .consumer(concurrent("c", held(told, Arc::clone(&gate))))
        .build()
        .unwrap();
    runtime.start();
    runtime.session("s").unwrap().append([placed("a"), placed("b"), placed("c")]).await.unwrap();
    for _ in 0..3 {
        attempts.recv().await.unwrap();
    }
    assert_eq!(expiries(&store).await, [1_030_000; 3]);
    // Five times a lease's length: nobody could have taken them over.
    for step in 1..=10 {
        clock.advance(Duration::from_secs(15));
        let end = 1_030_000 + step * 15_000;
        until("renewed leases", || async { (expiries(&store).await == [end; 3]).then_some(()) })
            .await;
    }
    let renewals = store.calls(&["renew_claims"]);
    assert_eq!(renewals.iter().map(|call| call.n).collect::<Vec<_>>(), [3; 10]);
    for _ in 0..3 {
        gate.notify_one();
    }
    event_at(&store, "s", 6).await;
    settled(&store).await;
}

#[tokio::test]
async fn a_renewal_that_fails_is_made_again_in_time() {
    let (clock, memory, _) = by_hand();
    let store = Watched::new(memory);
    let (told, mut attempts) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let runtime = Runtime::builder(Arc::clone(&store))
        .clock(Arc::new(clock.clone()))
        .ttl(Duration::from_secs(32))
        .consumer(concurrent("c", held(told, Arc::clone(&gate))))
        .build()
        .unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("a")).await.unwrap();
    attempts.recv().await.unwrap();
    let mut refused = 0;
    store.decide(move |call| match call.op {
        "renew_claims" if refused < 2 => {
            refused += 1;
            Fault::Refused
        }
        _ => Fault::None,
    });
    for (step, calls) in [(16, 1), (4, 2), (4, 3)] {
        clock.advance(Duration::from_secs(step));
        until("a call", || async { (store.calls(&["renew_claims"]).len() == calls).then_some(()) })
            .await;
    }
    until("a renewed lease", || async { (expiries(&store).await == [1_056_000]).then_some(()) })
        .await;
}

#[tokio::test]
async fn an_attempt_that_was_taken_over_is_cancelled_and_writes_nothing() {
    let (clock, memory, _) = by_hand();
    let store = Watched::new(memory.clone());
    let (told, mut attempts) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let runtime = Runtime::builder(Arc::clone(&store))
        .clock(Arc::new(clock.clone()))
        .ttl(Duration::from_secs(30))
        .consumer(concurrent("c", held(told, Arc::clone(&gate))))
        .build()
        .unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    let zombie = attempts.recv().await.unwrap();
    // The process hangs: its leases run out, and another one takes the head.
    store.decide(|call| if call.op == "renew_claims" { Fault::Refused } else { Fault::None });
    clock.advance(Duration::from_secs(31));
    let claim = ClaimAvailable::new("another", Duration::from_secs(600)).unwrap();
    let taken = memory.claim_available(&session("s"), claim).await.unwrap().into_heads();
    assert_eq!(taken[0].attempt(), 2);
    // Then it goes on.
    assert!(!zombie.is_cancelled());
    store.decide(|_| Fault::None);
    clock.advance(Duration::from_secs(30));
    zombie.cancelled().await;
    let refused = zombie.session().append(sent("in between")).await.unwrap_err();
    assert_eq!(refused.code(), "SUPERSEDED_ATTEMPT");
    gate.notify_one();
    until("the place to be given back", || async {
        (!store.calls(&["complete_attempt"]).is_empty()).then_some(())
    })
    .await;
    assert_eq!(types(&memory, "s").await, ["order.placed"]);
    // One failure: the lapse. Being overtaken costs nothing more.
    let state = memory.all_cursors(&session("s")).await.unwrap().remove(0).state;
    assert_eq!((state.attempt_count, state.failure_count), (2, 1));
}

#[tokio::test]
async fn an_attempt_whose_lease_lapsed_completes_if_nobody_took_over() {
    let (clock, memory, _) = by_hand();
    let store = Watched::new(memory.clone());
    let (told, mut attempts) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let runtime = Runtime::builder(Arc::clone(&store))
        .clock(Arc::new(clock.clone()))
        .ttl(Duration::from_secs(30))
        .consumer(concurrent("c", held(told, Arc::clone(&gate))))
        .build()
        .unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append(placed("tea")).await.unwrap();
    attempts.recv().await.unwrap();
    store.decide(|call| if call.op == "renew_claims" { Fault::Refused } else { Fault::None });
    clock.advance(Duration::from_secs(31));
    // The process looks for work, and does not take the head away from itself.
    let before = store.calls(&["claim_available"]).len();
    orders.append(NewEvent::new("other", &()).unwrap()).await.unwrap();
    until("a look", || async { (store.calls(&["claim_available"]).len() > before).then_some(()) })
        .await;
    gate.notify_one();
    let bill = event_at(&store, "s", 3).await;
    assert_eq!(bill.cause.as_ref().map(|cause| cause.attempt), Some(1));
}

#[tokio::test]
async fn a_clear_cancels_what_runs_and_costs_no_budget() {
    let (_, store, builder) = by_hand();
    let (told, mut attempts) = mpsc::unbounded_channel();
    let handler = move |_: Order, cx: Context| {
        told.send(cx.clone()).unwrap();
        async move {
            cx.cancelled().await;
            Err::<(), _>("cancelled".into())
        }
    };
    let runtime = builder.consumer(concurrent("c", handler)).build().unwrap();
    runtime.start();
    let orders = runtime.session("s").unwrap();
    orders.append(placed("old")).await.unwrap();
    let attempt = attempts.recv().await.unwrap();
    orders.clear().await.unwrap();
    attempt.cancelled().await;
    let refused = attempt.session().append(sent("old")).await.unwrap_err();
    assert_eq!(refused.code(), "SESSION_CLEARED");
    orders.append(placed("new")).await.unwrap();
    assert_eq!(attempts.recv().await.unwrap().event().index, 3);
    assert_eq!(store.all_dead_letters(&session("s")).await.unwrap(), []);
}

#[tokio::test]
async fn a_clear_by_somebody_else_is_noticed_by_the_next_claim() {
    let (_, store, builder) = by_hand();
    let (told, mut attempts) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let runtime = builder.consumer(concurrent("c", held(told, gate))).build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("old")).await.unwrap();
    let attempt = attempts.recv().await.unwrap();
    let _ = store.clear(&session("s"), Clear::new()).await.unwrap();
    runtime.session("s").unwrap().append(placed("new")).await.unwrap();
    attempts.recv().await.unwrap();
    attempt.cancelled().await;
}

#[tokio::test]
async fn a_completion_whose_answer_was_lost_is_sent_again() {
    let memory = MemoryStore::new();
    let store = Watched::new(memory.clone());
    let mut left = 2;
    store.decide(move |call| match call.op {
        "complete_attempt" if left > 0 => {
            left -= 1;
            if left == 1 { Fault::Lost } else { Fault::Refused }
        }
        _ => Fault::None,
    });
    let bill = |_: Order, _| async { Ok(sent("tea")) };
    let runtime = Runtime::builder(Arc::clone(&store)).consumer(concurrent("c", bill));
    let runtime = runtime.build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    until("three calls", || async {
        (store.calls(&["complete_attempt"]).len() == 3).then_some(())
    })
    .await;
    settled(&memory).await;
    assert_eq!(types(&memory, "s").await, ["order.placed", "bill.sent"]);
    let claims: Vec<_> =
        store.calls(&["complete_attempt"]).iter().map(|call| call.claims).collect();
    assert_eq!(claims, [true, false, false]);
}

#[tokio::test]
async fn a_failure_whose_answer_was_lost_is_counted_once() {
    let memory = MemoryStore::new();
    let store = Watched::new(memory.clone());
    let mut left = 2;
    store.decide(move |call| match call.op {
        "fail_attempt" if left > 0 => {
            left -= 1;
            Fault::Lost
        }
        _ => Fault::None,
    });
    let twice = RetryPolicy::new().budget(2).first(Duration::from_secs(3600));
    let fail = |_: Order, _| async { Err::<(), _>("no".into()) };
    let runtime = Runtime::builder(Arc::clone(&store)).consumer(concurrent("c", fail)).retry(twice);
    let runtime = runtime.build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    until("three calls", || async { (store.calls(&["fail_attempt"]).len() == 3).then_some(()) })
        .await;
    let state = memory.all_cursors(&session("s")).await.unwrap().remove(0).state;
    assert_eq!((state.failure_count, state.attempt_count), (1, 1));
}

#[tokio::test]
async fn a_claim_that_fails_is_made_again() {
    let store = Watched::new(MemoryStore::new());
    let mut left = 3;
    store.decide(move |call| match call.op {
        "claim_available" if left > 0 => {
            left -= 1;
            Fault::Refused
        }
        _ => Fault::None,
    });
    let bill = |_: Order, _| async { Ok(sent("tea")) };
    let runtime = Runtime::builder(Arc::clone(&store)).consumer(concurrent("c", bill));
    let runtime = runtime.build().unwrap();
    runtime.start();
    runtime.session("s").unwrap().append(placed("tea")).await.unwrap();
    event_at(&store, "s", 2).await;
}
