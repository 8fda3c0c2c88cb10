//! The operations whose functions take many requests at once.
//!
//! One module a verb: how requests become a call, and its rows an answer.

mod append;
mod claims;
mod complete;
mod fail;

use a2_core::{ErrorKind, EventId, Index, Result, Served, SessionId};
use tokio_postgres::Row;

pub(crate) use append::{AppendVerb, cause_text};
pub(crate) use claims::{ClaimVerb, ReleaseVerb, RenewVerb};
pub(crate) use complete::{CompleteArgs, CompleteVerb};
pub(crate) use fail::FailVerb;

use crate::conn::Db;
use crate::error::Place;
use crate::rows::{Answer, column};
use crate::statements::Sql;
use crate::tell::Teller;

/// A request to a session.
pub(crate) struct Op<R> {
    pub(crate) session: SessionId,
    /// When it was made, by the clock that replaces the server's.
    pub(crate) now: Option<i64>,
    pub(crate) request: R,
}

/// What to do about sessions that others have locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    /// Wait. For one request alone.
    Wait,
    /// Leave the request undone.
    Try,
}

impl Locks {
    /// As the functions take it.
    pub(crate) fn as_try(self) -> &'static bool {
        match self {
            Self::Wait => &false,
            Self::Try => &true,
        }
    }
}

/// An operation whose function takes many requests.
pub(crate) trait Verb: Send + Sync + 'static {
    type Request: Send + Sync + 'static;
    type Answer: Send + 'static;
    /// Its name in errors.
    const DOING: &'static str;

    /// What requests of one call must have in common: what their callers serve.
    fn served(request: &Self::Request) -> (Option<&Served>, Option<&Served>);

    /// Bytes and rows of the request, about.
    fn weight(request: &Self::Request) -> usize;

    /// Sends the requests, which have what they serve in common, in one round trip.
    fn call(
        db: &Db,
        sql: &Sql,
        ops: &[Op<Self::Request>],
        locks: Locks,
    ) -> impl Future<Output = Result<Vec<Row>>> + Send;

    /// Tells of what was done.
    fn tell(_: &Teller, _: &SessionId, _: &Self::Answer) {}

    /// The answer to a request, of its rows; none when it was left undone.
    fn answer(op: &Op<Self::Request>, rows: &[Row]) -> Result<Option<Self::Answer>>;
}

/// Where a call's failure is: in the session, when it is one.
pub(crate) fn place<'a, R>(doing: &'static str, ops: &'a [Op<R>]) -> Place<'a> {
    match ops {
        [op] => Place::write(doing, &op.session),
        _ => Place::change(doing),
    }
}

/// The times of the requests, unless the server's own counts.
pub(crate) fn times<R>(ops: &[Op<R>]) -> Option<Vec<i64>> {
    ops.iter().map(|op| op.now).collect()
}

pub(crate) fn sessions<R>(ops: &[Op<R>]) -> Vec<&str> {
    ops.iter().map(|op| op.session.as_str()).collect()
}

/// A request's first row, with its status; none when the request was left undone.
pub(crate) fn outcome<'a>(
    rows: &'a [Row],
    place: Place<'a>,
) -> Result<Option<(Answer<'a>, &'a str)>> {
    let Some(row) = rows.first() else { return Err(place.unreadable("there is no answer")) };
    let answer = Answer::new(row, place);
    let status = answer.status()?;
    Ok((status != "deferred").then_some((answer, status)))
}

/// The errors that several verbs answer by their status.
pub(crate) fn refusal(answer: &Answer<'_>, status: &str) -> a2_core::Error {
    let kind = || -> Result<ErrorKind> {
        Ok(match status {
            "partial_duplicate" => {
                let ids: Vec<&str> = answer.get(column::IDS)?;
                let ids = ids.into_iter().map(EventId::new).collect::<Result<_>>();
                let existing = ids.map_err(|error| answer.place.unreadable(error))?;
                ErrorKind::PartialDuplicateBatch { existing }
            }
            "session_cleared" => {
                ErrorKind::SessionCleared { clear_index: answer.index(column::CLEAR_INDEX)? }
            }
            "superseded_attempt" => ErrorKind::SupersededAttempt,
            // The rule's one text is the index's own.
            "full" => return Err(full()),
            status => return Err(answer.unknown_status(status)),
        })
    };
    kind().map_or_else(|error| error, a2_core::Error::from)
}

/// The log ends.
fn full() -> a2_core::Error {
    match Index::MAX.plus(1) {
        Err(error) => error,
        Ok(_) => a2_core::Error::invalid("events", "the log is full"),
    }
}

/// No such index.
pub(crate) fn not_found(session: &SessionId, index: Index) -> a2_core::Error {
    ErrorKind::NotFound { session: session.clone(), index }.into()
}
