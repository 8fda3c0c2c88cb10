//! Where the logs stand that streams are open on: for stores that look for what nobody told.

use std::collections::{HashMap, HashSet};

use crate::{Index, SessionId};

use super::hub::Hub;

/// The heads that were seen at the last look, of sessions with streams.
#[derive(Debug, Default)]
pub struct StreamedHeads(HashMap<SessionId, (Index, Index)>);

impl StreamedHeads {
    /// Forgets the sessions that have no stream any more.
    pub fn retain(&mut self, streamed: &[SessionId]) {
        let streamed: HashSet<_> = streamed.iter().collect();
        self.0.retain(|session, _| streamed.contains(session));
    }

    /// Tells the hub what is new of heads and latest clear markers that were looked up; answers whether
    /// anything changed since an earlier look.
    pub fn seen(
        &mut self,
        hub: &Hub,
        heads: impl IntoIterator<Item = (SessionId, Index, Index)>,
    ) -> bool {
        let mut found = false;
        for (session, head, clear_index) in heads {
            let before = self.0.insert(session.clone(), (head, clear_index));
            if before == Some((head, clear_index)) {
                continue;
            }
            found |= before.is_some();
            if before.is_some_and(|(_, known)| known < clear_index) {
                hub.cleared(&session, clear_index);
            }
            hub.reached(&session, head);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_after_the_first_look_is_found() {
        let (hub, mut heads) = (Hub::new(), StreamedHeads::default());
        let session = SessionId::new("s").unwrap();
        let at = |head: u32, clear: u32| [(session.clone(), Index::from(head), Index::from(clear))];
        assert!(!heads.seen(&hub, at(3, 0)));
        assert!(!heads.seen(&hub, at(3, 0)));
        assert!(heads.seen(&hub, at(4, 0)));
        assert!(heads.seen(&hub, at(5, 5)));
        heads.retain(&[]);
        assert!(!heads.seen(&hub, at(6, 5)));
    }
}
