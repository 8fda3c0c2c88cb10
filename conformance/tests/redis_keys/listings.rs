//! Listings over the partitions.

use std::collections::BTreeSet;

use a2_store_redis::*;

use crate::util::*;

fn serve(consumer: &str) -> Served {
    Served::only([ServedConsumer::new(consumer).unwrap()]).unwrap()
}

#[tokio::test]
async fn a_page_looks_past_what_is_others_work() {
    let space = Space::new().await;
    let (store, _) = space.timed().await;
    for n in 0..1_500 {
        let consumer = if n % 500 == 250 { "mine" } else { "other" };
        let one = Append::one(event("e").target(to(consumer))).unwrap();
        let _ = store.append(&session(&format!("s{n}")), one).await.unwrap();
    }
    let mut found = BTreeSet::new();
    let mut page = Page::first().limit(2).unwrap();
    for pages in 1.. {
        let request = PendingPage::new(serve("mine")).page(page.clone());
        let answer = store.pending(request).await.unwrap();
        found.extend(answer.sessions.iter().map(|one| one.session.as_str().to_owned()));
        let Some(next) = answer.next else {
            // Each page asks the 256 partitions a few at a time.
            assert!(pages <= 10, "{pages} pages for three sessions");
            break;
        };
        page = page.and_then(next);
    }
    assert_eq!(found, ["s250", "s750", "s1250"].map(str::to_owned).into());
}

/// When there is something to do in the pending sessions, at the earliest.
async fn listed(store: &RedisStore) -> Vec<i64> {
    let pending = store.pending(PendingPage::default()).await.unwrap();
    pending.sessions.iter().map(|session| session.not_before.as_millis()).collect()
}

#[tokio::test]
async fn a_session_stays_pending_until_its_last_head_and_timer_are_gone() {
    let space = Space::new().await;
    let (store, clock) = space.timed().await;
    let s = session("s");
    let one = Append::one(event("e").target(to("c"))).unwrap();
    let _ = store.append(&s, one).await.unwrap();
    let _ = store.schedule(&s, timer("k", 100)).await.unwrap();
    let claim = ClaimAvailable::new("w", std::time::Duration::from_secs(60)).unwrap();
    let heads = store.claim_available(&s, claim).await.unwrap().into_heads();
    let done = CompleteAttempt::new(heads[0].head.clone(), 1);
    let _ = store.complete_attempt(&s, done).await.unwrap();
    assert_eq!(listed(&store).await, [1_000_100]);
    assert_eq!(space.entries("P").await, 1);
    clock.advance(std::time::Duration::from_millis(100));
    let _ = store.fire_timers(&s, FireTimers::new()).await.unwrap();
    assert_eq!(space.entries("P").await, 1, "it goes when it is looked at");
    assert_eq!(listed(&store).await, [0; 0]);
    assert_eq!(space.entries("P").await, 0);
    let one = Append::one(event("f").target(to("c"))).unwrap();
    let _ = store.append(&s, one).await.unwrap();
    assert_eq!(listed(&store).await, [1_000_100], "and comes back");
    assert_eq!(space.entries("S").await, 1);
}

#[tokio::test]
async fn a_timer_of_the_lifetime_keeps_its_session_pending() {
    let space = Space::new().await;
    let (store, _) = space.timed().await;
    let s = session("s");
    let one = Append::one(event("e").target(to("c"))).unwrap();
    let _ = store.append(&s, one).await.unwrap();
    let bound = timer("k", 100).origin_index(Index::from(1));
    let _ = store.schedule(&s, bound).await.unwrap();
    let claim = ClaimAvailable::new("w", std::time::Duration::from_secs(60)).unwrap();
    let heads = store.claim_available(&s, claim).await.unwrap().into_heads();
    let done = CompleteAttempt::new(heads[0].head.clone(), 1);
    let _ = store.complete_attempt(&s, done).await.unwrap();
    assert_eq!(listed(&store).await, [1_000_100], "its timer is still to fire");
    clear(&store, &s).await;
    assert_eq!(listed(&store).await, [0; 0], "which the clear dropped");
    assert_eq!(space.entries("P").await, 0);
}
