//! Random histories: small domains, indexes near the places that rules speak of, short leases.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::names::SESSIONS;
use super::op::{
    Aim, At, Declared, Entry, Ev, Id, On, Op, Serves, Snap, Step, Take, Time, Try, Which,
};
use super::passages::passage;

/// A history of 20 to 60 operations or passages. Each may be there or not, so that shrinking leaves
/// fewer.
pub(super) fn history() -> BoxedStrategy<Vec<Step>> {
    let some = prop_oneof![24 => step_of(op()).prop_map(|step| vec![step]), 1 => passage()];
    let steps = vec(weighted(0.99, some), 20..=60);
    steps.prop_map(|steps| steps.into_iter().flatten().flatten().collect()).boxed()
}

/// An operation as it is sent: on one of two handles, sometimes twice.
pub(super) fn step_of(op: BoxedStrategy<Op>) -> impl Strategy<Value = Step> {
    let handle = prop_oneof![3 => Just(0u8), 1 => Just(1u8)];
    let times = prop_oneof![7 => Just(1u8), 1 => Just(2u8)];
    (handle, times, op).prop_map(|(handle, times, op)| Step { handle, times, op })
}

/// Most operations meet in one session.
pub(super) fn session() -> BoxedStrategy<u8> {
    prop_oneof![9 => Just(0u8), 1 => 1..SESSIONS].boxed()
}

fn op() -> BoxedStrategy<Op> {
    Union::new_weighted(vec![
        (34, append()),
        (26, claim()),
        (24, complete()),
        (13, fail()),
        (12, advance()),
        (5, renew()),
        (4, release()),
        (10, redrive()),
        (6, wake_log()),
        (4, clear()),
        (8, put_snapshots()),
        (6, read_state()),
        (7, schedule()),
        (5, fire_timers()),
        (6, presence()),
        (5, (0u8..10).prop_map(Op::Resend).boxed()),
        (7, listings()),
        (2, session().prop_map(|session| Op::Reclaim { session }).boxed()),
    ])
    .boxed()
}

fn advance() -> BoxedStrategy<Op> {
    prop_oneof![
        4 => prop_oneof![Just(0u8), Just(1), Just(5), Just(10), Just(20), Just(50)].prop_map(Time::By),
        3 => (0u8..4).prop_map(Time::To),
        2 => (0u8..4).prop_map(Time::Before),
        1 => prop_oneof![Just(1u8), Just(10), Just(40)].prop_map(Time::Back),
    ]
    .prop_map(Op::Advance)
    .boxed()
}

fn index() -> BoxedStrategy<At> {
    prop_oneof![
        6 => (-4i8..=1).prop_map(At::FromHead),
        4 => (-1i8..=2).prop_map(At::FromClear),
        2 => (0u8..8).prop_map(At::Nth),
        1 => Just(At::Last),
    ]
    .boxed()
}

/// Of three names the first is the usual one, so that operations meet on the same cursors.
pub(super) fn consumer() -> BoxedStrategy<u8> {
    prop_oneof![4 => Just(0u8), 2 => Just(1u8), 1 => Just(2u8)].boxed()
}

/// A lane or a log, of two.
pub(super) fn name() -> BoxedStrategy<u8> {
    prop_oneof![3 => Just(0u8), 1 => Just(1u8)].boxed()
}

/// Mostly where a clear refuses it or does not.
fn origin() -> BoxedStrategy<At> {
    prop_oneof![4 => (-2i8..=1).prop_map(At::FromClear), 1 => Just(At::FromHead(1)), 1 => index()]
        .boxed()
}

fn id() -> BoxedStrategy<Id> {
    prop_oneof![
        14 => Just(Id::Fresh),
        4 => (0u8..5).prop_map(Id::Pool),
        2 => index().prop_map(Id::Of),
        2 => (-2i8..=0).prop_map(|off| Id::Of(At::FromClear(off))),
        1 => Just(Id::Auto),
    ]
    .boxed()
}

fn head() -> BoxedStrategy<Which> {
    let made = (consumer(), on(), index()).prop_map(|(c, on, at)| Which::Made(c, on, at));
    prop_oneof![
        8 => (0u8..4).prop_map(Which::Held),
        4 => (0u8..4).prop_map(Which::Past),
        1 => (0u8..2).prop_map(Which::Dead),
        2 => made,
        2 => cursor(),
    ]
    .boxed()
}

/// The head of a cursor, wherever that stands.
fn cursor() -> impl Strategy<Value = Which> {
    (consumer(), on()).prop_map(|(consumer, on)| Which::Cursor(consumer, on))
}

/// A cursor's head as it may stand there unclaimed: what pins and exclusions name.
fn any_head() -> BoxedStrategy<Which> {
    let made = (consumer(), on(), index()).prop_map(|(c, on, at)| Which::Made(c, on, at));
    prop_oneof![
        5 => (0u8..4).prop_map(Which::Held),
        5 => made,
        1 => Just(Which::Past(0)),
        1 => (0u8..2).prop_map(Which::Dead),
    ]
    .boxed()
}

