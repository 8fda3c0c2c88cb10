//! A place's work: one attempt after the other, each settled by the call that claims the next.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use a2_core::{
    Claim, CompleteAttempt, Completion, CursorKey, DispatchedHead, Error, ErrorKind, FailAttempt,
    Failure, NewEvent, Result, Span, Timestamp, WithClaim,
};
use futures_util::FutureExt;
use tracing::Instrument;

use crate::consumer::Done;
use crate::gate::Places;
use crate::inflight::Running;
use crate::telemetry::Outcome;
use crate::unit::{Held, Shared};
use crate::units::Later;
use crate::{Context, HandlerError, ids, telemetry};

/// While other sessions wait, a place goes on for so many attempts at most, and so long.
const TURN: usize = 16;
const TURN_TIME: Duration = Duration::from_millis(100);
/// How much more a completion claims when it appended events.
const MORE: usize = 16;

/// Forgets an attempt when dropped, also by a panic: a lease that nobody renews lapses.
struct Forget<'a> {
    shared: &'a Shared,
    running: &'a Arc<Running>,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.inner.inflight.remove(&self.shared.key.session, self.running);
    }
}

/// Why a place's work has ended.
pub(crate) enum End {
    /// There was nothing more to claim.
    Settled,
    /// Everything is busy for at least this long.
    Busy(Duration),
    /// There may be more.
    More,
}

/// What became of a handler.
enum Ran {
    Done(Done),
    Failed(HandlerError),
    /// Cancelled, before it was done.
    Aborted,
}

pub(crate) async fn run(shared: Arc<Shared>, first: Held, mut places: Places) -> End {
    let begun = shared.inner.clock.now();
    let mut next = Some(first);
    let mut attempts = 0;
    while let Some(held) = next.take() {
        attempts += 1;
        let guard = Forget { shared: &shared, running: &held.running };
        let span = telemetry::attempt_span(&held.head);
        let ran = handle(&shared, &held).instrument(span.clone()).await;
        let may_claim = |shared: &Shared| {
            let over = attempts >= TURN || shared.inner.clock.now().since(begun) >= TURN_TIME;
            let ends = over && shared.others_wait();
            !(ends || shared.inner.stopping.is_cancelled())
        };
        let settled = async {
            match ran {
                Ran::Done(done) => complete(&shared, &held, done, &mut places, &may_claim).await,
                Ran::Failed(error) => fail(&shared, &held, &error, &may_claim).await,
                Ran::Aborted => Settled::aborted(),
            }
        };
        let settled = settled.instrument(span).await;
        if !settled.done {
            let lost = held.running.is_lost();
            let outcome = if lost { Outcome::Superseded } else { Outcome::Aborted };
            shared.inner.telemetry.ended(&held.head, outcome);
        }
        // What a shutdown cut off stays, to be given back.
        if settled.done || held.running.is_lost() {
            drop(guard);
        } else {
            std::mem::forget(guard);
        }
        match settled.claim {
            None => return End::More,
            Some(Claim::Settled) => return End::Settled,
            Some(Claim::Busy(busy)) => return End::Busy(busy.retry_after),
            Some(Claim::Claimed(claimed)) => {
                for held in shared.take(claimed, settled.asked) {
                    if next.is_none() {
                        next = Some(held);
                    } else if let Some(place) = places.split() {
                        // The receiver lives as long as its slots.
                        let _ = shared.more.send((held, place));
                    } else {
                        // A store does not answer with more than it was asked for.
                        drop(Forget { shared: &shared, running: &held.running });
                    }
                }
            }
        }
        // What was taken beside the one that is needed.
        while places.split().is_some() {}
    }
    End::More
}

