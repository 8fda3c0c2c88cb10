//! Runs one history on the reference and on a store, and compares every answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    stretch: u32,
    /// Without one the reference runs alone.
    handles: Vec<Subject>,
}

impl Bench {
    pub(super) async fn open(factory: &dyn Factory) -> Result<Self, BoxError> {
        let clock = ManualClock::at(START);
        let first = factory.open(Setup::new(Some(clock.clone()), Isolation::Own)).await?;
        let second = match &first.another {
            Some(another) => Some(another().await?),
            None => None,
        };
        let stretch = factory.stretch();
        Ok(Self { clock, stretch, handles: [first].into_iter().chain(second).collect() })
    }

    /// The reference alone.
    #[cfg(test)]
    pub(super) fn without_store() -> Self {
        Self { clock: ManualClock::at(START), stretch: 1, handles: Vec::new() }
    }

    fn target(&self, handle: u8) -> Option<Target<'_>> {
        let place = usize::from(handle).checked_rem(self.handles.len());
        let subject = place.and_then(|place| self.handles.get(place))?;
        Some(Target {
            store: &*subject.store,
            timers: subject.timers.as_deref(),
            presence: subject.presence.as_deref(),
            deadline: Duration::from_secs(5) * self.stretch.max(1),
        })
    }

    /// Runs the steps in sessions of their own; answers what went wrong.
    pub(super) async fn run(&self, steps: &[Step]) -> Result<(), String> {
        let mut run = Run::new(self);
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

/// One history on its way.
pub(super) struct Run<'a> {
    bench: &'a Bench,
    model: Model,
    context: Context,
    /// What was asked and what had to be answered.
    #[cfg(test)]
    pub(super) asked: Vec<(Call, super::reference::Expected)>,
}

impl<'a> Run<'a> {
    pub(super) fn new(bench: &'a Bench) -> Self {
        Self {
            bench,
            model: Model::default(),
            context: fresh_context(),
            #[cfg(test)]
            asked: Vec::new(),
        }
    }

    pub(super) async fn step(&mut self, step: &Step) -> Result<(), String> {
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
        let later = |at: Timestamp, ms: i64| Timestamp::from_millis(at.as_millis() + ms);
        let to = match time {
            Time::By(ms) => Some(later(now, ms.into())),
            Time::To(n) => nth(n),
            Time::Before(n) => nth(n).map(|at| later(at, -1)),
            Time::Back(_) if self.model.has_presence() => None,
            Time::Back(ms) => Some(later(now, -i64::from(ms))),
        };
        if let Some(to) = to {
            self.bench.clock.set(to);
        }
    }

    async fn call(&mut self, handle: u8, call: &Call) -> Result<(), String> {
        let actual = match self.bench.target(handle) {
            Some(target) => match target.send(call, &self.context.prefix).await {
                Some(actual) => Some(actual),
                // What a store lacks is not asked of the reference either.
                None => return Ok(()),
            },
            None => None,
        };
        let expected = self.model.call(self.bench.clock.now(), call);
        if let Ok(reply) = &expected.answer {
            self.remember(call, reply);
        }
        #[cfg(test)]
        self.asked.push((call.clone(), expected.clone()));
        match actual.and_then(|actual| difference(&expected, actual)) {
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
            calls.push(Call::Cursors(id.clone(), 3));
            calls.push(Call::DeadLetters(id.clone(), 2));
            calls.push(Call::Timers(id.clone(), 1));
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
        let Some(Target { store, .. }) = self.bench.target(0) else { return Ok(()) };
        for id in self.sessions()? {
            let mut calls = 0;
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
