//! Dead letters.

use super::append::{event_at, has_pending};
use super::attempt::{Place, finish, place};
use super::{DoneRecord, HeadStatus, Tables};
use crate::outcome::{DeadLetters, Redriven};
use crate::request::{Page, PageToken, Redrive, RedriveAction};
use crate::{DispatchedHead, HeadRef, Result, Timestamp, limits};

const KIND: &str = "dead_letters";

/// A page of dead letters; see [`Store::dead_letters`](crate::Store::dead_letters).
///
/// # Errors
/// `INVALID_INPUT` for a foreign token.
pub fn dead_letters<T: Tables>(t: &mut T, page: &Page) -> Result<DeadLetters> {
    let after: Option<HeadRef> = page.token().map(|token| token.decode(KIND)).transpose()?;
    // One more than asked tells whether there is a next page.
    let mut found = t.dead_heads(after.as_ref(), page.max_entries() + 1)?;
    let mut cut = found.len() > page.max_entries();
    found.truncate(page.max_entries());
    let mut heads = Vec::with_capacity(found.len());
    let mut bytes = 0;
    let mut found = found.into_iter();
    while let Some(at) = found.next() {
        let Some(row) = t.head(&at)? else { continue };
        let event = event_at(t, at.index)?;
        bytes += event.payload.byte_len();
        heads.push(DispatchedHead::new(at, event, row.state));
        if bytes > limits::READ_BYTES {
            cut |= found.len() > 0;
            break;
        }
    }
    let next = heads.last().filter(|_| cut).map(|last| PageToken::encode(KIND, &last.head));
    Ok(DeadLetters::new(heads, next))
}

/// Redrives a dead letter; see [`Store::redrive`](crate::Store::redrive).
///
/// # Errors
/// What the tables fail with.
pub fn redrive<T: Tables>(t: &mut T, now: Timestamp, request: &Redrive) -> Result<Redriven> {
    let log = t.log_state()?;
    let at = request.head();
    let served = request.served_list();
    let row = match place(t, log, at)? {
        Place::Row(row) if row.status == HeadStatus::Dead => row,
        _ => return Ok(Redriven::new(false, has_pending(t, served)?)),
    };
    match request.action() {
        RedriveAction::Retry => {
            let mut after = row.clone();
            after.status = HeadStatus::Live;
            after.state.failed_at = None;
            after.state.failure_count = 0;
            t.update_head(at, &row, &after)?;
        }
        RedriveAction::Skip => {
            let done = DoneRecord { attempt: None, at: now, returned_after: log.head, returned: 0 };
            finish(t, log, at, &row, done, at.index, served, |_, _| Ok(Vec::new()))?;
        }
    }
    Ok(Redriven::new(true, has_pending(t, served)?))
}
