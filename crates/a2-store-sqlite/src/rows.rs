//! Statements and rows: how one is run, how the other is read.
//!
//! A value that does not read as what it must be is reported like any failure of the driver; the
//! store's error for it is `CORRUPT`.

use a2_core::engine::{DoneRecord, HeadRow, HeadStatus, LogRow, TimerRow};
use a2_core::{
    Cause, CursorKey, DispatchState, Error, Event, EventType, Index, Json, Lane, LogName, LogTypes,
    NewEvent, PresenceRow, SessionId, Target, Timestamp,
};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Params, Row};

/// What the driver answers.
pub(crate) type Sql<T> = rusqlite::Result<T>;

/// Runs a statement that answers nothing.
pub(crate) fn run(conn: &Connection, sql: &str, params: impl Params) -> Sql<usize> {
    conn.prepare_cached(sql)?.execute(params)
}

/// The first row.
pub(crate) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Sql<T>,
) -> Sql<Option<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// Every row.
pub(crate) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Sql<T>,
) -> Sql<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The least text above `text`, since no name holds U+0000.
pub(crate) fn after_name(text: &str) -> String {
    format!("{text}\0")
}

pub(crate) fn index_param(index: Index) -> i64 {
    count_param(index.get())
}

pub(crate) fn count_param(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn limit_param(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(crate) fn time_param(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

/// A stored value does not read as what it must be.
pub(crate) fn unreadable(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

pub(crate) fn text<'r>(row: &'r Row<'_>, column: usize) -> Sql<&'r str> {
    row.get_ref(column)?.as_str().map_err(|error| unreadable(column, error))
}

fn opt_text<'r>(row: &'r Row<'_>, column: usize) -> Sql<Option<&'r str>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        value => value.as_str().map(Some).map_err(|error| unreadable(column, error)),
    }
}

/// A name of whatever kind.
pub(crate) fn name<'r, N>(row: &'r Row<'_>, column: usize) -> Sql<N>
where
    N: TryFrom<&'r str, Error = Error>,
{
    N::try_from(text(row, column)?).map_err(|error| unreadable(column, error))
}

pub(crate) fn count(row: &Row<'_>, column: usize) -> Sql<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

fn opt_count(row: &Row<'_>, column: usize) -> Sql<Option<u64>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => count(row, column).map(Some),
    }
}

pub(crate) fn index(row: &Row<'_>, column: usize) -> Sql<Index> {
    Index::new(count(row, column)?).map_err(|error| unreadable(column, error))
}

pub(crate) fn opt_index(row: &Row<'_>, column: usize) -> Sql<Option<Index>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => index(row, column).map(Some),
    }
}

pub(crate) fn time(row: &Row<'_>, column: usize) -> Sql<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

fn opt_time(row: &Row<'_>, column: usize) -> Sql<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column).map(|at| at.map(Timestamp::from_millis))
}

/// The kinds of cursors as the tables number them, in head order.
pub(crate) const EVENT: i64 = 0;
pub(crate) const LANE: i64 = 1;
pub(crate) const LOG: i64 = 2;

pub(crate) fn kind_param(key: &CursorKey) -> i64 {
    match key {
        CursorKey::Event => EVENT,
        CursorKey::Lane(_) => LANE,
        CursorKey::Log(_) => LOG,
    }
}

/// A cursor's key, from its kind and name.
pub(crate) fn cursor_key(row: &Row<'_>, kind: usize, column: usize) -> Sql<CursorKey> {
    match row.get(kind)? {
        EVENT => Ok(CursorKey::Event),
        LANE => name::<Lane>(row, column).map(CursorKey::Lane),
        LOG => name::<LogName>(row, column).map(CursorKey::Log),
        other => Err(rusqlite::Error::IntegralValueOutOfRange(kind, other)),
    }
}

pub(crate) fn status_param(status: HeadStatus) -> i64 {
    match status {
        HeadStatus::Queued => 0,
        HeadStatus::Live => 1,
        HeadStatus::Dead => 2,
        HeadStatus::Done => 3,
    }
}

pub(crate) fn status(row: &Row<'_>, column: usize) -> Sql<HeadStatus> {
    match row.get(column)? {
        0 => Ok(HeadStatus::Queued),
        1 => Ok(HeadStatus::Live),
        2 => Ok(HeadStatus::Dead),
        3 => Ok(HeadStatus::Done),
        other => Err(rusqlite::Error::IntegralValueOutOfRange(column, other)),
    }
}

/// A head, with the columns of `head_get`.
pub(crate) fn head(row: &Row<'_>) -> Sql<HeadRow> {
    let mut state = DispatchState::default();
    state.attempt_count = count(row, 1)?;
    state.first_claimed_at = opt_time(row, 2)?;
    state.last_claimed_at = opt_time(row, 3)?;
    state.claim_holder = match row.get_ref(4)? {
        ValueRef::Null => None,
        _ => Some(name(row, 4)?),
    };
    state.claim_expires_at = opt_time(row, 5)?;
    state.failure_count = count(row, 6)?;
    state.last_failed_at = opt_time(row, 7)?;
    state.last_failed_attempt = opt_count(row, 8)?;
    state.last_error = opt_text(row, 9)?.map(str::to_owned);
    state.failed_at = opt_time(row, 10)?;
    Ok(HeadRow { status: status(row, 0)?, state, done: done(row, 11)? })
}

/// A completion: time, attempt, head before the returned events, their number.
fn done(row: &Row<'_>, first: usize) -> Sql<Option<DoneRecord>> {
    let Some(at) = opt_time(row, first)? else { return Ok(None) };
    Ok(Some(DoneRecord {
        attempt: opt_count(row, first + 1)?,
        at,
        returned_after: index(row, first + 2)?,
        returned: count(row, first + 3)?,
    }))
}

/// A log cursor, with the columns of `log_get` from `first` on.
pub(crate) fn log(row: &Row<'_>, first: usize) -> Sql<LogRow> {
    let types = match opt_text(row, first + 2)? {
        None => LogTypes::ALL,
        Some(json) => serde_json::from_str(json).map_err(|error| unreadable(first + 2, error))?,
    };
    let last = match opt_index(row, first + 3)? {
        None => None,
        Some(at) => done(row, first + 4)?.map(|done| (at, done)),
    };
    Ok(LogRow { position: index(row, first)?, head: opt_index(row, first + 1)?, types, last })
}

/// What a log takes, as it is stored.
pub(crate) fn types_param(types: &LogTypes) -> Option<String> {
    // Names always serialize.
    types.as_only().map(|types| serde_json::to_string(types).unwrap_or_default())
}

pub(crate) fn cause_param(cause: Option<&Cause>) -> Option<String> {
    cause.map(|cause| serde_json::to_string(cause).unwrap_or_default())
}

/// An event, with the columns of `event_range`.
pub(crate) fn event(row: &Row<'_>, session: &SessionId) -> Sql<Event> {
    let cause = match opt_text(row, 4)? {
        None => None,
        Some(json) => {
            let cause: Cause = serde_json::from_str(json).map_err(|error| unreadable(4, error))?;
            Some(cause)
        }
    };
    Ok(Event::new(
        session.clone(),
        index(row, 0)?,
        name(row, 1)?,
        name(row, 2)?,
        Json::from_stored(text(row, 5)?),
        time(row, 3)?,
        cause,
    ))
}

/// A timer, with the columns of `timers_page`.
pub(crate) fn timer(row: &Row<'_>) -> Sql<TimerRow> {
    let payload = Json::from_stored(text(row, 5)?);
    let mut event = NewEvent::from_json(name::<EventType>(row, 4)?, payload)
        .and_then(|event| event.id(text(row, 3).unwrap_or_default()))
        .map_err(|error| unreadable(3, error))?;
    if let Some(json) = opt_text(row, 6)? {
        let targets: Vec<Target> =
            serde_json::from_str(json).map_err(|error| unreadable(6, error))?;
        event = event.targets(targets);
    }
    Ok(TimerRow {
        key: name(row, 0)?,
        due_at: time(row, 1)?,
        event,
        origin_index: opt_index(row, 2)?,
    })
}

pub(crate) fn targets_param(targets: &[Target]) -> Option<String> {
    (!targets.is_empty()).then(|| serde_json::to_string(targets).unwrap_or_default())
}

/// A presence row, with the columns of `presence_page`.
pub(crate) fn presence(row: &Row<'_>) -> Sql<PresenceRow> {
    Ok(PresenceRow::new(
        name(row, 0)?,
        name(row, 1)?,
        Json::from_stored(text(row, 2)?),
        opt_index(row, 3)?,
        time(row, 4)?,
        time(row, 5)?,
    ))
}
