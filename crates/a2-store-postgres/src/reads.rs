//! What is read of one session: one statement, one consistent view.

use a2_core::outcome::{Snapshot, Timer};
use a2_core::{
    Consumer, Cursor, CursorKey, Cursors, DeadLetters, Event, Events, HeadRef, Index, Lane,
    LogName, NewEvent, Page, PageToken, ReadRange, ReadState, ReducerName, Result, SessionId,
    StateRead, Target, TimerKey, TimerPage, limits,
};
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

use crate::args::{self, index};
use crate::conn::Db;
use crate::error::Place;
use crate::rows::{Answer, EventColumns, column, missing, part};
use crate::statements::Sql;
use crate::values::{StoredText, end, params};

/// Events and where the log stands; the range is checked to be without a hole.
pub(crate) async fn read(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    range: &ReadRange,
) -> Result<Events> {
    let place = Place::read("read", session);
    let params = params![
        session.as_str(),
        index(range.start_after()),
        index(range.end()),
        end(range.max_events()),
    ];
    let rows = db.query(place, &sql.events_read, &params).await?;
    let first = first(&rows, place)?;
    let (head, clear_index) = (first.index(0)?, first.index(1)?);
    let mut events = Vec::with_capacity(rows.len());
    for row in &rows {
        let answer = Answer::new(row, place);
        if let Some(index) = answer.optional_index(2)? {
            events.push(answer.event(session, index, EventColumns::from(3))?);
        }
    }
    let after = range.start_after().max(clear_index.previous());
    check_dense(session, &events, after, range.end().min(head), range.max_events())?;
    Ok(Events::new(events, head, clear_index))
}

/// The first row of an answer that always has one.
fn first<'a>(rows: &'a [Row], place: Place<'a>) -> Result<Answer<'a>> {
    let row = rows.first().ok_or_else(|| place.unreadable("there is no answer"))?;
    Ok(Answer::new(row, place))
}

/// Whether the events are all of (after, through], but for those that the limits cut off.
fn check_dense(
    session: &SessionId,
    events: &[Event],
    after: Index,
    through: Index,
    limit: usize,
) -> Result<()> {
    if after >= through {
        return Ok(());
    }
    let (mut expected, mut bytes) = (after, 0);
    for event in events {
        expected = expected.next();
        if event.index != expected {
            return Err(missing(session, expected));
        }
        bytes += event.payload.byte_len();
    }
    let cut = events.len() == limit || bytes > limits::READ_BYTES;
    if expected < through && !cut {
        return Err(missing(session, expected.next()));
    }
    Ok(())
}

