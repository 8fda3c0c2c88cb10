//! Bare reads: a stream's entries, and a snapshot with what follows it.

use a2_core::async_trait;
use a2_store_redis::fred;
use anyhow::{Context, Result};
use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::Value;

use super::bare::entry;
use super::{Script, command, id};
use crate::bench::limits::Reads;
use crate::bench::payload::REDUCER;

/// One session with a filled stream, whose entries' ids are their indexes.
pub(crate) struct Range {
    client: Client,
    put: Script,
    space: String,
}

impl Range {
    pub(crate) async fn filled(
        client: Client,
        space: &str,
        events: usize,
        (index, state): (i64, &str),
    ) -> Result<Self> {
        let put = Script::load(&client, include_str!("put.lua")).await?;
        let mut range = Self { client, put, space: space.to_owned() };
        for first in (1..=events).step_by(1_000) {
            let pipeline = range.client.pipeline();
            for index in first..(first + 1_000).min(events + 1) {
                let mut entry = entry(range.key("l"), id(index as u64));
                entry[1] = Value::from(format!("{index}-1"));
                pipeline.custom::<Value, _>(command("XADD"), entry).await?;
            }
            pipeline.all::<Value>().await?;
        }
        range.put(index, state).await?;
        Ok(range)
    }

    fn key(&self, letter: &str) -> Value {
        Value::from(format!("{}:{letter}:0", self.space))
    }
}

/// An entry as the caller keeps it: its id, and its fields with their values.
type Entry = (String, Vec<String>);

#[async_trait]
impl Reads for Range {
    async fn scan(&mut self, after: i64, limit: usize) -> Result<usize> {
        let range = vec![
            self.key("l"),
            Value::from(format!("({after}-1")),
            Value::from_static_str("+"),
            Value::from_static_str("COUNT"),
            Value::from(i64::try_from(limit)?),
        ];
        let entries: Vec<Entry> = self.client.custom(command("XRANGE"), range).await?;
        Ok(std::hint::black_box(entries).len())
    }

    async fn state(&mut self) -> Result<usize> {
        let latest = vec![self.key("z"), Value::from(0_i64), Value::from(0_i64)];
        let found: Vec<i64> = self.client.custom(command("ZREVRANGE"), latest).await?;
        let index = *found.first().context("a snapshot")?;
        let field = vec![self.key("Z"), Value::from(index.to_string())];
        let state: String = self.client.custom(command("HGET"), field).await?;
        std::hint::black_box(state);
        self.scan(index, 10_000).await
    }

    async fn put(&mut self, index: i64, state: &str) -> Result<()> {
        let keys = ["z", "Z", "k"].map(|letter| self.key(letter)).to_vec();
        let values = vec![
            Value::from(index.to_string()),
            Value::from(state),
            Value::from_static_str(REDUCER),
        ];
        self.put.run(&self.client, keys, values).await.map(drop)
    }
}
