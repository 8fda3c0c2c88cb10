//! What the consumers do with an event. A handler returns the events to append with its completion,
//! under ids that derive from the delivery's: a second run converges on the same events.

use std::time::Duration;

use a2_store_sqlite::{
    DispatchedHead, Index, Json, LogDeclaration, NewEvent, PutSnapshots, Served, ServedConsumer,
    SnapshotWrite, Store as _,
};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use crate::Db;
use crate::board::{self, Board, THREAD_UPDATED, Thread};
use crate::github::Payload;

pub(crate) const NOTIFY: &str = "notify";
pub(crate) const TRIAGE: &str = "triage";
pub(crate) const SUMMARY: &str = "summary";

/// Which `triage` is running.
#[derive(Clone, Copy)]
pub(crate) enum Release {
    /// Takes it for granted that a delivery says which state its thread is in.
    First,
    /// Knows better.
    Fixed,
}

/// The consumers of this service. Appends name them too, so that the log cursor moves with them.
pub(crate) fn served() -> a2_store_sqlite::Result<Served> {
    let activity = LogDeclaration::new("activity")?.types(board::types()?).backfill();
    Served::only([
        ServedConsumer::new(NOTIFY)?,
        ServedConsumer::new(TRIAGE)?,
        ServedConsumer::new(SUMMARY)?.log(activity),
    ])
}

pub(crate) async fn handle(db: &Db, on: Release, head: &DispatchedHead) -> Result<Vec<NewEvent>> {
    match head.head.consumer.as_str() {
        NOTIFY => notify(head).await,
        TRIAGE => triage(db, on, head).await,
        SUMMARY => summary(db, head).await,
        other => bail!("there is no handler for {other}"),
    }
}

/// Tells people about a delivery.
async fn notify(head: &DispatchedHead) -> Result<Vec<NewEvent>> {
    let event = &head.event;
    let payload: Payload = event.payload.deserialize()?;
    let mut text = format!("{}: {} by {}", event.session, event.event_type, payload.sender.login);
    if let Some((_, subject)) = payload.thread() {
        text = format!("{text}: {} {}", subject.title, subject.html_url);
    }
    call_service("chat", head, '7').await?;
    let sent = NewEvent::new("notification.sent", &json!({ "text": text }))?;
    Ok(vec![sent.id(format!("{}/notified", event.id))?])
}

/// Keeps a thread up to date; the lane makes this attempt its only writer.
async fn triage(db: &Db, on: Release, head: &DispatchedHead) -> Result<Vec<NewEvent>> {
    let event = &head.event;
    ensure!(event.event_type != "discussion.transferred", "it belongs to another repository now");
    let payload: Payload = event.payload.deserialize()?;
    let (name, subject) = payload.thread().context("it belongs to no thread")?;
    // Read at the log's end: what this lane returned so far lies above the event's own index.
    let mut board = Board::read(db, &event.session, Index::MAX).await?;
    let before = board.threads.remove(&name).unwrap_or_default();
    let state = match (&subject.state, on) {
        (Some(state), _) => state.clone(),
        (None, Release::First) => bail!("it has no `state`"),
        (None, Release::Fixed) => before.state,
    };
    call_service("tracker", head, '3').await?;
    let (title, deliveries) = (subject.title.clone(), before.deliveries + 1);
    let updated = NewEvent::new(THREAD_UPDATED, &Thread { name, title, state, deliveries })?;
    Ok(vec![updated.id(format!("{}/triaged", event.id))?])
}

/// Folds a run of events into the board.
async fn summary(db: &Db, head: &DispatchedHead) -> Result<Vec<NewEvent>> {
    let (session, before) = (&head.event.session, head.head.index.previous());
    let mut board = Board::read(db, session, before).await?;
    let mut writes = Vec::new();
    if before > Index::ZERO {
        // Kept for as long as this head is live: should this attempt die after its snapshot was
        // written, the next one cannot start from that, but from this one.
        let start = SnapshotWrite::new(before, Json::from_serialize(&board)?);
        writes.push(start.pins([head.head.clone()])?);
    }
    for event in std::iter::once(&head.event).chain(&head.run) {
        board.apply(event)?;
    }
    writes.push(SnapshotWrite::new(head.run_through(), Json::from_serialize(&board)?));
    let _ = db.put_snapshots(session, &board::reducer()?, PutSnapshots::new(writes)?).await?;
    Ok(Vec::new())
}

/// A service on the network: slow, and down at the first attempt on every tenth delivery.
async fn call_service(name: &str, head: &DispatchedHead, down_for: char) -> Result<()> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    let is_down = head.attempt() == 1 && head.event.id.as_str().ends_with(down_for);
    ensure!(!is_down, "the {name} service is down");
    Ok(())
}
