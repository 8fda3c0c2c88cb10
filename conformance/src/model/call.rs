//! Calls as data: what is asked of the reference and of a store, and what they answer.

use std::time::Duration;

use a2_core::{
    Append, Appended, Claim, ClaimAvailable, Clear, Cleared, CompleteAttempt, Completion, Cursor,
    Cursors, DeadLetters, DispatchedHead, Error, Event, Events, FailAttempt, Failure, FireTimers,
    Index, Namespace, Page, PageToken, Pending, PendingPage, PendingSession, Presence,
    PresencePatch, PresenceRows, PresenceUpdate, PutSnapshots, ReadRange, ReadState, Redrive,
    Redriven, ReducerName, ReleaseClaims, Released, RenewClaims, Renewal, Schedule, Scheduled,
    Served, SessionId, SessionInfo, Sessions, SnapshotsPut, StateRead, Store, Timer, TimerKey,
    TimerPage, Timers, Unscheduled, WakeLog, WithClaim, WokenLog,
};
use futures_util::{StreamExt, TryStreamExt};

/// One operation with all its arguments. Listings are read to their end in pages of the size given.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Append(SessionId, Append),
    Read(SessionId, ReadRange),
    /// The first so many events of a stream: those that are stored.
    Stream(SessionId, Index, usize),
    Claim(SessionId, ClaimAvailable),
    Renew(SessionId, RenewClaims),
    Release(SessionId, ReleaseClaims),
    Complete(SessionId, CompleteAttempt),
    Fail(SessionId, FailAttempt),
    DeadLetters(SessionId, usize),
    Cursors(SessionId, usize),
    Redrive(SessionId, Redrive),
    WakeLog(SessionId, WakeLog),
    ReadState(SessionId, ReducerName, ReadState),
    PutSnapshots(SessionId, ReducerName, PutSnapshots),
    Clear(SessionId, Clear),
    Reclaim(SessionId),
    Schedule(SessionId, Schedule),
    Unschedule(SessionId, TimerKey),
    Timers(SessionId, usize),
    FireTimers(SessionId, FireTimers),
    Sessions(usize),
    Pending(Served, usize),
    SetPresence(Namespace, PresenceUpdate),
    ReadPresence(Namespace),
}

/// The answer, pages kept apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Appended(Appended),
    Events(Events),
    Streamed(Vec<Event>),
    Claim(Claim),
    Renewed(Renewal),
    Released(Released),
    Completed(WithClaim<Completion>),
    Failed(WithClaim<Failure>),
    DeadLetters(Vec<Vec<DispatchedHead>>),
    Cursors { pages: Vec<Vec<Cursor>>, head: Index, clear_index: Index },
    Redriven(Redriven),
    Woken(WokenLog),
    State(StateRead),
    SnapshotsPut(SnapshotsPut),
    Cleared(Cleared),
    Reclaimed,
    Scheduled(Scheduled),
    Unscheduled(Unscheduled),
    Timers(Vec<Vec<Timer>>),
    Sessions(Vec<SessionInfo>),
    Pending(Vec<PendingSession>),
    Patch(Option<PresencePatch>),
    Presence(PresenceRows),
}

impl Call {
    /// The session that is written or read.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Append(session, _)
            | Self::Read(session, _)
            | Self::Stream(session, ..)
            | Self::Claim(session, _)
            | Self::Renew(session, _)
            | Self::Release(session, _)
            | Self::Complete(session, _)
            | Self::Fail(session, _)
            | Self::DeadLetters(session, _)
            | Self::Cursors(session, _)
            | Self::Redrive(session, _)
            | Self::WakeLog(session, _)
            | Self::ReadState(session, ..)
            | Self::PutSnapshots(session, ..)
            | Self::Clear(session, _)
            | Self::Reclaim(session)
            | Self::Schedule(session, _)
            | Self::Unschedule(session, _)
            | Self::Timers(session, _)
            | Self::FireTimers(session, _) => Some(session),
            Self::Sessions(_)
            | Self::Pending(..)
            | Self::SetPresence(..)
            | Self::ReadPresence(_) => None,
        }
    }

    /// Whether it may change something.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(
            self,
            Self::Read(..)
                | Self::Stream(..)
                | Self::DeadLetters(..)
                | Self::Cursors(..)
                | Self::ReadState(..)
                | Self::Timers(..)
                | Self::Sessions(_)
                | Self::Pending(..)
                | Self::ReadPresence(_)
        )
    }
}

