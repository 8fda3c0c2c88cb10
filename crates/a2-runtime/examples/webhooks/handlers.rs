//! What the consumers do with a delivery. What a handler returns is appended with its completion, under
//! ids that derive from the delivery's: a second run converges on the same events.

use std::time::Duration;

use a2_runtime::{
    Context, Events, Handled, NonRetriable, RawEvent, RetryPolicy, Runtime, RuntimeBuilder,
    concurrent, lane, log_runs,
};
use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::board::{self, BOARD, Thread};
use crate::github::{self, Payload};

pub(crate) const SUMMARY: &str = "summary";
/// A dead process' work is taken over after this.
const TTL: Duration = Duration::from_secs(1);
/// How many events one attempt of `summary` takes.
const RUN: usize = 16;

/// Which `triage` is running.
#[derive(Clone, Copy)]
pub(crate) enum Release {
    /// Takes it for granted that a delivery says which state its thread is in.
    First,
    /// Knows better.
    Fixed,
}

/// What the consumers add to the log.
#[derive(Serialize, Deserialize)]
pub(crate) enum Done {
    #[serde(rename = "notification.sent")]
    Notified { text: String },
    #[serde(rename = "thread.updated")]
    Triaged(Thread),
}
impl Events for Done {}

/// The consumers of this service.
pub(crate) fn runtime(builder: RuntimeBuilder, on: Release) -> Result<Runtime> {
    let notify = concurrent("notify", notify).types(github::types(|_| true));
    let triage = lane("triage", github::lane, move |delivery, cx| triage(on, delivery, cx))
        .types(github::types(github::has_thread));
    let summary = log_runs(SUMMARY, RUN, summary).types(board::TYPES.split(' ')).backfill();
    let retries = Duration::from_millis(40);
    let runtime = builder
        .consumer(notify)
        .consumer(triage)
        .consumer(summary)
        .retry(RetryPolicy::new().first(retries).longest(retries))
        .ttl(TTL)
        .sweep_every(TTL)
        .snapshot_every(RUN);
    Ok(runtime.build()?)
}

/// Tells people about a delivery.
async fn notify(delivery: RawEvent, cx: Context) -> Handled<Done> {
    let payload: Payload = delivery.payload.deserialize()?;
    let event_type = delivery.event_type;
    let mut text = format!("{}: {event_type} by {}", cx.session().id(), payload.sender.login);
    if let Some((_, subject)) = payload.thread() {
        text = format!("{text}: {} {}", subject.title, subject.html_url);
    }
    call_service("chat", &cx, '7').await?;
    Ok(Done::Notified { text })
}

/// Keeps a thread up to date; the lane makes this attempt its only writer.
async fn triage(on: Release, delivery: RawEvent, cx: Context) -> Handled<Done> {
    if delivery.event_type == "discussion.transferred" {
        Err(NonRetriable::new("it belongs to another repository now"))?;
    }
    let payload: Payload = delivery.payload.deserialize()?;
    let (name, subject) = payload.thread().context("it belongs to no thread")?;
    // At the log's end: what this lane returned so far lies above the delivery's own index.
    let mut board = cx.session().state(&BOARD).await?;
    let before = board.threads.remove(&name).unwrap_or_default();
    let state = match (&subject.state, on) {
        (Some(state), _) => state.clone(),
        (None, Release::First) => Err(NonRetriable::new("it has no `state`"))?,
        (None, Release::Fixed) => before.state,
    };
    call_service("tracker", &cx, '3').await?;
    let (title, deliveries) = (subject.title.clone(), before.deliveries + 1);
    Ok(Done::Triaged(Thread { name, title, state, deliveries }))
}

/// Sums a run of events up: the state is kept as snapshots.
async fn summary(_run: Vec<RawEvent>, cx: Context) -> Handled {
    let board = cx.state(&BOARD).await?;
    let events: u64 = board.counts.values().sum();
    eprintln!("summary   {}: {events} events through {}", cx.session().id(), cx.through());
    Ok(())
}

/// A service on the network: slow, and down at the first attempt on every tenth delivery.
async fn call_service(name: &str, cx: &Context, down_for: char) -> Result<()> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    let is_down = cx.attempt() == 1 && cx.event().id.as_str().ends_with(down_for);
    ensure!(!is_down, "the {name} service is down");
    Ok(())
}
