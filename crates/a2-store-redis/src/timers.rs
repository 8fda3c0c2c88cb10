//! Timers: those of a session, and which are due in any.

use a2_core::live::{DueTimer, ServerClock};
use a2_core::outcome::Timer;
use a2_core::{
    Appended, CursorKey, EventId, EventType, FireTimers, Index, Json, NewEvent, Page, PageToken,
    Result, Schedule, Scheduled, SessionId, Target, TimerKey, TimerPage, Timestamp, Unscheduled,
};
use futures_util::future::try_join_all;

use crate::args::{self, Args};
use crate::batch::Batch;
use crate::error::Place;
use crate::keys::Partition;
use crate::listing::Everywhere;
use crate::reply::{self, Fields, Reply};
use crate::script;
use crate::verbs::At;

/// Sets a timer.
pub(crate) async fn schedule(at: At<'_>, timer: &Schedule) -> Result<Scheduled> {
    let place = Place::write("schedule", at.session);
    let mut args = Args::default();
    args.push(timer.key().as_str());
    args.number(timer.after().as_millis());
    args.optional(timer.origin().map(Index::get));
    args.event(timer.event());
    let frame = at.run(place, &script::SCHEDULE, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "scheduled" => Ok(Scheduled::new(reply.time(1)?)),
        status => Err(reply.refusal(status)),
    }
}

/// Removes a timer.
pub(crate) async fn unschedule(at: At<'_>, key: &TimerKey) -> Result<Unscheduled> {
    let place = Place::write("unschedule", at.session);
    let mut args = Args::default();
    args.push(key.as_str());
    let frame = at.run(place, &script::UNSCHEDULE, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "unscheduled" => Ok(Unscheduled::new(reply.flag(1)?)),
        status => Err(reply.refusal(status)),
    }
}

/// Appends the events of due timers.
pub(crate) async fn fire(at: At<'_>, fire: &FireTimers) -> Result<Appended> {
    let place = Place::write("fire_timers", at.session);
    let mut args = Args::default();
    Batch::new(&[], fire.served_list()).write(&mut args, 1, |args| args.count(fire.max_timers()));
    let frame = at.run(place, &script::FIRE_TIMERS, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "fired" => Ok(Appended::new(reply.list(5)?.events(at.session)?, reply.flag(4)?, false)),
        status => Err(reply.refusal(status)),
    }
}

/// A page of the session's timers, by key.
pub(crate) async fn list(at: At<'_>, page: &Page) -> Result<TimerPage> {
    const KIND: &str = "timers";
    let after: Option<TimerKey> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let place = Place::read("timers", at.session);
    let mut args = Args::default();
    args.push(after.as_ref().map_or("", TimerKey::as_str));
    args.count(page.max_entries());
    let frame = at.run(place, &script::TIMERS, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "timers" => {
            let timer = |item| timer(reply.name(item)?, reply.bytes(item + 1)?, place);
            let timers = (2..reply.len()).step_by(2).map(timer).collect::<Result<Vec<_>>>()?;
            let more = reply.flag(1)?;
            let next = timers.last().filter(|_| more);
            let next = next.map(|last| PageToken::encode(KIND, &last.key));
            Ok(TimerPage::new(timers, next))
        }
        status => Err(reply.refusal(status)),
    }
}

/// A timer by its record: when it is due, its origin (-1: none), the sizes of its event's id, type and
/// payload, the number of targets; these, and each target after its size.
fn timer(key: TimerKey, record: &[u8], place: Place<'_>) -> Result<Timer> {
    let mut fields = Fields::new(record, place);
    let (due_at, origin) = (fields.time()?, fields.time()?.as_millis());
    let (id, event_type, payload) = (fields.u16()?, fields.u16()?, fields.u32()?);
    let targets = fields.u16()?;
    let unreadable = |error| place.unreadable(error);
    let id: EventId = fields.name(id)?;
    let event_type: EventType = fields.name(event_type)?;
    let payload = Json::from_stored(reply::text(fields.take(payload)?, place)?);
    let event = NewEvent::from_json(event_type, payload).and_then(|event| event.id(id));
    let mut event = event.map_err(unreadable)?;
    for _ in 0..targets {
        let size = fields.u16()?;
        event = event.target(target(fields.take(size)?, place)?);
    }
    let origin = u64::try_from(origin).ok().map(Index::new).transpose().map_err(unreadable)?;
    Ok(Timer::new(key, due_at, event, origin))
}

