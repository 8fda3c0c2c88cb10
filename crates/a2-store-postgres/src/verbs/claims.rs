//! Claiming, renewing, releasing.

use a2_core::{
    AttemptRef, Claim, ClaimAvailable, ReleaseClaims, Released, RenewClaims, Renewal, Result,
    Served, SessionId,
};
use tokio_postgres::Row;

use super::{Locks, Op, Verb, outcome, place, sessions, times};
use crate::args::{ClaimArgs, HeadArgs, ServedArgs};
use crate::conn::Db;
use crate::rows::{self, Answer, column};
use crate::statements::Sql;
use crate::tell::Teller;
use crate::values::{end, int, params};

pub(crate) struct ClaimVerb;

impl Verb for ClaimVerb {
    type Request = ClaimAvailable;
    type Answer = Claim;
    const DOING: &'static str = "claim_available";

    fn served(request: &ClaimAvailable) -> (Option<&Served>, Option<&Served>) {
        (None, Some(request.served_list()))
    }

    fn weight(request: &ClaimAvailable) -> usize {
        claim_weight(request)
    }

    async fn call(
        db: &Db,
        sql: &Sql,
        ops: &[Op<ClaimAvailable>],
        locks: Locks,
    ) -> Result<Vec<Row>> {
        let mut claims = ClaimArgs::default();
        ops.iter().for_each(|op| claims.push(Some(&op.request)));
        let excluded = claims.excluded();
        let served =
            ServedArgs::new(ops.first().map_or(&Served::ALL, |op| op.request.served_list()));
        let params = params![
            locks == Locks::Try,
            times(ops),
            sessions(ops),
            claims.holder,
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
        db.query(place(Self::DOING, ops), &sql.claim_available, &params).await
    }

    fn answer(op: &Op<ClaimAvailable>, rows: &[Row]) -> Result<Option<Claim>> {
        let place = place(Self::DOING, std::slice::from_ref(op));
        if outcome(rows, place)?.is_none() {
            return Ok(None);
        }
        let claim = rows::claim(rows, place, &op.session)?;
        claim.map(Some).ok_or_else(|| place.unreadable("the claim has no answer"))
    }
}

/// What a claim may answer, about.
pub(super) fn claim_weight(request: &ClaimAvailable) -> usize {
    4 * 1024 * request.max_heads() * request.max_run().min(16) + 50 * request.excluded().len()
}

/// The claims that a holder names, of several requests.
#[derive(Default)]
struct Named<'a> {
    holder: Vec<&'a str>,
    end: Vec<i32>,
    heads: HeadArgs<'a>,
}

impl<'a> Named<'a> {
    fn push(&mut self, holder: &'a str, claims: &'a [AttemptRef]) {
        self.holder.push(holder);
        claims.iter().for_each(|claim| self.heads.push(&claim.head, claim.attempt));
        self.end.push(end(self.heads.consumer.len()));
    }
}

pub(crate) struct RenewVerb;

impl Verb for RenewVerb {
    type Request = RenewClaims;
    type Answer = Renewal;
    const DOING: &'static str = "renew_claims";

    fn served(_: &RenewClaims) -> (Option<&Served>, Option<&Served>) {
        (None, None)
    }

    fn weight(request: &RenewClaims) -> usize {
        200 * request.claims().len()
    }

    async fn call(db: &Db, sql: &Sql, ops: &[Op<RenewClaims>], locks: Locks) -> Result<Vec<Row>> {
        let mut named = Named::default();
        let requests = || ops.iter().map(|op| &op.request);
        requests().for_each(|request| named.push(request.holder().as_str(), request.claims()));
        let ttl: Vec<i64> = requests().map(|request| int(request.ttl().as_millis())).collect();
        let Named { holder, end, heads } = named;
        let params = params![
            locks == Locks::Try,
            times(ops),
            sessions(ops),
            holder,
            ttl,
            end,
            heads.consumer,
            heads.kind,
            heads.name,
            heads.idx,
            heads.attempt,
        ];
        db.query(place(Self::DOING, ops), &sql.renew_claims, &params).await
    }

    fn answer(op: &Op<RenewClaims>, rows: &[Row]) -> Result<Option<Renewal>> {
        let Some(told) = told(op, Self::DOING, op.request.claims(), rows)? else { return Ok(None) };
        let (mut renewed, mut superseded) = (Vec::new(), Vec::new());
        for (claim, answer, status) in told {
            match status {
                "renewed" => renewed.push(claim.clone()),
                "superseded" => superseded.push(claim.clone()),
                status => return Err(answer.unknown_status(status)),
            }
        }
        Ok(Some(Renewal::new(renewed, superseded)))
    }
}

pub(crate) struct ReleaseVerb;

impl Verb for ReleaseVerb {
    type Request = ReleaseClaims;
    type Answer = Released;
    const DOING: &'static str = "release_claims";

    fn served(_: &ReleaseClaims) -> (Option<&Served>, Option<&Served>) {
        (None, None)
    }

    fn weight(request: &ReleaseClaims) -> usize {
        200 * request.claims().len()
    }

    async fn call(db: &Db, sql: &Sql, ops: &[Op<ReleaseClaims>], locks: Locks) -> Result<Vec<Row>> {
        let mut named = Named::default();
        for op in ops {
            named.push(op.request.holder().as_str(), op.request.claims());
        }
        let Named { holder, end, heads } = named;
        let params = params![
            locks == Locks::Try,
            sessions(ops),
            holder,
            end,
            heads.consumer,
            heads.kind,
            heads.name,
            heads.idx,
            heads.attempt,
        ];
        db.query(place(Self::DOING, ops), &sql.release_claims, &params).await
    }

    fn tell(teller: &Teller, session: &SessionId, done: &Released) {
        if !done.released.is_empty() {
            teller.hint(session);
        }
    }

    fn answer(op: &Op<ReleaseClaims>, rows: &[Row]) -> Result<Option<Released>> {
        let Some(told) = told(op, Self::DOING, op.request.claims(), rows)? else { return Ok(None) };
        let mut released = Vec::new();
        for (claim, answer, status) in told {
            match status {
                "released" => released.push(claim.clone()),
                status => return Err(answer.unknown_status(status)),
            }
        }
        Ok(Some(Released::new(released)))
    }
}

/// The claims that the answer says something of, with what it says.
type Told<'a> = Vec<(&'a AttemptRef, Answer<'a>, &'a str)>;

fn told<'a, R>(
    op: &'a Op<R>,
    doing: &'static str,
    claims: &'a [AttemptRef],
    rows: &'a [Row],
) -> Result<Option<Told<'a>>> {
    let place = place(doing, std::slice::from_ref(op));
    if outcome(rows, place)?.is_none() {
        return Ok(None);
    }
    let mut told = Vec::new();
    for row in rows.iter().skip(1) {
        let answer = Answer::new(row, place);
        let number = usize::try_from(answer.number(column::N)?).ok().and_then(|n| n.checked_sub(1));
        let claim = number.and_then(|number| claims.get(number));
        let claim = claim.ok_or_else(|| place.unreadable("a claim was not asked for"))?;
        told.push((claim, answer, answer.status()?));
    }
    Ok(Some(told))
}
