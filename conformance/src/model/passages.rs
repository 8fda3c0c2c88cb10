//! Operations that mean something only after one another, too rarely drawn in a row by chance.

use proptest::option::weighted;
use proptest::prelude::*;

use super::generate::{consumer, name, reducer, session, step_of};
use super::op::{
    Aim, At, Declared, Entry, Ev, Id, On, Op, Serves, Snap, Step, Take, Time, Try, Which,
};

/// A few steps on one cursor, each of which may be missing.
pub(super) fn passage() -> BoxedStrategy<Vec<Step>> {
    let place = (session(), consumer(), name()).prop_map(|(session, consumer, name)| Place {
        session,
        consumer,
        name,
    });
    let which = prop_oneof![
        Just(Place::skipped_log as fn(&Place) -> Vec<BoxedStrategy<Op>>),
        Just(Place::timer_at_the_marker as fn(&Place) -> Vec<BoxedStrategy<Op>>),
        Just(Place::due_timers as fn(&Place) -> Vec<BoxedStrategy<Op>>),
        Just(Place::pinned_by_the_dead as fn(&Place) -> Vec<BoxedStrategy<Op>>),
        Just(Place::pins_of_the_dying as fn(&Place) -> Vec<BoxedStrategy<Op>>),
    ];
    (place, which)
        .prop_flat_map(|(place, ops)| {
            ops(&place).into_iter().map(|op| weighted(0.98, step_of(op))).collect::<Vec<_>>()
        })
        .prop_map(|steps| steps.into_iter().flatten().collect())
        .boxed()
}

/// Where it plays.
#[derive(Debug, Clone)]
struct Place {
    session: u8,
    consumer: u8,
    /// A lane's or a log's.
    name: u8,
}

impl Place {
    fn on(&self, on: fn(u8) -> On) -> Which {
        Which::Cursor(self.consumer, on(self.name))
    }

    /// A log completes a head, skips the next one, and is told again of the first.
    fn skipped_log(&self) -> Vec<BoxedStrategy<Op>> {
        let log = self.on(On::InLog);
        let declared = Declared { name: self.name, types: 0, backfill: true };
        let entry = Entry { consumer: self.consumer, log: Some(declared), max_failures: None };
        vec![
            self.append(Vec::new(), Serves::Only(vec![entry])),
            self.claim(),
            self.complete(log),
            self.claim(),
            self.fail(log),
            self.redrive(log, true),
            (2u8..5).prop_map(Op::Resend).boxed(),
        ]
    }

    /// A timer's origin is where the marker comes to lie.
    fn timer_at_the_marker(&self) -> Vec<BoxedStrategy<Op>> {
        let session = self.session;
        let event = event(Vec::new());
        let schedule = (0u8..3, prop_oneof![Just(0u8), Just(10)], 0i8..=2).prop_map(
            move |(key, after, off)| Op::Schedule {
                session,
                key,
                after,
                event: event.clone(),
                origin: Some(At::FromHead(off)),
            },
        );
        let clear = Op::Clear { session, if_last_index: None, cause: None, id: Id::Fresh };
        vec![
            schedule.boxed(),
            Just(clear).boxed(),
            Just(Op::Timers { session, limit: 2 }).boxed(),
            Just(Op::Advance(Time::By(10))).boxed(),
            Just(Op::FireTimers { session, served: Serves::All, limit: None }).boxed(),
        ]
    }

    /// Several timers are due, more than are fired at once.
    fn due_timers(&self) -> Vec<BoxedStrategy<Op>> {
        let session = self.session;
        let schedule = |key| {
            let event = event(Vec::new());
            let after = prop_oneof![Just(0u8), Just(5), Just(10)];
            after
                .prop_map(move |after| {
                    let (event, origin) = (event.clone(), None);
                    Op::Schedule { session, key, after, event, origin }
                })
                .boxed()
        };
        let fire = |limit| {
            Just(Op::FireTimers { session, served: Serves::All, limit: Some(limit) }).boxed()
        };
        vec![
            schedule(0),
            schedule(1),
            schedule(2),
            Just(Op::Advance(Time::By(10))).boxed(),
            fire(1),
            fire(2),
        ]
    }

    /// A dead head pins nothing, also after it is retried.
    fn pinned_by_the_dead(&self) -> Vec<BoxedStrategy<Op>> {
        let lane = self.on(On::InLane);
        vec![
            self.append(vec![Aim::Lane(self.consumer, self.name)], Serves::All),
            self.claim(),
            self.fail(lane),
            self.snapshot(0, Vec::new()),
            self.snapshot(-1, vec![lane]),
            self.older_state(),
            self.redrive(lane, false),
            self.older_state(),
        ]
    }

    /// What a head pinned is gone when it is dead.
    fn pins_of_the_dying(&self) -> Vec<BoxedStrategy<Op>> {
        let lane = self.on(On::InLane);
        vec![
            self.append(vec![Aim::Lane(self.consumer, self.name)], Serves::All),
            self.snapshot(-1, vec![lane]),
            self.snapshot(0, Vec::new()),
            self.older_state(),
            self.claim(),
            self.fail(lane),
            self.older_state(),
        ]
    }

    fn append(&self, targets: Vec<Aim>, served: Serves) -> BoxedStrategy<Op> {
        let events = vec![event(targets.clone()), event(targets)];
        let (session, expected_head, origin) = (self.session, None, None);
        Just(Op::Append { session, events, served, expected_head, origin }).boxed()
    }

    fn claim(&self) -> BoxedStrategy<Op> {
        let claim = Take {
            holder: 0,
            ttl: 50,
            limit: None,
            served: Serves::All,
            exclude: Vec::new(),
            max_failures: None,
            through: None,
            run: 1,
        };
        Just(Op::Claim { session: self.session, claim }).boxed()
    }

    fn complete(&self, head: Which) -> BoxedStrategy<Op> {
        Just(Op::Complete {
            session: self.session,
            attempt: Try { head, off: 0 },
            events: Vec::new(),
            served: Serves::All,
            through: None,
            then_claim: None,
        })
        .boxed()
    }

    fn fail(&self, head: Which) -> BoxedStrategy<Op> {
        Just(Op::Fail {
            session: self.session,
            attempt: Try { head, off: 0 },
            error: 0,
            max_failures: Some(1),
            retry_after: 0,
            then_claim: None,
        })
        .boxed()
    }

    fn redrive(&self, head: Which, skip: bool) -> BoxedStrategy<Op> {
        Just(Op::Redrive { session: self.session, head, skip, served: Serves::All }).boxed()
    }

    fn snapshot(&self, from_head: i8, pins: Vec<Which>) -> BoxedStrategy<Op> {
        let session = self.session;
        let snap = Snap { index: At::FromHead(from_head), state: 0, pins };
        reducer()
            .prop_map(move |reducer| Op::PutSnapshots {
                session,
                reducer,
                writes: vec![snap.clone()],
            })
            .boxed()
    }

    fn older_state(&self) -> BoxedStrategy<Op> {
        let session = self.session;
        reducer()
            .prop_map(move |reducer| Op::ReadState {
                session,
                reducer,
                through: None,
                snapshot_through: Some(At::FromHead(-1)),
            })
            .boxed()
    }
}

fn event(targets: Vec<Aim>) -> Ev {
    Ev { id: Id::Fresh, kind: 0, payload: 0, targets, cause: None }
}
