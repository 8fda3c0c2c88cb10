//! The same keys: what A2's own layout holds of each operation, written by one script with values known
//! beforehand. Nothing is looked up, nothing is checked; a claim reads its event, since that is what it
//! answers.

use a2_core::async_trait;
use a2_store_redis::fred;
use anyhow::{Result, bail};
use fred::clients::Client;
use fred::types::Value;

use super::{NOW, Script, id, value};
use crate::bench::limits::{Write, Writes};
use crate::bench::payload::{CONSUMER, HOLDER, LANE, PAYLOAD, SESSIONS, TYPE, session_name};

/// Indexes of one list and of one hash of rows.
const CHUNK: u64 = 1_000;
/// Bytes of events that a message has in it, at most.
const INLINE: usize = 8_192;
/// Held heads stand by their expiry less this.
const HELD_FROM: i64 = 1 << 53;
/// A row's status.
const LIVE: u8 = 1;
const DONE: u8 = 3;
/// A row's flags: there is a holder and an expiry.
const HELD: u8 = 3;

/// See the module.
pub(crate) struct Same {
    client: Client,
    append: Script,
    claim: Script,
    complete: Script,
    sessions: Vec<Progress>,
}

/// Where a session stands, known without asking the server.
struct Progress {
    name: String,
    /// What its keys begin with.
    base: String,
    head: u64,
    done: u64,
}

impl Progress {
    fn partition(&self, letter: &str) -> Value {
        value(format!("{}{letter}", self.base))
    }

    fn state(&self) -> Value {
        value(format!("{}m\0{}", self.base, self.name))
    }

    fn named(&self, letter: char, name: impl std::fmt::Display) -> Value {
        value(format!("{}{letter}\0{}\x000\0{name}", self.base, self.name))
    }
}

impl Same {
    pub(crate) async fn load(client: Client, space: &str) -> Result<Self> {
        let session = |n| {
            let (name, base) = (session_name(n), format!("{space}:{{{n}}}:"));
            Progress { name, base, head: 0, done: 0 }
        };
        Ok(Self {
            append: Script::load(&client, include_str!("same_append.lua")).await?,
            claim: Script::load(&client, include_str!("same_claim.lua")).await?,
            complete: Script::load(&client, include_str!("same_complete.lua")).await?,
            client,
            sessions: (0..SESSIONS).map(session).collect(),
        })
    }

    async fn append(&mut self, session: usize, count: usize) -> Result<()> {
        let at = &mut self.sessions[session];
        let (first, last) = (at.head + 1, at.head + count as u64);
        let (live, next_chunk) = (at.done + 1, (first / CHUNK + 1) * CHUNK);
        at.head = last;
        let entries: Vec<_> = (first..=last).map(entry).collect();
        let of_first = (first..=last).filter(|index| *index < next_chunk).count();
        let chunk = first / CHUNK;
        let keys = vec![
            at.state(),
            at.named('l', chunk),
            at.named('l', chunk + 1),
            at.named('y', TYPE),
            at.named('f', CONSUMER),
        ];
        // The lane's first unfinished event is its head; each of the others is linked to by the one
        // before it.
        let mut fields = Vec::new();
        for index in first..=last {
            fields.extend([value(format!("i{}", id(index))), value(index.to_be_bytes())]);
            if index != live {
                let mut from = vec![b'>'];
                from.extend(head_name(index - 1));
                fields.extend([value(from), value(index.to_be_bytes())]);
            }
        }
        fields.extend([lane_field(), value(lane_record(live, last, at.done))]);
        if live == first {
            fields.extend([count_field(), Value::from_static_str("1")]);
        }
        fields.extend([Value::from_static_str("h"), value(state(last, 1))]);
        let number = |n: usize| Value::from(n.to_string());
        let indexes: Vec<u8> = (first..=last).flat_map(u64::to_be_bytes).collect();
        let mut values = vec![
            number(of_first),
            number(count - of_first),
            number(fields.len()),
            number(usize::from(live == first)),
            value(indexes),
            Value::from(first.to_string()),
            value(member(first)),
            at.partition("w"),
            value(message(first, &at.name, &entries)),
        ];
        values.extend(entries.into_iter().map(value));
        values.extend(fields);
        self.append.run(&self.client, keys, values).await.map(drop)
    }

    async fn claim(&mut self, session: usize) -> Result<i64> {
        let at = &self.sessions[session];
        let index = at.done + 1;
        let chunk = index / CHUNK;
        let keys = vec![at.named('d', chunk), at.named('f', CONSUMER), at.named('l', chunk)];
        let mut row = row(LIVE, HELD, 1, NOW, NOW, NOW);
        row.extend(HOLDER.as_bytes());
        let values = vec![
            value(head_name(index)),
            value(row),
            value(member(index)),
            Value::from((NOW - HELD_FROM).to_string()),
            Value::from((index - (chunk * CHUNK).max(1)).to_string()),
        ];
        match self.claim.run(&self.client, keys, values).await? {
            Value::Bytes(_) | Value::String(_) => Ok(i64::try_from(index)?),
            other => bail!("an event was to be read, not {other:?}"),
        }
    }

