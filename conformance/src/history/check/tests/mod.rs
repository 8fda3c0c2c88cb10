//! The checker on histories that are corrupted on purpose: each invariant is broken in one place, and must
//! be found.
#![cfg(feature = "memory")]

mod words;

use std::collections::BTreeSet;

use a2_core::{AttemptRef, EventId, HeadRef, Index, Timestamp};

use super::{History, Invariant, check};
use crate::history::note::{Answer, Asked, Note};
use crate::history::{Plan, run};
use words::*;

/// A history in which everything happens, and nothing that must not.
fn clean() -> History {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let factory = crate::backends::Memory::default();
    let report = runtime.block_on(run(&factory, &Plan::new(3))).unwrap();
    assert_eq!(report.violations, []);
    report.history
}

/// How a history is corrupted; false where there is nothing to corrupt.
type Corrupt = fn(&mut History) -> bool;

const CORRUPTIONS: &[(&str, Invariant, Corrupt)] = &[
    ("a page has a hole", Invariant::Dense, hole),
    ("a batch is answered with a gap", Invariant::Dense, gap_in_an_answer),
    ("a page ends early", Invariant::Dense, short_page),
    ("an event changes its payload", Invariant::Kept, changed_payload),
    ("an acknowledged event is gone at the end", Invariant::Kept, lost_tail),
    ("another event is acknowledged", Invariant::Kept, other_answer),
    ("an event stands twice in the log", Invariant::Once, doubled),
    ("a refused batch is in the log", Invariant::Refused, refused_but_done),
    ("an event comes from nowhere", Invariant::Refused, from_nowhere),
    ("a head is completed by two attempts", Invariant::OneCommit, two_commits),
    ("a completion leaves an event out", Invariant::OneCommit, half_a_commit),
    ("an attempt is given twice", Invariant::Fence, attempt_given_twice),
    ("a lease is not waited for", Invariant::Fence, claimed_while_leased),
    ("who was taken over renews", Invariant::Fence, renewed_after_takeover),
    ("a finished head is claimed", Invariant::Fence, claimed_when_done),
    ("a lane goes on before its head is done", Invariant::Lane, lane_not_done),
    ("a lane goes back", Invariant::Lane, lane_goes_back),
    ("a log leaves an event out", Invariant::Log, log_leaves_out),
    ("a log goes on before its head is done", Invariant::Log, log_not_done),
    ("a log gives what was done", Invariant::Log, log_gives_again),
    ("a stream has a gap", Invariant::Stream, stream_gap),
    ("a stream repeats", Invariant::Stream, stream_repeats),
    ("a stream falls behind", Invariant::Stream, stream_behind),
    ("a stream ends", Invariant::Stream, stream_ends),
    ("passes do not find a session", Invariant::Pending, not_found),
    ("a timer fires early", Invariant::Timer, timer_early),
    ("a timer never fires", Invariant::Timer, timer_lost),
    ("a head of an earlier lifetime is claimed", Invariant::Lifetime, claimed_after_clear),
    ("the marker goes back", Invariant::Lifetime, marker_goes_back),
    ("a claim counts a failure too many", Invariant::Budget, failure_too_many),
    ("a failure is not counted", Invariant::Budget, failure_uncounted),
    ("a spent budget does not dead-letter", Invariant::Budget, not_dead),
    ("the latest snapshot is gone", Invariant::Snapshot, snapshot_gone),
    ("a snapshot is another's", Invariant::Snapshot, other_snapshot),
    ("a head is left at the end", Invariant::Settled, head_left),
    ("nobody looks at the end", Invariant::Settled, no_look),
];

