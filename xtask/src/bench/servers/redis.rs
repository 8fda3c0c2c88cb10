//! Redis: a space is a prefix of keys.

use std::sync::Arc;
use std::time::Instant;

use a2_conformance::servers::{AppendOnly, RedisOptions, RedisServer, Servers, fresh_name};
use a2_core::{Store, async_trait};
use a2_store_redis::{RedisStore, fred};
use anyhow::{Context, Result};
use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::Value;
use tokio::sync::mpsc;

use super::{Mark, Server, Weight};
use crate::bench::limits::redis as limits;
use crate::bench::limits::{Limit, Reads, Tells, Writes};

/// See the module.
pub(super) struct Redis {
    server: RedisServer,
    client: Client,
    facts: String,
}

const URL: &str = "A2_REDIS_URL";

impl Redis {
    /// The one that `A2_REDIS_URL` names, or one whose append-only file is synced every second. That
    /// file is not rewritten, which it would be all the time, in the midst of measurements.
    pub(super) async fn start(from: Servers) -> Result<Self> {
        let options = match std::env::var_os(URL) {
            Some(_) => RedisOptions::new(),
            None => RedisOptions::new()
                .append_only(AppendOnly::EverySecond)
                .setting("auto-aof-rewrite-percentage", 0),
        };
        let server = options.start(from).await?;
        let mut clients = limits::connect(server.url(), 1).await?;
        let client = clients.pop().context("a connection")?;
        let version = field(&info(&client, "server").await?, "redis_version").unwrap_or_default();
        let mut settings = Vec::new();
        for name in ["appendonly", "appendfsync", "save", "auto-aof-rewrite-percentage"] {
            let get = vec![Value::from_static_str("GET"), Value::from_static_str(name)];
            let found: Vec<String> = client.custom(limits::command("CONFIG"), get).await?;
            let setting = found.get(1).map_or("unknown", String::as_str);
            settings.push(format!("{name} {}", if setting.is_empty() { "off" } else { setting }));
        }
        let facts = format!("Redis {version} ({}, else its defaults)", settings.join(", "));
        Ok(Self { server, client, facts })
    }

    async fn clients(&self) -> Result<Vec<Client>> {
        limits::connect(self.server.url(), limits::CONNECTIONS).await
    }

    async fn one(&self) -> Result<Client> {
        self.clients().await?.pop().context("a connection")
    }
}

#[async_trait]
impl Server for Redis {
    fn facts(&self) -> String {
        self.facts.clone()
    }

    fn fresh_name(&self) -> String {
        fresh_name()
    }

    async fn open(&self, space: &str) -> Result<Arc<dyn Store>> {
        let builder = RedisStore::builder(self.server.url()).prefix(space);
        Ok(Arc::new(builder.connections(limits::CONNECTIONS).connect().await?))
    }

    async fn remove(&self, spaces: &[String]) -> Result<()> {
        for space in spaces {
            let mut cursor = "0".to_owned();
            loop {
                let scan = vec![
                    Value::from(cursor),
                    Value::from_static_str("MATCH"),
                    Value::from(format!("{space}:*")),
                    Value::from_static_str("COUNT"),
                    Value::from(10_000_i64),
                ];
                let (next, keys): (String, Vec<Value>) =
                    self.client.custom(limits::command("SCAN"), scan).await?;
                if !keys.is_empty() {
                    self.client.custom::<Value, _>(limits::command("DEL"), keys).await?;
                }
                if next == "0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(())
    }

    async fn writers(
        &self,
        space: &str,
        limit: Limit,
        callers: usize,
    ) -> Result<Vec<Box<dyn Writes>>> {
        let clients = self.clients().await?;
        let mut writers = Vec::with_capacity(callers);
        for client in clients.iter().cycle().take(callers).cloned() {
            writers.push(match limit {
                Limit::Same => {
                    Box::new(limits::same::Same::load(client, space).await?) as Box<dyn Writes>
                }
                Limit::Bare | Limit::Script => {
                    Box::new(limits::bare::Bare::load(client, space, limit).await?)
                }
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
        let client = self.one().await?;
        Ok(Box::new(limits::reads::Range::filled(client, space, events, snapshot).await?))
    }

    async fn teller(
        &self,
        space: &str,
    ) -> Result<(Box<dyn Tells>, mpsc::UnboundedReceiver<Instant>)> {
        let url = self.server.url();
        let (teller, heard) = limits::tell::Teller::load(url, self.one().await?, space).await?;
        Ok((Box::new(teller), heard))
    }

    async fn mark(&self) -> Result<Mark> {
        Ok(Mark { log: String::new(), bytes: stored(&self.client).await? })
    }

    async fn weigh(&self, _: &str, mark: &Mark) -> Result<Weight> {
        let bytes = stored(&self.client).await? - mark.bytes;
        Ok(Weight { bytes, ..Weight::default() })
    }
}

async fn info(client: &Client, section: &'static str) -> Result<String> {
    let section = vec![Value::from_static_str(section)];
    Ok(client.custom(limits::command("INFO"), section).await?)
}

fn field(info: &str, name: &str) -> Option<String> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
    info.lines().find_map(value)
}

/// Bytes of memory, without those of connections and of what is on its way to the append-only file.
async fn stored(client: &Client) -> Result<f64> {
    let info = info(client, "memory").await?;
    let bytes = |name: &str| -> Result<f64> {
        let text = field(&info, name).with_context(|| format!("INFO tells no {name}"))?;
        Ok(text.trim().parse()?)
    };
    Ok(bytes("used_memory")? - bytes("mem_clients_normal")? - bytes("mem_aof_buffer")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let info = "# Memory\r\nused_memory_human:1M\r\nused_memory:12\r\n";
        assert_eq!(field(info, "used_memory").as_deref(), Some("12"));
        assert_eq!(field(info, "used"), None);
    }
}
