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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Index, Json, Participant};

    /// A stored field: name, value, `seen` (0 for none), when it expires.
    type Stored = (&'static str, &'static str, u32, i64);

    struct Case {
        name: &'static str,
        stored: &'static [Stored],
        /// Name and value; `null` removes.
        update: &'static [(&'static str, &'static str)],
        seen: u32,
        /// Name and value; `null` means removed. None for no patch.
        patch: Option<&'static [(&'static str, &'static str)]>,
        put: &'static [&'static str],
        remove: &'static [&'static str],
        sooner: bool,
    }

    /// At 1,000 ms, with a ttl of 500 ms.
    const CASES: [Case; 14] = [
        Case {
            name: "a new field",
            stored: &[],
            update: &[("x", "1")],
            seen: 0,
            patch: Some(&[("x", "1")]),
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "another value",
            stored: &[("x", "1", 0, 2_000), ("y", "1", 0, 2_000)],
            update: &[("x", "2")],
            seen: 0,
            patch: Some(&[("x", "2")]),
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "an equal value renews",
            stored: &[("x", "1", 0, 1_400)],
            update: &[("x", "1")],
            seen: 0,
            patch: None,
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "a renewal that ends at the same time",
            stored: &[("x", "1", 0, 1_500)],
            update: &[("x", "1")],
            seen: 0,
            patch: None,
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "a renewal that ends sooner",
            stored: &[("x", "1", 0, 1_501)],
            update: &[("x", "1")],
            seen: 0,
            patch: None,
            put: &["x"],
            remove: &[],
            sooner: true,
        },
        Case {
            name: "equal means byte for byte",
            stored: &[("x", "1", 0, 2_000)],
            update: &[("x", "1.0")],
            seen: 0,
            patch: Some(&[("x", "1.0")]),
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "another seen is a change",
            stored: &[("x", "1", 3, 2_000)],
            update: &[("x", "1")],
            seen: 4,
            patch: Some(&[("x", "1")]),
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "no seen after one is a change",
            stored: &[("x", "1", 3, 2_000)],
            update: &[("x", "1")],
            seen: 0,
            patch: Some(&[("x", "1")]),
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "an equal seen is none",
            stored: &[("x", "1", 3, 1_400)],
            update: &[("x", "1")],
            seen: 3,
            patch: None,
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "null removes",
            stored: &[("x", "1", 0, 2_000)],
            update: &[("x", "null")],
            seen: 5,
            patch: Some(&[("x", "null")]),
            put: &[],
            remove: &["x"],
            sooner: false,
        },
        Case {
            name: "removing what is not there",
            stored: &[("y", "1", 0, 2_000)],
            update: &[("x", "null")],
            seen: 5,
            patch: None,
            put: &[],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "setting what has just expired is a change",
            stored: &[("x", "1", 0, 1_000)],
            update: &[("x", "1")],
            seen: 0,
            patch: Some(&[("x", "1")]),
            put: &["x"],
            remove: &[],
            sooner: false,
        },
        Case {
            name: "removing what has just expired is none",
            stored: &[("x", "1", 0, 1_000)],
            update: &[("x", "null")],
            seen: 0,
            patch: None,
            put: &[],
            remove: &["x"],
            sooner: false,
        },
        Case {
            name: "each field on its own",
            stored: &[
                ("changed", "1", 2, 1_100),
                ("expired", "1", 2, 999),
                ("gone", "1", 2, 1_100),
                ("kept", "{}", 2, 1_100),
                ("untouched", "1", 1, 1_100),
            ],
            update: &[
                ("changed", "2"),
                ("expired", "1"),
                ("gone", "null"),
                ("kept", "{}"),
                ("missing", "null"),
                ("new", "[]"),
            ],
            seen: 2,
            patch: Some(&[("changed", "2"), ("expired", "1"), ("gone", "null"), ("new", "[]")]),
            put: &["changed", "expired", "kept", "new"],
            remove: &["gone"],
            sooner: false,
        },
    ];

    fn seen(index: u32) -> Option<Index> {
        (index > 0).then(|| Index::from(index))
    }

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn the_rules_of_a_write() {
        let (ann, now) = (Participant::new("ann").unwrap(), Timestamp::from_millis(1_000));
        let expires_at = Timestamp::from_millis(1_500);
        for case in CASES {
            let row = |(field, value, index, until): &Stored| {
                let (field, until) = (Field::new(field).unwrap(), Timestamp::from_millis(*until));
                PresenceRow::new(ann.clone(), field, json(value), seen(*index), now, until)
            };
            let rows: Vec<_> = case.stored.iter().map(row).collect();
            let mut update = PresenceUpdate::new("ann", Duration::from_millis(500)).unwrap();
            for (field, value) in case.update {
                update = update.set(*field, json(value)).unwrap();
            }
            if let Some(index) = seen(case.seen) {
                update = update.seen(index);
            }
            let write = write(&rows, &update, now, "handle");

            let name = case.name;
            let patch = case.patch.map(|values| {
                let value = |text: &str| (text != "null").then(|| json(text));
                let values = values.iter().map(|(f, v)| (Field::new(f).unwrap(), value(v)));
                let values = values.collect();
                PresencePatch::new(ann.clone(), seen(case.seen), now, "handle".into(), values)
            });
            assert_eq!(write.patch, patch, "{name}");
            let put: Vec<_> = write.put.iter().map(|row| row.field.as_str()).collect();
            assert_eq!(put, case.put, "{name}");
            for row in &write.put {
                let value = case.update.iter().find(|(field, _)| row.field == *field).unwrap().1;
                let field = row.field.clone();
                let seen = seen(case.seen);
                let all = PresenceRow::new(ann.clone(), field, json(value), seen, now, expires_at);
                assert_eq!(*row, all, "{name}");
            }
            let remove: Vec<_> = write.remove.iter().map(Field::as_str).collect();
            assert_eq!(remove, case.remove, "{name}");
            assert_eq!((write.expires_at, write.sooner), (expires_at, case.sooner), "{name}");
        }
    }

    #[test]
    fn other_participants_rows_count_for_nothing() {
        let (bob, now) = (Participant::new("bob").unwrap(), Timestamp::from_millis(1_000));
        let field = Field::new("x").unwrap();
        let row =
            PresenceRow::new(bob, field.clone(), json("1"), None, now, now.after(update().ttl()));
        let removed = write(std::slice::from_ref(&row), &update().remove("x").unwrap(), now, "h");
        assert_eq!((removed.patch, removed.remove), (None, vec![]));
        let set = write(&[row], &update().set("x", json("1")).unwrap(), now, "h");
        assert_eq!(set.patch.unwrap().values[&field], Some(json("1")));
    }

    fn update() -> PresenceUpdate {
        PresenceUpdate::new("ann", Duration::from_millis(500)).unwrap()
    }

    #[test]
    fn an_update_without_fields_does_nothing() {
        let now = Timestamp::from_millis(1_000);
        let nothing = write(&[], &update().seen(Index::from(3)), now, "h");
        assert_eq!((nothing.patch, nothing.put, nothing.remove), (None, vec![], vec![]));
    }
}
