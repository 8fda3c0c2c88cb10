//! A store's own limits gone wrong.

use a2_core::{
    Append, Appended, CompleteAttempt, Completion, Event, NewEvent, Presence, PutSnapshots,
    ReadRange, Result, Schedule, SessionId, StoreLimits, Timers, WithClaim, limits,
};

use super::{Broken, How};

impl<S: Clone> Broken<S> {
    /// A handle with these limits, but for the one that is ignored.
    pub(super) fn limited(&self, own: StoreLimits) -> Result<Self> {
        let limits = match self.how {
            How::OwnJsonBytesIgnored => own.json_bytes(limits::JSON_BYTES)?,
            How::OwnBatchEventsIgnored => own.batch_events(limits::BATCH_EVENTS)?,
            How::OwnBatchTargetsIgnored => own.batch_targets(limits::BATCH_TARGETS)?,
            How::OwnEventTargetsIgnored => own.event_targets(limits::EVENT_TARGETS)?,
            How::OwnBatchBytesIgnored => own.batch_bytes(limits::BATCH_BYTES)?,
            How::OwnSnapshotWritesIgnored => own.snapshot_writes(limits::SNAPSHOT_WRITES)?,
            How::OwnPresenceFieldsIgnored => own.presence_fields(limits::PRESENCE_FIELDS)?,
            How::OwnPresenceBytesIgnored => {
                own.presence_value_bytes(limits::PRESENCE_VALUE_BYTES)?
            }
            _ => own,
        };
        Ok(Self { limits, ..self.clone() })
    }
}

impl<S: Timers + Presence> Broken<S> {
    pub(super) async fn within_limits(
        &self,
        session: &SessionId,
        append: Append,
    ) -> Result<Appended> {
        if let Err(refusal) = self.limits.check_append(&append) {
            match self.how {
                How::WrittenThenRefused => {
                    let _ = self.inner.append(session, append).await?;
                }
                How::ReplayBeforeLimits => {
                    let stored = self.inner.read(session, ReadRange::default()).await?.events;
                    let is_stored =
                        |new: &NewEvent| stored.iter().any(|old| Some(&old.id) == new.event_id());
                    if append.events().iter().all(is_stored) {
                        return self.inner.append(session, append).await;
                    }
                }
                _ => {}
            }
            return Err(refusal);
        }
        self.break_append(session, append).await
    }

    pub(super) async fn completes_within_limits(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        match self.how {
            How::ReturnedUnlimited | How::CompletionBeforeLimits => {}
            _ => self.limits.check_complete(&complete)?,
        }
        self.break_complete(session, complete).await
    }

    pub(super) fn check_schedule(&self, timer: &Schedule) -> Result<()> {
        if self.is(How::TimersUnlimited) { Ok(()) } else { self.limits.check_schedule(timer) }
    }

    pub(super) fn check_snapshots(&self, writes: &PutSnapshots) -> Result<()> {
        if self.is(How::SnapshotsUnlimited) { Ok(()) } else { self.limits.check_snapshots(writes) }
    }

    pub(super) fn hide(&self, events: &mut Vec<Event>) {
        if self.is(How::StoredAboveLimitsHidden) {
            events.retain(|event| event.payload.byte_len() <= self.limits.max_json_bytes());
        }
    }
}