/// Runs the handler, which may panic and may be cancelled.
async fn handle(shared: &Arc<Shared>, held: &Held) -> Ran {
    let inner = &shared.inner;
    let Held { head, running } = held;
    let Some(definition) = inner.registry.get(&head.head.consumer) else {
        return Ran::Failed("this program has no such consumer".into());
    };
    let begun = inner.clock.now();
    let context = Context::new(Arc::clone(inner), head, Arc::clone(running));
    let handler = Arc::clone(&definition.handler);
    // The call itself may panic too.
    let work = async move { handler(context).await };
    let work = AssertUnwindSafe(work).catch_unwind();
    let mut work = std::pin::pin!(work);
    let token = &running.token;
    let result = tokio::select! {
        biased;
        result = &mut work => Some(result),
        () = token.cancelled() => {
            tokio::time::timeout(inner.options.cancel_grace, &mut work).await.ok()
        }
    };
    inner.telemetry.ran(head, inner.clock.now().since(begun));
    match result {
        Some(Ok(Ok(done))) => Ran::Done(done),
        None => Ran::Aborted,
        Some(_) if token.is_cancelled() => Ran::Aborted,
        Some(Ok(Err(error))) => Ran::Failed(error),
        Some(Err(panic)) => Ran::Failed(format!("panicked: {}", said(&*panic)).into()),
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// An attempt that is settled, or was cut off.
struct Settled {
    done: bool,
    claim: Option<Claim>,
    asked: Timestamp,
}

impl Settled {
    fn aborted() -> Self {
        Self { done: false, claim: None, asked: Timestamp::EPOCH }
    }
}

/// The returned events, as they are appended.
fn returned(
    shared: &Shared,
    head: &DispatchedHead,
    events: Vec<NewEvent>,
) -> Result<Vec<NewEvent>> {
    let (session, parent) = (&shared.key.session, &head.event.id);
    let mut ready = Vec::with_capacity(events.len());
    for (position, event) in events.into_iter().enumerate() {
        let event = match event.event_id() {
            Some(_) => event,
            None => event.id(ids::returned(session, &head.head, parent, position))?,
        };
        ready.push(shared.inner.registry.aim(event)?);
    }
    Ok(ready)
}

fn completion(shared: &Shared, head: &DispatchedHead, done: Done) -> Result<CompleteAttempt> {
    let events = returned(shared, head, done.events)?;
    let request = CompleteAttempt::new(head.head.clone(), head.attempt())
        .events(events)?
        .served(shared.inner.registry.served.clone());
    match (&head.head.cursor, done.handled.checked_sub(2)) {
        (CursorKey::Log(_), Some(last)) if last < head.run.len() => {
            request.through(head.run[last].index)
        }
        _ => Ok(request),
    }
}

async fn complete(
    shared: &Arc<Shared>,
    held: &Held,
    done: Done,
    places: &mut Places,
    may_claim: &impl Fn(&Shared) -> bool,
) -> Settled {
    let (inner, head) = (&shared.inner, &held.head);
    let request = match completion(shared, head, done) {
        Ok(request) => request,
        // What the handler returned cannot be appended: as if it had failed.
        Err(error) => return fail(shared, held, &error.into(), may_claim).await,
    };
    let appends = request.returned().len();
    let mut claims = may_claim(shared);
    if claims && appends > 1 {
        let own = shared.group().gate.as_ref();
        if let Some(more) = Places::try_more(own, &inner.gate, (appends - 1).min(MORE)) {
            places.merge(more);
        }
    }
    let asked = inner.clock.now();
    let answer = settle(shared, &held.running, || {
        let mut request = request.clone();
        // A claim is not repeated: what the lost answer brought is leased already.
        if std::mem::take(&mut claims) {
            request = request.then_claim(shared.claim(places.len())?);
        }
        Ok(async move { inner.store.complete_attempt(&shared.key.session, request).await })
    })
    .await;
    match answer {
        Some(Ok(WithClaim { outcome, claim, .. })) => {
            match outcome {
                Completion::Completed(appended) => {
                    let events = appended.events.len();
                    inner.telemetry.ended(head, Outcome::Completed { events });
                    if appends > 0 {
                        inner.own.note(&shared.key.session);
                        wake_others(shared, request.returned());
                    }
                }
                Completion::Superseded => inner.telemetry.ended(head, Outcome::Superseded),
            }
            Settled { done: true, claim, asked }
        }
        // The store refuses what was returned, and keeps the claim.
        Some(Err(error)) if is_refusal(&error) => {
            fail(shared, held, &error.into(), may_claim).await
        }
        Some(Err(error)) => {
            tracing::error!(session = %shared.key.session, %error, "completion failed");
            inner.telemetry.ended(head, Outcome::Aborted);
            inner.end_if_closed(&error);
            Settled { done: true, claim: None, asked }
        }
        None => Settled::aborted(),
    }
}

fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput { .. } | ErrorKind::PartialDuplicateBatch { .. })
}

