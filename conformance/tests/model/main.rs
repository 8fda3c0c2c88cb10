//! The model test on the embedded stores, in parts that run beside each other, and on stores broken
//! on purpose, which it must find. With a server's feature also on that store.
//!
//! `A2_MODEL_HISTORIES` is the number of histories for each embedded backend (2,000 by default), of
//! which a server gets every tenth; `A2_MODEL_SEED` is the first one's seed (1 by default, so that every
//! run does the same).

mod broken;

use std::process::ExitCode;
use std::sync::Arc;
#[cfg(any(feature = "postgres", feature = "redis"))]
use std::sync::LazyLock;

use a2_conformance::backends::Memory;
#[cfg(feature = "postgres")]
use a2_conformance::backends::Postgres;
#[cfg(feature = "redis")]
use a2_conformance::backends::Redis;
#[cfg(feature = "sqlite")]
use a2_conformance::backends::Sqlite;
use a2_conformance::saboteurs::{SABOTEURS, Sabotaged, Saboteur};
#[cfg(any(feature = "postgres", feature = "redis"))]
use a2_conformance::servers::Servers;
use a2_conformance::{Factory, RuleId, Setup, model};
use a2_core::SystemClock;
use a2_store_memory::MemoryStore;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};

use broken::{BrokenFactory, Fault};

/// How many tests a backend's histories are split into.
const PARTS: u32 = 8;

/// A server answers in a round trip what the embedded stores answer by a call.
#[cfg(any(feature = "postgres", feature = "redis"))]
const A_SERVERS_SHARE: u32 = 10;

/// One server for all parts.
#[cfg(feature = "postgres")]
static POSTGRES: LazyLock<Arc<Postgres>> = LazyLock::new(|| Arc::new(Postgres::new(Servers::Auto)));
#[cfg(feature = "redis")]
static REDIS: LazyLock<Arc<Redis>> = LazyLock::new(|| Arc::new(Redis::new(Servers::Auto)));

/// Opens a backend's factory.
type Open = fn() -> Arc<dyn Factory>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let histories = number("A2_MODEL_HISTORIES").unwrap_or(2_000);
    let histories = u32::try_from(histories).unwrap_or(u32::MAX);
    let seed = number("A2_MODEL_SEED").unwrap_or(1);
    let mut trials = Vec::new();
    let backends: &[(Open, u32)] = &[
        (|| Arc::new(Memory::default()), 1),
        #[cfg(feature = "sqlite")]
        (|| Arc::new(Sqlite::relaxed()), 1),
        #[cfg(feature = "postgres")]
        (|| Arc::clone(&*POSTGRES) as _, A_SERVERS_SHARE),
        #[cfg(feature = "redis")]
        (|| Arc::clone(&*REDIS) as _, A_SERVERS_SHARE),
    ];
    for (backend, share) in backends.iter().copied() {
        let name = backend().name().to_owned();
        let histories = histories.div_ceil(share);
        let per_part = histories.div_ceil(PARTS);
        for part in 0..PARTS {
            let first = part * per_part;
            let count = histories.saturating_sub(first).min(per_part);
            trials.push(Trial::test(format!("{name}::histories_{part}"), move || {
                let seed = seed.wrapping_add(first.into());
                runtime()?.block_on(model::check(backend(), count, seed))?;
                Ok(())
            }));
        }
        trials.push(Trial::test(format!("{name}::replays"), move || {
            runtime()?.block_on(model::replays(&*backend()))?;
            Ok(())
        }));
    }
    for fault in Fault::ALL {
        trials.push(Trial::test(format!("shrinks::{fault:?}"), move || shrinks(fault)));
    }
    for saboteur in SABOTEURS {
        let name = saboteur.name();
        trials.push(Trial::test(format!("finds::{name}"), move || finds(*saboteur)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Within how many histories a broken rule must be found, and in how few steps shown.
const FOUND_WITHIN: u32 = 250;
const SHOWN_IN: usize = 12;

fn shrinks(fault: Fault) -> Result<(), Failed> {
    let factory = Arc::new(BrokenFactory(fault));
    match runtime()?.block_on(model::check(factory, FOUND_WITHIN, 1)) {
        Ok(()) => Err(format!("not found in {FOUND_WITHIN} histories").into()),
        Err(found) if found.steps.len() > SHOWN_IN => {
            Err(format!("{} steps after shrinking\n{found}", found.steps.len()).into())
        }
        Err(_) => Ok(()),
    }
}

/// What no history can see: large data and long names, the words of errors, waiting streams and
/// watches and readers, what a closed or corrupt store does, how far reclaim got.
const OUT_OF_SIGHT: &[&str] = &[
    "BytesUncapped",
    "ClearReclaims",
    "ClosedGoesOn",
    "DefaultLimitHigher",
    "HintsNever",
    "HoleUnnoticed",
    "InvalidInputVague",
    "LeaseCapped",
    "ReclaimClaimsDone",
    "SlowReaderLosesEvents",
    "StreamEndsInSilence",
    "StreamsStay",
    "TimerKeysCut",
    "WatchStartsEmpty",
];

/// No history is run on a store that was given limits of its own.
const OF_LIMITED_STORES: &[RuleId] = &[RuleId::R91, RuleId::R92];

/// The suite's saboteurs break one rule each; all but those out of sight are found.
fn finds(saboteur: Saboteur) -> Result<(), Failed> {
    let handle = |store: &MemoryStore, setup: &Setup| {
        store.with_clock(setup.clock().unwrap_or_else(|| Arc::new(SystemClock)))
    };
    let open = move |setup: &Setup| handle(&MemoryStore::new(), setup);
    let close = |store: MemoryStore| async move { store.close().await };
    let factory = Arc::new(Sabotaged::new(saboteur, open, handle, close));
    let unseen =
        OUT_OF_SIGHT.contains(&saboteur.name()) || OF_LIMITED_STORES.contains(&saboteur.rule());
    let histories = if unseen { 10 } else { FOUND_WITHIN };
    match (runtime()?.block_on(model::find(factory, histories, 1)), unseen) {
        (Ok(()), true) | (Err(_), false) => Ok(()),
        (Ok(()), false) => {
            Err(format!("{} is not found in {histories} histories", saboteur.breaks()).into())
        }
        (Err(found), true) => Err(format!("{} is in sight\n{found}", saboteur.name()).into()),
    }
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
