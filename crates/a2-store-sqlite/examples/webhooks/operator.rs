//! What a person does: releases a fix and redrives the dead letters. All of it is recorded in a
//! session of its own, so that it outlasts a kill and can be read later.

use a2_store_sqlite::{
    Consumer, EventId, NewEvent, ReadRange, Redrive, RedriveAction, SessionId, Store as _,
    StoreExt as _,
};
use anyhow::Result;
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};

use crate::Db;
use crate::handlers::Release;

pub(crate) const OPERATIONS: &str = "operations";
pub(crate) const REDRIVEN: &str = "dead_letter.redriven";
const RELEASED: &str = "triage.released";

/// The payload of `dead_letter.redriven`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Redriven {
    pub(crate) repository: SessionId,
    pub(crate) consumer: Consumer,
    pub(crate) delivery: EventId,
    pub(crate) error: String,
    pub(crate) action: RedriveAction,
}

/// The `triage` to run: killed after the fix was released, the program must not fall back.
pub(crate) async fn current_release(db: &Db) -> Result<Release> {
    let log = db.read(&SessionId::new(OPERATIONS)?, ReadRange::default()).await?;
    let fixed = log.events.iter().any(|event| event.event_type == RELEASED);
    Ok(if fixed { Release::Fixed } else { Release::First })
}

/// Releases the fix if there are dead letters. The delivery that no release can handle is skipped,
/// the others are tried again.
pub(crate) async fn fix_and_redrive(db: &Db) -> Result<Release> {
    let sessions: Vec<_> = db.all_sessions().map_ok(|info| info.session).try_collect().await?;
    for session in sessions {
        for dead in db.all_dead_letters(&session).await? {
            let action = match dead.event.event_type.as_str() {
                "discussion.transferred" => RedriveAction::Skip,
                _ => RedriveAction::Retry,
            };
            let done = Redriven {
                repository: session.clone(),
                consumer: dead.head.consumer.clone(),
                delivery: dead.event.id.clone(),
                error: dead.state.last_error.unwrap_or_default(),
                action,
            };
            // Recorded before it is done: killed in between, the next run finds the dead letter as
            // it was, and by the ids that all of this was recorded already.
            record(db, "triage-2", RELEASED, "`state` may be missing").await?;
            record(db, &format!("{session}/{}", done.delivery), REDRIVEN, &done).await?;
            let _ = db.redrive(&session, Redrive::new(dead.head, action)).await?;
            eprintln!("operator  {session} {}: {action:?}", done.delivery);
        }
    }
    current_release(db).await
}

async fn record<P: Serialize>(db: &Db, id: &str, event_type: &str, payload: P) -> Result<()> {
    let event = NewEvent::new(event_type, &payload)?.id(id)?;
    let _ = db.append_one(&SessionId::new(OPERATIONS)?, event).await?;
    Ok(())
}
