//! Writes that concern one session and are rare enough to go one at a time.

use a2_core::{
    Appended, Clear, Cleared, Error, FireTimers, PutSnapshots, Reclaimed, Redrive, RedriveAction,
    Redriven, ReducerName, Result, Schedule, Scheduled, SessionId, SnapshotsPut, TimerKey,
    Unscheduled, WakeLog, WokenLog,
};
use tokio_postgres::Row;

use crate::args::{HeadArgs, ServedArgs, index};
use crate::conn::Db;
use crate::error::Place;
use crate::reads::woken;
use crate::rows::{self, Answer, column};
use crate::statements::Sql;
use crate::values::{JsonText, end, int, params};
use crate::verbs::{cause_text, refusal};

/// The first row of an answer that always has one.
fn first<'a>(rows: &'a [Row], place: Place<'a>) -> Result<Answer<'a>> {
    let row = rows.first().ok_or_else(|| place.unreadable("there is no answer"))?;
    Ok(Answer::new(row, place))
}

/// Retries or skips a dead letter.
pub(crate) async fn redrive(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    redrive: &Redrive,
    now: Option<i64>,
) -> Result<Redriven> {
    let place = Place::write("redrive", session);
    let head = redrive.head();
    let served = ServedArgs::new(redrive.served_list());
    let params = params![
        now,
        session.as_str(),
        head.consumer.as_str(),
        crate::args::kind(&head.cursor),
        head.cursor.name(),
        index(head.index),
        redrive.action() == RedriveAction::Skip,
        served.consumer,
        served.log,
        served.types_end,
        served.types,
    ];
    let rows = db.query(place, &sql.redrive, &params).await?;
    let answer = first(&rows, place)?;
    match answer.status()? {
        "redriven" => Ok(Redriven::new(true, answer.pending()?)),
        "not_dead" => Ok(Redriven::new(false, answer.pending()?)),
        status => Err(answer.unknown_status(status)),
    }
}

/// Brings a log cursor up to date.
pub(crate) async fn wake_log(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    log: &WakeLog,
) -> Result<WokenLog> {
    let place = Place::write("wake_log", session);
    let declaration = log.declaration();
    let types = declaration.log_types().as_only();
    let types: Option<Vec<&str>> =
        types.map(|types| types.iter().map(|event_type| event_type.as_str()).collect());
    let params = params![
        session.as_str(),
        log.consumer().as_str(),
        declaration.name().as_str(),
        types,
        declaration.is_backfill(),
    ];
    let rows = db.query(place, &sql.wake_log, &params).await?;
    let answer = first(&rows, place)?;
    let cursor = woken(&answer, log.consumer(), declaration.name())?;
    Ok(WokenLog::new(cursor, answer.index(column::HEAD)?, answer.index(column::CLEAR_INDEX)?))
}

/// Keeps snapshots.
pub(crate) async fn put_snapshots(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    reducer: &ReducerName,
    writes: &PutSnapshots,
) -> Result<SnapshotsPut> {
    let place = Place::write("put_snapshots", session);
    let writes = writes.writes();
    let indexes: Vec<i64> = writes.iter().map(|write| index(write.index())).collect();
    let states: Vec<JsonText<'_>> =
        writes.iter().map(|write| JsonText(write.state().as_str())).collect();
    let (mut pins, mut pinned) = (HeadArgs::default(), Vec::new());
    for (number, write) in (1..).zip(writes) {
        for head in write.pinned_by() {
            pinned.push(number);
            pins.push(head, 0);
        }
    }
    let pinned: Option<Vec<i32>> = (!pinned.is_empty()).then_some(pinned);
    let params = params![
        session.as_str(),
        reducer.as_str(),
        indexes,
        states,
        pinned,
        pins.consumer,
        pins.kind,
        pins.name,
        pins.idx,
    ];
    let rows = db.query(place, &sql.put_snapshots, &params).await?;
    let answer = first(&rows, place)?;
    match answer.get::<&str>(0)? {
        "done" => {
            let stored: Vec<i64> = answer.get(2)?;
            let stored = stored.into_iter().map(|at| {
                let at = u64::try_from(at).map_err(|error| place.unreadable(error))?;
                a2_core::Index::new(at).map_err(|error| place.unreadable(error))
            });
            Ok(SnapshotsPut::new(stored.collect::<Result<_>>()?, answer.optional_index(3)?))
        }
        "above_head" => {
            let number = answer.number(1)?.saturating_sub(1);
            let head = answer.index(4)?;
            Err(Error::invalid(
                format!("writes[{number}].index"),
                format!("must be at most the log's head, {head}"),
            ))
        }
        status => Err(answer.unknown_status(status)),
    }
}

