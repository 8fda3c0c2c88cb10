//! Actors, over several processes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2_actor::{Actor, ActorsExt, CallError, Hosted, Turn, actor};
use a2_conformance::{Losing, Loss};
use a2_core::{EventId, Timers};
use a2_runtime::{Events, Handled, NonRetriable, Runtime, RuntimeBuilder};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};

use super::clocked::{HOUR, manual, on};
use super::events::*;
use super::{PATIENCE, Site, until};

#[derive(Debug, Serialize, Deserialize)]
enum Number {
    #[serde(rename = "add")]
    Add(u64),
    #[serde(rename = "later")]
    Later(u64),
}
impl Events for Number {}

const SUM: Actor<u64, Number> = actor("sum");
const COPY: Actor<u64, Number> = actor("copy");

async fn sum(sum: u64, number: Number, turn: Turn) -> Handled<u64> {
    match number {
        Number::Add(0) => Err(NonRetriable::new("nothing to add"))?,
        Number::Add(n) => Ok(sum + n),
        Number::Later(n) => {
            turn.schedule(SUM, "later", HOUR, Number::Add(n))?;
            Ok(sum)
        }
    }
}

pub(crate) async fn a_thousand_calls_are_each_answered_once(site: &dyn Site) {
    let mut runtimes = Vec::new();
    for _ in 0..3 {
        let store = site.open(None).await;
        let runtime = Runtime::builder(store).actors([SUM.host(sum)]).build().unwrap();
        runtime.start();
        runtimes.push(runtime);
    }
    let callers = 16_u64;
    let answers: Vec<Vec<u64>> = stream::iter(0..callers)
        .map(|caller| {
            let runtime = &runtimes[usize::try_from(caller).unwrap() % runtimes.len()];
            let sum = SUM.of(&runtime.session("s").unwrap());
            async move {
                let mut answers = Vec::new();
                for n in (1..=1_000).filter(|n| n % callers == caller) {
                    answers.push(sum.call(Number::Add(n), PATIENCE).await.unwrap());
                }
                answers
            }
        })
        .buffer_unordered(16)
        .collect()
        .await;
    // Every caller saw the sum grow, and no two the same sum.
    assert!(answers.iter().all(|answers| answers.is_sorted()));
    let different: BTreeSet<_> = answers.iter().flatten().collect();
    assert_eq!((different.len(), different.last()), (1_000, Some(&&500_500)));
    let store = site.open(None).await;
    let log = log(&store, "s").await;
    assert_eq!(log.len(), 2_000);
    for runtime in runtimes {
        assert_eq!(SUM.of(&runtime.session("s").unwrap()).state().await.unwrap(), 500_500);
        assert!(runtime.shutdown(HOUR).await.finished);
    }
}

type Runs = Arc<Mutex<Vec<(u64, Vec<EventId>)>>>;

/// Adds, and sends what it was told on; writes down from which state, and with which ids.
async fn send_on(runs: Runs, sum: u64, number: Number, turn: Turn) -> Handled<u64> {
    let Number::Add(n) = number else { return Ok(sum) };
    let ids = vec![turn.send(COPY, Number::Add(n))?, turn.send(COPY, Number::Add(n))?];
    runs.lock().unwrap().push((sum, ids));
    Ok(sum + n)
}

/// Sum and copy after a second message that two processes worked on: both from the same state, with
/// the same ids, and what they made is there once.
async fn check_second_run(store: &Arc<dyn Timers>, heir: &Runtime, runs: &Runs) {
    count(store, "s", "a2.actor.state", 6).await;
    settled(store).await;
    let log = count(store, "s", "a2.actor.state", 6).await;
    assert_eq!(log.len(), 12);
    let session = heir.session("s").unwrap();
    assert_eq!(SUM.of(&session).state().await.unwrap(), 6);
    assert_eq!(COPY.of(&session).state().await.unwrap(), 12);
    let runs = runs.lock().unwrap();
    assert_eq!(runs.iter().map(|run| run.0).collect::<Vec<_>>(), [0, 1, 1]);
    assert_eq!(runs[1], runs[2]);
    assert_eq!(BTreeSet::from_iter(runs.iter().flat_map(|run| &run.1)).len(), 4);
}

/// A process whose own time stands still, so that it does not renew its leases.
fn hanging(store: impl Timers + 'static) -> RuntimeBuilder {
    Runtime::builder(store).clock(Arc::new(manual())).concurrency(1).ttl(Duration::from_secs(30))
}

fn sending(runs: &Runs) -> Hosted {
    let runs = Arc::clone(runs);
    SUM.host(move |sum, number, turn| send_on(Arc::clone(&runs), sum, number, turn))
}

pub(crate) async fn an_actors_zombie_cannot_commit(site: &dyn Site) {
    let clock = manual();
    let (first, second) =
        (site.open(Some(clock.clone())).await, site.open(Some(clock.clone())).await);
    let runs = Runs::default();
    let (told, mut begun) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let (opened, written) = (Arc::clone(&gate), Arc::clone(&runs));
    let slow = move |sum: u64, number: Number, turn: Turn| {
        let (gate, runs, told) = (Arc::clone(&opened), Arc::clone(&written), told.clone());
        async move {
            let made = send_on(runs, sum, number, turn).await?;
            if sum > 0 {
                told.send(())?;
                gate.notified().await;
            }
            Ok(made)
        }
    };
    let zombie = hanging(first).actors([SUM.host(slow), COPY.host(sum)]).build().unwrap();
    zombie.start();
    let instance = SUM.of(&zombie.session("s").unwrap());
    assert_eq!(instance.call(Number::Add(1), PATIENCE).await.unwrap(), 1);
    count(&second, "s", "a2.actor.state", 3).await;
    settled(&second).await;
    instance.tell(Number::Add(5)).await.unwrap();
    begun.recv().await.unwrap();
    clock.advance(Duration::from_secs(31));
    let heir = on(&second, &clock).actors([sending(&runs), COPY.host(sum)]).build().unwrap();
    heir.start();
    count(&second, "s", "a2.actor.state", 6).await;
    // It wakes, and what it made is refused.
    gate.notify_one();
    assert!(zombie.shutdown(HOUR).await.finished);
    check_second_run(&second, &heir, &runs).await;
    assert!(heir.shutdown(HOUR).await.finished);
}

