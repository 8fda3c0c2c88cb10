//! Completions and failures gone wrong.

use std::time::Duration;

use a2_core::{
    Append, Appended, CompleteAttempt, Completion, CursorKey, Error, ErrorKind, FailAttempt,
    Failure, HeadRef, NewEvent, Presence, Redrive, RedriveAction, Result, SessionId, StoreExt,
    Timers, WithClaim,
};

use super::{Broken, How};

impl<S: Timers + Presence> Broken<S> {
    /// The attempt that holds the head now.
    async fn current(&self, session: &SessionId, head: &HeadRef) -> Result<Option<u64>> {
        let cursors = self.inner.all_cursors(session).await?;
        Ok(cursors
            .into_iter()
            .find(|c| {
                c.consumer == head.consumer && c.key == head.cursor && c.head == Some(head.index)
            })
            .map(|c| c.state.attempt_count))
    }

    /// The completion as the saboteur understands it.
    fn misread_completion(
        &self,
        complete: &CompleteAttempt,
        attempt: u64,
        events: Vec<NewEvent>,
    ) -> Result<CompleteAttempt> {
        let mut other = CompleteAttempt::new(complete.head().clone(), attempt)
            .events(events)?
            .served(complete.served_list().clone());
        if let Some(through) = complete.end().filter(|_| !self.is(How::CompleteThroughIgnored)) {
            other = other.through(through)?;
        }
        if let Some(claim) = complete.next_claim().filter(|_| !self.is(How::ThenClaimIgnored)) {
            other = other.then_claim(claim.clone());
        }
        Ok(other)
    }

    pub(super) async fn break_complete(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        let events = match self.how {
            How::ReturnedEventsLost | How::ReturnedWithoutCause => Vec::new(),
            _ => complete.returned().to_vec(),
        };
        let mut again = self.misread_completion(&complete, complete.attempt(), events)?;
        if self.is(How::CompletionSkipsToEnd)
            && matches!(complete.head().cursor, CursorKey::Log(_))
            && complete.end().is_none()
        {
            again = again.through(self.inner.head(session).await?)?;
        }
        let answer = self.inner.complete_attempt(session, again).await;
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.break_complete_error(session, &complete, error).await,
        };
        match (self.how, &mut answer.outcome) {
            (How::FenceMissing, Completion::Superseded) => {
                if let Some(attempt) = self.current(session, complete.head()).await? {
                    let events = complete.returned().to_vec();
                    let forced = self.misread_completion(&complete, attempt, events)?;
                    return self.inner.complete_attempt(session, forced).await;
                }
            }
            (How::ReplayedCompletionSuperseded, Completion::Completed(done)) if done.replayed => {
                answer.outcome = Completion::Superseded;
            }
            (How::OnlyLastCompletionKept, Completion::Completed(done)) => {
                let mut seen = self.seen();
                if !done.replayed {
                    seen.completed.insert(session.clone(), complete.head().clone());
                } else if seen.completed.get(session) != Some(complete.head()) {
                    answer.outcome = Completion::Superseded;
                }
            }
            (How::ReturnedWithoutCause, Completion::Completed(done)) if !done.replayed => {
                let append = Append::new(complete.returned().to_vec())?
                    .served(complete.served_list().clone());
                done.events = self.inner.append(session, append).await?.events;
            }
            (How::ThenClaimNotAfterSuperseded, Completion::Superseded) => answer.claim = None,
            (How::ClearedIsNotFound, Completion::Superseded) => {
                let clear_index = self.inner.cursors(session, a2_core::Page::first()).await?;
                if complete.head().index <= clear_index.clear_index {
                    let (session, index) = (session.clone(), complete.head().index);
                    return Err(ErrorKind::NotFound { session, index }.into());
                }
            }
            _ => {}
        }
        Ok(answer)
    }

    async fn break_complete_error(
        &self,
        session: &SessionId,
        complete: &CompleteAttempt,
        error: Error,
    ) -> Result<WithClaim<Completion>> {
        match (self.how, error.kind()) {
            (How::BeyondIsSuperseded, ErrorKind::NotFound { .. }) => {
                Ok(WithClaim::new(Completion::Superseded, None))
            }
            (How::CompletionIdsUnchecked, ErrorKind::PartialDuplicateBatch { .. }) => {
                let done = Appended::new(Vec::new(), false, true);
                Ok(WithClaim::new(Completion::Completed(done), None))
            }
            (How::PartialCompletes, ErrorKind::PartialDuplicateBatch { existing, .. }) => {
                let new = complete
                    .returned()
                    .iter()
                    .filter(|event| event.event_id().is_some_and(|id| !existing.contains(id)))
                    .cloned()
                    .collect();
                let without = self.misread_completion(complete, complete.attempt(), new)?;
                self.inner.complete_attempt(session, without).await
            }
            _ => Err(error),
        }
    }

    pub(super) async fn break_fail(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        let mut answer =
            self.inner.fail_attempt(session, self.misread_failure(&fail, fail.attempt())?).await?;
        if self.is(How::FailFenceMissing)
            && answer.outcome == Failure::Superseded
            && let Some(attempt) = self.current(session, fail.head()).await?
        {
            let forced = self.misread_failure(&fail, attempt)?;
            answer = self.inner.fail_attempt(session, forced).await?;
        }
        if self.is(How::DeadLetterPassedOver)
            && matches!(answer.outcome, Failure::DeadLettered { .. })
        {
            let skip = Redrive::new(fail.head().clone(), RedriveAction::Skip);
            let _ = self.inner.redrive(session, skip).await?;
        }
        Ok(answer)
    }

    fn misread_failure(&self, fail: &FailAttempt, attempt: u64) -> Result<FailAttempt> {
        let text = if self.is(How::ErrorTextLost) { "" } else { fail.error() };
        let mut other = FailAttempt::new(fail.head().clone(), attempt, text);
        if !self.is(How::RetryAfterIgnored) {
            other = other.retry_after(Duration::from_millis(fail.hold().as_millis()));
        }
        if let Some(claim) = fail.next_claim().filter(|_| !self.is(How::ThenClaimIgnored)) {
            other = other.then_claim(claim.clone());
        }
        match (self.how, fail.budget()) {
            (How::FailBudgetIgnored, _) | (How::OneIsNoBudget, Some(1)) | (_, None) => Ok(other),
            (How::FailBudgetOffByOne, Some(budget)) => other.max_failures(budget + 1),
            (_, Some(budget)) => other.max_failures(budget),
        }
    }
}
