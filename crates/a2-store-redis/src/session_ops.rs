//! What is done with a session as a whole, or with one cursor of it.

use a2_core::outcome::{Reclaimed, Redriven, WokenLog};
use a2_core::request::RedriveAction;
use a2_core::{Clear, Cleared, Cursor, CursorKey, Index, Redrive, Result, WakeLog};

use crate::args::Args;
use crate::batch::Batch;
use crate::error::Place;
use crate::reply::Reply;
use crate::script;
use crate::verbs::At;

/// Redrives a dead letter.
pub(crate) async fn redrive(at: At<'_>, redrive: &Redrive) -> Result<Redriven> {
    let place = Place::write("redrive", at.session);
    let mut args = Args::default();
    let batch = Batch::of(&[], redrive.served_list(), Some(redrive.head()), None);
    batch.write(&mut args, 2, |args| {
        args.head(redrive.head());
        args.flag(redrive.action() == RedriveAction::Skip);
    });
    let frame = at.run(place, &script::REDRIVE, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        status @ ("redriven" | "not_dead") => {
            Ok(Redriven::new(status == "redriven", reply.flag(1)?))
        }
        status => Err(reply.refusal(status)),
    }
}

/// Brings one log cursor up to date.
pub(crate) async fn wake_log(at: At<'_>, wake: &WakeLog) -> Result<WokenLog> {
    let place = Place::write("wake_log", at.session);
    let (consumer, log) = (wake.consumer(), wake.declaration());
    let mut args = Args::default();
    args.push(consumer.as_str());
    args.push(log.name().as_str());
    args.flag(log.is_backfill());
    args.types(log.log_types());
    let frame = at.run(place, &script::WAKE_LOG, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "woken" => {
            let (head, state) = reply.cursor_head(4)?;
            let key = CursorKey::Log(log.name().clone());
            let cursor = Cursor::new(consumer.clone(), key, reply.index(3)?, head, state);
            Ok(WokenLog::new(cursor, reply.index(1)?, reply.index(2)?))
        }
        status => Err(reply.refusal(status)),
    }
}

/// Starts a new lifetime.
pub(crate) async fn clear(at: At<'_>, clear: &Clear) -> Result<Cleared> {
    let place = Place::write("clear", at.session);
    let mut args = Args::default();
    args.push(clear.marker_id().as_str());
    args.optional(clear.last_index().map(Index::get));
    args.cause(clear.clear_cause());
    let frame = at.run(place, &script::CLEAR, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        status @ ("cleared" | "already" | "not_last") => {
            Ok(Cleared::new(status != "not_last", reply.index(1)?, reply.index(2)?))
        }
        status => Err(reply.refusal(status)),
    }
}

/// Deletes some of what lies below the marker.
pub(crate) async fn reclaim(at: At<'_>) -> Result<Reclaimed> {
    let place = Place::write("reclaim", at.session);
    let frame = at.run(place, &script::RECLAIM, Args::default()).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "reclaimed" => Ok(Reclaimed::new(reply.count(1)?, reply.flag(2)?)),
        status => Err(reply.refusal(status)),
    }
}
