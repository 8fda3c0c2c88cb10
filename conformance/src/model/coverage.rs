//! The histories reach every kind of answer: the reference runs them alone, and its answers are
//! counted. A change of the generator that makes a rule rare shows here.

use std::collections::BTreeMap;

use a2_core::{Claim, Claimed, Completion, ErrorKind, Failure, Index, PresencePatch, WithClaim};
use futures_util::FutureExt;
use proptest::strategy::{Strategy, ValueTree};

use super::call::{Call, Reply};
use super::history::{Bench, Run};
use super::reference::Expected;
use super::told::Told;
use super::{generate, runner};

const HISTORIES: u64 = 500;

/// Each kind as often as this.
const ENOUGH: u64 = 3;

const KINDS: &[&str] = &[
    "append: cleared",
    "append: conflict",
    "append: done",
    "append: none pending",
    "append: partial",
    "append: pending",
    "append: replayed",
    "append: superseded",
    "append: the marker's id",
    "append: with a cause",
    "claim: a run",
    "claim: busy",
    "claim: claimed",
    "claim: dead",
    "claim: lapsed",
    "claim: many heads",
    "claim: settled",
    "clear: another head",
    "clear: done",
    "clear: done before",
    "clear: empty",
    "clear: superseded",
    "clear: a timer's origin is the marker",
    "complete: forgotten by a skip",
    "complete: no events",
    "complete: not found",
    "complete: partial",
    "complete: replayed",
    "complete: superseded",
    "complete: then a claim",
    "complete: through",
    "complete: through too far",
    "complete: with events",
    "cursors: a page",
    "cursors: pages",
    "dead letters: none",
    "dead letters: some",
    "fail: dead",
    "fail: failed",
    "fail: not found",
    "fail: superseded",
    "fail: then a claim",
    "fire: nothing",
    "fire: some",
    "pending: none",
    "pending: some",
    "presence: no change",
    "presence: none",
    "presence: removed",
    "presence: rows",
    "presence: set",
    "read: none",
    "read: some",
    "reclaim",
    "redrive: done",
    "redrive: nothing",
    "release: none",
    "release: some",
    "renew: none",
    "renew: some",
    "renew: superseded",
    "schedule: cleared",
    "schedule: done",
    "sessions: many",
    "snapshots: above the head",
    "snapshots: none",
    "snapshots: pinned",
    "snapshots: pinned by the dead",
    "snapshots: stored",
    "state: a snapshot",
    "state: an older snapshot",
    "state: hidden",
    "state: none",
    "stream: some",
    "timers: none",
    "timers: some",
    "unschedule: done",
    "unschedule: nothing",
    "wake: a head",
    "wake: idle",
];

#[test]
fn histories_reach_every_kind_of_answer() {
    let mut counts = BTreeMap::new();
    for seed in 0..HISTORIES {
        let bench = Bench::without_store();
        let mut run = Run::new(&bench);
        let steps = generate::history().new_tree(&mut runner(seed, 0)).unwrap().current();
        for step in &steps {
            // Without a store there is nothing to wait for.
            run.step(step).now_or_never().unwrap().unwrap();
        }
        let mut told = Told::default();
        for (call, expected) in &run.asked {
            if let Some(kind) = expected.answer.as_ref().ok().and_then(|r| told.hear(call, r)) {
                *counts.entry(kind).or_insert(0u64) += 1;
            }
            for kind in kinds(call, expected) {
                *counts.entry(kind).or_insert(0u64) += 1;
            }
        }
    }
    let rare: Vec<_> =
        KINDS.iter().filter(|kind| counts.get(**kind).copied().unwrap_or(0) < ENOUGH).collect();
    assert!(rare.is_empty(), "hardly ever answered: {rare:?} in {counts:#?}");
    assert!(!counts.contains_key("another error"), "{counts:#?}");
}

