//! The suite as ordinary tests: each case is a test of `cargo test` and nextest.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::order::shuffled;
use crate::{Factory, Outcome, all_scenarios, run_one};

/// The `main` of an integration test with `harness = false`: every case on every factory, named
/// `backend::case`. With a number in `A2_SHUFFLE` they run in the order that it stands for.
///
/// ```no_run
/// # struct Mine;
/// # #[a2_conformance::async_trait]
/// # impl a2_conformance::Factory for Mine {
/// #     fn name(&self) -> &str { "mine" }
/// #     async fn open(&self, _: a2_conformance::Setup)
/// #         -> Result<a2_conformance::Subject, a2_conformance::BoxError> { Err("no".into()) }
/// # }
/// fn main() -> std::process::ExitCode {
///     a2_conformance::libtest_main([std::sync::Arc::new(Mine) as _])
/// }
/// ```
pub fn libtest_main(factories: impl IntoIterator<Item = Arc<dyn Factory>>) -> ExitCode {
    let arguments = Arguments::from_args();
    // One runtime for all: a store that cases share has its tasks there.
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = Vec::new();
    for factory in factories {
        for scenario in all_scenarios() {
            let (factory, runtime) = (Arc::clone(&factory), Arc::clone(&runtime));
            let name = format!("{}::{}", factory.name(), scenario.name());
            trials.push(Trial::ignorable_test(name, move || {
                let ran = runtime.spawn(async move { run_one(&*factory, &scenario).await });
                let result = runtime.block_on(ran)?;
                match &result.outcome {
                    Outcome::Passed => Ok(Completion::Completed),
                    Outcome::Lacks { capability } => {
                        Ok(Completion::ignored_with(format!("lacks {}", capability.name())))
                    }
                    Outcome::Failed { .. } => Err(Failed::from(result)),
                }
            }));
        }
    }
    if let Some(seed) = std::env::var_os("A2_SHUFFLE") {
        let Some(seed) = seed.to_str().and_then(|seed| seed.parse().ok()) else {
            eprintln!("A2_SHUFFLE must be a number below 2^64");
            return ExitCode::FAILURE;
        };
        trials = shuffled(trials, seed);
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
