//! Stores that break one rule each, to test the suite itself.
//!
//! A case that cannot fail proves nothing. Each saboteur is a sound store behind a wrapper that
//! breaks one rule of the model; the case that names the rule must catch it.

mod attempts;
mod claims;
mod listings;
mod logs;
mod store;
mod streams;
mod writes;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2_core::{Event, EventId, Presence, SessionId, Timers};
use async_trait::async_trait;

use crate::{BoxError, Factory, Setup, Subject};

/// Lists the saboteurs: what each breaks, and the case that catches it.
macro_rules! saboteurs {
    ($($how:ident: $breaks:literal => $case:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum How { $($how),* }

        /// Every saboteur.
        pub static SABOTEURS: &[Saboteur] = &[$(
            Saboteur { how: How::$how, name: stringify!($how), breaks: $breaks, caught_by: $case }
        ),*];
    };
}

/// A store that breaks one rule, and the case that must notice.
#[derive(Clone, Copy)]
pub struct Saboteur {
    how: How,
    name: &'static str,
    breaks: &'static str,
    caught_by: &'static str,
}

impl Saboteur {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it does wrong.
    #[must_use]
    pub fn breaks(&self) -> &'static str {
        self.breaks
    }

    /// The case that must fail on it.
    #[must_use]
    pub fn caught_by(&self) -> &'static str {
        self.caught_by
    }
}

impl fmt::Debug for Saboteur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

