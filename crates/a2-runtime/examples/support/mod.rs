//! What the examples share: a store by its address, and the runtime's log on the terminal.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use a2_runtime::{Runtime, RuntimeBuilder};
use a2_store_postgres::PostgresStore;
use a2_store_redis::RedisStore;
use a2_store_sqlite::{SqliteStore, StoreExt as _};
use anyhow::{Result, bail};
use futures_util::StreamExt as _;

/// What was asked for.
pub(crate) struct Arguments {
    /// A SQLite file, or the URL of a Postgres or a Redis.
    pub(crate) store: String,
    /// Whether the report is to be JSON.
    pub(crate) json: bool,
}

impl Arguments {
    /// `[STORE] [--json]`. Without a store it is a SQLite file beside the program.
    pub(crate) fn parse() -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut given = Self { store: file(program.with_extension("db"))?, json: false };
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--json" => given.json = true,
                flag if flag.starts_with('-') => {
                    bail!("usage: {} [STORE] [--json]", program.display())
                }
                store => given.store = store.to_owned(),
            }
        }
        eprintln!("store     {}", given.store);
        Ok(given)
    }

    /// A runtime on the store, without consumers so far.
    pub(crate) async fn builder(&self) -> Result<RuntimeBuilder> {
        let url = self.store.as_str();
        Ok(match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => {
                let store = PostgresStore::connect(url).await?;
                store.migrate().await?;
                Runtime::builder(store)
            }
            Some("redis" | "rediss" | "redis-cluster") => {
                Runtime::builder(RedisStore::connect(url).await?)
            }
            _ => Runtime::builder(SqliteStore::open(url).await?),
        })
    }
}

/// Not every example has a file beside its store.
#[allow(dead_code)]
impl Arguments {
    /// A file beside the store's, or beside this program when the store is a server.
    pub(crate) fn beside(&self, extension: &str) -> Result<String> {
        if self.store.contains("://") {
            return file(std::env::current_exe()?.with_extension(extension));
        }
        file(PathBuf::from(&self.store).with_extension(extension))
    }
}

fn file(path: PathBuf) -> Result<String> {
    path.into_os_string().into_string().or_else(|path| bail!("{} is no text", path.display()))
}

/// Shows what fails, and what is done about it, on standard error.
pub(crate) fn show_failures() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::WARN)
        .with_target(false)
        .without_time()
        .init();
}

/// Returns when nothing is left to be done, also by those that a killed process left.
pub(crate) async fn settle(runtime: &Runtime) -> Result<()> {
    loop {
        runtime.idle().await?;
        let pending = pin!(runtime.store().all_pending(runtime.served().clone()));
        if pending.into_future().await.0.transpose()?.is_none() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
