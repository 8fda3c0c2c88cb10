//! The event store of `cqrs-es` on SQLite, at its repository: its framework would load the whole
//! stream before each append.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Result;
use cqrs_es::event_sink::EventSink;
use cqrs_es::persist::{PersistedEventRepository, SerializedEvent};
use cqrs_es::{Aggregate, DomainEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlite_es::SqliteEventRepository;
use sqlx_08::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};

use crate::{Cx, EVENTS, appends, reads};

/// The table that the crate's documentation asks for.
const SCHEMA: &str = "CREATE TABLE events (
    aggregate_type TEXT NOT NULL, aggregate_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 0),
    event_type TEXT NOT NULL, event_version TEXT NOT NULL,
    payload TEXT NOT NULL, metadata TEXT NOT NULL,
    PRIMARY KEY (aggregate_type, aggregate_id, sequence)
) STRICT";

/// Names the type of the streams; it never handles anything.
#[derive(Default, Serialize, Deserialize)]
struct Order;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Placed;

impl DomainEvent for Placed {
    fn event_type(&self) -> String {
        "order.placed".to_owned()
    }

    fn event_version(&self) -> String {
        "1".to_owned()
    }
}

impl Aggregate for Order {
    const TYPE: &'static str = "order";
    type Command = ();
    type Event = Placed;
    type Error = Infallible;
    type Services = ();

    async fn handle(&mut self, (): (), (): &(), _: &EventSink<Self>) -> Result<(), Infallible> {
        Ok(())
    }

    fn apply(&mut self, _: Placed) {}
}

/// Append one event with the sequence that the caller knows.
pub(crate) async fn append(cx: &Cx, callers: usize) -> Result<f64> {
    // What was fastest: with more, writers wait for each other by SQLite's timed retries.
    let connections = if callers == 1 { 1 } else { 4 };
    let store = Arc::new(open(cx, connections).await?);
    let payload: Value = serde_json::from_str(&cx.payload)?;
    appends(cx.time, callers, move |stream, events| {
        let (store, event) = (Arc::clone(&store), event(stream, events + 1, &payload));
        async move { Ok(store.persist::<Order>(&[event], None).await?) }
    })
    .await
}

/// Read one stream; the events stay JSON.
pub(crate) async fn read(cx: &Cx) -> Result<f64> {
    let store = open(cx, 1).await?;
    let payload: Value = serde_json::from_str(&cx.payload)?;
    let events: Vec<_> = (1..=EVENTS).map(|sequence| event(0, sequence, &payload)).collect();
    store.persist::<Order>(&events, None).await?;
    reads(cx.time, async || {
        let events = store.get_events::<Order>("session-0").await?;
        Ok(std::hint::black_box(events).len())
    })
    .await
}

fn event(stream: usize, sequence: usize, payload: &Value) -> SerializedEvent {
    SerializedEvent {
        aggregate_id: format!("session-{stream}"),
        sequence,
        aggregate_type: Order::TYPE.to_owned(),
        event_type: Placed.event_type(),
        event_version: Placed.event_version(),
        payload: payload.clone(),
        metadata: json!({}),
    }
}

async fn open(cx: &Cx, connections: u32) -> Result<SqliteEventRepository> {
    let options = SqliteConnectOptions::new()
        .filename(&cx.file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let pool = SqlitePoolOptions::new().max_connections(connections).connect_with(options).await?;
    sqlx_08::query(SCHEMA).execute(&pool).await?;
    Ok(SqliteEventRepository::new(pool))
}
