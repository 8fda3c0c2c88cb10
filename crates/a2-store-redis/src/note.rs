//! What the scripts tell: bytes, as `lua/lib/finish.lua`, `schedule.lua` and `set_presence.lua` write
//! them.

use std::collections::BTreeMap;

use a2_core::{Event, Field, Index, Json, Namespace, PresencePatch, Result, SessionId, Timestamp};

use crate::error::Place;
use crate::reply::{self, Fields};

/// What was told.
#[derive(Debug, PartialEq)]
pub(crate) enum Note {
    /// Events up to this index were appended; the small ones are here, if they all are.
    Appended { session: SessionId, head: Index, events: Vec<Event> },
    /// A head of the session may be claimable.
    Hint(SessionId),
    /// A timer was set.
    Timer(Timestamp),
    /// A namespace was written to.
    Presence(Box<Changed>),
}

/// A change of presence.
#[derive(Debug, PartialEq)]
pub(crate) struct Changed {
    pub(crate) namespace: Namespace,
    pub(crate) patch: PresencePatch,
    pub(crate) expires_at: Timestamp,
    /// A field that did not change goes sooner than before.
    pub(crate) sooner: bool,
    /// Some values were too long to be told.
    pub(crate) cut: bool,
}

/// Bytes that name a store.
pub(crate) const SOURCE: usize = 16;

/// A store's name as patches carry it.
pub(crate) fn source_text(source: &[u8]) -> String {
    uuid::Uuid::from_slice(source).unwrap_or_default().to_string()
}

/// Reads what was told, and by whom.
pub(crate) fn read(bytes: &[u8]) -> Result<(&[u8], Note)> {
    let place = Place::look("a message");
    let mut fields = Fields::new(bytes, place);
    let kind = fields.u8()?;
    let source = fields.take(SOURCE)?;
    let note = match kind {
        b'a' => appended(fields, place)?,
        b'h' => {
            fields.take(20)?;
            let name = fields.rest();
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            Note::Hint(Fields::new(name, place).name(end)?)
        }
        b't' => Note::Timer(fields.time()?),
        b'p' => Note::Presence(Box::new(changed(source, fields, place)?)),
        _ => return Err(place.unreadable("its kind is not known")),
    };
    Ok((source, note))
}

fn appended(mut fields: Fields<'_>, place: Place<'_>) -> Result<Note> {
    let (_, first, count) = (fields.u64()?, fields.u64()?, fields.u32()?);
    let head = Index::new((first + count as u64).saturating_sub(1))?;
    let rest = fields.rest();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let mut rest = Fields::new(rest, place);
    let session: SessionId = rest.name(end)?;
    rest.u8()?;
    let mut events = Vec::new();
    while !rest.is_empty() {
        let size = rest.u32()?;
        events.push(reply::event(rest.take(size)?, &session, place)?);
    }
    Ok(Note::Appended { session, head, events })
}

fn changed(source: &[u8], mut fields: Fields<'_>, place: Place<'_>) -> Result<Changed> {
    let (at, expires_at, seen) = (fields.time()?, fields.time()?, fields.time()?);
    let sooner = fields.u8()? != 0;
    let (namespace, participant, count) = (fields.u16()?, fields.u16()?, fields.u16()?);
    let (namespace, participant) = (fields.name(namespace)?, fields.name(participant)?);
    let seen = u64::try_from(seen.as_millis()).ok().map(Index::new).transpose()?;
    let (mut values, mut cut) = (BTreeMap::new(), false);
    for _ in 0..count {
        let (name, size) = (fields.u16()?, fields.i32()?);
        let field: Field = fields.name(name)?;
        let value = match usize::try_from(size) {
            Ok(size) => Some(Json::from_stored(reply::text(fields.take(size)?, place)?)),
            Err(_) => {
                cut |= size < -1;
                None
            }
        };
        values.insert(field, value);
    }
    let patch = PresencePatch::new(participant, seen, at, source_text(source), values);
    Ok(Changed { namespace, patch, expires_at, sooner, cut })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_short_is_refused() {
        for bytes in
            [&b""[..], b"a", b"a0123456789abcdef", b"x0123456789abcdef", b"p0123456789abcdef"]
        {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_hint_names_its_session() {
        let mut bytes = b"h0123456789abcdef".to_vec();
        bytes.extend([0; 20]);
        bytes.extend(b"order-17\0");
        let (source, note) = read(&bytes).unwrap();
        assert_eq!(source, b"0123456789abcdef");
        assert_eq!(note, Note::Hint(SessionId::new("order-17").unwrap()));
    }
}
