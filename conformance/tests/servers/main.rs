//! Starts and stops every kind of server, as the stores' tests will: by itself, in containers, behind
//! URLs, and with a harness that ends badly. Servers of this machine must be installed: where one is
//! not, its tests fail with the sentence on how to get it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(unix)]
mod child;
#[cfg(all(unix, feature = "docker"))]
mod docker;
#[cfg(unix)]
mod endings;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod local;
#[cfg(unix)]
mod urls;
#[cfg(unix)]
mod util;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    if let Some(task) = std::env::var_os(child::TASK) {
        return child::run(&task.to_string_lossy());
    }
    let arguments = libtest_mimic::Arguments::from_args();
    #[cfg(not(unix))]
    let trials = Vec::new();
    #[cfg(unix)]
    let trials = {
        let mut trials = [local::trials(), faults::trials(), endings::trials(), urls::trials()];
        #[allow(unused_mut)]
        let mut trials: Vec<_> = trials.iter_mut().flat_map(std::mem::take).collect();
        #[cfg(feature = "docker")]
        trials.extend(docker::trials());
        trials
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}