#[test]
fn what_is_broken_is_found() {
    let clean = clean();
    let mut missed = Vec::new();
    for (name, invariant, corrupt) in CORRUPTIONS {
        let mut history = clean.clone();
        assert!(corrupt(&mut history), "{name}: the history has no place for it");
        let found: BTreeSet<_> = check(&history).into_iter().map(|v| v.invariant).collect();
        if !found.contains(invariant) {
            missed.push(format!("{name}: {invariant:?} is not among {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let broken: BTreeSet<_> = CORRUPTIONS.iter().map(|(_, invariant, _)| *invariant).collect();
    assert_eq!(broken, BTreeSet::from(Invariant::ALL));
}

// Corruptions.

fn hole(history: &mut History) -> bool {
    first_answer(history, |_, _, answer| match answer {
        Answer::Events { events, .. } if events.len() > 2 => {
            events.remove(1);
            true
        }
        _ => false,
    })
}

fn short_page(history: &mut History) -> bool {
    first_answer(history, |_, _, answer| match answer {
        Answer::Events { events, .. } if events.len() > 2 => events.pop().is_some(),
        _ => false,
    })
}

fn gap_in_an_answer(history: &mut History) -> bool {
    first_answer(history, |_, asked, answer| match (asked, answer) {
        (Asked::Append { .. }, Answer::Appended { events, replayed: false })
            if events.len() > 1 =>
        {
            events[1].index = events[1].index.plus(1).unwrap();
            true
        }
        _ => false,
    })
}

fn changed_payload(history: &mut History) -> bool {
    let settled = history.settled_from;
    first_answer(history, |at, _, answer| match answer {
        Answer::Events { events, .. } if at > settled && !events.is_empty() => {
            events[0].payload = a2_core::Json::null();
            true
        }
        _ => false,
    })
}

fn lost_tail(history: &mut History) -> bool {
    let settled = history.settled_from;
    first_answer(history, |at, _, answer| match answer {
        Answer::Events { events, head, .. } if at > settled => {
            *head = head.previous();
            events.pop().is_some()
        }
        _ => false,
    })
}

fn other_answer(history: &mut History) -> bool {
    first_answer(history, |_, asked, answer| match (asked, answer) {
        (Asked::Append { .. }, Answer::Appended { events, .. }) if !events.is_empty() => {
            events[0].id = EventId::new("other").unwrap();
            true
        }
        _ => false,
    })
}

fn doubled(history: &mut History) -> bool {
    let settled = history.settled_from;
    first_answer(history, |at, _, answer| match answer {
        Answer::Events { events, head, .. } if at > settled && events.len() > 1 => {
            *head = head.next();
            let mut again = events[0].clone();
            again.index = *head;
            events.push(again);
            true
        }
        _ => false,
    })
}

fn refused_but_done(history: &mut History) -> bool {
    first_answer(history, |_, asked, answer| match (asked, &answer) {
        (Asked::Append { .. }, Answer::Appended { events, replayed: false })
            if !events.is_empty() =>
        {
            *answer = Answer::Refused { code: "HEAD_CONFLICT".into(), text: String::new() };
            true
        }
        _ => false,
    })
}

fn from_nowhere(history: &mut History) -> bool {
    first(history, |note| match note {
        Note::Began { asked: Asked::Append { events }, .. } if !events.is_empty() => {
            events[0].id = EventId::new("another").unwrap();
            true
        }
        _ => false,
    })
}

fn two_commits(history: &mut History) -> bool {
    let found =
        calls(history).into_iter().find_map(|(begin, end, asked, answer)| match (asked, answer) {
            (Asked::Complete { attempt, .. }, Answer::Completed { .. }) => {
                Some((begin, end, attempt))
            }
            _ => None,
        });
    let Some((begin, end, attempt)) = found else { return false };
    let attempt = AttemptRef::new(attempt.head, attempt.attempt + 1);
    let asked = Asked::Complete { attempt, returned: Vec::new(), through: None, claim: None };
    let answer = Answer::Completed { events: Vec::new(), replayed: false, heads: Vec::new() };
    add(history, end, begin, asked, answer);
    true
}

fn half_a_commit(history: &mut History) -> bool {
    // In a session that is never cleared, the first event of a completion is another's.
    let found = calls(history).into_iter().find_map(|(begin, _, asked, answer)| {
        let kept = session_of(history, begin)? % 2 == 0;
        match (asked, answer) {
            (Asked::Complete { .. }, Answer::Completed { events, .. }) if kept => {
                events.first().map(|event| event.id.clone())
            }
            _ => None,
        }
    });
    let Some(id) = found else { return false };
    each_event(history, |event| {
        if event.id == id {
            event.cause = None;
        }
    });
    true
}

fn attempt_given_twice(history: &mut History) -> bool {
    let Some((begin, end, head)) = first_claim(history, |_| true) else { return false };
    add(history, end, begin, claim(), Answer::Claimed { heads: vec![head] });
    true
}

fn claimed_while_leased(history: &mut History) -> bool {
    let Some((begin, end, mut head)) = first_claim(history, |_| true) else { return false };
    head.state.attempt_count += 1;
    head.state.failure_count += 1;
    add(history, end, begin, claim(), Answer::Claimed { heads: vec![head] });
    true
}

fn renewed_after_takeover(history: &mut History) -> bool {
    let taken = calls(history).into_iter().find_map(|(begin, end, _, answer)| match answer {
        Answer::Claimed { heads } => {
            let again = heads.into_iter().find(|head| head.attempt() > 1);
            again.map(|head| (begin, end, head))
        }
        _ => None,
    });
    let Some((begin, end, head)) = taken else { return false };
    let old = AttemptRef::new(head.head.clone(), head.attempt() - 1);
    let asked = Asked::Renew { claims: vec![old.clone()], ttl: 10 };
    let answer = Answer::Renewed { renewed: vec![old], superseded: Vec::new() };
    add(history, end, begin, asked, answer);
    true
}

fn claimed_when_done(history: &mut History) -> bool {
    let done =
        calls(history).into_iter().find_map(|(begin, end, asked, answer)| match (asked, answer) {
            (Asked::Complete { attempt, .. }, Answer::Completed { .. }) => {
                Some((begin, end, attempt))
            }
            _ => None,
        });
    let Some((begin, end, attempt)) = done else { return false };
    let Some((_, _, mut head)) = first_claim(history, |head| *head == attempt.head) else {
        return false;
    };
    head.state.attempt_count += 7;
    head.state.last_claimed_at = Some(Timestamp::from_millis(i64::MAX));
    add(history, end, begin, claim(), Answer::Claimed { heads: vec![head] });
    true
}

fn lane_not_done(history: &mut History) -> bool {
    let Some((.., head)) = first_claim(history, is_lane) else { return false };
    forget_ends(history, |done| *done == head.head);
    true
}

fn log_not_done(history: &mut History) -> bool {
    let Some((.., head)) = first_claim(history, is_log) else { return false };
    forget_ends(history, |done| *done == head.head);
    true
}

/// A later claim in the same session gives the first head of such a queue once more.
fn goes_back(history: &mut History, of: fn(&HeadRef) -> bool) -> bool {
    let Some((begin, _, mut head)) = first_claim(history, of) else { return false };
    head.state.attempt_count += 9;
    let after = history.drained_from - 1;
    add(history, after, begin, claim(), Answer::Claimed { heads: vec![head] });
    true
}

fn lane_goes_back(history: &mut History) -> bool {
    goes_back(history, is_lane)
}

fn log_gives_again(history: &mut History) -> bool {
    goes_back(history, is_log)
}

fn log_leaves_out(history: &mut History) -> bool {
    // A head that was the first event that nobody got in a run.
    let Some((.., head)) = first_claim(history, is_log) else { return false };
    for note in &mut history.notes {
        if let Note::Ended {
            answer:
                Answer::Claimed { heads }
                | Answer::Completed { heads, .. }
                | Answer::Failed { heads, .. }
                | Answer::Superseded { heads },
            ..
        } = note
        {
            heads.retain(|claimed| claimed.head != head.head);
        }
    }
    forget_ends(history, |done| *done == head.head);
    true
}

/// The places of what the first long stream gave.
fn stream(history: &History) -> Vec<usize> {
    let of = |wanted: Option<u64>| {
        let yielded = history.notes.iter().enumerate().filter_map(move |(at, note)| match note {
            Note::Yielded { stream, .. } if wanted.is_none_or(|id| id == *stream) => {
                Some((at, *stream))
            }
            _ => None,
        });
        yielded.collect::<Vec<_>>()
    };
    let streams: BTreeSet<u64> = of(None).into_iter().map(|(_, stream)| stream).collect();
    let long = streams.into_iter().map(|id| of(Some(id))).find(|gave| gave.len() > 20);
    long.unwrap_or_default().into_iter().map(|(at, _)| at).collect()
}

fn stream_gap(history: &mut History) -> bool {
    let places = stream(history);
    history.notes[places[5]] = Note::Settled;
    !places.is_empty()
}

fn stream_repeats(history: &mut History) -> bool {
    let places = stream(history);
    history.notes[places[6]] = history.notes[places[5]].clone();
    !places.is_empty()
}

fn stream_behind(history: &mut History) -> bool {
    let places = stream(history);
    for place in places.iter().skip(5) {
        history.notes[*place] = Note::Settled;
    }
    !places.is_empty()
}

fn stream_ends(history: &mut History) -> bool {
    let places = stream(history);
    let Note::Yielded { stream, .. } = history.notes[places[0]] else { return false };
    history.notes.push(Note::StreamEnded { stream, error: None });
    true
}

fn not_found(history: &mut History) -> bool {
    let drained = history.drained_from;
    for (at, note) in history.notes.iter_mut().enumerate() {
        if let Note::Ended { answer: Answer::Sessions { sessions, .. }, .. } = note
            && at < drained
        {
            sessions.clear();
        }
    }
    true
}

fn timer_early(history: &mut History) -> bool {
    for note in &mut history.notes {
        if let Note::Ended { answer: Answer::Scheduled { due_at }, .. } = note {
            *due_at = Timestamp::from_millis(due_at.as_millis() + 100_000_000);
        }
    }
    true
}

fn timer_lost(history: &mut History) -> bool {
    for note in &mut history.notes {
        if let Note::Began { asked: Asked::Schedule { event, .. }, .. } = note {
            event.id = EventId::new(format!("{}-lost", event.id)).unwrap();
        }
    }
    true
}

fn claimed_after_clear(history: &mut History) -> bool {
    let Some((begin, end, clear)) =
        calls(history).into_iter().find_map(|(begin, end, asked, answer)| match (asked, answer) {
            (Asked::Clear { .. }, Answer::Cleared { clear_index, .. })
                if clear_index > Index::from(1) =>
            {
                Some((begin, end, clear_index))
            }
            _ => None,
        })
    else {
        return false;
    };
    let Some((.., mut head)) = first_claim(history, |head| head.index < clear) else {
        return false;
    };
    head.state.attempt_count += 9;
    add(history, end, begin, claim(), Answer::Claimed { heads: vec![head] });
    true
}

fn marker_goes_back(history: &mut History) -> bool {
    let settled = history.settled_from;
    first_answer(history, |at, _, answer| match answer {
        Answer::Cursors { clear_index, .. } if at > settled && *clear_index > Index::ZERO => {
            *clear_index = clear_index.previous();
            true
        }
        _ => false,
    })
}

fn failure_too_many(history: &mut History) -> bool {
    first_answer(history, |_, _, answer| match answer {
        Answer::Claimed { heads } if !heads.is_empty() => {
            heads[0].state.failure_count += 1;
            true
        }
        _ => false,
    })
}

fn failure_uncounted(history: &mut History) -> bool {
    first_answer(history, |_, _, answer| match answer {
        Answer::Failed { failure_count, dead: false, .. } => {
            *failure_count -= 1;
            true
        }
        _ => false,
    })
}

fn not_dead(history: &mut History) -> bool {
    first_answer(history, |_, _, answer| match answer {
        Answer::Failed { dead, .. } if *dead => {
            *dead = false;
            true
        }
        _ => false,
    })
}

fn snapshot_gone(history: &mut History) -> bool {
    let all = first_answer(history, |_, _, answer| {
        if let Answer::State { latest, snapshot, .. } = answer {
            (*latest, *snapshot) = (None, None);
        }
        false
    });
    !all
}

fn other_snapshot(history: &mut History) -> bool {
    first_answer(history, |_, _, answer| match answer {
        Answer::State { snapshot: Some((_, state)), .. } => {
            *state = a2_core::Json::parse("{\"at\":0}").unwrap();
            true
        }
        _ => false,
    })
}

fn head_left(history: &mut History) -> bool {
    let settled = history.settled_from;
    first_answer(history, |at, _, answer| match answer {
        Answer::Cursors { cursors, head, .. } if at > settled && !cursors.is_empty() => {
            cursors[0].head = Some(*head);
            true
        }
        _ => false,
    })
}

fn no_look(history: &mut History) -> bool {
    history.settled_from = history.notes.len();
    true
}

#[test]
fn the_clock_of_a_history_moves() {
    // A history in which nothing lapses proves little: leases are shorter than what passes.
    let history = clean();
    let lapsed = calls(&history).iter().any(|(.., answer)| match answer {
        Answer::Claimed { heads } => {
            heads.iter().any(|head| head.state.last_error.as_deref() == Some("lease expired"))
        }
        _ => false,
    });
    assert!(lapsed);
}
