//! Listings: dead letters, cursors, sessions, pending work.

use a2_core::{
    Cursor, CursorKey, DispatchedHead, Index, PendingSession, Served, SessionInfo, Timestamp,
};

use super::Model;
use super::served::serves;
use super::session::Session;

impl Session {
    /// In head order.
    pub(super) fn dead_letters(&self) -> Vec<DispatchedHead> {
        let dead = self.heads().into_iter().filter(|(_, state)| state.failed_at.is_some());
        dead.filter_map(|(head, state)| {
            let event = self.event(head.index)?.clone();
            Some(DispatchedHead::new(head, event, state))
        })
        .collect()
    }

    /// By consumer, then kind (lane, log, event), then name, event cursors by head.
    pub(super) fn cursors(&self) -> Vec<Cursor> {
        let mut cursors = Vec::new();
        // Those with a head.
        for (head, state) in self.heads() {
            let position = match &head.cursor {
                CursorKey::Event => head.index.previous(),
                CursorKey::Lane(_) => self.lane_position(&head.consumer, &head.cursor),
                CursorKey::Log(name) => {
                    self.log_of(&head.consumer, name).map_or(Index::ZERO, |log| log.position)
                }
            };
            let index = Some(head.index);
            cursors.push(Cursor::new(head.consumer, head.cursor, position, index, state));
        }
        // Idle lanes of this lifetime.
        for entry in self.lifetime() {
            for aim in entry.aims.iter().filter(|aim| matches!(aim.key, CursorKey::Lane(_))) {
                if !cursors.iter().any(|c| c.consumer == aim.consumer && c.key == aim.key) {
                    let position = self.lane_position(&aim.consumer, &aim.key);
                    let (consumer, key) = (aim.consumer.clone(), aim.key.clone());
                    cursors.push(Cursor::new(consumer, key, position, None, Default::default()));
                }
            }
        }
        // Idle logs.
        for log in self.logs.iter().filter(|log| log.head.is_none()) {
            let (consumer, key) = (log.consumer.clone(), CursorKey::Log(log.name.clone()));
            cursors.push(Cursor::new(consumer, key, log.position, None, Default::default()));
        }
        cursors.sort_by(|a, b| order(a).cmp(&order(b)));
        cursors
    }

    /// The last index that the lane completed or skipped in this lifetime, else the clear index.
    fn lane_position(&self, consumer: &a2_core::Consumer, key: &CursorKey) -> Index {
        let ended = self.lifetime().filter(|entry| {
            let mut aims = entry.aims.iter();
            aims.any(|a| a.consumer == *consumer && a.key == *key && a.end.is_some())
        });
        ended.last().map_or(self.clear_index, |entry| entry.event.index)
    }
}

fn order(cursor: &Cursor) -> (&str, u8, &str, Option<Index>) {
    let (kind, name) = match &cursor.key {
        CursorKey::Lane(lane) => (0, lane.as_str()),
        CursorKey::Log(log) => (1, log.as_str()),
        CursorKey::Event => (2, ""),
    };
    (cursor.consumer.as_str(), kind, name, cursor.head)
}

impl Model {
    /// Every session ever appended to.
    pub(super) fn sessions(&self) -> Vec<SessionInfo> {
        let appended = self.sessions.values().filter(|session| !session.log.is_empty());
        appended.map(|s| SessionInfo::new(s.id.clone(), s.head(), s.clear_index)).collect()
    }

    /// Every session in which a served consumer has a live head, or with a timer, and when a claim
    /// or a timer there can do something.
    pub(super) fn pending(&self, now: Timestamp, served: &Served) -> Vec<PendingSession> {
        let mut pending = Vec::new();
        for session in self.sessions.values() {
            let live = session.heads().into_iter().filter(|(head, state)| {
                state.failed_at.is_none() && serves(served, &head.consumer)
            });
            let free = live.map(|(_, state)| state.claim_expires_at.unwrap_or(now).max(now));
            let due = session.timers.iter().map(|timer| timer.due_at);
            if let Some(soonest) = free.chain(due).min() {
                pending.push(PendingSession::new(session.id.clone(), soonest));
            }
        }
        pending
    }
}
