//! Tests the suite: each store that breaks a rule is caught by the case that names the rule.

use std::process::ExitCode;
use std::sync::Arc;

use a2_conformance::saboteurs::{SABOTEURS, Sabotaged, Saboteur};
use a2_conformance::{Outcome, Setup, all_scenarios, run_one};
use a2_core::SystemClock;
use a2_store_memory::MemoryStore;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // With A2_SABOTEURS=all, every case that catches a saboteur is listed.
    let all = std::env::var_os("A2_SABOTEURS").is_some_and(|value| value == "all");
    let trials = SABOTEURS
        .iter()
        .map(|saboteur| Trial::test(saboteur.name(), move || catch(*saboteur, all)))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn catch(saboteur: Saboteur, all: bool) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let handle = |store: &MemoryStore, setup: &Setup| {
        store.with_clock(setup.clock().unwrap_or_else(|| Arc::new(SystemClock)))
    };
    let open = move |setup: &Setup| handle(&MemoryStore::new(), setup);
    let close = |store: MemoryStore| async move { store.close().await };
    let factory = Arc::new(Sabotaged::new(saboteur, open, handle, close));
    let mut caught = Vec::new();
    for scenario in all_scenarios() {
        let name = scenario.name();
        if name == saboteur.caught_by()
            || (all && !scenario.is_live() && !scenario.case().is_slow())
        {
            let factory = Arc::clone(&factory);
            let ran = runtime.spawn(async move { run_one(&*factory, &scenario).await });
            if let Outcome::Failed { message, .. } = runtime.block_on(ran)?.outcome {
                caught.push((name, message));
            }
        }
    }
    if all {
        for (name, message) in &caught {
            println!("{}: {name}: {}", saboteur.name(), message.lines().next().unwrap_or_default());
        }
    }
    if caught.iter().any(|(name, _)| name == saboteur.caught_by()) {
        return Ok(());
    }
    Err(format!(
        "{} ({}) was not caught by {}",
        saboteur.name(),
        saboteur.breaks(),
        saboteur.caught_by()
    )
    .into())
}
