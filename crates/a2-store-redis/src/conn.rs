//! Scripts on the server: one round trip each, within the operation's time.
//!
//! A script is called by its hash, and sent whole when the server does not know it. Nothing is sent twice
//! that may have been done: whether what was cut off was done is not known, and the caller's to find
//! out. What the server or the driver says was not begun is sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use a2_core::{Error, Result};
use bytes::Bytes;
use fred::error::{Error as DriverError, ErrorKind as DriverKind};
use fred::interfaces::ClientLike;
use fred::types::config::{Options, Server};
use fred::types::{ClusterHash, CustomCommand, Resp3Frame as Frame, Value};
use tokio::time::Instant;

use crate::args::Args;
use crate::error::{Place, is_not_begun, is_of_replica, is_unknown_script};
use crate::keys::{LAYOUT, Partition};
use crate::link::Link;
use crate::script::Script;

/// How long to wait before what was not begun is asked for again: a slot is on its way, or a connection
/// was lost before it was used.
const AGAIN: Duration = Duration::from_millis(10);

/// How a script tells what it commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Publish {
    /// It does not.
    Nothing,
    /// To whoever listens at any node.
    Everywhere,
    /// To whoever listens at the slot's node.
    Sharded,
}

impl Publish {
    fn command(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Everywhere => "PUBLISH",
            Self::Sharded => "SPUBLISH",
        }
    }

    /// Tells nobody of nothing, to see whether it may be told: a script finds out when it has written.
    pub(crate) async fn check(
        self,
        link: &Link,
        partition: &Partition,
        until: Instant,
    ) -> std::result::Result<(), DriverError> {
        if self != Self::Nothing {
            let values = vec![partition.channel.clone().into(), Value::Bytes(Bytes::new())];
            send(link, self.command(), To::Slot(partition.slot), values, until).await?;
        }
        Ok(())
    }
}

/// How many replicas must have a write before it is answered, and how long they are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copies {
    pub(crate) replicas: u32,
    pub(crate) timeout: Duration,
}

/// The server.
#[derive(Debug, Clone)]
pub(crate) struct Db(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The connections, and how many operations each has on its way.
    links: Vec<(Link, AtomicUsize)>,
    options: DbOptions,
}

/// An operation on its way on a connection.
struct Taken<'a> {
    link: &'a Link,
    taken: &'a AtomicUsize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How operations are done.
#[derive(Debug)]
pub(crate) struct DbOptions {
    pub(crate) timeout: Duration,
    pub(crate) publish: Publish,
    pub(crate) copies: Option<Copies>,
    /// Names the store among those that tell.
    pub(crate) source: Bytes,
    /// Scripts leave out their plain paths.
    pub(crate) general: bool,
}

impl Db {
    pub(crate) fn new(links: Vec<Link>, options: DbOptions) -> Self {
        let links = links.into_iter().map(|link| (link, AtomicUsize::new(0))).collect();
        Self(Arc::new(Inner { links, options }))
    }

    /// The first of the connections that have the least to do: a lone caller's is always the same, which
    /// is awake and in the caches.
    fn link(&self) -> Result<Taken<'_>> {
        let least = self.0.links.iter().min_by_key(|(_, taken)| taken.load(Ordering::Relaxed));
        // A store has at least one.
        let (link, taken) = least.ok_or_else(Error::closed)?;
        taken.fetch_add(1, Ordering::Relaxed);
        Ok(Taken { link, taken })
    }

    /// How scripts tell what they commit.
    pub(crate) fn publish(&self) -> Publish {
        self.0.options.publish
    }

    /// Names this store among those that tell.
    pub(crate) fn source(&self) -> &[u8] {
        &self.0.options.source
    }

    /// Closes the connections.
    pub(crate) async fn close(&self) {
        for (link, _) in &self.0.links {
            link.close().await;
        }
    }

    /// Runs a script on a partition; `first` is its first key, `now` the time by the clock that
    /// replaces the server's.
    pub(crate) async fn run(
        &self,
        place: Place<'_>,
        script: &Script,
        (partition, first): (&Partition, Bytes),
        now: Option<i64>,
        args: Args,
    ) -> Result<Frame> {
        let options = &self.0.options;
        let until = Instant::now() + options.timeout;
        let args = args.sealed();
        let now = now.map_or_else(Bytes::new, |now| now.to_string().into());
        let values = |script: &Bytes| {
            let prelude = [
                script.clone(),
                Bytes::from_static(b"2"),
                first.clone(),
                partition.guard.clone(),
                now.clone(),
                Bytes::from_static(options.publish.command().as_bytes()),
                options.source.clone(),
            ];
            let mut values = Vec::with_capacity(prelude.len() + args.len());
            values.extend(prelude.into_iter().map(Value::Bytes));
            values.extend(args.values());
            values
        };
        let copies = options.copies.filter(|_| place.writes);
        let taken = self.link()?;
        let link = taken.link;
        let script = script.text(options.general);
        let (mut command, mut name) = ("EVALSHA", &script.sha);
        loop {
            // What is rarely waited for is boxed: a future is moved as a whole.
            if !link.is_ready() {
                let ready = Box::pin(link.ready(until)).await;
                ready.map_err(|error| place.error(error))?;
            }
            let answer = match copies {
                None => send(link, command, To::Slot(partition.slot), values(name), until).await,
                Some(copies) => {
                    let sent = send_copied(link, command, partition, values(name), copies, until);
                    match Box::pin(sent).await {
                        Ok((frame, have)) if have >= i64::from(copies.replicas) => Ok(frame),
                        Ok((_, have)) => return Err(place.not_copied(have, copies.replicas)),
                        Err(error) => Err(error),
                    }
                }
            };
            let error = match answer {
                Ok(frame) => return Ok(frame),
                Err(error) => error,
            };
            if is_of_replica(&error) {
                link.renew();
            }
            if is_unknown_script(&error) && command == "EVALSHA" {
                // The script itself, not SCRIPT LOAD: whoever forgets scripts could forget it again.
                (command, name) = ("EVAL", &script.source);
            } else if is_not_begun(&error) && Instant::now() + AGAIN < until {
                tokio::time::sleep(AGAIN).await;
            } else {
                return Err(place.error(error));
            }
        }
    }
}

