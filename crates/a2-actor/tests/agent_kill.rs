//! The example `agent`, killed at any moment and run again, ends as if it had not been.

#![allow(clippy::unwrap_used)]

#[path = "../../a2-runtime/tests/killed/killing.rs"]
mod killing;

use killing::Example;

#[test]
fn a_killed_agent_goes_on() {
    let (report, logs) = Example("agent").ends_the_same(12);
    let names: Vec<_> = logs.keys().map(String::as_str).collect();
    assert_eq!(names, ["ada", "barbara", "edsger", "grace"]);
    assert!(report.contains("calculate 12 * 12 gives 144"), "{report}");
    assert!(report.contains("error: it has no result"), "{report}");
}
