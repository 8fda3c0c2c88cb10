//! What the scripts answer, read as the model's values.
//!
//! A value that does not read as what it must be is `CORRUPT`: only the store writes its keys.

use std::time::Duration;

use a2_core::outcome::{Busy, Claimed};
use a2_core::{
    Cause, Claim, Consumer, CursorKey, DispatchState, DispatchedHead, Error, ErrorKind, Event,
    EventId, HeadRef, Holder, Index, Json, Lane, LogName, Result, SessionId, Timestamp,
};
use fred::types::Resp3Frame as Frame;

use crate::error::Place;

/// A script's answer: an array, mostly after a status.
pub(crate) struct Reply<'a> {
    items: &'a [Frame],
    pub(crate) place: Place<'a>,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(frame: &'a Frame, place: Place<'a>) -> Result<Self> {
        match frame {
            Frame::Array { data, .. } => Ok(Self { items: data, place }),
            _ => Err(place.unreadable("the answer is no list")),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    fn get(&self, at: usize) -> Result<&'a Frame> {
        self.items.get(at).ok_or_else(|| self.place.unreadable("the answer is short"))
    }

    /// A list within the list.
    pub(crate) fn list(&self, at: usize) -> Result<Self> {
        Self::new(self.get(at)?, self.place)
    }

    /// The same, or none where there is nothing.
    pub(crate) fn optional_list(&self, at: usize) -> Result<Option<Self>> {
        match self.get(at)? {
            Frame::Null => Ok(None),
            frame => Self::new(frame, self.place).map(Some),
        }
    }

    /// Whether there is nothing.
    pub(crate) fn is_nothing(&self, at: usize) -> Result<bool> {
        Ok(matches!(self.get(at)?, Frame::Null))
    }

    /// Bytes, or none where there is nothing.
    pub(crate) fn optional_bytes(&self, at: usize) -> Result<Option<&'a [u8]>> {
        match self.get(at)? {
            Frame::BlobString { data, .. } | Frame::SimpleString { data, .. } => Ok(Some(data)),
            Frame::Null => Ok(None),
            _ => Err(self.place.unreadable("the answer holds no text where there must be one")),
        }
    }

    pub(crate) fn bytes(&self, at: usize) -> Result<&'a [u8]> {
        let bytes = self.optional_bytes(at)?;
        bytes.ok_or_else(|| {
            self.place.unreadable("the answer holds nothing where there must be text")
        })
    }

    pub(crate) fn text(&self, at: usize) -> Result<&'a str> {
        text(self.bytes(at)?, self.place)
    }

    pub(crate) fn number(&self, at: usize) -> Result<i64> {
        match self.get(at)? {
            Frame::Number { data, .. } => Ok(*data),
            _ => self.text(at)?.parse().map_err(|error| self.place.unreadable(error)),
        }
    }

    pub(crate) fn count(&self, at: usize) -> Result<u64> {
        u64::try_from(self.number(at)?).map_err(|error| self.place.unreadable(error))
    }

    pub(crate) fn index(&self, at: usize) -> Result<Index> {
        Index::new(self.count(at)?).map_err(|error| self.place.unreadable(error))
    }

    pub(crate) fn time(&self, at: usize) -> Result<Timestamp> {
        Ok(Timestamp::from_millis(self.number(at)?))
    }

    pub(crate) fn flag(&self, at: usize) -> Result<bool> {
        Ok(self.number(at)? != 0)
    }

    /// The first item: what came of it.
    pub(crate) fn status(&self) -> Result<&'a str> {
        self.text(0)
    }

    /// A name, or whatever else is checked when it is made.
    pub(crate) fn name<T>(&self, at: usize) -> Result<T>
    where
        T: TryFrom<&'a str, Error = Error>,
    {
        T::try_from(self.text(at)?).map_err(|error| self.place.unreadable(error))
    }

    /// The error of a status that several scripts answer.
    pub(crate) fn refusal(&self, status: &str) -> Error {
        let kind = || -> Result<ErrorKind> {
            Ok(match status {
                "partial_duplicate" => {
                    let ids = self.list(1)?;
                    let existing = (0..ids.len()).map(|at| ids.name::<EventId>(at));
                    ErrorKind::PartialDuplicateBatch { existing: existing.collect::<Result<_>>()? }
                }
                "session_cleared" => ErrorKind::SessionCleared { clear_index: self.index(2)? },
                "superseded_attempt" => ErrorKind::SupersededAttempt,
                // The rule's one text is the index's own.
                "full" => match Index::MAX.plus(1) {
                    Err(error) => return Err(error),
                    Ok(_) => return Err(self.unknown_status(status)),
                },
                "corrupt" => return Err(self.place.missing(self.index(1)?)),
                _ => return Err(self.unknown_status(status)),
            })
        };
        kind().map_or_else(|error| error, Error::from)
    }

    /// A status that the script does not answer.
    pub(crate) fn unknown_status(&self, status: &str) -> Error {
        self.place.unreadable(format_args!("the status {status:?} is not known"))
    }

    /// The events that the list consists of.
    pub(crate) fn events(&self, session: &SessionId) -> Result<Vec<Event>> {
        (0..self.len()).map(|at| event(self.bytes(at)?, session, self.place)).collect()
    }

    /// What a claim found.
    pub(crate) fn claim(&self, session: &SessionId) -> Result<Claim> {
        match self.status()? {
            "claimed" => {
                let heads = (3..self.len()).map(|at| self.list(at)?.dispatched(session));
                let heads = heads.collect::<Result<_>>()?;
                Ok(Claim::Claimed(Claimed::new(heads, self.index(1)?, self.index(2)?)))
            }
            "busy" => Ok(Claim::Busy(Busy::new(Duration::from_millis(self.count(1)?)))),
            "settled" => Ok(Claim::Settled),
            status => Err(self.refusal(status)),
        }
    }

    /// A head with its event, state and run: its name, the event, the row, the error, the run.
    pub(crate) fn dispatched(&self, session: &SessionId) -> Result<DispatchedHead> {
        let head = head(self.bytes(0)?, self.place)?;
        let event = event(self.bytes(1)?, session, self.place)?;
        let state = state(self.bytes(2)?, self.optional_bytes(3)?, self.place)?;
        let mut dispatched = DispatchedHead::new(head, event, state);
        if self.len() > 4 {
            dispatched.run = self.list(4)?.events(session)?;
        }
        Ok(dispatched)
    }
}

