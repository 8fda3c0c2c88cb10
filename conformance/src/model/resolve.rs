//! From an operation to the call it means here and now.

use std::collections::BTreeSet;
use std::time::Duration;

use a2_core::{
    Append, AttemptRef, Cause, ClaimAvailable, Clear, CompleteAttempt, CursorKey, EventId,
    EventType, FailAttempt, FireTimers, HeadRef, Holder, Index, LogDeclaration, LogTypes, NewEvent,
    PresenceUpdate, PutSnapshots, ReadRange, ReadState, Redrive, RedriveAction, ReleaseClaims,
    RenewClaims, Result, Schedule, Served, ServedConsumer, SessionId, SnapshotWrite, WakeLog,
};

use super::call::Call;
use super::names;
use super::op::{Aim, At, Declared, Ev, Id, On, Op, Serves, Snap, Take, Try, Which};
use super::reference::{Model, Session};

/// What a history knows beside the reference's state.
pub(super) struct Context {
    /// The names of its sessions begin with it.
    pub(super) prefix: String,
    /// Every claim that was ever answered.
    pub(super) claims: Vec<(SessionId, HeadRef, u64)>,
    /// Every write that was made.
    pub(super) writes: Vec<Call>,
    /// How many ids were made up.
    pub(super) fresh: u32,
}

/// The call; none when the operation refers to what is not there.
pub(super) fn call(op: &Op, model: &mut Model, context: &mut Context) -> Result<Option<Call>> {
    let Some(n) = session_of(op) else { return global(op, context) };
    let id = names::session(&context.prefix, n)?;
    let session = &*model.session(&id);
    let mut at = Resolver { session, id: id.clone(), context };
    Ok(match op {
        Op::Append { events, served, expected_head, origin, .. } => {
            let mut append = Append::new(at.events(events, true)?)?.served(self::served(served)?);
            if let Some(expected) = expected_head {
                append = append.expected_head(at.index(*expected)?);
            }
            if let Some(origin) = origin {
                append = append.origin_index(at.index(*origin)?);
            }
            Some(Call::Append(id, append))
        }
        Op::Read { after, through, limit, .. } => {
            let mut range = ReadRange::after(at.index(*after)?);
            if let Some(through) = through {
                range = range.through(at.index(*through)?);
            }
            if let Some(limit) = limit {
                range = range.limit(count(*limit))?;
            }
            Some(Call::Read(id, range))
        }
        Op::Stream { start_after, .. } => {
            let after = at.index(*start_after)?;
            let stored = session.read(&ReadRange::after(after)).events.len();
            Some(Call::Stream(id, after, stored))
        }
        Op::Claim { claim, .. } => Some(Call::Claim(id, at.claim(claim)?)),
        Op::Renew { holder, claims, ttl, .. } => match at.attempts(*holder, claims)? {
            Some((holder, claims)) => {
                Some(Call::Renew(id, RenewClaims::new(holder, claims, ttl_of(*ttl))?))
            }
            None => None,
        },
        Op::Release { holder, claims, .. } => match at.attempts(*holder, claims)? {
            Some((holder, claims)) => Some(Call::Release(id, ReleaseClaims::new(holder, claims)?)),
            None => None,
        },
        Op::Complete { attempt, events, served, through, then_claim, .. } => {
            let Some((head, attempt)) = at.attempt(*attempt)? else { return Ok(None) };
            let through = through.map(|through| at.index(through)).transpose()?;
            let through = through.filter(|through| {
                matches!(head.cursor, CursorKey::Log(_)) && *through >= head.index
            });
            let mut complete = CompleteAttempt::new(head, attempt)
                .events(at.events(events, false)?)?
                .served(self::served(served)?);
            if let Some(through) = through {
                complete = complete.through(through)?;
            }
            if let Some(claim) = then_claim {
                complete = complete.then_claim(at.claim(claim)?);
            }
            Some(Call::Complete(id, complete))
        }
        Op::Fail { attempt, error, max_failures, retry_after, then_claim, .. } => {
            let Some((head, attempt)) = at.attempt(*attempt)? else { return Ok(None) };
            let mut fail = FailAttempt::new(head, attempt, names::error(*error))
                .retry_after(Duration::from_millis(u64::from(*retry_after)));
            if let Some(max) = max_failures {
                fail = fail.max_failures(u64::from(*max).max(1))?;
            }
            if let Some(claim) = then_claim {
                fail = fail.then_claim(at.claim(claim)?);
            }
            Some(Call::Fail(id, fail))
        }
        Op::DeadLetters { limit, .. } => Some(Call::DeadLetters(id, count(*limit))),
        Op::Cursors { limit, .. } => Some(Call::Cursors(id, count(*limit))),
        Op::Redrive { head, skip, served, .. } => at
            .head(*head)?
            .map(|(head, _)| {
                let action = if *skip { RedriveAction::Skip } else { RedriveAction::Retry };
                Ok::<_, a2_core::Error>(Call::Redrive(
                    id,
                    Redrive::new(head, action).served(self::served(served)?),
                ))
            })
            .transpose()?,
        Op::WakeLog { consumer, log, .. } => {
            Some(Call::WakeLog(id, WakeLog::new(names::consumer(*consumer)?, declaration(log)?)?))
        }
        Op::ReadState { reducer, through, snapshot_through, .. } => {
            let mut read = match through {
                Some(through) => ReadState::through(at.index(*through)?),
                None => ReadState::latest(),
            };
            if let Some(cap) = snapshot_through {
                read = read.snapshot_through(at.index(*cap)?);
            }
            Some(Call::ReadState(id, names::reducer(*reducer)?, read))
        }
        Op::PutSnapshots { reducer, writes, .. } => {
            let writes =
                writes.iter().map(|write| at.snapshot(write)).collect::<Result<Vec<_>>>()?;
            Some(Call::PutSnapshots(id, names::reducer(*reducer)?, PutSnapshots::new(writes)?))
        }
        Op::Clear { if_last_index, cause, id: marker, .. } => {
            let mut clear = Clear::new();
            if let Some(last) = if_last_index {
                clear = clear.if_last_index(at.index(*last)?);
            }
            if let Some(cause) = cause {
                let Some((head, attempt)) = at.attempt(*cause)? else { return Ok(None) };
                clear = clear.cause(Cause::new(head, attempt));
            }
            if let Some(marker) = at.event_id(*marker)? {
                clear = clear.id(marker.as_str())?;
            }
            Some(Call::Clear(id, clear))
        }
        Op::Reclaim { .. } => Some(Call::Reclaim(id)),
        Op::Schedule { key, after, event, origin, .. } => {
            let after = Duration::from_millis(u64::from(*after));
            let event = at.event(event, false)?;
            let mut schedule = Schedule::new(names::timer(*key)?, after, event)?;
            if let Some(origin) = origin {
                schedule = schedule.origin_index(at.index(*origin)?);
            }
            Some(Call::Schedule(id, schedule))
        }
        Op::Unschedule { key, .. } => Some(Call::Unschedule(id, names::timer(*key)?)),
        Op::Timers { limit, .. } => Some(Call::Timers(id, count(*limit))),
        Op::FireTimers { served, limit, .. } => {
            let mut fire = FireTimers::new().served(self::served(served)?);
            if let Some(limit) = limit {
                fire = fire.limit(count(*limit))?;
            }
            Some(Call::FireTimers(id, fire))
        }
        _ => None,
    })
}

