//! The rules of a presence write, shared by the stores that keep presence in Rust.

use std::collections::BTreeMap;

use crate::{Field, PresencePatch, PresenceRow, PresenceUpdate, Timestamp};

/// What a presence write does to the stored rows, and what it tells the watchers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct PresenceWrite {
    /// What changed; none when the write only renewed, or did nothing.
    pub patch: Option<PresencePatch>,
    /// Rows to store: one for each field that is set, renewed ones too.
    pub put: Vec<PresenceRow>,
    /// Fields whose stored row goes.
    pub remove: Vec<Field>,
    /// When the fields that were set go without a further write.
    pub expires_at: Timestamp,
    /// Whether a field that did not change now goes sooner than it would have: the watchers must
    /// look again although there is no patch for it.
    pub sooner: bool,
}

/// Decides what `update` does at `now`.
///
/// `rows` are the participant's stored rows, at least those of the update's fields; rows of others
/// and expired ones count as absent. `source` names the store handle that writes.
///
/// - A value sets its field, with the update's `seen` and ttl; no value removes it.
/// - A value equal byte for byte, with an equal `seen`, renews the ttl and is no change.
/// - Setting a field whose row has expired is a change, removing it is none.
pub fn write(
    rows: &[PresenceRow],
    update: &PresenceUpdate,
    now: Timestamp,
    source: &str,
) -> PresenceWrite {
    let stored: BTreeMap<&Field, &PresenceRow> = rows
        .iter()
        .filter(|row| row.participant == *update.participant())
        .map(|row| (&row.field, row))
        .collect();
    let expires_at = now.after(update.ttl());
    let mut write = PresenceWrite {
        patch: None,
        put: Vec::new(),
        remove: Vec::new(),
        expires_at,
        sooner: false,
    };
    let mut values = BTreeMap::new();
    for (field, value) in update.fields() {
        let row = stored.get(field).copied();
        let live = row.filter(|row| row.expires_at > now);
        if let Some(value) = value {
            match live {
                Some(row) if row.value == *value && row.seen == update.seen_index() => {
                    write.sooner |= expires_at < row.expires_at;
                }
                _ => {
                    values.insert(field.clone(), Some(value.clone()));
                }
            }
            write.put.push(PresenceRow::new(
                update.participant().clone(),
                field.clone(),
                value.clone(),
                update.seen_index(),
                now,
                expires_at,
            ));
        } else if row.is_some() {
            write.remove.push(field.clone());
            if live.is_some() {
                values.insert(field.clone(), None);
            }
        }
    }
    write.patch = (!values.is_empty()).then(|| {
        let who = update.participant().clone();
        PresencePatch::new(who, update.seen_index(), now, source.to_owned(), values)
    });
    write
}
