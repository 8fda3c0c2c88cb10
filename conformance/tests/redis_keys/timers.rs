//! The partitions' lists of timers.

use a2_store_redis::live::DueTimers;
use a2_store_redis::*;

use crate::util::*;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

async fn due(
    store: &RedisStore,
    from: i64,
    after: Option<&str>,
    limit: usize,
) -> Vec<(i64, String)> {
    let after = after.map(session);
    let found = store.due_timers(at(from), after.as_ref(), at(2_000_000), limit).await.unwrap();
    found
        .into_iter()
        .map(|timer| (timer.due_at.as_millis(), timer.session.as_str().to_owned()))
        .collect()
}

#[tokio::test]
async fn timers_are_found_by_due_time_and_session() {
    let space = Space::new().await;
    let (store, _) = space.timed().await;
    // Sessions of many partitions; two timers of one session at one time.
    for n in 0..40 {
        let s = session(&format!("s{n:02}"));
        for (key, after) in [("a", 100 + n % 4), ("b", 100 + n % 4), ("far", 5_000_000)] {
            let _ = store.schedule(&s, timer(key, after)).await.unwrap();
        }
    }
    let mut expected: Vec<_> = (0..40).map(|n| (1_000_100 + n % 4, format!("s{n:02}"))).collect();
    expected.sort();
    assert_eq!(due(&store, i64::MIN, None, 100).await, expected);
    assert_eq!(due(&store, i64::MIN, None, 7).await, expected[..7]);
    let (from, after) = expected[13].clone();
    assert_eq!(due(&store, from, Some(&after), 7).await, expected[14..21]);
    assert_eq!(due(&store, from + 1, None, 100).await, expected[20..]);
    assert_eq!(store.next_due(at(0)).await.unwrap(), Some(at(1_000_100)));
    assert_eq!(store.next_due(at(1_000_101)).await.unwrap(), Some(at(1_000_102)));
    assert_eq!(store.next_due(at(1_000_103)).await.unwrap(), Some(at(6_000_000)));
    assert_eq!(store.next_due(at(6_000_000)).await.unwrap(), None);
}

#[tokio::test]
async fn a_timer_that_a_clear_dropped_is_forgotten_when_it_is_found() {
    let space = Space::new().await;
    let (store, clock) = space.timed().await;
    let s = session("s");
    let _ = store.append(&s, Append::one(event("e")).unwrap()).await.unwrap();
    for n in 0..30 {
        let bound = timer(&format!("k{n}"), 100).origin_index(Index::from(1));
        let _ = store.schedule(&s, bound).await.unwrap();
    }
    let _ = store.schedule(&s, timer("kept", 200)).await.unwrap();
    clear(&store, &s).await;
    assert_eq!(space.entries("T").await, 31, "a clear leaves them there");
    assert_eq!(store.next_due(at(0)).await.unwrap(), Some(at(1_000_200)));
    assert_eq!(due(&store, 0, None, 10).await, [(1_000_200, "s".to_owned())]);
    assert_eq!(space.entries("T").await, 1);
    clock.advance(std::time::Duration::from_millis(200));
    let fired = store.fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!(fired.events.len(), 1);
    assert_eq!(space.entries("T").await, 0);
}

#[tokio::test]
async fn a_timer_ahead_of_the_log_goes_with_the_clear_that_passes_it() {
    let space = Space::new().await;
    let (store, _) = space.timed().await;
    let s = session("s");
    let _ = store.append(&s, Append::one(event("e")).unwrap()).await.unwrap();
    for origin in [2, 3, 4] {
        let ahead = timer(&format!("k{origin}"), 100).origin_index(Index::from(origin));
        let _ = store.schedule(&s, ahead).await.unwrap();
    }
    assert_eq!(clear(&store, &s).await, 2);
    let _ = store.append(&s, Append::one(event("f")).unwrap()).await.unwrap();
    assert_eq!(clear(&store, &s).await, 4);
    let left = store.timers(&s, Page::first()).await.unwrap().timers;
    assert_eq!(left.iter().map(|timer| timer.key.as_str()).collect::<Vec<_>>(), ["k4"]);
    assert_eq!(space.entries("T").await, 1);
    assert_eq!(space.entries("a").await, 1);
}