saboteurs! {
    // Appending.
    IndexesFromTwo: "an append answers indexes one too high" => "append.index.dense";
    AnswersBackwards: "an append answers its events in the wrong order" => "append.index.dense";
    ReplayUnmarked: "a replay does not say that it is one" => "append.replay.whole_batch";
    ReplayAppends: "a batch sent again is appended again under new ids" => "append.replay.whole_batch";
    ReplayInLogOrder: "a replay answers in log order, not the request's" => "append.replay.in_request_order";
    PartialAppendsTheRest: "of a partly known batch the new events are appended" => "append.partial.existing";
    PartialNamesAll: "a partial duplicate names every id of the batch" => "append.partial.existing";
    ExpectedHeadIgnored: "expected_head is not looked at" => "append.expected_head.conflict";
    OriginIgnored: "origin_index is not looked at on an append" => "append.origin.below_clear";
    CauseUnchecked: "a cause that is not current is stored all the same" => "append.cause.never_claimed";
    CauseForgotten: "an event's cause is not stored" => "append.cause.stored";
    PendingNever: "has_pending is always false" => "append.has_pending.targets";
    PendingAlways: "has_pending is always true" => "append.has_pending.served";
    PendingOfAll: "has_pending counts consumers that are not served" => "append.has_pending.served";
    CreatedAtZero: "created_at is not the clock's" => "append.answer.equals_the_stored";
    FirstTargetOnly: "an event is queued on its first target alone" => "append.targets.hundred_of_one_event";
    DeclaredLogsStay: "an append does not move the declared logs" => "append.has_pending.declared_log";
    IdsOutliveClear: "ids of an earlier lifetime are still owned" => "append.ids.free_after_clear";
    EmptyAppendRefused: "an empty batch is refused" => "append.empty.answers_has_pending";
    // Reading.
    GapInRead: "a read leaves an event out" => "append.index.dense";
    AfterIsInclusive: "a read begins with the event at `after`" => "read.range.after_and_through";
    ThroughIsExclusive: "a read ends before `through`" => "read.range.after_and_through";
    ReadLimitIgnored: "a read answers more than its limit" => "read.limit.given";
    ReadHeadIsLast: "a read's head is its last event's index" => "read.range.after_and_through";
    UnknownSessionFails: "reading an unknown session is an error" => "read.empty.unknown_session";
    ClearIndexForgotten: "a read answers clear_index 0" => "read.clear.from_the_marker";
    MarkerUnread: "the clear marker is not read" => "read.clear.from_the_marker";
    PayloadsReparsed: "payloads go through a parsed value" => "payloads.exact.append_and_read";
    // Claiming.
    ClaimLimitIgnored: "a claim takes more than its limit" => "claims.limit.first_in_order";
    ClaimExcludeIgnored: "excluded cursors are claimed" => "claims.busy.excluded";
    ClaimThroughIgnored: "heads above `through` are claimed" => "claims.through.bounds";
    ClaimServedIgnored: "heads of consumers that are not served are claimed" => "claims.busy.of_served_only";
    ClaimOrderReversed: "claimed heads are not in head order" => "claims.order.consumer_kind_name";
    BudgetIgnored: "a lapse never dead-letters" => "claims.budget.dead_lettered";
    BudgetOffByOne: "a lapse dead-letters one failure late" => "claims.budget.dead_lettered";
    EntryBudgetIgnored: "a served entry's own budget is not looked at" => "claims.budget.entry_is_lower";
    LeaseTooLong: "a lease lasts twice its ttl" => "claims.expiry.exactly_now";
    LeaseTooShort: "a lease lasts half its ttl" => "claims.state.first_attempt";
    BusyIsSettled: "busy work is taken for none" => "claims.busy.exact";
    SettledIsBusy: "no work is taken for busy work" => "claims.settled.no_targets";
    RetryAfterLate: "retry_after is later than the soonest expiry" => "claims.busy.exact";
    RunIgnored: "a claim brings no run" => "claims.run.untyped";
    RunTooLong: "a run is one event too long" => "claims.run.untyped";
    RunBeyondThrough: "a run goes past `through`" => "claims.run.capped_by_through";
    LapseNotCounted: "a lapsed lease counts no failure" => "claims.lapse.counts_one_failure";
    ClaimSentTwice: "a claim is sent twice" => "claims.state.first_attempt";
    LaneHandsOutTwo: "a lane hands out its second event with the first" => "names.glued.lane_and_index";
    // Renewing and releasing.
    RenewNeverShortens: "a renewal keeps a later expiry" => "renew.current.sooner";
    RenewForAnyone: "a claim is renewed for another holder" => "renew.neither.another_holder";
    RenewRevives: "an expired lease is renewed" => "renew.neither.expired";
    ExpiredIsSuperseded: "an expired lease counts as superseded" => "renew.neither.expired";
    SupersededUnnamed: "a renewal does not name what is superseded" => "renew.superseded.taken_over";
    ReleaseCosts: "a release counts as a failure" => "release.current.no_failure";
    ReleaseDoesNothing: "a release answers and does nothing" => "release.current.at_once";
    ReleaseForAnyone: "a claim is released for another holder" => "release.nothing.another_holder";
    // Completing and failing.
    FenceMissing: "a completion of a superseded attempt commits" => "complete.checks.taken_over";
    ReplayedCompletionSuperseded: "a completion sent again is superseded" => "complete.replay.event";
    CompletionIdsUnchecked: "a completion sent again with other ids is a replay" => "complete.replay.other_ids";
    ReturnedEventsLost: "returned events are not appended" => "streams.returned_events";
    ReturnedWithoutCause: "returned events have no cause" => "complete.returned.cause";
    CompleteThroughIgnored: "a completion does not go `through`" => "logs.through.everything_is_done";
    ThenClaimIgnored: "then_claim claims nothing" => "complete.then_claim.next_of_lane";
    ThenClaimNotAfterSuperseded: "a superseded call does not claim" => "complete.then_claim.superseded_claims_too";
    BeyondIsSuperseded: "an index that does not exist is superseded" => "complete.checks.no_such_index";
    ClearedIsNotFound: "an index below the clear does not exist" => "complete.checks.cleared";
    PartialCompletes: "a completion with a known id commits without it" => "complete.duplicates.some_owned_f52";
    RetryAfterIgnored: "a failed head can be claimed at once" => "fail.hold.retry_after";
    FailBudgetIgnored: "a failure never dead-letters" => "fail.budget.reached";
    FailBudgetOffByOne: "a failure dead-letters one late" => "fail.budget.reached";
    FailFenceMissing: "a superseded attempt can fail its head" => "fail.checks.taken_over";
    ErrorTextLost: "the error text is not kept" => "fail.error.exactly";
    // Dead letters and cursors.
    DeadLettersBackwards: "dead letters are not in head order" => "dead_letters.list.in_head_order";
    DeadLettersEndEarly: "a listing ends after its first page" => "dead_letters.pages.every_size";
    RedriveAlwaysTrue: "a redrive of nothing answers true" => "dead_letters.redriven.false_otherwise";
    SkipRetries: "a skip retries" => "dead_letters.skip.every_kind";
    RetrySkips: "a retry skips" => "dead_letters.retry.keeps_the_other_fields";
    CursorsUnordered: "cursors are listed in the wrong order" => "cursors.list.consumer_kind_name";
    PositionIsHead: "a cursor's position is its head" => "event_cursors.position.head_minus_one";
    BackfillIgnored: "a new log never starts with what is stored" => "wake_log.missing.backfill";
    BackfillAlways: "a new log always starts with what is stored" => "wake_log.missing.at_the_logs_head";
    LogTypesIgnored: "a log takes every type" => "logs.missing.backfill_typed";
    // Snapshots.
    PinsIgnored: "a pinned snapshot is not kept" => "pins.keep.older_while_live";
    SnapshotThroughIgnored: "snapshot_through is not looked at" => "snapshots.read.snapshot_through";
    SnapshotAboveHead: "a snapshot above the head is taken in silence" => "snapshots.put.above_the_head";
    LatestSnapshotHidden: "latest_snapshot is the one that was read" => "snapshots.read.through_hides_the_latest";
    // Lifetimes.
    ClearUnconditional: "if_last_index is not looked at" => "clear.if_last_index.differs";
    ClearCauseIgnored: "a clear's cause is not looked at" => "clear.cause.not_current";
    ClearAgain: "a clear sent again clears again" => "clear.id.already_done";
    ClearOtherId: "the marker gets another id" => "read.clear.marker";
    ReclaimNeverDone: "reclaim is never done" => "reclaim.done.nothing_to_do";
    ReclaimClaimsDone: "reclaim says done at once" => "reclaim.done.in_pieces";
    // Timers.
    TimersFireEarly: "a timer is due at once" => "timers.fire.not_before_due";
    TimerOriginIgnored: "a timer's origin is not looked at" => "timers.schedule.origin_cleared";
    UnscheduleAlwaysTrue: "unscheduling nothing answers true" => "timers.unschedule.whether_there_was_one";
    FireLimitIgnored: "fire_timers takes more than its limit" => "timers.fire.limit";
    TimerNotReplaced: "a key scheduled again is a second timer" => "timers.schedule.replaces";
    // Finding work.
    SessionsForget: "the listing of sessions leaves one out" => "sessions.pages";
    PendingForgetsTimers: "a session with a timer alone is not pending" => "pending.timers";
    PendingServedIgnored: "pending lists work that is not served" => "pending.served";
    NotBeforeTooLate: "not_before is later than the first chance" => "pending.not_before.never_late";
    // Streams.
    StreamRepeats: "a stream yields an event twice" => "streams.history_then_live";
    StreamSkips: "a stream leaves an event out" => "streams.history_then_live";
    StreamStartsAt: "a stream begins with `start_after` itself" => "streams.from_the_middle";
    StreamEnds: "a stream ends with the history" => "streams.history_then_live";
    HintsNever: "there are no work hints" => "hints.append";
    // Presence.
    PresenceOutlives: "a field outlives its ttl" => "presence.ttl.gone_after";
    PresenceRemoveIgnored: "null does not remove a field" => "presence.write.null_removes";
    PresenceSeenForgotten: "what a participant has seen is not kept" => "presence.seen.of_the_last_write";
    PresencePatchless: "a presence write answers no patch" => "presence.patch.fields";
}

