//! The operations on the log and on its heads.

use a2_core::{
    Append, Appended, AttemptRef, Cause, Claim, ClaimAvailable, CompleteAttempt, Completion, Error,
    ErrorKind, Event, Events, FailAttempt, Failure, HeadRef, Index, NewEvent, ReadRange,
    ReleaseClaims, Released, RenewClaims, Renewal, Result, SessionId, Timestamp, WithClaim,
};
use fred::types::Resp3Frame as Frame;

use crate::args::Args;
use crate::batch::Batch;
use crate::conn::Db;
use crate::error::Place;
use crate::keys::Keys;
use crate::reply::Reply;
use crate::script::{self, Script};

/// What an operation on a session needs.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) db: &'a Db,
    pub(crate) keys: &'a Keys,
    pub(crate) session: &'a SessionId,
    /// The time by the clock that replaces the server's.
    pub(crate) now: Option<i64>,
}

impl At<'_> {
    /// Runs a script on the session.
    pub(crate) async fn run(&self, place: Place<'_>, script: &Script, args: Args) -> Result<Frame> {
        self.db.run(place, script, self.keys.session(self.session), self.now, args).await
    }
}

/// Appends events.
pub(crate) async fn append(at: At<'_>, append: &Append) -> Result<Appended> {
    let place = Place::write("append", at.session);
    let mut args = Args::default();
    Batch::new(append.events(), append.served_list()).write(&mut args, 2, |args| {
        args.optional(append.head_expected().map(Index::get));
        args.optional(append.origin().map(Index::get));
    });
    let frame = at.run(place, &script::APPEND, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "appended" => appended(&reply, at.session, append.events(), None),
        "replayed" => replayed(&reply, at.session),
        "head_conflict" => {
            let (expected, actual) = (append.head_expected().unwrap_or_default(), reply.index(1)?);
            Err(ErrorKind::HeadConflict { expected, actual }.into())
        }
        status => Err(reply.refusal(status)),
    }
}

/// The events of a request as they stand in the log: the answer has only where and when.
pub(crate) fn appended(
    reply: &Reply<'_>,
    session: &SessionId,
    events: &[NewEvent],
    cause: Option<&Cause>,
) -> Result<Appended> {
    let (head, at) = (reply.index(1)?, reply.time(3)?);
    let Some(before) = head.get().checked_sub(events.len() as u64) else {
        return Err(reply.place.unreadable("the log is shorter than what was appended"));
    };
    let stored = (before + 1..).zip(events).map(|(index, new)| {
        stored(session, Index::new(index)?, new, at, cause)
            .ok_or_else(|| reply.place.unreadable("an event has no id"))
    });
    Ok(Appended::new(stored.collect::<Result<_>>()?, reply.flag(4)?, false))
}

fn stored(
    session: &SessionId,
    index: Index,
    new: &NewEvent,
    at: Timestamp,
    cause: Option<&Cause>,
) -> Option<Event> {
    Some(Event::new(
        session.clone(),
        index,
        new.event_id()?.clone(),
        new.event_type().clone(),
        new.payload().clone(),
        at,
        cause.or(new.event_cause()).cloned(),
    ))
}

fn replayed(reply: &Reply<'_>, session: &SessionId) -> Result<Appended> {
    Ok(Appended::new(reply.list(5)?.events(session)?, reply.flag(4)?, true))
}

/// Reads events.
pub(crate) async fn read(at: At<'_>, range: &ReadRange) -> Result<Events> {
    let place = Place::read("read", at.session);
    let mut args = Args::default();
    args.index(range.start_after());
    args.index(range.end());
    args.count(range.max_events());
    let frame = at.run(place, &script::READ, args).await?;
    let reply = Reply::new(&frame, place)?;
    match reply.status()? {
        "read" => {
            let events = reply.list(3)?.events(at.session)?;
            check_dense(&events, place)?;
            Ok(Events::new(events, reply.index(1)?, reply.index(2)?))
        }
        status => Err(reply.refusal(status)),
    }
}

/// Events that were stored one after the other must be numbered so.
pub(crate) fn check_dense(events: &[Event], place: Place<'_>) -> Result<()> {
    let gap = events.windows(2).find_map(|pair| match pair {
        [before, after] if after.index != before.index.next() => Some(before.index.next()),
        _ => None,
    });
    gap.map_or(Ok(()), |index| Err(place.missing(index)))
}

/// Claims heads.
pub(crate) async fn claim(at: At<'_>, claim: &ClaimAvailable) -> Result<Claim> {
    let place = Place::write("claim_available", at.session);
    let mut args = Args::default();
    args.claim(claim);
    let frame = at.run(place, &script::CLAIM_AVAILABLE, args).await?;
    Reply::new(&frame, place)?.claim(at.session)
}

