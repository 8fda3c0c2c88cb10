//! Listings: a session's cursors and dead letters, the sessions, those with work.
//!
//! Listings over all sessions go through the partitions in order. Several are asked at a time, more the
//! further the page has to look.

use std::time::Duration;

use a2_core::outcome::{PendingSession, SessionInfo};
use a2_core::{
    Consumer, Cursor, CursorKey, Cursors, DeadLetters, DispatchState, HeadRef, Index, Page,
    PageToken, Pending, PendingPage, Result, SessionId, Sessions, limits,
};
use fred::types::Resp3Frame as Frame;
use futures_util::future::{join_all, try_join_all};

use crate::args::Args;
use crate::conn::Db;
use crate::error::Place;
use crate::keys::{Keys, PARTITIONS, Partition};
use crate::reply::{self, Fields, Reply};
use crate::script::{self, Script};
use crate::verbs::At;

/// How many more partitions are asked each time that those before had too little.
const WIDER: usize = 4;
/// How often a page of pending sessions asks before it is answered short.
const ROUNDS: usize = 16;

/// A page of dead letters, in head order.
pub(crate) async fn dead_letters(at: At<'_>, page: &Page) -> Result<DeadLetters> {
    const KIND: &str = "dead_letters";
    let after: Option<HeadRef> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let place = Place::read("dead_letters", at.session);
    let mut args = Args::default();
    match &after {
        Some(head) => args.head(head),
        None => args.push(""),
    }
    args.count(page.max_entries());
    let frame = at.run(place, &script::DEAD_LETTERS, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "dead_letters" => {
            let heads = (2..reply.len()).map(|item| reply.list(item)?.dispatched(at.session));
            let heads: Vec<_> = heads.collect::<Result<_>>()?;
            let more = reply.flag(1)?;
            let last = heads.last().filter(|_| more);
            let next = last.map(|last| PageToken::encode(KIND, &last.head));
            Ok(DeadLetters::new(heads, next))
        }
        status => Err(reply.refusal(status)),
    }
}

/// A page of the session's cursors.
pub(crate) async fn cursors(at: At<'_>, page: &Page) -> Result<Cursors> {
    const KIND: &str = "cursors";
    let after: Option<HeadRef> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let place = Place::read("cursors", at.session);
    let mut args = Args::default();
    args.push(after.as_ref().map(listed_name).unwrap_or_default());
    args.count(page.max_entries());
    let frame = at.run(place, &script::CURSORS, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "cursors" => {
            let cursors = (4..reply.len()).map(|item| cursor(&reply.list(item)?));
            let cursors: Vec<Cursor> = cursors.collect::<Result<_>>()?;
            let more = reply.flag(3)?;
            let next = cursors.last().filter(|_| more).map(|last| {
                let index = last.head.unwrap_or_default();
                let spot = HeadRef::new(last.consumer.clone(), last.key.clone(), index);
                PageToken::encode(KIND, &spot)
            });
            Ok(Cursors::new(cursors, reply.index(1)?, reply.index(2)?, next))
        }
        status => Err(reply.refusal(status)),
    }
}

// In the order of the listing.
const LANE: u8 = b'1';
const LOG: u8 = b'2';
const EVENT: u8 = b'3';

/// A cursor's name in the listing.
fn listed_name(spot: &HeadRef) -> Vec<u8> {
    let mut name = spot.consumer.as_str().as_bytes().to_vec();
    name.push(0);
    match &spot.cursor {
        CursorKey::Event => {
            name.push(EVENT);
            name.extend_from_slice(&spot.index.get().to_be_bytes());
        }
        CursorKey::Lane(lane) => {
            name.push(LANE);
            name.extend_from_slice(lane.as_str().as_bytes());
        }
        CursorKey::Log(log) => {
            name.push(LOG);
            name.extend_from_slice(log.as_str().as_bytes());
        }
    }
    name
}

/// A cursor of the listing: its name, position, head, row and error.
fn cursor(reply: &Reply<'_>) -> Result<Cursor> {
    let place = reply.place;
    let name = reply.bytes(0)?;
    let consumer = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let mut fields = Fields::new(name, place);
    let consumer: Consumer = fields.name(consumer)?;
    let (_, kind) = (fields.u8()?, fields.u8()?);
    let key = match kind {
        EVENT => CursorKey::Event,
        kind => reply::key(kind, fields.rest(), place)?,
    };
    let (head, state) = reply.cursor_head(2)?;
    Ok(Cursor::new(consumer, key, reply.index(1)?, head, state))
}

impl Reply<'_> {
    /// A cursor's head (0: idle), and from the row and the error that follow its state.
    pub(crate) fn cursor_head(&self, at: usize) -> Result<(Option<Index>, DispatchState)> {
        let head = Some(self.index(at)?).filter(|head| *head > Index::ZERO);
        let state = match self.optional_bytes(at + 1)? {
            Some(row) => reply::state(row, self.optional_bytes(at + 2)?, self.place)?,
            // It was never claimed.
            None => DispatchState::default(),
        };
        Ok((head, state))
    }
}

