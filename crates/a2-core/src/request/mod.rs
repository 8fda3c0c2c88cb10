//! What a caller asks for. A request that can be built is within every absolute limit.

mod append;
mod attempt;
mod claim;
mod log;
mod page;
mod presence;
mod snapshot;
mod timer;

pub use append::{Append, ReadRange};
pub use attempt::{
    AttemptRef, CompleteAttempt, FailAttempt, Redrive, RedriveAction, ReleaseClaims, RenewClaims,
};
pub use claim::ClaimAvailable;
pub use log::{Clear, WakeLog};
pub use page::{Page, PageToken, PendingPage};
pub use presence::PresenceUpdate;
pub use snapshot::{PutSnapshots, ReadState, SnapshotWrite};
pub use timer::{FireTimers, Schedule};

use crate::{Error, Result};

/// A count within 1..=max.
pub(crate) fn checked_count(field: &'static str, count: usize, max: usize) -> Result<usize> {
    if count == 0 || count > max {
        return Err(Error::invalid(field, format!("must be 1 to {max}")));
    }
    Ok(count)
}