/// Makes leases last.
pub(crate) async fn renew(at: At<'_>, renew: &RenewClaims) -> Result<Renewal> {
    let place = Place::write("renew_claims", at.session);
    let mut args = Args::default();
    args.push(renew.holder().as_str());
    args.number(renew.ttl().as_millis());
    claims(&mut args, renew.claims());
    let frame = at.run(place, &script::RENEW, args).await?;
    let reply = Reply::new(&frame, place)?;
    let which = |wanted| chosen(&reply, renew.claims(), wanted);
    Ok(Renewal::new(which(1)?, which(2)?))
}

/// Gives claims back.
pub(crate) async fn release(at: At<'_>, release: &ReleaseClaims) -> Result<Released> {
    let place = Place::write("release_claims", at.session);
    let mut args = Args::default();
    args.push(release.holder().as_str());
    claims(&mut args, release.claims());
    let frame = at.run(place, &script::RELEASE, args).await?;
    Ok(Released::new(chosen(&Reply::new(&frame, place)?, release.claims(), 1)?))
}

fn claims(args: &mut Args, claims: &[AttemptRef]) {
    args.count(claims.len());
    for claim in claims {
        args.attempt(claim.attempt);
        args.head(&claim.head);
    }
}

/// The claims that the answer has this number for.
fn chosen(reply: &Reply<'_>, claims: &[AttemptRef], wanted: i64) -> Result<Vec<AttemptRef>> {
    let mut chosen = Vec::new();
    for (at, claim) in claims.iter().enumerate() {
        if reply.number(at)? == wanted {
            chosen.push(claim.clone());
        }
    }
    Ok(chosen)
}

/// Completes an attempt.
pub(crate) async fn complete(
    at: At<'_>,
    complete: &CompleteAttempt,
) -> Result<WithClaim<Completion>> {
    let place = Place::write("complete_attempt", at.session);
    let mut args = Args::default();
    let (head, cause) = (complete.head(), Cause::new(complete.head().clone(), complete.attempt()));
    let batch = Batch::of(complete.returned(), complete.served_list(), Some(head), Some(&cause));
    batch.write(&mut args, 3, |args| {
        args.head(head);
        args.attempt(complete.attempt());
        args.optional(complete.end().map(Index::get));
    });
    args.then_claim(complete.next_claim());
    let frame = at.run(place, &script::COMPLETE, args).await?;
    let reply = Reply::new(&frame, place)?;
    let outcome = reply.list(0)?;
    let completion = match outcome.status()? {
        "completed" => {
            let done = appended(&outcome, at.session, complete.returned(), Some(&cause))?;
            Completion::Completed(done)
        }
        "replayed" => Completion::Completed(replayed(&outcome, at.session)?),
        "superseded" => Completion::Superseded,
        "not_found" => return Err(not_found(at.session, complete.head())),
        "beyond" => return Err(Error::invalid("through", "must be at most the log's head")),
        status => return Err(outcome.refusal(status)),
    };
    Ok(WithClaim::new(completion, next_claim(&reply, at.session)?))
}

/// Fails an attempt.
pub(crate) async fn fail(at: At<'_>, fail: &FailAttempt) -> Result<WithClaim<Failure>> {
    let place = Place::write("fail_attempt", at.session);
    let mut args = Args::default();
    args.head(fail.head());
    args.attempt(fail.attempt());
    args.push(fail.error());
    args.optional(fail.budget());
    args.number(fail.hold().as_millis());
    args.then_claim(fail.next_claim());
    let frame = at.run(place, &script::FAIL, args).await?;
    let reply = Reply::new(&frame, place)?;
    let outcome = reply.list(0)?;
    let failure = match outcome.status()? {
        "failed" => Failure::Failed { failure_count: outcome.count(1)? },
        "dead" => Failure::DeadLettered { failure_count: outcome.count(1)? },
        "superseded" => Failure::Superseded,
        "not_found" => return Err(not_found(at.session, fail.head())),
        status => return Err(outcome.refusal(status)),
    };
    Ok(WithClaim::new(failure, next_claim(&reply, at.session)?))
}

/// The claim that went with another operation.
fn next_claim(reply: &Reply<'_>, session: &SessionId) -> Result<Option<Claim>> {
    reply.optional_list(1)?.map(|claim| claim.claim(session)).transpose()
}

fn not_found(session: &SessionId, head: &HeadRef) -> Error {
    ErrorKind::NotFound { session: session.clone(), index: head.index }.into()
}