fn on() -> impl Strategy<Value = On> {
    prop_oneof![Just(On::Event), name().prop_map(On::InLane), name().prop_map(On::InLog),]
}

fn attempt() -> BoxedStrategy<Try> {
    let off = prop_oneof![12 => Just(0i8), 1 => Just(-1i8), 1 => Just(1i8)];
    (head(), off).prop_map(|(head, off)| Try { head, off }).boxed()
}

fn targets() -> BoxedStrategy<Vec<Aim>> {
    let aim = prop_oneof![
        2 => consumer().prop_map(Aim::Each),
        3 => (consumer(), name()).prop_map(|(consumer, lane)| Aim::Lane(consumer, lane)),
    ];
    prop_oneof![2 => Just(Vec::new()), 5 => vec(aim, 1..=3)].boxed()
}

fn event() -> BoxedStrategy<Ev> {
    event_with(Just(None).boxed())
}

fn event_with(cause: BoxedStrategy<Option<Try>>) -> BoxedStrategy<Ev> {
    (id(), 0u8..3, 0u8..6, targets(), cause)
        .prop_map(|(id, kind, payload, targets, cause)| Ev { id, kind, payload, targets, cause })
        .boxed()
}

fn declared() -> impl Strategy<Value = Declared> {
    let types = prop_oneof![2 => Just(0u8), 3 => 1u8..8];
    (name(), types, any::<bool>()).prop_map(|(name, types, backfill)| Declared {
        name,
        types,
        backfill,
    })
}

fn serves() -> BoxedStrategy<Serves> {
    serves_or_all(3, 3)
}

/// What serves all declares no log.
fn serves_or_all(all: u32, only: u32) -> BoxedStrategy<Serves> {
    let entry = (consumer(), weighted(0.7, declared()), weighted(0.3, 1u8..3))
        .prop_map(|(consumer, log, max_failures)| Entry { consumer, log, max_failures });
    let entries = prop_oneof![1 => Just(Vec::new()), 9 => vec(entry, 1..=3)];
    prop_oneof![all => Just(Serves::All), only => entries.prop_map(Serves::Only)].boxed()
}

fn take() -> BoxedStrategy<Take> {
    let ttl = prop_oneof![Just(1u8), Just(10), Just(20), Just(50)];
    let limit = weighted(0.5, 1u8..3);
    let max_failures = weighted(0.5, 1u8..4);
    let run = prop_oneof![2 => Just(1u8), 1 => 2u8..5];
    let exclude = prop_oneof![3 => Just(Vec::new()), 1 => vec(any_head(), 1..=2)];
    (0u8..2, ttl, limit, serves_or_all(6, 3), exclude, max_failures, weighted(0.1, index()), run)
        .prop_map(|(holder, ttl, limit, served, exclude, max_failures, through, run)| Take {
            holder,
            ttl,
            limit,
            served,
            exclude,
            max_failures,
            through,
            run,
        })
        .boxed()
}

fn append() -> BoxedStrategy<Op> {
    let event = event_with(weighted(0.06, attempt()).boxed());
    // Events that are stored, in another order.
    let stored = (-3i8..=0, event_with(Just(None).boxed()))
        .prop_map(|(off, event)| Ev { id: Id::Of(At::FromHead(off)), ..event });
    let events = prop_oneof![
        1 => Just(Vec::new()),
        12 => vec(event, 1..=4),
        1 => vec(stored, 1..=3),
    ];
    (session(), events, serves_or_all(3, 7), weighted(0.06, index()), weighted(0.1, origin()))
        .prop_map(|(session, events, served, expected_head, origin)| Op::Append {
            session,
            events,
            served,
            expected_head,
            origin,
        })
        .boxed()
}

fn claim() -> BoxedStrategy<Op> {
    (session(), take()).prop_map(|(session, claim)| Op::Claim { session, claim }).boxed()
}

fn complete() -> BoxedStrategy<Op> {
    let through = weighted(0.5, (-2i8..=1).prop_map(At::FromHead));
    (session(), attempt(), vec(event(), 0..=2), serves(), through, weighted(0.3, take()))
        .prop_map(|(session, attempt, events, served, through, then_claim)| Op::Complete {
            session,
            attempt,
            events,
            served,
            through,
            then_claim,
        })
        .boxed()
}

fn fail() -> BoxedStrategy<Op> {
    let retry_after = prop_oneof![2 => Just(0u8), 1 => Just(10u8), 1 => Just(30u8)];
    let max_failures = weighted(0.6, 1u8..3);
    (session(), attempt(), 0u8..3, max_failures, retry_after, weighted(0.25, take()))
        .prop_map(|(session, attempt, error, max_failures, retry_after, then_claim)| Op::Fail {
            session,
            attempt,
            error,
            max_failures,
            retry_after,
            then_claim,
        })
        .boxed()
}

