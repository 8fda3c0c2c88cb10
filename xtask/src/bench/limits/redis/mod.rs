//! What Redis itself can do: commands and scripts on as many connections as the store has, which all
//! callers share.

pub(crate) mod bare;
pub(crate) mod reads;
pub(crate) mod same;
pub(crate) mod tell;

use a2_store_redis::fred;
use anyhow::Result;
use fred::clients::Client;
use fred::interfaces::{ClientLike, LuaInterface};
use fred::types::config::Config;
use fred::types::{Builder, ClusterHash, CustomCommand, Value};

/// As many as the store has unless it is told otherwise.
pub(crate) const CONNECTIONS: usize = 2;
/// When everything is written.
const NOW: i64 = 1_760_000_000_000;

/// How clients are made.
pub(crate) fn builder(url: &str) -> Result<Builder> {
    let mut builder = Builder::from_config(Config::from_url(url)?);
    builder.with_connection_config(|connection| connection.tcp.nodelay = Some(true));
    Ok(builder)
}

/// Connections that are shared.
pub(crate) async fn connect(url: &str, count: usize) -> Result<Vec<Client>> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let client = builder(url)?.build()?;
        client.init().await?;
        clients.push(client);
    }
    Ok(clients)
}

/// A command that fred has no method for in the features that are built.
pub(crate) fn command(name: &'static str) -> CustomCommand {
    CustomCommand::new_static(name, ClusterHash::FirstKey, false)
}

/// Bytes as an argument.
fn value(bytes: impl Into<Vec<u8>>) -> Value {
    Value::Bytes(bytes.into().into())
}

/// A script that the server has.
#[derive(Debug, Clone)]
struct Script(String);

impl Script {
    async fn load(client: &Client, text: &'static str) -> Result<Self> {
        Ok(Self(client.script_load(text).await?))
    }

    async fn run(&self, client: &Client, keys: Vec<Value>, values: Vec<Value>) -> Result<Value> {
        let mut arguments = Vec::with_capacity(2 + keys.len() + values.len());
        arguments.push(Value::from(&self.0));
        arguments.push(Value::from(i64::try_from(keys.len())?));
        arguments.extend(keys);
        arguments.extend(values);
        Ok(client.custom(command("EVALSHA"), arguments).await?)
    }
}

/// The id of a session's event.
fn id(index: u64) -> String {
    format!("0198c2f4-7d1e-7000-8000-{index:012x}")
}