/// What an operation on all sessions needs.
#[derive(Clone, Copy)]
pub(crate) struct Everywhere<'a> {
    pub(crate) db: &'a Db,
    pub(crate) keys: &'a Keys,
    /// The time by the clock that replaces the server's.
    pub(crate) now: Option<i64>,
}

impl<'a> Everywhere<'a> {
    pub(crate) fn partitions(&self) -> &'a [Partition] {
        self.keys.partitions()
    }

    /// Runs a script on a partition.
    pub(crate) async fn run(
        &self,
        place: Place<'_>,
        script: &Script,
        partition: &Partition,
        args: Args,
    ) -> Result<Frame> {
        self.db.run(place, script, (partition, partition.timers.clone()), self.now, args).await
    }
}

/// Where a page begins: in which partition, after which session.
type Spot = (usize, String);

/// The partitions from a place on that are asked together.
fn window(from: usize, width: usize) -> std::ops::Range<usize> {
    from.min(PARTITIONS)..from.saturating_add(width).min(PARTITIONS)
}

/// A page of the sessions, partition by partition.
pub(crate) async fn sessions(all: Everywhere<'_>, page: &Page) -> Result<Sessions> {
    const KIND: &str = "sessions";
    let spot: Option<Spot> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let (mut from, mut after) = spot.unwrap_or_default();
    let mut found: Vec<(usize, SessionInfo)> = Vec::new();
    let mut width = 1;
    // One more than asked tells whether there is a next page.
    while from < PARTITIONS && found.len() <= page.max_entries() {
        let wanted = page.max_entries() + 1 - found.len();
        let asked = window(from, width).map(|number| {
            let after = if number == from { after.as_str() } else { "" };
            sessions_in(all, number, after, wanted)
        });
        found.extend(try_join_all(asked).await?.into_iter().flatten());
        (from, after) = (window(from, width).end, String::new());
        width *= WIDER;
    }
    let more = found.len() > page.max_entries();
    found.truncate(page.max_entries());
    let next = found
        .last()
        .filter(|_| more)
        .map(|(number, last)| PageToken::encode(KIND, &(*number, last.session.as_str())));
    Ok(Sessions::new(found.into_iter().map(|(_, info)| info).collect(), next))
}

async fn sessions_in(
    all: Everywhere<'_>,
    number: usize,
    after: &str,
    limit: usize,
) -> Result<Vec<(usize, SessionInfo)>> {
    let place = Place::look("sessions");
    let mut args = Args::default();
    args.push(after);
    args.count(limit);
    let frame = all.run(place, &script::SESSIONS, &all.partitions()[number], args).await?;
    let reply = Reply::new(&frame, place)?;
    let info = |at| -> Result<_> {
        let name: SessionId = reply.name(at)?;
        Ok((number, SessionInfo::new(name, reply.index(at + 1)?, reply.index(at + 2)?)))
    };
    (1..reply.len()).step_by(3).map(info).collect()
}

/// A page of the sessions with work, partition by partition.
pub(crate) async fn pending(all: Everywhere<'_>, pending: &PendingPage) -> Result<Pending> {
    const KIND: &str = "pending";
    let page = pending.which();
    let spot: Option<Spot> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let (mut from, mut after) = spot.unwrap_or_default();
    let mut found: Vec<PendingSession> = Vec::new();
    let (mut width, mut looks) = (1, page.max_entries());
    for _ in 0..ROUNDS {
        let room = page.max_entries() - found.len();
        if from >= PARTITIONS || room == 0 {
            break;
        }
        let parts = window(from, width).map(|number| {
            let after = if number == from { after.as_str() } else { "" };
            pending_in(all, pending, number, after, looks.max(room))
        });
        let parts = try_join_all(parts).await?;
        (after, width) = (String::new(), width * WIDER);
        for part in parts {
            let room = page.max_entries() - found.len();
            let cut = part.found.len() > room;
            if part.found.is_empty() && part.more {
                // What is listed there is mostly others' work.
                looks = (looks * 2).min(limits::PAGE_MAX);
            }
            found.extend(part.found.into_iter().take(room));
            if cut || part.more {
                // The page goes on here: what was asked of those after it was too much.
                let last = found.last().filter(|_| cut);
                after = last.map_or(part.last, |last| last.session.as_str().to_owned());
                width = 1;
                break;
            }
            from += 1;
            if found.len() == page.max_entries() {
                break;
            }
        }
    }
    let spot: Spot = (from, after);
    let next = (spot.0 < PARTITIONS).then(|| PageToken::encode(KIND, &spot));
    Ok(Pending::new(found, next))
}

/// Some of a partition's sessions with work.
struct Part {
    found: Vec<PendingSession>,
    /// There may be more, after this one.
    more: bool,
    last: String,
}

