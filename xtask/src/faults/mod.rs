//! Histories with real time on stores whose servers and processes are harmed meanwhile: what was done,
//! how long it took until work went on, and whether anything happened that must not.

mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redis_cluster;
mod report;
mod round;
mod sqlite;
mod theatre;
pub(crate) mod worker;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use report::Outcome;
use theatre::Theatre;

/// What is harmed, and for how long.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A backend, repeatable; memory and sqlite when none is given.
    #[arg(long = "backend", value_name = "NAME")]
    backends: Vec<Backend>,
    /// How long each backend is harmed; parts of a minute may be given.
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    minutes: f64,
    /// What the choices are made by.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Write what came of it to `NAME.md` in this folder, for each backend.
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backend {
    Memory,
    Sqlite,
    Postgres,
    Redis,
    /// A Redis whose copy takes over.
    RedisFailover,
    RedisCluster,
}

/// Runs all of it; an error when anything happened that must not.
pub(crate) async fn run(args: Args) -> Result<()> {
    let backends = match &args.backends[..] {
        [] => &[Backend::Memory, Backend::Sqlite][..],
        some => some,
    };
    let span = Duration::try_from_secs_f64(args.minutes * 60.0).context("--minutes")?;
    let mut violations = 0;
    for backend in backends {
        let name = backend.to_possible_value().map(|value| value.get_name().to_owned());
        let name = name.unwrap_or_default();
        let outcome = harm(&name, backend.theatre().await?, span, args.seed).await?;
        violations += outcome.violations.len();
        let text = outcome.to_string();
        println!("{text}");
        if let Some(folder) = &args.report {
            let file = folder.join(format!("{name}.md"));
            std::fs::create_dir_all(folder)?;
            std::fs::write(&file, text).with_context(|| file.display().to_string())?;
        }
    }
    if violations > 0 {
        bail!("{violations} violations");
    }
    Ok(())
}

async fn harm(name: &str, theatre: Box<dyn Theatre>, span: Duration, seed: u64) -> Result<Outcome> {
    let mut outcome = Outcome::new(name, &*theatre, span, seed);
    let deadline = Instant::now() + span;
    eprintln!("{name}: {}", theatre.describe());
    while outcome.rounds == 0 || Instant::now() < deadline {
        round::run(&*theatre, &mut outcome, deadline).await?;
        if !outcome.violations.is_empty() {
            break;
        }
    }
    Ok(outcome)
}

impl Backend {
    async fn theatre(self) -> Result<Box<dyn Theatre>> {
        Ok(match self {
            Self::Memory => Box::new(memory::Memory::default()),
            Self::Sqlite => Box::new(sqlite::Sqlite::new()?),
            #[cfg(feature = "postgres")]
            Self::Postgres => Box::new(postgres::Postgres::start().await?),
            #[cfg(feature = "redis")]
            Self::Redis => Box::new(redis::Redis::start().await?),
            #[cfg(feature = "redis")]
            Self::RedisFailover => Box::new(redis::Failover::start().await?),
            #[cfg(feature = "redis")]
            Self::RedisCluster => Box::new(redis_cluster::Cluster::start().await?),
            #[cfg(not(feature = "postgres"))]
            Self::Postgres => bail!("not built in: add --features postgres"),
            #[cfg(not(feature = "redis"))]
            Self::Redis | Self::RedisFailover | Self::RedisCluster => {
                bail!("not built in: add --features redis")
            }
        })
    }
}
