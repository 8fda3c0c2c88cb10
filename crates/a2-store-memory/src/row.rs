//! A head's row, in a third of the space that the engine's form takes: there may be millions, nearly
//! all of them queued or done, and hardly any has ever failed.

use a2_core::engine::{DoneRecord, HeadRow, HeadStatus};
use a2_core::{DispatchState, Holder, Index, Timestamp};

/// One event as one event or lane cursor sees it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) index: Index,
    /// Which of the lifetime's consumers.
    pub(crate) consumer: usize,
    /// Which of the lifetime's lanes; none for an event cursor.
    pub(crate) lane: Option<usize>,
    /// The next row of the same lane.
    pub(crate) next: Option<usize>,
    pub(crate) stage: Stage,
}

/// How far a head is.
#[derive(Debug)]
pub(crate) enum Stage {
    Queued,
    /// Live or dead.
    Open(Open),
    /// Its dispatch state is of no use to anybody any more.
    Done(DoneRecord),
}

/// The state of a live or dead head.
#[derive(Debug, Default)]
pub(crate) struct Open {
    attempt_count: u64,
    first_claimed_at: Option<Timestamp>,
    last_claimed_at: Option<Timestamp>,
    claim_holder: Option<Holder>,
    claim_expires_at: Option<Timestamp>,
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
        match status {
            HeadStatus::Queued => Self::Queued,
            _ => Self::Open(Open::default()),
        }
    }

    /// The engine's form.
    pub(crate) fn to_row(&self) -> HeadRow {
        match self {
            Self::Queued => HeadRow::new(HeadStatus::Queued),
            Self::Open(open) => open.to_row(),
            Self::Done(done) => HeadRow { done: Some(*done), ..HeadRow::new(HeadStatus::Done) },
        }
    }

    /// From the engine's form.
    pub(crate) fn of(row: &HeadRow) -> Self {
        match (row.status, row.done) {
            (HeadStatus::Done, Some(done)) => Self::Done(done),
            (HeadStatus::Queued, _) => Self::Queued,
            _ => Self::Open(Open::of(&row.state)),
        }
    }
}

impl Open {
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

    fn of(state: &DispatchState) -> Self {
        let failed = state.failure_count > 0
            || state.failed_at.is_some()
            || state.last_failed_at.is_some()
            || state.last_failed_attempt.is_some()
            || state.last_error.is_some();
        let failures = failed.then(|| {
            Box::new(Failures {
                failure_count: state.failure_count,
                last_failed_at: state.last_failed_at,
                last_failed_attempt: state.last_failed_attempt,
                last_error: state.last_error.clone(),
                failed_at: state.failed_at,
            })
        });
        Self {
            attempt_count: state.attempt_count,
            first_claimed_at: state.first_claimed_at,
            last_claimed_at: state.last_claimed_at,
            claim_holder: state.claim_holder.clone(),
            claim_expires_at: state.claim_expires_at,
            failures,
        }
    }
}
