//! The Redis backend of A2, a storage engine for durable, session-scoped event logs: keys on a server
//! or a cluster, any number of processes.
//!
//! A program depends on this crate alone: it re-exports all of [`a2_core`], and [`fred`], the driver, for
//! configurations of its own.
//!
//! ```no_run
//! use std::time::Duration;
//! use a2_store_redis::{
//!     Append, ClaimAvailable, CompleteAttempt, NewEvent, RedisStore, SessionId, Store, Target,
//! };
//!
//! # #[tokio::main]
//! # async fn main() -> a2_store_redis::Result<()> {
//! let store = RedisStore::connect("redis://localhost").await?;
//! let session = SessionId::new("order-17")?;
//! let placed = NewEvent::new("order.placed", &serde_json::json!({"total": 12}))?
//!     .id("evt-1")?
//!     .target(Target::lane("billing", "order-17")?);
//! store.append(&session, Append::one(placed)?).await?;
//!
//! let claim = ClaimAvailable::new("worker-1", Duration::from_secs(30))?;
//! for claimed in store.claim_available(&session, claim).await?.into_heads() {
//!     let paid = NewEvent::new("order.paid", &serde_json::json!({"total": 12}))?.id("evt-2")?;
//!     let done = CompleteAttempt::new(claimed.head.clone(), claimed.attempt()).events([paid])?;
//!     let completion = store.complete_attempt(&session, done).await?.outcome;
//!     assert_eq!(completion.completed().map(|appended| appended.events[0].index.get()), Some(2));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Servers
//!
//! Redis 6.2 or newer, or a Valkey. The URL says what it is; `valkey` may stand for `redis`:
//!
//! | URL | |
//! |---|---|
//! | `redis://user:password@host:6379/0` | one server; `rediss://` with TLS |
//! | `redis+unix:///run/redis.sock` | one server, by a socket |
//! | `redis-cluster://host:7000?node=host:7001` | a cluster, by some of its nodes; `rediss-cluster://` with TLS |
//! | `redis-sentinel://host:26379/0?sentinelServiceName=main` | the master that the Sentinels name |
//!
//! [`RedisStore::config_builder`] takes a configuration of the driver's instead. The store makes clients
//! of its own from it: a client of yours would send a command again whose answer was lost.
//!
//! [`RedisBuilder::connect`] refuses, with nothing written: a server older than 6.2; one whose
//! `maxmemory-policy` is `allkeys-…`, unless [told otherwise](RedisBuilder::allow_eviction); a prefix that
//! holds another layout, or a store of the earlier A2 (the npm package). All that it asks it reads from
//! INFO; what a server does not tell is no reason to refuse it. [`RedisStore::servers`] has what they
//! said, to warn of one that keeps no append-only file.
//!
//! A user of the server needs, for the prefix `a2`:
//!
//! ```text
//! ACL SETUSER app on >password ~a2:* resetchannels &a2:* -@all +@read +@write +@connection
//!     +@pubsub -@dangerous +eval +evalsha +time +wait +info
//! ```
//!
//! and on a cluster `+cluster|slots +cluster|info`, behind Sentinel `+role`. `+info` may be left out,
//! `+wait` without [`RedisBuilder::wait`]. Whoever can write keys under the prefix by hand can break what
//! the scripts rely on; anybody may read them.
//!
//! # What survives
//!
//! Every operation is one script, done as a whole or not at all, also when a slot is on its way to another
//! node. The scripts refuse before they write: a server that is full (`OOM`), cannot save (`MISCONF`), is a
//! replica (`READONLY`) or loads (`LOADING`) has done nothing, and says `STORE_UNAVAILABLE`.
//!
//! An operation whose answer was lost is never sent again by the driver or by the store: it answers
//! `STORE_UNAVAILABLE` with `outcome_unknown`. Sent again as it is, it finds what was done. What was surely
//! not begun (a slot that moves, a script that the server has forgotten, no connection yet) is sent again
//! until it is done or the [timeout](RedisBuilder::operation_timeout) is over.
//!
//! What an *answered* write survives is what the server promises, no more:
//!
//! | | the process ends | the server restarts | the machine or its disk is lost |
//! |---|---|---|---|
//! | no append-only file, no snapshots | survives | **lost, all of it** | lost |
//! | snapshots alone (`save`) | survives | **lost since the last snapshot** | the replicas' |
//! | `appendfsync no` | survives | survives | **lost since the kernel wrote, often 30 s** |
//! | `appendfsync everysec` | survives | survives, but for what a slow disk held up | **up to 2 s lost** |
//! | `appendfsync always` | survives | survives | survives a power cut; the disk is the replicas' |
//!
//! A *failover* makes a replica the master that has not everything: replication is asynchronous. Writes
//! that were answered in between are undone, and with them claims and completions: work that was
//! completed is handed out again, and its events get other indexes. Whoever read the undone ones has
//! read what never was. [`RedisBuilder::wait`] answers a write only once replicas have it, which makes this
//! rare, not impossible; `min-replicas-to-write` bounds how much a cut-off master can take.
//!
//! *Eviction* by a policy of `allkeys-…` deletes parts of logs: sessions become `CORRUPT`, or vanish.
//! With `volatile-…` presence alone can go.
//!
//! The server's clock judges leases, timers and presence. After a failover it is another machine's.
//!
//! # Connections
//!
//! Operations go through [a few connections](RedisBuilder::connections) to each server, pipelined. While
//! streams or watchers are open the store has one more, which listens; when it is lost it is made again,
//! and everybody catches up by reading. A message carries the events themselves when they are small. On a
//! cluster of 7.0 or newer messages are sharded: they go to the nodes of their slot alone. The nodes'
//! versions are looked at when a store connects: restart the processes after an upgrade from 6.2, since
//! they hear each other's messages only where they agree (else streams poll).
//!
//! A connection that is lost is made again by itself. An operation waits for that, within its timeout. A
//! cluster of which one master is gone serves nobody until a replica replaces it, or it is back: the
//! driver connects to all masters or to none. A dropped future leaves its operation done or not done, and
//! the connections usable. [`RedisStore::close`], or dropping the last handle, ends all of them.
//!
//! # What a server is kept busy with
//!
//! A server does one script at a time. What an operation costs does not grow with the history, with what
//! is finished or with the backlog; it grows with what it is given. On two cores that were busy with
//! other work, a batch of 10,000 events with a target each held Redis 7.0 for 0.4 s, one of 64 MiB of payloads for
//! 0.6 s; [limits of its own](RedisBuilder::limits) make a store refuse such. A server answers others
//! `BUSY` only after `busy-reply-threshold`, 5 seconds.
//!
//! # Keys
//!
//! All keys of a session, and those of a namespace, lie in one of 256 partitions, chosen by its name:
//! partition k is hash slot 64·k, so that any number of masters gets its share. A key is the prefix, the
//! partition's tag `{t}`, and what is below; `·` is U+0000, which stands in no name, so that no two keys
//! collide and no name leaves its tag. *S* is a session, *L* the index of the marker that began its lifetime
//! (0 before the first clear), *n* a chunk of 1,000 indexes.
//!
//! | key | type | holds | written by | goes |
//! |---|---|---|---|---|
//! | `schema` | string | the layout's name, `a2-redis-2` | connect | never |
//! | `guard` | | never exists: while a slot moves the server then refuses a script before it starts | nobody | |
//! | `S` | sorted set | the sessions | the first append | never |
//! | `P` | sorted set | sessions with live heads or timers, and some that had | what makes such | `pending`, once it is idle |
//! | `T` | sorted set | timers by due time | schedule | fired, unscheduled, reclaim |
//! | `w` | channel | what was committed | all that commits | |
//! | `m·S` | hash | head, marker, how many heads are live or pin; ids, lanes and their links, live heads of each consumer | every write | never; a clear puts it away as `m·S·L` |
//! | `g·S`, `q·S` | hash, sorted set | log cursors | wake, append, complete | never |
//! | `t c v a ·S` | sorted sets, hash | timers that outlive a clear | schedule | fired, unscheduled |
//! | `u·S` | list | lifetimes to reclaim | clear | reclaim |
//! | `l·S·L·n` | list | the log | append, complete | reclaim, after a clear |
//! | `e·S·L·index` | string | a payload over 32 KiB | append, complete | reclaim |
//! | `w·S·L` | list | which events have such | append, complete | reclaim |
//! | `m·S·L` | hash | `m·S` as the clear found it | clear | reclaim |
//! | `h·S·L` | sorted set | consumers with live heads, and some that had | append, complete … | claim of everything, reclaim |
//! | `y·S·L·type` | string | the indexes of a type, 8 bytes each | append, complete | reclaim |
//! | `d·S·L·n` | hash | heads: attempts, leases, errors | claim, renew, complete, fail … | reclaim |
//! | `f·S·L·consumer` | sorted set | live heads: those leased or held by when that ends, less 2^53; then those that are free, by index | append, claim, fail … | empty, reclaim |
//! | `x·S·L` | sorted set | dead letters | fail, claim | redrive, reclaim |
//! | `o·S·L` | sorted set | cursors, in order | append | reclaim |
//! | `z Z ·S·L·reducer` | sorted set, hash | snapshots | put_snapshots | replaced, reclaim |
//! | `k·S·L`, `j·S·L` | hashes | pins | put_snapshots | complete, reclaim |
//! | `t c v ·S·L` | sorted sets, hash | timers that the next clear drops | schedule | fired, clear + reclaim |
//! | `r·S·L` | set | names of the types and reducers | append, put_snapshots | reclaim |
//! | `p·NS`, `x·NS` | hash, sorted set | a namespace's fields, and when they go | set_presence | with the last field, by TTL |
//!
//! A clear deletes nothing: it begins keys with another *L*. What lies below is deleted by
//! [`Store::reclaim`], some of it in each call.

mod args;
mod batch;
mod config;
mod conn;
mod error;
mod keys;
mod layout;
mod link;
mod listing;
mod note;
mod open;
mod presence_rows;
mod reply;
mod script;
mod server;
mod session_ops;
mod snapshots;
mod store;
mod tell;
mod timers;
mod tls;
mod verbs;
mod wake;

pub use a2_core::*;
pub use fred;
#[cfg(feature = "tls")]
pub use rustls;

pub use config::RedisBuilder;
pub use server::ServerInfo;
pub use store::RedisStore;