/// A factory of stores that break a rule.
pub struct Sabotaged<F, G> {
    saboteur: Saboteur,
    open: F,
    again: G,
}

impl<F, G> Sabotaged<F, G> {
    /// Breaks the stores that `open` gives; `again` opens a second handle on one's data.
    pub fn new(saboteur: Saboteur, open: F, again: G) -> Self {
        Self { saboteur, open, again }
    }
}

impl<F, G> fmt::Debug for Sabotaged<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sabotaged").field(&self.saboteur).finish()
    }
}

#[async_trait]
impl<F, G, S> Factory for Sabotaged<F, G>
where
    F: Fn(&Setup) -> S + Send + Sync + 'static,
    G: Fn(&S, &Setup) -> S + Clone + Send + Sync + 'static,
    S: Timers + Presence + Clone + 'static,
{
    fn name(&self) -> &str {
        self.saboteur.name
    }

    async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
        let inner = (self.open)(&setup);
        let broken = Broken { inner, how: self.saboteur.how, seen: Arc::default() };
        let (first, again) = (broken.clone(), self.again.clone());
        Ok(Subject::full(broken).another(move || {
            let inner = again(&first.inner, &setup);
            let broken = Broken { inner, how: first.how, seen: Arc::clone(&first.seen) };
            async move { Ok(Subject::full(broken)) }
        }))
    }
}

/// A store that breaks one rule.
#[derive(Clone)]
pub(crate) struct Broken<S> {
    inner: S,
    how: How,
    seen: Arc<Mutex<Seen>>,
}

/// What a saboteur has to remember to do wrong.
#[derive(Default)]
struct Seen {
    events: HashMap<(SessionId, EventId), Event>,
    reclaims: HashMap<SessionId, u32>,
}

impl<S> Broken<S> {
    fn is(&self, how: How) -> bool {
        self.how == how
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
