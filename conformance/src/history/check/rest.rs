//! Timers, snapshots, passes over what is pending, and the end of it all.

use std::collections::{BTreeMap, HashSet};

use a2_core::{Index, SessionId};

use super::order::Growing;
use super::view::{Op, View};
use super::{Found, History, Invariant};
use crate::history::note::{Answer, Asked, Note};

pub(super) fn check(view: &View<'_>, found: &mut Found<'_>) {
    timers(view, found);
    snapshots(view, found);
    settled(view, found);
}

fn timers(view: &View<'_>, found: &mut Found<'_>) {
    for op in &view.ops {
        let (Asked::Schedule { key, event }, Some(Answer::Scheduled { due_at })) =
            (op.asked, op.answer)
        else {
            continue;
        };
        let indexes = view.indexes.get(&event.id);
        let sent_once = view.sent.get(&event.id).is_some_and(|sends| sends.len() == 1);
        let fired: Vec<u64> = indexes.into_iter().flatten().copied().collect();
        found.unless(!sent_once || fired.len() <= 1, Invariant::Timer, || {
            format!("timer {key} has fired at {fired:?}")
        });
        for seen in fired.iter().filter_map(|index| view.events.get(index)) {
            let created = seen.event.created_at;
            found.unless(!sent_once || created >= *due_at, Invariant::Timer, || {
                format!("timer {key}, due at {due_at:?}, has fired at {created:?}")
            });
        }
        let taken_back = |other: &Op<'_>| match other.asked {
            Asked::Schedule { key: again, event: new } => again == key && new.id != event.id,
            Asked::Unschedule { key: again } => again == key,
            // It may have fired and been cleared before anybody looked.
            Asked::Clear { .. } => other.end.is_none_or(|end| end > op.begin),
            _ => false,
        };
        if fired.is_empty() && !view.ops.iter().any(taken_back) {
            found.add(Invariant::Timer, format!("timer {key} has never fired"));
        }
    }
}

fn snapshots(view: &View<'_>, found: &mut Found<'_>) {
    let stored = view.ops.iter().filter_map(|op| match op.answer {
        Some(Answer::Put { stored }) => Some((op.end?, stored.iter().max()?.get())),
        _ => None,
    });
    let latest_known = Growing::new(stored.collect());
    for op in &view.ops {
        let (
            Asked::ReadState { through },
            Some(Answer::State { latest, snapshot, events, clear_index }),
        ) = (op.asked, op.answer)
        else {
            continue;
        };
        let (known, clear) = (latest_known.before(op.begin), clear_index.get());
        let latest = latest.map_or(0, Index::get);
        found.unless(latest >= known || known < clear, Invariant::Snapshot, || {
            format!("the latest snapshot is {latest}, {known} was stored before")
        });
        if let Some((index, state)) = snapshot {
            let is_whole = index <= through
                && index.get() >= clear
                && state.as_str() == format!("{{\"at\":{index}}}");
            found.unless(is_whole, Invariant::Snapshot, || {
                format!("through {through}, marker {clear}: the snapshot at {index} is {state}")
            });
        }
        let first = snapshot.as_ref().map_or(clear.max(1), |(index, _)| index.get() + 1);
        let dense = events.iter().zip(first..).all(|(event, index)| event.index.get() == index);
        found.unless(dense, Invariant::Snapshot, || {
            format!("after the snapshot the events should go on at {first}")
        });
    }
}

/// All was worked off: no head and no timer is left.
fn settled(view: &View<'_>, found: &mut Found<'_>) {
    let mut looked = false;
    for op in view.ops.iter().filter(|op| op.begin >= view.history.settled_from) {
        match op.answer {
            Some(Answer::Cursors { cursors, .. }) => {
                looked = true;
                for cursor in cursors.iter().filter(|cursor| cursor.head.is_some()) {
                    found.add(Invariant::Settled, format!("{cursor:?} has a head at the end"));
                }
            }
            Some(Answer::Timers { keys }) => {
                let none = keys.is_empty();
                found.unless(none, Invariant::Settled, || format!("timers at the end: {keys:?}"));
            }
            _ => {}
        }
    }
    found.unless(looked, Invariant::Settled, || "nobody looked at the end".to_owned());
}

/// One pass: all pages, and the sessions that they list.
pub(super) struct Pass<'a> {
    begin: usize,
    end: usize,
    listed: HashSet<&'a SessionId>,
}

/// Every pass lists the session if it had an untouched head throughout.
pub(super) fn found_by(
    passes: &[Pass<'_>],
    session: &SessionId,
    view: &View<'_>,
    found: &mut Found<'_>,
) {
    let heads = untouched(view.history, view);
    for pass in passes.iter().filter(|pass| pass.end < view.history.drained_from) {
        // One that was there before the pass, and no clear that could have taken it away.
        let there = heads.iter().find(|(append, _)| append.ended_before(pass.begin));
        let cleared = |append: &Op<'_>| {
            view.ops.iter().any(|op| {
                matches!(op.asked, Asked::Clear { .. })
                    && op.begin < pass.end
                    && !op.ended_before(append.begin)
            })
        };
        if let Some((_, index)) = there.filter(|(append, _)| !cleared(append)) {
            found.unless(pass.listed.contains(session), Invariant::Pending, || {
                format!("a pass did not find the head {index}")
            });
        }
    }
}

/// The calls that were answered with the event of a head that nobody touched, and its index; the latest
/// first.
fn untouched<'a>(history: &History, view: &View<'a>) -> Vec<(Op<'a>, u64)> {
    let mut heads = Vec::new();
    for op in &view.ops {
        if op.end.is_none() || !op.may_have_appended() {
            continue;
        }
        for event in op.events() {
            let sends = view.sent.get(&event.id).map(Vec::as_slice).unwrap_or_default();
            let targets = sends.iter().flat_map(|(sent, _)| &sent.targets);
            let mut targets = targets.filter(|target| target.lane_name().is_none());
            if targets.any(|target| *target.consumer() == history.untouched) {
                heads.push((*op, event.index.get()));
            }
        }
    }
    // The latest is the one that the fewest clears could have taken away.
    heads.sort_by_key(|(op, _)| std::cmp::Reverse(op.begin));
    heads
}

/// The passes that were made to their end.
pub(super) fn passes(history: &History) -> Vec<Pass<'_>> {
    let mut answers: BTreeMap<u64, (usize, &Answer)> = BTreeMap::new();
    for (at, note) in history.notes.iter().enumerate() {
        if let Note::Ended { call, answer: answer @ Answer::Sessions { .. } } = note {
            answers.insert(*call, (at, answer));
        }
    }
    let mut under_way: BTreeMap<u32, Pass<'_>> = BTreeMap::new();
    let mut passes = Vec::new();
    for (at, note) in history.notes.iter().enumerate() {
        let Note::Began { call, worker, asked: Asked::Pending { first }, .. } = note else {
            continue;
        };
        if *first {
            let pass = Pass { begin: at, end: at, listed: HashSet::new() };
            under_way.insert(*worker, pass);
        }
        let Some(mut pass) = under_way.remove(worker) else { continue };
        // A page that was not answered ends the pass.
        let Some((end, Answer::Sessions { sessions, last })) = answers.get(call) else { continue };
        pass.listed.extend(sessions);
        pass.end = *end;
        if *last {
            passes.push(pass);
        } else {
            under_way.insert(*worker, pass);
        }
    }
    passes
}
