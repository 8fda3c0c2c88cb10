//! Listings over all sessions: which there are, which have work, which timers are due.

use a2_core::engine::{self, LogState};
use a2_core::live::DueTimer;
use a2_core::{
    Page, PageToken, Pending, PendingPage, PendingSession, Result, SessionId, SessionInfo,
    Sessions, Timestamp,
};
use rusqlite::params;

use crate::rows::{self, limit_param};
use crate::statements as sql;
use crate::tx::{At, Tx};

const SESSIONS: &str = "sessions";
const PENDING: &str = "pending";
/// Sessions that a page of pending ones looks at for each that it may hold: those whose rows are of
/// an earlier lifetime, or of consumers that are not served, count too.
const LOOKED_AT: usize = 8;

/// A page of the sessions that were appended to, by name.
pub(crate) fn sessions(tx: &Tx<'_>, page: &Page) -> Result<Sessions> {
    let after: Option<SessionId> = page.token().map(|token| token.decode(SESSIONS)).transpose()?;
    let after = after.as_ref().map_or("", SessionId::as_str);
    let limit = page.max_entries() + 1;
    let mut found =
        rows::all(tx.conn, sql::SESSIONS_PAGE, params![after, limit_param(limit)], |row| {
            Ok(SessionInfo::new(rows::name(row, 0)?, rows::index(row, 2)?, rows::index(row, 1)?))
        })
        .map_err(|error| tx.place("sessions").error(error))?;
    let more = found.len() == limit;
    found.truncate(page.max_entries());
    let next = found.last().filter(|_| more).map(|last| PageToken::encode(SESSIONS, &last.session));
    // One that has only log cursors or timers so far is none yet.
    found.retain(|info| info.head.get() > 0);
    Ok(Sessions::new(found, next))
}

/// A page of the sessions with work.
pub(crate) fn pending(tx: &Tx<'_>, request: &PendingPage, now: Timestamp) -> Result<Pending> {
    let page = request.which();
    let mut sid: i64 =
        page.token().map(|token| token.decode(PENDING)).transpose()?.unwrap_or(i64::MIN);
    let mut found = Vec::new();
    for _ in 0..page.max_entries() * LOOKED_AT {
        let Some(next) = next_with_work(tx, sid)? else { return Ok(Pending::new(found, None)) };
        sid = next;
        let Some((session, at)) = session_of(tx, sid)? else { continue };
        let mut tables = tx.session(&session, PENDING);
        tables.set(at);
        let since = engine::pending_since(&mut tables, now, request.served_list())?;
        drop(tables);
        if let Some(not_before) = since {
            found.push(PendingSession::new(session, not_before));
        }
        if found.len() == page.max_entries() {
            break;
        }
    }
    Ok(Pending::new(found, Some(PageToken::encode(PENDING, &sid))))
}

fn next_with_work(tx: &Tx<'_>, after: i64) -> Result<Option<i64>> {
    let first = |sql| rows::one(tx.conn, sql, [after], |row| row.get::<_, i64>(0));
    let next = || Ok(first(sql::LIVE_SESSION)?.into_iter().chain(first(sql::TIMER_SESSION)?).min());
    next().map_err(|error| tx.place(PENDING).error(error))
}

fn session_of(tx: &Tx<'_>, sid: i64) -> Result<Option<(SessionId, At)>> {
    rows::one(tx.conn, sql::SESSION_BY_SID, [sid], |row| {
        let log = LogState { clear_index: rows::index(row, 1)?, head: rows::index(row, 2)? };
        Ok((rows::name(row, 0)?, At { sid, log }))
    })
    .map_err(|error| tx.place(PENDING).error(error))
}

/// Timers of all sessions that are due from `from` (there only of sessions after `after`) through
/// `through`.
pub(crate) fn due_timers(
    tx: &Tx<'_>,
    from: Timestamp,
    after: Option<&SessionId>,
    through: Timestamp,
    limit: usize,
) -> Result<Vec<DueTimer>> {
    let after = after.map_or("", SessionId::as_str);
    let params = params![from.as_millis(), after, through.as_millis(), limit_param(limit)];
    rows::all(tx.conn, sql::DUE_SESSIONS, params, |row| {
        Ok(DueTimer { due_at: rows::time(row, 0)?, session: rows::name(row, 1)? })
    })
    .map_err(|error| tx.place("due timers").error(error))
}

/// When the first timer is due after `after`.
pub(crate) fn next_due(tx: &Tx<'_>, after: Timestamp) -> Result<Option<Timestamp>> {
    rows::one(tx.conn, sql::DUE_NEXT, [after.as_millis()], |row| rows::time(row, 0))
        .map_err(|error| tx.place("due timers").error(error))
}
