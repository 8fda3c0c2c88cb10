//! Claims, renewals and releases gone wrong.

use std::time::Duration;

use a2_core::{
    Busy, Claim, ClaimAvailable, Claimed, CursorKey, DispatchedHead, FailAttempt, HeadRef,
    LogTypes, Presence, ReadRange, ReleaseClaims, Released, RenewClaims, Renewal, Result, Served,
    ServedConsumer, SessionId, StoreExt, Timers,
};

use super::{Broken, How};

fn ms(span: a2_core::Span) -> Duration {
    Duration::from_millis(span.as_millis())
}

impl<S: Timers + Presence> Broken<S> {
    /// The claim as the saboteur understands it.
    fn misread(&self, claim: &ClaimAvailable) -> Result<ClaimAvailable> {
        let how = self.how;
        let ttl = match how {
            How::LeaseTooLong => ms(claim.ttl()) * 2,
            How::LeaseTooShort => (ms(claim.ttl()) / 2).max(Duration::from_millis(1)),
            _ => ms(claim.ttl()),
        };
        let mut other = ClaimAvailable::new(claim.holder().clone(), ttl)?;
        if how != How::ClaimLimitIgnored {
            other = other.limit(claim.max_heads())?;
        }
        if how != How::ClaimExcludeIgnored {
            other = other.exclude(claim.excluded().iter().cloned())?;
        }
        if how != How::ClaimThroughIgnored {
            other = other.through(claim.end());
        }
        if how != How::RunIgnored {
            other = other.run(match how {
                How::RunTooLong => claim.max_run() + 1,
                _ => claim.max_run(),
            })?;
        }
        other = other.served(match how {
            How::ClaimServedIgnored => Served::ALL,
            How::EntryBudgetIgnored | How::BudgetIgnored => without_budgets(claim.served_list())?,
            How::LogTypesIgnored => untyped(claim.served_list())?,
            _ => claim.served_list().clone(),
        });
        let unnamed = a2_core::Consumer::new("\u{10ffff}nobody")?;
        let own = claim.served_list().budget_of(&unnamed).or(claim.budget_of(&unnamed));
        match (how, own) {
            (How::BudgetIgnored, _) | (_, None) => Ok(other),
            (How::BudgetOffByOne, Some(budget)) => other.max_failures(budget + 1),
            (_, Some(budget)) => other.max_failures(budget),
        }
    }

    pub(super) async fn break_claim(
        &self,
        session: &SessionId,
        claim: ClaimAvailable,
    ) -> Result<Claim> {
        let misread = self.misread(&claim)?;
        let answer = self.inner.claim_available(session, misread.clone()).await?;
        self.break_claimed(session, &misread, answer).await
    }

    pub(super) async fn break_claimed(
        &self,
        session: &SessionId,
        claim: &ClaimAvailable,
        answer: Claim,
    ) -> Result<Claim> {
        Ok(match (self.how, answer) {
            (How::BusyIsSettled, Claim::Busy(_)) => Claim::Settled,
            (How::SettledIsBusy, Claim::Settled) => Claim::Busy(Busy::new(ms(claim.ttl()))),
            (How::RetryAfterLate, Claim::Busy(busy)) => {
                Claim::Busy(Busy::new(busy.retry_after + Duration::from_millis(1)))
            }
            (_, Claim::Claimed(claimed)) => {
                Claim::Claimed(self.break_heads(session, claim, claimed).await?)
            }
            (_, answer) => answer,
        })
    }

    async fn break_heads(
        &self,
        session: &SessionId,
        claim: &ClaimAvailable,
        mut claimed: Claimed,
    ) -> Result<Claimed> {
        match self.how {
            How::ClaimOrderReversed => claimed.heads.reverse(),
            How::LapseNotCounted => {
                for head in &mut claimed.heads {
                    head.state.failure_count = 0;
                }
            }
            How::ClaimSentTwice => {
                let sent = claimed.heads.iter().map(DispatchedHead::attempt_ref);
                let release = ReleaseClaims::new(claim.holder().clone(), sent)?;
                self.inner.release_claims(session, release).await?.released.clear();
                if let Claim::Claimed(again) =
                    self.inner.claim_available(session, claim.clone()).await?
                {
                    return Ok(again);
                }
            }
            How::RunBeyondThrough => {
                for head in claimed.heads.iter_mut().filter(|_| claim.max_run() > 1) {
                    let after = head.run_through();
                    let range = ReadRange::after(after).limit(1)?;
                    head.run.extend(self.inner.read(session, range).await?.events);
                }
            }
            How::LaneHandsOutTwo => {
                for i in 0..claimed.heads.len() {
                    let second = self.second_of_lane(session, &claimed.heads[i]).await?;
                    claimed.heads.extend(second);
                }
            }
            _ => {}
        }
        Ok(claimed)
    }

