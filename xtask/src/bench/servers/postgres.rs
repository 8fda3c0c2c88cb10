//! Postgres: a space is a schema.

use std::sync::Arc;
use std::time::Instant;

use a2_conformance::servers::{PostgresOptions, PostgresServer, Servers, fresh_name};
use a2_core::{Store, async_trait};
use a2_store_postgres::PostgresStore;
use anyhow::{Context, Result};
use tokio::sync::mpsc;
use tokio_postgres::Client;

use super::{Mark, Server, Weight};
use crate::bench::limits::postgres as limits;
use crate::bench::limits::{Limit, Reads, Tells, Writes};

/// See the module.
pub(super) struct Postgres {
    server: PostgresServer,
    client: Client,
    facts: String,
}

const FACTS: &str = "select name, setting from pg_settings
    where name in ('server_version', 'fsync', 'synchronous_commit', 'wal_level', 'shared_buffers')";
/// What writes rows, and what writes entries of indexes, as the write-ahead log has it.
const WRITTEN: &str = "
    select
      coalesce(sum(record_size), 0)::float8,
      coalesce(sum(count) filter (where t ~ '^Heap/(INSERT|UPDATE|HOT_UPDATE)'), 0)::float8,
      coalesce(sum(count) filter (where t ~ '^Btree/(INSERT_LEAF|INSERT_POST|SPLIT_[LR])'), 0)::float8
    from pg_get_wal_stats($1::text::pg_lsn, pg_current_wal_flush_lsn(), true)
      s(t, count, count_percentage, record_size)";
const STORED: &str = "select coalesce(sum(pg_total_relation_size(oid)), 0)::float8 from pg_class
    where relnamespace = $1::text::regnamespace and relkind = 'r'";

impl Postgres {
    /// The one that `A2_POSTGRES_URL` names, or one with its own settings: it syncs what it commits.
    pub(super) async fn start(from: Servers) -> Result<Self> {
        let server = PostgresOptions::new().start(from).await?;
        let client = limits::connect(server.url(), None).await?;
        let rows = client.query(FACTS, &[]).await?;
        let setting = |name: &str| -> Result<String> {
            let row = rows.iter().find(|row| row.get::<_, &str>(0) == name);
            Ok(row.with_context(|| format!("the setting {name}"))?.get(1))
        };
        let facts = format!(
            "Postgres {} (fsync {}, synchronous_commit {}, wal_level {}, shared_buffers {} pages, \
             else its defaults)",
            setting("server_version")?,
            setting("fsync")?,
            setting("synchronous_commit")?,
            setting("wal_level")?,
            setting("shared_buffers")?
        );
        Ok(Self { server, client, facts })
    }

    async fn schema(&self, name: &str) -> Result<()> {
        Ok(self.client.batch_execute(&format!("create schema {name}")).await?)
    }

    async fn store(&self, space: &str) -> Result<PostgresStore> {
        let store = PostgresStore::builder(self.server.url()).schema(space).connect().await?;
        store.migrate().await?;
        Ok(store)
    }
}

#[async_trait]
impl Server for Postgres {
    fn facts(&self) -> String {
        self.facts.clone()
    }

    fn fresh_name(&self) -> String {
        fresh_name()
    }

    async fn open(&self, space: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.store(space).await?))
    }

    async fn remove(&self, spaces: &[String]) -> Result<()> {
        for space in spaces {
            self.client
                .batch_execute(&format!(
                    "set client_min_messages = warning; drop schema if exists {space} cascade"
                ))
                .await?;
        }
        Ok(())
    }

    async fn writers(
        &self,
        space: &str,
        limit: Limit,
        callers: usize,
    ) -> Result<Vec<Box<dyn Writes>>> {
        if limit == Limit::Same {
            self.store(space).await?.close().await;
        } else {
            self.schema(space).await?;
            self.client.batch_execute(&limits::bare::tables(space)).await?;
        }
        let mut writers = Vec::with_capacity(callers);
        for _ in 0..callers {
            let client = limits::connect(self.server.url(), Some(space)).await?;
            writers.push(match limit {
                Limit::Same => {
                    Box::new(limits::same::Same::prepare(client).await?) as Box<dyn Writes>
                }
                Limit::Bare | Limit::Script => Box::new(limits::bare::Bare::prepare(client).await?),
            });
        }
        Ok(writers)
    }

    async fn reader(
        &self,
        space: &str,
        events: usize,
        snapshot: (i64, &str),
    ) -> Result<Box<dyn Reads>> {
        self.schema(space).await?;
        self.client.batch_execute(&limits::bare::tables(space)).await?;
        let client = limits::connect(self.server.url(), Some(space)).await?;
        Ok(Box::new(limits::reads::Select::filled(client, events, snapshot).await?))
    }

    async fn teller(
        &self,
        space: &str,
    ) -> Result<(Box<dyn Tells>, mpsc::UnboundedReceiver<Instant>)> {
        self.schema(space).await?;
        self.client.batch_execute(&limits::bare::tables(space)).await?;
        let (listener, heard) = limits::tell::listen(self.server.url(), space).await?;
        let client = limits::connect(self.server.url(), Some(space)).await?;
        let teller = limits::tell::Teller::prepare(client, listener, space).await?;
        Ok((Box::new(teller), heard))
    }

    async fn mark(&self) -> Result<Mark> {
        let extension = "create extension if not exists pg_walinspect";
        let missing = "footprint needs the extension pg_walinspect, of Postgres 15 and later";
        self.client.batch_execute(extension).await.context(missing)?;
        let row = self.client.query_one("select pg_current_wal_flush_lsn()::text", &[]).await?;
        Ok(Mark { log: row.get(0), bytes: 0.0 })
    }

    async fn weigh(&self, space: &str, mark: &Mark) -> Result<Weight> {
        let stored = self.client.query_one(STORED, &[&space]).await?;
        let written = self.client.query_one(WRITTEN, &[&mark.log]).await?;
        Ok(Weight {
            bytes: stored.get::<_, f64>(0) - mark.bytes,
            log: written.get(0),
            rows: written.get(1),
            entries: written.get(2),
        })
    }
}