fn renew() -> BoxedStrategy<Op> {
    let ttl = prop_oneof![Just(1u8), Just(20), Just(60)];
    (session(), weighted(0.2, 0u8..2), vec(attempt(), 1..=3), ttl)
        .prop_map(|(session, holder, claims, ttl)| Op::Renew { session, holder, claims, ttl })
        .boxed()
}

fn release() -> BoxedStrategy<Op> {
    (session(), weighted(0.2, 0u8..2), vec(attempt(), 1..=3))
        .prop_map(|(session, holder, claims)| Op::Release { session, holder, claims })
        .boxed()
}

fn redrive() -> BoxedStrategy<Op> {
    let which = prop_oneof![5 => (0u8..3).prop_map(Which::Dead), 1 => head()];
    (session(), which, any::<bool>(), serves())
        .prop_map(|(session, head, skip, served)| Op::Redrive { session, head, skip, served })
        .boxed()
}

fn wake_log() -> BoxedStrategy<Op> {
    (session(), consumer(), declared())
        .prop_map(|(session, consumer, log)| Op::WakeLog { session, consumer, log })
        .boxed()
}

fn clear() -> BoxedStrategy<Op> {
    let last = prop_oneof![
        3 => (-1i8..=0).prop_map(At::FromHead),
        1 => Just(At::FromClear(-1)),
        1 => index(),
    ];
    (session(), weighted(0.3, last), weighted(0.2, attempt()), id())
        .prop_map(|(session, if_last_index, cause, id)| Op::Clear {
            session,
            if_last_index,
            cause,
            id,
        })
        .boxed()
}

fn put_snapshots() -> BoxedStrategy<Op> {
    let index = prop_oneof![
        8 => (-4i8..=0).prop_map(At::FromHead),
        2 => (-1i8..=1).prop_map(At::FromClear),
        1 => index(),
    ];
    let snap = (index, 0u8..6, vec(any_head(), 0..=2)).prop_map(|(index, state, pins)| Snap {
        index,
        state,
        pins,
    });
    (session(), reducer(), vec(snap, 1..=3))
        .prop_map(|(session, reducer, writes)| Op::PutSnapshots { session, reducer, writes })
        .boxed()
}

fn schedule() -> BoxedStrategy<Op> {
    let after = prop_oneof![2 => Just(0u8), 1 => Just(5), 1 => Just(10), 1 => Just(30)];
    let origin = weighted(0.4, origin());
    prop_oneof![
        6 => (session(), 0u8..3, after, event(), origin).prop_map(
            |(session, key, after, event, origin)| Op::Schedule { session, key, after, event, origin }
        ),
        1 => (session(), 0u8..3).prop_map(|(session, key)| Op::Unschedule { session, key }),
    ]
    .boxed()
}

fn fire_timers() -> BoxedStrategy<Op> {
    (session(), serves(), weighted(0.4, 1u8..3))
        .prop_map(|(session, served, limit)| Op::FireTimers { session, served, limit })
        .boxed()
}

pub(super) fn reducer() -> BoxedStrategy<u8> {
    prop_oneof![4 => Just(0u8), 1 => Just(1u8)].boxed()
}

fn read_state() -> BoxedStrategy<Op> {
    let cap = || weighted(0.5, (-5i8..=0).prop_map(At::FromHead));
    let caps = prop_oneof![
        4 => (Just(None), cap()),
        2 => (cap(), cap()),
        1 => (weighted(0.8, index()), weighted(0.8, index())),
    ];
    (session(), reducer(), caps)
        .prop_map(|(session, reducer, (through, snapshot_through))| Op::ReadState {
            session,
            reducer,
            through,
            snapshot_through,
        })
        .boxed()
}

fn presence() -> BoxedStrategy<Op> {
    let fields = vec((0u8..2, weighted(0.7, 0u8..2)), 1..=2);
    let ttl = prop_oneof![Just(10u8), Just(100)];
    let set = (0u8..2, fields, weighted(0.5, 0u8..3), ttl).prop_map(
        |(participant, fields, seen, ttl)| Op::SetPresence { participant, fields, seen, ttl },
    );
    prop_oneof![3 => set, 1 => Just(Op::ReadPresence)].boxed()
}

fn listings() -> BoxedStrategy<Op> {
    let read = (session(), index(), weighted(0.4, index()), weighted(0.4, 1u8..4))
        .prop_map(|(session, after, through, limit)| Op::Read { session, after, through, limit });
    let small = || (session(), 1u8..4);
    prop_oneof![
        4 => read,
        2 => (session(), index()).prop_map(|(session, start_after)| Op::Stream { session, start_after }),
        2 => small().prop_map(|(session, limit)| Op::DeadLetters { session, limit }),
        3 => small().prop_map(|(session, limit)| Op::Cursors { session, limit }),
        1 => small().prop_map(|(session, limit)| Op::Timers { session, limit }),
        1 => (5u8..20).prop_map(|limit| Op::Sessions { limit }),
        3 => (serves(), 5u8..20).prop_map(|(served, limit)| Op::Pending { served, limit }),
    ]
    .boxed()
}
