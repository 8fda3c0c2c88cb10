//! What a stream yields.

use super::*;
use crate::EventStream;
use crate::live::{Polling, event_stream};

async fn indexes(stream: &mut EventStream, count: usize) -> Vec<u64> {
    let mut indexes = Vec::new();
    for _ in 0..count {
        indexes.push(next(stream).await.unwrap().unwrap().index.get());
    }
    indexes
}

#[tokio::test]
async fn stored_events_come_first_then_live_ones_without_a_read() {
    let (hub, log, name) = fixture("stored-then-live", 3);
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert_eq!(indexes(&mut stream, 3).await, [1, 2, 3]);
    assert!(now(&mut stream).is_none());
    assert_eq!(log.reads(), 1);

    let waiting = tokio::spawn(async move {
        let seen = indexes(&mut stream, 3).await;
        (stream, seen)
    });
    tokio::task::yield_now().await;
    hub.appended(&name, &log.append(1));
    tokio::task::yield_now().await;
    hub.appended(&name, &log.append(2));
    let (mut stream, seen) = waiting.await.unwrap();
    assert_eq!(seen, [4, 5, 6]);
    assert!(now(&mut stream).is_none());
    assert_eq!(log.reads(), 1);
}

#[tokio::test]
async fn it_starts_after_an_index_and_waits_for_one_that_is_not_there_yet() {
    let (hub, log, name) = fixture("start-after", 4);
    let mut stream = event_stream(log.clone(), &hub, &name, index(2), None);
    assert_eq!(indexes(&mut stream, 2).await, [3, 4]);

    let mut ahead = event_stream(log.clone(), &hub, &name, index(6), None);
    assert!(now(&mut ahead).is_none());
    hub.appended(&name, &log.append(2));
    assert!(now(&mut ahead).is_none());
    hub.appended(&name, &log.append(2));
    assert_eq!(indexes(&mut ahead, 2).await, [7, 8]);
    assert!(now(&mut ahead).is_none());
}

