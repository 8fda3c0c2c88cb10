//! What a worker does with its attempts.

use super::append::{commit, event_at, has_pending, owners, partial};
use super::claim::{claim_available, types_of};
use super::logs::advance;
use super::{DoneRecord, HeadRow, HeadStatus, LogRow, LogState, Tables};
use crate::outcome::{Appended, Completion, Failure, Released, Renewal, WithClaim};
use crate::request::{AttemptRef, CompleteAttempt, FailAttempt, ReleaseClaims, RenewClaims};
use crate::{
    Cause, ClaimAvailable, CursorKey, Error, ErrorKind, Event, HeadRef, Holder, Index, NewEvent,
    Result, Served, Timestamp,
};

/// What there is at the place a head is said to be.
pub(super) enum Place {
    /// At or below the clear.
    Cleared,
    /// Above the log's head.
    Beyond,
    /// Finished, and it is remembered how.
    Done(DoneRecord),
    /// A log cursor has passed it, and how is forgotten.
    Passed,
    /// Its row.
    Row(HeadRow),
    /// No such head.
    Unknown,
}

pub(super) fn place<T: Tables>(t: &mut T, log: LogState, at: &HeadRef) -> Result<Place> {
    if at.index <= log.clear_index {
        return Ok(Place::Cleared);
    }
    if at.index > log.head {
        return Ok(Place::Beyond);
    }
    if let CursorKey::Log(name) = &at.cursor {
        let Some(row) = t.log(&at.consumer, name)? else { return Ok(Place::Unknown) };
        if at.index <= row.position {
            return Ok(match row.last {
                Some((index, done)) if index == at.index => Place::Done(done),
                _ => Place::Passed,
            });
        }
    }
    Ok(match t.head(at)? {
        None => Place::Unknown,
        Some(row) => match row.done {
            Some(done) => Place::Done(done),
            None => Place::Row(row),
        },
    })
}

/// Makes leases last; see [`Store::renew_claims`](crate::Store::renew_claims).
///
/// # Errors
/// What the tables fail with.
pub fn renew_claims<T: Tables>(
    t: &mut T,
    now: Timestamp,
    request: &RenewClaims,
) -> Result<Renewal> {
    let log = t.log_state()?;
    let (mut renewed, mut superseded) = (Vec::new(), Vec::new());
    for claim in request.claims() {
        match place(t, log, &claim.head)? {
            Place::Cleared | Place::Done(_) | Place::Passed => superseded.push(claim.clone()),
            Place::Row(row) if row.state.attempt_count > claim.attempt => {
                superseded.push(claim.clone());
            }
            Place::Row(row) if is_held(&row, claim, request.holder()) && row.state.is_busy(now) => {
                let mut after = row.clone();
                after.state.claim_expires_at = Some(now.after(request.ttl()));
                t.update_head(&claim.head, &row, &after)?;
                renewed.push(claim.clone());
            }
            Place::Beyond | Place::Row(_) | Place::Unknown => {}
        }
    }
    Ok(Renewal::new(renewed, superseded))
}

/// Gives claims back; see [`Store::release_claims`](crate::Store::release_claims).
///
/// # Errors
/// What the tables fail with.
pub fn release_claims<T: Tables>(t: &mut T, request: &ReleaseClaims) -> Result<Released> {
    let log = t.log_state()?;
    let mut released = Vec::new();
    for claim in request.claims() {
        if let Place::Row(row) = place(t, log, &claim.head)?
            && is_held(&row, claim, request.holder())
        {
            let mut after = row.clone();
            after.state.claim_holder = None;
            after.state.claim_expires_at = None;
            t.update_head(&claim.head, &row, &after)?;
            released.push(claim.clone());
        }
    }
    Ok(Released::new(released))
}

