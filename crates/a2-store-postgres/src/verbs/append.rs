//! Appending.

use a2_core::{
    Append, Appended, Cause, ErrorKind, Event, Index, NewEvent, Result, Served, SessionId,
};
use tokio_postgres::Row;

use super::{Locks, Op, Verb, outcome, place, refusal, sessions, times};
use crate::args::{EventArgs, ServedArgs, index};
use crate::conn::Db;
use crate::rows::{self, Answer, column};
use crate::statements::Sql;
use crate::tell::Teller;
use crate::values::params;

pub(crate) struct AppendVerb;

impl Verb for AppendVerb {
    type Request = Append;
    type Answer = Appended;
    const DOING: &'static str = "append";

    fn served(request: &Append) -> (Option<&Served>, Option<&Served>) {
        (Some(request.served_list()), None)
    }

    fn weight(request: &Append) -> usize {
        weight(request.events())
    }

    async fn call(db: &Db, sql: &Sql, ops: &[Op<Append>], locks: Locks) -> Result<Vec<Row>> {
        let mut events = EventArgs::default();
        ops.iter().for_each(|op| events.push(op.request.events()));
        let causes = causes(ops.iter().flat_map(|op| op.request.events()))?;
        let targets = events.targets();
        let served =
            ServedArgs::new(ops.first().map_or(&Served::ALL, |op| op.request.served_list()));
        let expected = some(ops.iter().map(|op| op.request.head_expected().map(index)));
        let origins = some(ops.iter().map(|op| op.request.origin().map(index)));
        let params = params![
            locks == Locks::Try,
            times(ops),
            sessions(ops),
            expected,
            origins,
            events.end,
            events.id,
            events.event_type,
            events.payload,
            events.size,
            causes,
            targets.end,
            targets.event,
            targets.consumer,
            targets.lane,
            served.consumer,
            served.log,
            served.backfill,
            served.types_end,
            served.types,
        ];
        db.query(place(Self::DOING, ops), &sql.append, &params).await
    }

    fn tell(teller: &Teller, session: &SessionId, done: &Appended) {
        teller.appended(session, done);
    }

    fn answer(op: &Op<Append>, rows: &[Row]) -> Result<Option<Appended>> {
        let place = place(Self::DOING, std::slice::from_ref(op));
        let Some((answer, status)) = outcome(rows, place)? else { return Ok(None) };
        let appended = match status {
            "appended" => {
                let events = appended(&answer, &op.session, op.request.events(), None)?;
                Appended::new(events, answer.pending()?, false)
            }
            "replayed" => {
                Appended::new(rows::events(rows, place, &op.session)?, answer.pending()?, true)
            }
            "head_conflict" => {
                let actual = answer.index(column::HEAD)?;
                let expected = op.request.head_expected().unwrap_or(actual);
                return Err(ErrorKind::HeadConflict { expected, actual }.into());
            }
            status => return Err(refusal(&answer, status)),
        };
        Ok(Some(appended))
    }
}

/// An optional number for each request, left out when none has any.
fn some(numbers: impl Iterator<Item = Option<i64>>) -> Option<Vec<Option<i64>>> {
    let numbers: Vec<_> = numbers.collect();
    numbers.iter().any(Option::is_some).then_some(numbers)
}

/// Bytes of events and their rows, about.
pub(super) fn weight(events: &[NewEvent]) -> usize {
    let weight =
        |event: &NewEvent| 200 + event.payload().byte_len() + 200 * event.target_list().len();
    events.iter().map(weight).sum()
}

/// The causes of events, left out when none has any.
fn causes<'a>(events: impl Iterator<Item = &'a NewEvent>) -> Result<Option<Vec<Option<String>>>> {
    let causes: Vec<_> = events
        .map(|event| event.event_cause().map(cause_text).transpose())
        .collect::<Result<_>>()?;
    Ok(causes.iter().any(Option::is_some).then_some(causes))
}

/// A cause as it is stored. The server counts attempts to 2^63 − 1: one beyond that is current nowhere.
pub(crate) fn cause_text(cause: &Cause) -> Result<String> {
    let attempt = cause.attempt.min(i64::MAX.unsigned_abs());
    serde_json::to_string(&Cause::new(cause.head.clone(), attempt))
        .map_err(|error| a2_core::Error::invalid("cause", error.to_string()).with_source(error))
}

/// The events of a request as they stand in the log: the answer has only where and when.
pub(super) fn appended(
    answer: &Answer<'_>,
    session: &SessionId,
    events: &[NewEvent],
    cause: Option<&Cause>,
) -> Result<Vec<Event>> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let (head, at) = (answer.index(column::HEAD)?, answer.time(column::AT)?);
    let (count, told) = (events.len() as u64, answer.number(column::N)?);
    let Some(before) = head.get().checked_sub(count).filter(|_| told == count) else {
        return Err(answer.place.unreadable("another number of events was appended"));
    };
    let event = |(place, new): (u64, &NewEvent)| {
        let id = new.event_id().ok_or_else(|| answer.place.unreadable("an event has no id"))?;
        Ok(Event::new(
            session.clone(),
            Index::new(before + 1 + place)?,
            id.clone(),
            new.event_type().clone(),
            new.payload().clone(),
            at,
            cause.or(new.event_cause()).cloned(),
        ))
    };
    (0..).zip(events).map(event).collect()
}
