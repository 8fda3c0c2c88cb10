//! What GitHub sends, whom it is for, and how it comes in.

use std::collections::{BTreeMap, BTreeSet};

use a2_runtime::{RawEvent, Runtime};
use a2_store_sqlite::{EventId, EventType, Json, NewEvent, SessionId};
use anyhow::Result;
use serde::Deserialize;

const DELIVERIES: &str = include_str!("data/deliveries.jsonl");
/// How many deliveries are appended at once.
const BATCH: usize = 8;

/// One line of the file.
#[derive(Deserialize)]
struct Delivery {
    id: EventId,
    #[serde(rename = "type")]
    event_type: EventType,
    session: SessionId,
    payload: Json,
}

/// What this service reads of a payload; all of it is kept.
#[derive(Deserialize)]
pub(crate) struct Payload {
    pub(crate) sender: User,
    issue: Option<Subject>,
    pull_request: Option<Subject>,
    discussion: Option<Subject>,
    milestone: Option<Subject>,
}

#[derive(Deserialize)]
pub(crate) struct User {
    pub(crate) login: String,
}

/// What a thread is about.
#[derive(Deserialize)]
pub(crate) struct Subject {
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) html_url: String,
    /// Some deliveries do not say.
    pub(crate) state: Option<String>,
}

impl Payload {
    /// The thread that the delivery belongs to, if any, and its subject.
    pub(crate) fn thread(&self) -> Option<(String, &Subject)> {
        let kinds = [
            ("issue", &self.issue),
            ("pull request", &self.pull_request),
            ("discussion", &self.discussion),
            ("milestone", &self.milestone),
        ];
        let (kind, subject) = kinds.into_iter().find_map(|(k, s)| Some((k, s.as_ref()?)))?;
        Some((format!("{kind} {}", subject.number), subject))
    }
}

impl Delivery {
    fn all() -> impl Iterator<Item = serde_json::Result<Self>> {
        DELIVERIES.lines().map(serde_json::from_str)
    }
}

/// The types of deliveries that are sent to this service and that somebody wants.
pub(crate) fn types(wanted: fn(&EventType) -> bool) -> BTreeSet<EventType> {
    Delivery::all().flatten().map(|delivery| delivery.event_type).filter(wanted).collect()
}

/// Whether deliveries of this type belong to a thread.
pub(crate) fn has_thread(event_type: &EventType) -> bool {
    let kind = event_type.as_str().split('.').next().unwrap_or_default();
    ["issues", "issue_comment", "discussion", "discussion_comment", "milestone"].contains(&kind)
}

/// The queue of a delivery's thread.
pub(crate) fn lane(delivery: &RawEvent) -> String {
    let payload = delivery.payload.deserialize::<Payload>().ok();
    let thread = payload.as_ref().and_then(Payload::thread);
    thread.map_or("none".to_owned(), |(name, _)| name)
}

/// Appends every delivery to its repository's session. Done again, it finds them there by their ids.
pub(crate) async fn ingest(runtime: &Runtime) -> Result<()> {
    let mut by_session = BTreeMap::<SessionId, Vec<NewEvent>>::new();
    for delivery in Delivery::all() {
        let Delivery { id, event_type, session, payload } = delivery?;
        let event = NewEvent::from_json(event_type, payload)?.id(id)?;
        by_session.entry(session).or_default().push(event);
    }
    for (session, events) in by_session {
        let (mut new, mut known) = (0, 0);
        let repository = runtime.session(session)?;
        for batch in events.chunks(BATCH) {
            let appended = repository.append(batch.to_vec()).await?;
            *(if appended.replayed { &mut known } else { &mut new }) += batch.len();
        }
        let name = repository.id();
        eprintln!("ingest    {name}: {new} new deliveries, {known} were there already");
    }
    Ok(())
}