/// A target: kind, consumer, U+0000, lane.
fn target(bytes: &[u8], place: Place<'_>) -> Result<Target> {
    let (kind, names) = bytes.split_first().ok_or_else(|| place.unreadable("a target is empty"))?;
    let mut parts = names.splitn(2, |byte| *byte == 0);
    let consumer = reply::text(parts.next().unwrap_or_default(), place)?;
    let target = match reply::key(*kind, parts.next().unwrap_or_default(), place)? {
        CursorKey::Lane(lane) => Target::lane(consumer, lane),
        CursorKey::Event => Target::event(consumer),
        CursorKey::Log(_) => return Err(place.unreadable("a target is no log")),
    };
    target.map_err(|error| place.unreadable(error))
}

/// The sessions with timers due in a range, in order of due time and name.
pub(crate) async fn due(
    all: Everywhere<'_>,
    (from, through): (Timestamp, Timestamp),
    after: Option<&SessionId>,
    limit: usize,
) -> Result<Vec<DueTimer>> {
    let asked = all.partitions().iter().map(|partition| {
        let after = after.map_or("", SessionId::as_str).to_owned();
        due_in(all, partition, (args::when(from), after), args::when(through), limit)
    });
    let mut found: Vec<DueTimer> = try_join_all(asked).await?.into_iter().flatten().collect();
    found.sort_unstable();
    found.truncate(limit);
    Ok(found)
}

async fn due_in(
    all: Everywhere<'_>,
    partition: &Partition,
    mut spot: (i64, String),
    through: i64,
    limit: usize,
) -> Result<Vec<DueTimer>> {
    let place = Place::look("timers");
    let mut found = Vec::new();
    loop {
        let mut args = Args::default();
        args.number(spot.0);
        args.push(&spot.1);
        args.number(through);
        args.count(limit - found.len());
        let frame = all.run(place, &script::TIMERS_DUE, partition, args).await?;
        let reply = Reply::new(&frame, place)?;
        for at in (2..reply.len()).step_by(2) {
            found.push(DueTimer { due_at: reply.time(at)?, session: reply.name(at + 1)? });
        }
        if !reply.flag(1)? || found.len() >= limit {
            return Ok(found);
        }
        // The script looked at as much as one may: it removed what it did not answer.
        if let Some(last) = found.last() {
            spot = (last.due_at.as_millis(), last.session.as_str().to_owned());
        }
    }
}

/// When the first timer is due that is due later than `after`; tells the clock what the server's is.
pub(crate) async fn next(
    all: Everywhere<'_>,
    after: Timestamp,
    clock: &ServerClock,
) -> Result<Option<Timestamp>> {
    let asked = all.partitions().iter().map(|partition| next_in(all, partition, after, clock));
    Ok(try_join_all(asked).await?.into_iter().flatten().min())
}

async fn next_in(
    all: Everywhere<'_>,
    partition: &Partition,
    after: Timestamp,
    clock: &ServerClock,
) -> Result<Option<Timestamp>> {
    let place = Place::look("timers");
    loop {
        let mut args = Args::default();
        args.number(args::when(after));
        let frame = all.run(place, &script::TIMERS_NEXT, partition, args).await?;
        let reply = Reply::new(&frame, place)?;
        clock.heard(reply.time(1)?);
        if !reply.is_nothing(2)? {
            return reply.time(2).map(Some);
        }
        if !reply.flag(3)? {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Due at 1,500, origin 7, id `i`, type `ty`, payload `[1]`, for a lane and an event cursor.
    const RECORD: &[u8] =
        b"\0\0\0\0\0\0\x05\xdc\0\0\0\0\0\0\0\x07\0\x01\0\x02\0\0\0\x03\0\x02ity[1]\
        \0\x041c\0l\0\x030d\0";

    fn read(record: &[u8]) -> Result<Timer> {
        timer(TimerKey::new("k").unwrap(), record, Place::look("timers"))
    }

    #[test]
    fn a_timer_reads_as_it_was_set() {
        let timer = read(RECORD).unwrap();
        assert_eq!((timer.due_at.as_millis(), timer.origin_index), (1_500, Some(Index::from(7))));
        let event = NewEvent::from_json("ty", Json::parse("[1]").unwrap()).unwrap();
        let targets = [Target::lane("c", "l").unwrap(), Target::event("d").unwrap()];
        assert_eq!(timer.event, event.id("i").unwrap().targets(targets));
    }

    #[test]
    fn a_timer_without_an_origin() {
        let mut record = RECORD.to_vec();
        record[8..16].fill(0xff);
        assert_eq!(read(&record).unwrap().origin_index, None);
    }

    #[test]
    fn a_broken_record_is_corrupt() {
        for end in 0..RECORD.len() {
            assert_eq!(read(&RECORD[..end]).unwrap_err().code(), "CORRUPT", "{end} bytes");
        }
    }
}
