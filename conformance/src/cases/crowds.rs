//! Many at once: appenders, readers and streams on one session and on many.

use a2_core::{
    Claim, Clear, EventStream, PresenceUpdate, ReadRange, Redrive, RedriveAction, SessionId,
    StoreExt,
};
use futures_util::future::join_all;

use crate::Cx;
use crate::case::cases;
use crate::kit::*;

cases![
    "crowds.appenders_and_readers" => appenders_and_readers: rules(R2, R5, R80, F1), slow;
    "crowds.appenders_and_readers.handles" => appenders_and_readers_of_handles:
        rules(R2, R5, R80, F1), slow, needs(Another);
    "crowds.sessions_with_logs" => sessions_with_logs: rules(R5, R29, R31, F1), slow;
    "crowds.thousand_streams" => thousand_streams: rules(R80, R83), slow;
    "crowds.same_targets_in_any_order" => same_targets_in_any_order: rules(R36, F42), slow;
    "crowds.streams_and_work" => streams_and_work: rules(R80, R83, F24), slow;
    "crowds.cancelled_calls" => cancelled_calls: rules(R36, F39), slow;
    "crowds.cancelled_attempts" => cancelled_attempts: rules(R36, R52, F39), slow;
    "crowds.cancelled_clears" => cancelled_clears: rules(R36, R68, F39), slow;
    "crowds.cancelled_reads" => cancelled_reads: rules(R36, F38), slow;
    "crowds.cancelled_presence_reads" => cancelled_presence_reads:
        rules(R36, F38), slow, needs(Presence);
];

/// Appends so many batches of one event each.
async fn append_one_by_one(cx: Cx, s: SessionId, task: usize, n: usize) {
    for i in 0..n {
        append(&cx, &s, [ev(&format!("{task}-{i}"))]).await;
    }
}

