//! How a stream fails, retries and ends.

use super::*;
use crate::live::event_stream;
use crate::{ErrorKind, EventStream};

async fn yields(stream: &mut EventStream, expected: &[u64]) {
    for index in expected {
        assert_eq!(next(stream).await.unwrap().unwrap().index, *index);
    }
}

fn events(log: &TestLog, indexes: &[usize], head: u32, clear_index: u32) -> Result<Events> {
    let stored = lock(&log.0);
    let events = indexes.iter().map(|i| stored.events[i - 1].clone()).collect();
    Ok(Events::new(events, index(head), index(clear_index)))
}

#[tokio::test(start_paused = true)]
async fn what_can_be_retried_is_retried_for_ever_more_and_more_slowly() {
    let (hub, log, name) = fixture("retry", 1);
    for _ in 0..8 {
        log.answer(Err(unavailable()));
    }
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    let start = tokio::time::Instant::now();
    yields(&mut stream, &[1]).await;
    // 50 + 100 + 200 + 400 + 800 + 1,000 + 1,000 + 1,000 ms.
    assert_eq!(start.elapsed(), Duration::from_millis(4_550));

    // A success starts it over, and nothing appended meanwhile is lost.
    log.answer(Err(unavailable()));
    hub.wake(&name);
    assert!(now(&mut stream).is_none());
    hub.appended(&name, &log.append(2));
    let start = tokio::time::Instant::now();
    yields(&mut stream, &[2, 3]).await;
    assert_eq!(start.elapsed(), Duration::from_millis(50));
}

#[tokio::test]
async fn any_other_error_is_yielded_once_and_ends_the_stream() {
    let (hub, log, name) = fixture("not-configured", 1);
    log.answer(Err(Error::not_configured("no tables")));
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert_eq!(next_code(&mut stream).await, "STORE_NOT_CONFIGURED");
    assert!(next(&mut stream).await.is_none());
    assert!(next(&mut stream).await.is_none());
    hub.appended(&name, &log.append(1));
    assert!(next(&mut stream).await.is_none());
}

/// (what the first read answers: indexes, head and clear index; the index that is named)
const CORRUPT: [(&[usize], u32, u32, u64); 6] = [
    (&[1, 3], 3, 0, 2),
    (&[2, 3], 3, 0, 1),
    (&[], 3, 0, 1),
    (&[3, 4], 4, 2, 2),
    (&[1, 2, 2], 4, 0, 3),
    (&[2, 1], 2, 2, 3),
];

#[tokio::test]
async fn a_hole_is_corrupt() {
    for (case, (indexes, head, clear_index, named)) in CORRUPT.into_iter().enumerate() {
        let (hub, log, name) = fixture(&format!("hole-{case}"), 4);
        log.answer(events(&log, indexes, head, clear_index));
        let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
        let error = next(&mut stream).await.unwrap().unwrap_err();
        let ErrorKind::Corrupt { session, index, .. } = error.kind() else {
            panic!("case {case}: {error}");
        };
        assert_eq!(session.as_ref(), Some(&name), "case {case}");
        assert_eq!(index.unwrap(), named, "case {case}");
        assert!(next(&mut stream).await.is_none(), "case {case}");
    }
}

#[tokio::test]
async fn a_head_below_what_was_yielded_is_corrupt() {
    let (hub, log, name) = fixture("head-went-back", 3);
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    yields(&mut stream, &[1, 2, 3]).await;
    log.truncate(2);
    hub.wake(&name);
    let error = next(&mut stream).await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "corrupt store, session \"head-went-back\", index 3: the log's head is 2, this index was \
         streamed"
    );
    assert!(next(&mut stream).await.is_none());

    // Not what it only started after.
    let mut ahead = event_stream(log.clone(), &hub, &name, index(3), None);
    assert!(now(&mut ahead).is_none());
    hub.appended(&name, &log.append(2));
    yields(&mut ahead, &[4]).await;
}

#[tokio::test(start_paused = true)]
async fn closing_ends_every_stream_whatever_it_is_at() {
    let (hub, log, name) = fixture("closing", 2);
    let mut waits = event_stream(log.clone(), &hub, &name, index(2), None);
    assert!(now(&mut waits).is_none());
    let mut holds = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    yields(&mut holds, &[1]).await;
    log.answer(Err(unavailable()));
    let mut rests = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert!(now(&mut rests).is_none());
    log.hang(true);
    let mut reads = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert!(now(&mut reads).is_none());
    let unpolled = event_stream(log.clone(), &hub, &name, Index::ZERO, None);

    let mut ends = tokio::task::JoinSet::new();
    for mut stream in [waits, holds, rests, reads, unpolled] {
        if let Some(Some(item)) = now(&mut stream) {
            item.unwrap();
        }
        ends.spawn(async move {
            let code = next_code(&mut stream).await;
            (code, next(&mut stream).await.is_none())
        });
    }
    tokio::task::yield_now().await;
    let start = tokio::time::Instant::now();
    hub.close();
    hub.close();
    while let Some(end) = ends.join_next().await {
        assert_eq!(end.unwrap(), ("CLOSED", true));
    }
    // They were woken: no rest or read had to end first.
    assert_eq!(start.elapsed(), Duration::ZERO);

    let mut later = event_stream(log, &hub, &name, Index::ZERO, None);
    assert_eq!(next_code(&mut later).await, "CLOSED");
    assert!(next(&mut later).await.is_none());
}

#[tokio::test]
async fn a_store_that_answers_closed_ends_it() {
    let (hub, log, name) = fixture("answers-closed", 0);
    log.answer(Err(Error::closed()));
    let mut stream = event_stream(log, &hub, &name, Index::ZERO, None);
    assert_eq!(next_code(&mut stream).await, "CLOSED");
    assert!(next(&mut stream).await.is_none());
}

#[tokio::test]
async fn dropping_a_stream_unsubscribes() {
    let (hub, log, name) = fixture("dropping", 1);
    assert!(!hub.has_streams());
    let mut first = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    let mut second = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    yields(&mut first, &[1]).await;
    yields(&mut second, &[1]).await;
    assert!(now(&mut first).is_none() && now(&mut second).is_none());
    drop(first);
    assert!(hub.has_streams());
    assert_eq!(hub.streamed_sessions(), std::slice::from_ref(&name));
    // Its place is free for another, and the other stream still wakes.
    let mut third = event_stream(log.clone(), &hub, &name, index(1), None);
    assert!(now(&mut third).is_none());
    hub.appended(&name, &log.append(1));
    yields(&mut second, &[2]).await;
    yields(&mut third, &[2]).await;
    drop((second, third));
    assert!(!hub.has_streams());
    assert!(hub.streamed_sessions().is_empty());
}
