//! The bare rows: an event is one row of a log table, a job one row of a queue table with one index
//! of those that are ready.

use a2_core::async_trait;
use anyhow::Result;
use tokio_postgres::{Client, Statement};

use super::{NOW, id};
use crate::bench::limits::{Write, Writes};
use crate::bench::payload::{HOLDER, PAYLOAD, SESSIONS, TYPE, session_name};

const TABLES: &str = r#"
    create table log (
        session text collate "C" not null, idx bigint not null, id text collate "C" not null,
        type text collate "C" not null, at bigint not null, payload json not null,
        primary key (session, idx)
    );
    create table jobs (
        id bigserial primary key, session text collate "C" not null, state integer not null,
        payload json not null, holder text, expires bigint, attempt integer not null
    );
    create index jobs_ready on jobs (session, id) where state = 0;
    create table snapshots (
        session text collate "C" not null, reducer text collate "C" not null, up_to bigint not null,
        state json not null, primary key (session, reducer, up_to)
    );
    create table pins (
        session text collate "C" not null, head bigint not null, reducer text collate "C" not null,
        up_to bigint not null, primary key (session, head, reducer, up_to)
    );
"#;
const APPEND: &str = "insert into log values ($1, $2, $3, $4, $5, $6::text::json)";
const BATCH: &str = "insert into log select $1, b.idx, b.id, $4, $5, b.payload::json
    from unnest($2::bigint[], $3::text[], $6::text[]) b(idx, id, payload)";
const ENQUEUE: &str =
    "insert into jobs (session, state, payload, attempt) values ($1, 0, $2::text::json, 0)";
const CLAIM: &str = "update jobs set state = 1, holder = $2, expires = $3, attempt = attempt + 1
    where id = (select id from jobs where state = 0 and session = $1 order by id limit 1
        for update skip locked)
    returning id, payload::text";
const COMPLETE: &str = "update jobs set state = 2, holder = null, expires = null where id = $1";

/// The tables, in a schema.
pub(crate) fn tables(schema: &str) -> String {
    format!("set search_path = {schema}; {TABLES} reset search_path")
}

/// See the module.
pub(crate) struct Bare {
    client: Client,
    append: Statement,
    batch: Statement,
    enqueue: Statement,
    claim: Statement,
    complete: Statement,
    sessions: Vec<String>,
    heads: Vec<i64>,
    payloads: Vec<&'static str>,
}

impl Bare {
    /// On tables that are there.
    pub(crate) async fn prepare(client: Client) -> Result<Self> {
        Ok(Self {
            append: client.prepare(APPEND).await?,
            batch: client.prepare(BATCH).await?,
            enqueue: client.prepare(ENQUEUE).await?,
            claim: client.prepare(CLAIM).await?,
            complete: client.prepare(COMPLETE).await?,
            client,
            sessions: (0..SESSIONS).map(session_name).collect(),
            heads: vec![0; SESSIONS],
            payloads: Vec::new(),
        })
    }
}

#[async_trait]
impl Writes for Bare {
    async fn write(&mut self, write: Write) -> Result<i64> {
        let c = &self.client;
        match write {
            Write::Append { session, count: 1 } => {
                self.heads[session] += 1;
                let (name, index) = (&self.sessions[session], self.heads[session]);
                c.execute(&self.append, &[name, &index, &id(index), &TYPE, &NOW, &PAYLOAD]).await?;
                Ok(0)
            }
            Write::Append { session, count } => {
                let first = self.heads[session] + 1;
                self.heads[session] += i64::try_from(count)?;
                let indexes: Vec<i64> = (first..=self.heads[session]).collect();
                let ids: Vec<String> = indexes.iter().map(|index| id(*index)).collect();
                self.payloads.resize(count, PAYLOAD);
                let name = &self.sessions[session];
                c.execute(&self.batch, &[name, &indexes, &ids, &TYPE, &NOW, &self.payloads])
                    .await?;
                Ok(0)
            }
            Write::Enqueue { session } => {
                c.execute(&self.enqueue, &[&self.sessions[session], &PAYLOAD]).await?;
                Ok(0)
            }
            Write::Claim { session } => {
                let row =
                    c.query_one(&self.claim, &[&self.sessions[session], &HOLDER, &NOW]).await?;
                std::hint::black_box(row.try_get::<_, String>(1)?);
                Ok(row.try_get(0)?)
            }
            Write::Complete { index, .. } => {
                c.execute(&self.complete, &[&index]).await?;
                Ok(0)
            }
        }
    }
}
