//! Bare reads: a log's rows, and a snapshot with what follows it.

use a2_core::async_trait;
use anyhow::Result;
use tokio_postgres::{Client, Statement};

use super::NOW;
use crate::bench::limits::Reads;
use crate::bench::payload::{PAYLOAD, REDUCER, TYPE, session_name};

const SELECT: &str = "select idx, id, type, at, payload::text from log
    where session = $1 and idx > $2 order by idx limit $3";
const FILL: &str = "insert into log
    select $1, n, '0198c2f4-7d1e-7000-8000-' || lpad(to_hex(n), 12, '0'), $3, $4, $5::text::json
    from generate_series(1, $2::bigint) n";
const LATEST: &str = "select up_to, state::text from snapshots
    where session = $1 and reducer = $2 order by up_to desc limit 1";
const PUT: &str = "with s as (
        insert into snapshots values ($1, $2, $3, $4::text::json)
        on conflict (session, reducer, up_to) do update set state = excluded.state
    )
    insert into pins values ($1, 1, $2, $3) on conflict do nothing";

/// One session with a filled log.
pub(crate) struct Select {
    client: Client,
    select: Statement,
    latest: Statement,
    put: Statement,
    session: String,
}

impl Select {
    pub(crate) async fn filled(
        client: Client,
        events: usize,
        (index, state): (i64, &str),
    ) -> Result<Self> {
        let session = session_name(0);
        let events = i64::try_from(events)?;
        client.execute(FILL, &[&session, &events, &TYPE, &NOW, &PAYLOAD]).await?;
        client.execute(PUT, &[&session, &REDUCER, &index, &state]).await?;
        let select = client.prepare(SELECT).await?;
        let latest = client.prepare(LATEST).await?;
        let put = client.prepare(PUT).await?;
        Ok(Self { client, select, latest, put, session })
    }
}

#[async_trait]
impl Reads for Select {
    async fn scan(&mut self, after: i64, limit: usize) -> Result<usize> {
        let limit = i64::try_from(limit)?;
        let rows = self.client.query(&self.select, &[&self.session, &after, &limit]).await?;
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            let (index, id, kind): (i64, String, String) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let (at, payload): (i64, String) = (row.try_get(3)?, row.try_get(4)?);
            events.push((index, id, kind, at, payload));
        }
        Ok(std::hint::black_box(events).len())
    }

    async fn state(&mut self) -> Result<usize> {
        let row = self.client.query_one(&self.latest, &[&self.session, &REDUCER]).await?;
        std::hint::black_box(row.try_get::<_, String>(1)?);
        self.scan(row.try_get(0)?, 10_000).await
    }

    async fn put(&mut self, index: i64, state: &str) -> Result<()> {
        self.client.execute(&self.put, &[&self.session, &REDUCER, &index, &state]).await?;
        Ok(())
    }
}
