//! Histories: workers that do everything a store offers at once, while answers are lost, calls are given
//! up and leases lapse; every call and every answer is written down, and then it is checked what must
//! hold whatever happened.
//!
//! ```no_run
//! # async fn example(factory: std::sync::Arc<dyn a2_conformance::Factory>) {
//! use a2_conformance::history::{Plan, run};
//!
//! let report = run(&*factory, &Plan::new(7)).await;
//! assert!(report.is_ok_and(|report| report.violations.is_empty()));
//! # }
//! ```
//!
//! [`run`] does it on the stores of a factory with a manual clock, which lets leases lapse at once.
//! `cargo xtask faults` does it with real time, while real servers are killed. The workers' choices are
//! those of a seed; which call comes first is up to the machine, but for stores in memory on a runtime of
//! one thread, where a seed stands for one history.

mod check;
mod drain;
mod note;
mod random;
mod recorded;
mod recorder;
mod run;
mod work;

pub use check::{History, Invariant, Violation, check};
pub use note::{Answer, Asked, Claiming, Note, Sent};
pub use random::Random;
pub use recorded::Recorded;
pub use recorder::Recorder;
pub use run::{Plan, Report, run};
pub use work::{Time, Workload};
