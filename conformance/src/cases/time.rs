//! Time and durations: one clock judges, durations round up and are clamped.

use std::time::Duration;

use a2_core::{
    ClaimAvailable, Cursor, FireTimers, Page, PresenceUpdate, RenewClaims, Schedule, SessionId,
    StoreExt, Timestamp,
};

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "time.created_at.the_clock" => created_at_the_clock: rules(R3, R13, R32);
    "time.created_at.steps_back" => created_at_steps_back: rules(R35);
    "time.created_at.real" => created_at_real: rules(R32), live;
    "time.expiry.exactly_now" => expiry_exactly_now: rules(R24, R33);
    "time.expiry.hold_exactly_now" => expiry_hold_exactly_now: rules(R24, R33);
    "time.expiry.real" => expiry_real: rules(R32), live;
    "time.clock.set_back_under_a_lease" => set_back_under_a_lease: rules(R32);
    "time.clock.far_ahead" => far_ahead: rules(R32, R34);
    "time.clock.of_the_caller" => of_the_caller: rules(R32, R34, F10);
    "time.clock.of_the_caller.timers" => of_the_caller_timers: rules(R32, R34), needs(Timers);
    "time.durations.zero_ttl" => zero_ttl: rules(R13, R14, F12);
    "time.durations.round_up" => round_up: rules(R13, F12);
    "time.durations.clamped" => clamped: rules(R13, F12);
    "time.durations.hold_of_nothing" => hold_of_nothing: rules(R56, F12);
    "time.durations.hold_clamped" => hold_clamped: rules(R13, F12);
    "time.durations.timer" => timer_durations: rules(R13, F12), needs(Timers);
];

const YEAR: i64 = 31_536_000_000;
const HUGE: [Duration; 3] =
    [Duration::MAX, Duration::from_millis(u64::MAX), Duration::from_millis(i64::MAX as u64)];

async fn one(cx: &Cx, name: &str) -> SessionId {
    let s = cx.session(name);
    append(cx, &s, [ev("a").target(to_event("c"))]).await;
    s
}

async fn cursor(cx: &Cx, s: &SessionId) -> Cursor {
    cx.store().all_cursors(s).await.unwrap().remove(0)
}

async fn expires_at(cx: &Cx, s: &SessionId) -> i64 {
    cursor(cx, s).await.state.claim_expires_at.unwrap().as_millis()
}

async fn created_at_the_clock(cx: Cx) {
    let s = cx.session("clock");
    append(&cx, &s, [ev("a")]).await;
    // Parts of a millisecond round down.
    cx.pass(Duration::from_micros(1_999)).await;
    append(&cx, &s, [ev("b")]).await;
    cx.clock().set(Timestamp::from_millis(1_800_000_000_000));
    append(&cx, &s, [ev("c")]).await;
    let times: Vec<_> = log(&cx, &s).await.iter().map(|e| e.created_at.as_millis()).collect();
    assert_eq!(times, [1_700_000_000_000, 1_700_000_000_001, 1_800_000_000_000]);
}

async fn created_at_steps_back(cx: Cx) {
    let s = cx.session("back");
    append(&cx, &s, [ev("a")]).await;
    cx.clock().set(Timestamp::from_millis(1_600_000_000_000));
    append(&cx, &s, [ev("b")]).await;
    let stored = log(&cx, &s).await;
    assert_eq!(ids(&stored), ["a", "b"], "the indexes are the order");
    let times: Vec<_> = stored.iter().map(|e| e.created_at.as_millis()).collect();
    assert_eq!(times, [1_700_000_000_000, 1_600_000_000_000]);
}

async fn created_at_real(cx: Cx) {
    let s = cx.session("real");
    append(&cx, &s, [ev("a")]).await;
    cx.pass(ms(20)).await;
    append(&cx, &s, [ev("b")]).await;
    let times: Vec<_> = log(&cx, &s).await.iter().map(|e| e.created_at.as_millis()).collect();
    // In milliseconds since the epoch: after 2024 and before 2100.
    assert!(times.iter().all(|ms| (1_704_067_200_000..4_102_444_800_000).contains(ms)));
}

async fn expiry_exactly_now(cx: Cx) {
    let s = one(&cx, "exact").await;
    take(&cx, &s, claim_as("first", ms(100))).await;
    cx.pass(ms(99)).await;
    let busy = expect_busy(cx.store().claim_available(&s, claim_as("second", ms(100))).await);
    assert_eq!(busy.retry_after, ms(1));
    cx.pass(ms(1)).await;
    let heads = take(&cx, &s, claim_as("second", ms(100))).await;
    assert_eq!(heads[0].attempt(), 2);
    // As for a renewal: a lease that expires now is expired.
    cx.pass(ms(100)).await;
    let renew = RenewClaims::new("second", [heads[0].attempt_ref()], ms(100)).unwrap();
    let renewal = cx.store().renew_claims(&s, renew).await.unwrap();
    assert!(renewal.renewed.is_empty() && renewal.superseded.is_empty(), "{renewal:?}");
}

