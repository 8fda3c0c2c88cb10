//! What a clear puts away, and what reclaim leaves.

use std::time::Duration;

use a2_conformance::servers::Reply;
use a2_store_redis::request::RedriveAction;
use a2_store_redis::*;

use crate::util::*;

/// The keys of the lifetime before any clear: that stands after the session's name.
async fn first_lifetime(space: &Space) -> Vec<String> {
    let keys = space.keys("").await;
    keys.into_iter().filter(|key| key.split('\0').nth(2) == Some("0")).collect()
}

/// Something in every key that a lifetime has.
async fn fill(store: &RedisStore, s: &SessionId) {
    let log = LogDeclaration::new("log").unwrap();
    let served = Served::only([ServedConsumer::new("reader").unwrap().log(log)]).unwrap();
    let long = NewEvent::new("long", &"x".repeat(40_000)).unwrap().id("long").unwrap();
    let events = (1..=1_200).map(|n| {
        let targets = [to("c"), Target::lane("c", "l").unwrap()];
        let kind = format!("t{}", n % 3);
        NewEvent::new(kind, &n).unwrap().id(format!("e{n}")).unwrap().targets(targets)
    });
    let events = Append::new(events.chain([long])).unwrap().served(served);
    let _ = store.append(s, events).await.unwrap();
    let claim = ClaimAvailable::new("w", Duration::from_secs(60)).unwrap();
    let heads = store.claim_available(s, claim).await.unwrap().into_heads();
    let complete = CompleteAttempt::new(heads[0].head.clone(), heads[0].attempt());
    let _ = store.complete_attempt(s, complete).await.unwrap();
    for head in &heads[1..4] {
        let fail =
            FailAttempt::new(head.head.clone(), head.attempt(), "no").max_failures(1).unwrap();
        let _ = store.fail_attempt(s, fail).await.unwrap();
    }
    let again = Redrive::new(heads[1].head.clone(), RedriveAction::Retry);
    let _ = store.redrive(s, again).await.unwrap();
    for reducer in ["one", "two"] {
        let pinned = SnapshotWrite::new(Index::from(3), Json::null());
        let pinned = pinned.pins([heads[9].head.clone()]).unwrap();
        let latest = SnapshotWrite::new(Index::from(9), Json::null());
        let writes = PutSnapshots::new([pinned, latest]).unwrap();
        let reducer = ReducerName::new(reducer).unwrap();
        let _ = store.put_snapshots(s, &reducer, writes).await.unwrap();
    }
    for n in 0..300 {
        let bound = timer(&format!("k{n}"), 1_000).origin_index(Index::from(1));
        let _ = store.schedule(s, bound).await.unwrap();
    }
}

#[tokio::test]
async fn nothing_of_an_earlier_lifetime_is_left() {
    let space = Space::new().await;
    let (store, _) = space.timed().await;
    let s = session("s");
    fill(&store, &s).await;
    let letters: std::collections::BTreeSet<char> = first_lifetime(&space)
        .await
        .iter()
        .filter_map(|key| key.split(":").nth(2)?.chars().next())
        .collect();
    assert_eq!(letters.iter().collect::<String>(), "Zcdefhjklortvwxyz");
    clear(&store, &s).await;
    let _ = store.append(&s, Append::one(event("new").target(to("c"))).unwrap()).await.unwrap();
    let _ = store.schedule(&s, timer("kept", 1_000)).await.unwrap();
    let kept: Vec<_> = space.keys("").await.into_iter().filter(|key| !is_first(key)).collect();
    reclaim(&store, &s).await;
    assert_eq!(first_lifetime(&space).await, [""; 0]);
    let left = space.keys("").await;
    let old = |key: &&String| !left.contains(key);
    // The list of what was to be reclaimed is empty, and so gone.
    let gone: Vec<_> = kept.iter().filter(old).map(|key| key.ends_with("u\0s")).collect();
    assert_eq!(gone, [true]);
    assert_eq!(space.entries("T").await, 1, "the timers went from the partition's list too");
}

fn is_first(key: &str) -> bool {
    key.split('\0').nth(2) == Some("0")
}

/// How many commands the server has run.
async fn commands(space: &Space) -> i64 {
    let Reply::Text(stats) = space.command(&["INFO", "commandstats"]).await else { panic!() };
    let calls = stats.lines().filter_map(|line| line.split_once("calls=")?.1.split(',').next());
    calls.map(|calls| calls.parse::<i64>().unwrap()).sum()
}

#[tokio::test]
async fn a_clear_costs_the_same_whatever_lies_below() {
    let space = Space::alone().await;
    let (store, _) = space.timed().await;
    // What the server does by itself is left out: the least of some.
    let (mut small, mut large) = (i64::MAX, i64::MAX);
    for round in 0..3 {
        let s = session(&format!("small-{round}"));
        let _ = store.append(&s, Append::one(event("e").target(to("c"))).unwrap()).await.unwrap();
        let _ = store.schedule(&s, timer("k", 1_000).origin_index(Index::from(1))).await.unwrap();
        let before = commands(&space).await;
        clear(&store, &s).await;
        small = small.min(commands(&space).await - before);

        let s = session(&format!("large-{round}"));
        fill(&store, &s).await;
        let before = commands(&space).await;
        clear(&store, &s).await;
        large = large.min(commands(&space).await - before);
    }
    assert_eq!(small, large);
}

#[tokio::test]
async fn a_call_of_reclaim_deletes_a_bounded_batch() {
    let space = Space::new().await;
    let (store, _) = space.timed().await;
    let s = session("s");
    fill(&store, &s).await;
    clear(&store, &s).await;
    let mut deleted = 0;
    loop {
        let done = store.reclaim(&s).await.unwrap();
        // A key goes whole, and the largest here is the session's, with its ids and the lane's links.
        assert!(done.deleted <= 256 + 2_500, "{done:?}");
        deleted += done.deleted;
        if done.done {
            break;
        }
    }
    // Events and ids, each head's place, links of the lane, timers in three keys.
    assert!(deleted >= 1_200 * 2 + 1_200 + 1_100 + 300 * 3, "{deleted}");
}
