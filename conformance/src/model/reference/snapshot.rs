//! Snapshots and what pins them.

use a2_core::{
    ErrorKind, HeadRef, Index, Json, PutSnapshots, ReadState, ReducerName, Snapshot, SnapshotsPut,
    StateRead,
};

use super::session::Session;

/// A stored snapshot.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    reducer: ReducerName,
    index: Index,
    state: Json,
    /// The live heads that it is kept for.
    pins: Vec<HeadRef>,
}

impl Session {
    fn latest_snapshot(&self, reducer: &ReducerName) -> Option<Index> {
        self.snapshots.iter().filter(|s| s.reducer == *reducer).map(|s| s.index).max()
    }

    pub(super) fn put_snapshots(
        &mut self,
        reducer: &ReducerName,
        put: &PutSnapshots,
    ) -> Result<SnapshotsPut, ErrorKind> {
        if put.writes().iter().any(|write| write.index() > self.head()) {
            return Err(ErrorKind::InvalidInput { field: "writes".into(), rule: "".into() });
        }
        for write in put.writes() {
            if write.index() < self.clear_index {
                continue;
            }
            let latest = self.latest_snapshot(reducer);
            let live = |pin: &&HeadRef| {
                self.head_state(pin).is_some_and(|state| state.failed_at.is_none())
            };
            let pins: Vec<_> = write.pinned_by().iter().filter(live).cloned().collect();
            let mut stored = self.snapshots.iter_mut();
            match stored.find(|s| s.reducer == *reducer && s.index == write.index()) {
                Some(stored) => {
                    stored.state = write.state().clone();
                    stored.pins.extend(pins);
                }
                None if latest.is_none_or(|latest| write.index() > latest) || !pins.is_empty() => {
                    self.snapshots.push(Stored {
                        reducer: reducer.clone(),
                        index: write.index(),
                        state: write.state().clone(),
                        pins,
                    });
                }
                None => {}
            }
        }
        self.drop_unpinned();
        let stored = |index: &Index| {
            self.snapshots.iter().any(|s| s.reducer == *reducer && s.index == *index)
        };
        let indexes = put.writes().iter().map(|write| write.index()).filter(stored).collect();
        Ok(SnapshotsPut::new(indexes, self.latest_snapshot(reducer)))
    }

    /// The latest is always kept, an older one only while a pin names it.
    fn drop_unpinned(&mut self) {
        let all = self.snapshots.clone();
        self.snapshots.retain(|snapshot| {
            let newer = |s: &Stored| s.reducer == snapshot.reducer && s.index > snapshot.index;
            !snapshot.pins.is_empty() || !all.iter().any(newer)
        });
    }

    /// The head completed, was skipped or is dead.
    pub(super) fn release_pins(&mut self, head: &HeadRef) {
        for snapshot in &mut self.snapshots {
            snapshot.pins.retain(|pin| pin != head);
        }
        self.drop_unpinned();
    }

    pub(super) fn read_state(&self, reducer: &ReducerName, read: &ReadState) -> StateRead {
        let end = read.end().min(self.head());
        let within = |s: &&Stored| s.reducer == *reducer && s.index <= read.snapshot_end();
        let snapshot = self.snapshots.iter().filter(within).max_by_key(|s| s.index);
        let after = snapshot.map_or(Index::ZERO, |s| s.index);
        let events = self.lifetime().map(|entry| &entry.event);
        let events = events.filter(|e| e.index > after && e.index <= end).cloned().collect();
        StateRead::new(
            self.latest_snapshot(reducer),
            snapshot.map(|s| Snapshot::new(s.index, s.state.clone())),
            events,
            end,
            self.head(),
            self.clear_index,
        )
    }
}
