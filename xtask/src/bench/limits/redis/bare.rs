//! The bare keys: an event is an entry of a stream, a job a number on a list and its payload in a hash.

use a2_core::async_trait;
use a2_store_redis::fred;
use anyhow::{Context, Result, bail};
use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::Value;

use super::{NOW, Script, command, id};
use crate::bench::limits::{Limit, Write, Writes};
use crate::bench::payload::{HOLDER, PAYLOAD, SESSIONS, TYPE};

/// See the module.
pub(crate) struct Bare {
    client: Client,
    limit: Limit,
    space: String,
    append: Script,
    enqueue: Script,
    claim: Script,
    complete: Script,
    heads: Vec<u64>,
}

impl Bare {
    pub(crate) async fn load(client: Client, space: &str, limit: Limit) -> Result<Self> {
        Ok(Self {
            append: Script::load(&client, include_str!("append_script.lua")).await?,
            enqueue: Script::load(&client, include_str!("enqueue.lua")).await?,
            claim: Script::load(&client, include_str!("claim.lua")).await?,
            complete: Script::load(&client, include_str!("complete.lua")).await?,
            client,
            limit,
            space: space.to_owned(),
            heads: vec![0; SESSIONS],
        })
    }

    fn key(&self, letter: char, session: usize) -> Value {
        Value::from(format!("{}:{letter}:{session}", self.space))
    }

    fn next(&mut self, session: usize) -> String {
        self.heads[session] += 1;
        id(self.heads[session])
    }

    /// XADD's arguments.
    fn entry(&mut self, session: usize) -> Vec<Value> {
        let id = self.next(session);
        entry(self.key('l', session), id)
    }

    async fn scripted(&mut self, session: usize) -> Result<()> {
        let id = self.next(session);
        let keys = ['l', 'c', 'f', 'm'].map(|letter| self.key(letter, session)).to_vec();
        let values = vec![
            Value::from(id),
            Value::from_static_str(TYPE),
            Value::from(NOW),
            Value::from_static_str(PAYLOAD),
            Value::from(format!("{}:w", self.space)),
        ];
        self.append.run(&self.client, keys, values).await.map(drop)
    }
}

/// XADD's arguments of an event.
pub(super) fn entry(key: Value, id: String) -> Vec<Value> {
    vec![
        key,
        Value::from_static_str("*"),
        Value::from_static_str("id"),
        Value::from(id),
        Value::from_static_str("type"),
        Value::from_static_str(TYPE),
        Value::from_static_str("at"),
        Value::from(NOW),
        Value::from_static_str("payload"),
        Value::from_static_str(PAYLOAD),
    ]
}

#[async_trait]
impl Writes for Bare {
    async fn write(&mut self, write: Write) -> Result<i64> {
        match write {
            Write::Append { session, count: 1 } if self.limit == Limit::Script => {
                self.scripted(session).await?;
            }
            Write::Append { session, count: 1 } => {
                let entry = self.entry(session);
                self.client.custom::<Value, _>(command("XADD"), entry).await?;
            }
            Write::Append { session, count } => {
                let pipeline = self.client.pipeline();
                for _ in 0..count {
                    let entry = self.entry(session);
                    pipeline.custom::<Value, _>(command("XADD"), entry).await?;
                }
                let added = pipeline.all::<Vec<Value>>().await?.len();
                if added != count {
                    bail!("{added} entries were added, not {count}");
                }
            }
            Write::Enqueue { session } => {
                self.heads[session] += 1;
                let number = Value::from(self.heads[session].to_string());
                let keys = ['q', 'j'].map(|letter| self.key(letter, session)).to_vec();
                let values = vec![number, Value::from_static_str(PAYLOAD)];
                self.enqueue.run(&self.client, keys, values).await?;
            }
            Write::Claim { session } => {
                let keys = ['q', 'j'].map(|letter| self.key(letter, session)).to_vec();
                let held = vec![Value::from(format!("{HOLDER} {NOW}"))];
                let answer = self.claim.run(&self.client, keys, held).await?;
                let (number, _): (i64, String) = answer.convert()?;
                return Ok(number);
            }
            Write::Complete { session, index } => {
                let keys = ['q', 'j'].map(|letter| self.key(letter, session)).to_vec();
                let number = vec![Value::from(index.to_string())];
                self.complete.run(&self.client, keys, number).await.context("complete")?;
            }
        }
        Ok(0)
    }
}
