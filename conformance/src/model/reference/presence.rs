//! Presence.

use a2_core::{PresencePatch, PresenceRow, PresenceRows, PresenceUpdate, Timestamp};

/// Writes each field; what changed is the patch.
pub(super) fn set(
    rows: &mut Vec<PresenceRow>,
    update: &PresenceUpdate,
    now: Timestamp,
) -> Option<PresencePatch> {
    rows.retain(|row| row.expires_at > now);
    let mut values = std::collections::BTreeMap::new();
    for (field, value) in update.fields() {
        let place =
            rows.iter().position(|r| r.participant == *update.participant() && r.field == *field);
        let before = place.map(|place| rows.remove(place));
        let unchanged = match (&before, value) {
            (None, None) => true,
            (Some(before), Some(value)) => {
                before.value == *value && before.seen == update.seen_index()
            }
            _ => false,
        };
        if !unchanged {
            values.insert(field.clone(), value.clone());
        }
        if let Some(value) = value {
            rows.push(PresenceRow::new(
                update.participant().clone(),
                field.clone(),
                value.clone(),
                update.seen_index(),
                now,
                now.after(update.ttl()),
            ));
        }
    }
    (!values.is_empty()).then(|| {
        let (participant, seen) = (update.participant().clone(), update.seen_index());
        PresencePatch::new(participant, seen, now, String::new(), values)
    })
}

/// What has not expired, by participant and field.
pub(super) fn read(rows: &[PresenceRow], now: Timestamp) -> PresenceRows {
    let mut rows: Vec<_> = rows.iter().filter(|row| row.expires_at > now).cloned().collect();
    rows.sort_by(|a, b| (&a.participant, &a.field).cmp(&(&b.participant, &b.field)));
    PresenceRows::new(rows)
}