/// One handle of the store under test.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) timers: Option<&'a dyn Timers>,
    pub(crate) presence: Option<&'a dyn Presence>,
    /// How long a stream may take.
    pub(crate) deadline: Duration,
}

impl Target<'_> {
    /// Makes the call; none when the store lacks what it needs. Of the listings over all sessions
    /// only those whose names begin with `prefix` are kept.
    pub(crate) async fn send(&self, call: &Call, prefix: &str) -> Option<Result<Reply, Error>> {
        match call {
            Call::Schedule(..) | Call::Unschedule(..) | Call::Timers(..) | Call::FireTimers(..) => {
                Some(send_timer(self.timers?, call).await)
            }
            Call::SetPresence(room, update) => {
                Some(self.presence?.set_presence(room, update.clone()).await.map(Reply::Patch))
            }
            Call::ReadPresence(room) => {
                Some(self.presence?.read_presence(room).await.map(Reply::Presence))
            }
            _ => Some(send(self.store, self.deadline, call, prefix).await),
        }
    }
}

async fn send(
    store: &dyn Store,
    deadline: Duration,
    call: &Call,
    prefix: &str,
) -> Result<Reply, Error> {
    Ok(match call {
        Call::Append(id, append) => Reply::Appended(store.append(id, append.clone()).await?),
        Call::Read(id, range) => Reply::Events(store.read(id, range.clone()).await?),
        Call::Stream(id, start_after, count) => {
            let stored = store.stream(id, *start_after).take(*count).try_collect();
            match tokio::time::timeout(deadline, stored).await {
                Ok(events) => Reply::Streamed(events?),
                Err(_) => {
                    return Err(Error::unavailable("the stream does not give what is stored"));
                }
            }
        }
        Call::Claim(id, claim) => Reply::Claim(store.claim_available(id, claim.clone()).await?),
        Call::Renew(id, renew) => Reply::Renewed(store.renew_claims(id, renew.clone()).await?),
        Call::Release(id, release) => {
            Reply::Released(store.release_claims(id, release.clone()).await?)
        }
        Call::Complete(id, complete) => {
            Reply::Completed(store.complete_attempt(id, complete.clone()).await?)
        }
        Call::Fail(id, fail) => Reply::Failed(store.fail_attempt(id, fail.clone()).await?),
        Call::DeadLetters(id, limit) => {
            let (mut pages, mut at) = (Vec::new(), Page::first().limit(*limit)?);
            loop {
                let DeadLetters { heads, next, .. } = store.dead_letters(id, at.clone()).await?;
                pages.push(heads);
                let Some(next) = next else { break Reply::DeadLetters(pages) };
                at = at.and_then(checked(&pages, next)?);
            }
        }
        Call::Cursors(id, limit) => {
            let (mut pages, mut at) = (Vec::new(), Page::first().limit(*limit)?);
            loop {
                let Cursors { cursors, head, clear_index, next, .. } =
                    store.cursors(id, at.clone()).await?;
                pages.push(cursors);
                let Some(next) = next else { break Reply::Cursors { pages, head, clear_index } };
                at = at.and_then(checked(&pages, next)?);
            }
        }
        Call::Redrive(id, redrive) => Reply::Redriven(store.redrive(id, redrive.clone()).await?),
        Call::WakeLog(id, wake) => Reply::Woken(store.wake_log(id, wake.clone()).await?),
        Call::ReadState(id, reducer, read) => {
            Reply::State(store.read_state(id, reducer, read.clone()).await?)
        }
        Call::PutSnapshots(id, reducer, put) => {
            Reply::SnapshotsPut(store.put_snapshots(id, reducer, put.clone()).await?)
        }
        Call::Clear(id, clear) => Reply::Cleared(store.clear(id, clear.clone()).await?),
        Call::Reclaim(id) => {
            let _ = store.reclaim(id).await?;
            Reply::Reclaimed
        }
        Call::Sessions(limit) => {
            let (mut pages, mut at) = (Vec::new(), Page::first().limit(*limit)?);
            loop {
                let Sessions { sessions, next, .. } = store.sessions(at.clone()).await?;
                pages.push(sessions);
                let Some(next) = next else { break };
                at = at.and_then(checked(&pages, next)?);
            }
            let mut sessions: Vec<_> = pages.into_iter().flatten().collect();
            sessions.retain(|info| info.session.as_str().starts_with(prefix));
            // In no order that anything promises.
            sessions.sort_by(|a, b| a.session.cmp(&b.session));
            Reply::Sessions(sessions)
        }
        Call::Pending(served, limit) => {
            let (mut full, mut passes, mut at) = (Vec::new(), 0, Page::first().limit(*limit)?);
            loop {
                let request = PendingPage::new(served.clone()).page(at.clone());
                let Pending { sessions, next, .. } = store.pending(request).await?;
                // Pages may be short, even empty.
                full.extend(sessions);
                passes += 1;
                let Some(next) = next else { break };
                if passes > PAGES {
                    return Err(Error::corrupt(None, None, "a pass over pending does not end"));
                }
                at = at.and_then(next);
            }
            let mut sessions = full;
            sessions
                .retain(|pending: &PendingSession| pending.session.as_str().starts_with(prefix));
            // In no order, and a session may be repeated: its soonest time counts.
            sessions.sort_by(|a, b| (&a.session, a.not_before).cmp(&(&b.session, b.not_before)));
            sessions.dedup_by(|later, first| later.session == first.session);
            Reply::Pending(sessions)
        }
        Call::Schedule(..)
        | Call::Unschedule(..)
        | Call::Timers(..)
        | Call::FireTimers(..)
        | Call::SetPresence(..)
        | Call::ReadPresence(_) => return Err(Error::invalid("call", "is no store's")),
    })
}

