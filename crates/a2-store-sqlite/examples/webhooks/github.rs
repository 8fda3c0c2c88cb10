//! What GitHub sends, whom it is for, and how it comes in.

use std::collections::BTreeMap;

use a2_store_sqlite::{Append, EventId, EventType, Json, NewEvent, SessionId, Store as _, Target};
use anyhow::Result;
use serde::Deserialize;

use crate::{Db, handlers};

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
    /// An event for everybody who has to do with it. Its id makes sure that it is appended once.
    fn into_event(self) -> Result<NewEvent> {
        let mut targets = vec![Target::event(handlers::NOTIFY)?];
        if let Some((thread, _)) = self.payload.deserialize::<Payload>()?.thread() {
            targets.push(Target::lane(handlers::TRIAGE, thread)?);
        }
        Ok(NewEvent::from_json(self.event_type, self.payload)?.id(self.id)?.targets(targets))
    }
}

/// Appends every delivery to its repository's session. Done again, it finds them there.
pub(crate) async fn ingest(db: Db) -> Result<()> {
    let mut by_session = BTreeMap::<SessionId, Vec<NewEvent>>::new();
    for line in DELIVERIES.lines() {
        let delivery: Delivery = serde_json::from_str(line)?;
        by_session.entry(delivery.session.clone()).or_default().push(delivery.into_event()?);
    }
    for (session, events) in by_session {
        let (mut new, mut known) = (0, 0);
        for batch in events.chunks(BATCH) {
            let append = Append::new(batch.to_vec())?.served(handlers::served()?);
            let appended = db.append(&session, append).await?;
            *(if appended.replayed { &mut known } else { &mut new }) += batch.len();
        }
        eprintln!("ingest    {session}: {new} new deliveries, {known} were there already");
    }
    Ok(())
}
