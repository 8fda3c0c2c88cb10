//! What is told about the work: spans, events and metrics.
//!
//! Metrics go through the `metrics` facade, which costs nothing until the program installs an exporter
//! (Prometheus, OpenTelemetry, …). Their labels are the consumer and the outcome, never a session:
//! there may be any number of sessions.

use std::time::Duration;

use a2_core::DispatchedHead;
use tracing::Span;

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

pub(crate) fn claimed(_head: &DispatchedHead) {}

pub(crate) fn ran(_head: &DispatchedHead, _took: Duration) {}

pub(crate) fn completed(_head: &DispatchedHead, _events: usize) {}

pub(crate) fn superseded(_head: &DispatchedHead) {}

pub(crate) fn failed(_head: &DispatchedHead, _error: &str, _failures: u64, _delay: Duration) {}

pub(crate) fn dead_letter(_head: &DispatchedHead, _error: &str) {}

pub(crate) fn lost(session: &a2_core::SessionId, attempt: &a2_core::AttemptRef) {
    tracing::warn!(%session, head = ?attempt.head, attempt = attempt.attempt, "attempt superseded");
}

pub(crate) fn append_span(session: &a2_core::SessionId, events: &[a2_core::NewEvent]) -> Span {
    tracing::debug_span!("a2.append", %session, events = events.len())
}

pub(crate) fn appended(_appended: &a2_core::Appended) {}