async fn expiry_hold_exactly_now(cx: Cx) {
    let s = one(&cx, "hold").await;
    let head = claim_one(&cx, &s, "c").await;
    let held = fail(&head).retry_after(ms(100));
    let _ = cx.store().fail_attempt(&s, held).await.unwrap();
    cx.pass(ms(99)).await;
    let busy = expect_busy(cx.store().claim_available(&s, claim()).await);
    assert_eq!(busy.retry_after, ms(1));
    cx.pass(ms(1)).await;
    assert_eq!(claim_one(&cx, &s, "c").await.attempt(), 2);
}

async fn expiry_real(cx: Cx) {
    let s = one(&cx, "real").await;
    take(&cx, &s, claim_as("first", ms(100))).await;
    cx.pass(ms(100)).await;
    let second = take(&cx, &s, claim_as("second", secs(60))).await;
    assert_eq!(second[0].attempt(), 2);
    let busy = expect_busy(cx.store().claim_available(&s, claim_as("third", secs(60))).await);
    assert!(busy.retry_after > ms(0) && busy.retry_after <= secs(60), "{busy:?}");
}

async fn set_back_under_a_lease(cx: Cx) {
    let s = one(&cx, "set-back").await;
    take(&cx, &s, claim_as("first", ms(100))).await;
    cx.clock().set(Timestamp::from_millis(1_699_999_999_000));
    // By the one clock there is, the lease now lasts longer.
    let busy = expect_busy(cx.store().claim_available(&s, claim()).await);
    assert_eq!(busy.retry_after, ms(1_100));
    cx.pass(ms(1_100)).await;
    assert_eq!(claim_one(&cx, &s, "c").await.attempt(), 2);
}

async fn far_ahead(cx: Cx) {
    let s = one(&cx, "ahead").await;
    take(&cx, &s, claim_as("first", secs(60))).await;
    cx.clock().set(Timestamp::from_millis(1_800_000_000_000));
    let heads = take(&cx, &s, claim_as("second", secs(60))).await;
    assert_eq!(heads[0].attempt(), 2);
    assert_eq!(expires_at(&cx, &s).await, 1_800_000_060_000);
}

/// The caller's clock is the system's: it goes years ahead of the first, years behind the second.
const NOT_THE_CALLERS: [i64; 2] = [1_600_000_000_000, 4_100_000_000_000];

async fn of_the_caller(cx: Cx) {
    for now in NOT_THE_CALLERS {
        cx.clock().set(Timestamp::from_millis(now));
        let s = one(&cx, "caller").await;
        let first = take(&cx, &s, claim_as("first", ms(100))).await.remove(0);
        assert_eq!(expires_at(&cx, &s).await, now + 100);
        cx.pass(ms(60)).await;
        let renew = RenewClaims::new("first", [first.attempt_ref()], ms(100)).unwrap();
        assert_eq!(cx.store().renew_claims(&s, renew).await.unwrap().renewed.len(), 1);
        assert_eq!(expires_at(&cx, &s).await, now + 160);
        // The lease is neither taken from its holder nor kept by it.
        cx.pass(ms(99)).await;
        let busy = expect_busy(cx.store().claim_available(&s, claim_as("second", ms(100))).await);
        assert_eq!(busy.retry_after, ms(1));
        cx.pass(ms(1)).await;
        let second = take(&cx, &s, claim_as("second", ms(100))).await.remove(0);
        assert_eq!(second.attempt(), 2);
        let held = fail(&second).retry_after(ms(50));
        let _ = cx.store().fail_attempt(&s, held).await.unwrap();
        cx.pass(ms(49)).await;
        let busy = expect_busy(cx.store().claim_available(&s, claim()).await);
        assert_eq!(busy.retry_after, ms(1));
        cx.pass(ms(1)).await;
        assert_eq!(claim_one(&cx, &s, "c").await.attempt(), 3);
    }
}

async fn of_the_caller_timers(cx: Cx) {
    for now in NOT_THE_CALLERS {
        cx.clock().set(Timestamp::from_millis(now));
        let s = cx.session("caller");
        let timer = Schedule::new("k", ms(100), ev("a")).unwrap();
        let due = cx.timers().schedule(&s, timer).await.unwrap().due_at;
        assert_eq!(due.as_millis(), now + 100);
        cx.pass(ms(99)).await;
        assert_eq!(cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap().events, []);
        cx.pass(ms(1)).await;
        let fired = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap().events;
        assert_eq!(ids(&fired), ["a"]);
    }
}