async fn send_timer(timers: &dyn Timers, call: &Call) -> Result<Reply, Error> {
    Ok(match call {
        Call::Schedule(id, timer) => Reply::Scheduled(timers.schedule(id, timer.clone()).await?),
        Call::Unschedule(id, key) => Reply::Unscheduled(timers.unschedule(id, key).await?),
        Call::FireTimers(id, fire) => Reply::Appended(timers.fire_timers(id, fire.clone()).await?),
        Call::Timers(id, limit) => {
            let (mut pages, mut at) = (Vec::new(), Page::first().limit(*limit)?);
            loop {
                let TimerPage { timers: page, next, .. } = timers.timers(id, at.clone()).await?;
                pages.push(page);
                let Some(next) = next else { break Reply::Timers(pages) };
                at = at.and_then(checked(&pages, next)?);
            }
        }
        _ => return Err(Error::invalid("call", "is no timer's")),
    })
}

/// More pages than any listing of a history has.
const PAGES: usize = 10_000;

/// Where the next page begins: a page with a next one is not empty.
fn checked<T>(pages: &[Vec<T>], next: PageToken) -> Result<PageToken, Error> {
    match pages.last() {
        Some(last) if last.is_empty() => {
            Err(Error::corrupt(None, None, "an empty page names a next one"))
        }
        _ if pages.len() > PAGES => Err(Error::corrupt(None, None, "a listing does not end")),
        _ => Ok(next),
    }
}
