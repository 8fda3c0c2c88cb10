//! Whose time it is: the server's alone, whatever the clients' clocks and zones are.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use a2_conformance::servers::fresh_name;
use a2_store_postgres::*;

use crate::util::*;

const MINUTE: Duration = Duration::from_secs(60);
/// Clocks are wrong by twice as much.
const SPAN: Duration = Duration::from_secs(300);

/// A store whose sessions' time zone is this one.
async fn in_zone(schema: &str, zone: &str) -> PostgresStore {
    let url = format!("{}?options=-c%20timezone%3D{zone}", url().await);
    PostgresStore::builder(url).schema(schema).connect().await.unwrap()
}

#[tokio::test]
async fn zones_shift_nothing() {
    let schema = fresh_name();
    let east = in_zone(&schema, "Asia/Tokyo").await;
    east.migrate().await.unwrap();
    let west = in_zone(&schema, "America/New_York").await;
    let at = session("s");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();

    // A hold that the one sets is seen by the other.
    let head = claimed(&east, &at, "e").await;
    let fail = FailAttempt::new(head.head.clone(), head.attempt(), "no").retry_after(SPAN);
    let _ = east.fail_attempt(&at, fail).await.unwrap();
    assert_busy(&west, &at).await;
    // So is a lease.
    let leased = session("leased");
    west.append(&leased, append("e")).await.unwrap();
    let claim = ClaimAvailable::new("w", SPAN).unwrap();
    assert_eq!(west.claim_available(&leased, claim).await.unwrap().into_heads().len(), 1);
    assert_busy(&east, &leased).await;

    let created = |store: PostgresStore| {
        let at = at.clone();
        async move { store.read(&at, ReadRange::default()).await.unwrap().events[0].created_at }
    };
    let (from_east, from_west) = (created(east).await, created(west).await);
    assert_eq!(from_east, from_west);
    let real = i64::try_from(now.as_millis()).unwrap();
    assert!((from_east.as_millis() - real).abs() < 60_000, "{from_east:?}");
}

/// What is held is held for the span, less a minute that this may take.
async fn assert_busy(store: &PostgresStore, at: &SessionId) {
    let Claim::Busy(busy) = store.claim_available(at, claim()).await.unwrap() else {
        panic!("it is not busy")
    };
    assert!((SPAN - MINUTE..=SPAN).contains(&busy.retry_after), "{:?}", busy.retry_after);
}

/// What a process with a wrong clock is told, and its work.
const URL: &str = "A2_TEST_CLOCKS_URL";
const SCHEMA: &str = "A2_TEST_CLOCKS_SCHEMA";

/// Processes whose clocks are ten minutes fast and slow. Each claims, fails and is present for five
/// minutes, which this one sees, and the other way round.
#[tokio::test]
async fn other_machines_clocks_judge_nothing() {
    if let Ok(url) = std::env::var(URL) {
        return with_a_wrong_clock(&url).await;
    }
    let store = store().await;
    let schema = format!("{store:?}").split('"').nth(1).unwrap().to_owned();
    for (offset, fast) in [("+600", true), ("-600", false)] {
        let names = ["leased", "held", "mine"].map(|name| session(&format!("{name}{offset}")));
        let [leased, held, mine] = &names;
        for at in &names {
            store.append(at, append("e")).await.unwrap();
        }
        let claim = ClaimAvailable::new("w", SPAN).unwrap();
        assert_eq!(store.claim_available(mine, claim).await.unwrap().into_heads().len(), 1);
        let ns = Namespace::new(format!("room{offset}")).unwrap();
        present(&store, &ns, "here").await;

        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "clocks::other_machines_clocks_judge_nothing", "--nocapture"]);
        child.env(URL, url().await).env(SCHEMA, &schema);
        child.env("LD_PRELOAD", library()).env("FAKETIME", offset);
        child.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("A2_TEST_CLOCKS_NAME", offset);
        let now = SystemTime::now();
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let told = said.lines().find_map(|line| line.split_once("clock: ")).unwrap().1;
        let its = SystemTime::UNIX_EPOCH + Duration::from_millis(told.trim().parse().unwrap());
        let wrong = if fast { its.duration_since(now) } else { now.duration_since(its) };
        assert!(wrong.unwrap() > 8 * MINUTE, "its clock is not wrong");

        assert_busy(&store, leased).await;
        assert_busy(&store, held).await;
        let participants = participants(&store, &ns).await;
        assert_eq!(participants, ["here", "there"]);
    }
}

