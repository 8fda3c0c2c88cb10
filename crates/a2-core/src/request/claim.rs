//! Claiming heads.

use std::collections::HashSet;
use std::time::Duration;

use crate::served::checked_budget;
use crate::{CursorRef, Error, HeadRef, Holder, Index, Result, Served, Span, limits};

use super::checked_count;

/// Claims heads that are free, with a lease.
///
/// ```
/// use std::time::Duration;
/// use a2_core::{ClaimAvailable, Served};
///
/// let claim = ClaimAvailable::new("worker-1", Duration::from_secs(30))?
///     .limit(10)?
///     .max_failures(5)?
///     .served(Served::ALL);
/// assert_eq!(claim.max_heads(), 10);
/// # Ok::<(), a2_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimAvailable {
    holder: Holder,
    ttl: Span,
    limit: usize,
    served: Served,
    exclude: HashSet<CursorRef>,
    max_failures: Option<u64>,
    through: Index,
    run: usize,
}

impl ClaimAvailable {
    /// Claims at most 64 heads of any consumer for `ttl`.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the holder breaks the rules for names or the ttl is zero.
    pub fn new<H>(holder: H, ttl: Duration) -> Result<Self>
    where
        H: TryInto<Holder>,
        Error: From<H::Error>,
    {
        Ok(Self {
            holder: holder.try_into()?,
            ttl: Span::ttl(ttl)?,
            limit: limits::CLAIM_DEFAULT,
            served: Served::ALL,
            exclude: HashSet::new(),
            max_failures: None,
            through: Index::MAX,
            run: 1,
        })
    }

    /// At most this many heads: 1 to 1,000, 64 by default.
    ///
    /// # Errors
    /// `INVALID_INPUT` outside of that.
    pub fn limit(mut self, limit: usize) -> Result<Self> {
        self.limit = checked_count("limit", limit, limits::CLAIM_MAX)?;
        Ok(self)
    }

    /// Only heads of these consumers. All by default.
    #[must_use]
    pub fn served(mut self, served: Served) -> Self {
        self.served = served;
        self
    }

    /// No heads of these cursors.
    ///
    /// # Errors
    /// `INVALID_INPUT` for more than 10,000.
    pub fn exclude(mut self, cursors: impl IntoIterator<Item = CursorRef>) -> Result<Self> {
        for cursor in cursors {
            self.exclude.insert(cursor);
            if self.exclude.len() > limits::CLAIM_LIST {
                return Err(Error::invalid(
                    "exclude",
                    format!("must be at most {} cursors", limits::CLAIM_LIST),
                ));
            }
        }
        Ok(self)
    }

    /// Dead-letters a head whose lease lapses for the last time of this many failures. Without it a
    /// lapse never dead-letters.
    ///
    /// # Errors
    /// `INVALID_INPUT` for zero.
    pub fn max_failures(mut self, max_failures: u64) -> Result<Self> {
        self.max_failures = Some(checked_budget(max_failures)?);
        Ok(self)
    }

    /// Only heads up to this index.
    #[must_use]
    pub fn through(mut self, through: Index) -> Self {
        self.through = through;
        self
    }

    /// A claimed log head brings up to this many events in all, so that one attempt can take many:
    /// 1 to 1,000, 1 by default.
    ///
    /// # Errors
    /// `INVALID_INPUT` outside of that.
    pub fn run(mut self, run: usize) -> Result<Self> {
        self.run = checked_count("run", run, limits::RUN_MAX)?;
        Ok(self)
    }

    /// Who claims.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// How long the lease lasts.
    #[must_use]
    pub fn ttl(&self) -> Span {
        self.ttl
    }

    /// The most heads.
    #[must_use]
    pub fn max_heads(&self) -> usize {
        self.limit
    }

    /// What the caller serves.
    #[must_use]
    pub fn served_list(&self) -> &Served {
        &self.served
    }

    /// The cursors left out.
    #[must_use]
    pub fn excluded(&self) -> &HashSet<CursorRef> {
        &self.exclude
    }

    /// Whether a head's cursor is left out.
    #[must_use]
    pub fn excludes(&self, head: &HeadRef) -> bool {
        !self.exclude.is_empty() && self.exclude.contains(&head.cursor_ref())
    }

    /// The failure budget of consumers whose served entry has none of its own.
    #[must_use]
    pub fn budget(&self) -> Option<u64> {
        self.max_failures
    }

    /// The budget that a lapsed head of this consumer is measured by.
    #[must_use]
    pub fn budget_of(&self, consumer: &crate::Consumer) -> Option<u64> {
        self.served.budget_of(consumer).or(self.max_failures)
    }

    /// The last index.
    #[must_use]
    pub fn end(&self) -> Index {
        self.through
    }

    /// The most events of a run.
    #[must_use]
    pub fn max_run(&self) -> usize {
        self.run
    }
}