fn kinds(call: &Call, expected: &Expected) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let reply = match &expected.answer {
        Ok(reply) => reply,
        Err(error) => return vec![refusal(call, error)],
    };
    match reply {
        Reply::Appended(a) if matches!(call, Call::FireTimers(..)) => {
            kinds.push(if a.events.is_empty() { "fire: nothing" } else { "fire: some" });
        }
        Reply::Appended(a) => {
            kinds.push(if a.replayed { "append: replayed" } else { "append: done" });
            kinds.push(if a.has_pending { "append: pending" } else { "append: none pending" });
            if a.events.iter().any(|event| event.cause.is_some()) {
                kinds.push("append: with a cause");
            }
            if a.replayed && a.events.iter().any(|e| e.event_type.is_clear()) {
                kinds.push("append: the marker's id");
            }
        }
        Reply::Events(e) => {
            kinds.push(if e.events.is_empty() { "read: none" } else { "read: some" });
        }
        Reply::Streamed(events) => {
            kinds.push(if events.is_empty() { "stream: none" } else { "stream: some" });
        }
        Reply::Claim(claim) => kinds.extend(claims(claim)),
        Reply::Renewed(r) => {
            kinds.push(if r.renewed.is_empty() { "renew: none" } else { "renew: some" });
            kinds.extend((!r.superseded.is_empty()).then_some("renew: superseded"));
        }
        Reply::Released(r) => {
            kinds.push(if r.released.is_empty() { "release: none" } else { "release: some" });
        }
        Reply::Completed(WithClaim { outcome, claim, .. }) => {
            kinds.push(match outcome {
                Completion::Completed(a) if a.replayed => "complete: replayed",
                Completion::Completed(a) if a.events.is_empty() => "complete: no events",
                Completion::Completed(_) => "complete: with events",
                Completion::Superseded => "complete: superseded",
            });
            if let (Call::Complete(_, c), Completion::Completed(_)) = (call, outcome) {
                kinds.extend(c.end().map(|_| "complete: through"));
            }
            kinds.extend(claim.as_ref().map(|_| "complete: then a claim"));
        }
        Reply::Failed(WithClaim { outcome, claim, .. }) => {
            kinds.push(match outcome {
                Failure::Failed { .. } => "fail: failed",
                Failure::DeadLettered { .. } => "fail: dead",
                Failure::Superseded => "fail: superseded",
            });
            kinds.extend(claim.as_ref().map(|_| "fail: then a claim"));
        }
        Reply::DeadLetters(pages) => {
            kinds.push(if pages[0].is_empty() {
                "dead letters: none"
            } else {
                "dead letters: some"
            });
        }
        Reply::Cursors { pages, .. } => {
            kinds.push(if pages.len() > 1 { "cursors: pages" } else { "cursors: a page" });
        }
        Reply::Redriven(r) => {
            kinds.push(if r.redriven { "redrive: done" } else { "redrive: nothing" });
        }
        Reply::Woken(w) => {
            kinds.push(if w.cursor.head.is_some() { "wake: a head" } else { "wake: idle" });
        }
        Reply::State(s) => {
            kinds.push(if s.snapshot.is_some() { "state: a snapshot" } else { "state: none" });
            let shown = s.snapshot.as_ref().map(|snapshot| snapshot.index);
            if shown.is_some() && shown < s.latest_snapshot {
                kinds.push("state: an older snapshot");
            }
            if s.snapshot.is_none() && s.latest_snapshot.is_some() {
                kinds.push("state: hidden");
            }
        }
        Reply::SnapshotsPut(p) => {
            kinds.push(if p.stored.is_empty() { "snapshots: none" } else { "snapshots: stored" });
            if p.stored.iter().any(|index| Some(*index) < p.latest_snapshot) {
                kinds.push("snapshots: pinned");
            }
        }
        Reply::Cleared(c) => {
            kinds.push(match (c.cleared, c.clear_index == c.index) {
                (false, _) => "clear: another head",
                (true, true) if c.clear_index == Index::ZERO => "clear: empty",
                (true, true) => "clear: done",
                (true, false) => "clear: done before",
            });
        }
        Reply::Reclaimed => kinds.push("reclaim"),
        Reply::Scheduled(_) => kinds.push("schedule: done"),
        Reply::Unscheduled(u) => {
            kinds.push(if u.removed { "unschedule: done" } else { "unschedule: nothing" });
        }
        Reply::Timers(pages) => {
            kinds.push(if pages[0].is_empty() { "timers: none" } else { "timers: some" });
        }
        Reply::Sessions(s) => kinds.push(if s.len() > 1 { "sessions: many" } else { "sessions" }),
        Reply::Pending(p) => {
            kinds.push(if p.is_empty() { "pending: none" } else { "pending: some" });
        }
        Reply::Patch(patch) => kinds.push(match patch {
            None => "presence: no change",
            Some(PresencePatch { values, .. }) if values.values().all(Option::is_none) => {
                "presence: removed"
            }
            Some(_) => "presence: set",
        }),
        Reply::Presence(p) => {
            kinds.push(if p.rows.is_empty() { "presence: none" } else { "presence: rows" });
        }
    }
    kinds
}

fn claims(claim: &Claim) -> Vec<&'static str> {
    let Claim::Claimed(Claimed { heads, .. }) = claim else {
        return vec![if matches!(claim, Claim::Settled) {
            "claim: settled"
        } else {
            "claim: busy"
        }];
    };
    let mut kinds = vec!["claim: claimed"];
    if heads.len() > 1 {
        kinds.push("claim: many heads");
    }
    if heads.iter().any(|head| head.state.failed_at.is_some()) {
        kinds.push("claim: dead");
    }
    let lapsed = |head: &a2_core::DispatchedHead| {
        head.state.last_error.as_deref() == Some("lease expired") && head.state.failed_at.is_none()
    };
    if heads.iter().any(lapsed) {
        kinds.push("claim: lapsed");
    }
    if heads.iter().any(|head| !head.run.is_empty()) {
        kinds.push("claim: a run");
    }
    kinds
}

fn refusal(call: &Call, error: &ErrorKind) -> &'static str {
    match (call, error) {
        (Call::Append(..), ErrorKind::PartialDuplicateBatch { .. }) => "append: partial",
        (Call::Append(..), ErrorKind::HeadConflict { .. }) => "append: conflict",
        (Call::Append(..), ErrorKind::SessionCleared { .. }) => "append: cleared",
        (Call::Append(..), ErrorKind::SupersededAttempt) => "append: superseded",
        (Call::Complete(..), ErrorKind::PartialDuplicateBatch { .. }) => "complete: partial",
        (Call::Complete(..), ErrorKind::NotFound { .. }) => "complete: not found",
        (Call::Complete(..), ErrorKind::InvalidInput { .. }) => "complete: through too far",
        (Call::Fail(..), ErrorKind::NotFound { .. }) => "fail: not found",
        (Call::PutSnapshots(..), ErrorKind::InvalidInput { .. }) => "snapshots: above the head",
        (Call::Clear(..), ErrorKind::SupersededAttempt) => "clear: superseded",
        (Call::Schedule(..), ErrorKind::SessionCleared { .. }) => "schedule: cleared",
        _ => "another error",
    }
}
