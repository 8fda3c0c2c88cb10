//! Failing attempts.

use std::borrow::Cow;

use a2_core::{FailAttempt, Failure, Result, Served, WithClaim};
use tokio_postgres::Row;

use super::claims::claim_weight;
use super::{Locks, Op, Verb, not_found, outcome, place, sessions, times};
use crate::args::{ClaimArgs, HeadArgs, ServedArgs};
use crate::conn::Db;
use crate::rows::{self, column};
use crate::statements::Sql;
use crate::values::{escape, int, params};

pub(crate) struct FailVerb;

impl Verb for FailVerb {
    type Request = FailAttempt;
    type Answer = WithClaim<Failure>;
    const DOING: &'static str = "fail_attempt";

    fn served(request: &FailAttempt) -> (Option<&Served>, Option<&Served>) {
        (None, request.next_claim().map(|claim| claim.served_list()))
    }

    fn weight(request: &FailAttempt) -> usize {
        200 + request.error().len() + request.next_claim().map_or(0, claim_weight)
    }

    async fn call(db: &Db, sql: &Sql, ops: &[Op<FailAttempt>], locks: Locks) -> Result<Vec<Row>> {
        let (mut heads, mut claims) = (HeadArgs::default(), ClaimArgs::default());
        for op in ops {
            heads.push(op.request.head(), op.request.attempt());
            claims.push(op.request.next_claim());
        }
        let requests = || ops.iter().map(|op| &op.request);
        let errors: Vec<Cow<'_, str>> = requests().map(|request| escape(request.error())).collect();
        let errors: Vec<&str> = errors.iter().map(|error| &**error).collect();
        let budgets: Vec<Option<i64>> =
            requests().map(|request| request.budget().map(int)).collect();
        let holds: Vec<i64> = requests().map(|request| int(request.hold().as_millis())).collect();
        let excluded = claims.excluded();
        let claim = requests().find_map(FailAttempt::next_claim);
        let served = ServedArgs::new(claim.map_or(&Served::ALL, |claim| claim.served_list()));
        let holder = (!claims.is_empty()).then(|| std::mem::take(&mut claims.holder));
        let params = params![
            locks == Locks::Try,
            times(ops),
            sessions(ops),
            heads.consumer,
            heads.kind,
            heads.name,
            heads.idx,
            heads.attempt,
            errors,
            budgets,
            holds,
            holder,
            claims.ttl,
            claims.limit,
            claims.max_failures,
            claims.through,
            claims.run,
            excluded.end,
            excluded.consumer,
            excluded.kind,
            excluded.name,
            excluded.idx,
            served.consumer,
            served.budget,
            served.log,
            served.types_end,
            served.types,
        ];
        db.query(place(Self::DOING, ops), &sql.fail_attempt, &params).await
    }

    fn answer(op: &Op<FailAttempt>, rows: &[Row]) -> Result<Option<WithClaim<Failure>>> {
        let place = place(Self::DOING, std::slice::from_ref(op));
        let Some((answer, status)) = outcome(rows, place)? else { return Ok(None) };
        let failure = match status {
            "failed" => Failure::Failed { failure_count: answer.number(column::N)? },
            "dead" => Failure::DeadLettered { failure_count: answer.number(column::N)? },
            "superseded" => Failure::Superseded,
            "not_found" => return Err(not_found(&op.session, op.request.head().index)),
            status => return Err(answer.unknown_status(status)),
        };
        Ok(Some(WithClaim::new(failure, rows::claim(rows, place, &op.session)?)))
    }
}
