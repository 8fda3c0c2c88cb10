//! Lanes: heads in the order of the log, none left out, one at a time.

use std::collections::BTreeMap;

use a2_core::{CursorKey, HeadRef};

use super::order::Growing;
use super::view::{Op, View};
use super::{Found, Invariant};
use crate::history::note::{Answer, Asked};

/// A cursor that gives one head after the other: its heads as they were claimed and ended.
#[derive(Default)]
pub(super) struct Queue<'a> {
    pub(super) claims: Vec<(u64, Op<'a>)>,
    /// Completions and skips that were done, or may have been; with how far they go.
    pub(super) ends: Vec<(u64, u64, Op<'a>)>,
}

/// The queues of a session by consumer and name: its lanes, or its logs.
pub(super) fn queues<'a>(
    view: &View<'a>,
    name: impl Fn(&'a CursorKey) -> Option<&'a str>,
) -> BTreeMap<(&'a str, &'a str), Queue<'a>> {
    let mut queues: BTreeMap<_, Queue<'a>> = BTreeMap::new();
    let key = |head: &'a HeadRef| Some((head.consumer.as_str(), name(&head.cursor)?));
    for op in &view.ops {
        for claimed in op.claimed() {
            if let Some(key) = key(&claimed.head) {
                let index = claimed.head.index.get();
                queues.entry(key).or_default().claims.push((index, *op));
            }
        }
        let (head, through) = match (op.asked, op.answer) {
            (Asked::Complete { attempt, through, .. }, None | Some(Answer::Completed { .. })) => {
                (&attempt.head, *through)
            }
            (
                Asked::Redrive { head, skip: true },
                None | Some(Answer::Redriven { redriven: true }),
            ) => (head, None),
            _ => continue,
        };
        if let Some(key) = key(head) {
            let through = through.unwrap_or(head.index).get();
            queues.entry(key).or_default().ends.push((head.index.get(), through, *op));
        }
    }
    queues
}

impl Queue<'_> {
    /// Whether the heads come in order: whoever claims after an answer gets no earlier one.
    pub(super) fn in_order(&self) -> Result<(), String> {
        let claimed = self.claims.iter().filter_map(|(index, op)| Some((op.end?, *index)));
        let ended = self.ends.iter().filter_map(|(_, through, op)| Some((op.end?, through + 1)));
        let first = Growing::new(claimed.chain(ended).collect());
        for (index, op) in &self.claims {
            let least = first.before(op.begin);
            if *index < least {
                return Err(format!("{index} is claimed where {least} or later was due"));
            }
        }
        Ok(())
    }

    /// When the head began to be ended, for the first time.
    pub(super) fn end_begun(&self, head: u64) -> usize {
        let ends = self.ends.iter().filter(|(index, ..)| *index == head);
        ends.map(|(.., op)| op.begin).min().unwrap_or(usize::MAX)
    }
}

pub(super) fn check(view: &View<'_>, found: &mut Found<'_>) {
    let lanes = queues(view, |key| match key {
        CursorKey::Lane(lane) => Some(lane.as_str()),
        _ => None,
    });
    for ((consumer, lane), queue) in &lanes {
        if let Err(text) = queue.in_order() {
            found.add(Invariant::Lane, format!("lane {lane:?} of {consumer:?}: {text}"));
        }
        none_left_out(view, consumer, lane, queue, found);
    }
}

fn none_left_out(
    view: &View<'_>,
    consumer: &str,
    lane: &str,
    queue: &Queue<'_>,
    found: &mut Found<'_>,
) {
    let is_for = |index: &u64| {
        let sent = view.events.get(index).and_then(|seen| view.sent.get(&seen.event.id));
        sent.is_some_and(|sends| {
            sends.iter().flat_map(|(sent, _)| &sent.targets).any(|target| {
                target.consumer().as_str() == consumer
                    && target.lane_name().is_some_and(|name| name.as_str() == lane)
            })
        })
    };
    let events: Vec<u64> = view.events.keys().copied().filter(is_for).collect();
    for (head, op) in &queue.claims {
        let before = events.partition_point(|index| index < head);
        let Some(previous) = before.checked_sub(1).and_then(|at| events.get(at)) else { continue };
        if view.may_be_cleared_between(*previous, *head) {
            continue;
        }
        let begun = queue.end_begun(*previous);
        found.unless(op.end.is_none_or(|end| begun < end), Invariant::Lane, || {
            format!("lane {lane:?} of {consumer:?}: {head} is claimed before {previous} is done")
        });
    }
}
