//! Claiming, renewing and releasing heads.

use std::time::Duration;

use a2_core::{
    Busy, Claim, ClaimAvailable, Claimed, CursorKey, CursorRef, DispatchState, DispatchedHead,
    Event, HeadRef, ReleaseClaims, Released, RenewClaims, Renewal, Timestamp,
};

use super::served::{declared_types, serves, takes};
use super::session::{End, Session, Standing};

/// Leased or held for a retry: the expiry lies in the future, not now.
fn is_busy(state: &DispatchState, now: Timestamp) -> bool {
    state.claim_expires_at.is_some_and(|at| at > now)
}

impl Session {
    /// The answer, and whether a busy one may name a sooner time.
    pub(super) fn claim(&mut self, now: Timestamp, claim: &ClaimAvailable) -> (Claim, bool) {
        let live: Vec<_> = self
            .heads()
            .into_iter()
            .filter(|(head, state)| {
                state.failed_at.is_none() && serves(claim.served_list(), &head.consumer)
            })
            .collect();
        let candidates: Vec<_> = live
            .iter()
            .filter(|(head, _)| head.index <= claim.end() && !excludes(claim, head))
            .cloned()
            .collect();
        let left_out = candidates.len() < live.len();
        if candidates.is_empty() {
            return (Claim::Settled, left_out);
        }
        let free: Vec<_> =
            candidates.iter().filter(|(_, state)| !is_busy(state, now)).cloned().collect();
        if free.is_empty() {
            let soonest = candidates.iter().filter_map(|(_, state)| state.claim_expires_at).min();
            let retry_after = soonest.map_or(Duration::ZERO, |at| at.since(now));
            return (Claim::Busy(Busy::new(retry_after.max(Duration::from_millis(1)))), left_out);
        }
        let mut claimed = Vec::new();
        for (head, state) in free.into_iter().take(claim.max_heads()) {
            claimed.extend(self.claim_head(now, claim, head, state));
        }
        (Claim::Claimed(Claimed::new(claimed, self.head(), self.clear_index)), left_out)
    }

    fn claim_head(
        &mut self,
        now: Timestamp,
        claim: &ClaimAvailable,
        head: HeadRef,
        mut state: DispatchState,
    ) -> Option<DispatchedHead> {
        let lapsed = state.claim_holder.is_some();
        if lapsed {
            state.failure_count += 1;
            state.last_failed_at = Some(now);
            state.last_failed_attempt = Some(state.attempt_count);
            state.last_error = Some("lease expired".to_owned());
        }
        state.attempt_count += 1;
        let budget = claim.budget_of(&head.consumer);
        if lapsed && budget.is_some_and(|budget| state.failure_count >= budget) {
            state.claim_holder = None;
            state.claim_expires_at = None;
            state.failed_at = Some(now);
        } else {
            state.first_claimed_at = state.first_claimed_at.or(Some(now));
            state.last_claimed_at = Some(now);
            state.claim_holder = Some(claim.holder().clone());
            state.claim_expires_at = Some(now.after(claim.ttl()));
        }
        self.set_state(&head, state.clone());
        let event = self.event(head.index)?.clone();
        let mut dispatched = DispatchedHead::new(head.clone(), event, state.clone());
        if state.failed_at.is_some() {
            self.release_pins(&head);
        } else {
            dispatched.run = self.run(claim, &head);
        }
        Some(dispatched)
    }

    /// The events up to `through` that a log takes after its head, up to `run` with the head. As
    /// with a completion, the request's declaration says which types those are, else the latest.
    fn run(&self, claim: &ClaimAvailable, head: &HeadRef) -> Vec<Event> {
        let CursorKey::Log(name) = &head.cursor else { return Vec::new() };
        let recorded = self.log_of(&head.consumer, name).map(|log| log.types.clone());
        let declared = declared_types(claim.served_list(), &head.consumer, name);
        let Some(types) = declared.or(recorded) else { return Vec::new() };
        let events = self.lifetime().map(|entry| &entry.event);
        let events = events.filter(|e| e.index > head.index && e.index <= claim.end());
        let events = events.filter(|e| takes(&types, &e.event_type));
        events.take(claim.max_run() - 1).cloned().collect()
    }

    pub(super) fn renew(&mut self, now: Timestamp, renew: &RenewClaims) -> Renewal {
        let (mut renewed, mut superseded) = (Vec::new(), Vec::new());
        for claim in renew.claims() {
            if claim.head.index <= self.clear_index {
                superseded.push(claim.clone());
                continue;
            }
            match self.standing(&claim.head) {
                Standing::Ended(End::Completed { .. } | End::Skipped) | Standing::Passed => {
                    superseded.push(claim.clone());
                }
                Standing::Head(state) if state.attempt_count > claim.attempt => {
                    superseded.push(claim.clone());
                }
                Standing::Head(mut state)
                    if self.is_current(&claim.head, claim.attempt)
                        && state.claim_holder.as_ref() == Some(renew.holder())
                        && is_busy(&state, now) =>
                {
                    state.claim_expires_at = Some(now.after(renew.ttl()));
                    self.set_state(&claim.head, state);
                    renewed.push(claim.clone());
                }
                Standing::Head(_) | Standing::None => {}
            }
        }
        Renewal::new(renewed, superseded)
    }

    pub(super) fn release(&mut self, release: &ReleaseClaims) -> Released {
        let mut released = Vec::new();
        for claim in release.claims() {
            let Some(mut state) = self.head_state(&claim.head) else { continue };
            if self.is_current(&claim.head, claim.attempt)
                && state.claim_holder.as_ref() == Some(release.holder())
            {
                state.claim_holder = None;
                state.claim_expires_at = None;
                self.set_state(&claim.head, state);
                released.push(claim.clone());
            }
        }
        Released::new(released)
    }
}

/// Whether the head's cursor is left out; an event cursor is named with its index.
fn excludes(claim: &ClaimAvailable, head: &HeadRef) -> bool {
    let consumer = head.consumer.clone();
    claim.excluded().contains(&match &head.cursor {
        CursorKey::Event => CursorRef::event(consumer, head.index),
        CursorKey::Lane(lane) => CursorRef::lane(consumer, lane.clone()),
        CursorKey::Log(log) => CursorRef::log(consumer, log.clone()),
    })
}