async fn zero_ttl(cx: Cx) {
    let s = one(&cx, "zero").await;
    let head = claim_one(&cx, &s, "c").await;
    assert_code(ClaimAvailable::new("w", Duration::ZERO), "INVALID_INPUT");
    assert_code(RenewClaims::new("w", [head.attempt_ref()], Duration::ZERO), "INVALID_INPUT");
    assert_code(PresenceUpdate::new("p", Duration::ZERO), "INVALID_INPUT");
    assert_eq!(expires_at(&cx, &s).await, 1_700_000_060_000, "the lease is as it was");
}

async fn round_up(cx: Cx) {
    for (ttl, expected) in [
        (Duration::from_nanos(1), 1),
        (Duration::from_micros(999), 1),
        (Duration::from_micros(1_001), 2),
        (ms(5), 5),
    ] {
        let s = one(&cx, "round").await;
        let head = take(&cx, &s, claim_as(WORKER, ttl)).await.remove(0);
        assert_eq!(expires_at(&cx, &s).await, 1_700_000_000_000 + expected, "claim {ttl:?}");
        let renew = RenewClaims::new(WORKER, [head.attempt_ref()], ttl).unwrap();
        assert_eq!(cx.store().renew_claims(&s, renew).await.unwrap().renewed.len(), 1);
        assert_eq!(expires_at(&cx, &s).await, 1_700_000_000_000 + expected, "renew {ttl:?}");
        let held = fail(&head).retry_after(ttl);
        let _ = cx.store().fail_attempt(&s, held).await.unwrap();
        assert_eq!(expires_at(&cx, &s).await, 1_700_000_000_000 + expected, "hold {ttl:?}");
    }
}

async fn clamped(cx: Cx) {
    for ttl in HUGE {
        let s = one(&cx, "clamped").await;
        let head = take(&cx, &s, claim_as(WORKER, ttl)).await.remove(0);
        assert_eq!(expires_at(&cx, &s).await, 1_700_000_000_000 + YEAR, "claim {ttl:?}");
        cx.pass(ms(7)).await;
        let renew = RenewClaims::new(WORKER, [head.attempt_ref()], ttl).unwrap();
        assert_eq!(cx.store().renew_claims(&s, renew).await.unwrap().renewed.len(), 1);
        assert_eq!(expires_at(&cx, &s).await, 1_700_000_000_007 + YEAR, "renew {ttl:?}");
        finish(&cx, &s, &head).await;
        cx.clock().set(Timestamp::from_millis(1_700_000_000_000));
    }
}

async fn hold_of_nothing(cx: Cx) {
    let s = one(&cx, "nothing").await;
    for attempt in 1..=3 {
        let head = claim_one(&cx, &s, "c").await;
        assert_eq!(head.attempt(), attempt, "claimable at once");
        let held = fail(&head).retry_after(Duration::ZERO);
        let _ = cx.store().fail_attempt(&s, held).await.unwrap();
    }
}

async fn hold_clamped(cx: Cx) {
    for hold in HUGE {
        let s = one(&cx, "hold-clamped").await;
        let head = claim_one(&cx, &s, "c").await;
        let held = fail(&head).retry_after(hold);
        let _ = cx.store().fail_attempt(&s, held).await.unwrap();
        assert_eq!(expires_at(&cx, &s).await, 1_700_000_000_000 + YEAR, "{hold:?}");
        let busy = expect_busy(cx.store().claim_available(&s, claim()).await);
        assert_eq!(busy.retry_after, ms(31_536_000_000));
        assert_eq!(cursor(&cx, &s).await.head, Some(at(1)), "it is still there");
        cx.pass(ms(31_536_000_000)).await;
        assert_eq!(claim_one(&cx, &s, "c").await.attempt(), 2);
        cx.clock().set(Timestamp::from_millis(1_700_000_000_000));
    }
}

async fn timer_durations(cx: Cx) {
    let s = cx.session("timers");
    for (key, after, expected) in [
        ("a", Duration::ZERO, 0),
        ("b", Duration::from_nanos(1), 1),
        ("c", Duration::from_micros(2_500), 3),
        ("d", Duration::MAX, YEAR),
        ("e", Duration::from_millis(u64::MAX), YEAR),
    ] {
        let timer = Schedule::new(key, after, ev(key)).unwrap();
        let due = cx.timers().schedule(&s, timer).await.unwrap().due_at;
        assert_eq!(due.as_millis(), 1_700_000_000_000 + expected, "{after:?}");
    }
    cx.pass(ms(3)).await;
    let fired = cx.timers().fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!(ids(&fired.events), ["a", "b", "c"]);
    assert_eq!(cx.timers().timers(&s, Page::first()).await.unwrap().timers.len(), 2);
}