/// Reads page by page until `last`; no page may show a hole.
async fn read_up_to(cx: Cx, s: SessionId, last: u64) {
    let mut after = 0;
    while after < last {
        let read = cx.store().read(&s, ReadRange::after(at(after))).await.unwrap();
        let n = read.events.len() as u64;
        assert_eq!(indexes(&read.events), (after + 1..=after + n).collect::<Vec<_>>());
        after += n;
        if n == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(after, last);
}

async fn stream_up_to(cx: Cx, mut stream: EventStream, last: u64) {
    for i in 1..=last {
        assert_eq!(next(&cx, &mut stream).await.index, i);
    }
}

async fn appenders_and_readers(cx: Cx) {
    crowd(&[cx], 200).await;
}

async fn appenders_and_readers_of_handles(cx: Cx) {
    let others = [cx.another().await, cx.another().await];
    crowd(&[cx, others[0].clone(), others[1].clone()], 25).await;
}

/// 32 appenders of so many batches, spread over the handles; each handle reads and streams.
async fn crowd(handles: &[Cx], batches: usize) {
    let s = handles[0].session("crowd");
    let last = 32 * batches as u64;
    let mut tasks = Vec::new();
    for cx in handles {
        let stream = cx.store().stream(&s, at(0));
        tasks.push(tokio::spawn(stream_up_to(cx.clone(), stream, last)));
        tasks.push(tokio::spawn(read_up_to(cx.clone(), s.clone(), last)));
    }
    for task in 0..32 {
        let cx = handles[task % handles.len()].clone();
        tasks.push(tokio::spawn(append_one_by_one(cx, s.clone(), task, batches)));
    }
    for task in join_all(tasks).await {
        task.unwrap();
    }
    assert_eq!(handles[0].store().head(&s).await.unwrap(), last);
}

async fn sessions_with_logs(cx: Cx) {
    let sessions: Vec<_> = (0..4).map(|i| cx.session(&format!("s{i}"))).collect();
    let mut tasks = Vec::new();
    for s in &sessions {
        for task in 0..4 {
            let (cx, s) = (cx.clone(), s.clone());
            tasks.push(tokio::spawn(async move {
                for i in 0..25 {
                    let served = serve_log("c", all_types("log").backfill());
                    let request = batch([ev(&format!("{task}-{i}"))]).served(served);
                    let _ = cx.store().append(&s, request).await.unwrap();
                }
            }));
        }
        // One reader of the log: every event, once and in order.
        let (cx, s) = (cx.clone(), s.clone());
        tasks.push(tokio::spawn(async move {
            let mut expected = 1;
            while expected <= 100 {
                let run = claim().served(serve(["c"])).run(10).unwrap();
                let claim = cx.store().claim_available(&s, run).await.unwrap();
                let Claim::Claimed(claimed) = claim else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let head = &claimed.heads[0];
                let mut seen = vec![head.head.index.get()];
                seen.extend(indexes(&head.run));
                let last = expected + seen.len() as u64;
                assert_eq!(seen, (expected..last).collect::<Vec<_>>());
                let done = complete(head).through(head.run_through()).unwrap();
                let done = expect_completed(cx.store().complete_attempt(&s, done).await);
                assert!(!done.replayed);
                expected = last;
            }
        }));
    }
    for task in join_all(tasks).await {
        task.unwrap();
    }
    for s in &sessions {
        assert_eq!(indexes(&log(&cx, s).await), (1..=100).collect::<Vec<u64>>());
        expect_settled(cx.store().claim_available(s, claim()).await);
    }
}

async fn thousand_streams(cx: Cx) {
    let sessions: Vec<_> = (0..10).map(|i| cx.session(&format!("s{i}"))).collect();
    for s in &sessions {
        append(&cx, s, [ev("history")]).await;
    }
    let streams = (0..1_000).map(|i| {
        let stream = cx.store().stream(&sessions[i % 10], at(0));
        tokio::spawn(stream_up_to(cx.clone(), stream, 4))
    });
    let streams: Vec<_> = streams.collect();
    for s in &sessions {
        append(&cx, s, [ev("a"), ev("b")]).await;
        append(&cx, s, [ev("c")]).await;
    }
    for stream in join_all(streams).await {
        stream.unwrap();
    }
    // All are gone; the store works.
    append(&cx, &sessions[0], [ev("after")]).await;
    assert_eq!(cx.store().head(&sessions[0]).await.unwrap(), 5);
}

async fn streams_and_work(cx: Cx) {
    // Streams that wait, as many as no pool has connections.
    let idle = cx.session("idle");
    let mut streams: Vec<_> = (0..50).map(|_| cx.store().stream(&idle, at(0))).collect();
    for stream in &mut streams {
        assert!(is_waiting(stream));
    }
    let workers = (0..40).map(|i| {
        let (cx, s) = (cx.clone(), cx.session(&format!("work{i}")));
        tokio::spawn(async move {
            append(&cx, &s, [ev("a").target(to_event("c"))]).await;
            let head = claim_one(&cx, &s, "c").await;
            finish(&cx, &s, &head).await;
        })
    });
    for worker in cx.within(secs(10), join_all(workers)).await {
        worker.unwrap();
    }
    append(&cx, &idle, [ev("a")]).await;
    for stream in &mut streams {
        assert_eq!(next(&cx, stream).await.index, 1);
    }
    drop(streams);
    append(&cx, &idle, [ev("b")]).await;
    assert_eq!(next(&cx, &mut cx.store().stream(&idle, at(1))).await.index, 2);
}

async fn same_targets_in_any_order(cx: Cx) {
    let (s, ninth) = (cx.session("targets"), cx.session("ninth"));
    let tasks = (0..8).map(|task: usize| {
        let (cx, s, ninth) = (cx.clone(), s.clone(), ninth.clone());
        tokio::spawn(async move {
            for round in 0..30 {
                // Six lanes, from another one on for each task, in either direction.
                let mut lanes: Vec<_> =
                    (0..6).map(|i| to_lane("c", &((i + task) % 6).to_string())).collect();
                if round % 2 == 1 {
                    lanes.reverse();
                }
                let events = lanes
                    .into_iter()
                    .enumerate()
                    .map(|(i, lane)| ev(&format!("{task}-{round}-{i}")).target(lane));
                append(&cx, &s, events).await;
                let other = claim_as(&format!("w{task}"), secs(60)).limit(2).unwrap();
                let claimed = cx.store().claim_available(&s, other).await.unwrap();
                append(&cx, &ninth, [ev(&format!("{task}-{round}")).target(to_lane("c", "l"))])
                    .await;
                clear(&cx, &ninth).await;
                for head in claimed.into_heads() {
                    assert_eq!(head.state.failure_count, 0, "nobody is charged for a conflict");
                    if (head.head.index.get() + head.attempt()).is_multiple_of(5) {
                        bury(&cx, &s, &head).await;
                        let retry = Redrive::new(head.head, RedriveAction::Retry);
                        assert!(cx.store().redrive(&s, retry).await.unwrap().redriven);
                        continue;
                    }
                    let child = ev(&format!("child-{task}-{round}-{}", head.head.index));
                    let child = child.target(to_lane("d", &(round % 6).to_string()));
                    let done = complete(&head).events([child]).unwrap();
                    let done = expect_completed(cx.store().complete_attempt(&s, done).await);
                    assert!(!done.replayed);
                }
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    // Every child came of one completed head; no head was lost.
    let stored = log(&cx, &s).await;
    let children = stored.iter().filter(|event| event.cause.is_some()).count();
    assert_eq!(stored.len(), 8 * 30 * 6 + children);
    let mut left = 0;
    loop {
        let claimed = cx.store().claim_available(&s, claim()).await.unwrap().into_heads();
        if claimed.is_empty() {
            break;
        }
        for head in &claimed {
            finish(&cx, &s, head).await;
        }
        left += claimed.len();
    }
    assert_eq!(left + children, stored.len(), "each event had one target");
}

async fn cancelled_calls(cx: Cx) {
    let s = cx.session("cancelled");
    let mut acknowledged = Vec::new();
    for round in 0_u64..300 {
        let wait = std::time::Duration::from_micros((round * 53) % 1_500);
        let id = format!("b{round}-");
        let events = batch(many(&id, 3).into_iter().map(|event| event.target(to_lane("c", "l"))));
        if let Ok(answer) = tokio::time::timeout(wait, cx.store().append(&s, events)).await {
            assert!(!answer.unwrap().replayed);
            acknowledged.push(id);
        }
        let one = claim_as(WORKER, secs(60)).limit(1).unwrap();
        let _ = tokio::time::timeout(wait, cx.store().claim_available(&s, one)).await;
        let _ = tokio::time::timeout(wait, cx.store().cursors(&s, a2_core::Page::first())).await;
    }
    // Each batch is there as a whole or not at all, those that were acknowledged are.
    let stored = log(&cx, &s).await;
    assert_eq!(indexes(&stored), (1..=stored.len() as u64).collect::<Vec<_>>());
    assert_eq!(stored.len() % 3, 0);
    for three in stored.chunks(3) {
        let id = three[0].id.as_str().strip_suffix('1').unwrap();
        assert_eq!(ids(three), [format!("{id}1"), format!("{id}2"), format!("{id}3")]);
    }
    for id in acknowledged {
        assert!(stored.iter().any(|event| event.id == *format!("{id}1")), "{id} is lost");
    }
    // And everything works without waiting for what was dropped.
    append(&cx, &s, [ev("after")]).await;
    clear(&cx, &s).await;
    append(&cx, &s, [ev("new").target(to_event("d"))]).await;
    let head = claim_one(&cx, &s, "d").await;
    finish(&cx, &s, &head).await;
}

async fn cancelled_attempts(cx: Cx) {
    let s = cx.session("attempts");
    append(&cx, &s, many("e", 60).into_iter().map(|event| event.target(to_lane("c", "l")))).await;
    for round in 0_u64..200 {
        let wait = std::time::Duration::from_micros((round * 61) % 1_500);
        // A claim whose answer nobody waited for lapses.
        cx.pass(ms(20)).await;
        let one = cx.store().claim_available(&s, claim_as(WORKER, ms(20)));
        let Ok(claimed) = tokio::time::timeout(wait, one).await else { continue };
        for head in claimed.unwrap().into_heads() {
            let pair = [format!("x{round}"), format!("y{round}")].map(|id| ev(&id));
            let done = complete(&head).events(pair).unwrap();
            let _ = tokio::time::timeout(wait, cx.store().complete_attempt(&s, done)).await;
        }
    }
    // What was given up may still be under way: it is done, or superseded, when the rest is finished.
    let mut done = Vec::new();
    loop {
        cx.pass(ms(20)).await;
        match cx.store().claim_available(&s, claim()).await.unwrap() {
            Claim::Claimed(claimed) => {
                for head in &claimed.heads {
                    finish(&cx, &s, head).await;
                    done.push(head.head.clone());
                }
            }
            Claim::Busy(_) => {}
            Claim::Settled => break,
        }
    }
    // A completion and what it returns are there together or not at all, and once for each head.
    let stored = log(&cx, &s).await;
    let mut returned = Vec::new();
    for pair in stored[60..].chunks(2) {
        assert_eq!(pair[0].id.as_str().replace('x', "y"), pair[1].id.as_str());
        assert_eq!(pair[0].cause, pair[1].cause);
        returned.push(pair[0].cause.as_ref().unwrap().head.clone());
    }
    returned.extend(done);
    assert_eq!(returned, (1..=60).map(|i| lane_head("c", "l", i)).collect::<Vec<_>>());
}

async fn cancelled_clears(cx: Cx) {
    for round in 0_u64..100 {
        let s = cx.session("clears");
        append(&cx, &s, many("e", 3).into_iter().map(|event| event.target(to_lane("c", "l"))))
            .await;
        let request = Clear::new();
        let wait = std::time::Duration::from_micros((round * 47) % 1_200);
        let _ = tokio::time::timeout(wait, cx.store().clear(&s, request.clone())).await;
        let found = indexes(&log(&cx, &s).await);
        assert!(found == [1, 2, 3] || found == [4], "{found:?}");
        let again = cx.store().clear(&s, request).await.unwrap();
        assert_eq!((again.cleared, again.index.get(), again.clear_index.get()), (true, 4, 4));
        expect_settled(cx.store().claim_available(&s, claim()).await);
    }
}

async fn cancelled_presence_reads(cx: Cx) {
    let (a, b) = (cx.namespace("a"), cx.namespace("b"));
    let write = |value| PresenceUpdate::new("p", secs(60)).unwrap().set("f", json(value)).unwrap();
    cx.presence().set_presence(&a, write("\"a\"")).await.unwrap();
    cx.presence().set_presence(&b, write("\"b\"")).await.unwrap();
    for round in 0_u64..500 {
        let wait = std::time::Duration::from_micros((round * 7) % 500);
        let _ = tokio::time::timeout(wait, cx.presence().read_presence(&a)).await;
        let rows = cx.presence().read_presence(&b).await.unwrap().rows;
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].value.as_str(), "\"b\"");
    }
}

async fn cancelled_reads(cx: Cx) {
    let (a, b) = (cx.session("a"), cx.session("b"));
    append(&cx, &a, (0..50).map(|i| event("t", &format!("\"a{i}\"")))).await;
    append(&cx, &b, [event("t", "\"b\"").target(to_event("c"))]).await;
    for round in 0_u64..1_000 {
        let wait = std::time::Duration::from_micros((round * 7) % 500);
        let dropped = cx.store().read(&a, ReadRange::default());
        let _ = tokio::time::timeout(wait, dropped).await;
        // The next answer is its own, never the one that was not waited for.
        let stored = log(&cx, &b).await;
        assert_eq!(stored.len(), 1);
        assert_eq!(stored[0].payload.as_str(), "\"b\"");
        assert_eq!(cx.store().all_cursors(&b).await.unwrap().len(), 1);
    }
}
