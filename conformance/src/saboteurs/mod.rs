//! Stores that break one rule each, to test the suite itself.
//!
//! A case that cannot fail proves nothing. Each saboteur is a sound store behind a wrapper that
//! breaks one rule of the model; the case that names the rule must catch it.

mod attempts;
mod claims;
mod limits;
mod listings;
mod logs;
mod store;
mod streams;
mod writes;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2_core::{
    Event, EventId, HeadRef, Namespace, Presence, PresenceRows, SessionId, StoreLimits, Timers,
};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::{BoxError, Factory, RuleId, Setup, Subject};

/// Lists the saboteurs: the rule that each breaks, how, and the case that catches it and names the
/// rule.
macro_rules! saboteurs {
    ($($how:ident breaks $rule:ident: $breaks:literal => $case:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum How { $($how),* }

        /// Every saboteur.
        pub static SABOTEURS: &[Saboteur] = &[$(Saboteur {
            how: How::$how,
            name: stringify!($how),
            rule: RuleId::$rule,
            breaks: $breaks,
            caught_by: $case,
        }),*];
    };
}

/// A store that breaks one rule, and the case that must notice.
#[derive(Clone, Copy)]
pub struct Saboteur {
    how: How,
    name: &'static str,
    rule: RuleId,
    breaks: &'static str,
    caught_by: &'static str,
}

impl Saboteur {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The rule that it breaks.
    #[must_use]
    pub fn rule(&self) -> RuleId {
        self.rule
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
    IndexesFromTwo breaks R2: "an append answers indexes one too high" => "append.index.dense";
    AnswersBackwards breaks R2: "an append answers its events in the wrong order" => "append.index.dense";
    ReplayUnmarked breaks R40: "a replay does not say that it is one" => "append.replay.whole_batch";
    ReplayAppends breaks R40: "a batch sent again is appended again under new ids" => "append.replay.whole_batch";
    ReplayInLogOrder breaks R40: "a replay answers in log order, not the request's" => "append.replay.in_request_order";
    PartialAppendsTheRest breaks R36: "of a partly known batch the new events are appended" => "append.partial.existing";
    PartialNamesAll breaks R40: "a partial duplicate names every id of the batch" => "append.partial.existing";
    ExpectedHeadIgnored breaks R40: "expected_head is not looked at" => "append.expected_head.conflict";
    OriginIgnored breaks R40: "origin_index is not looked at on an append" => "append.origin.below_clear";
    CauseUnchecked breaks R25: "a cause that is not current is stored all the same" => "append.cause.never_claimed";
    CauseForgotten breaks R3: "an event's cause is not stored" => "append.cause.stored";
    PendingNever breaks R42: "has_pending is always false" => "append.has_pending.targets";
    PendingAlways breaks R42: "has_pending is always true" => "append.has_pending.served";
    PendingOfAll breaks R19: "has_pending counts consumers that are not served" => "append.has_pending.served";
    CreatedAtZero breaks R3: "created_at is not the clock's" => "append.answer.equals_the_stored";
    FirstTargetOnly breaks R17: "an event is queued on its first target alone" => "append.targets.hundred_of_one_event";
    DeclaredLogsStay breaks R40: "an append does not move the declared logs" => "append.has_pending.declared_log";
    IdsOutliveClear breaks R70: "ids of an earlier lifetime are still owned" => "append.ids.free_after_clear";
    EmptyAppendRefused breaks R40: "an empty batch is refused" => "append.empty.answers_has_pending";
    BatchInTwo breaks R5: "a batch is appended in two steps" => "read.view.whole_batches";
    ExpectedHeadFirst breaks R37: "expected_head is looked at before a replay" => "append.replay.before_expected_head";
    IdsMadeByTheStore breaks R41: "an event without an id gets another with each sending" => "append.ids.generated";
    ConflictIsInvalid breaks R88: "a head conflict has the code of an invalid argument" => "append.expected_head.conflict";
    ConflictIsRetryable breaks R89: "a cleared session is reported as one that may come back" => "errors.conflicts_are_final";
    AlikeIsClear breaks R9: "an event of a type like a2.clear clears" => "clear.type.alike";
    // Reading.
    GapInRead breaks R2: "a read leaves an event out" => "append.index.dense";
    AfterIsInclusive breaks R43: "a read begins with the event at `after`" => "read.range.after_and_through";
    ThroughIsExclusive breaks R43: "a read ends before `through`" => "read.range.after_and_through";
    ReadLimitIgnored breaks R43: "a read answers more than its limit" => "read.limit.given";
    ReadHeadIsLast breaks R43: "a read's head is its last event's index" => "read.range.after_and_through";
    UnknownSessionFails breaks R1: "reading an unknown session is an error" => "read.empty.unknown_session";
    ClearIndexForgotten breaks R43: "a read answers clear_index 0" => "read.clear.from_the_marker";
    MarkerUnread breaks R43: "the clear marker is not read" => "read.clear.from_the_marker";
    PayloadsReparsed breaks R4: "payloads go through a parsed value" => "payloads.exact.append_and_read";
    BytesUncapped breaks R11: "a read goes on past 16 MiB" => "read.limit.bytes";
    SystemClock breaks R32: "created_at is the system's time, whatever the store's clock" => "time.created_at.the_clock";
    CreatedAtMonotonic breaks R35: "created_at never steps back" => "time.created_at.steps_back";
    HoleUnnoticed breaks R6: "an event that is missing is not noticed" => "corrupt.read.names_the_place";
    // Claiming.
    ClaimLimitIgnored breaks R45: "a claim takes more than its limit" => "claims.limit.first_in_order";
    ClaimExcludeIgnored breaks R44: "excluded cursors are claimed" => "claims.busy.excluded";
    ClaimThroughIgnored breaks R44: "heads above `through` are claimed" => "claims.through.bounds";
    ClaimServedIgnored breaks R19: "heads of consumers that are not served are claimed" => "claims.busy.of_served_only";
    ClaimOrderReversed breaks R26: "claimed heads are not in head order" => "claims.order.consumer_kind_name";
    BudgetIgnored breaks R46: "a lapse never dead-letters" => "claims.budget.dead_lettered";
    BudgetOffByOne breaks R46: "a lapse dead-letters one failure late" => "claims.budget.dead_lettered";
    EntryBudgetIgnored breaks R46: "a served entry's own budget is not looked at" => "claims.budget.entry_is_lower";
    LeaseTooLong breaks R33: "a lease lasts twice its ttl" => "claims.expiry.exactly_now";
    LeaseTooShort breaks R45: "a lease lasts half its ttl" => "claims.state.first_attempt";
    BusyIsSettled breaks R47: "busy work is taken for none" => "claims.busy.exact";
    SettledIsBusy breaks R47: "no work is taken for busy work" => "claims.settled.no_targets";
    RetryAfterLate breaks R47: "retry_after is later than the soonest expiry" => "claims.busy.exact";
    RunIgnored breaks R48: "a claim brings no run" => "claims.run.untyped";
    RunTooLong breaks R48: "a run is one event too long" => "claims.run.untyped";
    RunBeyondThrough breaks R48: "a run goes past `through`" => "claims.run.capped_by_through";
    LapseNotCounted breaks R46: "a lapsed lease counts no failure" => "claims.lapse.counts_one_failure";
    ClaimSentTwice breaks R39: "a claim is sent twice" => "claims.state.first_attempt";
    LaneHandsOutTwo breaks R15: "a lane hands out its second event with the first" => "lanes.head.one_at_a_time";
    DefaultLimitHigher breaks R10: "a claim without a limit takes 100" => "claims.limit.default_64";
    LeaseCapped breaks R13: "no lease lasts longer than a month" => "claims.ttl.clamped";
    ConsumersFolded breaks R8: "served consumers are looked up in lower case" => "served.list.names_exactly";
    LaneExcludesLog breaks R16: "to exclude a lane excludes the log of its name" => "claims.exclude.lane_is_not_its_log";
    FirstClaimForgotten breaks R21: "the first time of claiming is the last" => "claims.state.next_attempt";
    AttemptsRestart breaks R22: "attempts are counted from the last failure on" => "claims.state.next_attempt";
    OwnLeaseIsFree breaks R24: "a holder can claim again what it holds" => "claims.busy.own_lease_too";
    ClaimMakesLogs breaks R49: "a claim makes the logs that it declares" => "claims.cursors.not_created";
    LeaseByCallersClock breaks R34: "a lease ends by the caller's clock" => "time.clock.of_the_caller";
    // Renewing and releasing.
    RenewNeverShortens breaks R50: "a renewal keeps a later expiry" => "renew.current.sooner";
    RenewForAnyone breaks R50: "a claim is renewed for another holder" => "renew.neither.another_holder";
    RenewRevives breaks R50: "an expired lease is renewed" => "renew.neither.expired";
    ExpiredIsSuperseded breaks R50: "an expired lease counts as superseded" => "renew.neither.expired";
    SupersededUnnamed breaks R50: "a renewal does not name what is superseded" => "renew.superseded.taken_over";
    ReleaseCosts breaks R51: "a release counts as a failure" => "release.current.no_failure";
    ReleaseDoesNothing breaks R51: "a release answers and does nothing" => "release.current.at_once";
    ReleaseForAnyone breaks R51: "a claim is released for another holder" => "release.nothing.another_holder";
    RenewFromExpiry breaks R50: "a renewal is added to what is left of the lease" => "renew.current.from_now";
    RenewByCallersClock breaks R34: "a renewed lease ends by the caller's clock" => "time.clock.of_the_caller";
    ReleaseAlwaysAnswers breaks R38: "a release sent again says that it gave back" => "retries.release";
    // Completing and failing.
    FenceMissing breaks R52: "a completion of a superseded attempt commits" => "complete.checks.taken_over";
    ReplayedCompletionSuperseded breaks R52: "a completion sent again is superseded" => "complete.replay.event";
    CompletionIdsUnchecked breaks R52: "a completion sent again with other ids is a replay" => "complete.replay.other_ids";
    ReturnedEventsLost breaks R52: "returned events are not appended" => "complete.returned.one_batch";
    ReturnedWithoutCause breaks R52: "returned events have no cause" => "complete.returned.cause";
    CompleteThroughIgnored breaks R55: "a completion does not go `through`" => "logs.through.everything_is_done";
    ThenClaimIgnored breaks R54: "then_claim claims nothing" => "complete.then_claim.next_of_lane";
    ThenClaimNotAfterSuperseded breaks R54: "a superseded call does not claim" => "complete.then_claim.superseded_claims_too";
    BeyondIsSuperseded breaks R52: "an index that does not exist is superseded" => "complete.checks.no_such_index";
    ClearedIsNotFound breaks R52: "an index below the clear does not exist" => "complete.checks.cleared";
    PartialCompletes breaks R52: "a completion with a known id commits without it" => "complete.duplicates.some_owned_f52";
    RetryAfterIgnored breaks R56: "a failed head can be claimed at once" => "fail.hold.retry_after";
    FailBudgetIgnored breaks R56: "a failure never dead-letters" => "fail.budget.reached";
    FailBudgetOffByOne breaks R56: "a failure dead-letters one late" => "fail.budget.reached";
    FailFenceMissing breaks R56: "a superseded attempt can fail its head" => "fail.checks.taken_over";
    ErrorTextLost breaks R12: "the error text is not kept" => "fail.error.exactly";
    OnlyLastCompletionKept breaks R53: "only a session's last completion is remembered" => "complete.replay.lane_for_the_whole_lifetime";
    CompletionSkipsToEnd breaks R31: "a log goes on at the log's head" => "logs.step.one_by_one";
    OneIsNoBudget breaks R57: "a budget of one counts as none" => "fail.budget.one_at_once";
    DeadLetterPassedOver breaks R23: "a lane goes on past its dead letter" => "lanes.blocked.dead_letter";
    // Dead letters and cursors.
    DeadLettersBackwards breaks R58: "dead letters are not in head order" => "dead_letters.list.in_head_order";
    DeadLettersEndEarly breaks R62: "a listing ends after its first page" => "dead_letters.pages.every_size";
    RedriveAlwaysTrue breaks R60: "a redrive of nothing answers true" => "dead_letters.redriven.false_otherwise";
    SkipRetries breaks R60: "a skip retries" => "dead_letters.skip.every_kind";
    RetrySkips breaks R60: "a retry skips" => "dead_letters.retry.keeps_the_other_fields";
    CursorsUnordered breaks R59: "cursors are listed in the wrong order" => "cursors.list.consumer_kind_name";
    PositionIsHead breaks R20: "a cursor's position is its head" => "event_cursors.position.head_minus_one";
    BackfillIgnored breaks R28: "a new log never starts with what is stored" => "wake_log.missing.backfill";
    BackfillAlways breaks R28: "a new log always starts with what is stored" => "wake_log.missing.at_the_logs_head";
    LogTypesIgnored breaks R18: "a log takes every type" => "logs.missing.backfill_typed";
    EveryAppendTouches breaks R27: "an append touches declared logs that take none of it" => "logs.touch.not_without_an_event_it_takes";
    WakeDoesNothingAgain breaks R29: "waking an idle log does not move it" => "wake_log.idle.next_it_takes";
    TouchMovesHead breaks R30: "waking a log takes its head away" => "wake_log.head.types_recorded";
    WakeShowsIdle breaks R61: "waking does not answer the cursor's head" => "wake_log.answer.all_of_it";
    InvalidInputVague breaks R14: "a refusal does not name the field" => "errors.text";
    // Snapshots.
    PinsIgnored breaks R64: "a pinned snapshot is not kept" => "pins.keep.older_while_live";
    SnapshotThroughIgnored breaks R66: "snapshot_through is not looked at" => "snapshots.read.snapshot_through";
    SnapshotAboveHead breaks R65: "a snapshot above the head is taken in silence" => "snapshots.put.above_the_head";
    LatestSnapshotHidden breaks R67: "latest_snapshot is the one that was read" => "snapshots.read.through_hides_the_latest";
    ReducersShareSnapshots breaks R63: "all reducers have one snapshot" => "snapshots.put.per_reducer_and_session";
    // Lifetimes.
    ClearUnconditional breaks R68: "if_last_index is not looked at" => "clear.if_last_index.differs";
    ClearCauseIgnored breaks R68: "a clear's cause is not looked at" => "clear.cause.not_current";
    ClearAgain breaks R68: "a clear sent again clears again" => "clear.id.already_done";
    ClearOtherId breaks R69: "the marker gets another id" => "read.clear.marker";
    ReclaimNeverDone breaks R73: "reclaim is never done" => "reclaim.done.nothing_to_do";
    ReclaimClaimsDone breaks R73: "reclaim says done at once" => "reclaim.done.in_pieces";
    ReclaimClears breaks R9: "reclaim writes a marker of its own" => "clear.type.by_clear_alone";
    ClearReclaims breaks R71: "a clear deletes what is below it" => "reclaim.done.in_pieces";
    IndexesRestart breaks R72: "a lifetime's indexes begin with 1 again" => "clear.answer.indexes";
    // Timers.
    TimersFireEarly breaks R76: "a timer is due at once" => "timers.fire.not_before_due";
    TimerOriginIgnored breaks R74: "a timer's origin is not looked at" => "timers.schedule.origin_cleared";
    UnscheduleAlwaysTrue breaks R75: "unscheduling nothing answers true" => "timers.unschedule.whether_there_was_one";
    FireLimitIgnored breaks R76: "fire_timers takes more than its limit" => "timers.fire.limit";
    TimerByCallersClock breaks R34: "a timer is due by the caller's clock" => "time.clock.of_the_caller.timers";
    TimerNotReplaced breaks R74: "a key scheduled again is a second timer" => "timers.schedule.replaces";
    TimerKeysCut breaks R7: "a timer's key is cut at 255 bytes" => "names.length.longest_timer_key";
    // Finding work.
    SessionsForget breaks R77: "the listing of sessions leaves one out" => "sessions.pages";
    PendingForgetsTimers breaks R78: "a session with a timer alone is not pending" => "pending.timers";
    PendingServedIgnored breaks R78: "pending lists work that is not served" => "pending.served";
    NotBeforeTooLate breaks R78: "not_before is later than the first chance" => "pending.not_before.never_late";
    // Streams.
    StreamRepeats breaks R80: "a stream yields an event twice" => "streams.history_then_live";
    StreamSkips breaks R80: "a stream leaves an event out" => "streams.history_then_live";
    StreamStartsAt breaks R80: "a stream begins with `start_after` itself" => "streams.from_the_middle";
    StreamEnds breaks R80: "a stream ends with the history" => "streams.history_then_live";
    HintsNever breaks R79: "there are no work hints" => "hints.append";
    StreamSkipsMarker breaks R81: "a stream does not give the marker" => "streams.clear.before";
    StreamEndsInSilence breaks R82: "a stream that fails ends without a word" => "close.streams.waiting";
    StreamsStay breaks R83: "a dropped stream keeps its place, of which there are 500" => "streams.dropped";
    StreamDropEndsAll breaks R83: "dropping a stream unsubscribes its session's other streams" => "streams.two_on_one_session";
    SlowReaderLosesEvents breaks R83: "what a slow reader leaves unread is bounded by losing it" => "streams.slow_reader";
    ClosedGoesOn breaks R90: "a closed store goes on" => "close.calls.refused";
    // Presence.
    PresenceOutlives breaks R84: "a field outlives its ttl" => "presence.ttl.gone_after";
    PresenceRemoveIgnored breaks R84: "null does not remove a field" => "presence.write.null_removes";
    PresenceSeenForgotten breaks R84: "what a participant has seen is not kept" => "presence.seen.of_the_last_write";
    ExpiredRowsRead breaks R86: "expired rows are read until there are others" => "presence.ttl.exactly_now_is_expired";
    WatchStartsEmpty breaks R87: "a watch begins with an empty namespace" => "presence.watch.rows_first";
    PresencePatchless breaks R85: "a presence write answers no patch" => "presence.patch.fields";
    // A store's own limits.
    OwnJsonBytesIgnored breaks R91: "payloads and states are as long as anywhere" => "limits.own.payload";
    OwnBatchEventsIgnored breaks R91: "a batch has as many events as anywhere" => "limits.own.batch_events";
    OwnBatchTargetsIgnored breaks R91: "a batch has as many targets as anywhere" => "limits.own.batch_targets";
    OwnEventTargetsIgnored breaks R91: "an event has as many targets as anywhere" => "limits.own.event_targets";
    OwnBatchBytesIgnored breaks R91: "a batch has as many bytes as anywhere" => "limits.own.batch_bytes";
    OwnSnapshotWritesIgnored breaks R91: "a call keeps as many snapshots as anywhere" => "limits.own.snapshots";
    OwnPresenceFieldsIgnored breaks R91: "a presence write has as many fields as anywhere" => "limits.own.presence";
    OwnPresenceBytesIgnored breaks R91: "presence values are as long as anywhere" => "limits.own.presence";
    ReturnedUnlimited breaks R91: "what a completion returns is not held to the limits" => "limits.own.returned";
    TimersUnlimited breaks R91: "a timer's event is not held to the limits" => "limits.own.timer";
    SnapshotsUnlimited breaks R91: "snapshots are not held to the limits" => "limits.own.snapshots";
    WrittenThenRefused breaks R91: "what is above a limit is written and then refused" => "limits.own.payload";
    ReplayBeforeLimits breaks R92: "a batch sent again is answered before limits are looked at" => "limits.own.append_sent_again";
    CompletionBeforeLimits breaks R92: "a completion is done before limits are looked at" => "limits.own.completion_sent_again";
    StoredAboveLimitsHidden breaks R92: "what is stored and above a limit is not read" => "limits.own.what_is_stored_stays";
}

/// Closes a store.
type Close<S> = Arc<dyn Fn(S) -> BoxFuture<'static, ()> + Send + Sync>;

/// A factory of stores that break a rule.
pub struct Sabotaged<F, G, S> {
    saboteur: Saboteur,
    open: F,
    again: G,
    close: Close<S>,
}

impl<F, G, S> Sabotaged<F, G, S> {
    /// Breaks the stores that `open` gives; `again` opens a second handle on one's data, `close`
    /// closes one.
    pub fn new<Fut>(
        saboteur: Saboteur,
        open: F,
        again: G,
        close: impl Fn(S) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { saboteur, open, again, close: Arc::new(move |store| close(store).boxed()) }
    }
}

impl<F, G, S> fmt::Debug for Sabotaged<F, G, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sabotaged").field(&self.saboteur).finish()
    }
}