fn session_of(op: &Op) -> Option<u8> {
    match op {
        Op::Advance(_)
        | Op::Resend(_)
        | Op::Sessions { .. }
        | Op::Pending { .. }
        | Op::SetPresence { .. }
        | Op::ReadPresence => None,
        Op::Append { session, .. }
        | Op::Read { session, .. }
        | Op::Stream { session, .. }
        | Op::Claim { session, .. }
        | Op::Renew { session, .. }
        | Op::Release { session, .. }
        | Op::Complete { session, .. }
        | Op::Fail { session, .. }
        | Op::DeadLetters { session, .. }
        | Op::Cursors { session, .. }
        | Op::Redrive { session, .. }
        | Op::WakeLog { session, .. }
        | Op::ReadState { session, .. }
        | Op::PutSnapshots { session, .. }
        | Op::Clear { session, .. }
        | Op::Reclaim { session }
        | Op::Schedule { session, .. }
        | Op::Unschedule { session, .. }
        | Op::Timers { session, .. }
        | Op::FireTimers { session, .. } => Some(*session),
    }
}

fn global(op: &Op, context: &Context) -> Result<Option<Call>> {
    Ok(match op {
        Op::Resend(n) => {
            let count = context.writes.len();
            let place = count.checked_sub(1 + usize::from(*n) % count.max(1));
            place.and_then(|place| context.writes.get(place)).cloned()
        }
        Op::Sessions { limit } => Some(Call::Sessions(count(*limit))),
        Op::Pending { served, limit } => Some(Call::Pending(self::served(served)?, count(*limit))),
        Op::SetPresence { participant, fields, seen, ttl } => {
            let mut update = PresenceUpdate::new(names::participant(*participant)?, ttl_of(*ttl))?;
            for (field, value) in fields {
                let field = names::field(*field)?;
                update = match value {
                    Some(value) => update.set(field, names::json(*value)?)?,
                    None => update.remove(field)?,
                };
            }
            if let Some(seen) = seen {
                update = update.seen(Index::from(u32::from(*seen)));
            }
            Some(Call::SetPresence(names::namespace(&context.prefix)?, update))
        }
        Op::ReadPresence => Some(Call::ReadPresence(names::namespace(&context.prefix)?)),
        _ => None,
    })
}

