//! Tests the framework: what a backend lacks shows, what fails is named.
#![cfg(feature = "memory")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;

use a2_conformance::{
    BoxError, Capability, Factory, Filter, Options, Outcome, Report, Setup, Subject, all_cases,
    all_scenarios, async_trait, run,
};
use a2_store_memory::MemoryStore;

/// What is wrong with the store that a factory opens.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    CannotBeOpened,
    Closed,
    LacksTheRest,
}

#[async_trait]
impl Factory for Flaw {
    fn name(&self) -> &str {
        "flawed"
    }

    async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
        let store = match setup.clock() {
            Some(clock) => MemoryStore::builder().clock(clock).build(),
            None => MemoryStore::new(),
        };
        match self {
            Self::None => Ok(Subject::full(store)),
            Self::CannotBeOpened => Err("the disk is full".into()),
            Self::LacksTheRest => Ok(Subject::new(store)),
            Self::Closed => {
                store.close().await;
                Ok(Subject::full(store))
            }
        }
    }
}

fn report(flaw: Flaw, filter: &str) -> Report {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let filter = Filter::containing([filter]);
    runtime.block_on(run(Arc::new(flaw), &filter, Options::default()))
}

/// The message and the operations of the one case, which failed.
fn failure(report: &Report) -> (&str, &[String]) {
    let [result] = &report.results[..] else { panic!("one case: {report:?}") };
    assert!(!report.is_success());
    match &result.outcome {
        Outcome::Failed { message, operations } => (message, operations),
        outcome => panic!("expected a failure, got {outcome:?}"),
    }
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    for scenario in all_scenarios() {
        let name = scenario.name();
        assert!(names.insert(name.clone()), "{name} twice");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
        let base = name.strip_suffix("@live").unwrap_or(&name);
        assert!(base.contains('.') && base.chars().all(plain), "{name}");
        assert!(!name.ends_with("@live") || scenario.is_live(), "{name}");
    }
    assert!(all_cases().count() > 500);
}

#[test]
fn a_sound_store_passes() {
    let report = report(Flaw::None, "append.index.dense");
    assert!(report.is_success(), "{report:?}");
    let groups = report.groups();
    assert_eq!(groups["append"]["flawed"].passed, 1);
    assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
}

#[test]
fn what_is_lacking_shows() {
    for (filter, capability) in [
        ("timers.fire.once@live", Capability::Timers),
        ("presence.empty@live", Capability::Presence),
        ("append.index.another_handle", Capability::Another),
    ] {
        let report = report(Flaw::LacksTheRest, filter);
        assert_eq!(report.results.len(), 1);
        assert_eq!(report.results[0].outcome, Outcome::Lacks { capability });
        assert!(report.results[0].to_string().contains("lacks"));
    }
}

#[test]
fn a_failure_names_the_operation_and_the_place() {
    let report = report(Flaw::Closed, "append.index.dense");
    let (message, operations) = failure(&report);
    assert!(message.contains("code: \"CLOSED\""), "{message}");
    assert!(message.contains(".rs:"), "where: {message}");
    let last = operations.last().unwrap();
    assert!(last.starts_with("append ") && last.ends_with("CLOSED"), "{last}");
    let shown = report.results[0].to_string();
    assert!(shown.starts_with("flawed append.index.dense: FAILED"), "{shown}");
    assert!(shown.contains("operation: append"), "{shown}");
}

#[test]
fn a_store_that_cannot_be_opened_is_a_failure() {
    let report = report(Flaw::CannotBeOpened, "append.index.dense");
    assert_eq!(failure(&report).0, "no store: the disk is full");
}

#[test]
fn no_case_at_all_is_no_success() {
    let report = report(Flaw::None, "there is no such case");
    assert_eq!(report.results, []);
    assert!(!report.is_success());
}
