//! Runs one history on the reference and on a store, and compares every answer.

use std::sync::atomic::{AtomicU64, Ordering};

use a2_core::{
    Claim, Clock, EventId, Index, ManualClock, ReadRange, ReadState, Served, SessionId, Timestamp,
};

use super::call::{Call, Reply, Target};
use super::compare::difference;
use super::names;
use super::op::{Op, Step, Time};
use super::reference::Model;
use super::resolve::{self, Context};
use crate::cx::{START, chain};
use crate::{BoxError, Factory, Isolation, Setup, Subject};

/// A store under test with its clock and two handles.
pub(super) struct Bench {
    clock: ManualClock,
    first: Subject,
    second: Option<Subject>,
}

impl Bench {
    pub(super) async fn open(factory: &dyn Factory) -> Result<Self, BoxError> {
        let clock = ManualClock::at(START);
        let first = factory.open(Setup::new(Some(clock.clone()), Isolation::Own)).await?;
        let second = match &first.another {
            Some(another) => Some(another().await?),
            None => None,
        };
        Ok(Self { clock, first, second })
    }

    fn target(&self, handle: u8) -> Target<'_> {
        let subject = match &self.second {
            Some(second) if handle % 2 == 1 => second,
            _ => &self.first,
        };
        Target {
            store: &*subject.store,
            timers: subject.timers.as_deref(),
            presence: subject.presence.as_deref(),
        }
    }

    /// Runs the steps in sessions of their own; answers what went wrong.
    pub(super) async fn run(&self, steps: &[Step]) -> Result<(), String> {
        let mut run = Run { bench: self, model: Model::default(), context: fresh_context() };
        for (n, step) in steps.iter().enumerate() {
            run.step(step).await.map_err(|wrong| format!("step {n}, {step:?}:\n{wrong}"))?;
        }
        run.compare_all().await.map_err(|wrong| format!("at the end, {wrong}"))?;
        run.reclaim_all().await.map_err(|wrong| format!("reclaim at the end, {wrong}"))?;
        run.compare_all().await.map_err(|wrong| format!("after reclaim at the end, {wrong}"))
    }
}

/// No two histories share a session, also on a server that others use.
fn fresh_context() -> Context {
    static HISTORIES: AtomicU64 = AtomicU64::new(0);
    let n = HISTORIES.fetch_add(1, Ordering::Relaxed);
    let prefix = format!("model-{n}-{}-", EventId::generate());
    Context { prefix, claims: Vec::new(), writes: Vec::new(), fresh: 0 }
}

struct Run<'a> {
    bench: &'a Bench,
    model: Model,
    context: Context,
}

impl Run<'_> {
    async fn step(&mut self, step: &Step) -> Result<(), String> {
        if let Op::Advance(time) = &step.op {
            self.advance(*time);
            return Ok(());
        }
        let call = resolve::call(&step.op, &mut self.model, &mut self.context);
        let call = call.map_err(|error| format!("  the request cannot be built: {error}"))?;
        let Some(call) = call else { return Ok(()) };
        for _ in 0..step.times.max(1) {
            self.call(step.handle, &call).await?;
        }
        Ok(())
    }

    fn advance(&self, time: Time) {
        let now = self.bench.clock.now();
        let nth = |n: u8| {
            let deadlines = self.model.deadlines(now);
            let place = usize::from(n).checked_rem(deadlines.len());
            place.and_then(|place| deadlines.get(place).copied())
        };
        let to = match time {
            Time::By(ms) => Some(Timestamp::from_millis(now.as_millis() + i64::from(ms))),
            Time::To(n) => nth(n),
            Time::Before(n) => nth(n).map(|at| Timestamp::from_millis(at.as_millis() - 1)),
        };
        if let Some(to) = to.filter(|to| *to > now) {
            self.bench.clock.set(to);
        }
    }

    async fn call(&mut self, handle: u8, call: &Call) -> Result<(), String> {
        let target = self.bench.target(handle);
        let sent = target.send(call, &self.context.prefix).await;
        // What a store lacks is not asked of the reference either.
        let Some(actual) = sent else { return Ok(()) };
        let expected = self.model.call(self.bench.clock.now(), call);
        if let Ok(reply) = &expected.answer {
            self.remember(call, reply);
        }
        match difference(&expected, actual) {
            Some(difference) => Err(format!("  {call:?}\n{difference}")),
            None => Ok(()),
        }
    }

    fn remember(&mut self, call: &Call, reply: &Reply) {
        if call.is_write() {
            self.context.writes.push(call.clone());
        }
        let claim = match reply {
            Reply::Claim(claim) => Some(claim),
            Reply::Completed(completed) => completed.claim.as_ref(),
            Reply::Failed(failed) => failed.claim.as_ref(),
            _ => None,
        };
        if let (Some(Claim::Claimed(claimed)), Some(session)) = (claim, call.session()) {
            for head in &claimed.heads {
                self.context.claims.push((session.clone(), head.head.clone(), head.attempt()));
            }
        }
    }

    fn sessions(&self) -> Result<Vec<SessionId>, String> {
        let names = (0..names::SESSIONS).map(|n| names::session(&self.context.prefix, n));
        names.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    /// Everything that can be read is as the reference has it, on both handles.
    async fn compare_all(&mut self) -> Result<(), String> {
        let invalid = |error: a2_core::Error| error.to_string();
        let mut calls = Vec::new();
        for id in self.sessions()? {
            calls.push(Call::Read(id.clone(), ReadRange::after(Index::ZERO)));
            calls.push(Call::Cursors(id.clone(), 100));
            calls.push(Call::DeadLetters(id.clone(), 100));
            calls.push(Call::Timers(id.clone(), 100));
            for n in 0..2 {
                let reducer = names::reducer(n).map_err(invalid)?;
                calls.push(Call::ReadState(id.clone(), reducer, ReadState::latest()));
            }
        }
        calls.push(Call::Sessions(100));
        calls.push(Call::Pending(Served::ALL, 100));
        calls.push(Call::ReadPresence(names::namespace(&self.context.prefix).map_err(invalid)?));
        for (n, call) in calls.iter().enumerate() {
            self.call(u8::from(n % 2 == 1), call).await?;
        }
        Ok(())
    }

    /// Reclaim comes to its end in every session.
    async fn reclaim_all(&mut self) -> Result<(), String> {
        for id in self.sessions()? {
            let mut calls = 0;
            let store = self.bench.target(0).store;
            while !store.reclaim(&id).await.map_err(|error| chain(&error.into()))?.done {
                calls += 1;
                if calls > 1_000 {
                    return Err(format!("{id:?} is not done after {calls} calls"));
                }
            }
        }
        Ok(())
    }
}