/// A reducer's newest snapshot and the events after it.
pub(crate) async fn read_state(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    reducer: &ReducerName,
    read: &ReadState,
) -> Result<StateRead> {
    let place = Place::read("read_state", session);
    let params =
        params![session.as_str(), reducer.as_str(), index(read.end()), index(read.snapshot_end()),];
    let rows = db.query(place, &sql.state_read, &params).await?;
    let top = first(&rows, place)?;
    let (head, clear_index) = (top.index(1)?, top.index(2)?);
    let snapshot = match top.optional_index(4)? {
        Some(index) => Some(Snapshot::new(index, top.get::<StoredText<'_>>(7)?.json())),
        None => None,
    };
    let mut events = Vec::with_capacity(rows.len());
    for row in rows.iter().skip(1) {
        let answer = Answer::new(row, place);
        events.push(answer.event(session, answer.index(4)?, EventColumns::from(5))?);
    }
    let after = snapshot.as_ref().map_or(Index::ZERO, |snapshot| snapshot.index);
    let (after, through) = (after.max(clear_index.previous()), read.end().min(head));
    check_dense(session, &events, after, through, limits::READ_MAX)?;
    // Without an event the state reaches as far as was asked: there is nothing more to fold.
    let through_index = events.last().map_or(through, |last| last.index);
    let latest = top.optional_index(3)?;
    Ok(StateRead::new(latest, snapshot, events, through_index, head, clear_index))
}

/// A page of dead letters, in head order.
pub(crate) async fn dead_letters(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    page: &Page,
) -> Result<DeadLetters> {
    const KIND: &str = "dead_letters";
    let after: Option<HeadRef> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let place = Place::read("dead_letters", session);
    let params = params![
        session.as_str(),
        after.as_ref().map_or(-1, |after| index(after.index)),
        after.as_ref().map_or("", |after| after.consumer.as_str()),
        after.as_ref().map_or(0, |after| args::kind(&after.cursor)),
        after.as_ref().map_or("", |after| after.cursor.name()),
        // One more than asked tells whether there is a next page.
        end(page.max_entries() + 1),
    ];
    let rows = db.query(place, &sql.dead_letters, &params).await?;
    let (mut heads, mut bytes) = (Vec::with_capacity(rows.len()), 0);
    for row in rows.iter().take(page.max_entries()) {
        let head = Answer::new(row, place).dispatched(session)?;
        bytes += head.event.payload.byte_len();
        heads.push(head);
    }
    let cut = rows.len() > page.max_entries() || bytes > limits::READ_BYTES;
    let next = heads.last().filter(|_| cut).map(|last| PageToken::encode(KIND, &last.head));
    Ok(DeadLetters::new(heads, next))
}

/// A cursor's place in the listing: by consumer, then lanes, logs and events, by name or index.
#[derive(Serialize, Deserialize)]
struct Spot(Consumer, Which);

#[derive(Serialize, Deserialize)]
enum Which {
    Lane(Lane),
    Log(LogName),
    Event(Index),
}

impl Spot {
    fn of(cursor: &Cursor) -> Self {
        let which = match &cursor.key {
            CursorKey::Lane(lane) => Which::Lane(lane.clone()),
            CursorKey::Log(log) => Which::Log(log.clone()),
            CursorKey::Event => Which::Event(cursor.head.unwrap_or_default()),
        };
        Self(cursor.consumer.clone(), which)
    }

    /// Rank, name and index.
    fn parts(&self) -> (i32, &str, i64) {
        match &self.1 {
            Which::Lane(lane) => (0, lane.as_str(), 0),
            Which::Log(log) => (1, log.as_str(), 0),
            Which::Event(at) => (2, "", index(*at)),
        }
    }
}

/// A page of the session's cursors.
pub(crate) async fn cursors(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    page: &Page,
) -> Result<Cursors> {
    const KIND: &str = "cursors";
    let after: Option<Spot> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let (rank, name, at) = after.as_ref().map_or((-1, "", 0), Spot::parts);
    let place = Place::read("cursors", session);
    let params = params![
        session.as_str(),
        after.as_ref().map_or("", |after| after.0.as_str()),
        rank,
        name,
        at,
        end(page.max_entries() + 1),
    ];
    let rows = db.query(place, &sql.cursors, &params).await?;
    let top = first(&rows, place)?;
    let (head, clear_index) = (top.index(column::HEAD)?, top.index(column::CLEAR_INDEX)?);
    let mut cursors = Vec::with_capacity(rows.len());
    for row in rows.iter().skip(1) {
        cursors.push(cursor(&Answer::new(row, place))?);
    }
    let more = cursors.len() > page.max_entries();
    cursors.truncate(page.max_entries());
    let next = cursors.last().filter(|_| more).map(|last| PageToken::encode(KIND, &Spot::of(last)));
    Ok(Cursors::new(cursors, head, clear_index, next))
}

fn cursor(answer: &Answer<'_>) -> Result<Cursor> {
    let key = answer.key()?;
    let position = answer.index(column::N)?;
    let head = answer.optional_index(column::IDX)?;
    Ok(Cursor::new(answer.name(column::CONSUMER)?, key, position, head, answer.state()?))
}

/// A page of the session's timers, by key.
pub(crate) async fn timers(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    page: &Page,
) -> Result<TimerPage> {
    const KIND: &str = "timers";
    let after: Option<TimerKey> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let place = Place::read("timers", session);
    let params = params![
        session.as_str(),
        after.as_ref().map_or("", TimerKey::as_str),
        end(page.max_entries() + 1),
    ];
    let rows = db.query(place, &sql.timers, &params).await?;
    let (mut timers, mut bytes) = (Vec::with_capacity(rows.len()), 0);
    for row in rows.iter().take(page.max_entries()) {
        let answer = Answer::new(row, place);
        let event = timer_event(&answer)?;
        bytes += event.payload().byte_len();
        let (key, due_at) = (answer.name(0)?, answer.time(1)?);
        timers.push(Timer::new(key, due_at, event, answer.optional_index(2)?));
    }
    let cut = rows.len() > page.max_entries() || bytes > limits::READ_BYTES;
    let next = timers.last().filter(|_| cut).map(|last| PageToken::encode(KIND, &last.key));
    Ok(TimerPage::new(timers, next))
}

fn timer_event(answer: &Answer<'_>) -> Result<NewEvent> {
    let unreadable = |error| answer.place.unreadable(error);
    let payload = answer.get::<StoredText<'_>>(5)?.json();
    let mut event = NewEvent::from_json(answer.name::<a2_core::EventType>(4)?, payload)
        .and_then(|event| event.id(answer.name::<a2_core::EventId>(3)?))
        .map_err(unreadable)?;
    let consumers: Option<Vec<&str>> = answer.get(6)?;
    let lanes: Option<Vec<Option<&str>>> = answer.get(7)?;
    let lanes = lanes.unwrap_or_default();
    for (consumer, lane) in consumers.unwrap_or_default().into_iter().zip(lanes) {
        let target = match lane {
            None => Target::event(consumer),
            Some(lane) => Target::lane(consumer, lane),
        };
        event = event.target(target.map_err(unreadable)?);
    }
    Ok(event)
}

/// Rows of a part, for callers that look at single rows.
pub(crate) fn woken(answer: &Answer<'_>, consumer: &Consumer, log: &LogName) -> Result<Cursor> {
    debug_assert_eq!(answer.part().ok(), Some(part::OUTCOME));
    let position = answer.index(column::N)?;
    let head = answer.optional_index(column::IDX)?;
    let key = CursorKey::Log(log.clone());
    Ok(Cursor::new(consumer.clone(), key, position, head, answer.state()?))
}