/// Events were appended that other groups of consumers may be waiting for.
fn wake_others(shared: &Shared, events: &[NewEvent]) {
    let groups = shared.inner.registry.groups_for(events).into_iter();
    let others = groups.filter(|group| *group != shared.key.group);
    shared.inner.wake_groups(&shared.key.session, others);
}

async fn fail(
    shared: &Arc<Shared>,
    held: &Held,
    error: &HandlerError,
    may_claim: &impl Fn(&Shared) -> bool,
) -> Settled {
    let (inner, head) = (&shared.inner, &held.head);
    let policy = inner.registry.policy_of(&head.head.consumer);
    let failures = head.state.failure_count.saturating_add(1);
    let budget = if error.is_non_retriable() { 1 } else { policy.max_failures() };
    let delay = error.delay().unwrap_or_else(|| policy.delay(failures));
    let text = error.to_string();
    let mut claims = may_claim(shared);
    let asked = inner.clock.now();
    let answer = settle(shared, &held.running, || {
        let mut request = FailAttempt::new(head.head.clone(), head.attempt(), text.as_str())
            .max_failures(budget)?
            .retry_after(delay);
        if std::mem::take(&mut claims) {
            request = request.then_claim(shared.claim(1)?);
        }
        Ok(async move { inner.store.fail_attempt(&shared.key.session, request).await })
    })
    .await;
    match answer {
        Some(Ok(WithClaim { outcome, claim, .. })) => {
            let told = match outcome {
                Failure::Failed { failure_count: failures } => {
                    let at = inner.clock.now().after(Span::new(delay));
                    inner.units.look_at(at, Later::Unit(shared.key.clone()));
                    Outcome::Failed { error: &text, failures, delay }
                }
                Failure::DeadLettered { .. } => Outcome::DeadLettered { error: &text },
                Failure::Superseded => Outcome::Superseded,
            };
            inner.telemetry.ended(head, told);
            Settled { done: true, claim, asked }
        }
        Some(Err(error)) => {
            tracing::error!(session = %shared.key.session, %error, "a failure was not recorded");
            inner.telemetry.ended(head, Outcome::Aborted);
            inner.end_if_closed(&error);
            Settled { done: true, claim: None, asked }
        }
        None => Settled::aborted(),
    }
}

/// Sends a request until it is answered; the lease is renewed meanwhile. None when the attempt was
/// cancelled before that.
async fn settle<T, F>(
    shared: &Shared,
    running: &Running,
    mut request: impl FnMut() -> Result<F>,
) -> Option<Result<T>>
where
    F: Future<Output = Result<T>>,
{
    let mut rest = Duration::from_millis(50);
    loop {
        let answer = match request() {
            Ok(request) => request.await,
            Err(error) => Err(error),
        };
        match answer {
            Err(error) if error.is_retryable() => {
                tracing::warn!(session = %shared.key.session, %error, "to be repeated");
                let jittered = rest.mul_f64(0.5 + fastrand::f64() / 2.0);
                rest = (rest * 2).min(Duration::from_secs(5));
                tokio::select! {
                    () = running.token.cancelled() => return None,
                    () = tokio::time::sleep(jittered) => {}
                }
            }
            answer => return Some(answer),
        }
    }
}
