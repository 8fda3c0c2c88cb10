//! How a store is connected.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use a2_core::{Clock, Result, StoreLimits};
use fred::types::config::Config;

use crate::conn::Copies;
use crate::tls::Tls;
use crate::{RedisStore, open};

/// Which servers a store uses.
#[derive(Clone)]
pub(crate) enum Source {
    /// Those at this URL.
    Url(String),
    /// Those of a configuration of the driver's.
    Config(Box<Config>),
}

/// Connects a [`RedisStore`] with options.
#[derive(Clone)]
#[must_use]
pub struct RedisBuilder {
    pub(crate) source: Source,
    pub(crate) tls: Option<Tls>,
    pub(crate) prefix: String,
    pub(crate) connections: usize,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) operation_timeout: Duration,
    pub(crate) notifications: bool,
    pub(crate) poll_floor: Duration,
    pub(crate) poll_ceiling: Duration,
    pub(crate) copies: Option<Copies>,
    pub(crate) allow_eviction: bool,
    pub(crate) require_append_only: bool,
    pub(crate) general: bool,
    pub(crate) limits: StoreLimits,
}

impl RedisBuilder {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            tls: None,
            prefix: "a2".to_owned(),
            connections: 2,
            clock: None,
            operation_timeout: Duration::from_secs(30),
            notifications: true,
            poll_floor: Duration::from_millis(20),
            poll_ceiling: Duration::from_secs(1),
            copies: None,
            allow_eviction: false,
            require_append_only: false,
            general: false,
            limits: StoreLimits::ABSOLUTE,
        }
    }

    /// What every key of the store begins with; `a2` by default. Stores with different prefixes know
    /// nothing of each other.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How many connections (to each node of a cluster) operations go through; 2 by default. They
    /// are pipelined: one more pays when the driver, not the server, is what is busy.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Judges leases, timers and presence by this clock instead of the server's. It is read when a
    /// request is made.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How long an operation may take before it answers `STORE_UNAVAILABLE`; 30 seconds by default.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Tells other processes of what this one commits, and is told by them; without it everybody
    /// polls.
    pub fn notifications(mut self, notifications: bool) -> Self {
        self.notifications = notifications;
        self
    }

    /// How often the store looks for what other processes did while streams are open and nobody tells
    /// it: at the floor after an event, then at intervals that double up to the ceiling. While it is
    /// told it looks at the ceiling alone, for what a lost message was for. 20 milliseconds and
    /// 1 second by default.
    pub fn polling(mut self, floor: Duration, ceiling: Duration) -> Self {
        self.poll_floor = floor.max(Duration::from_millis(1));
        self.poll_ceiling = ceiling.max(self.poll_floor);
        self
    }

    /// Answers a write only once this many replicas have it, so that it survives the loss of the
    /// master; not at all by default. When they do not have it in time the write is done all the same,
    /// and answers `STORE_UNAVAILABLE` with `outcome_unknown`: sent again as it is, it finds what was
    /// done and waits again.
    ///
    /// The wait holds its connection up: give the store [more of them](Self::connections). A failover
    /// can still choose a replica that has it not, when there are more than these.
    pub fn wait(mut self, replicas: u32, timeout: Duration) -> Self {
        self.copies = (replicas > 0).then_some(Copies { replicas, timeout });
        self
    }

    /// Connects although a server's `maxmemory-policy` is one of `allkeys-…`. It deletes keys of any
    /// kind when its memory is full: parts of logs, which makes sessions `CORRUPT`, or whole sessions,
    /// which nothing can tell from those that never were. `volatile-…` is allowed as it is: presence
    /// alone has a time to live.
    pub fn allow_eviction(mut self, allow: bool) -> Self {
        self.allow_eviction = allow;
        self
    }

    /// Refuses a server that keeps no append-only file, or does not tell whether it does; without it
    /// [`RedisStore::servers`] says so.
    pub fn require_append_only(mut self, require: bool) -> Self {
        self.require_append_only = require;
        self
    }

    /// Encrypts connections as this configuration says: one of rustls, or the driver's. Without it
    /// `rediss://` and its like encrypt, and trust whom the platform trusts.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, config: impl Into<fred::types::config::TlsConfig>) -> Self {
        self.tls = Some(config.into());
        self
    }

    /// How much the store takes at once; as much as the model allows by default. They are this store's:
    /// another one under the same prefix has its own.
    pub fn limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Leaves out what goes ahead of the general paths of the scripts: to compare them.
    #[doc(hidden)]
    pub fn general_paths(mut self, general: bool) -> Self {
        self.general = general;
        self
    }

    /// Connects, checks the servers and what they hold, and records the layout under a new prefix.
    /// Where it refuses, nothing was written.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a URL or prefix that does not read. `STORE_UNAVAILABLE` when there is no
    /// connection within the operations' timeout. `STORE_NOT_CONFIGURED` for a server older than 6.2,
    /// a node of a cluster without `redis-cluster://`, one that [evicts](Self::allow_eviction) or
    /// [forgets](Self::require_append_only), a user without the rights, a prefix that holds another
    /// layout or what the npm package stores.
    pub async fn connect(self) -> Result<RedisStore> {
        open::open(self).await
    }
}

impl fmt::Debug for RedisBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("RedisBuilder")
            .field("prefix", &self.prefix)
            .field("connections", &self.connections)
            .field("clock", &self.clock)
            .field("operation_timeout", &self.operation_timeout)
            .field("notifications", &self.notifications)
            .field("poll_floor", &self.poll_floor)
            .field("poll_ceiling", &self.poll_ceiling)
            .field("copies", &self.copies)
            .field("allow_eviction", &self.allow_eviction)
            .field("require_append_only", &self.require_append_only)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
