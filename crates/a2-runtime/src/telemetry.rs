//! What is told about the work: spans, events and metrics.
//!
//! Metrics go through the `metrics` facade, as Rust's libraries do: it costs an atomic operation or
//! nothing, and the program chooses the exporter (Prometheus, OpenTelemetry, …), which it installs
//! before it builds the runtime. Their labels are the consumer and the outcome, never a session: there
//! may be any number of sessions.

use std::collections::HashMap;
use std::time::Duration;

use a2_core::{AttemptRef, Consumer, DispatchedHead, Event, NewEvent, SessionId, Timestamp};
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};
use tracing::Span;

const APPENDED: &str = "a2_runtime_events_appended_total";
const APPEND: &str = "a2_runtime_append_seconds";
const CLAIM: &str = "a2_runtime_claim_seconds";
const CLAIMED: &str = "a2_runtime_heads_claimed_total";
const LAG: &str = "a2_runtime_lag_seconds";
const ATTEMPT: &str = "a2_runtime_attempt_seconds";
const ATTEMPTS: &str = "a2_runtime_attempts_total";
const RUNNING: &str = "a2_runtime_attempts_running";
const OLDEST: &str = "a2_runtime_oldest_head_seconds";

/// Everything that is counted.
pub(crate) struct Telemetry {
    appended: Counter,
    append: Histogram,
    claim: Histogram,
    consumers: HashMap<Consumer, Meter>,
    unknown: Meter,
}

