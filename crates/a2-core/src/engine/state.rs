//! Snapshots of folded state.

use super::append::range_of;
use super::{HeadStatus, Tables};
use crate::outcome::{SnapshotsPut, StateRead};
use crate::request::{PutSnapshots, ReadState};
use crate::{Error, Index, ReducerName, Result, limits};

/// A reducer's newest snapshot and the events after it; see
/// [`Store::read_state`](crate::Store::read_state).
///
/// # Errors
/// `CORRUPT` when an index is missing.
pub fn read_state<T: Tables>(
    t: &mut T,
    reducer: &ReducerName,
    request: &ReadState,
) -> Result<StateRead> {
    let log = t.log_state()?;
    let latest = t.latest_snapshot(reducer)?;
    let snapshot = t.snapshot(reducer, request.snapshot_end())?;
    let after = snapshot.as_ref().map_or(Index::ZERO, |snapshot| snapshot.index);
    let through = request.end().min(log.head);
    let events = range_of(t, log, after, through, limits::READ_MAX)?;
    // Without an event the state reaches as far as was asked: there is nothing more to fold.
    let through_index = events.last().map_or(through, |last| last.index);
    Ok(StateRead::new(latest, snapshot, events, through_index, log.head, log.clear_index))
}

/// Keeps snapshots; see [`Store::put_snapshots`](crate::Store::put_snapshots).
///
/// # Errors
/// `INVALID_INPUT` for a snapshot above the log's head.
pub fn put_snapshots<T: Tables>(
    t: &mut T,
    reducer: &ReducerName,
    request: &PutSnapshots,
) -> Result<SnapshotsPut> {
    let log = t.log_state()?;
    for (i, write) in request.writes().iter().enumerate() {
        if write.index() > log.head {
            return Err(Error::invalid(
                format!("writes[{i}].index"),
                format!("must be at most the log's head, {}", log.head),
            ));
        }
    }
    let mut latest = t.latest_snapshot(reducer)?;
    let mut stored = Vec::new();
    for write in request.writes().iter().filter(|write| write.index() >= log.clear_index) {
        let index = write.index();
        for head in write.pinned_by().iter().filter(|head| head.index > log.clear_index) {
            if t.head(head)?.is_some_and(|row| row.status == HeadStatus::Live) {
                t.add_pin(head, reducer, index)?;
            }
        }
        if latest.is_some_and(|latest| index < latest) {
            if t.is_pinned(reducer, index)? {
                t.put_snapshot(reducer, index, write.state())?;
                stored.push(index);
            }
            continue;
        }
        t.put_snapshot(reducer, index, write.state())?;
        stored.push(index);
        if let Some(older) = latest.replace(index).filter(|older| *older != index)
            && !t.is_pinned(reducer, older)?
        {
            t.remove_snapshot(reducer, older)?;
            stored.retain(|kept| *kept != older);
        }
    }
    Ok(SnapshotsPut::new(stored, latest))
}
