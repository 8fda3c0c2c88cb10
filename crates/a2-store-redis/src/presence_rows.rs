//! Presence: the server decides what a write changes, the patch is put together here.

use std::collections::BTreeMap;

use a2_core::{
    Field, Index, Json, Namespace, PresencePatch, PresenceRow, PresenceUpdate, Result, Timestamp,
};
use fred::types::Resp3Frame as Frame;

use crate::args::Args;
use crate::error::Place;
use crate::listing::Everywhere;
use crate::reply::{self, Fields, Reply};
use crate::script::{self, Script};

/// What a write did.
pub(crate) struct Written {
    /// None when nothing changed.
    pub(crate) patch: Option<PresencePatch>,
    /// When the fields that were set go.
    pub(crate) expires_at: Timestamp,
    /// A field that did not change now goes sooner than it would have.
    pub(crate) sooner: bool,
}

async fn run(
    all: Everywhere<'_>,
    place: Place<'_>,
    script: &Script,
    namespace: &Namespace,
    args: Args,
) -> Result<Frame> {
    all.db.run(place, script, all.keys.namespace(namespace), all.now, args).await
}

/// Sets and removes a participant's fields.
pub(crate) async fn set(
    all: Everywhere<'_>,
    namespace: &Namespace,
    update: &PresenceUpdate,
    source: &str,
) -> Result<Written> {
    let place = Place::change("set_presence");
    let mut args = Args::default();
    args.push(namespace.as_str());
    args.push(update.participant().as_str());
    args.number(seen(update.seen_index()));
    args.number(update.ttl().as_millis());
    args.count(update.fields().len());
    for (field, value) in update.fields() {
        args.push(field.as_str());
        args.flag(value.is_some());
        if let Some(value) = value {
            args.push(value.as_str());
        }
    }
    let frame = run(all, place, &script::SET_PRESENCE, namespace, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "set" => written(&reply, update, source),
        status => Err(reply.refusal(status)),
    }
}

fn seen(index: Option<Index>) -> i128 {
    index.map_or(-1, |index| index.get().into())
}

fn written(reply: &Reply<'_>, update: &PresenceUpdate, source: &str) -> Result<Written> {
    let at = reply.time(1)?;
    let mut values = BTreeMap::new();
    // What was changed and what was removed: both stand in the update.
    for fields in [reply.list(4)?, reply.list(5)?] {
        for item in 0..fields.len() {
            let given = update.fields().get_key_value(fields.text(item)?);
            let Some((field, value)) = given else {
                return Err(reply.place.unreadable("a field was not asked for"));
            };
            values.insert(field.clone(), value.clone());
        }
    }
    let patch = (!values.is_empty()).then(|| {
        let who = update.participant().clone();
        PresencePatch::new(who, update.seen_index(), at, source.to_owned(), values)
    });
    Ok(Written { patch, expires_at: reply.time(2)?, sooner: reply.flag(3)? })
}

/// The namespace's rows that have not expired, by participant and field.
pub(crate) async fn read(all: Everywhere<'_>, namespace: &Namespace) -> Result<Vec<PresenceRow>> {
    let place = Place::look("read_presence");
    let mut rows = BTreeMap::new();
    let mut from = "0".to_owned();
    loop {
        let mut args = Args::default();
        args.push(&from);
        let frame = run(all, place, &script::READ_PRESENCE, namespace, args).await?;
        let reply = Reply::new(&frame, place)?;
        for item in (2..reply.len()).step_by(2) {
            let row = row(reply.bytes(item)?, reply.bytes(item + 1)?, place)?;
            rows.insert((row.participant.clone(), row.field.clone()), row);
        }
        from = reply.text(1)?.to_owned();
        if from == "0" {
            return Ok(rows.into_values().collect());
        }
    }
}

/// A field by its name (participant, U+0000, field) and record: when it goes, when it was written, what
/// the participant had seen, the value.
fn row(name: &[u8], record: &[u8], place: Place<'_>) -> Result<PresenceRow> {
    let participant = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let mut names = Fields::new(name, place);
    let participant = names.name(participant)?;
    names.u8()?;
    let rest = names.rest();
    let field = Field::new(reply::text(rest, place)?).map_err(|error| place.unreadable(error))?;
    let mut fields = Fields::new(record, place);
    let (expires_at, updated_at) = (fields.time()?, fields.time()?);
    let seen = u64::try_from(fields.time()?.as_millis()).ok().map(Index::new).transpose();
    let seen = seen.map_err(|error| place.unreadable(error))?;
    let value = Json::from_stored(reply::text(fields.rest(), place)?);
    Ok(PresenceRow::new(participant, field, value, seen, updated_at, expires_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Until 2,000, written at 1,500, the value `{"x":1.0}`; before the value, what was seen.
    fn record(seen: i64) -> Vec<u8> {
        let numbers = [2_000, 1_500, seen].map(i64::to_be_bytes).concat();
        [&numbers[..], br#"{"x":1.0}"#].concat()
    }

    fn read(name: &[u8], record: &[u8]) -> Result<PresenceRow> {
        row(name, record, Place::look("read_presence"))
    }

    #[test]
    fn a_row_reads_as_it_was_written() {
        let row = read(b"ann\0cursor", &record(3)).unwrap();
        assert_eq!((row.participant.as_str(), row.field.as_str()), ("ann", "cursor"));
        assert_eq!(row.value.as_str(), r#"{"x":1.0}"#);
        assert_eq!(row.seen, Some(Index::from(3)));
        assert_eq!((row.updated_at.as_millis(), row.expires_at.as_millis()), (1_500, 2_000));
        assert_eq!(read(b"ann\0cursor", &record(-1)).unwrap().seen, None);
    }

    #[test]
    fn a_broken_row_is_corrupt() {
        for name in [&b""[..], b"ann", b"\0cursor", b"ann\0", b"ann\0\xff"] {
            assert_eq!(read(name, &record(3)).unwrap_err().code(), "CORRUPT", "{name:?}");
        }
        assert_eq!(read(b"ann\0cursor", &record(3)[..23]).unwrap_err().code(), "CORRUPT");
    }
}
