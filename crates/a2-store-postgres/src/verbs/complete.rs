//! Completing attempts.

use a2_core::{
    Appended, Cause, CompleteAttempt, Completion, Error, Result, Served, SessionId, WithClaim,
};
use tokio_postgres::Row;

use super::append::{appended, cause_text, weight};
use super::claims::claim_weight;
use super::{Locks, Op, Verb, not_found, outcome, place, refusal, sessions, times};
use crate::args::{ClaimArgs, EventArgs, HeadArgs, ServedArgs, index};
use crate::conn::Db;
use crate::rows;
use crate::statements::Sql;
use crate::tell::Teller;
use crate::values::{Param, params};

pub(crate) struct CompleteVerb;

impl Verb for CompleteVerb {
    type Request = CompleteAttempt;
    type Answer = WithClaim<Completion>;
    const DOING: &'static str = "complete_attempt";

    fn served(request: &CompleteAttempt) -> (Option<&Served>, Option<&Served>) {
        (Some(request.served_list()), request.next_claim().map(|claim| claim.served_list()))
    }

    fn weight(request: &CompleteAttempt) -> usize {
        let claimed = request.next_claim().map_or(0, claim_weight);
        200 + weight(request.returned()) + claimed
    }

    async fn call(
        db: &Db,
        sql: &Sql,
        ops: &[Op<CompleteAttempt>],
        locks: Locks,
    ) -> Result<Vec<Row>> {
        let args = CompleteArgs::new(ops)?;
        db.query(place(Self::DOING, ops), &sql.complete_attempt, &args.params(locks)).await
    }

    fn tell(teller: &Teller, session: &SessionId, done: &WithClaim<Completion>) {
        if let Completion::Completed(appended) = &done.outcome {
            teller.appended(session, appended);
        }
    }

    fn answer(op: &Op<CompleteAttempt>, rows: &[Row]) -> Result<Option<WithClaim<Completion>>> {
        let (place, request) = (place(Self::DOING, std::slice::from_ref(op)), &op.request);
        let Some((answer, status)) = outcome(rows, place)? else { return Ok(None) };
        let completion = match status {
            "completed" => {
                let cause = Cause::new(request.head().clone(), request.attempt());
                let events = appended(&answer, &op.session, request.returned(), Some(&cause))?;
                Completion::Completed(Appended::new(events, answer.pending()?, false))
            }
            "replayed" => {
                let events = rows::events(rows, place, &op.session)?;
                Completion::Completed(Appended::new(events, answer.pending()?, true))
            }
            "superseded" => Completion::Superseded,
            "not_found" => return Err(not_found(&op.session, request.head().index)),
            "through_above_head" => {
                return Err(Error::invalid("through", "must be at most the log's head"));
            }
            status => return Err(refusal(&answer, status)),
        };
        let claim = rows::claim(rows, place, &op.session)?;
        Ok(Some(WithClaim::new(completion, claim)))
    }
}

/// The arguments of a call.
pub(crate) struct CompleteArgs<'a> {
    times: Option<Vec<i64>>,
    sessions: Vec<&'a str>,
    heads: HeadArgs<'a>,
    through: Option<Vec<Option<i64>>>,
    cause: Option<Vec<Option<String>>>,
    event_end: Option<Vec<i32>>,
    events: EventArgs<'a>,
    targets: crate::args::Targets<'a>,
    served: ServedArgs<'a>,
    claims: ClaimArgs<'a>,
    holder: Option<Vec<Option<&'a str>>>,
    excluded: crate::args::Excluded<'a>,
    same: bool,
    claim_served: ServedArgs<'a>,
}

impl<'a> CompleteArgs<'a> {
    pub(crate) fn new(ops: &'a [Op<CompleteAttempt>]) -> Result<Self> {
        let (mut heads, mut events) = (HeadArgs::default(), EventArgs::default());
        let mut claims = ClaimArgs::default();
        let (mut through, mut causes) = (Vec::new(), Vec::new());
        for op in ops {
            let request = &op.request;
            heads.push(request.head(), request.attempt());
            events.push(request.returned());
            claims.push(request.next_claim());
            through.push(request.end().map(index));
            let cause = || cause_text(&Cause::new(request.head().clone(), request.attempt()));
            causes.push((!request.returned().is_empty()).then(cause).transpose()?);
        }
        let returns = !events.id.is_empty();
        let targets = events.targets();
        let excluded = claims.excluded();
        let first = ops.first().map(|op| &op.request);
        let served = first.map_or(&Served::ALL, |request| request.served_list());
        let claim = ops.iter().find_map(|op| op.request.next_claim());
        let claim_served = claim.map_or(&Served::ALL, |claim| claim.served_list());
        Ok(Self {
            times: times(ops),
            sessions: sessions(ops),
            heads,
            through: through.iter().any(Option::is_some).then_some(through),
            cause: returns.then_some(causes),
            event_end: returns.then(|| std::mem::take(&mut events.end)),
            events,
            targets,
            served: ServedArgs::new(served),
            holder: (!claims.is_empty()).then(|| std::mem::take(&mut claims.holder)),
            claims,
            excluded,
            same: served == claim_served,
            claim_served: ServedArgs::new(claim_served),
        })
    }

    /// In the function's order.
    pub(crate) fn params(&self, locks: Locks) -> Vec<Param<'_>> {
        let events = &self.events;
        let claims = &self.claims;
        let mut params: Vec<Param<'_>> = vec![locks.as_try()];
        params.extend(params![
            self.times,
            self.sessions,
            self.heads.consumer,
            self.heads.kind,
            self.heads.name,
            self.heads.idx,
            self.heads.attempt,
            self.through,
            self.cause,
            self.event_end,
            events.id,
            events.event_type,
            events.payload,
            events.size,
            self.targets.end,
            self.targets.event,
            self.targets.consumer,
            self.targets.lane,
            self.served.consumer,
            self.served.log,
            self.served.backfill,
            self.served.types_end,
            self.served.types,
            self.holder,
            claims.ttl,
            claims.limit,
            claims.max_failures,
            claims.through,
            claims.run,
            self.excluded.end,
            self.excluded.consumer,
            self.excluded.kind,
            self.excluded.name,
            self.excluded.idx,
            self.same,
            self.claim_served.consumer,
            self.claim_served.budget,
            self.claim_served.log,
            self.claim_served.types_end,
            self.claim_served.types,
        ]);
        params
    }
}
