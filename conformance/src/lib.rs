//! The conformance suite: every rule of the model as a named case that any [`Store`] can run.
//!
//! A backend certifies itself with a [`Factory`], which opens stores for the cases, and one
//! integration test with `harness = false` in its `Cargo.toml`:
//!
//! ```
//! use std::sync::Arc;
//! use a2_conformance::{BoxError, Factory, Setup, Subject, async_trait, libtest_main};
//! # use example::MyStore;
//!
//! struct Mine;
//!
//! #[async_trait]
//! impl Factory for Mine {
//!     fn name(&self) -> &str {
//!         "mine"
//!     }
//!     async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
//!         Ok(Subject::new(MyStore::open("mine://localhost", setup.clock()).await?))
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     # if true { return std::process::ExitCode::SUCCESS; }
//!     libtest_main([Arc::new(Mine) as Arc<dyn Factory>])
//! }
//! # mod example {
//! #     use std::sync::Arc;
//! #     use a2_core::{Clock, Error, Store};
//! #     pub struct MyStore;
//! #     impl MyStore {
//! #         pub async fn open(_: &str, _: Option<Arc<dyn Clock>>) -> Result<Arc<dyn Store>, Error> {
//! #             Err(Error::not_configured("an example"))
//! #         }
//! #     }
//! # }
//! ```
//!
//! A store with `Timers` and `Presence` is given with [`Subject::full`]; what a store lacks is
//! reported for each case that needs it. [`Subject::another`] tells how to open a second handle on
//! the same data, [`Subject::guard`] takes what cleans up. Cases that want a store of their own say
//! so in [`Setup::isolation`]; all others use fresh session names and may share a server.
//!
//! [`run`] runs the suite from a program and gives a [`Report`]. Each case names the rules of the
//! model and the faults seen in the field that it checks: [`Case::rules`]. That the cases can fail is
//! proven by the [`saboteurs`].
//!
//! [`Store`]: a2_core::Store

pub mod backends;
mod case;
mod cases;
mod cx;
mod dispatch;
mod factory;
pub mod history;
mod kit;
mod libtest;
mod losing;
pub mod model;
mod order;
mod report;
mod rule;
mod runner;
pub mod saboteurs;
#[cfg(feature = "servers")]
pub mod servers;
mod trace;

pub use async_trait::async_trait;

pub use case::{Capability, Case, ClockUse, Isolation, Scenario};
pub use cx::Cx;
pub use factory::{BoxError, Factory, Setup, Subject};
pub use libtest::libtest_main;
pub use losing::{Losing, Loss};
pub use report::{CaseResult, Counts, Outcome, Report};
pub use rule::RuleId;
pub use runner::{Filter, Options, run, run_one};

/// Every case of the suite, area by area.
pub fn all_cases() -> impl Iterator<Item = &'static Case> {
    cases::AREAS.iter().flat_map(|area| area.iter())
}

/// Every case once for each clock that it runs with.
pub fn all_scenarios() -> impl Iterator<Item = Scenario> {
    all_cases().flat_map(Case::scenarios)
}
