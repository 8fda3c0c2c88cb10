//! What the tests of this crate share: an enum of events, stores with a clock that is moved by hand,
//! waiting for what happens.
#![allow(dead_code, reason = "every test file uses its part")]

pub(crate) mod watched;

use std::sync::Arc;
use std::time::Duration;

use a2_runtime::a2_core::*;
use a2_runtime::{Events, Runtime, RuntimeBuilder};
use a2_store_memory::MemoryStore;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    #[serde(rename = "order.placed")]
    Placed { item: String },
}
impl Events for Order {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Bill {
    #[serde(rename = "bill.sent")]
    Sent { item: String },
}
impl Events for Bill {}

pub(crate) fn placed(item: &str) -> Order {
    Order::Placed { item: item.to_owned() }
}

pub(crate) fn sent(item: &str) -> Bill {
    Bill::Sent { item: item.to_owned() }
}

/// The event with this id.
pub(crate) fn with_id(event: &impl Events, id: &str) -> NewEvent {
    event.encode().unwrap().id(id).unwrap()
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

/// How long a test waits for what must happen, on a machine however slow.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Waits until the session's log has the event at `index`.
pub(crate) async fn event_at(store: &dyn Store, name: &str, index: u64) -> Event {
    let session = session(name);
    until(&format!("event {index} of {name}"), || async {
        let range = ReadRange::after(Index::new(index - 1).unwrap()).limit(1).unwrap();
        store.read(&session, range).await.unwrap().events.into_iter().next()
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

/// The types of a session's events.
pub(crate) async fn types(store: &dyn Store, name: &str) -> Vec<String> {
    let events = store.read(&session(name), ReadRange::default()).await.unwrap().events;
    events.iter().map(|event| event.event_type.to_string()).collect()
}
