//! A store all of whose calls and answers are written down.

use std::pin::Pin;
use std::task::{Context, Poll};

use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, CompleteAttempt, Completion, Cursors,
    DeadLetters, Event, EventStream, Events, FailAttempt, Failure, FireTimers, Index, Page,
    Pending, PendingPage, PutSnapshots, ReadRange, ReadState, Reclaimed, Redrive, RedriveAction,
    Redriven, ReducerName, ReleaseClaims, Released, RenewClaims, Renewal, Result, Schedule,
    Scheduled, Served, SessionId, Sessions, SnapshotsPut, StateRead, Store, TimerKey, TimerPage,
    Timers, Unscheduled, WakeLog, WithClaim, WokenLog, WorkHints, async_trait,
};
use futures_util::{Stream, StreamExt};

use super::note::{Answer, Asked, Claiming, Note, Sent};
use super::recorder::Recorder;

/// Writes down what goes through it. A call that is dropped, or whose error says that its outcome is
/// unknown, stays without an answer.
#[derive(Debug, Clone)]
pub struct Recorded<S> {
    inner: S,
    recorder: Recorder,
    worker: u32,
}

impl<S> Recorded<S> {
    /// Calls of this worker go to that recorder. A worker makes one call after the other.
    pub fn new(inner: S, recorder: &Recorder, worker: u32) -> Self {
        Self { inner, recorder: recorder.clone(), worker }
    }

    async fn note<T>(
        &self,
        session: Option<&SessionId>,
        asked: Asked,
        call: impl Future<Output = Result<T>>,
        answer: impl FnOnce(&T) -> Answer,
    ) -> Result<T> {
        // Embedded stores never wait: without this a worker would keep all others from running.
        tokio::task::consume_budget().await;
        let open = Open { recorder: &self.recorder, answered: false };
        let number = self.recorder.begin(self.worker, session, asked);
        let result = call.await;
        match &result {
            Ok(done) => open.end(number, answer(done)),
            Err(error) if error.outcome_unknown() => {}
            Err(error) => {
                let (code, text) = (error.code().to_owned(), error.to_string());
                open.end(number, Answer::Refused { code, text });
            }
        }
        result
    }
}

/// A call under way.
struct Open<'a> {
    recorder: &'a Recorder,
    answered: bool,
}

impl Open<'_> {
    fn end(mut self, call: u64, answer: Answer) {
        self.answered = true;
        self.recorder.end(call, answer);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.recorder.lost();
        }
    }
}

fn claiming(claim: &ClaimAvailable) -> Claiming {
    Claiming { holder: claim.holder().to_string(), ttl: claim.ttl().as_millis() }
}

