//! Heads: one commit each, the attempt as the fence, leases, budgets.

use std::collections::BTreeMap;

use a2_core::{AttemptRef, DispatchState, HeadRef};

use super::view::{Op, View};
use super::{Found, Invariant};
use crate::history::note::{Answer, Asked};

/// What was seen of one head.
#[derive(Default)]
struct Head<'a> {
    claims: Vec<(u64, Op<'a>, &'a DispatchState)>,
    completes: Vec<(u64, Op<'a>)>,
    fails: Vec<(u64, Op<'a>)>,
    releases: Vec<(u64, Op<'a>)>,
    renewals: Vec<(u64, Op<'a>)>,
    redrives: Vec<(bool, Op<'a>)>,
    /// The attempts that are the cause of an event, and its index.
    causes: Vec<(u64, u64)>,
}

pub(super) fn check(view: &View<'_>, found: &mut Found<'_>) {
    for (head, seen) in &collect(view) {
        one_commit(view, head, seen, found);
        fence(head, seen, found);
        leases(view, head, seen, found);
        budget(view, head, seen, found);
    }
    lifetimes(view, found);
}

fn collect<'a>(view: &View<'a>) -> BTreeMap<&'a HeadRef, Head<'a>> {
    let mut heads: BTreeMap<&HeadRef, Head<'a>> = BTreeMap::new();
    for op in &view.ops {
        for claimed in op.claimed() {
            let head = heads.entry(&claimed.head).or_default();
            head.claims.push((claimed.attempt(), *op, &claimed.state));
        }
        let attempts = |claims: &'a [AttemptRef]| claims.iter().map(|c| (&c.head, c.attempt));
        match op.asked {
            Asked::Complete { attempt, .. } => {
                let head = heads.entry(&attempt.head).or_default();
                head.completes.push((attempt.attempt, *op));
            }
            Asked::Fail { attempt, .. } => {
                heads.entry(&attempt.head).or_default().fails.push((attempt.attempt, *op));
            }
            Asked::Release { claims } => {
                for (head, attempt) in attempts(claims) {
                    heads.entry(head).or_default().releases.push((attempt, *op));
                }
            }
            Asked::Renew { claims, .. } => {
                for (head, attempt) in attempts(claims) {
                    heads.entry(head).or_default().renewals.push((attempt, *op));
                }
            }
            Asked::Redrive { head, skip } => {
                heads.entry(head).or_default().redrives.push((*skip, *op));
            }
            _ => {}
        }
    }
    for (index, seen) in &view.events {
        if let Some(cause) = &seen.event.cause {
            heads.entry(&cause.head).or_default().causes.push((cause.attempt, *index));
        }
    }
    heads
}

/// Whether the call is, or may be, what its name says.
fn may_have(op: &Op<'_>) -> bool {
    match op.answer {
        None | Some(Answer::Completed { .. } | Answer::Failed { .. }) => true,
        Some(Answer::Redriven { redriven }) => *redriven,
        Some(_) => false,
    }
}

fn names(list: &[AttemptRef], head: &HeadRef, attempt: u64) -> bool {
    list.iter().any(|named| named.head == *head && named.attempt == attempt)
}

fn one_commit(view: &View<'_>, head: &HeadRef, seen: &Head<'_>, found: &mut Found<'_>) {
    let answered = seen.completes.iter().filter(|(_, op)| op.answer.is_some() && may_have(op));
    let mut attempts: Vec<u64> = answered.map(|(attempt, _)| *attempt).collect();
    attempts.extend(seen.causes.iter().map(|(attempt, _)| *attempt));
    attempts.sort_unstable();
    attempts.dedup();
    found.unless(attempts.len() <= 1, Invariant::OneCommit, || {
        format!("{head:?} is completed by the attempts {attempts:?}")
    });
    let &[attempt] = &attempts[..] else { return };
    // All that it returned stands there, in order.
    let asked = seen.completes.iter().find(|(number, op)| *number == attempt && may_have(op));
    let Some((_, Op { asked: Asked::Complete { returned, .. }, .. })) = asked else {
        found.add(Invariant::OneCommit, format!("nobody completed {head:?} as {attempt}"));
        return;
    };
    let indexes: Vec<u64> = seen.causes.iter().map(|(_, index)| *index).collect();
    let Some(first) = indexes.first() else { return };
    let ids = indexes.iter().filter_map(|index| view.events.get(index)).map(|s| &s.event.id);
    // Where a clear came at once, some may never have been seen.
    let all_seen = indexes.len() == returned.len();
    let in_order = returned.iter().map(|sent| &sent.id).eq(ids)
        && indexes.iter().copied().eq(*first..*first + indexes.len() as u64);
    let is_kept = view.lifetime_of(*first) == view.lifetime_of(u64::MAX);
    found.unless(
        if all_seen { in_order } else { !is_kept && indexes.len() < returned.len() },
        Invariant::OneCommit,
        || format!("{head:?} returned {returned:?}, of which {indexes:?} are there"),
    );
}

fn fence(head: &HeadRef, seen: &Head<'_>, found: &mut Found<'_>) {
    // Since when an attempt above this one was known to be claimed.
    let taken_over = |attempt: u64| {
        let later = seen.claims.iter().filter(|(number, ..)| *number > attempt);
        later.filter_map(|(_, op, _)| op.end).min().unwrap_or(usize::MAX)
    };
    // A call sent again answers what the first one did: that one must have begun in time.
    for calls in [&seen.completes, &seen.fails] {
        for (attempt, op) in calls {
            if op.answer.is_none() || !may_have(op) {
                continue;
            }
            let same = calls.iter().filter(|(number, op)| number == attempt && may_have(op));
            let begun = same.map(|(_, op)| op.begin).min().unwrap_or(op.begin);
            found.unless(begun < taken_over(*attempt), Invariant::Fence, || {
                format!("{head:?} was taken over when attempt {attempt} did {:?}", op.asked)
            });
        }
    }
    let kept = seen.renewals.iter().chain(&seen.releases);
    for (attempt, op) in kept {
        let list = match op.answer {
            Some(Answer::Renewed { renewed, .. }) => renewed,
            Some(Answer::Released { released }) => released,
            _ => continue,
        };
        if names(list, head, *attempt) {
            found.unless(op.begin < taken_over(*attempt), Invariant::Fence, || {
                format!("{head:?} was taken over when attempt {attempt} did {:?}", op.asked)
            });
        }
    }
    // Done is done.
    let skipped = seen.redrives.iter().filter(|(skip, _)| *skip).map(|(_, op)| op);
    let done = seen.completes.iter().map(|(_, op)| op).chain(skipped);
    let done = done.filter(|op| may_have(op)).filter_map(|op| op.end).min();
    for (attempt, op, _) in &seen.claims {
        found.unless(done.is_none_or(|done| op.begin < done), Invariant::Fence, || {
            format!("{head:?} is done and claimed as attempt {attempt}")
        });
    }
    for (n, (attempt, op, _)) in seen.claims.iter().enumerate() {
        for (other, later, _) in seen.claims.iter().skip(n + 1) {
            let told_apart = attempt != other;
            let in_order = !op.ended_before(later.begin) || attempt < other;
            found.unless(told_apart && in_order, Invariant::Fence, || {
                format!("{head:?} is claimed as attempt {attempt} and then as {other}")
            });
        }
    }
}

/// Nobody claims what is leased.
fn leases(view: &View<'_>, head: &HeadRef, seen: &Head<'_>, found: &mut Found<'_>) {
    let mut claims: Vec<_> = seen.claims.iter().collect();
    claims.sort_by_key(|(attempt, ..)| *attempt);
    for pair in claims.windows(2) {
        let [(attempt, _, state), (next, op, next_state)] = pair else { continue };
        let until = op.end.unwrap_or(usize::MAX);
        let ends_it = |number: &u64, op: &Op<'_>| *number == *attempt && op.begin < until;
        let given_up = seen.fails.iter().chain(&seen.releases).chain(&seen.completes);
        if *next != *attempt + 1
            || state.is_dead()
            || given_up.clone().any(|(number, op)| ends_it(number, op))
            || seen.redrives.iter().any(|(_, op)| op.begin < until)
        {
            continue;
        }
        let renewals: Vec<_> =
            seen.renewals.iter().filter(|(number, op)| ends_it(number, op)).collect();
        let expiry = if renewals.is_empty() {
            state.claim_expires_at.map(|at| at.as_millis())
        } else {
            renewed_until(view, head, *attempt, &renewals)
        };
        // A dead-lettering claim lays no claim: it tells when it found the lapse.
        let claimed_at =
            if next_state.is_dead() { next_state.failed_at } else { next_state.last_claimed_at };
        let (Some(expiry), Some(claimed_at)) = (expiry, claimed_at) else { continue };
        found.unless(claimed_at.as_millis() >= expiry, Invariant::Fence, || {
            format!(
                "{head:?}: attempt {next} at {claimed_at:?}, {attempt} is leased until {expiry}"
            )
        });
    }
}

/// Until when, at least, if every renewal is answered and the last one held.
fn renewed_until(
    view: &View<'_>,
    head: &HeadRef,
    attempt: u64,
    renewals: &[&(u64, Op<'_>)],
) -> Option<i64> {
    if renewals.iter().any(|(_, op)| op.end.is_none()) {
        return None;
    }
    let (_, last) = renewals.iter().max_by_key(|(_, op)| op.begin)?;
    match (last.asked, last.answer) {
        (Asked::Renew { ttl, .. }, Some(Answer::Renewed { renewed, .. }))
            if names(renewed, head, attempt) =>
        {
            i64::try_from(view.times.before(last.begin) + ttl).ok()
        }
        _ => None,
    }
}

fn budget(view: &View<'_>, head: &HeadRef, seen: &Head<'_>, found: &mut Found<'_>) {
    let max = view.history.budget;
    let is_retried = seen.redrives.iter().any(|(skip, op)| !skip && may_have(op));
    let mut claims: Vec<_> = seen.claims.iter().collect();
    claims.sort_by_key(|(attempt, ..)| *attempt);
    for (attempt, _, state) in &claims {
        let spent = state.failure_count >= max;
        found.unless(spent == state.is_dead(), Invariant::Budget, || {
            format!(
                "{head:?}, attempt {attempt}: {} of {max} failures, {state:?}",
                state.failure_count
            )
        });
    }
    if is_retried {
        return;
    }
    // Every attempt but those that were released has failed or lapsed before the next one.
    let none = DispatchState::default();
    let first = (0, &none);
    let rest = claims.iter().map(|(attempt, _, state)| (*attempt, *state));
    let sighted: Vec<_> = std::iter::once(first).chain(rest).collect();
    for pair in sighted.windows(2) {
        let &[(attempt, state), (next, next_state)] = pair else { continue };
        let between = |number: u64| number >= attempt.max(1) && number < next;
        let releases = seen.releases.iter().filter(|(number, _)| between(*number));
        let (mut released, mut perhaps) = (0, 0);
        for (number, op) in releases {
            match op.answer {
                Some(Answer::Released { released: list }) if names(list, head, *number) => {
                    released += 1;
                }
                None => perhaps += 1,
                Some(_) => {}
            }
        }
        let ended = next - attempt.max(1);
        let most = (state.failure_count + ended).saturating_sub(released);
        let least = most.saturating_sub(perhaps);
        found.unless((least..=most).contains(&next_state.failure_count), Invariant::Budget, || {
            let (before, after) = (state.failure_count, next_state.failure_count);
            format!("{head:?}: {before} failures at attempt {attempt}, {after} at {next}, {released} released")
        });
    }
    for (attempt, op) in &seen.fails {
        let Some(Answer::Failed { failure_count, dead, .. }) = op.answer else { continue };
        let claimed = claims.iter().find(|(number, ..)| number == attempt);
        if let Some((_, _, state)) = claimed {
            let expected = state.failure_count + 1;
            found.unless(*failure_count == expected, Invariant::Budget, || {
                format!("{head:?}: attempt {attempt} is failure {failure_count}, not {expected}")
            });
        }
        found.unless(*dead == (*failure_count >= max), Invariant::Budget, || {
            format!("{head:?}: failure {failure_count} of {max}, dead-lettered: {dead}")
        });
    }
}

/// Whoever asks after a clear gets nothing from below it.
fn lifetimes(view: &View<'_>, found: &mut Found<'_>) {
    for op in &view.ops {
        let clear = view.clears.before(op.begin);
        if clear == 0 {
            continue;
        }
        let listed: &[_] = match op.answer {
            Some(Answer::DeadLetters { heads }) => heads,
            _ => op.claimed(),
        };
        for claimed in listed {
            found.unless(claimed.head.index.get() > clear, Invariant::Lifetime, || {
                format!("{:?} is given after the clear at {clear}", claimed.head)
            });
        }
        if let Some(Answer::Cursors { cursors, .. }) = op.answer {
            for cursor in cursors {
                let head = cursor.head.map(|head| head.get());
                found.unless(head.is_none_or(|head| head > clear), Invariant::Lifetime, || {
                    format!("{cursor:?} is listed after the clear at {clear}")
                });
            }
        }
        let of = match (op.asked, op.answer) {
            (Asked::Complete { attempt, .. }, Some(Answer::Completed { .. }))
            | (Asked::Fail { attempt, .. }, Some(Answer::Failed { .. })) => &attempt.head,
            (Asked::Redrive { head, .. }, Some(Answer::Redriven { redriven: true })) => head,
            _ => continue,
        };
        found.unless(of.index.get() > clear, Invariant::Lifetime, || {
            format!("{of:?} is worked on after the clear at {clear}: {:?}", op.asked)
        });
    }
}