/// Whether the claim is the row's current attempt and this holder's.
fn is_held(row: &HeadRow, claim: &AttemptRef, holder: &Holder) -> bool {
    row.status == HeadStatus::Live
        && row.state.is_current(claim.attempt)
        && row.state.claim_holder.as_ref() == Some(holder)
}

/// Completes an attempt; see [`Store::complete_attempt`](crate::Store::complete_attempt).
///
/// # Errors
/// As there.
pub fn complete_attempt<T: Tables>(
    t: &mut T,
    now: Timestamp,
    request: &CompleteAttempt,
) -> Result<WithClaim<Completion>> {
    let outcome = complete(t, now, request)?;
    then_claim(t, now, outcome, request.next_claim())
}

fn then_claim<T: Tables, O>(
    t: &mut T,
    now: Timestamp,
    outcome: O,
    request: Option<&ClaimAvailable>,
) -> Result<WithClaim<O>> {
    let claim = request.map(|request| claim_available(t, now, request)).transpose()?;
    Ok(WithClaim::new(outcome, claim))
}

fn complete<T: Tables>(t: &mut T, now: Timestamp, request: &CompleteAttempt) -> Result<Completion> {
    let log = t.log_state()?;
    let at = request.head();
    let row = match place(t, log, at)? {
        Place::Beyond => return Err(not_found(t, at.index)),
        Place::Done(done) if done.attempt == Some(request.attempt()) => {
            return repeat(t, done, request).map(Completion::Completed);
        }
        Place::Row(row)
            if row.status == HeadStatus::Live && row.state.is_current(request.attempt()) =>
        {
            row
        }
        Place::Cleared | Place::Done(_) | Place::Passed | Place::Row(_) | Place::Unknown => {
            return Ok(Completion::Superseded);
        }
    };
    if request.end().is_some_and(|through| through > log.head) {
        return Err(Error::invalid("through", "must be at most the log's head"));
    }
    let owned = owners(t, request.returned())?;
    if !owned.is_empty() {
        return Err(partial(owned));
    }
    log.head.plus(request.returned().len() as u64)?;
    let done = DoneRecord {
        attempt: Some(request.attempt()),
        at: now,
        returned_after: log.head,
        returned: request.returned().len() as u64,
    };
    let through = request.end().unwrap_or(at.index);
    let stored = finish(t, log, at, &row, done, through, request.served_list(), |t, moved| {
        if request.returned().is_empty() {
            return Ok(Vec::new());
        }
        let cause = Cause::new(at.clone(), request.attempt());
        commit(t, now, log, request.returned(), Some(&cause), request.served_list(), moved)
    })?;
    let has_pending = has_pending(t, request.served_list())?;
    Ok(Completion::Completed(Appended::new(stored, has_pending, false)))
}

/// The answer of a completion that was done already.
fn repeat<T: Tables>(t: &mut T, done: DoneRecord, request: &CompleteAttempt) -> Result<Appended> {
    let same = done.returned == request.returned().len() as u64;
    let mut stored: Vec<Event> = Vec::new();
    let mut index = done.returned_after;
    for id in request.returned().iter().filter_map(NewEvent::event_id).take_while(|_| same) {
        index = index.next();
        let event = event_at(t, index)?;
        if event.id != *id {
            break;
        }
        stored.push(event);
    }
    if !same || stored.len() < request.returned().len() {
        return Err(partial(owners(t, request.returned())?));
    }
    Ok(Appended::new(stored, has_pending(t, request.served_list())?, true))
}

