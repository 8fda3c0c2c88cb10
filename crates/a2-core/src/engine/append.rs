//! Appending and reading.

use std::collections::HashMap;

use super::logs;
use super::{HeadStatus, LogState, Tables};
use crate::outcome::{Appended, Events};
use crate::request::{Append, ReadRange};
use crate::{
    Cause, Consumer, CursorKey, Error, ErrorKind, Event, EventId, HeadRef, Index, LogName,
    NewEvent, Result, Served, Timestamp, limits,
};

/// Appends events, all or none; see [`Store::append`](crate::Store::append).
///
/// # Errors
/// As there.
pub fn append<T: Tables>(t: &mut T, now: Timestamp, request: &Append) -> Result<Appended> {
    let log = t.log_state()?;
    let events = request.events();
    if events.is_empty() {
        return Ok(Appended::new(Vec::new(), has_pending(t, request.served_list())?, false));
    }
    if let Some(stored) = replayed(t, events)? {
        return Ok(Appended::new(stored, has_pending(t, request.served_list())?, true));
    }
    if let Some(expected) = request.head_expected().filter(|expected| *expected != log.head) {
        return Err(ErrorKind::HeadConflict { expected, actual: log.head }.into());
    }
    check_origin(log, request.origin())?;
    for cause in events.iter().filter_map(NewEvent::event_cause) {
        check_cause(t, log, cause)?;
    }
    log.head.plus(events.len() as u64)?;
    let stored = commit(t, now, log, events, None, request.served_list(), None)?;
    let has_pending = has_pending(t, request.served_list())?;
    Ok(Appended::new(stored, has_pending, false))
}

/// Reads a range; see [`Store::read`](crate::Store::read).
///
/// # Errors
/// `CORRUPT` when an index is missing.
pub fn read<T: Tables>(t: &mut T, range: &ReadRange) -> Result<Events> {
    let log = t.log_state()?;
    let events = range_of(t, log, range.start_after(), range.end(), range.max_events())?;
    Ok(Events::new(events, log.head, log.clear_index))
}

/// The events in (after, through] that exist, from the clear marker on, as many as one answer holds.
pub(super) fn range_of<T: Tables>(
    t: &mut T,
    log: LogState,
    after: Index,
    through: Index,
    limit: usize,
) -> Result<Vec<Event>> {
    let after = after.max(log.clear_index.previous());
    let through = through.min(log.head);
    if after >= through {
        return Ok(Vec::new());
    }
    let events = t.events(after, through, limit, limits::READ_BYTES)?;
    let mut expected = after;
    let mut bytes = 0;
    for event in &events {
        expected = expected.next();
        if event.index != expected {
            return Err(missing(t, expected));
        }
        bytes += event.payload.byte_len();
    }
    let cut = events.len() == limit || bytes > limits::READ_BYTES;
    if expected < through && !cut {
        return Err(missing(t, expected.next()));
    }
    Ok(events)
}

/// The event of a head, which must be there.
#[inline]
pub(super) fn event_at<T: Tables>(t: &mut T, index: Index) -> Result<Event> {
    t.event(index)?.ok_or_else(|| missing(t, index))
}

fn missing<T: Tables>(t: &T, index: Index) -> Error {
    Error::corrupt(Some(t.session()), Some(index), "the event is missing from the log")
}

/// Whether a served consumer has a live head.
pub(super) fn has_pending<T: Tables>(t: &mut T, served: &Served) -> Result<bool> {
    let Some(entries) = served.entries() else { return t.has_live(None) };
    for entry in entries {
        if t.has_live(Some(entry.consumer()))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The stored events when all ids of the batch are owned, none when none is.
fn replayed<T: Tables>(t: &mut T, events: &[NewEvent]) -> Result<Option<Vec<Event>>> {
    let owners = owners(t, events)?;
    if owners.is_empty() {
        return Ok(None);
    }
    if owners.len() < events.len() {
        return Err(partial(owners));
    }
    owners.into_iter().map(|(_, index)| event_at(t, index)).collect::<Result<_>>().map(Some)
}

/// The ids of the batch that are owned in this lifetime, in the batch's order.
pub(super) fn owners<T: Tables>(t: &mut T, events: &[NewEvent]) -> Result<Vec<(EventId, Index)>> {
    let mut owners = Vec::new();
    for id in events.iter().filter_map(NewEvent::event_id) {
        if let Some(index) = t.owner(id)? {
            owners.push((id.clone(), index));
        }
    }
    Ok(owners)
}

pub(super) fn partial(owners: Vec<(EventId, Index)>) -> Error {
    let existing = owners.into_iter().map(|(id, _)| id).collect();
    ErrorKind::PartialDuplicateBatch { existing }.into()
}

pub(super) fn check_origin(log: LogState, origin: Option<Index>) -> Result<()> {
    match origin {
        Some(origin) if origin < log.clear_index => {
            Err(ErrorKind::SessionCleared { clear_index: log.clear_index }.into())
        }
        _ => Ok(()),
    }
}

/// Refuses a cause that is not a current attempt.
pub(super) fn check_cause<T: Tables>(t: &mut T, log: LogState, cause: &Cause) -> Result<()> {
    let current = cause.head.index > log.clear_index
        && t.head(&cause.head)?.is_some_and(|row| {
            row.status == HeadStatus::Live && row.state.is_current(cause.attempt)
        });
    if current { Ok(()) } else { Err(ErrorKind::SupersededAttempt.into()) }
}

/// Stores the events, queues them on their targets and moves the declared logs (but for `moved`,
/// the cursor whose completion returns them).
pub(super) fn commit<T: Tables>(
    t: &mut T,
    now: Timestamp,
    log: LogState,
    events: &[NewEvent],
    cause: Option<&Cause>,
    served: &Served,
    moved: Option<(&Consumer, &LogName)>,
) -> Result<Vec<Event>> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let mut stored = Vec::with_capacity(events.len());
    let mut index = log.head;
    // Lanes that this batch has looked up or put an event on: they are not idle any more.
    let mut taken: HashMap<(&Consumer, &crate::Lane), ()> = HashMap::new();
    for new in events {
        index = index.next();
        let id = new.event_id().ok_or_else(|| Error::invalid("events.id", "must be given"))?;
        let event = Event::new(
            t.session().clone(),
            index,
            id.clone(),
            new.event_type().clone(),
            new.payload().clone(),
            now,
            cause.or(new.event_cause()).cloned(),
        );
        t.add_event(&event)?;
        for target in new.target_list() {
            let consumer = target.consumer();
            let (key, status) = match target.lane_name() {
                None => (CursorKey::Event, HeadStatus::Live),
                Some(lane) => {
                    let busy = if events.len() == 1 {
                        !t.lane_is_idle(consumer, lane)?
                    } else if taken.insert((consumer, lane), ()).is_some() {
                        true
                    } else {
                        !t.lane_is_idle(consumer, lane)?
                    };
                    let status = if busy { HeadStatus::Queued } else { HeadStatus::Live };
                    (CursorKey::Lane(lane.clone()), status)
                }
            };
            t.add_head(&HeadRef::new(consumer.clone(), key, index), status)?;
        }
        stored.push(event);
    }
    for (consumer, declaration) in served.declarations() {
        if moved != Some((consumer, declaration.name()))
            && stored.iter().any(|event| declaration.log_types().takes(&event.event_type))
        {
            logs::touch(t, log, index, consumer, declaration)?;
        }
    }
    Ok(stored)
}
