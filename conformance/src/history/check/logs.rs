//! Log cursors: each event of their types once, in order.

use a2_core::{CursorKey, LogDeclaration};

use super::lanes::{Queue, queues};
use super::view::View;
use super::{Found, Invariant};

pub(super) fn check(view: &View<'_>, found: &mut Found<'_>) {
    let logs = queues(view, |key| match key {
        CursorKey::Log(log) => Some(log.as_str()),
        _ => None,
    });
    for (consumer, declared) in &view.history.logs {
        let Some(queue) = logs.get(&(consumer.as_str(), declared.name().as_str())) else {
            continue;
        };
        let mut wrong = Vec::new();
        wrong.extend(queue.in_order().err());
        steps(view, declared, queue, &mut wrong);
        runs(view, consumer.as_str(), declared, &mut wrong);
        for text in wrong {
            found.add(Invariant::Log, format!("log {:?} of {consumer:?}: {text}", declared.name()));
        }
    }
}

/// From each head to the next: no event in between that the log takes and nothing was done with.
fn steps<'a>(
    view: &View<'a>,
    declared: &'a LogDeclaration,
    queue: &Queue<'_>,
    wrong: &mut Vec<String>,
) {
    let types = declared.log_types();
    let mut heads: Vec<u64> = queue.claims.iter().map(|(index, _)| *index).collect();
    heads.sort_unstable();
    heads.dedup();
    let (mut through, mut answered) = (0, None);
    for head in &heads {
        if let Some(end) = answered.filter(|end| end >= head) {
            wrong.push(format!("{head} is given though all was done up to {end}"));
        }
        let mut left_out = view.taken(types, through + 1, *head);
        if let Some(event) = left_out.find(|event| !view.may_be_cleared_between(*event, *head)) {
            wrong.push(format!("{event} is left out between {through} and {head}"));
        }
        // One attempt ends a head. Without an answer it may be the one that goes the furthest.
        let ends = queue.ends.iter().filter(|(index, ..)| index == head);
        let sure = ends.clone().filter(|(.., op)| op.end.is_some());
        answered = sure.map(|(_, end, _)| *end).max();
        through = answered.or_else(|| ends.map(|(_, end, _)| *end).max()).unwrap_or(*head);
    }
    // Nobody gets a head before the one below it began to be ended.
    for (head, op) in &queue.claims {
        let below = heads.partition_point(|index| index < head);
        let Some(previous) = below.checked_sub(1).and_then(|at| heads.get(at)) else { continue };
        let begun = queue.end_begun(*previous);
        if !view.may_be_cleared_between(*previous, *head) && op.end.is_some_and(|end| begun > end) {
            wrong.push(format!("{head} is claimed before {previous} is done"));
        }
    }
    let last = view.lifetime_of(u64::MAX).max(through);
    if let Some(event) = view.taken(types, last + 1, u64::MAX).next() {
        wrong.push(format!("{event} was never given, the last was {through}"));
    }
}

/// A run is what the log takes, without a gap.
fn runs<'a>(
    view: &View<'a>,
    consumer: &str,
    declared: &'a LogDeclaration,
    wrong: &mut Vec<String>,
) {
    let types = declared.log_types();
    for claimed in view.ops.iter().flat_map(|op| op.claimed()) {
        let is_log = matches!(&claimed.head.cursor, CursorKey::Log(log) if log == declared.name());
        if !is_log || claimed.head.consumer.as_str() != consumer {
            continue;
        }
        let mut previous = claimed.head.index.get();
        for event in &claimed.run {
            let index = event.index.get();
            let taken = types.takes(&event.event_type);
            let skipped = view.taken(types, previous + 1, index).next();
            if index <= previous || !taken || skipped.is_some() {
                wrong.push(format!("a run goes from {previous} to {index} past {skipped:?}"));
            }
            previous = index;
        }
    }
}