/// Finishes a head: it is recorded as done, its pins are released, `append` stores what it returns,
/// and its cursor moves on.
#[allow(clippy::too_many_arguments)]
pub(super) fn finish<T: Tables>(
    t: &mut T,
    log: LogState,
    at: &HeadRef,
    row: &HeadRow,
    done: DoneRecord,
    through: Index,
    served: &Served,
    append: impl FnOnce(&mut T, Option<(&crate::Consumer, &crate::LogName)>) -> Result<Vec<Event>>,
) -> Result<Vec<Event>> {
    release_pins(t, at)?;
    if let CursorKey::Log(name) = &at.cursor {
        let types = types_of(t, log, served, &at.consumer, name)?;
        t.remove_head(at, row)?;
        let stored = append(t, Some((&at.consumer, name)))?;
        let last = done.attempt.map(|_| (at.index, done));
        let moved = LogRow { position: through, head: None, types, last };
        advance(t, &at.consumer, name, moved, through)?;
        return Ok(stored);
    }
    let mut after = row.clone();
    after.status = HeadStatus::Done;
    after.state.claim_holder = None;
    after.state.claim_expires_at = None;
    after.state.failed_at = None;
    after.done = Some(done);
    t.update_head(at, row, &after)?;
    if let CursorKey::Lane(lane) = &at.cursor
        && let Some(next) = t.lane_next(&at.consumer, lane, at.index)?
    {
        let next = HeadRef::new(at.consumer.clone(), at.cursor.clone(), next);
        t.update_head(&next, &HeadRow::new(HeadStatus::Queued), &HeadRow::new(HeadStatus::Live))?;
    }
    append(t, None)
}

/// Removes the head's pins, and the snapshots that only they kept.
pub(super) fn release_pins<T: Tables>(t: &mut T, at: &HeadRef) -> Result<()> {
    for (reducer, index) in t.take_pins(at)? {
        if t.latest_snapshot(&reducer)? != Some(index) && !t.is_pinned(&reducer, index)? {
            t.remove_snapshot(&reducer, index)?;
        }
    }
    Ok(())
}

/// Fails an attempt; see [`Store::fail_attempt`](crate::Store::fail_attempt).
///
/// # Errors
/// `NOT_FOUND` for an index that does not exist.
pub fn fail_attempt<T: Tables>(
    t: &mut T,
    now: Timestamp,
    request: &FailAttempt,
) -> Result<WithClaim<Failure>> {
    let outcome = fail(t, now, request)?;
    then_claim(t, now, outcome, request.next_claim())
}

fn fail<T: Tables>(t: &mut T, now: Timestamp, request: &FailAttempt) -> Result<Failure> {
    let log = t.log_state()?;
    let at = request.head();
    let row = match place(t, log, at)? {
        Place::Beyond => return Err(not_found(t, at.index)),
        Place::Row(row) if row.state.attempt_count == request.attempt() => row,
        Place::Cleared | Place::Done(_) | Place::Passed | Place::Row(_) | Place::Unknown => {
            return Ok(Failure::Superseded);
        }
    };
    if row.state.claim_holder.is_none() {
        let repeated = row.state.last_failed_attempt == Some(request.attempt());
        return Ok(if repeated { present(&row) } else { Failure::Superseded });
    }
    let mut after = row.clone();
    let state = &mut after.state;
    state.failure_count += 1;
    state.last_failed_at = Some(now);
    state.last_failed_attempt = Some(request.attempt());
    state.last_error = Some(request.error().to_owned());
    state.claim_holder = None;
    let dead = request.budget().is_some_and(|budget| state.failure_count >= budget);
    if dead {
        state.failed_at = Some(now);
        state.claim_expires_at = None;
        after.status = HeadStatus::Dead;
    } else {
        let hold = request.hold();
        state.claim_expires_at = (hold.as_millis() > 0).then(|| now.after(hold));
    }
    t.update_head(at, &row, &after)?;
    if dead {
        release_pins(t, at)?;
    }
    Ok(present(&after))
}

fn present(row: &HeadRow) -> Failure {
    let failure_count = row.state.failure_count;
    if row.state.is_dead() {
        Failure::DeadLettered { failure_count }
    } else {
        Failure::Failed { failure_count }
    }
}

fn not_found<T: Tables>(t: &T, index: Index) -> Error {
    ErrorKind::NotFound { session: t.session().clone(), index }.into()
}