    async fn complete(&mut self, session: usize, index: i64) -> Result<()> {
        let index = u64::try_from(index)?;
        let at = &mut self.sessions[session];
        at.done = index;
        let keys = vec![at.state(), at.named('d', index / CHUNK), at.named('f', CONSUMER)];
        let values = vec![
            value(head_name(index)),
            value(row(DONE, 0, 1, i64::try_from(index)?, 0, 0)),
            value(member(index)),
            lane_field(),
            value(lane_record(0, index, index)),
            count_field(),
            Value::from_static_str("0"),
            Value::from_static_str("h"),
            value(state(at.head, 0)),
        ];
        self.complete.run(&self.client, keys, values).await.map(drop)
    }
}

#[async_trait]
impl Writes for Same {
    async fn write(&mut self, write: Write) -> Result<i64> {
        match write {
            Write::Append { session, count } => self.append(session, count).await?,
            Write::Enqueue { session } => self.append(session, 1).await?,
            Write::Claim { session } => return self.claim(session).await,
            Write::Complete { session, index } => self.complete(session, index).await?,
        }
        Ok(0)
    }
}

/// An entry of the log: a header, the event's id, type and payload.
fn entry(index: u64) -> Vec<u8> {
    let id = id(index);
    let mut bytes = Vec::with_capacity(64 + id.len() + TYPE.len() + PAYLOAD.len());
    bytes.extend(index.to_be_bytes());
    bytes.extend(NOW.to_be_bytes());
    bytes.extend((id.len() as u16).to_be_bytes());
    bytes.extend((TYPE.len() as u16).to_be_bytes());
    bytes.extend(0_u32.to_be_bytes());
    bytes.extend((PAYLOAD.len() as u32).to_be_bytes());
    bytes.extend(id.bytes().chain(TYPE.bytes()).chain(PAYLOAD.bytes()));
    bytes
}

/// A head's row: what is counted, first claimed, last claimed, until when it is held; no failures.
fn row(status: u8, flags: u8, attempts: u64, first: i64, last: i64, expires: i64) -> Vec<u8> {
    let mut bytes = vec![status, flags];
    bytes.extend(attempts.to_be_bytes());
    bytes.extend([first, last, expires, 0, 0, 0, 0].iter().flat_map(|field| field.to_be_bytes()));
    bytes
}

/// A session's state: head, marker, live and pinning heads, whether it is listed as pending.
fn state(head: u64, live: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [head, 0, live, 0].iter().flat_map(|field| field.to_be_bytes()).collect();
    bytes.push(1);
    bytes
}

fn lane_field() -> Value {
    value(format!("n{CONSUMER}\0{LANE}"))
}

/// How many live heads the consumer has.
fn count_field() -> Value {
    value(format!("s{CONSUMER}"))
}

fn lane_record(head: u64, tail: u64, position: u64) -> Vec<u8> {
    [head, tail, position].iter().flat_map(|field| field.to_be_bytes()).collect()
}

fn head_name(index: u64) -> Vec<u8> {
    let mut name = format!("1{CONSUMER}\0{LANE}\0").into_bytes();
    name.extend(index.to_be_bytes());
    name
}

/// A head in its consumer's sets.
fn member(index: u64) -> Vec<u8> {
    let mut member = index.to_be_bytes().to_vec();
    member.extend(format!("1{LANE}").bytes());
    member
}

/// What listeners are told.
fn message(first: u64, session: &str, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"a0123456789abcdef".to_vec();
    bytes.extend(0_u64.to_be_bytes());
    bytes.extend(first.to_be_bytes());
    bytes.extend((entries.len() as u32).to_be_bytes());
    bytes.extend(session.bytes().chain([0]));
    if entries.iter().map(Vec::len).sum::<usize>() <= INLINE {
        for entry in entries {
            bytes.extend((entry.len() as u32).to_be_bytes());
            bytes.extend(entry);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_those_of_the_layout() {
        let at = Progress { name: "s".into(), base: "p:{0}:".into(), head: 0, done: 0 };
        assert_eq!(at.named('l', 3), value(*b"p:{0}:l\0s\x000\x003"));
        assert_eq!(state(1, 0).len(), 33);
        assert_eq!(at.state(), value(*b"p:{0}:m\0s"));
        assert_eq!(row(DONE, 0, 1, 0, 0, 0).len(), 66);
        assert_eq!(entry(1).len(), 28 + 36 + TYPE.len() + PAYLOAD.len());
        assert_eq!(head_name(1), b"1worker\0lane-1\0\0\0\0\0\0\0\0\x01");
        assert_eq!(member(1), b"\0\0\0\0\0\0\0\x011lane-1");
    }
}
