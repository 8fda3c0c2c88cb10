//! The same rows: what A2's own tables and indexes hold of each operation, written by one statement
//! with values known beforehand. Nothing is looked up, nothing is checked; a claim reads its event,
//! since that is what it answers.

use a2_core::async_trait;
use anyhow::Result;
use tokio_postgres::{Client, Statement};

use super::{NOW, id};
use crate::bench::limits::{Write, Writes};
use crate::bench::payload::{CONSUMER, HOLDER, LANE, PAYLOAD, SESSIONS, TYPE, session_name};

const APPEND: &str = "with e as (
        insert into a2_events (session_id, idx, life, created_at, size, event_id, event_type, payload)
        values ($1, $2, 0, $3, $4, $5, $6, $7::text::json)
    )
    insert into a2_heads (session_id, idx, life, kind, status, consumer, name)
    values ($1, $2, 0, 1, $8, $9, $10)";
const BATCH: &str = "with e as (
        insert into a2_events (session_id, idx, life, created_at, size, event_id, event_type, payload)
        select $1, b.idx, 0, $3, $4, b.id, $6, b.payload::json
        from unnest($2::bigint[], $5::text[], $7::text[]) b(idx, id, payload)
    )
    insert into a2_heads (session_id, idx, life, kind, status, consumer, name)
    select $1, b.idx, 0, 1, case b.idx when $8 then 1 else 0 end, $9, $10
    from unnest($2::bigint[]) b(idx)";
const CLAIM: &str = "with h as (
        update a2_heads set held_until = $5, claim_holder = $6, attempt_count = attempt_count + 1,
          first_claimed_at = $5, last_claimed_at = $5
        where session_id = $1 and consumer = $2 and kind = 1 and name = $3 and idx = $4
        returning attempt_count
    )
    select e.idx, e.event_id, e.event_type, e.payload::text, e.created_at, h.attempt_count
    from a2_events e, h where e.session_id = $1 and e.idx = $4";
const COMPLETE: &str = "update a2_heads set status = 3, held_until = 0, claim_holder = null,
        done_at = $5, done_attempt = 1, returned_after = $4, returned = 0
    where session_id = $1 and consumer = $2 and kind = 1 and name = $3 and idx = $4";

const QUEUED: i16 = 0;
const LIVE: i16 = 1;

/// See the module.
pub(crate) struct Same {
    client: Client,
    append: Statement,
    batch: Statement,
    claim: Statement,
    complete: Statement,
    sessions: Vec<Progress>,
    payloads: Vec<&'static str>,
}

/// Where a session stands, known without asking the database.
struct Progress {
    name: String,
    head: i64,
    done: i64,
}

impl Same {
    /// On the tables of a store.
    pub(crate) async fn prepare(client: Client) -> Result<Self> {
        let sessions =
            (0..SESSIONS).map(|n| Progress { name: session_name(n), head: 0, done: 0 }).collect();
        Ok(Self {
            append: client.prepare(APPEND).await?,
            batch: client.prepare(BATCH).await?,
            claim: client.prepare(CLAIM).await?,
            complete: client.prepare(COMPLETE).await?,
            client,
            sessions,
            payloads: Vec::new(),
        })
    }

    async fn append(&mut self, session: usize, count: usize) -> Result<()> {
        let progress = &mut self.sessions[session];
        let first = progress.head + 1;
        progress.head += i64::try_from(count)?;
        let (name, size) = (&progress.name, i32::try_from(PAYLOAD.len())?);
        // The lane's first unfinished event is its head, the others wait behind it.
        let live = progress.done + 1;
        if count == 1 {
            let (status, id) = (if live == first { LIVE } else { QUEUED }, id(first));
            let event: [&(dyn tokio_postgres::types::ToSql + Sync); 10] =
                [name, &first, &NOW, &size, &id, &TYPE, &PAYLOAD, &status, &CONSUMER, &LANE];
            self.client.execute(&self.append, &event).await?;
            return Ok(());
        }
        let indexes: Vec<i64> = (first..=progress.head).collect();
        let ids: Vec<String> = indexes.iter().map(|index| id(*index)).collect();
        self.payloads.resize(count, PAYLOAD);
        let events: [&(dyn tokio_postgres::types::ToSql + Sync); 10] =
            [name, &indexes, &NOW, &size, &ids, &TYPE, &self.payloads, &live, &CONSUMER, &LANE];
        self.client.execute(&self.batch, &events).await?;
        Ok(())
    }
}

#[async_trait]
impl Writes for Same {
    async fn write(&mut self, write: Write) -> Result<i64> {
        match write {
            Write::Append { session, count } => self.append(session, count).await?,
            Write::Enqueue { session } => self.append(session, 1).await?,
            Write::Claim { session } => {
                let progress = &self.sessions[session];
                let (name, index) = (&progress.name, progress.done + 1);
                let head: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                    [name, &CONSUMER, &LANE, &index, &NOW, &HOLDER];
                let row = self.client.query_one(&self.claim, &head).await?;
                std::hint::black_box(row.try_get::<_, String>(3)?);
                return Ok(row.try_get(0)?);
            }
            Write::Complete { session, index } => {
                self.sessions[session].done = index;
                let name = &self.sessions[session].name;
                self.client
                    .execute(&self.complete, &[name, &CONSUMER, &LANE, &index, &NOW])
                    .await?;
            }
        }
        Ok(0)
    }
}
