//! Small words that the corruptions are written with.

use a2_core::{CursorKey, Event, HeadRef};

use crate::history::check::History;
use crate::history::note::{Answer, Asked, Note};

/// Changes the first note that can be changed so.
pub(super) fn first(history: &mut History, mut change: impl FnMut(&mut Note) -> bool) -> bool {
    history.notes.iter_mut().any(&mut change)
}

/// Changes the first answer, of a call with its question, that can be changed so.
pub(super) fn first_answer(
    history: &mut History,
    mut change: impl FnMut(usize, &Asked, &mut Answer) -> bool,
) -> bool {
    let asked = history.notes.iter().filter_map(|note| match note {
        Note::Began { call, asked, .. } => Some((*call, asked.clone())),
        _ => None,
    });
    let asked: std::collections::HashMap<_, _> = asked.collect();
    history.notes.iter_mut().enumerate().any(|(at, note)| match note {
        Note::Ended { call, answer } => {
            asked.get(call).is_some_and(|asked| change(at, asked, answer))
        }
        _ => false,
    })
}

/// Every event that any note has.
pub(super) fn each_event(history: &mut History, mut change: impl FnMut(&mut Event)) {
    for note in &mut history.notes {
        match note {
            Note::Yielded { event, .. } => change(event),
            Note::Ended { answer, .. } => {
                let (events, heads) = match answer {
                    Answer::Appended { events, .. }
                    | Answer::Events { events, .. }
                    | Answer::State { events, .. } => (Some(events), None),
                    Answer::Completed { events, heads, .. } => (Some(events), Some(heads)),
                    Answer::Claimed { heads }
                    | Answer::Failed { heads, .. }
                    | Answer::Superseded { heads }
                    | Answer::DeadLetters { heads } => (None, Some(heads)),
                    _ => (None, None),
                };
                events.into_iter().flatten().for_each(&mut change);
                for head in heads.into_iter().flatten() {
                    change(&mut head.event);
                    head.run.iter_mut().for_each(&mut change);
                }
            }
            _ => {}
        }
    }
}

/// The calls with their places, questions and answers.
pub(super) fn calls(history: &History) -> Vec<(usize, usize, Asked, Answer)> {
    let mut calls = Vec::new();
    for (begin, note) in history.notes.iter().enumerate() {
        let Note::Began { call, asked, .. } = note else { continue };
        let end = history.notes.iter().enumerate().find_map(|(at, note)| match note {
            Note::Ended { call: ended, answer } if ended == call => Some((at, answer.clone())),
            _ => None,
        });
        if let Some((end, answer)) = end {
            calls.push((begin, end, asked.clone(), answer));
        }
    }
    calls
}

/// Adds a call right after a note, of the same session as the call that began at `like`.
pub(super) fn add(history: &mut History, after: usize, like: usize, asked: Asked, answer: Answer) {
    let Note::Began { session, .. } = history.notes[like].clone() else { panic!("no call") };
    let call = u64::MAX;
    let began = Note::Began { call, worker: 999, session, asked };
    history.notes.splice(after + 1..=after, [began, Note::Ended { call, answer }]);
    history.drained_from += 2;
    history.settled_from += 2;
}

pub(super) fn claim() -> Asked {
    Asked::Claim { claim: crate::history::Claiming { holder: "w".into(), ttl: 10 } }
}

/// Takes every completion of such heads out of the history.
pub(super) fn forget_ends(history: &mut History, of: impl Fn(&HeadRef) -> bool) {
    let ends: Vec<u64> = history
        .notes
        .iter()
        .filter_map(|note| match note {
            Note::Began { call, asked: Asked::Complete { attempt, .. }, .. } => {
                of(&attempt.head).then_some(*call)
            }
            Note::Began { call, asked: Asked::Redrive { head, skip: true }, .. } => {
                of(head).then_some(*call)
            }
            _ => None,
        })
        .collect();
    for note in &mut history.notes {
        if let Note::Began { call, asked, .. } = note
            && ends.contains(call)
        {
            *asked = Asked::Reclaim;
        }
    }
}

/// A session that was never cleared, and how a call is seen to be of it.
pub(super) fn session_of(history: &History, begin: usize) -> Option<usize> {
    let Note::Began { session: Some(session), .. } = &history.notes[begin] else { return None };
    history.sessions.iter().position(|name| name == session)
}

/// The first claim that gave a head of this kind, with its place.
pub(super) fn first_claim(
    history: &History,
    of: impl Fn(&HeadRef) -> bool,
) -> Option<(usize, usize, a2_core::DispatchedHead)> {
    calls(history).into_iter().find_map(|(begin, end, _, answer)| match answer {
        Answer::Claimed { heads } => {
            let live = heads.into_iter().find(|head| of(&head.head) && !head.state.is_dead());
            live.map(|head| (begin, end, head))
        }
        _ => None,
    })
}

pub(super) fn is_lane(head: &HeadRef) -> bool {
    matches!(head.cursor, CursorKey::Lane(_))
}

pub(super) fn is_log(head: &HeadRef) -> bool {
    matches!(head.cursor, CursorKey::Log(_))
}