/// Where a command goes.
pub(crate) enum To {
    /// To the node that has the slot.
    Slot(u16),
    /// To one node.
    Node(Server),
}

/// Sends a command.
pub(crate) async fn send(
    link: &Link,
    command: &'static str,
    to: To,
    values: Vec<Value>,
    until: Instant,
) -> std::result::Result<Frame, DriverError> {
    let (hash, cluster_node) = match to {
        To::Slot(slot) => (ClusterHash::Custom(slot), None),
        To::Node(node) => (ClusterHash::FirstKey, Some(node)),
    };
    let options = Options { cluster_node, ..in_time(until) };
    let command = CustomCommand::new_static(command, hash, false);
    let client = link.client().with_options(&options);
    match client.custom_raw(command, values).await? {
        Frame::SimpleError { data, .. } => {
            Err(DriverError::new(DriverKind::Unknown, data.to_string()))
        }
        Frame::BlobError { data, .. } => {
            let text = String::from_utf8_lossy(&data).into_owned();
            Err(DriverError::new(DriverKind::Unknown, text))
        }
        frame => Ok(frame),
    }
}

/// Sends a script and waits for the replicas: its answer, and how many of them have what it wrote.
///
/// All on one connection, with nothing read in between, for WAIT waits for what its connection wrote. A
/// script that finds its work done writes nothing: so that it is waited for what was written then, the
/// layout's name is written over itself.
async fn send_copied(
    link: &Link,
    command: &'static str,
    partition: &Partition,
    values: Vec<Value>,
    copies: Copies,
    until: Instant,
) -> std::result::Result<(Frame, i64), DriverError> {
    let left = until.saturating_duration_since(Instant::now());
    // An answer that nobody waits for any more helps nobody.
    let millis = copies.timeout.min(left).as_millis().clamp(1, i64::MAX as u128);
    let mark = vec![partition.schema.clone().into(), Value::from_static_str(LAYOUT)];
    let wait = vec![Value::from(i64::from(copies.replicas)), millis.to_string().into()];
    let pipeline = link.client().pipeline();
    let options = in_time(until + AGAIN);
    let queue = pipeline.with_options(&options);
    for (command, values) in [(command, values), ("SET", mark), ("WAIT", wait)] {
        let hash = ClusterHash::Custom(partition.slot);
        let command = CustomCommand::new_static(command, hash, false);
        let _queued: Value = queue.custom(command, values).await?;
    }
    let mut answers = pipeline.try_all::<Value>().await.into_iter();
    let missing = || DriverError::new(DriverKind::Protocol, "an answer is missing");
    let mut next = || answers.next().unwrap_or_else(|| Err(missing()));
    let frame = frame(next()?);
    // Should these be refused, the script may be done all the same.
    let unclear = |error: DriverError| DriverError::new(DriverKind::IO, format!("WAIT: {error}"));
    next().map_err(unclear)?;
    match next().map_err(unclear)? {
        Value::Integer(have) => Ok((frame, have)),
        _ => Err(unclear(missing())),
    }
}

fn in_time(until: Instant) -> Options {
    let left = until.saturating_duration_since(Instant::now());
    // None at all would be for ever.
    Options { timeout: Some(left.max(AGAIN)), ..Options::default() }
}

/// A pipeline's answer as that of a single command.
fn frame(value: Value) -> Frame {
    let blob = |data: Bytes| Frame::BlobString { data, attributes: None };
    match value {
        Value::Bytes(bytes) => blob(bytes),
        Value::String(text) => blob(text.into_inner()),
        Value::Integer(data) => Frame::Number { data, attributes: None },
        Value::Array(items) => {
            Frame::Array { data: items.into_iter().map(frame).collect(), attributes: None }
        }
        // Scripts answer nothing else.
        _ => Frame::Null,
    }
}
