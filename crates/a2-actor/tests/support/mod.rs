//! What the tests of this crate share: a list that grows, stores with a clock that is moved by hand,
//! waiting for what happens.
#![allow(dead_code, reason = "every test file uses its part")]

use std::sync::Arc;
use std::time::Duration;

use a2_actor::{Actor, Concurrent, Turn, actor};
use a2_core::*;
use a2_runtime::{Events, Handled, NonRetriable, Runtime, RuntimeBuilder};
use a2_store_memory::MemoryStore;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Change {
    #[serde(rename = "add")]
    Add(String),
    #[serde(rename = "look")]
    Look,
}
impl Events for Change {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Ask {
    #[serde(rename = "shout")]
    Shout(String),
}
impl Events for Ask {}

pub(crate) type Items = Vec<String>;

pub(crate) const LIST: Actor<Items, Change> = actor("list");
pub(crate) const ASK: Concurrent<Ask, String> = LIST.concurrent();

/// Long enough for whatever must happen, on a machine however slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn add(item: &str) -> Change {
    Change::Add(item.to_owned())
}

pub(crate) fn shout(text: &str) -> Ask {
    Ask::Shout(text.to_owned())
}

/// Adds what it is told to; refuses what is empty.
pub(crate) async fn change(mut items: Items, change: Change, _: Turn) -> Handled<Items> {
    match change {
        Change::Add(item) if item.is_empty() => Err(NonRetriable::new("nothing to add"))?,
        Change::Add(item) => items.push(item),
        Change::Look => {}
    }
    Ok(items)
}

/// A store and a builder on it that go by the same clock.
pub(crate) fn by_hand() -> (ManualClock, MemoryStore, RuntimeBuilder) {
    let clock = ManualClock::at(Timestamp::from_millis(1_000_000));
    let store = MemoryStore::builder().clock(Arc::new(clock.clone())).build();
    let builder = Runtime::builder(store.clone()).clock(Arc::new(clock.clone()));
    (clock, store, builder)
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// Waits until `look` finds something.
pub(crate) async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

pub(crate) async fn log(store: &dyn Store, name: &str) -> Vec<Event> {
    let range = ReadRange::default().limit(10_000).unwrap();
    store.read(&session(name), range).await.unwrap().events
}

/// The types of a session's events.
pub(crate) async fn types(store: &dyn Store, name: &str) -> Vec<String> {
    log(store, name).await.iter().map(|event| event.event_type.to_string()).collect()
}

/// Waits until the session has `n` events of a type, and answers the last.
pub(crate) async fn nth(store: &dyn Store, name: &str, event_type: &str, n: usize) -> Event {
    until(&format!("{n} {event_type} in {name}"), || async {
        let log = log(store, name).await;
        log.into_iter().filter(|event| event.event_type == event_type).nth(n - 1)
    })
    .await
}

/// Waits until the session has `n` dead letters.
pub(crate) async fn dead_letters(store: &dyn Store, name: &str, n: usize) -> Vec<DispatchedHead> {
    let session = session(name);
    until(&format!("{n} dead letters of {name}"), || async {
        let dead = store.all_dead_letters(&session).await.unwrap();
        (dead.len() == n).then_some(dead)
    })
    .await
}

/// Waits until nothing is left to be done in any session.
pub(crate) async fn settled(store: &dyn Store) {
    until("everything to be done", || async {
        let pending = store.pending(PendingPage::new(Served::ALL)).await.unwrap();
        (pending.sessions.is_empty() && pending.next.is_none()).then_some(())
    })
    .await;
}
