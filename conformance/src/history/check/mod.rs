//! What must hold of a history, whatever was killed, cut or lost meanwhile.
//!
//! Nothing is inferred from how long anything took: two calls are in order only when one was answered
//! before the other began, a call without an answer may have been done at any time or never, and times
//! are compared with times of the store alone. So a sound store is never accused.

mod heads;
mod lanes;
mod log;
mod logs;
mod order;
mod rest;
mod streams;
#[cfg(test)]
mod tests;
mod view;

use std::fmt;

use a2_core::{Consumer, LogDeclaration, SessionId};

use super::note::Note;
use view::View;

/// A history, and what was agreed on before it.
#[derive(Debug, Clone)]
pub struct History {
    /// What happened, in order.
    pub notes: Vec<Note>,
    /// The sessions, which nobody else used.
    pub sessions: Vec<SessionId>,
    /// The log cursors, which every consumer's deployment declares alike.
    pub logs: Vec<(Consumer, LogDeclaration)>,
    /// A consumer whose heads nobody claimed before `drained_from`.
    pub untouched: Consumer,
    /// How many failures dead-letter a head, in every claim and failure.
    pub budget: u64,
    /// From this note on all work was worked off.
    pub drained_from: usize,
    /// From this note on nothing was to be done any more, and everything was read.
    pub settled_from: usize,
    /// Whether only what was answered had to be kept: readers may have seen writes that were undone
    /// before they were answered, as behind a copy that takes over.
    pub unanswered_may_vanish: bool,
}

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// A log and every page of it is without holes.
    Dense,
    /// What was acknowledged stays as it is, and is seen by whoever looks later.
    Kept,
    /// A request that was sent more than once was done once.
    Once,
    /// What was refused was not done, and nothing comes from nowhere.
    Refused,
    /// A head is completed by one attempt, with all that it returned.
    OneCommit,
    /// Whoever lost a head does nothing with it any more, and nobody gets one that is leased or done.
    Fence,
    /// A lane's heads are worked off in the order of the log, none left out.
    Lane,
    /// A log cursor gives each event of its types once, in order.
    Log,
    /// A stream has no gap and no repeat, and catches up.
    Stream,
    /// A pass finds every session that had work throughout.
    Pending,
    /// A timer fires once, and not early.
    Timer,
    /// Nothing of an earlier lifetime is seen or done after the clear.
    Lifetime,
    /// Failures are counted as they happened.
    Budget,
    /// The latest snapshot never goes back, and is what was put.
    Snapshot,
    /// All work is found and ends.
    Settled,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Dense,
        Self::Kept,
        Self::Once,
        Self::Refused,
        Self::OneCommit,
        Self::Fence,
        Self::Lane,
        Self::Log,
        Self::Stream,
        Self::Pending,
        Self::Timer,
        Self::Lifetime,
        Self::Budget,
        Self::Snapshot,
        Self::Settled,
    ];
}

/// Something that must not have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What does not hold.
    pub invariant: Invariant,
    /// Where.
    pub session: SessionId,
    /// What was seen.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, session {:?}: {}", self.invariant, self.session, self.text)
    }
}

/// What a check has found so far.
struct Found<'a> {
    session: &'a SessionId,
    violations: Vec<Violation>,
}

impl Found<'_> {
    fn add(&mut self, invariant: Invariant, text: impl Into<String>) {
        let session = self.session.clone();
        self.violations.push(Violation { invariant, session, text: text.into() });
    }

    fn unless(&mut self, holds: bool, invariant: Invariant, text: impl FnOnce() -> String) {
        if !holds {
            self.add(invariant, text());
        }
    }
}

/// Everything in a history that must not have happened; nothing when all is well.
#[must_use]
pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    let passes = rest::passes(history);
    for session in &history.sessions {
        let mut found = Found { session, violations: Vec::new() };
        let view = View::of(history, session, &mut found);
        log::check(&view, &mut found);
        heads::check(&view, &mut found);
        lanes::check(&view, &mut found);
        logs::check(&view, &mut found);
        streams::check(&view, &mut found);
        rest::check(&view, &mut found);
        rest::found_by(&passes, session, &view, &mut found);
        violations.append(&mut found.violations);
    }
    violations
}