async fn with_a_wrong_clock(url: &str) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    println!("\nclock: {}", now.as_millis());
    let (schema, offset) =
        (std::env::var(SCHEMA).unwrap(), std::env::var("A2_TEST_CLOCKS_NAME").unwrap());
    let store = PostgresStore::builder(url).schema(schema).connect().await.unwrap();
    let [leased, held, theirs] =
        ["leased", "held", "mine"].map(|name| session(&format!("{name}{offset}")));
    let claim = ClaimAvailable::new("w", SPAN).unwrap();
    let heads = store.claim_available(&leased, claim.clone()).await.unwrap().into_heads();
    assert_eq!(heads.len(), 1);
    let heads = store.claim_available(&held, claim).await.unwrap().into_heads();
    let fail = FailAttempt::new(heads[0].head.clone(), heads[0].attempt(), "no").retry_after(SPAN);
    let _ = store.fail_attempt(&held, fail).await.unwrap();
    assert_busy(&store, &theirs).await;
    let ns = Namespace::new(format!("room{offset}")).unwrap();
    assert_eq!(participants(&store, &ns).await, ["here"]);
    present(&store, &ns, "there").await;
    // Watching judges by what it knows of the server's clock.
    let mut watch = store.watch_presence(&ns);
    let PresenceChange::Rows(rows) = next(&mut watch).await else { panic!("no rows") };
    assert_eq!(rows.rows.len(), 2);
}

async fn present(store: &PostgresStore, ns: &Namespace, who: &str) {
    let update = PresenceUpdate::new(who, SPAN).unwrap();
    let update = update.set("x", Json::from_serialize(&1).unwrap()).unwrap();
    store.set_presence(ns, update).await.unwrap();
}

async fn participants(store: &PostgresStore, ns: &Namespace) -> Vec<String> {
    let rows = store.read_presence(ns).await.unwrap().rows;
    rows.iter().map(|row| row.participant.to_string()).collect()
}

/// What gives a process another clock.
fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let folders = folders.map(|folder| folder.path()).chain([PathBuf::from("/usr/lib")]);
    let found = folders.map(|folder| folder.join("faketime/libfaketime.so.1")).find(|f| f.exists());
    found.expect("libfaketime is not installed: on Debian, the package `libfaketime` has it")
}

/// A clock that a program injects may stand anywhere.
#[tokio::test]
async fn no_time_is_taken_for_damage() {
    let options = made().await;
    for millis in [i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, -1, 0, 1] {
        let clock = ManualClock::at(Timestamp::from_millis(millis));
        let store = options.clone().clock(std::sync::Arc::new(clock)).connect().await.unwrap();
        if let Err((what, error)) = everything(&store, &millis.to_string()).await {
            panic!("{what} at {millis}: {error}");
        }
        store.close().await;
    }
}

/// One of each operation, and which of them fails.
async fn everything(store: &PostgresStore, name: &str) -> Result<(), (&'static str, Error)> {
    let (at, ns) = (session(name), Namespace::new(name).unwrap());
    let week = Duration::from_secs(7 * 24 * 3_600);
    let as_it_is = |what: &'static str| move |error| (what, error);
    let append = |id| store.append(&at, append(id));
    append("e1").await.map_err(as_it_is("append"))?;
    append("e2").await.map_err(as_it_is("append"))?;
    append("e3").await.map_err(as_it_is("append"))?;
    let claim = || ClaimAvailable::new("w", week).unwrap().limit(1).unwrap();
    let claimed = store.claim_available(&at, claim()).await.map_err(as_it_is("claim"))?;
    let heads = claimed.into_heads();
    let renew = RenewClaims::new("w", [heads[0].attempt_ref()], week).unwrap();
    let _ = store.renew_claims(&at, renew).await.map_err(as_it_is("renew"))?;
    let fail = FailAttempt::new(heads[0].head.clone(), heads[0].attempt(), "no");
    let fail = fail.retry_after(week).then_claim(claim());
    let failed = store.fail_attempt(&at, fail).await.map_err(as_it_is("fail"))?;
    for head in failed.claim.unwrap().into_heads() {
        let done = complete(&head).then_claim(claim());
        let done = store.complete_attempt(&at, done).await.map_err(as_it_is("complete"))?;
        for head in done.claim.unwrap().into_heads() {
            let release = ReleaseClaims::new("w", [head.attempt_ref()]).unwrap();
            let _ = store.release_claims(&at, release).await.map_err(as_it_is("release"))?;
        }
    }
    let pending = || store.pending(PendingPage::new(Served::ALL));
    pending().await.map_err(as_it_is("pending"))?;
    for (key, after) in [("soon", Duration::ZERO), ("late", week)] {
        let timer = Schedule::new(key, after, event(key)).unwrap();
        store.schedule(&at, timer).await.map_err(as_it_is("schedule"))?;
    }
    store.timers(&at, Page::first()).await.map_err(as_it_is("timers"))?;
    store.fire_timers(&at, FireTimers::new()).await.map_err(as_it_is("fire_timers"))?;
    pending().await.map_err(as_it_is("pending"))?;
    let update = PresenceUpdate::new("ann", week).unwrap();
    let update = update.set("x", Json::from_serialize(&1).unwrap()).unwrap();
    store.set_presence(&ns, update).await.map_err(as_it_is("set_presence"))?;
    store.read_presence(&ns).await.map_err(as_it_is("read_presence"))?;
    store.cursors(&at, Page::first()).await.map_err(as_it_is("cursors"))?;
    let _ = store.clear(&at, Clear::new()).await.map_err(as_it_is("clear"))?;
    store.reclaim(&at).await.map_err(as_it_is("reclaim"))?;
    Ok(())
}
