//! What a person does: releases a fix and redrives the dead letters. All of it is recorded in a
//! session of its own, so that it outlasts a kill and can be read later.

use a2_runtime::{Events, Runtime};
use a2_store_sqlite::{Consumer, EventId, ReadRange, RedriveAction, SessionId, StoreExt as _};
use anyhow::Result;
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};

use crate::handlers::Release;

pub(crate) const OPERATIONS: &str = "operations";

/// What is recorded.
#[derive(Serialize, Deserialize)]
pub(crate) enum Operation {
    #[serde(rename = "triage.released")]
    Released(String),
    #[serde(rename = "dead_letter.redriven")]
    Redriven(Redriven),
}
impl Events for Operation {}

#[derive(Serialize, Deserialize)]
pub(crate) struct Redriven {
    pub(crate) repository: SessionId,
    pub(crate) consumer: Consumer,
    pub(crate) delivery: EventId,
    pub(crate) error: String,
    pub(crate) action: RedriveAction,
}

/// The `triage` to run: killed after the fix was released, the program must not fall back.
pub(crate) async fn current_release(desk: &Runtime) -> Result<Release> {
    let log = desk.session(OPERATIONS)?.read(ReadRange::default()).await?;
    let fixed = log.events.iter().any(|event| event.event_type == "triage.released");
    Ok(if fixed { Release::Fixed } else { Release::First })
}

/// Releases the fix if there are dead letters. The delivery that no release can handle is skipped,
/// the others are tried again.
pub(crate) async fn fix_and_redrive(desk: &Runtime) -> Result<Release> {
    let sessions: Vec<_> = desk.store().all_sessions().try_collect().await?;
    for repository in sessions.into_iter().map(|info| info.session) {
        let session = desk.session(repository.clone())?;
        for dead in session.dead_letters().await? {
            let skips = dead.event.event_type == "discussion.transferred";
            let action = if skips { RedriveAction::Skip } else { RedriveAction::Retry };
            let done = Redriven {
                repository: repository.clone(),
                consumer: dead.head.consumer.clone(),
                delivery: dead.event.id.clone(),
                error: dead.state.last_error.unwrap_or_default(),
                action,
            };
            eprintln!("operator  {repository} {}: {action:?}", done.delivery);
            // Recorded before it is done: killed in between, the next run finds the dead letter as
            // it was, and by the ids that all of this was recorded already.
            let note = "`state` may be missing".to_owned();
            record(desk, "triage-2", &Operation::Released(note)).await?;
            let id = format!("{repository}/{}", done.delivery);
            record(desk, &id, &Operation::Redriven(done)).await?;
            if skips {
                session.skip(&dead.head).await?;
            } else {
                session.retry(&dead.head).await?;
            }
        }
    }
    current_release(desk).await
}

async fn record(desk: &Runtime, id: &str, operation: &Operation) -> Result<()> {
    desk.session(OPERATIONS)?.append(operation.encode()?.id(id)?).await?;
    Ok(())
}
