//! Presence: the server decides what a write changes, the patch is put together here.

use std::collections::BTreeMap;

use a2_core::{Field, Namespace, PresencePatch, PresenceRow, PresenceUpdate, Result, Timestamp};

use crate::conn::Db;
use crate::error::Place;
use crate::rows::Answer;
use crate::statements::Sql;
use crate::values::{JsonText, StoredText, int, params};

/// What a write did.
pub(crate) struct Written {
    /// None when nothing changed.
    pub(crate) patch: Option<PresencePatch>,
    /// When the fields that were set go.
    pub(crate) expires_at: Timestamp,
    /// A field that did not change now goes sooner than it would have.
    pub(crate) sooner: bool,
    /// How far the deletion of abandoned namespaces got.
    pub(crate) sweep: Option<String>,
}

/// Sets and removes a participant's fields.
pub(crate) async fn set(
    db: &Db,
    sql: &Sql,
    namespace: &Namespace,
    update: &PresenceUpdate,
    (now, sweep): (Option<i64>, Option<&str>),
    source: &str,
) -> Result<Written> {
    let place = Place::change("set_presence");
    let fields: Vec<&str> = update.fields().keys().map(Field::as_str).collect();
    let values: Vec<Option<JsonText<'_>>> = update
        .fields()
        .values()
        .map(|value| value.as_ref().map(|value| JsonText(value.as_str())))
        .collect();
    let params = params![
        now,
        namespace.as_str(),
        update.participant().as_str(),
        update.seen_index().map(crate::args::index),
        int(update.ttl().as_millis()),
        fields,
        values,
        sweep,
    ];
    let rows = db.query(place, &sql.set_presence, &params).await?;
    let row = rows.first().ok_or_else(|| place.unreadable("there is no answer"))?;
    let answer = Answer::new(row, place);
    let at = answer.time(0)?;
    let mut values = BTreeMap::new();
    let named = |column| -> Result<Vec<&str>> {
        Ok(answer.get::<Option<Vec<&str>>>(column)?.unwrap_or_default())
    };
    for name in named(3)? {
        let given = update.fields().get_key_value(name);
        let (field, value) = given.ok_or_else(|| place.unreadable("a field was not asked for"))?;
        values.insert(field.clone(), value.clone());
    }
    for name in named(4)? {
        let field = Field::new(name).map_err(|error| place.unreadable(error))?;
        values.insert(field, None);
    }
    let patch = (!values.is_empty()).then(|| {
        let who = update.participant().clone();
        PresencePatch::new(who, update.seen_index(), at, source.to_owned(), values)
    });
    Ok(Written {
        patch,
        expires_at: answer.time(1)?,
        sooner: answer.get(2)?,
        sweep: answer.get(5)?,
    })
}

/// The namespace's rows that have not expired.
pub(crate) async fn read(
    db: &Db,
    sql: &Sql,
    namespace: &Namespace,
    now: Option<i64>,
) -> Result<Vec<PresenceRow>> {
    let place = Place::look("read_presence");
    let rows = db.query(place, &sql.presence, &params![namespace.as_str(), now]).await?;
    let read = |row| {
        let answer = Answer::new(row, place);
        Ok(PresenceRow::new(
            answer.name(0)?,
            answer.name(1)?,
            answer.get::<StoredText<'_>>(2)?.json(),
            answer.optional_index(3)?,
            answer.time(4)?,
            answer.time(5)?,
        ))
    };
    rows.iter().map(read).collect()
}
