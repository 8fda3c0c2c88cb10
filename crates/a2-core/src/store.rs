//! The contract of a store: [`Store`], [`Timers`] and [`Presence`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream;

use crate::outcome::{
    Appended, Claim, Cleared, Completion, Cursors, DeadLetters, Events, Failure, Pending,
    PresenceChange, PresencePatch, PresenceRows, Reclaimed, Redriven, Released, Renewal, Scheduled,
    Sessions, SnapshotsPut, StateRead, TimerPage, Unscheduled, WithClaim, WokenLog, WorkHint,
};
use crate::request::{
    Append, ClaimAvailable, Clear, CompleteAttempt, FailAttempt, FireTimers, Page, PendingPage,
    PresenceUpdate, PutSnapshots, ReadRange, ReadState, Redrive, ReleaseClaims, RenewClaims,
    Schedule, WakeLog,
};
use crate::{Event, Index, Namespace, ReducerName, Result, Served, SessionId, TimerKey};

macro_rules! stream_type {
    ($(#[$doc:meta])* $name:ident, $item:ty) => {
        $(#[$doc])*
        #[must_use = "a stream does nothing unless polled"]
        pub struct $name(Pin<Box<dyn Stream<Item = Result<$item>> + Send>>);

        impl $name {
            /// For backends: wraps a stream.
            pub fn new(stream: impl Stream<Item = Result<$item>> + Send + 'static) -> Self {
                Self(Box::pin(stream))
            }
        }

        impl Stream for $name {
            type Item = Result<$item>;

            fn poll_next(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<Option<Self::Item>> {
                self.0.as_mut().poll_next(cx)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

stream_type!(
    /// A session's events: those stored, then those that are appended.
    EventStream, Event
);
stream_type!(
    /// Hints that sessions may have work.
    WorkHints, WorkHint
);
stream_type!(
    /// A namespace as it is, then its changes.
    PresenceStream, PresenceChange
);

/// Session logs and the cursors that follow them.
///
/// # Atomicity
/// Each write is done as a whole or not at all, and is durable, as far as the backend's settings
/// say, when it answers. A dropped future leaves its operation either done or not done, and the
/// store usable.
///
/// # Order
/// A session's events have the indexes 1, 2, 3, … in the order of their commits, and a reader that
/// has seen one has seen all before it. Sessions do not wait for each other.
///
/// # Idempotence
/// After a lost answer any write may be sent again as it is: it finds what was done, or does it.
/// Only these answers may differ then: a claim whose answer was lost stays leased until its ttl
/// and then counts as one failure; a redrive answers false, a release nothing released.
///
/// # Checks
/// An operation checks everything before it writes anything, in the order that its documentation
/// gives; the first check that fails is the answer. Before all of them, what is given must be within the
/// store's own [limits](crate::StoreLimits) where it has lower ones: `INVALID_INPUT` otherwise.
///
/// # Errors
/// Every operation may fail with `STORE_UNAVAILABLE` (retryable), `STORE_NOT_CONFIGURED`, `CORRUPT`
/// and `CLOSED`; what else is documented with each.
#[async_trait]
pub trait Store: Send + Sync {
    /// Appends events, all or none.
    ///
    /// 1. An empty batch writes nothing and answers `has_pending`.
    /// 2. Ids that all exist in the current lifetime: the stored events, `replayed`, nothing
    ///    written, whatever else changed. An id below the latest clear is free.
    /// 3. `expected_head` and `origin_index`.
    /// 4. Every cause must be a current attempt.
    /// 5. The events get the next indexes and one `created_at`; they are queued on their targets,
    ///    the declared logs move, streams wake.
    ///
    /// # Errors
    /// `PARTIAL_DUPLICATE_BATCH` when some ids exist, `HEAD_CONFLICT`, `SESSION_CLEARED`,
    /// `SUPERSEDED_ATTEMPT`; `INVALID_INPUT` past index 2^53 − 1.
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended>;

    /// Reads a range of the log in one consistent view: no earlier than the latest clear marker,
    /// which is read itself. Stops after the event with which 16 MiB of payload are passed.
    ///
    /// # Errors
    /// `CORRUPT` when an index is missing.
    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events>;

    /// Every event after `start_after` (from the latest marker if that is later), then live ones as
    /// they commit: in order, without a gap, never twice.
    ///
    /// When the session is cleared it goes on at the latest marker, the one jump it may make. It
    /// retries by itself what can be retried; `CORRUPT` and `CLOSED` are yielded once and end it.
    /// Dropping it unsubscribes. A slow reader costs bounded memory.
    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream;

    /// Claims free heads of served consumers, in head order, each with a lease.
    ///
    /// A head whose lease lapsed counts one failure first, and is dead-lettered instead of claimed
    /// when that spends its budget; it is returned with `failed_at` set and counts towards the
    /// limit. Stops past 16 MiB of payload. A claim never creates or moves a cursor, and is never
    /// sent twice by a store.
    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim>;

    /// Makes leases last for the whole ttl from now, also when that is sooner than before.
    ///
    /// Renewed: the current attempt, of this holder, not yet expired. Superseded: at or below the
    /// clear, completed, or a later attempt exists. Any other is in neither list.
    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal>;

    /// Gives current claims of the holder back at once, without a failure. The next claim is the
    /// next attempt.
    async fn release_claims(&self, session: &SessionId, release: ReleaseClaims)
    -> Result<Released>;

    /// Completes an attempt: the cursor moves, the returned events are appended with the attempt as
    /// their cause, and both are remembered, in one commit.
    ///
    /// 1. An index at or below the clear: `Superseded`. No such index: `NOT_FOUND`.
    /// 2. A head already completed by this attempt with the same returned ids in the same order:
    ///    the stored events, `replayed`; with other ids: `PARTIAL_DUPLICATE_BATCH`. Completed by
    ///    another attempt, or skipped: `Superseded`. A log cursor remembers its last completion
    ///    only; any other index at or below its position is `Superseded`.
    /// 3. Not the current attempt: `Superseded`.
    /// 4. `through` past the log's head: `INVALID_INPUT`. A returned id already owned:
    ///    `PARTIAL_DUPLICATE_BATCH`. The claim stays in both cases.
    ///
    /// `then_claim` claims more work right after, also when the call was superseded or replayed.
    ///
    /// # Errors
    /// `NOT_FOUND`, `PARTIAL_DUPLICATE_BATCH`, `INVALID_INPUT`.
    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>>;

    /// Fails an attempt: the head is held for `retry_after` and then claimable again, or
    /// dead-lettered when its budget is spent.
    ///
    /// Sent again, it answers the head's present outcome and changes nothing.
    ///
    /// # Errors
    /// `NOT_FOUND` for an index that does not exist.
    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>>;

    /// The dead-lettered heads above the clear, in head order.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a foreign page token.
    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters>;

    /// Retries or skips one dead letter; answers false when the head is none.
    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven>;

    /// Brings one log cursor up to date without an append; writes nothing when nothing changes.
    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog>;

    /// Every cursor of the session: logs always, lanes unless idle since before the clear, event
    /// cursors while they have a head.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a foreign page token.
    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors>;

    /// A reducer's newest snapshot and the events after it, in one consistent view; at most 10,000
    /// events and 16 MiB.
    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead>;

    /// Keeps snapshots: the latest always, older ones while a live head pins them.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a snapshot above the log's head; nothing is stored then.
    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut>;

    /// Starts a new lifetime of the session with a marker event. Every head, queue, id and snapshot
    /// below it is gone at once, at a cost that does not grow with the history.
    ///
    /// # Errors
    /// `SUPERSEDED_ATTEMPT` when the cause is not a current attempt.
    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared>;

    /// Deletes one bounded batch of what lies below the marker. Call until `done`.
    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed>;

    /// Every session that was ever appended to.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a foreign page token.
    async fn sessions(&self, page: Page) -> Result<Sessions>;

    /// Every session in which a served consumer has a live head, or with a timer. A pass from the
    /// first page to the last misses none that had work throughout.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a foreign page token.
    async fn pending(&self, pending: PendingPage) -> Result<Pending>;

    /// Hints that a session was appended to or redriven, or has a timer due; by any process. They
    /// may be lost, merged or repeated: [`pending`](Store::pending) is the truth.
    fn watch_pending(&self, served: Served) -> WorkHints;
}

/// Durable delayed appends.
///
/// Atomicity, idempotence and errors as for [`Store`].
#[async_trait]
pub trait Timers: Store {
    /// Sets a timer; the same key again replaces it.
    ///
    /// # Errors
    /// `SESSION_CLEARED` when the origin lies below the latest clear.
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled>;

    /// Removes a timer.
    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled>;

    /// The session's timers, by key.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a foreign page token.
    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage>;

    /// Appends the events of the timers that are due, in order of due time, each once. An id
    /// already owned counts as fired.
    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended>;
}

/// Ephemeral fields of who is present: last write wins, gone after their ttl.
#[async_trait]
pub trait Presence: Send + Sync {
    /// Sets and removes fields; answers what changed. A byte-equal value renews the ttl and is no
    /// change, a changed `seen` is one.
    async fn set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>>;

    /// The namespace's rows that have not expired.
    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows>;

    /// The namespace as it is, then its changes, this handle's own too. An expired field is
    /// reported as removed.
    fn watch_presence(&self, namespace: &Namespace) -> PresenceStream;
}

/// Implements the traits for a pointer to a store.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<S: Store + ?Sized> Store for $pointer {
            async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
                (**self).append(session, append).await
            }
            async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
                (**self).read(session, range).await
            }
            fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
                (**self).stream(session, start_after)
            }
            async fn claim_available(
                &self,
                session: &SessionId,
                claim: ClaimAvailable,
            ) -> Result<Claim> {
                (**self).claim_available(session, claim).await
            }
            async fn renew_claims(
                &self,
                session: &SessionId,
                renew: RenewClaims,
            ) -> Result<Renewal> {
                (**self).renew_claims(session, renew).await
            }
            async fn release_claims(
                &self,
                session: &SessionId,
                release: ReleaseClaims,
            ) -> Result<Released> {
                (**self).release_claims(session, release).await
            }
            async fn complete_attempt(
                &self,
                session: &SessionId,
                complete: CompleteAttempt,
            ) -> Result<WithClaim<Completion>> {
                (**self).complete_attempt(session, complete).await
            }
            async fn fail_attempt(
                &self,
                session: &SessionId,
                fail: FailAttempt,
            ) -> Result<WithClaim<Failure>> {
                (**self).fail_attempt(session, fail).await
            }
            async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
                (**self).dead_letters(session, page).await
            }
            async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
                (**self).redrive(session, redrive).await
            }
            async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
                (**self).wake_log(session, log).await
            }
            async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
                (**self).cursors(session, page).await
            }
            async fn read_state(
                &self,
                session: &SessionId,
                reducer: &ReducerName,
                read: ReadState,
            ) -> Result<StateRead> {
                (**self).read_state(session, reducer, read).await
            }
            async fn put_snapshots(
                &self,
                session: &SessionId,
                reducer: &ReducerName,
                writes: PutSnapshots,
            ) -> Result<SnapshotsPut> {
                (**self).put_snapshots(session, reducer, writes).await
            }
            async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
                (**self).clear(session, clear).await
            }
            async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
                (**self).reclaim(session).await
            }
            async fn sessions(&self, page: Page) -> Result<Sessions> {
                (**self).sessions(page).await
            }
            async fn pending(&self, pending: PendingPage) -> Result<Pending> {
                (**self).pending(pending).await
            }
            fn watch_pending(&self, served: Served) -> WorkHints {
                (**self).watch_pending(served)
            }
        }

        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<S: Timers + ?Sized> Timers for $pointer {
            async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
                (**self).schedule(session, timer).await
            }
            async fn unschedule(
                &self,
                session: &SessionId,
                key: &TimerKey,
            ) -> Result<Unscheduled> {
                (**self).unschedule(session, key).await
            }
            async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
                (**self).timers(session, page).await
            }
            async fn fire_timers(
                &self,
                session: &SessionId,
                fire: FireTimers,
            ) -> Result<Appended> {
                (**self).fire_timers(session, fire).await
            }
        }

        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<S: Presence + ?Sized> Presence for $pointer {
            async fn set_presence(
                &self,
                namespace: &Namespace,
                update: PresenceUpdate,
            ) -> Result<Option<PresencePatch>> {
                (**self).set_presence(namespace, update).await
            }
            async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
                (**self).read_presence(namespace).await
            }
            fn watch_presence(&self, namespace: &Namespace) -> PresenceStream {
                (**self).watch_presence(namespace)
            }
        }
    )*};
}

forward!(Arc<S>, Box<S>, &S);
