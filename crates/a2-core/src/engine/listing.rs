//! The listing of a session's cursors.

use serde::{Deserialize, Serialize};

use super::logs::cursor_of;
use super::{ListFrom, LogState, Tables};
use crate::outcome::Cursors;
use crate::request::{Page, PageToken};
use crate::{Consumer, Cursor, CursorKey, DispatchState, HeadRef, Index, Lane, LogName, Result};

const KIND: &str = "cursors";

/// A cursor's place in the listing: by consumer, then lanes, logs and events, by name or index.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Spot(Consumer, Which);

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Which {
    Lane(Lane),
    Log(LogName),
    Event(Index),
}

/// A page of cursors; see [`Store::cursors`](crate::Store::cursors).
///
/// # Errors
/// `INVALID_INPUT` for a foreign token.
pub fn cursors<T: Tables>(t: &mut T, page: &Page) -> Result<Cursors> {
    let log = t.log_state()?;
    let from: Option<Spot> = page.token().map(|token| token.decode(KIND)).transpose()?;
    // One more than asked tells whether there is a next page.
    let limit = page.max_entries() + 1;
    let mut found: Vec<(Spot, Cursor)> = Vec::new();
    list_lanes(t, log, from.as_ref(), limit, &mut found)?;
    list_logs(t, log, from.as_ref(), limit, &mut found)?;
    list_events(t, from.as_ref(), limit, &mut found)?;
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let more = found.len() > page.max_entries();
    found.truncate(page.max_entries());
    let next = found.last().filter(|_| more).map(|(spot, _)| PageToken::encode(KIND, spot));
    let cursors = found.into_iter().map(|(_, cursor)| cursor).collect();
    Ok(Cursors::new(cursors, log.head, log.clear_index, next))
}

fn list_lanes<T: Tables>(
    t: &mut T,
    log: LogState,
    from: Option<&Spot>,
    limit: usize,
    found: &mut Vec<(Spot, Cursor)>,
) -> Result<()> {
    let from = match from {
        None => ListFrom::Start,
        Some(Spot(consumer, Which::Lane(lane))) => ListFrom::After(consumer, lane),
        Some(Spot(consumer, Which::Log(_) | Which::Event(_))) => ListFrom::PastConsumer(consumer),
    };
    for row in t.lanes(from, limit)? {
        let key = CursorKey::Lane(row.lane.clone());
        let state = state_of(t, &row.consumer, &key, row.head)?;
        let position = row.position.unwrap_or(log.clear_index);
        found.push((
            Spot(row.consumer.clone(), Which::Lane(row.lane)),
            Cursor::new(row.consumer, key, position, row.head, state),
        ));
    }
    Ok(())
}

fn list_logs<T: Tables>(
    t: &mut T,
    log: LogState,
    from: Option<&Spot>,
    limit: usize,
    found: &mut Vec<(Spot, Cursor)>,
) -> Result<()> {
    let from = match from {
        None => ListFrom::Start,
        Some(Spot(consumer, Which::Lane(_))) => ListFrom::Consumer(consumer),
        Some(Spot(consumer, Which::Log(name))) => ListFrom::After(consumer, name),
        Some(Spot(consumer, Which::Event(_))) => ListFrom::PastConsumer(consumer),
    };
    for (consumer, name, row) in t.logs(from, limit)? {
        let spot = Spot(consumer.clone(), Which::Log(name.clone()));
        found.push((spot, cursor_of(t, log, consumer, name, row)?));
    }
    Ok(())
}

fn list_events<T: Tables>(
    t: &mut T,
    from: Option<&Spot>,
    limit: usize,
    found: &mut Vec<(Spot, Cursor)>,
) -> Result<()> {
    let from = match from {
        None => ListFrom::Start,
        Some(Spot(consumer, Which::Lane(_) | Which::Log(_))) => ListFrom::Consumer(consumer),
        Some(Spot(consumer, Which::Event(index))) => ListFrom::After(consumer, index),
    };
    for (consumer, index) in t.event_heads(from, limit)? {
        let state = state_of(t, &consumer, &CursorKey::Event, Some(index))?;
        found.push((
            Spot(consumer.clone(), Which::Event(index)),
            Cursor::new(consumer, CursorKey::Event, index.previous(), Some(index), state),
        ));
    }
    Ok(())
}

fn state_of<T: Tables>(
    t: &mut T,
    consumer: &Consumer,
    key: &CursorKey,
    head: Option<Index>,
) -> Result<DispatchState> {
    let Some(index) = head else { return Ok(DispatchState::default()) };
    let at = HeadRef::new(consumer.clone(), key.clone(), index);
    Ok(t.head(&at)?.map(|row| row.state).unwrap_or_default())
}
