//! What a presence watcher has told so far, and what is new to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Field, Index, Json, Participant, PresencePatch, PresenceRow, Timestamp};

use super::presence_hub::Told;

/// The namespace as the watcher's reader knows it.
#[derive(Debug, Default)]
pub(super) struct View {
    cells: BTreeMap<Participant, BTreeMap<Field, Cell>>,
    /// No field goes before this.
    pub(super) next_expiry: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Cell {
    value: Json,
    seen: Option<Index>,
    updated_at: Timestamp,
    expires_at: Timestamp,
}

impl Cell {
    fn holds(&self, value: &Json, seen: Option<Index>) -> bool {
        self.value == *value && self.seen == seen
    }
}

/// What became of a patch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// The view had it.
    Known,
    /// To be told: the part that is new.
    New(PresencePatch),
    /// As `New`; a read must confirm it, since another write bears the same time.
    Unsure(PresencePatch),
    /// It is older than what the view has: only a read can tell what holds.
    Stale,
}

impl View {
    pub(super) fn new(rows: &[PresenceRow]) -> Self {
        let mut view = Self::default();
        for row in rows {
            let cell = Cell {
                value: row.value.clone(),
                seen: row.seen,
                updated_at: row.updated_at,
                expires_at: row.expires_at,
            };
            view.expect(row.expires_at);
            view.cells.entry(row.participant.clone()).or_default().insert(row.field.clone(), cell);
        }
        view
    }

    fn expect(&mut self, expiry: Timestamp) {
        self.next_expiry = Some(self.next_expiry.map_or(expiry, |next| next.min(expiry)));
    }

    fn cell(&self, participant: &Participant, field: &Field) -> Option<&Cell> {
        self.cells.get(participant)?.get(field)
    }

    /// Takes in a patch that was told.
    pub(super) fn apply(&mut self, told: &Told) -> Applied {
        let patch = &told.patch;
        let mut news = BTreeMap::new();
        let mut unsure = false;
        for (field, value) in &patch.values {
            let cell = self.cell(&patch.participant, field);
            let known = match (cell, value) {
                // What had expired by then was set anew.
                (Some(cell), Some(value)) => {
                    cell.holds(value, patch.seen) && cell.expires_at > patch.at
                }
                (None, None) => true,
                _ => false,
            };
            if known {
                continue;
            }
            if let Some(cell) = cell {
                if cell.updated_at > patch.at {
                    return Applied::Stale;
                }
                unsure |= cell.updated_at == patch.at;
            }
            news.insert(field.clone(), value.clone());
        }
        if news.is_empty() {
            return Applied::Known;
        }
        for (field, value) in &news {
            self.set(told, field, value.clone());
        }
        let patch = PresencePatch { values: news, ..patch.clone() };
        if unsure { Applied::Unsure(patch) } else { Applied::New(patch) }
    }

    fn set(&mut self, told: &Told, field: &Field, value: Option<Json>) {
        let Told { patch, expires_at } = told;
        let fields = self.cells.entry(patch.participant.clone()).or_default();
        match value {
            Some(value) => {
                let cell =
                    Cell { value, seen: patch.seen, updated_at: patch.at, expires_at: *expires_at };
                fields.insert(field.clone(), cell);
                self.expect(*expires_at);
            }
            None => {
                fields.remove(field);
                if fields.is_empty() {
                    self.cells.remove(&patch.participant);
                }
            }
        }
    }

    /// The view that was read at `now`, and the differences to this one, a patch for each participant.
    ///
    /// An expiry bears `source`, the watcher's own. Who made another change is known when one of
    /// `told` says so; else its source is empty.
    pub(super) fn read(
        &self,
        rows: &[PresenceRow],
        now: Timestamp,
        source: &str,
        told: &[Arc<Told>],
    ) -> (Self, Vec<PresencePatch>) {
        let new = Self::new(rows);
        let everybody: BTreeSet<_> = self.cells.keys().chain(new.cells.keys()).collect();
        let none = BTreeMap::new();
        let mut patches = Vec::new();
        for participant in everybody {
            let before = self.cells.get(participant).unwrap_or(&none);
            let after = new.cells.get(participant).unwrap_or(&none);
            let difference = Difference::between(before, after, now);
            patches.extend(difference.into_patch(participant, now, source, told));
        }
        (new, patches)
    }
}

/// What differs for one participant.
#[derive(Default)]
struct Difference {
    values: BTreeMap<Field, Option<Json>>,
    /// The newest of the changed rows: its `seen` and its time.
    newest: Option<(Timestamp, Option<Index>)>,
    /// The last `seen` of what is gone.
    gone: Option<(Timestamp, Option<Index>)>,
    /// Whether everything that differs is gone because its time was over.
    expired: bool,
}

impl Difference {
    fn between(
        before: &BTreeMap<Field, Cell>,
        after: &BTreeMap<Field, Cell>,
        now: Timestamp,
    ) -> Self {
        let mut difference = Self { expired: true, ..Self::default() };
        for (field, cell) in after {
            if before.get(field).is_some_and(|old| old.holds(&cell.value, cell.seen)) {
                continue;
            }
            difference.values.insert(field.clone(), Some(cell.value.clone()));
            difference.newest = difference.newest.max(Some((cell.updated_at, cell.seen)));
            difference.expired = false;
        }
        for (field, cell) in before.iter().filter(|(field, _)| !after.contains_key(*field)) {
            difference.values.insert(field.clone(), None);
            difference.gone = difference.gone.max(Some((cell.updated_at, cell.seen)));
            difference.expired &= cell.expires_at <= now;
        }
        difference
    }

    fn into_patch(
        self,
        participant: &Participant,
        now: Timestamp,
        source: &str,
        told: &[Arc<Told>],
    ) -> Option<PresencePatch> {
        if self.values.is_empty() {
            return None;
        }
        let made_by = told.iter().rev().map(|told| &told.patch).find(|patch| {
            let says = |(field, value)| patch.values.get(field) == Some(value);
            patch.participant == *participant
                && self.newest.is_none_or(|(_, seen)| seen == patch.seen)
                && self.values.iter().all(says)
        });
        if let Some(patch) = made_by {
            return Some(PresencePatch { values: self.values, ..patch.clone() });
        }
        let source = if self.expired { source.to_owned() } else { String::new() };
        let (at, seen) = match (self.newest, self.gone) {
            (Some((at, seen)), _) => (at, seen),
            (None, gone) => (now, gone.and_then(|(_, seen)| seen)),
        };
        Some(PresencePatch::new(participant.clone(), seen, at, source, self.values))
    }
}
