//! What a stream asks the server for.

use a2_conformance::servers::Reply;
use a2_store_redis::*;
use futures_util::{FutureExt, StreamExt};

use crate::util::*;

/// How many pages of logs the server has answered.
async fn pages(space: &Space) -> usize {
    let Reply::Text(stats) = space.command(&["INFO", "commandstats"]).await else { panic!() };
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_lrange:calls="));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn what_its_own_store_appends_a_stream_does_not_read() {
    let space = Space::alone().await;
    let (store, _) = space.timed().await;
    let s = session("s");
    let mut streams: Vec<_> = (0..16).map(|_| store.stream(&s, Index::ZERO)).collect();
    for n in 1..=100 {
        let append = Append::one(event(&format!("e{n}"))).unwrap();
        if n % 2 == 0 {
            // Given up when it is on its way: the server's message alone tells of it.
            assert!(store.append(&s, append).now_or_never().is_none());
        } else {
            let _ = store.append(&s, append).await.unwrap();
        }
        for stream in &mut streams {
            assert_eq!(stream.next().await.unwrap().unwrap().index.get(), n);
        }
    }
    // When it opens, and when it is listened for.
    let read = pages(&space).await;
    assert!(read <= 2 * streams.len(), "{read} pages for 100 events of {} streams", streams.len());
}
