//! Claims, renewals and releases gone wrong.

use std::time::Duration;

use a2_core::{
    AttemptRef, Busy, Claim, ClaimAvailable, Claimed, Clock, CursorKey, CursorRef, DispatchedHead,
    FailAttempt, HeadRef, LogName, LogTypes, Presence, ReadRange, ReleaseClaims, Released,
    RenewClaims, Renewal, Result, Served, ServedConsumer, SessionId, StoreExt, SystemClock, Timers,
    Timestamp, WakeLog,
};

use super::{Broken, How};

fn ms(span: a2_core::Span) -> Duration {
    Duration::from_millis(span.as_millis())
}

/// What is left, at `now` of the store, until the caller's clock says that the time is over.
pub(super) fn by_callers_clock(now: Timestamp, span: a2_core::Span) -> Duration {
    SystemClock.now().after(span).since(now).max(Duration::from_millis(1))
}

impl<S: Timers + Presence> Broken<S> {
    /// The claim as the saboteur understands it.
    fn misread(&self, claim: &ClaimAvailable) -> Result<ClaimAvailable> {
        let how = self.how;
        let ttl = match how {
            How::LeaseTooLong => ms(claim.ttl()) * 2,
            How::LeaseTooShort => (ms(claim.ttl()) / 2).max(Duration::from_millis(1)),
            How::LeaseCapped => ms(claim.ttl()).min(Duration::from_secs(30 * 24 * 3_600)),
            _ => ms(claim.ttl()),
        };
        let mut other = ClaimAvailable::new(claim.holder().clone(), ttl)?;
        if how != How::ClaimLimitIgnored {
            other = other.limit(match (how, claim.max_heads()) {
                (How::DefaultLimitHigher, 64) => 100,
                (_, limit) => limit,
            })?;
        }
        if how != How::ClaimExcludeIgnored {
            let mut excluded: Vec<_> = claim.excluded().iter().cloned().collect();
            for cursor in claim.excluded().iter().filter(|_| how == How::LaneExcludesLog) {
                if let CursorKey::Lane(lane) = cursor.key() {
                    let log = LogName::new(lane.as_str())?;
                    excluded.push(CursorRef::log(cursor.consumer().clone(), log));
                }
            }
            other = other.exclude(excluded)?;
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
            How::ConsumersFolded => folded(claim.served_list())?,
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
        if self.is(How::ClaimMakesLogs) {
            for (consumer, log) in claim.served_list().declarations() {
                let wake = WakeLog::new(consumer.clone(), log.clone())?;
                let _ = self.inner.wake_log(session, wake).await?;
            }
        }
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
            (How::OwnLeaseIsFree, Claim::Busy(_)) => self.claim_own(session, claim).await?,
            (_, Claim::Claimed(claimed)) => {
                Claim::Claimed(self.break_heads(session, claim, claimed).await?)
            }
            (_, answer) => answer,
        })
    }

    /// Gives back what the holder holds and claims again.
    async fn claim_own(&self, session: &SessionId, claim: &ClaimAvailable) -> Result<Claim> {
        let mut own = Vec::new();
        for cursor in self.inner.all_cursors(session).await? {
            if let Some(index) = cursor.head
                && cursor.state.claim_holder.as_ref() == Some(claim.holder())
            {
                let head = HeadRef::new(cursor.consumer, cursor.key, index);
                own.push(AttemptRef::new(head, cursor.state.attempt_count));
            }
        }
        let release = ReleaseClaims::new(claim.holder().clone(), own)?;
        let _ = self.inner.release_claims(session, release).await?;
        self.inner.claim_available(session, claim.clone()).await
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
            How::FirstClaimForgotten => {
                for head in &mut claimed.heads {
                    head.state.first_claimed_at = head.state.last_claimed_at;
                }
            }
            How::LeaseByCallersClock => {
                for head in &mut claimed.heads {
                    let Some(now) = head.state.last_claimed_at else { continue };
                    let claims = [head.attempt_ref()];
                    let ttl = by_callers_clock(now, claim.ttl());
                    let lease = RenewClaims::new(claim.holder().clone(), claims, ttl)?;
                    let _ = self.inner.renew_claims(session, lease).await?;
                }
            }
            How::AttemptsRestart => {
                for head in &mut claimed.heads {
                    head.state.attempt_count = head.state.failure_count + 1;
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
            How::RenewByCallersClock => {
                let _ = self.inner.renew_claims(session, renew.clone()).await?;
                let cursors = self.inner.all_cursors(session).await?;
                let expires = cursors.iter().find_map(|cursor| cursor.state.claim_expires_at);
                let ttl = i64::try_from(renew.ttl().as_millis()).unwrap_or(i64::MAX);
                let now = expires.unwrap_or(Timestamp::EPOCH).as_millis() - ttl;
                by_callers_clock(Timestamp::from_millis(now), renew.ttl())
            }
            How::RenewFromExpiry => ms(renew.ttl()) + self.lease(session).await?,
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

    /// How long the session's first lease lasted when it was given.
    async fn lease(&self, session: &SessionId) -> Result<Duration> {
        let cursors = self.inner.all_cursors(session).await?;
        let lease = cursors.iter().find_map(|cursor| {
            let (from, until) = (cursor.state.last_claimed_at?, cursor.state.claim_expires_at?);
            Some(until.since(from))
        });
        Ok(lease.unwrap_or_default())
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
            How::ReleaseAlwaysAnswers => {
                let claims = release.claims().to_vec();
                let _ = self.inner.release_claims(session, release).await?;
                Ok(Released::new(claims))
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

/// The same entries, their consumers' names in lower case.
fn folded(served: &Served) -> Result<Served> {
    rebuilt(served, |entry| {
        let other = ServedConsumer::new(entry.consumer().as_str().to_lowercase())?;
        Ok(match entry.declaration() {
            Some(log) => other.log(log.clone()),
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