/// Stored bytes as the text that they must be.
pub(crate) fn text<'a>(bytes: &'a [u8], place: Place<'_>) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|error| place.unreadable(error))
}

/// Takes numbers and names off the front of stored bytes.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    place: Place<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8], place: Place<'a>) -> Self {
        Self { bytes, place }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            return Err(self.place.unreadable("what is stored is cut short"));
        };
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, place) = (self.take(N)?, self.place);
        taken.try_into().map_err(|error| place.unreadable(error))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<usize> {
        Ok(u16::from_be_bytes(self.array()?).into())
    }

    pub(crate) fn u32(&mut self) -> Result<usize> {
        let number = u32::from_be_bytes(self.array()?);
        usize::try_from(number).map_err(|error| self.place.unreadable(error))
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn index(&mut self) -> Result<Index> {
        Index::new(self.u64()?).map_err(|error| self.place.unreadable(error))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp> {
        Ok(Timestamp::from_millis(i64::from_be_bytes(self.array()?)))
    }

    /// A name of this many bytes.
    pub(crate) fn name<T>(&mut self, count: usize) -> Result<T>
    where
        T: TryFrom<&'a str, Error = Error>,
    {
        let place = self.place;
        T::try_from(text(self.take(count)?, place)?).map_err(|error| place.unreadable(error))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.bytes
    }
}

/// An entry of a log with its payload.
pub(crate) fn event(entry: &[u8], session: &SessionId, place: Place<'_>) -> Result<Event> {
    let mut fields = Fields::new(entry, place);
    let (index, at) = (fields.index()?, fields.time()?);
    let (id, event_type, cause) = (fields.u16()?, fields.u16()?, fields.u32()?);
    let payload = fields.u32()?;
    let (id, event_type) = (fields.name(id)?, fields.name(event_type)?);
    let cause = match fields.take(cause)? {
        [] => None,
        bytes => Some(self::cause(bytes, place)?),
    };
    let rest = fields.rest();
    if rest.len() != payload {
        return Err(place.unreadable(format_args!("the payload of {index} has another size")));
    }
    let payload = Json::from_stored(text(rest, place)?);
    Ok(Event::new(session.clone(), index, id, event_type, payload, at, cause))
}

fn cause(bytes: &[u8], place: Place<'_>) -> Result<Cause> {
    let mut fields = Fields::new(bytes, place);
    let attempt = fields.u64()?;
    Ok(Cause::new(head(fields.rest(), place)?, attempt))
}

/// A head by its name.
pub(crate) fn head(name: &[u8], place: Place<'_>) -> Result<HeadRef> {
    let mut fields = Fields::new(name, place);
    let kind = fields.u8()?;
    let names = fields.take(name.len().saturating_sub(10))?;
    let mut parts = names.splitn(2, |byte| *byte == 0);
    let (consumer, cursor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (end, index) = (fields.u8()?, fields.index()?);
    if end != 0 {
        return Err(place.unreadable("a head's name is broken"));
    }
    let consumer =
        Consumer::new(text(consumer, place)?).map_err(|error| place.unreadable(error))?;
    Ok(HeadRef::new(consumer, key(kind, cursor, place)?, index))
}

/// A cursor's key by its kind and name.
pub(crate) fn key(kind: u8, name: &[u8], place: Place<'_>) -> Result<CursorKey> {
    let name = text(name, place)?;
    match kind {
        b'0' => Ok(CursorKey::Event),
        b'1' => Lane::new(name).map(CursorKey::Lane).map_err(|error| place.unreadable(error)),
        b'2' => LogName::new(name).map(CursorKey::Log).map_err(|error| place.unreadable(error)),
        _ => Err(place.unreadable("a cursor's kind is not known")),
    }
}

/// A head's row; its error stands beside it.
pub(crate) fn state(row: &[u8], error: Option<&[u8]>, place: Place<'_>) -> Result<DispatchState> {
    const DEAD: u8 = 2;
    let mut fields = Fields::new(row, place);
    let (status, flags) = (fields.u8()?, fields.u8()?);
    let mut state = DispatchState::default();
    state.attempt_count = fields.u64()?;
    let (first, last, expires) = (fields.time()?, fields.time()?, fields.time()?);
    state.failure_count = fields.u64()?;
    let (failed_at, failed_attempt) = (fields.time()?, fields.u64()?);
    let dead_at = fields.time()?;
    let holder = fields.rest();
    if state.attempt_count > 0 {
        (state.first_claimed_at, state.last_claimed_at) = (Some(first), Some(last));
    }
    if flags & 1 != 0 {
        let holder = Holder::new(text(holder, place)?).map_err(|error| place.unreadable(error))?;
        state.claim_holder = Some(holder);
    }
    state.claim_expires_at = (flags & 2 != 0).then_some(expires);
    if failed_attempt > 0 {
        (state.last_failed_at, state.last_failed_attempt) = (Some(failed_at), Some(failed_attempt));
    }
    state.last_error = error.map(|error| text(error, place).map(str::to_owned)).transpose()?;
    state.failed_at = (status == DEAD).then_some(dead_at);
    Ok(state)
}