#[tokio::test]
async fn commits_may_be_told_in_any_order() {
    let (hub, log, name) = fixture("any-order", 0);
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert!(now(&mut stream).is_none());
    let batches: Vec<_> = (0..3).map(|_| log.append(2)).collect();
    hub.appended(&name, &batches[2]);
    assert_eq!(indexes(&mut stream, 3).await, [1, 2, 3]);
    hub.appended(&name, &batches[0]);
    hub.appended(&name, &batches[1]);
    assert_eq!(indexes(&mut stream, 3).await, [4, 5, 6]);
    assert!(now(&mut stream).is_none());

    // Told late, but before it is asked for: no read.
    let reads = log.reads();
    let (first, second) = (log.append(1), log.append(1));
    hub.appended(&name, &second);
    hub.appended(&name, &first);
    assert_eq!(indexes(&mut stream, 2).await, [7, 8]);
    assert_eq!(log.reads(), reads);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_commits_are_all_seen_in_order_by_streams_opened_at_any_time() {
    let (hub, log, name) = fixture("concurrent", 0);
    let everything: Vec<u64> = (1..=1_600).collect();
    let mut readers = tokio::task::JoinSet::new();
    let mut appenders = tokio::task::JoinSet::new();
    for appender in 0..8 {
        let (hub, log, name) = (hub.clone(), log.clone(), name.clone());
        let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
        readers.spawn(async move { indexes(&mut stream, 1_600).await });
        appenders.spawn(async move {
            for _ in 0..200 {
                let events = log.append(1);
                // Others may commit and tell before this one tells.
                if appender % 2 == 0 {
                    tokio::task::yield_now().await;
                }
                hub.appended(&name, &events);
            }
        });
    }
    while let Some(appended) = appenders.join_next().await {
        appended.unwrap();
    }
    while let Some(seen) = readers.join_next().await {
        assert_eq!(seen.unwrap(), everything);
    }
    assert!(!hub.has_streams());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_committed_while_a_stream_opens_is_not_missed() {
    for round in 0..300 {
        let (hub, log, name) = fixture(&format!("opening-{round}"), 0);
        let appender = tokio::spawn({
            let (hub, log, name) = (hub.clone(), log.clone(), name.clone());
            async move { hub.appended(&name, &log.append(1)) }
        });
        let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
        assert_eq!(indexes(&mut stream, 1).await, [1]);
        appender.await.unwrap();
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[tokio::test]
async fn what_is_told_twice_wakes_nobody_again() {
    let (hub, log, name) = fixture("told-twice", 1);
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert_eq!(indexes(&mut stream, 1).await, [1]);
    let woken = std::sync::Arc::new(Woken::default());
    let waker = std::task::Waker::from(std::sync::Arc::clone(&woken));
    let mut poll = || {
        let mut cx = std::task::Context::from_waker(&waker);
        stream.poll_next_unpin(&mut cx).map(|event| event.unwrap().unwrap().index.get())
    };
    let wakes = || woken.0.load(std::sync::atomic::Ordering::SeqCst);
    assert!(poll().is_pending());
    let events = log.append(1);
    hub.appended(&name, &events);
    assert_eq!(wakes(), 1);
    assert_eq!(poll(), std::task::Poll::Ready(2));
    assert!(poll().is_pending());
    hub.appended(&name, &events);
    assert_eq!(wakes(), 1);
    assert!(poll().is_pending());
    assert_eq!(log.reads(), 1);
}

#[tokio::test]
async fn a_clear_is_the_one_jump() {
    let (hub, log, name) = fixture("clear-jump", 5);
    let mut told = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    let mut unread = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    let mut at_marker = event_stream(log.clone(), &hub, &name, index(6), None);
    let mut past_marker = event_stream(log.clone(), &hub, &name, index(7), None);
    // Five are fetched, one is yielded.
    assert_eq!(indexes(&mut told, 1).await, [1]);
    assert!(now(&mut at_marker).is_none());

    let marker = log.clear();
    hub.cleared(&name, marker.index);
    hub.appended(&name, &log.append(2));
    assert_eq!(indexes(&mut told, 3).await, [6, 7, 8]);
    assert_eq!(indexes(&mut unread, 3).await, [6, 7, 8]);
    assert_eq!(indexes(&mut at_marker, 2).await, [7, 8]);
    assert_eq!(indexes(&mut past_marker, 1).await, [8]);
    let mut opened_after = event_stream(log.clone(), &hub, &name, index(2), None);
    assert_eq!(indexes(&mut opened_after, 3).await, [6, 7, 8]);
}

#[tokio::test]
async fn a_clear_may_be_told_as_an_event_and_out_of_order() {
    let (hub, log, name) = fixture("clear-as-event", 2);
    let mut behind = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    let mut in_step = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert_eq!(indexes(&mut behind, 1).await, [1]);
    assert_eq!(indexes(&mut in_step, 2).await, [1, 2]);
    assert!(now(&mut in_step).is_none());

    let before = log.append(1);
    let marker = log.clear();
    let after = log.append(1);
    hub.appended(&name, &after);
    hub.appended(&name, &[marker]);
    hub.appended(&name, &before);
    assert_eq!(indexes(&mut behind, 2).await, [4, 5]);
    assert_eq!(indexes(&mut in_step, 2).await, [4, 5]);
}

#[tokio::test]
async fn another_process_may_append_and_clear() {
    let (hub, log, name) = fixture("another-process", 2);
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert_eq!(indexes(&mut stream, 2).await, [1, 2]);
    assert!(now(&mut stream).is_none());
    log.append(1);
    hub.wake(&name);
    assert_eq!(indexes(&mut stream, 1).await, [3]);
    log.append(1);
    log.clear();
    log.append(1);
    hub.wake_all();
    assert_eq!(indexes(&mut stream, 2).await, [5, 6]);
    log.append(1);
    hub.reached(&name, index(7));
    assert_eq!(indexes(&mut stream, 1).await, [7]);

    // One's own events, announced again by somebody else, cost no read.
    let reads = log.reads();
    hub.appended(&name, &log.append(1));
    hub.reached(&name, index(8));
    assert_eq!(indexes(&mut stream, 1).await, [8]);
    hub.reached(&name, index(8));
    assert!(now(&mut stream).is_none());
    assert_eq!(log.reads(), reads);
}

#[tokio::test]
async fn a_head_that_is_told_and_not_there_is_asked_for_once() {
    let (hub, log, name) = fixture("false-head", 1);
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert_eq!(indexes(&mut stream, 1).await, [1]);
    hub.reached(&name, index(9));
    assert!(now(&mut stream).is_none());
    assert!(now(&mut stream).is_none());
    assert_eq!(log.reads(), 2);
    hub.appended(&name, &log.append(1));
    assert_eq!(indexes(&mut stream, 1).await, [2]);
}

#[tokio::test]
async fn a_slow_reader_reads_pages_and_misses_nothing() {
    let (hub, log, name) = fixture("slow-reader", 0);
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert!(now(&mut stream).is_none());
    for _ in 0..1_000 {
        hub.appended(&name, &log.append(1));
    }
    let seen = indexes(&mut stream, 1_000).await;
    assert!(seen.iter().copied().eq(1..=1_000));
    // The last ones come from the ring.
    assert_eq!(log.ranges(), [(0, 256), (0, 256), (256, 256)]);
    assert!(now(&mut stream).is_none());
}

#[tokio::test]
async fn what_the_ring_cannot_hold_is_read() {
    let (hub, log, name) = fixture("ring-overflow", 0);
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, None);
    assert!(now(&mut stream).is_none());
    hub.appended(&name, &log.append_payload(1_000_000));
    assert_eq!(indexes(&mut stream, 1).await, [1]);
    assert_eq!(log.reads(), 2);
    hub.appended(&name, &log.append(600));
    let seen = indexes(&mut stream, 600).await;
    assert!(seen.iter().copied().eq(2..=601));
    assert_eq!(log.reads(), 5);
    hub.appended(&name, &log.append(1));
    assert_eq!(indexes(&mut stream, 1).await, [602]);
    assert_eq!(log.reads(), 5);
}

#[tokio::test]
async fn sessions_do_not_mix() {
    let hub = Hub::new();
    let (one, two) = (TestLog::with("mix-1", 0), TestLog::with("mix-2", 0));
    let mut first = event_stream(one.clone(), &hub, &session("mix-1"), Index::ZERO, None);
    let mut second = event_stream(two.clone(), &hub, &session("mix-2"), Index::ZERO, None);
    assert!(now(&mut first).is_none() && now(&mut second).is_none());
    hub.appended(&session("mix-1"), &one.append(1));
    assert!(now(&mut second).is_none());
    let event = next(&mut first).await.unwrap().unwrap();
    assert_eq!(event.session, session("mix-1"));
}

#[tokio::test(start_paused = true)]
async fn polling_finds_what_nobody_told() {
    let (hub, log, name) = fixture("polling", 0);
    let every = Polling::every(Duration::from_secs(1));
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, every);
    assert!(now(&mut stream).is_none());
    log.append(1);
    let start = tokio::time::Instant::now();
    assert_eq!(indexes(&mut stream, 1).await, [1]);
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn polling_slows_down_to_its_ceiling_and_an_event_speeds_it_up() {
    let (hub, log, name) = fixture("polling-pace", 0);
    let pace = Polling::between(Duration::from_millis(20), Duration::from_millis(100));
    let mut stream = event_stream(log.clone(), &hub, &name, Index::ZERO, pace);
    let start = tokio::time::Instant::now();
    let quiet = tokio::time::timeout(Duration::from_millis(350), stream.next()).await;
    assert!(quiet.is_err());
    // At 0, 20, 60, 140, 240 and 340 ms.
    assert_eq!(log.reads(), 6);
    log.append(1);
    assert_eq!(indexes(&mut stream, 1).await, [1]);
    assert_eq!(start.elapsed(), Duration::from_millis(440));
    log.append(1);
    assert_eq!(indexes(&mut stream, 1).await, [2]);
    assert_eq!(start.elapsed(), Duration::from_millis(460));
}

#[tokio::test]
async fn a_stream_with_much_to_give_lets_others_run() {
    let (hub, log, name) = fixture("gives-way", 5_000);
    let mut stream = event_stream(log, &hub, &name, Index::ZERO, None);
    let other = tokio::spawn(async {});
    for _ in 0..5_000 {
        stream.next().await.unwrap().unwrap();
        if other.is_finished() {
            return;
        }
    }
    panic!("the other task never ran");
}
