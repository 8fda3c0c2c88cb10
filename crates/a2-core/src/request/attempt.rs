//! What a worker does with its claims, and a person with dead letters.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::Batch;
use crate::served::checked_budget;
use crate::{
    ClaimAvailable, CursorKey, Error, HeadRef, Holder, Index, NewEvent, Result, Served, Span,
    limits,
};

/// One attempt on one head.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttemptRef {
    /// The head.
    pub head: HeadRef,
    /// The attempt's number, as the claim gave it.
    pub attempt: u64,
}

impl AttemptRef {
    /// The attempt `attempt` on `head`.
    #[must_use]
    pub fn new(head: HeadRef, attempt: u64) -> Self {
        Self { head, attempt }
    }
}

fn bounded(
    field: &'static str,
    attempts: impl IntoIterator<Item = AttemptRef>,
) -> Result<Vec<AttemptRef>> {
    let attempts: Vec<_> = attempts.into_iter().take(limits::CLAIM_LIST + 1).collect();
    if attempts.len() > limits::CLAIM_LIST {
        return Err(Error::invalid(field, format!("must be at most {}", limits::CLAIM_LIST)));
    }
    Ok(attempts)
}

/// Makes leases last `ttl` from now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewClaims {
    holder: Holder,
    claims: Vec<AttemptRef>,
    ttl: Span,
}

impl RenewClaims {
    /// Renews these claims of `holder`.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a zero ttl, a holder that breaks the rules for names, or more than
    /// 10,000 claims.
    pub fn new<H>(
        holder: H,
        claims: impl IntoIterator<Item = AttemptRef>,
        ttl: Duration,
    ) -> Result<Self>
    where
        H: TryInto<Holder>,
        Error: From<H::Error>,
    {
        Ok(Self {
            holder: holder.try_into()?,
            claims: bounded("claims", claims)?,
            ttl: Span::ttl(ttl)?,
        })
    }

    /// Who holds the claims.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// The claims.
    #[must_use]
    pub fn claims(&self) -> &[AttemptRef] {
        &self.claims
    }

    /// How long the leases last from now.
    #[must_use]
    pub fn ttl(&self) -> Span {
        self.ttl
    }
}

/// Gives claims back at once, at no cost to the failure budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseClaims {
    holder: Holder,
    claims: Vec<AttemptRef>,
}

impl ReleaseClaims {
    /// Releases these claims of `holder`.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a holder that breaks the rules for names, or more than 10,000 claims.
    pub fn new<H>(holder: H, claims: impl IntoIterator<Item = AttemptRef>) -> Result<Self>
    where
        H: TryInto<Holder>,
        Error: From<H::Error>,
    {
        Ok(Self { holder: holder.try_into()?, claims: bounded("claims", claims)? })
    }

    /// Who holds the claims.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// The claims.
    #[must_use]
    pub fn claims(&self) -> &[AttemptRef] {
        &self.claims
    }
}

/// Completes an attempt: the returned events and the cursor's move commit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteAttempt {
    head: HeadRef,
    attempt: u64,
    batch: Batch,
    served: Served,
    through: Option<Index>,
    // As large as all the rest, and a request is moved a few times.
    then_claim: Option<Box<ClaimAvailable>>,
}

impl CompleteAttempt {
    /// Completes `attempt` on `head`, returning no events.
    #[must_use]
    pub fn new(head: HeadRef, attempt: u64) -> Self {
        Self {
            head,
            attempt,
            batch: Batch::default(),
            served: Served::ALL,
            through: None,
            then_claim: None,
        }
    }

    /// The events to append with the completion. Each has an id, so that a second run of the
    /// handler converges on the same events, and no cause of its own.
    ///
    /// # Errors
    /// `INVALID_INPUT` for an id missing or twice, a cause, or more than a batch holds.
    pub fn events(mut self, events: impl IntoIterator<Item = NewEvent>) -> Result<Self> {
        self.batch = Batch::for_completion(events)?;
        Ok(self)
    }

    /// What the caller serves: whose pending work is reported, and which logs move. All by default.
    #[must_use]
    pub fn served(mut self, served: Served) -> Self {
        self.served = served;
        self
    }

    /// Everything up to this index is done; the log cursor goes on after it.
    ///
    /// # Errors
    /// `INVALID_INPUT` unless the head is a log's and the index at least the head's.
    pub fn through(mut self, through: Index) -> Result<Self> {
        if !matches!(self.head.cursor, CursorKey::Log(_)) {
            return Err(Error::invalid("through", "must be given for log cursors alone"));
        }
        if through < self.head.index {
            return Err(Error::invalid("through", "must be at least the head's index"));
        }
        self.through = Some(through);
        Ok(self)
    }