/// Starts a new lifetime.
pub(crate) async fn clear(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    clear: &Clear,
    now: Option<i64>,
) -> Result<Cleared> {
    let place = Place::write("clear", session);
    let cause = clear.clear_cause().map(cause_text).transpose()?;
    let params = params![
        now,
        session.as_str(),
        clear.marker_id().as_str(),
        clear.last_index().map(index),
        cause,
    ];
    let rows = db.query(place, &sql.clear, &params).await?;
    let answer = first(&rows, place)?;
    let cleared = match answer.status()? {
        "cleared" | "already" => true,
        "not_last" => false,
        status => return Err(refusal(&answer, status)),
    };
    Ok(Cleared::new(cleared, answer.index(column::HEAD)?, answer.index(column::CLEAR_INDEX)?))
}

/// Deletes some of what lies below the marker.
pub(crate) async fn reclaim(db: &Db, sql: &Sql, session: &SessionId) -> Result<Reclaimed> {
    let place = Place::write("reclaim", session);
    let rows = db.query(place, &sql.reclaim, &params![session.as_str()]).await?;
    let answer = first(&rows, place)?;
    Ok(Reclaimed::new(answer.number(0)?, answer.get(1)?))
}

/// Sets a timer.
pub(crate) async fn schedule(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    timer: &Schedule,
    now: Option<i64>,
) -> Result<Scheduled> {
    let place = Place::write("schedule", session);
    let event = timer.event();
    let targets = event.target_list();
    let consumers: Vec<&str> = targets.iter().map(|target| target.consumer().as_str()).collect();
    let lanes: Vec<Option<&str>> =
        targets.iter().map(|target| target.lane_name().map(|lane| lane.as_str())).collect();
    let params = params![
        now,
        session.as_str(),
        timer.key().as_str(),
        int(timer.after().as_millis()),
        timer.origin().map(index),
        event.event_id().map_or("", |id| id.as_str()),
        event.event_type().as_str(),
        JsonText(event.payload().as_str()),
        (!consumers.is_empty()).then_some(consumers),
        (!lanes.is_empty()).then_some(lanes),
    ];
    let rows = db.query(place, &sql.schedule, &params).await?;
    let answer = first(&rows, place)?;
    match answer.status()? {
        "scheduled" => Ok(Scheduled::new(answer.time(column::AT)?)),
        status => Err(refusal(&answer, status)),
    }
}

/// Removes a timer.
pub(crate) async fn unschedule(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    key: &TimerKey,
) -> Result<Unscheduled> {
    let place = Place::write("unschedule", session);
    let rows = db.query(place, &sql.unschedule, &params![session.as_str(), key.as_str()]).await?;
    Ok(Unscheduled::new(first(&rows, place)?.get(0)?))
}

/// Appends the events of due timers.
pub(crate) async fn fire_timers(
    db: &Db,
    sql: &Sql,
    session: &SessionId,
    fire: &FireTimers,
    now: Option<i64>,
) -> Result<Appended> {
    let place = Place::write("fire_timers", session);
    let served = ServedArgs::new(fire.served_list());
    let params = params![
        now,
        session.as_str(),
        end(fire.max_timers()),
        served.consumer,
        served.log,
        served.backfill,
        served.types_end,
        served.types,
    ];
    let rows = db.query(place, &sql.fire_timers, &params).await?;
    let answer = first(&rows, place)?;
    match answer.status()? {
        "fired" => {
            Ok(Appended::new(rows::events(&rows, place, session)?, answer.pending()?, false))
        }
        status => Err(refusal(&answer, status)),
    }
}
