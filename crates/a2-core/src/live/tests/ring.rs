//! The ring of a session's last events.

use super::*;
use crate::live::ring::Ring;

/// Everything from `next` on.
fn copied(ring: &mut Ring, next: u32) -> Vec<u64> {
    let mut out = Vec::new();
    let mut next = index(next);
    while let Some((chunk, place)) = ring.find(next) {
        out.extend(chunk[place..].iter().map(|event| event.index.get()));
        next = chunk.last().unwrap().index.next();
    }
    out
}

#[test]
fn batches_in_order_join() {
    let log = TestLog::new("ring-joins");
    let mut ring = Ring::default();
    assert!(copied(&mut ring, 1).is_empty());
    ring.push(&log.append(2));
    ring.push(&log.append(1));
    assert_eq!(copied(&mut ring, 1), [1, 2, 3]);
    assert_eq!(copied(&mut ring, 3), [3]);
    assert!(copied(&mut ring, 4).is_empty());
}

#[test]
fn a_late_batch_joins_at_the_front_and_an_old_one_does_not() {
    let log = TestLog::new("ring-late");
    let mut ring = Ring::default();
    let batches: Vec<_> = (0..4).map(|_| log.append(1)).collect();
    ring.push(&batches[3]);
    ring.push(&batches[2]);
    assert_eq!(copied(&mut ring, 3), [3, 4]);
    ring.push(&batches[0]);
    assert!(copied(&mut ring, 1).is_empty());
    assert_eq!(copied(&mut ring, 3), [3, 4]);
    ring.push(&batches[3]);
    assert_eq!(copied(&mut ring, 3), [3, 4]);
}

#[test]
fn a_gap_starts_anew() {
    let log = TestLog::new("ring-gap");
    let mut ring = Ring::default();
    ring.push(&log.append(2));
    log.append(1);
    ring.push(&log.append(1));
    assert!(copied(&mut ring, 1).is_empty());
    assert_eq!(copied(&mut ring, 4), [4]);
}

#[test]
fn the_last_512_events_stay_and_go_32_at_a_time() {
    let log = TestLog::new("ring-count");
    let mut ring = Ring::default();
    for _ in 0..512 {
        ring.push(&log.append(1));
    }
    assert_eq!(copied(&mut ring, 1).len(), 512);
    ring.push(&log.append(1));
    assert!(copied(&mut ring, 32).is_empty());
    assert_eq!(copied(&mut ring, 33).len(), 481);
    ring.push(&log.append(200));
    assert_eq!(copied(&mut ring, 513).len(), 201);
    // A batch that is too long leaves nothing: it does not join what was there.
    ring.push(&log.append(513));
    assert!(copied(&mut ring, 713).is_empty());
    assert!(copied(&mut ring, 1_226).is_empty());
}

#[test]
fn no_more_than_256_kib_stay() {
    let log = TestLog::new("ring-bytes");
    let mut ring = Ring::default();
    ring.push(&log.append_payload(100_000));
    ring.push(&log.append_payload(100_000));
    assert_eq!(copied(&mut ring, 1), [1, 2]);
    ring.push(&log.append_payload(100_000));
    assert_eq!(copied(&mut ring, 2), [2, 3]);
    // What is larger alone leaves nothing: it does not join what was there.
    ring.push(&log.append_payload(300_000));
    assert!(copied(&mut ring, 2).is_empty());
    assert!(copied(&mut ring, 4).is_empty());
    ring.push(&log.append(1));
    assert_eq!(copied(&mut ring, 5), [5]);
}

#[test]
fn what_is_no_piece_of_a_log_is_not_kept() {
    let log = TestLog::new("ring-broken");
    let mut ring = Ring::default();
    let events = log.append(3);
    ring.push(&[events[0].clone(), events[2].clone()]);
    assert!(copied(&mut ring, 1).is_empty());
    ring.push(&[]);
    ring.push(&events);
    assert_eq!(copied(&mut ring, 1), [1, 2, 3]);
}