fn count(n: u8) -> usize {
    usize::from(n).max(1)
}

fn ttl_of(ms: u8) -> Duration {
    Duration::from_millis(u64::from(ms).max(1))
}

fn key(on: On) -> Result<CursorKey> {
    Ok(match on {
        On::Event => CursorKey::Event,
        On::InLane(lane) => CursorKey::Lane(names::lane(lane)?),
        On::InLog(log) => CursorKey::Log(names::log(log)?),
    })
}

fn declaration(log: &Declared) -> Result<LogDeclaration> {
    let mut types: Vec<EventType> = Vec::new();
    for n in (0..names::TYPES).filter(|n| log.types & (1 << n) != 0) {
        types.push(names::event_type(n)?);
    }
    let mut declaration = LogDeclaration::new(names::log(log.name)?)?;
    if !types.is_empty() {
        declaration = declaration.types(LogTypes::only(types)?);
    }
    Ok(if log.backfill { declaration.backfill() } else { declaration })
}

fn served(serves: &Serves) -> Result<Served> {
    let Serves::Only(entries) = serves else { return Ok(Served::ALL) };
    let mut seen = BTreeSet::new();
    let mut consumers = Vec::new();
    for entry in entries {
        let consumer = names::consumer(entry.consumer)?;
        if !seen.insert(consumer.clone()) {
            continue;
        }
        let mut served = ServedConsumer::new(consumer)?;
        if let Some(log) = &entry.log {
            served = served.log(declaration(log)?);
        }
        if let Some(max) = entry.max_failures {
            served = served.max_failures(u64::from(max).max(1))?;
        }
        consumers.push(served);
    }
    Served::only(consumers)
}

/// Resolves what refers to one session.
struct Resolver<'a> {
    session: &'a Session,
    id: SessionId,
    context: &'a mut Context,
}

