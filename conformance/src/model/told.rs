//! What only several answers together show: that histories reach the far corners of some rules.

use std::collections::{BTreeMap, BTreeSet};

use a2_core::{
    Claim, Completion, CursorKey, Failure, HeadRef, Index, RedriveAction, SessionId, TimerKey,
};

use super::call::{Call, Reply};

/// What was told so far in one history.
#[derive(Default)]
pub(super) struct Told {
    /// The completions that their logs remember, and those that a skip has made them forget.
    completed: Vec<(SessionId, HeadRef, u64)>,
    forgotten: Vec<(SessionId, HeadRef, u64)>,
    origins: BTreeMap<(SessionId, TimerKey), Index>,
    dead: BTreeSet<(SessionId, HeadRef)>,
    clears: BTreeMap<SessionId, Index>,
}

impl Told {
    pub(super) fn hear(&mut self, call: &Call, reply: &Reply) -> Option<&'static str> {
        let claim = match reply {
            Reply::Claim(claim) => Some(claim),
            Reply::Completed(done) => done.claim.as_ref(),
            Reply::Failed(failed) => failed.claim.as_ref(),
            _ => None,
        };
        if let (Some(Claim::Claimed(claimed)), Some(session)) = (claim, call.session()) {
            let dead = claimed.heads.iter().filter(|head| head.state.failed_at.is_some());
            self.dead.extend(dead.map(|head| (session.clone(), head.head.clone())));
        }
        match (call, reply) {
            (Call::Complete(session, complete), Reply::Completed(done)) => {
                let this = (session.clone(), complete.head().clone(), complete.attempt());
                match &done.outcome {
                    Completion::Completed(appended) if !appended.replayed => {
                        for list in [&mut self.completed, &mut self.forgotten] {
                            list.retain(|other| !same_log(other, session, complete.head()));
                        }
                        if matches!(complete.head().cursor, CursorKey::Log(_)) {
                            self.completed.push(this);
                        }
                        None
                    }
                    Completion::Superseded if self.forgotten.contains(&this) => {
                        Some("complete: forgotten by a skip")
                    }
                    _ => None,
                }
            }
            (Call::Fail(session, fail), Reply::Failed(failed)) => {
                if matches!(failed.outcome, Failure::DeadLettered { .. }) {
                    self.dead.insert((session.clone(), fail.head().clone()));
                }
                None
            }
            (Call::Redrive(session, redrive), Reply::Redriven(done)) if done.redriven => {
                self.dead.remove(&(session.clone(), redrive.head().clone()));
                if redrive.action() == RedriveAction::Skip {
                    let (forgotten, completed) = std::mem::take(&mut self.completed)
                        .into_iter()
                        .partition::<Vec<_>, _>(|it| same_log(it, session, redrive.head()));
                    self.completed = completed;
                    self.forgotten.extend(forgotten);
                }
                None
            }
            (Call::PutSnapshots(session, _, put), Reply::SnapshotsPut(done)) => put
                .writes()
                .iter()
                .filter(|write| !done.stored.contains(&write.index()))
                .flat_map(|write| write.pinned_by())
                .any(|pin| self.dead.contains(&(session.clone(), pin.clone())))
                .then_some("snapshots: pinned by the dead"),
            (Call::Schedule(session, timer), Reply::Scheduled(_)) => {
                let key = (session.clone(), timer.key().clone());
                match timer.origin() {
                    Some(origin) => self.origins.insert(key, origin),
                    None => self.origins.remove(&key),
                };
                None
            }
            (Call::Unschedule(session, key), _) => {
                self.origins.remove(&(session.clone(), key.clone()));
                None
            }
            (Call::FireTimers(session, _), _) => {
                self.origins.retain(|(other, _), _| other != session);
                None
            }
            (Call::Clear(session, _), Reply::Cleared(cleared)) => {
                let at = cleared.clear_index;
                if self.clears.insert(session.clone(), at) == Some(at) || at == Index::ZERO {
                    return None;
                }
                self.completed.retain(|(other, ..)| other != session);
                self.forgotten.retain(|(other, ..)| other != session);
                self.dead.retain(|(other, _)| other != session);
                let mut origins = self.origins.iter().filter(|((other, _), _)| other == session);
                origins
                    .any(|(_, origin)| *origin == at)
                    .then_some("clear: a timer's origin is the marker")
            }
            _ => None,
        }
    }
}

fn same_log(it: &(SessionId, HeadRef, u64), session: &SessionId, head: &HeadRef) -> bool {
    it.0 == *session && it.1.consumer == head.consumer && it.1.cursor == head.cursor
}