/// What is counted for one consumer.
struct Meter {
    claimed: Counter,
    lag: Histogram,
    attempt: Histogram,
    running: Gauge,
    oldest: Gauge,
    returned: Counter,
    completed: Counter,
    failed: Counter,
    dead: Counter,
    superseded: Counter,
    aborted: Counter,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome<'a> {
    Completed { events: usize },
    Failed { error: &'a str, failures: u64, delay: Duration },
    DeadLettered { error: &'a str },
    Superseded,
    Aborted,
}

impl Meter {
    fn of(consumer: &Consumer) -> Self {
        let name = || consumer.to_string();
        let ended =
            |outcome: &'static str| counter!(ATTEMPTS, "consumer" => name(), "outcome" => outcome);
        Self {
            claimed: counter!(CLAIMED, "consumer" => name()),
            lag: histogram!(LAG, "consumer" => name()),
            attempt: histogram!(ATTEMPT, "consumer" => name()),
            running: gauge!(RUNNING, "consumer" => name()),
            oldest: gauge!(OLDEST, "consumer" => name()),
            returned: counter!(APPENDED, "by" => "handler"),
            completed: ended("completed"),
            failed: ended("failed"),
            dead: ended("dead_letter"),
            superseded: ended("superseded"),
            aborted: ended("aborted"),
        }
    }

    fn none() -> Self {
        Self {
            claimed: Counter::noop(),
            lag: Histogram::noop(),
            attempt: Histogram::noop(),
            running: Gauge::noop(),
            oldest: Gauge::noop(),
            returned: Counter::noop(),
            completed: Counter::noop(),
            failed: Counter::noop(),
            dead: Counter::noop(),
            superseded: Counter::noop(),
            aborted: Counter::noop(),
        }
    }
}

impl Telemetry {
    pub(crate) fn new<'a>(consumers: impl Iterator<Item = &'a Consumer>) -> Self {
        describe();
        Self {
            appended: counter!(APPENDED, "by" => "program"),
            append: histogram!(APPEND),
            claim: histogram!(CLAIM),
            consumers: consumers.map(|name| (name.clone(), Meter::of(name))).collect(),
            unknown: Meter::none(),
        }
    }

    fn of(&self, consumer: &Consumer) -> &Meter {
        self.consumers.get(consumer).unwrap_or(&self.unknown)
    }

    /// The program appended events.
    pub(crate) fn appended(&self, events: usize, took: Duration) {
        self.appended.increment(events as u64);
        self.append.record(took.as_secs_f64());
    }

    /// A claim was answered.
    pub(crate) fn claim(&self, took: Duration) {
        self.claim.record(took.as_secs_f64());
    }

    /// A head was claimed.
    pub(crate) fn claimed(&self, head: &DispatchedHead) {
        let meter = self.of(&head.head.consumer);
        meter.claimed.increment(1);
        meter.running.increment(1.0);
        // A retry's wait is not the queue's.
        if let (1, Some(at)) = (head.attempt(), head.state.last_claimed_at) {
            meter.lag.record(at.since(head.event.created_at).as_secs_f64());
        }
    }

    /// A handler has ended.
    pub(crate) fn ran(&self, head: &DispatchedHead, took: Duration) {
        self.of(&head.head.consumer).attempt.record(took.as_secs_f64());
    }

    /// An attempt has ended.
    pub(crate) fn ended(&self, head: &DispatchedHead, outcome: Outcome<'_>) {
        let meter = self.of(&head.head.consumer);
        meter.running.decrement(1.0);
        let (session, consumer) = (&head.event.session, &head.head.consumer);
        let (index, attempt) = (head.head.index.get(), head.attempt());
        match outcome {
            Outcome::Completed { events } => {
                meter.completed.increment(1);
                meter.returned.increment(events as u64);
                tracing::debug!(%session, %consumer, index, attempt, events, "completed");
            }
            Outcome::Failed { error, failures, delay } => {
                meter.failed.increment(1);
                tracing::warn!(
                    %session, %consumer, index, attempt, failures, error, retry_after = ?delay,
                    "attempt failed"
                );
            }
            Outcome::DeadLettered { error } => {
                meter.dead.increment(1);
                tracing::error!(%session, %consumer, index, attempt, error, "dead letter");
            }
            Outcome::Superseded => {
                meter.superseded.increment(1);
                tracing::warn!(%session, %consumer, index, attempt, "attempt superseded");
            }
            Outcome::Aborted => {
                meter.aborted.increment(1);
                tracing::info!(%session, %consumer, index, attempt, "attempt cut off");
            }
        }
    }

    /// A head was found whose lease lapsed for the last time.
    pub(crate) fn lapsed_for_good(&self, head: &DispatchedHead) {
        self.of(&head.head.consumer).dead.increment(1);
        tracing::error!(
            session = %head.event.session, consumer = %head.head.consumer,
            index = head.head.index.get(), attempt = head.attempt(),
            error = head.state.last_error.as_deref().unwrap_or_default(), "dead letter"
        );
    }

    /// When the oldest event that is worked on was appended, of each consumer, and the time now.
    pub(crate) fn oldest(&self, oldest: &HashMap<Consumer, Timestamp>, now: Timestamp) {
        for (consumer, meter) in &self.consumers {
            let age = oldest.get(consumer).map_or(Duration::ZERO, |at| now.since(*at));
            meter.oldest.set(age.as_secs_f64());
        }
    }
}

pub(crate) fn attempt_span(head: &DispatchedHead) -> Span {
    tracing::info_span!(
        "a2.attempt",
        session = %head.event.session,
        consumer = %head.head.consumer,
        cursor = ?head.head.cursor,
        index = head.head.index.get(),
        event = %head.event.id,
        r#type = %head.event.event_type,
        attempt = head.attempt(),
    )
}

pub(crate) fn append_span(session: &SessionId, events: &[NewEvent]) -> Span {
    tracing::debug_span!("a2.append", %session, events = events.len())
}

pub(crate) fn claim_span(session: &SessionId, places: usize) -> Span {
    tracing::debug_span!("a2.claim", %session, places)
}

/// Somebody else has the head of an attempt that runs here.
pub(crate) fn lost(session: &SessionId, attempt: &AttemptRef) {
    tracing::warn!(%session, head = ?attempt.head, attempt = attempt.attempt, "attempt lost");
}

/// A timer's event stands in the log.
pub(crate) fn fired(session: &SessionId, events: &[Event]) {
    if !events.is_empty() {
        counter!(APPENDED, "by" => "timer").increment(events.len() as u64);
        tracing::debug!(%session, events = events.len(), "timers fired");
    }
}

fn describe() {
    let seconds = Unit::Seconds;
    describe_counter!(APPENDED, "Events appended, by the program, a handler or a timer");
    describe_histogram!(APPEND, seconds, "How long the program's appends took");
    describe_histogram!(CLAIM, seconds, "How long claims took that no completion carried");
    describe_counter!(CLAIMED, "Heads claimed");
    describe_histogram!(
        LAG,
        seconds,
        "From an event's append to its first claim, by the store's clock"
    );
    describe_histogram!(ATTEMPT, seconds, "How long handlers ran");
    describe_counter!(ATTEMPTS, "Attempts that ended, by outcome; a failed one is tried again");
    describe_gauge!(RUNNING, "Attempts that run now");
    describe_gauge!(OLDEST, seconds, "Age of the oldest event that is worked on");
}
