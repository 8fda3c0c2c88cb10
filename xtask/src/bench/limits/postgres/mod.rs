//! What Postgres itself can do: prepared statements, a connection for each caller.

pub(crate) mod bare;
pub(crate) mod reads;
pub(crate) mod same;
pub(crate) mod tell;

use anyhow::Result;
use tokio_postgres::{Client, Config, NoTls};

/// As the store's own connections: a statement's plan is made once, for tables that are empty then.
const PLANNING: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off \
                        -c enable_bitmapscan=off -c enable_sort=off -c enable_incremental_sort=off \
                        -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off";
/// When everything is written.
const NOW: i64 = 1_760_000_000_000;

/// A connection, in a schema.
pub(crate) async fn connect(url: &str, schema: Option<&str>) -> Result<Client> {
    let mut config: Config = url.parse()?;
    if let Some(schema) = schema {
        config.options(format!("{PLANNING} -c search_path={schema}"));
    }
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The id of a session's event.
fn id(index: i64) -> String {
    format!("0198c2f4-7d1e-7000-8000-{index:012x}")
}
