//! A proxy before the server, which loses answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use a2_conformance::servers::RedisServer;
use a2_store_redis::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::util::*;

/// Set to `n`, it passes the next requests on and drops the connection instead of the answer to the
/// `n`-th of them.
#[derive(Clone)]
pub(crate) struct Cut {
    pub(crate) url: String,
    in_requests: Arc<AtomicUsize>,
}

impl Cut {
    pub(crate) async fn start(server: &RedisServer) -> Self {
        let (scheme, place) = server.url().split_once("://").unwrap();
        assert_eq!(scheme, "redis", "not reached by TCP alone");
        let (login, address) = match place.rsplit_once('@') {
            Some((login, address)) => (format!("{login}@"), address.to_owned()),
            None => (String::new(), place.to_owned()),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let in_requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&in_requests);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&address).await.unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&counter)));
            }
        });
        Self { url: format!("redis://{login}127.0.0.1:{port}"), in_requests }
    }

    pub(crate) fn after(&self, requests: usize) {
        self.in_requests.store(requests, Ordering::SeqCst);
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, in_requests: Arc<AtomicUsize>) {
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    let mut cuts = false;
    loop {
        tokio::select! {
            read = client.read(&mut up) => match read {
                Ok(n) if n > 0 => {
                    let left = in_requests.load(Ordering::SeqCst);
                    if left > 0 && in_requests.fetch_sub(1, Ordering::SeqCst) == 1 {
                        cuts = true;
                    }
                    if server.write_all(&up[..n]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
            read = server.read(&mut down) => match read {
                // The server has done it: its answer goes nowhere.
                Ok(_) if cuts => return,
                Ok(n) if n > 0 => {
                    if client.write_all(&down[..n]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

async fn cut_store() -> (Cut, RedisStore) {
    let server = shared().await;
    let cut = Cut::start(&server).await;
    let options = RedisStore::builder(&cut.url).prefix(a2_conformance::servers::fresh_name());
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
    cut.after(1);
    let error = store.append(&at, batch.clone()).await.unwrap_err();
    assert!(is_unknown(&error), "{error}");
    let again = store.append(&at, batch).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.events.iter().map(|e| e.index.get()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(store.all_cursors(&at).await.unwrap().len(), 3);

    let heads = store.claim_available(&at, claim().limit(1).unwrap()).await.unwrap().into_heads();
    let done = complete(&heads[0]).events([event("k1"), event("k2")]).unwrap();
    cut.after(1);
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
        cut.after(1);
        let new = NewEvent::new("t", &round).unwrap();
        let error = store.append(&at, Append::one(new).unwrap()).await.unwrap_err();
        assert!(is_unknown(&error), "{error}");
        assert_eq!(store.head(&at).await.unwrap(), 1);
    }
    // Many at once on one connection: all of them are lost, and none is done twice.
    let at = session("many");
    let appends: Vec<_> = (0..50).map(|n| append(&format!("e{n}"))).collect();
    cut.after(1);
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
    cut.after(1);
    let error = store.read(&at, ReadRange::default()).await.unwrap_err();
    assert!(error.is_retryable() && !error.outcome_unknown(), "{error}");
    assert_eq!(store.read(&at, ReadRange::default()).await.unwrap().head, 1);
}
