//! The rows that the functions and the statements answer, read as the model's values.
//!
//! A value that does not read as what it must be is `CORRUPT`: only the store writes its tables.

use a2_core::outcome::{Busy, Claimed};
use a2_core::{
    Cause, Claim, CursorKey, DispatchState, DispatchedHead, Event, HeadRef, Index, Result,
    SessionId, Timestamp,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::args;
use crate::error::Place;
use crate::values::{StoredText, unescape};

/// What the functions answer, column by column.
pub(crate) mod column {
    pub(crate) const OP: usize = 0;
    pub(crate) const PART: usize = 1;
    pub(crate) const STATUS: usize = 2;
    pub(crate) const HEAD: usize = 3;
    pub(crate) const CLEAR_INDEX: usize = 4;
    pub(crate) const AT: usize = 5;
    pub(crate) const PENDING: usize = 6;
    pub(crate) const N: usize = 7;
    pub(crate) const IDS: usize = 8;
    pub(crate) const CONSUMER: usize = 9;
    pub(crate) const KIND: usize = 10;
    pub(crate) const NAME: usize = 11;
    pub(crate) const IDX: usize = 12;
    /// An event's id; its type, payload, cause and time follow.
    pub(crate) const EVENT: usize = 13;
    /// The dispatch state's ten columns begin here.
    pub(crate) const STATE: usize = 18;
}

/// What a row is part of.
pub(crate) mod part {
    pub(crate) const OUTCOME: i32 = 0;
    pub(crate) const EVENT: i32 = 1;
    pub(crate) const CLAIM: i32 = 2;
    pub(crate) const HEAD: i32 = 3;
    pub(crate) const RUN: i32 = 4;
}

/// A row, and what it was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) row: &'a Row,
    pub(crate) place: Place<'a>,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(row: &'a Row, place: Place<'a>) -> Self {
        Self { row, place }
    }

    pub(crate) fn get<T: FromSql<'a>>(&self, column: usize) -> Result<T> {
        self.row.try_get(column).map_err(|error| self.place.error(error))
    }

    pub(crate) fn part(&self) -> Result<i32> {
        self.get(column::PART)
    }

    pub(crate) fn status(&self) -> Result<&'a str> {
        self.get(column::STATUS)
    }

    /// A name, or whatever else is checked when it is made.
    pub(crate) fn name<T>(&self, column: usize) -> Result<T>
    where
        T: TryFrom<&'a str, Error = a2_core::Error>,
    {
        T::try_from(self.get::<&str>(column)?).map_err(|error| self.place.unreadable(error))
    }

    pub(crate) fn index(&self, column: usize) -> Result<Index> {
        let index = self.optional_index(column)?;
        index.ok_or_else(|| self.place.unreadable("an index is missing"))
    }

    pub(crate) fn optional_index(&self, column: usize) -> Result<Option<Index>> {
        let Some(number) = self.count(column)? else { return Ok(None) };
        Index::new(number).map(Some).map_err(|error| self.place.unreadable(error))
    }

    /// A number that is not negative.
    pub(crate) fn count(&self, column: usize) -> Result<Option<u64>> {
        let number: Option<i64> = self.get(column)?;
        let number = number.map(u64::try_from).transpose();
        number.map_err(|_| self.place.unreadable("a count is negative"))
    }

    pub(crate) fn number(&self, column: usize) -> Result<u64> {
        self.count(column)?.ok_or_else(|| self.place.unreadable("a count is missing"))
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp> {
        Ok(Timestamp::from_millis(self.get(column)?))
    }

    pub(crate) fn optional_time(&self, column: usize) -> Result<Option<Timestamp>> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_millis))
    }

    pub(crate) fn pending(&self) -> Result<bool> {
        self.get(column::PENDING)
    }

    /// A status that the function does not answer.
    pub(crate) fn unknown_status(&self, status: &str) -> a2_core::Error {
        self.place.unreadable(format_args!("the status {status:?} is not known"))
    }

    /// An event at its index; `at` is where its id, type, payload, cause and time stand.
    pub(crate) fn event(
        &self,
        session: &SessionId,
        index: Index,
        columns: EventColumns,
    ) -> Result<Event> {
        if self.get::<Option<&str>>(columns.id)?.is_none() {
            return Err(missing(session, index));
        }
        let cause = self.get::<Option<&str>>(columns.cause)?;
        Ok(Event::new(
            session.clone(),
            index,
            self.name(columns.id)?,
            self.name(columns.event_type)?,
            self.get::<StoredText<'_>>(columns.payload)?.json(),
            self.time(columns.created_at)?,
            cause.map(|text| self.cause(text)).transpose()?,
        ))
    }

    fn cause(&self, text: &str) -> Result<Cause> {
        serde_json::from_str(text).map_err(|error| self.place.unreadable(&error).with_source(error))
    }

    /// The event of a row of the functions.
    pub(crate) fn own_event(&self, session: &SessionId) -> Result<Event> {
        self.event(session, self.index(column::IDX)?, EventColumns::AFTER_HEAD)
    }

    pub(crate) fn key(&self) -> Result<CursorKey> {
        let kind: i16 = self.get(column::KIND)?;
        match i32::from(kind) {
            args::EVENT => Ok(CursorKey::Event),
            args::LANE => Ok(CursorKey::Lane(self.name(column::NAME)?)),
            args::LOG => Ok(CursorKey::Log(self.name(column::NAME)?)),
            kind => Err(self.place.unreadable(format_args!("no kind of cursor is {kind}"))),
        }
    }

    pub(crate) fn head_ref(&self) -> Result<HeadRef> {
        Ok(HeadRef::new(self.name(column::CONSUMER)?, self.key()?, self.index(column::IDX)?))
    }

    pub(crate) fn state(&self) -> Result<DispatchState> {
        let mut state = DispatchState::default();
        let at = column::STATE;
        let Some(attempt_count) = self.count(at)? else { return Ok(state) };
        state.attempt_count = attempt_count;
        state.first_claimed_at = self.optional_time(at + 1)?;
        state.last_claimed_at = self.optional_time(at + 2)?;
        if self.get::<Option<&str>>(at + 3)?.is_some() {
            state.claim_holder = Some(self.name(at + 3)?);
        }
        state.claim_expires_at = self.optional_time(at + 4)?;
        state.failure_count = self.number(at + 5)?;
        state.last_failed_at = self.optional_time(at + 6)?;
        state.last_failed_attempt = self.count(at + 7)?;
        state.last_error = self.get::<Option<&str>>(at + 8)?.map(unescape);
        state.failed_at = self.optional_time(at + 9)?;
        Ok(state)
    }

    /// A head with its event and state, without its run.
    pub(crate) fn dispatched(&self, session: &SessionId) -> Result<DispatchedHead> {
        let head = self.head_ref()?;
        let event = self.event(session, head.index, EventColumns::AFTER_HEAD)?;
        Ok(DispatchedHead::new(head, event, self.state()?))
    }
}

