//! The reference: the model's rules, written as plainly as they can be.
//!
//! A session is the list of its events; each event keeps its targets and what became of them. What
//! an answer needs is looked for in that list each time. There is no index, no cache and no clean
//! up, so that reading the rules and reading this code is one thing. It shares the request and
//! answer types with the stores, none of their decisions.

mod append;
mod attempt;
mod claim;
mod lifetime;
mod listing;
mod presence;
mod served;
mod session;
mod snapshot;
mod timer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use a2_core::{
    ErrorKind, Index, Namespace, PresenceRow, ReadRange, SessionId, Timestamp, WithClaim,
};

pub(crate) use session::Session;

use super::call::{Call, Reply};

/// What a store must answer.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) answer: Result<Reply, ErrorKind>,
    /// A busy answer may name a sooner time: live heads were left out of the claim.
    pub(crate) may_be_sooner: bool,
}

/// Every session and every presence namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    sessions: BTreeMap<SessionId, Session>,
    rooms: BTreeMap<Namespace, Vec<PresenceRow>>,
}

impl Model {
    /// The session, an empty one if nobody heard of it.
    pub(crate) fn session(&mut self, id: &SessionId) -> &mut Session {
        self.sessions.entry(id.clone()).or_insert_with(|| Session::new(id.clone()))
    }

    /// Does what the call asks for, at this time.
    pub(crate) fn call(&mut self, now: Timestamp, call: &Call) -> Expected {
        let mut may_be_sooner = false;
        let answer = self.answer(now, call, &mut may_be_sooner);
        Expected { answer, may_be_sooner }
    }

    fn answer(
        &mut self,
        now: Timestamp,
        call: &Call,
        may_be_sooner: &mut bool,
    ) -> Result<Reply, ErrorKind> {
        Ok(match call {
            Call::Append(id, append) => Reply::Appended(self.session(id).append(now, append)?),
            Call::Read(id, range) => Reply::Events(self.session(id).read(range)),
            Call::Stream(id, start_after, count) => {
                let stored = self.session(id).read(&ReadRange::after(*start_after)).events;
                Reply::Streamed(stored.into_iter().take(*count).collect())
            }
            Call::Claim(id, claim) => {
                let (claim, sooner) = self.session(id).claim(now, claim);
                *may_be_sooner = sooner;
                Reply::Claim(claim)
            }
            Call::Renew(id, renew) => Reply::Renewed(self.session(id).renew(now, renew)),
            Call::Release(id, release) => Reply::Released(self.session(id).release(release)),
            Call::Complete(id, complete) => {
                let session = self.session(id);
                let outcome = session.complete(now, complete)?;
                let claim = complete.next_claim().map(|claim| session.claim(now, claim));
                *may_be_sooner = claim.as_ref().is_some_and(|(_, sooner)| *sooner);
                Reply::Completed(WithClaim::new(outcome, claim.map(|(claim, _)| claim)))
            }
            Call::Fail(id, fail) => {
                let session = self.session(id);
                let outcome = session.fail(now, fail)?;
                let claim = fail.next_claim().map(|claim| session.claim(now, claim));
                *may_be_sooner = claim.as_ref().is_some_and(|(_, sooner)| *sooner);
                Reply::Failed(WithClaim::new(outcome, claim.map(|(claim, _)| claim)))
            }
            Call::DeadLetters(id, limit) => {
                Reply::DeadLetters(pages(self.session(id).dead_letters(), *limit))
            }
            Call::Cursors(id, limit) => {
                let session = self.session(id);
                let (head, clear_index) = (session.head(), session.clear_index);
                Reply::Cursors { pages: pages(session.cursors(), *limit), head, clear_index }
            }
            Call::Redrive(id, redrive) => Reply::Redriven(self.session(id).redrive(redrive)),
            Call::WakeLog(id, wake) => Reply::Woken(self.session(id).wake_log(wake)),
            Call::ReadState(id, reducer, read) => {
                Reply::State(self.session(id).read_state(reducer, read))
            }
            Call::PutSnapshots(id, reducer, writes) => {
                Reply::SnapshotsPut(self.session(id).put_snapshots(reducer, writes)?)
            }
            Call::Clear(id, clear) => Reply::Cleared(self.session(id).clear(now, clear)?),
            // No effect that anybody can see.
            Call::Reclaim(_) => Reply::Reclaimed,
            Call::Schedule(id, timer) => Reply::Scheduled(self.session(id).schedule(now, timer)?),
            Call::Unschedule(id, key) => Reply::Unscheduled(self.session(id).unschedule(key)),
            Call::Timers(id, limit) => Reply::Timers(pages(self.session(id).timers(), *limit)),
            Call::FireTimers(id, fire) => Reply::Appended(self.session(id).fire_timers(now, fire)),
            Call::Sessions(_) => Reply::Sessions(self.sessions()),
            Call::Pending(served, _) => Reply::Pending(self.pending(now, served)),
            Call::SetPresence(room, update) => {
                let rows = self.rooms.entry(room.clone()).or_default();
                Reply::Patch(presence::set(rows, update, now))
            }
            Call::ReadPresence(room) => {
                let rows = self.rooms.get(room).map_or(&[][..], Vec::as_slice);
                Reply::Presence(presence::read(rows, now))
            }
        })
    }

    /// Whether anybody ever wrote presence.
    pub(crate) fn has_presence(&self) -> bool {
        !self.rooms.is_empty()
    }

    /// The next moments after `now` at which something changes by itself, soonest first.
    pub(crate) fn deadlines(&self, now: Timestamp) -> Vec<Timestamp> {
        let expiries = self.rooms.values().flatten().map(|row| row.expires_at);
        let mut deadlines: Vec<_> =
            self.sessions.values().flat_map(Session::deadlines).chain(expiries).collect();
        deadlines.retain(|at| *at > now);
        deadlines.sort();
        deadlines.dedup();
        deadlines
    }
}

/// Pages of `limit` entries; one empty page when there is nothing.
fn pages<T: Clone>(all: Vec<T>, limit: usize) -> Vec<Vec<T>> {
    if all.is_empty() {
        return vec![all];
    }
    all.chunks(limit).map(<[T]>::to_vec).collect()
}

/// `index` as a position in a list.
fn at(index: Index) -> usize {
    usize::try_from(index.get()).unwrap_or(usize::MAX)
}
