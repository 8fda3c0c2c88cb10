//! A proxy before the server, which loses answers.

use a2_conformance::servers::Proxy;
use a2_store_redis::*;

use crate::util::*;

async fn cut_store() -> (Proxy, RedisStore) {
    let server = shared().await;
    let cut = Proxy::before(server.url()).await.unwrap();
    let options = RedisStore::builder(cut.url()).prefix(a2_conformance::servers::fresh_name());
    let store = options.connections(1).notifications(false).connect().await.unwrap();
    // The server knows the scripts: from here on an operation is one request.
    let at = session("warm");
    let head = claimed(&store, &at, "e").await;
    let _ = store.complete_attempt(&at, complete(&head)).await.unwrap();
    (cut, store)
}

fn is_unknown(error: &Error) -> bool {
    (error.code(), error.is_retryable()) == ("STORE_UNAVAILABLE", true) && error.outcome_unknown()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_a_lost_answer_finds_what_was_done() {
    let (cut, store) = cut_store().await;
    let at = session("s");
    let lanes = ["a", "b", "c"].map(|id| event(id).target(Target::lane("c", id).unwrap()));
    let batch = Append::new(lanes).unwrap();
    cut.lose_answer_in(1);
    let error = store.append(&at, batch.clone()).await.unwrap_err();
    assert!(is_unknown(&error), "{error}");
    let again = store.append(&at, batch).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.events.iter().map(|e| e.index.get()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(store.all_cursors(&at).await.unwrap().len(), 3);

    let heads = store.claim_available(&at, claim().limit(1).unwrap()).await.unwrap().into_heads();
    let done = complete(&heads[0]).events([event("k1"), event("k2")]).unwrap();
    cut.lose_answer_in(1);
    let error = store.complete_attempt(&at, done.clone()).await.unwrap_err();
    assert!(is_unknown(&error), "{error}");
    let again = store.complete_attempt(&at, done).await.unwrap().outcome.completed().unwrap();
    assert!(again.replayed);
    assert_eq!(again.events.iter().map(|e| e.index.get()).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(ids(&store, &at).await, ["a", "b", "c", "k1", "k2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_answer_is_lost_is_not_sent_again() {
    let (cut, store) = cut_store().await;
    // Without an id of its own, so that a second one would be seen.
    for round in 0..20_u64 {
        let at = session(&format!("s{round}"));
        cut.lose_answer_in(1);
        let new = NewEvent::new("t", &round).unwrap();
        let error = store.append(&at, Append::one(new).unwrap()).await.unwrap_err();
        assert!(is_unknown(&error), "{error}");
        assert_eq!(store.head(&at).await.unwrap(), 1);
    }
    // Many at once on one connection: all of them are lost, and none is done twice.
    let at = session("many");
    let appends: Vec<_> = (0..50).map(|n| append(&format!("e{n}"))).collect();
    cut.lose_answer_in(1);
    let calls = appends.iter().map(|append| store.append(&at, append.clone()));
    for result in futures_util::future::join_all(calls).await {
        assert!(result.is_ok_and(|done| !done.replayed) || store.head(&at).await.is_ok());
    }
    let before = ids(&store, &at).await;
    for append in appends {
        store.append(&at, append).await.unwrap();
    }
    let all = ids(&store, &at).await;
    assert_eq!((all.len(), &all[..before.len()]), (50, &before[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_of_a_read_is_not_unknown() {
    let (cut, store) = cut_store().await;
    let at = session("warm");
    cut.lose_answer_in(1);
    let error = store.read(&at, ReadRange::default()).await.unwrap_err();
    assert!(error.is_retryable() && !error.outcome_unknown(), "{error}");
    assert_eq!(store.read(&at, ReadRange::default()).await.unwrap().head, 1);
}