async fn pending_in(
    all: Everywhere<'_>,
    pending: &PendingPage,
    number: usize,
    after: &str,
    limit: usize,
) -> Result<Part> {
    let place = Place::look("pending");
    let mut args = Args::default();
    args.push(after);
    args.count(limit);
    match pending.served_list().entries() {
        None => args.number(-1),
        Some(entries) => {
            args.count(entries.len());
            for entry in entries {
                args.push(entry.consumer().as_str());
            }
        }
    }
    let frame = all.run(place, &script::PENDING, &all.partitions()[number], args).await?;
    let reply = Reply::new(&frame, place)?;
    let session =
        |at| -> Result<_> { Ok(PendingSession::new(reply.name(at)?, reply.time(at + 1)?)) };
    let found = (3..reply.len()).step_by(2).map(session).collect::<Result<_>>()?;
    Ok(Part { found, more: reply.flag(1)?, last: reply.text(2)?.to_owned() })
}

/// Where the logs of some sessions stand: head and latest clear. A partition that cannot tell within this
/// time, because its slot is on its way, does not keep the others waiting.
pub(crate) async fn heads(
    all: Everywhere<'_>,
    sessions: &[SessionId],
    within: Duration,
) -> Vec<(SessionId, Index, Index)> {
    let mut by_partition: Vec<Vec<&SessionId>> = vec![Vec::new(); PARTITIONS];
    for session in sessions {
        by_partition[all.keys.place_of(session.as_str())].push(session);
    }
    let asked = by_partition.iter().enumerate().filter(|(_, sessions)| !sessions.is_empty());
    let heads = asked
        .map(|(number, sessions)| tokio::time::timeout(within, heads_in(all, number, sessions)));
    let told = join_all(heads).await.into_iter().flatten().flatten();
    told.flatten().collect()
}

async fn heads_in(
    all: Everywhere<'_>,
    number: usize,
    sessions: &[&SessionId],
) -> Result<Vec<(SessionId, Index, Index)>> {
    let place = Place::look("streams");
    let mut args = Args::default();
    args.count(sessions.len());
    for session in sessions {
        args.push(session.as_str());
    }
    let frame = all.run(place, &script::HEADS_OF, &all.partitions()[number], args).await?;
    let reply = Reply::new(&frame, place)?;
    let head = |(at, session): (usize, &&SessionId)| {
        Ok(((*session).clone(), reply.index(at * 2 + 1)?, reply.index(at * 2 + 2)?))
    };
    sessions.iter().enumerate().map(head).collect()
}

#[cfg(test)]
mod tests {
    use a2_core::{Lane, LogName};

    use super::*;

    fn spot(cursor: CursorKey, index: u32) -> HeadRef {
        HeadRef::new(Consumer::new("mail").unwrap(), cursor, Index::from(index))
    }

    #[test]
    fn a_cursor_is_listed_by_consumer_kind_and_name() {
        let lane = CursorKey::Lane(Lane::new("a").unwrap());
        let log = CursorKey::Log(LogName::new("b").unwrap());
        assert_eq!(listed_name(&spot(lane, 7)), b"mail\x001a");
        assert_eq!(listed_name(&spot(log, 7)), b"mail\x002b");
        assert_eq!(listed_name(&spot(CursorKey::Event, 258)), b"mail\x003\0\0\0\0\0\0\x01\x02");
    }

    fn text(bytes: &[u8]) -> Frame {
        Frame::BlobString { data: bytes.to_vec().into(), attributes: None }
    }

    fn listed(name: &[u8], position: i64, head: i64) -> Result<Cursor> {
        let number = |data| Frame::Number { data, attributes: None };
        let data = vec![text(name), number(position), number(head), Frame::Null, Frame::Null];
        let frame = Frame::Array { data, attributes: None };
        cursor(&Reply::new(&frame, Place::look("cursors"))?)
    }

    #[test]
    fn a_listed_cursor_reads_back() {
        let lane = CursorKey::Lane(Lane::new("").unwrap());
        for (cursor, position, head) in [(lane, 4, 0), (CursorKey::Event, 6, 7)] {
            let name = listed_name(&spot(cursor.clone(), 7));
            let read = listed(&name, position, head).unwrap();
            assert_eq!((read.consumer.as_str(), &read.key), ("mail", &cursor));
            assert_eq!(read.position, u64::try_from(position).unwrap());
            assert_eq!(read.head, (head > 0).then_some(Index::from(7)));
        }
    }

    #[test]
    fn a_broken_name_is_corrupt() {
        for name in [&b""[..], b"mail", b"mail\0", b"mail\x009x", b"\x001a", b"mail\x001\xff"] {
            assert_eq!(listed(name, 0, 0).unwrap_err().code(), "CORRUPT", "{name:?}");
        }
    }

    #[test]
    fn windows_end_with_the_last_partition() {
        assert_eq!(window(0, 1), 0..1);
        assert_eq!(window(250, 16), 250..256);
        assert_eq!(window(300, 4), 256..256);
    }
}
