//! The log: dense, nothing lost, doubled or made up, nothing of an earlier lifetime.

use super::view::{Op, View};
use super::{Found, Invariant};
use crate::history::note::{Answer, Asked, Sent};
use a2_core::{Event, EventType};

pub(super) fn check(view: &View<'_>, found: &mut Found<'_>) {
    for op in &view.ops {
        answer(view, op, found);
    }
    ids(view, found);
    origins(view, found);
    whole(view, found);
}

fn answer(view: &View<'_>, op: &Op<'_>, found: &mut Found<'_>) {
    let is_exempt = view.history.unanswered_may_vanish && op.begin < view.history.settled_from;
    match (op.asked, op.answer) {
        (
            Asked::Read { after, through, limit },
            Some(Answer::Events { events, head, clear_index }),
        ) => {
            let (head, clear) = (head.get(), clear_index.get());
            let first = (after.get() + 1).max(clear);
            found.unless(is_dense(events, first), Invariant::Dense, || {
                format!("a read after {after} shows {:?}", indexes(events))
            });
            let last = events.last().map_or(first.saturating_sub(1), |event| event.index.get());
            let is_whole = events.len() >= *limit || last >= head.min(through.get());
            found.unless(is_whole, Invariant::Dense, || {
                format!("a read after {after} ends at {last} of {head}")
            });
            if !is_exempt {
                let known = view.heads.before(op.begin);
                found.unless(head >= known, Invariant::Kept, || {
                    format!("a read finds the head at {head} where it was {known} before")
                });
                not_cleared(view, op, clear, found);
            }
        }
        (Asked::Append { events: sent }, Some(Answer::Appended { events, replayed })) => {
            written(sent, events, *replayed, found);
        }
        (Asked::Complete { returned, .. }, Some(Answer::Completed { events, replayed, .. })) => {
            written(returned, events, *replayed, found);
        }
        (_, Some(Answer::Cursors { clear_index, .. } | Answer::State { clear_index, .. }))
            if !is_exempt =>
        {
            not_cleared(view, op, clear_index.get(), found);
        }
        _ => {}
    }
}

/// What an answer says of the latest marker, whoever knew of one before it began.
fn not_cleared(view: &View<'_>, op: &Op<'_>, clear: u64, found: &mut Found<'_>) {
    let known = view.clears.before(op.begin);
    found.unless(clear >= known, Invariant::Lifetime, || {
        format!("the marker is said to be {clear} where it was {known} before: {:?}", op.asked)
    });
}

fn is_dense(events: &[Event], first: u64) -> bool {
    events.iter().zip(first.max(1)..).all(|(event, index)| event.index.get() == index)
}

fn indexes(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.index.get()).collect()
}

/// An answer has the events of the request, under indexes that follow each other.
fn written(sent: &[Sent], events: &[Event], replayed: bool, found: &mut Found<'_>) {
    let same = sent.len() == events.len()
        && sent.iter().zip(events).all(|(sent, event)| sent.id == event.id);
    found.unless(same, Invariant::Kept, || format!("{sent:?} is answered with {events:?}"));
    let first = events.first().map_or(1, |event| event.index.get());
    found.unless(replayed || is_dense(events, first), Invariant::Dense, || {
        format!("a batch is appended at {:?}", indexes(events))
    });
}

/// An id is in the log once, in one lifetime.
fn ids(view: &View<'_>, found: &mut Found<'_>) {
    for (id, indexes) in &view.indexes {
        let all: Vec<u64> = indexes.iter().copied().collect();
        for pair in all.windows(2) {
            let &[first, second] = pair else { continue };
            found.unless(view.may_be_cleared_between(first, second), Invariant::Once, || {
                format!("event {id} stands at {first} and at {second}")
            });
        }
    }
}

/// Every event was sent by somebody, as it is, and not refused.
fn origins(view: &View<'_>, found: &mut Found<'_>) {
    for (index, seen) in &view.events {
        let event = seen.event;
        if event.event_type == EventType::CLEAR {
            continue;
        }
        let sends = view.sent.get(&event.id).map(Vec::as_slice).unwrap_or_default();
        let may = sends.iter().any(|(_, op)| op.may_have_appended() && op.begin < seen.at);
        found.unless(may, Invariant::Refused, || {
            format!("event {index}, {event:?}, was sent by none or refused: {sends:?}")
        });
        let same = sends
            .iter()
            .all(|(sent, _)| sent.event_type == event.event_type && sent.payload == event.payload);
        found.unless(same, Invariant::Kept, || format!("event {index}, {event:?}, was {sends:?}"));
    }
}

/// At the end the log was read from the marker to its head.
fn whole(view: &View<'_>, found: &mut Found<'_>) {
    let last = view.ops.iter().filter(|op| op.begin >= view.history.settled_from);
    let mut read = 0;
    let mut end = None;
    for op in last {
        if let (Asked::Read { .. }, Some(Answer::Events { events, head, .. })) =
            (op.asked, op.answer)
        {
            read = events.last().map_or(read, |event| event.index.get());
            end = Some(head.get());
        }
    }
    found.unless(end == Some(read), Invariant::Settled, || {
        format!("the log was read to {read}, its head is {end:?}")
    });
}
