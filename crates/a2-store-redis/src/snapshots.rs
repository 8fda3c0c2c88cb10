//! Snapshots of folded state.

use a2_core::outcome::Snapshot;
use a2_core::{
    Error, Index, Json, PutSnapshots, ReadState, ReducerName, Result, SnapshotsPut, StateRead,
};

use crate::args::Args;
use crate::error::Place;
use crate::reply::Reply;
use crate::script;
use crate::verbs::{At, check_dense};

/// Keeps snapshots.
pub(crate) async fn put(
    at: At<'_>,
    reducer: &ReducerName,
    put: &PutSnapshots,
) -> Result<SnapshotsPut> {
    let place = Place::write("put_snapshots", at.session);
    let mut args = Args::default();
    args.push(reducer.as_str());
    args.count(put.writes().len());
    for write in put.writes() {
        args.index(write.index());
        args.push(write.state().as_str());
        args.count(write.pinned_by().len());
        for head in write.pinned_by() {
            args.head(head);
        }
    }
    let frame = at.run(place, &script::PUT_SNAPSHOTS, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "put" => {
            let stored = reply.list(2)?;
            let stored = (0..stored.len()).map(|at| stored.index(at)).collect::<Result<_>>()?;
            Ok(SnapshotsPut::new(stored, reply.optional_index(1)?))
        }
        "above_head" => {
            let (number, head) = (reply.count(1)?.saturating_sub(1), reply.index(2)?);
            Err(Error::invalid(
                format!("writes[{number}].index"),
                format!("must be at most the log's head, {head}"),
            ))
        }
        status => Err(reply.refusal(status)),
    }
}

/// A reducer's newest snapshot and the events after it.
pub(crate) async fn read(at: At<'_>, reducer: &ReducerName, read: &ReadState) -> Result<StateRead> {
    let place = Place::read("read_state", at.session);
    let mut args = Args::default();
    args.push(reducer.as_str());
    args.index(read.end());
    args.index(read.snapshot_end());
    let frame = at.run(place, &script::READ_STATE, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "state" => {
            let (head, clear_index) = (reply.index(1)?, reply.index(2)?);
            let snapshot = match reply.optional_index(4)? {
                Some(index) => Some(Snapshot::new(index, Json::from_stored(reply.text(5)?))),
                None => None,
            };
            let events = reply.list(6)?.events(at.session)?;
            check_dense(&events, place)?;
            // Without an event the state reaches as far as was asked: there is nothing more to fold.
            let through = events.last().map_or(read.end().min(head), |last| last.index);
            let latest = reply.optional_index(3)?;
            Ok(StateRead::new(latest, snapshot, events, through, head, clear_index))
        }
        status => Err(reply.refusal(status)),
    }
}

impl Reply<'_> {
    /// An index, or none where there is nothing.
    fn optional_index(&self, at: usize) -> Result<Option<Index>> {
        if self.is_nothing(at)? { Ok(None) } else { self.index(at).map(Some) }
    }
}