#[async_trait]
impl<F, G, S> Factory for Sabotaged<F, G, S>
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
        let how = self.saboteur.how;
        let broken = Broken { inner, how, limits: StoreLimits::ABSOLUTE, seen: Arc::default() };
        let (first, again) = (broken.clone(), self.again.clone());
        let close = Arc::clone(&self.close);
        Ok(broken.subject(Arc::clone(&close)).another(move || {
            let inner = again(&first.inner, &setup);
            let broken = Broken { inner, ..first.clone() };
            let subject = broken.subject(Arc::clone(&close));
            async move { Ok(subject) }
        }))
    }
}

/// A store that breaks one rule.
#[derive(Clone)]
pub(crate) struct Broken<S> {
    inner: S,
    how: How,
    limits: StoreLimits,
    seen: Arc<Mutex<Seen>>,
}

/// What a saboteur has to remember to do wrong.
#[derive(Default)]
struct Seen {
    events: HashMap<(SessionId, EventId), Event>,
    reclaims: HashMap<SessionId, u32>,
    completed: HashMap<SessionId, HeadRef>,
    rows: HashMap<Namespace, PresenceRows>,
    streams: usize,
    stream_dropped: HashMap<SessionId, Arc<AtomicBool>>,
    heads: HashMap<SessionId, u64>,
}

impl<S: Timers + Presence + Clone + 'static> Broken<S> {
    fn subject(self, close: Close<S>) -> Subject {
        let (inner, how) = (self.inner.clone(), self.how);
        let (limited, closing) = (self.clone(), Arc::clone(&close));
        let subject = Subject::full(self).limited(move |limits| {
            let subject = limited.limited(limits).map(|store| store.subject(Arc::clone(&closing)));
            async move { Ok(subject?) }
        });
        let subject = subject.closing(move || {
            let close = (how != How::ClosedGoesOn).then(|| close(inner.clone()));
            async move {
                if let Some(close) = close {
                    close.await;
                }
                Ok(())
            }
        });
        match how {
            // The store does not notice; there is no need to take anything out.
            How::HoleUnnoticed => subject.losing_events(|_, _| async { Ok(()) }),
            _ => subject,
        }
    }
}

impl<S> Broken<S> {
    fn is(&self, how: How) -> bool {
        self.how == how
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