impl Resolver<'_> {
    fn index(&self, at: At) -> Result<Index> {
        let from =
            |base: Index, off: i8| Index::new(base.get().saturating_add_signed(i64::from(off)));
        match at {
            At::Nth(n) => Ok(Index::from(u32::from(n))),
            At::FromHead(off) => from(self.session.head(), off),
            At::FromClear(off) => from(self.session.clear_index(), off),
            At::Last => Ok(Index::MAX),
        }
    }

    /// The head, and the number of the attempt that the reference means.
    fn head(&self, which: Which) -> Result<Option<(HeadRef, u64)>> {
        let mut heads = self.session.heads().into_iter();
        let nth = |list: Vec<(HeadRef, u64)>, n: u8| {
            let place = usize::from(n).checked_rem(list.len());
            place.and_then(|place| list.into_iter().nth(place))
        };
        Ok(match which {
            Which::Held(n) => {
                let held = heads.filter(|(_, state)| state.claim_holder.is_some());
                nth(held.map(|(head, state)| (head, state.attempt_count)).collect(), n)
            }
            Which::Dead(n) => {
                let dead = heads.filter(|(_, state)| state.failed_at.is_some());
                nth(dead.map(|(head, state)| (head, state.attempt_count)).collect(), n)
            }
            Which::Past(n) => {
                let claims = self.context.claims.iter().rev().filter(|claim| claim.0 == self.id);
                nth(claims.map(|(_, head, attempt)| (head.clone(), *attempt)).collect(), n)
            }
            Which::Cursor(consumer, on) => {
                let (consumer, key) = (names::consumer(consumer)?, key(on)?);
                heads
                    .find(|(head, _)| head.consumer == consumer && head.cursor == key)
                    .map(|(head, state)| (head, state.attempt_count))
            }
            Which::Made(consumer, on, at) => {
                let head = HeadRef::new(names::consumer(consumer)?, key(on)?, self.index(at)?);
                let attempt = self.session.head_state(&head).map_or(1, |s| s.attempt_count);
                Some((head, attempt))
            }
        })
    }

    fn attempt(&self, attempt: Try) -> Result<Option<(HeadRef, u64)>> {
        let head = self.head(attempt.head)?;
        Ok(head.map(|(head, n)| (head, n.saturating_add_signed(i64::from(attempt.off)))))
    }

    /// Attempts, each once, and a holder: the one who holds the first, unless another is named.
    fn attempts(
        &self,
        holder: Option<u8>,
        tries: &[Try],
    ) -> Result<Option<(Holder, Vec<AttemptRef>)>> {
        let mut attempts: Vec<AttemptRef> = Vec::new();
        for attempt in tries {
            if let Some((head, attempt)) = self.attempt(*attempt)?
                && !attempts.iter().any(|a| a.head == head)
            {
                attempts.push(AttemptRef::new(head, attempt));
            }
        }
        let Some(first) = attempts.first() else { return Ok(None) };
        let holds = self.session.head_state(&first.head).and_then(|state| state.claim_holder);
        let holder = match (holder, holds) {
            (None, Some(holds)) => holds,
            (holder, _) => names::holder(holder.unwrap_or_default())?,
        };
        Ok(Some((holder, attempts)))
    }

    fn event_id(&mut self, id: Id) -> Result<Option<EventId>> {
        Ok(match id {
            Id::Auto => None,
            Id::Pool(n) => Some(EventId::new(format!("id{n}"))?),
            Id::Of(at) => match self.session.event(self.index(at)?) {
                Some(event) => Some(event.id.clone()),
                None => self.event_id(Id::Fresh)?,
            },
            Id::Fresh => {
                self.context.fresh += 1;
                Some(EventId::new(format!("new{}", self.context.fresh))?)
            }
        })
    }

    fn event(&mut self, event: &Ev, with_cause: bool) -> Result<NewEvent> {
        let kind = names::event_type(event.kind)?;
        let mut new = NewEvent::from_json(kind, names::json(event.payload)?)?;
        if let Some(id) = self.event_id(event.id)? {
            new = new.id(id)?;
        }
        for aim in &event.targets {
            new = new.target(match aim {
                Aim::Each(consumer) => a2_core::Target::event(names::consumer(*consumer)?)?,
                Aim::Lane(consumer, lane) => {
                    a2_core::Target::lane(names::consumer(*consumer)?, names::lane(*lane)?)?
                }
            });
        }
        match event.cause {
            Some(cause) if with_cause => match self.attempt(cause)? {
                Some((head, attempt)) => Ok(new.cause(Cause::new(head, attempt))),
                None => Ok(new),
            },
            _ => Ok(new),
        }
    }

    /// Events with ids, none twice; with causes only where they may be given.
    fn events(&mut self, events: &[Ev], with_causes: bool) -> Result<Vec<NewEvent>> {
        let mut batch: Vec<NewEvent> = Vec::new();
        for event in events {
            let mut event = event.clone();
            if !with_causes && event.id == Id::Auto {
                event.id = Id::Fresh;
            }
            let event = self.event(&event, with_causes)?;
            let twice = |e: &NewEvent| e.event_id().is_some() && e.event_id() == event.event_id();
            if !batch.iter().any(twice) {
                batch.push(event);
            }
        }
        Ok(batch)
    }

    fn claim(&self, take: &Take) -> Result<ClaimAvailable> {
        let holder = names::holder(take.holder)?;
        let mut claim = ClaimAvailable::new(holder, ttl_of(take.ttl))?
            .served(served(&take.served)?)
            .run(count(take.run))?;
        if let Some(limit) = take.limit {
            claim = claim.limit(count(limit))?;
        }
        if let Some(max) = take.max_failures {
            claim = claim.max_failures(u64::from(max).max(1))?;
        }
        if let Some(through) = take.through {
            claim = claim.through(self.index(through)?);
        }
        for which in &take.exclude {
            if let Some((head, _)) = self.head(*which)? {
                claim = claim.exclude([head.cursor_ref()])?;
            }
        }
        Ok(claim)
    }

    fn snapshot(&self, snap: &Snap) -> Result<SnapshotWrite> {
        let mut pins = Vec::new();
        for pin in &snap.pins {
            pins.extend(self.head(*pin)?.map(|(head, _)| head));
        }
        SnapshotWrite::new(self.index(snap.index)?, names::json(snap.state)?).pins(pins)
    }
}