/// Where an event's columns are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventColumns {
    pub(crate) id: usize,
    pub(crate) event_type: usize,
    pub(crate) payload: usize,
    pub(crate) cause: usize,
    pub(crate) created_at: usize,
}

impl EventColumns {
    /// In the functions' answers.
    pub(crate) const AFTER_HEAD: Self = Self::from(column::EVENT);

    /// One after the other.
    pub(crate) const fn from(id: usize) -> Self {
        Self { id, event_type: id + 1, payload: id + 2, cause: id + 3, created_at: id + 4 }
    }
}

/// The event is missing from the log.
pub(crate) fn missing(session: &SessionId, index: Index) -> a2_core::Error {
    a2_core::Error::corrupt(Some(session), Some(index), "the event is missing from the log")
}

/// The stored events of a replay, or those of fired timers.
pub(crate) fn events(rows: &[Row], place: Place<'_>, session: &SessionId) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    for row in rows {
        let answer = Answer::new(row, place);
        if answer.part()? == part::EVENT {
            events.push(answer.own_event(session)?);
        }
    }
    Ok(events)
}

/// What a claim found; none when none was made.
pub(crate) fn claim(rows: &[Row], place: Place<'_>, session: &SessionId) -> Result<Option<Claim>> {
    let mut heads: Vec<DispatchedHead> = Vec::new();
    let mut found = None;
    for row in rows {
        let answer = Answer::new(row, place);
        match answer.part()? {
            part::CLAIM => match answer.status()? {
                "claimed" => {
                    let (head, clear_index) =
                        (answer.index(column::HEAD)?, answer.index(column::CLEAR_INDEX)?);
                    found = Some(Claim::Claimed(Claimed::new(Vec::new(), head, clear_index)));
                }
                "busy" => {
                    let wait = std::time::Duration::from_millis(answer.number(column::N)?);
                    found = Some(Claim::Busy(Busy::new(wait)));
                }
                "settled" => found = Some(Claim::Settled),
                status => return Err(answer.unknown_status(status)),
            },
            part::HEAD => heads.push(answer.dispatched(session)?),
            part::RUN => {
                let event = answer.own_event(session)?;
                if let Some(head) = heads.last_mut() {
                    head.run.push(event);
                }
            }
            _ => {}
        }
    }
    if let Some(Claim::Claimed(claimed)) = &mut found {
        claimed.heads = heads;
    }
    Ok(found)
}

/// The rows of each of `ops` requests of one call.
pub(crate) fn by_op<'a>(rows: &'a [Row], ops: usize, place: Place<'_>) -> Result<Vec<&'a [Row]>> {
    let mut by_op = vec![&rows[..0]; ops];
    for group in rows.chunk_by(|a, b| op(a) == op(b)) {
        let place_of = |op: i32| usize::try_from(op).ok().and_then(|op| op.checked_sub(1));
        match group.first().map(op).and_then(place_of).and_then(|at| by_op.get_mut(at)) {
            Some(slot) => *slot = group,
            None => return Err(place.unreadable("an answer belongs to no request")),
        }
    }
    Ok(by_op)
}

fn op(row: &Row) -> i32 {
    row.try_get(column::OP).unwrap_or(0)
}