    /// Claims more work in the same call, right after the commit.
    #[must_use]
    pub fn then_claim(mut self, claim: ClaimAvailable) -> Self {
        self.then_claim = Some(Box::new(claim));
        self
    }

    /// The head.
    #[must_use]
    pub fn head(&self) -> &HeadRef {
        &self.head
    }

    /// The attempt's number.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// The returned events, each with an id.
    #[must_use]
    pub fn returned(&self) -> &[NewEvent] {
        self.batch.events()
    }

    /// What the caller serves.
    #[must_use]
    pub fn served_list(&self) -> &Served {
        &self.served
    }

    /// How far the run got.
    #[must_use]
    pub fn end(&self) -> Option<Index> {
        self.through
    }

    /// The claim that follows.
    #[must_use]
    pub fn next_claim(&self) -> Option<&ClaimAvailable> {
        self.then_claim.as_deref()
    }
}

/// Fails an attempt: it is retried, or dead-lettered when its budget is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailAttempt {
    head: HeadRef,
    attempt: u64,
    error: String,
    max_failures: Option<u64>,
    retry_after: Span,
    // As large as all the rest, and a request is moved a few times.
    then_claim: Option<Box<ClaimAvailable>>,
}

impl FailAttempt {
    /// Fails `attempt` on `head`; it can be claimed again at once. The error text is cut at 64 KiB.
    #[must_use]
    pub fn new(head: HeadRef, attempt: u64, error: impl Into<String>) -> Self {
        let mut error: String = error.into();
        if error.len() > limits::ERROR_BYTES {
            let cut = (0..=limits::ERROR_BYTES).rev().find(|&at| error.is_char_boundary(at));
            error.truncate(cut.unwrap_or_default());
        }
        Self { head, attempt, error, max_failures: None, retry_after: Span::ZERO, then_claim: None }
    }

    /// Dead-letters the head when this is its so-manieth failure; 1 dead-letters at once. Without
    /// it the head is retried for ever.
    ///
    /// # Errors
    /// `INVALID_INPUT` for zero.
    pub fn max_failures(mut self, max_failures: u64) -> Result<Self> {
        self.max_failures = Some(checked_budget(max_failures)?);
        Ok(self)
    }

    /// Holds the head this long before it can be claimed again.
    #[must_use]
    pub fn retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Span::new(retry_after);
        self
    }

    /// Claims more work in the same call, right after the commit.
    #[must_use]
    pub fn then_claim(mut self, claim: ClaimAvailable) -> Self {
        self.then_claim = Some(Box::new(claim));
        self
    }

    /// The head.
    #[must_use]
    pub fn head(&self) -> &HeadRef {
        &self.head
    }

    /// The attempt's number.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// What went wrong.
    #[must_use]
    pub fn error(&self) -> &str {
        &self.error
    }

    /// The failure budget.
    #[must_use]
    pub fn budget(&self) -> Option<u64> {
        self.max_failures
    }

    /// How long the head is held.
    #[must_use]
    pub fn hold(&self) -> Span {
        self.retry_after
    }

    /// The claim that follows.
    #[must_use]
    pub fn next_claim(&self) -> Option<&ClaimAvailable> {
        self.then_claim.as_deref()
    }
}

/// What to do with a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedriveAction {
    /// Make it live again with its whole budget.
    Retry,
    /// Take it as done, with no attempt and no events; the cursor moves on.
    Skip,
}

/// Redrives one dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    head: HeadRef,
    action: RedriveAction,
    served: Served,
}

impl Redrive {
    /// Does `action` with the dead letter `head`.
    #[must_use]
    pub fn new(head: HeadRef, action: RedriveAction) -> Self {
        Self { head, action, served: Served::ALL }
    }

    /// What the caller serves: whose pending work is reported. All by default.
    #[must_use]
    pub fn served(mut self, served: Served) -> Self {
        self.served = served;
        self
    }

    /// The dead letter.
    #[must_use]
    pub fn head(&self) -> &HeadRef {
        &self.head
    }

    /// What to do with it.
    #[must_use]
    pub fn action(&self) -> RedriveAction {
        self.action
    }

    /// What the caller serves.
    #[must_use]
    pub fn served_list(&self) -> &Served {
        &self.served
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Consumer, Lane};

    #[test]
    fn an_error_text_is_cut_on_a_character_boundary() {
        let head = HeadRef::new(
            Consumer::new("c").unwrap(),
            CursorKey::Lane(Lane::new("l").unwrap()),
            Index::from(1),
        );
        let text = format!("{}é", "x".repeat(65_535));
        assert_eq!(FailAttempt::new(head.clone(), 1, text).error().len(), 65_535);
        assert!(FailAttempt::new(head.clone(), 1, "e").max_failures(0).is_err());
        assert!(CompleteAttempt::new(head, 1).through(Index::from(3)).is_err());
    }
}
