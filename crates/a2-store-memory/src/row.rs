//! A head's row, in a cache line: there may be millions, nearly all of them queued or done.
//!
//! What only claimed and failed heads have stands beside the rows, in places that are used again.

use std::num::NonZeroU64;

use a2_core::engine::{DoneRecord, HeadRow, HeadStatus};
use a2_core::{DispatchState, Holder, Index, Timestamp};

/// One event as one event or lane cursor sees it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) index: Index,
    /// Which of the lifetime's consumers.
    pub(crate) consumer: usize,
    /// Which of the lifetime's lanes; [`NONE`] for an event cursor.
    pub(crate) lane: usize,
    /// The next row of the same lane, or [`NONE`].
    pub(crate) next: usize,
    pub(crate) stage: Stage,
}

/// No lane, no row.
pub(crate) const NONE: usize = usize::MAX;

/// How far a head is.
#[derive(Debug)]
pub(crate) enum Stage {
    Queued,
    /// Live and never claimed.
    Fresh,
    /// Live or dead, with its state's place.
    Open(usize),
    /// Finished; its dispatch state is of no use to anybody any more.
    Done {
        attempt: Option<NonZeroU64>,
        at: Timestamp,
        returned_after: Index,
        /// At most a batch.
        returned: u32,
    },
}

/// The dispatch states of live and dead heads.
#[derive(Debug, Default)]
pub(crate) struct States {
    places: Vec<State>,
    unused: Vec<usize>,
}

#[derive(Debug, Default)]
struct State {
    attempt_count: u64,
    first_claimed_at: Option<Timestamp>,
    last_claimed_at: Option<Timestamp>,
    claim_holder: Option<Holder>,
    claim_expires_at: Option<Timestamp>,
    /// Few heads ever fail.
    failures: Option<Box<Failures>>,
}

#[derive(Debug)]
struct Failures {
    failure_count: u64,
    last_failed_at: Option<Timestamp>,
    last_failed_attempt: Option<u64>,
    last_error: Option<String>,
    failed_at: Option<Timestamp>,
}

impl Stage {
    pub(crate) fn new(status: HeadStatus) -> Self {
        if status == HeadStatus::Queued { Self::Queued } else { Self::Fresh }
    }

    /// The engine's form.
    pub(crate) fn to_row(&self, states: &States) -> HeadRow {
        match self {
            Self::Queued => HeadRow::new(HeadStatus::Queued),
            Self::Fresh => HeadRow::new(HeadStatus::Live),
            Self::Open(place) => states.places[*place].to_row(),
            Self::Done { attempt, at, returned_after, returned } => {
                let done = DoneRecord {
                    attempt: attempt.map(NonZeroU64::get),
                    at: *at,
                    returned_after: *returned_after,
                    returned: (*returned).into(),
                };
                HeadRow { done: Some(done), ..HeadRow::new(HeadStatus::Done) }
            }
        }
    }

    /// Takes over the engine's form.
    pub(crate) fn set(&mut self, row: &HeadRow, states: &mut States) {
        let place = if let Self::Open(place) = *self { Some(place) } else { None };
        *self = match (row.status, &row.done) {
            (HeadStatus::Done, Some(done)) => {
                states.release(place);
                Self::Done {
                    attempt: done.attempt.and_then(NonZeroU64::new),
                    at: done.at,
                    returned_after: done.returned_after,
                    returned: u32::try_from(done.returned).unwrap_or(u32::MAX),
                }
            }
            (HeadStatus::Queued, _) => {
                states.release(place);
                Self::Queued
            }
            _ if place.is_none() && row.state.attempt_count == 0 => Self::Fresh,
            _ => Self::Open(states.store(place, &row.state)),
        };
    }

    /// Gives the state's place back, when the row goes.
    pub(crate) fn release(self, states: &mut States) {
        if let Self::Open(place) = self {
            states.release(Some(place));
        }
    }
}

impl States {
    fn store(&mut self, place: Option<usize>, state: &DispatchState) -> usize {
        let place = place.or_else(|| self.unused.pop()).unwrap_or_else(|| {
            self.places.push(State::default());
            self.places.len() - 1
        });
        self.places[place].set(state);
        place
    }

    fn release(&mut self, place: Option<usize>) {
        if let Some(place) = place {
            self.places[place].failures = None;
            self.unused.push(place);
        }
    }

    /// Drops at most `limit` states, when a lifetime is reclaimed, and says how many.
    pub(crate) fn shorten(&mut self, limit: usize) -> usize {
        let cut = limit.min(self.places.len());
        self.places.truncate(self.places.len() - cut);
        cut
    }
}

impl State {
    fn to_row(&self) -> HeadRow {
        let mut row = HeadRow::new(HeadStatus::Live);
        let state = &mut row.state;
        state.attempt_count = self.attempt_count;
        state.first_claimed_at = self.first_claimed_at;
        state.last_claimed_at = self.last_claimed_at;
        state.claim_holder.clone_from(&self.claim_holder);
        state.claim_expires_at = self.claim_expires_at;
        if let Some(failures) = &self.failures {
            state.failure_count = failures.failure_count;
            state.last_failed_at = failures.last_failed_at;
            state.last_failed_attempt = failures.last_failed_attempt;
            state.last_error.clone_from(&failures.last_error);
            state.failed_at = failures.failed_at;
            if failures.failed_at.is_some() {
                row.status = HeadStatus::Dead;
            }
        }
        row
    }

    fn set(&mut self, state: &DispatchState) {
        self.attempt_count = state.attempt_count;
        self.first_claimed_at = state.first_claimed_at;
        self.last_claimed_at = state.last_claimed_at;
        self.claim_holder.clone_from(&state.claim_holder);
        self.claim_expires_at = state.claim_expires_at;
        let failed = state.failure_count > 0
            || state.failed_at.is_some()
            || state.last_failed_at.is_some()
            || state.last_failed_attempt.is_some()
            || state.last_error.is_some();
        self.failures = failed.then(|| {
            Box::new(Failures {
                failure_count: state.failure_count,
                last_failed_at: state.last_failed_at,
                last_failed_attempt: state.last_failed_attempt,
                last_error: state.last_error.clone(),
                failed_at: state.failed_at,
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_cache_line() {
        assert_eq!(size_of::<Row>(), 64);
    }

    #[test]
    fn a_done_heads_place_is_used_again() {
        let mut states = States::default();
        let mut claimed = HeadRow::new(HeadStatus::Live);
        claimed.state.attempt_count = 1;
        claimed.state.claim_expires_at = Some(Timestamp::from_millis(7));
        let mut done = HeadRow::new(HeadStatus::Done);
        done.done = Some(DoneRecord {
            attempt: Some(1),
            at: Timestamp::from_millis(5),
            returned_after: Index::from(3),
            returned: 2,
        });
        for _ in 0..3 {
            let mut stage = Stage::new(HeadStatus::Live);
            stage.set(&claimed, &mut states);
            assert_eq!(stage.to_row(&states), claimed);
            stage.set(&done, &mut states);
            assert_eq!(stage.to_row(&states), done);
        }
        assert_eq!(states.places.len(), 1);
    }
}