fn appended(done: &Appended) -> Answer {
    Answer::Appended { events: done.events.clone(), replayed: done.replayed }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Store> Store for Recorded<S> {
    async fn append(&self, session: &SessionId, append: Append) -> Result<Appended> {
        let asked = Asked::Append { events: Sent::all(append.events()) };
        self.note(Some(session), asked, self.inner.append(session, append), appended).await
    }

    async fn read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        let (after, through) = (range.start_after(), range.end());
        let asked = Asked::Read { after, through, limit: range.max_events() };
        self.note(Some(session), asked, self.inner.read(session, range), |read| Answer::Events {
            events: read.events.clone(),
            head: read.head,
            clear_index: read.clear_index,
        })
        .await
    }

    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        let number =
            self.recorder.begin(self.worker, Some(session), Asked::Stream { after: start_after });
        let inner = self.inner.stream(session, start_after);
        let recorder = self.recorder.clone();
        EventStream::new(RecordedStream { inner, recorder, number, ended: false })
    }

    async fn claim_available(&self, session: &SessionId, claim: ClaimAvailable) -> Result<Claim> {
        let asked = Asked::Claim { claim: claiming(&claim) };
        let call = self.inner.claim_available(session, claim);
        self.note(Some(session), asked, call, |claim| Answer::Claimed {
            heads: claim.clone().into_heads(),
        })
        .await
    }

    async fn renew_claims(&self, session: &SessionId, renew: RenewClaims) -> Result<Renewal> {
        let (claims, ttl) = (renew.claims().to_vec(), renew.ttl().as_millis());
        let call = self.inner.renew_claims(session, renew);
        self.note(Some(session), Asked::Renew { claims, ttl }, call, |done| Answer::Renewed {
            renewed: done.renewed.clone(),
            superseded: done.superseded.clone(),
        })
        .await
    }

    async fn release_claims(
        &self,
        session: &SessionId,
        release: ReleaseClaims,
    ) -> Result<Released> {
        let claims = release.claims().to_vec();
        let call = self.inner.release_claims(session, release);
        self.note(Some(session), Asked::Release { claims }, call, |done| Answer::Released {
            released: done.released.clone(),
        })
        .await
    }

    async fn complete_attempt(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
    ) -> Result<WithClaim<Completion>> {
        let asked = Asked::Complete {
            attempt: a2_core::AttemptRef::new(complete.head().clone(), complete.attempt()),
            returned: Sent::all(complete.returned()),
            through: complete.end(),
            claim: complete.next_claim().map(claiming),
        };
        let call = self.inner.complete_attempt(session, complete);
        self.note(Some(session), asked, call, |done| {
            Answer::completed(done.outcome.clone(), done.claim.clone())
        })
        .await
    }

    async fn fail_attempt(
        &self,
        session: &SessionId,
        fail: FailAttempt,
    ) -> Result<WithClaim<Failure>> {
        let asked = Asked::Fail {
            attempt: a2_core::AttemptRef::new(fail.head().clone(), fail.attempt()),
            budget: fail.budget(),
            claim: fail.next_claim().map(claiming),
        };
        let call = self.inner.fail_attempt(session, fail);
        self.note(Some(session), asked, call, |done| {
            Answer::failed(done.outcome, done.claim.clone())
        })
        .await
    }

    async fn dead_letters(&self, session: &SessionId, page: Page) -> Result<DeadLetters> {
        let call = self.inner.dead_letters(session, page);
        self.note(Some(session), Asked::DeadLetters, call, |page| Answer::DeadLetters {
            heads: page.heads.clone(),
        })
        .await
    }

    async fn redrive(&self, session: &SessionId, redrive: Redrive) -> Result<Redriven> {
        let skip = redrive.action() == RedriveAction::Skip;
        let asked = Asked::Redrive { head: redrive.head().clone(), skip };
        let call = self.inner.redrive(session, redrive);
        self.note(Some(session), asked, call, |done| Answer::Redriven { redriven: done.redriven })
            .await
    }

    async fn wake_log(&self, session: &SessionId, log: WakeLog) -> Result<WokenLog> {
        let call = self.inner.wake_log(session, log);
        self.note(Some(session), Asked::WakeLog, call, |woken| Answer::Cursors {
            cursors: vec![woken.cursor.clone()],
            head: woken.head,
            clear_index: woken.clear_index,
        })
        .await
    }

    async fn cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        let call = self.inner.cursors(session, page);
        self.note(Some(session), Asked::Cursors, call, |page| Answer::Cursors {
            cursors: page.cursors.clone(),
            head: page.head,
            clear_index: page.clear_index,
        })
        .await
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        let asked = Asked::ReadState { through: read.end() };
        let call = self.inner.read_state(session, reducer, read);
        self.note(Some(session), asked, call, |state| Answer::State {
            latest: state.latest_snapshot,
            snapshot: state.snapshot.as_ref().map(|kept| (kept.index, kept.state.clone())),
            events: state.events.clone(),
            clear_index: state.clear_index,
        })
        .await
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        let indexes = writes.writes().iter().map(a2_core::SnapshotWrite::index).collect();
        let call = self.inner.put_snapshots(session, reducer, writes);
        self.note(Some(session), Asked::PutSnapshots { indexes }, call, |put| Answer::Put {
            stored: put.stored.clone(),
        })
        .await
    }

    async fn clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        let asked = Asked::Clear { id: clear.marker_id().clone() };
        self.note(Some(session), asked, self.inner.clear(session, clear), Answer::cleared).await
    }

    async fn reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        let call = self.inner.reclaim(session);
        self.note(Some(session), Asked::Reclaim, call, |_| Answer::Done).await
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        let call = self.inner.sessions(page);
        self.note(None, Asked::Sessions, call, |page| Answer::Sessions {
            sessions: page.sessions.iter().map(|info| info.session.clone()).collect(),
            last: page.next.is_none(),
        })
        .await
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        let asked = Asked::Pending { first: pending.which().token().is_none() };
        let call = self.inner.pending(pending);
        self.note(None, asked, call, |page| Answer::Sessions {
            sessions: page.sessions.iter().map(|found| found.session.clone()).collect(),
            last: page.next.is_none(),
        })
        .await
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        // Hints promise nothing.
        self.inner.watch_pending(served)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Timers> Timers for Recorded<S> {
    async fn schedule(&self, session: &SessionId, timer: Schedule) -> Result<Scheduled> {
        let Some(event) = Sent::of(timer.event()) else {
            return self.inner.schedule(session, timer).await;
        };
        let asked = Asked::Schedule { key: timer.key().clone(), event };
        let call = self.inner.schedule(session, timer);
        self.note(Some(session), asked, call, |set| Answer::Scheduled { due_at: set.due_at }).await
    }

    async fn unschedule(&self, session: &SessionId, key: &TimerKey) -> Result<Unscheduled> {
        let call = self.inner.unschedule(session, key);
        self.note(Some(session), Asked::Unschedule { key: key.clone() }, call, |done| {
            Answer::Unscheduled { removed: done.removed }
        })
        .await
    }

    async fn timers(&self, session: &SessionId, page: Page) -> Result<TimerPage> {
        let call = self.inner.timers(session, page);
        self.note(Some(session), Asked::Timers, call, |page| Answer::Timers {
            keys: page.timers.iter().map(|timer| timer.key.clone()).collect(),
        })
        .await
    }

    async fn fire_timers(&self, session: &SessionId, fire: FireTimers) -> Result<Appended> {
        let call = self.inner.fire_timers(session, fire);
        self.note(Some(session), Asked::FireTimers, call, appended).await
    }
}

struct RecordedStream {
    inner: EventStream,
    recorder: Recorder,
    number: u64,
    ended: bool,
}

impl Stream for RecordedStream {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = std::task::ready!(self.inner.poll_next_unpin(cx));
        let stream = self.number;
        match &item {
            Some(Ok(event)) => self.recorder.take(Note::Yielded { stream, event: event.clone() }),
            other if !self.ended => {
                self.ended = true;
                let error = match other {
                    Some(Err(error)) => Some(error.to_string()),
                    _ => None,
                };
                self.recorder.take(Note::StreamEnded { stream, error });
            }
            _ => {}
        }
        Poll::Ready(item)
    }
}

impl Drop for RecordedStream {
    fn drop(&mut self) {
        if !self.ended {
            self.recorder.take(Note::StreamDropped { stream: self.number });
        }
    }
}
