//! A small service on real input: each delivery is handled once, whoever is killed.

use std::collections::BTreeMap;
use std::fs;

use crate::killing::{Example, Logs, read_logs};

const ROUNDS: usize = 25;
const WEBHOOKS: Example = Example("webhooks");
const DELIVERIES: &str = include_str!("../../examples/webhooks/data/deliveries.jsonl");

/// Of every session: how many events of each type.
type Counts = BTreeMap<String, BTreeMap<String, usize>>;

#[test]
fn killed_runs_end_like_one_that_was_not() {
    let (_, logs) = WEBHOOKS.ends_the_same(ROUNDS);
    assert_eq!(counts(&logs), expected());
}

#[test]
fn a_second_run_finds_everything_done() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("twice.db");
    let report = WEBHOOKS.run_to_the_end(&database);
    let logs = read_logs(&database);
    assert_eq!(WEBHOOKS.run_to_the_end(&database), report);
    assert_eq!(read_logs(&database), logs);
    let said = fs::read_to_string(database.with_extension("stderr")).unwrap();
    assert!(said.contains("octocoders: 0 new deliveries, 23 were there already"), "{said}");
}

fn counts(logs: &Logs) -> Counts {
    let mut counts = Counts::new();
    // The runtime keeps notes in a session of its own.
    for (session, log) in logs.iter().filter(|(session, _)| *session != "a2.runtime") {
        for (event_type, _) in log.values() {
            *counts.entry(session.clone()).or_default().entry(event_type.clone()).or_default() += 1;
        }
    }
    counts
}

/// What the deliveries must lead to: each is notified, those of a thread are triaged, but for the one
/// that was skipped.
fn expected() -> Counts {
    let mut counts = Counts::new();
    for line in DELIVERIES.lines() {
        let delivery: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| delivery[field].as_str().unwrap().to_owned();
        let log = counts.entry(text("session")).or_default();
        let mut add = |event_type: String| *log.entry(event_type).or_default() += 1;
        add(text("type"));
        add("notification.sent".to_owned());
        let kinds = ["issue", "pull_request", "discussion", "milestone"];
        let threaded = kinds.iter().any(|kind| delivery["payload"][kind].is_object());
        if threaded && text("id") != "delivery-0138" {
            add("thread.updated".to_owned());
        }
    }
    let operations = [("dead_letter.redriven", 2), ("triage.released", 1)];
    let operations = operations.map(|(event_type, count)| (event_type.to_owned(), count));
    counts.insert("operations".to_owned(), operations.into());
    counts
}
