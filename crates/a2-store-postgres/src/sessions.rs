//! Listings over all sessions: which there are, which have work, when timers are due.

use a2_core::live::DueTimer;
use a2_core::outcome::{PendingSession, SessionInfo};
use a2_core::{
    Index, Page, PageToken, Pending, PendingPage, Result, SessionId, Sessions, Timestamp,
};

use crate::conn::Db;
use crate::error::Place;
use crate::rows::Answer;
use crate::statements::Sql;
use crate::values::{end, params};

/// Most sessions whose heads are asked for at once.
pub(crate) const MANY: usize = 1_000;

/// A page of the sessions.
pub(crate) async fn sessions(db: &Db, sql: &Sql, page: &Page) -> Result<Sessions> {
    const KIND: &str = "sessions";
    let after: Option<SessionId> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let place = Place::look("sessions");
    let after = after.as_ref().map_or("", SessionId::as_str);
    let params = params![after, end(page.max_entries() + 1)];
    let rows = db.query(place, &sql.sessions, &params).await?;
    let mut sessions = Vec::with_capacity(rows.len());
    for row in rows.iter().take(page.max_entries()) {
        let answer = Answer::new(row, place);
        sessions.push(SessionInfo::new(answer.name(0)?, answer.index(1)?, answer.index(2)?));
    }
    let more = rows.len() > page.max_entries();
    let next = sessions.last().filter(|_| more).map(|last| PageToken::encode(KIND, &last.session));
    Ok(Sessions::new(sessions, next))
}

/// A page of the sessions with work.
pub(crate) async fn pending(
    db: &Db,
    sql: &Sql,
    pending: &PendingPage,
    now: Option<i64>,
) -> Result<Pending> {
    const KIND: &str = "pending";
    let page = pending.which();
    let after: Option<SessionId> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let place = Place::look("pending");
    let entries = pending.served_list().entries();
    let consumers: Option<Vec<&str>> =
        entries.map(|entries| entries.iter().map(|entry| entry.consumer().as_str()).collect());
    let after = after.as_ref().map_or("", SessionId::as_str);
    let params = params![after, end(page.max_entries()), now, consumers];
    let rows = db.query(place, &sql.pending, &params).await?;
    let mut sessions = Vec::with_capacity(rows.len());
    let mut last = None;
    for row in &rows {
        let answer = Answer::new(row, place);
        let session: SessionId = answer.name(0)?;
        if let Some(not_before) = answer.optional_time(1)? {
            sessions.push(PendingSession::new(session.clone(), not_before));
        }
        last = Some(session);
    }
    let more = rows.len() >= page.max_entries();
    let next = last.filter(|_| more).map(|last| PageToken::encode(KIND, &last));
    Ok(Pending::new(sessions, next))
}

/// Sessions with timers due in a range, in order.
pub(crate) async fn due_timers(
    db: &Db,
    sql: &Sql,
    (from, through): (Timestamp, Timestamp),
    after: Option<&SessionId>,
    limit: usize,
) -> Result<Vec<DueTimer>> {
    let place = Place::look("timers");
    let after = after.map_or("", SessionId::as_str);
    let params = params![from.as_millis(), after, through.as_millis(), end(limit)];
    let rows = db.query(place, &sql.timers_due, &params).await?;
    let timer = |row| {
        let answer = Answer::new(row, place);
        Ok(DueTimer { due_at: answer.time(0)?, session: answer.name(1)? })
    };
    rows.iter().map(timer).collect()
}

/// When the first timer is due that is due later than `after`.
pub(crate) async fn next_due(db: &Db, sql: &Sql, after: Timestamp) -> Result<Option<Timestamp>> {
    let place = Place::look("timers");
    let rows = db.query(place, &sql.timers_next, &params![after.as_millis()]).await?;
    rows.first()
        .map(|row| Answer::new(row, place).optional_time(0))
        .transpose()
        .map(Option::flatten)
}

/// The server's time.
pub(crate) async fn now(db: &Db, sql: &Sql) -> Result<Timestamp> {
    let place = Place::look("clock");
    let rows = db.query(place, &sql.clock, &[]).await?;
    let row = rows.first().ok_or_else(|| place.unreadable("there is no time"))?;
    Answer::new(row, place).time(0)
}

/// Where the logs of some sessions stand: head and latest clear.
pub(crate) async fn heads(
    db: &Db,
    sql: &Sql,
    sessions: &[SessionId],
) -> Result<Vec<(SessionId, Index, Index)>> {
    let place = Place::look("streams");
    let names: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
    let rows = db.query(place, &sql.log_heads, &params![names]).await?;
    let head = |row| {
        let answer = Answer::new(row, place);
        Ok((answer.name(0)?, answer.index(1)?, answer.index(2)?))
    };
    rows.iter().map(head).collect()
}
