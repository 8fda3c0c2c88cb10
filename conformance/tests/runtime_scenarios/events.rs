//! The events of the scenarios, and what is looked for in a log.

use a2_core::{
    DispatchedHead, Event, Index, PendingPage, ReadRange, Served, SessionId, Store, StoreExt,
};
use a2_runtime::Events;
use serde::{Deserialize, Serialize};

use super::until;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    #[serde(rename = "order.placed")]
    Placed { item: String, number: u64 },
}
impl Events for Order {}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Done {
    #[serde(rename = "order.billed")]
    Billed(u64),
    #[serde(rename = "order.packed")]
    Packed(String, u64),
}
impl Events for Done {}

pub(crate) fn placed(item: &str, number: u64) -> Order {
    Order::Placed { item: item.to_owned(), number }
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) async fn log(store: &dyn Store, name: &str) -> Vec<Event> {
    let range = ReadRange::default().limit(10_000).unwrap();
    store.read(&session(name), range).await.unwrap().events
}

/// The payloads of a type's events, in order.
pub(crate) fn of_type<T: serde::de::DeserializeOwned>(log: &[Event], event_type: &str) -> Vec<T> {
    let events = log.iter().filter(|event| event.event_type == event_type);
    events.map(|event| event.payload.deserialize().unwrap()).collect()
}

/// Waits until the session has `n` events of a type.
pub(crate) async fn count(store: &dyn Store, name: &str, event_type: &str, n: usize) -> Vec<Event> {
    until(&format!("{n} {event_type} in {name}"), || async {
        let log = log(store, name).await;
        let found = log.iter().filter(|event| event.event_type == event_type).count();
        assert!(found <= n, "{found} {event_type} in {name} instead of {n}");
        (found == n).then_some(log)
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

pub(crate) async fn dead_letters(store: &dyn Store, name: &str) -> Vec<DispatchedHead> {
    store.all_dead_letters(&session(name)).await.unwrap()
}

/// Waits until the head of the session's first cursor has failed `n` times and nobody holds it.
pub(crate) async fn failed(store: &dyn Store, name: &str, n: u64) {
    until(&format!("failure {n} in {name}"), || async {
        let cursors = store.all_cursors(&session(name)).await.unwrap();
        let state = &cursors.first()?.state;
        (state.failure_count == n && state.claim_holder.is_none()).then_some(())
    })
    .await;
}

pub(crate) fn indexes(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| Index::get(event.index)).collect()
}