pub(crate) async fn a_turn_whose_process_died_before_the_commit_runs_again(site: &dyn Site) {
    let clock = manual();
    let (first, second) =
        (site.open(Some(clock.clone())).await, site.open(Some(clock.clone())).await);
    let runs = Runs::default();
    let dead = Arc::new(AtomicBool::new(false));
    let dies = Arc::clone(&dead);
    let losing = Losing::new(first, move |operation| match operation {
        "complete_attempt" | "release_claims" if dies.load(Ordering::SeqCst) => Loss::Before,
        _ => Loss::None,
    });
    let hosted = [sending(&runs), COPY.host(sum)];
    let dying = hanging(losing).actors(hosted).build().unwrap();
    dying.start();
    let instance = SUM.of(&dying.session("s").unwrap());
    assert_eq!(instance.call(Number::Add(1), PATIENCE).await.unwrap(), 1);
    count(&second, "s", "a2.actor.state", 3).await;
    settled(&second).await;
    dead.store(true, Ordering::SeqCst);
    instance.tell(Number::Add(5)).id("m5").await.unwrap();
    until("the handler's end", || async { (runs.lock().unwrap().len() == 2).then_some(()) }).await;
    dying.shutdown(Duration::ZERO).await;
    clock.advance(Duration::from_secs(31));
    let heir = on(&second, &clock).actors([sending(&runs), COPY.host(sum)]).build().unwrap();
    heir.start();
    // The caller is another process too.
    let instance = SUM.of(&heir.session("s").unwrap());
    assert_eq!(instance.call(Number::Add(5), PATIENCE).id("m5").await.unwrap(), 6);
    check_second_run(&second, &heir, &runs).await;
    assert!(heir.shutdown(HOUR).await.finished);
}

pub(crate) async fn callers_elsewhere_hear_of_refusals_and_clears(site: &dyn Site) {
    let (first, second) = (site.open(None).await, site.open(None).await);
    let (told, mut begun) = mpsc::unbounded_channel();
    let hold = move |state: u64, number: Number, turn: Turn| {
        let told = told.clone();
        async move {
            if let Number::Later(_) = number {
                told.send(())?;
                turn.context().cancelled().await;
            }
            sum(state, number, turn).await
        }
    };
    let host = Runtime::builder(first).actors([SUM.host(hold)]).build().unwrap();
    host.start();
    let caller = Runtime::builder(second).build().unwrap();
    let session = caller.session("s").unwrap();
    let instance = SUM.of(&session);
    let refused = instance.call(Number::Add(0), PATIENCE).id("m0").await.unwrap_err();
    assert_eq!(refused.to_string(), "message m0 was refused: nothing to add");
    assert_eq!(instance.call(Number::Add(2), PATIENCE).await.unwrap(), 2);
    let waiting = tokio::spawn({
        let instance = instance.clone();
        async move { instance.call(Number::Later(1), PATIENCE).id("m1").await }
    });
    begun.recv().await.unwrap();
    let marker = session.clear().await.unwrap();
    let cleared = waiting.await.unwrap().unwrap_err();
    assert!(matches!(cleared, CallError::Cleared { clear_index } if clear_index == marker));
    assert_eq!(instance.state().await.unwrap(), 0);
    assert_eq!(instance.call(Number::Add(3), PATIENCE).id("m1").await.unwrap(), 3);
    assert!(host.shutdown(HOUR).await.finished);
}

pub(crate) async fn an_actors_timer_is_fired_once(site: &dyn Site) {
    let clock = manual();
    let mut runtimes = Vec::new();
    for _ in 0..2 {
        let store = site.open(Some(clock.clone())).await;
        let runtime = on(&store, &clock).actors([SUM.host(sum)]).build().unwrap();
        runtime.start();
        runtimes.push(runtime);
    }
    let session = runtimes[0].session("s").unwrap();
    assert_eq!(SUM.of(&session).call(Number::Later(5), PATIENCE).await.unwrap(), 0);
    until("the timer", || async { (session.timers().await.unwrap().len() == 1).then_some(()) })
        .await;
    // It is in the store before the process that set it knows when to look: time stands until then.
    for runtime in &runtimes {
        runtime.idle().await.unwrap();
    }
    clock.advance(HOUR);
    let store = site.open(Some(clock.clone())).await;
    count(&store, "s", "a2.actor.state", 2).await;
    for runtime in &runtimes {
        runtime.idle().await.unwrap();
    }
    count(&store, "s", "a2.actor.message", 2).await;
    assert_eq!(SUM.of(&session).state().await.unwrap(), 5);
    for runtime in runtimes {
        assert!(runtime.shutdown(HOUR).await.finished);
    }
}