    /// The next event of the log, as if it were the lane's head too.
    async fn second_of_lane(
        &self,
        session: &SessionId,
        head: &DispatchedHead,
    ) -> Result<Option<DispatchedHead>> {
        if !matches!(head.head.cursor, CursorKey::Lane(_)) {
            return Ok(None);
        }
        let range = ReadRange::after(head.head.index).limit(1)?;
        let next = self.inner.read(session, range).await?.events.pop();
        Ok(next.map(|event| {
            let HeadRef { consumer, cursor, .. } = head.head.clone();
            let at = HeadRef::new(consumer, cursor, event.index);
            DispatchedHead::new(at, event, head.state.clone())
        }))
    }

    pub(super) async fn break_renew(
        &self,
        session: &SessionId,
        renew: RenewClaims,
    ) -> Result<Renewal> {
        let ttl = match self.how {
            How::RenewNeverShortens => ms(renew.ttl()).max(Duration::from_secs(24 * 3600)),
            _ => ms(renew.ttl()),
        };
        let mut holder = renew.holder().clone();
        if self.is(How::RenewForAnyone) {
            let cursors = self.inner.all_cursors(session).await?;
            if let Some(other) = cursors.into_iter().find_map(|c| c.state.claim_holder) {
                holder = other;
            }
        }
        let again = RenewClaims::new(holder, renew.claims().iter().cloned(), ttl)?;
        let mut renewal = self.inner.renew_claims(session, again).await?;
        let unnamed = renew
            .claims()
            .iter()
            .filter(|c| !renewal.renewed.contains(c) && !renewal.superseded.contains(c))
            .cloned()
            .collect::<Vec<_>>();
        match self.how {
            How::RenewRevives => renewal.renewed.extend(unnamed),
            How::ExpiredIsSuperseded => renewal.superseded.extend(unnamed),
            How::SupersededUnnamed => renewal.superseded.clear(),
            _ => {}
        }
        Ok(renewal)
    }

    pub(super) async fn break_release(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        match self.how {
            How::ReleaseCosts => {
                for claim in release.claims() {
                    let fail = FailAttempt::new(claim.head.clone(), claim.attempt, "released");
                    let _ = self.inner.fail_attempt(session, fail).await?;
                }
                Ok(Released::new(release.claims().to_vec()))
            }
            How::ReleaseDoesNothing => Ok(Released::new(release.claims().to_vec())),
            How::ReleaseForAnyone => {
                let cursors = self.inner.all_cursors(session).await?;
                let holder = cursors.into_iter().find_map(|c| c.state.claim_holder);
                let holder = holder.unwrap_or_else(|| release.holder().clone());
                let again = ReleaseClaims::new(holder, release.claims().iter().cloned())?;
                self.inner.release_claims(session, again).await
            }
            _ => self.inner.release_claims(session, release).await,
        }
    }
}

/// The same entries without budgets of their own.
pub(super) fn without_budgets(served: &Served) -> Result<Served> {
    rebuilt(served, |entry| {
        let other = ServedConsumer::new(entry.consumer().clone())?;
        Ok(match entry.declaration() {
            Some(log) => other.log(log.clone()),
            None => other,
        })
    })
}

/// The same entries, their logs taking every type.
pub(super) fn untyped(served: &Served) -> Result<Served> {
    rebuilt(served, |entry| {
        let mut other = ServedConsumer::new(entry.consumer().clone())?;
        if let Some(budget) = entry.failure_budget() {
            other = other.max_failures(budget)?;
        }
        Ok(match entry.declaration() {
            Some(log) => other.log(log.clone().types(LogTypes::ALL)),
            None => other,
        })
    })
}

fn rebuilt(
    served: &Served,
    entry: impl Fn(&ServedConsumer) -> Result<ServedConsumer>,
) -> Result<Served> {
    match served.entries() {
        None => Ok(Served::ALL),
        Some(entries) => Served::only(entries.iter().map(entry).collect::<Result<Vec<_>>>()?),
    }
}
