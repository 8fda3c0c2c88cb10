//! Completing, failing and redriving attempts.

use a2_core::{
    Appended, Cause, CompleteAttempt, Completion, CursorKey, ErrorKind, FailAttempt, Failure,
    HeadRef, Index, Redrive, RedriveAction, Redriven, Served, Timestamp,
};

use super::append::ids;
use super::served::declared_types;
use super::session::{End, Session, Standing};

impl Session {
    pub(super) fn complete(
        &mut self,
        now: Timestamp,
        complete: &CompleteAttempt,
    ) -> Result<Completion, ErrorKind> {
        let (head, attempt, served) = (complete.head(), complete.attempt(), complete.served_list());
        // 1. A returned id twice, without an id, with a cause: no such request can be built.
        let returned = ids(complete.returned());
        // 2. The index.
        if head.index <= self.clear_index {
            return Ok(Completion::Superseded);
        }
        self.check_index(head.index)?;
        // 3. Already completed.
        match self.standing(head) {
            Standing::Ended(End::Completed { attempt: by, returned: before }) if by == attempt => {
                if before != returned {
                    let existing = self.owned(&returned);
                    return Err(ErrorKind::PartialDuplicateBatch { existing });
                }
                let events = returned.iter().filter_map(|id| self.owner(id).cloned()).collect();
                let pending = self.has_pending(served);
                return Ok(Completion::Completed(Appended::new(events, pending, true)));
            }
            Standing::Ended(_) | Standing::Passed => return Ok(Completion::Superseded),
            Standing::Head(_) | Standing::None => {}
        }
        // 4. Not the current attempt.
        if !self.is_current(head, attempt) {
            return Ok(Completion::Superseded);
        }
        let end = complete.end().unwrap_or(head.index);
        if end > self.head() {
            return Err(ErrorKind::InvalidInput { field: "through".into(), rule: "".into() });
        }
        // 5. A returned id already owned.
        let existing = self.owned(&returned);
        if !existing.is_empty() {
            return Err(ErrorKind::PartialDuplicateBatch { existing });
        }
        // 6. Commit.
        let cause = Cause::new(head.clone(), attempt);
        let events = complete.returned().iter().map(|e| (e.clone(), Some(cause.clone())));
        let events = self.commit(now, events.collect());
        self.finish(head, end, End::Completed { attempt, returned }, served);
        self.move_logs(served, &events);
        Ok(Completion::Completed(Appended::new(events, self.has_pending(served), false)))
    }

    /// The head came to its end: its cursor moves on, after `through`.
    fn finish(&mut self, head: &HeadRef, through: Index, end: End, served: &Served) {
        self.release_pins(head);
        let CursorKey::Log(name) = &head.cursor else {
            if let Some(aim) = self.aim_mut(head) {
                aim.end = Some(end);
            }
            return;
        };
        let recorded = self.log_of(&head.consumer, name).map(|log| log.types.clone());
        let Some(types) = declared_types(served, &head.consumer, name).or(recorded) else { return };
        let next = self.first_taken(&types, through);
        if let Some(log) = self.log_mut(&head.consumer, name) {
            log.types = types;
            log.position = through;
            log.head = next.map(|index| (index, Default::default()));
            log.last = Some((head.index, end));
        }
    }

    pub(super) fn fail(
        &mut self,
        now: Timestamp,
        fail: &FailAttempt,
    ) -> Result<Failure, ErrorKind> {
        let (head, attempt) = (fail.head(), fail.attempt());
        // 1. and 2. The index.
        if head.index <= self.clear_index {
            return Ok(Failure::Superseded);
        }
        self.check_index(head.index)?;
        // 3. Completed, skipped (or no head at all).
        let Standing::Head(mut state) = self.standing(head) else {
            return Ok(Failure::Superseded);
        };
        // 4. Another attempt.
        if state.attempt_count != attempt {
            return Ok(Failure::Superseded);
        }
        if state.claim_holder.is_none() {
            // 5. Not claimed, and this attempt failed last: nothing changes.
            let failure_count = state.failure_count;
            return Ok(match (state.last_failed_attempt == Some(attempt), state.failed_at) {
                (true, Some(_)) => Failure::DeadLettered { failure_count },
                (true, None) => Failure::Failed { failure_count },
                // 6. Not claimed otherwise.
                (false, _) => Failure::Superseded,
            });
        }
        // 7. It fails.
        state.failure_count += 1;
        state.last_failed_at = Some(now);
        state.last_failed_attempt = Some(attempt);
        state.last_error = Some(fail.error().to_owned());
        state.claim_holder = None;
        state.claim_expires_at = None;
        let failure_count = state.failure_count;
        if fail.budget().is_some_and(|budget| failure_count >= budget) {
            state.failed_at = Some(now);
            self.set_state(head, state);
            self.release_pins(head);
            return Ok(Failure::DeadLettered { failure_count });
        }
        if fail.hold().as_millis() > 0 {
            state.claim_expires_at = Some(now.after(fail.hold()));
        }
        self.set_state(head, state);
        Ok(Failure::Failed { failure_count })
    }

    fn check_index(&self, index: Index) -> Result<(), ErrorKind> {
        if index > self.head() {
            return Err(ErrorKind::NotFound { session: self.id.clone(), index });
        }
        Ok(())
    }

    pub(super) fn redrive(&mut self, redrive: &Redrive) -> Redriven {
        let served = redrive.served_list();
        let dead = self.head_state(redrive.head()).filter(|state| state.failed_at.is_some());
        let redriven = dead.is_some();
        if let Some(mut state) = dead {
            match redrive.action() {
                RedriveAction::Retry => {
                    state.failed_at = None;
                    state.failure_count = 0;
                    self.set_state(redrive.head(), state);
                }
                RedriveAction::Skip => {
                    self.finish(redrive.head(), redrive.head().index, End::Skipped, served);
                }
            }
        }
        Redriven::new(redriven, self.has_pending(served))
    }
}
