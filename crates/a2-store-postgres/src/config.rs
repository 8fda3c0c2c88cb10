//! How a store is connected.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use a2_core::{Clock, Error, Result, StoreLimits};
use deadpool_postgres::{Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::PostgresStore;
use crate::tls::Tls;

/// What every connection of the store's own pool is told, so that plans stay what they were tested to
/// be: a function's cached plan is made once, for a database that may be empty then.
const PLANNING: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off \
                        -c enable_bitmapscan=off -c enable_sort=off -c enable_incremental_sort=off \
                        -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off";

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Statements {
    /// Prepared once a connection, under a name.
    #[default]
    Named,
    /// Sent whole each time, in one round trip all the same: for a pooler that gives every transaction
    /// another connection (PgBouncer's transaction mode). Costs the server some 20 µs more.
    Unnamed,
}

/// Whose connections a store uses.
#[derive(Clone)]
pub(crate) enum Source {
    /// Its own, made as this URL says.
    Url(String),
    /// The program's.
    Pool(Pool),
}

/// Connects a [`PostgresStore`] with options.
#[derive(Clone)]
#[must_use]
pub struct PostgresBuilder {
    pub(crate) source: Source,
    pub(crate) listen: Option<String>,
    pub(crate) tls: Option<Tls>,
    pub(crate) max_connections: usize,
    pub(crate) schema: Option<String>,
    pub(crate) statements: Statements,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) operation_timeout: Duration,
    pub(crate) notifications: bool,
    pub(crate) poll_floor: Duration,
    pub(crate) poll_ceiling: Duration,
    pub(crate) limits: StoreLimits,
}

impl PostgresBuilder {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            listen: None,
            tls: None,
            max_connections: 16,
            schema: None,
            statements: Statements::Named,
            clock: None,
            operation_timeout: Duration::from_secs(30),
            notifications: true,
            poll_floor: Duration::from_millis(20),
            poll_ceiling: Duration::from_secs(1),
            limits: StoreLimits::ABSOLUTE,
        }
    }

    /// The schema that the store's tables and functions are in. Without it they are found by the
    /// connections' `search_path`.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Most connections of the store's own pool; 16 by default. A pool that was given keeps its size.
    pub fn max_connections(mut self, max: usize) -> Self {
        self.max_connections = max.max(1);
        self
    }

    /// How statements are sent; [`Statements::Named`] by default.
    pub fn statements(mut self, statements: Statements) -> Self {
        self.statements = statements;
        self
    }

    /// Judges leases, timers and presence by this clock instead of the server's. It is read when a
    /// request is made.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How long an operation may take, the wait for a connection included, before it answers
    /// `STORE_UNAVAILABLE`; 30 seconds by default.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Tells other processes of what this one commits, and is told by them; without it everybody
    /// polls. A pool hands out no notifications: with one alone the store tells and polls, unless
    /// [`listen_at`](Self::listen_at) says where to listen.
    pub fn notifications(mut self, notifications: bool) -> Self {
        self.notifications = notifications;
        self
    }

    /// Listens at this URL: for a store whose connections come from a pool, or go through a pooler. It
    /// must lead to the same database, not through a pooler in transaction mode.
    pub fn listen_at(mut self, url: impl Into<String>) -> Self {
        self.listen = Some(url.into());
        self
    }

    /// How often the store looks for what other processes did while streams are open and nobody tells
    /// it: at the floor after an event, then at intervals that double up to the ceiling. While it
    /// listens it looks at the ceiling alone, for what a lost notification was for. 20 milliseconds
    /// and 1 second by default.
    pub fn polling(mut self, floor: Duration, ceiling: Duration) -> Self {
        self.poll_floor = floor.max(Duration::from_millis(1));
        self.poll_ceiling = ceiling.max(self.poll_floor);
        self
    }

    /// How much the store takes at once; as much as the model allows by default. They are this store's:
    /// another one on the same database has its own.
    pub fn limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Encrypts connections as this configuration says, unless the URL says `sslmode=disable`. Without
    /// it only `sslmode=require` encrypts, and trusts whom the platform trusts.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.tls = Some(Tls::Rustls(tokio_postgres_rustls::MakeRustlsConnect::new(config)));
        self
    }

    /// Connects, and sees that the server is one that can hold a store. It is not looked whether it
    /// does: see [`PostgresStore::migrate`].
    ///
    /// # Errors
    /// `INVALID_INPUT` for a URL that is none; `STORE_NOT_CONFIGURED` for a server older than 14, a
    /// database whose encoding is not UTF8, or a role that may not connect; `STORE_UNAVAILABLE` when
    /// the server cannot be reached.
    pub async fn connect(self) -> Result<PostgresStore> {
        let store = PostgresStore::start(self)?;
        store.check_server().await?;
        Ok(store)
    }

    /// Names that the server would cut, or that the functions cannot be made in, are refused.
    pub(crate) fn check_schema(&self) -> Result<()> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let rule = if schema.is_empty() || schema.len() > 63 {
            "must be 1 to 63 bytes"
        } else if schema.contains('\0') {
            "must not contain U+0000"
        } else if schema.contains("$body$") || schema.contains("$sql$") {
            "must not contain $body$ or $sql$, which quote the functions' texts"
        } else {
            return Ok(());
        };
        Err(Error::invalid("schema", rule))
    }

    /// The pool that the store takes its connections from.
    pub(crate) fn pool(&self) -> Result<Pool> {
        let url = match &self.source {
            Source::Pool(pool) => return Ok(pool.clone()),
            Source::Url(url) => url,
        };
        let mut config = self.parse("url", url)?;
        if self.statements == Statements::Named {
            let given = config.get_options().map(|given| format!("{given} ")).unwrap_or_default();
            let timeout = self.operation_timeout.as_millis().min(i32::MAX as u128);
            config.options(format!("{given}{PLANNING} -c statement_timeout={timeout}"));
        }
        let tls = self.tls_for(&config)?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(config, tls, recycling);
        // The connection that was used last: its server process is warm.
        let pool = Pool::builder(manager)
            .max_size(self.max_connections)
            .queue_mode(QueueMode::Lifo)
            .build();
        pool.map_err(|error| Error::invalid("max_connections", error.to_string()))
    }

    /// Where to listen, if it is to.
    pub(crate) fn listener(&self) -> Result<Option<(Config, Tls)>> {
        let url = match (&self.listen, &self.source) {
            _ if !self.notifications => return Ok(None),
            (Some(url), _) => url,
            (None, Source::Url(url)) if self.statements == Statements::Named => url,
            (None, _) => return Ok(None),
        };
        let config = self.parse("listen_at", url)?;
        let tls = self.tls_for(&config)?;
        Ok(Some((config, tls)))
    }

    /// A URL's meaning. Where encryption was asked for, there is no way without it.
    fn parse(&self, field: &'static str, url: &str) -> Result<Config> {
        let mut config = parse(field, url)?;
        let is_tcp = config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
        if self.tls.is_some() && is_tcp && config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(SslMode::Require);
        }
        Ok(config)
    }

    fn tls_for(&self, config: &Config) -> Result<Tls> {
        match (&self.tls, config.get_ssl_mode()) {
            (_, SslMode::Disable) => Ok(Tls::Plain),
            (Some(tls), _) => Ok(tls.clone()),
            (None, SslMode::Require) => Tls::of_the_platform(),
            (None, _) => Ok(Tls::Plain),
        }
    }
}

/// A URL's meaning, with what every connection of the store has.
fn parse(field: &'static str, url: &str) -> Result<Config> {
    let mut config = Config::from_str(url).map_err(|error| {
        // The error's text does not repeat the URL, which may hold a password.
        Error::invalid(field, format!("must be a Postgres URL or connection string: {error}"))
    })?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    if config.get_tcp_user_timeout().is_none() {
        // A server that is gone without a word is noticed by what waits for it.
        config.tcp_user_timeout(Duration::from_secs(30));
    }
    if config.get_keepalives_idle() > Duration::from_secs(60) {
        // And by the connection that listens, which waits for nothing in particular.
        config.keepalives_idle(Duration::from_secs(60));
    }
    if config.get_application_name().is_none() {
        config.application_name("a2");
    }
    Ok(config)
}

impl fmt::Debug for PostgresBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs may hold passwords.
        f.debug_struct("PostgresBuilder")
            .field("schema", &self.schema)
            .field("statements", &self.statements)
            .field("max_connections", &self.max_connections)
            .field("clock", &self.clock)
            .field("operation_timeout", &self.operation_timeout)
            .field("notifications", &self.notifications)
            .field("poll_floor", &self.poll_floor)
            .field("poll_ceiling", &self.poll_ceiling)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_none_is_refused_without_being_repeated() {
        let builder = PostgresBuilder::new(Source::Url("postgres://u:secret@h:port/".into()));
        let error = builder.pool().err().unwrap();
        assert_eq!(error.code(), "INVALID_INPUT");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(!format!("{builder:?}").contains("secret"));
    }

    #[test]
    fn a_schema_that_cannot_be_made_is_refused() {
        let check = |name: &str| {
            let builder = PostgresBuilder::new(Source::Url("postgres://u@h/db".into()));
            builder.schema(name).check_schema().map_err(|error| error.code())
        };
        for name in ["", "a\0b", "a$body$", "$sql$", &"s".repeat(64)] {
            assert_eq!(check(name), Err("INVALID_INPUT"), "{name:?}");
        }
        for name in ["a2", "a \"b\"", "$a2$", &"s".repeat(63)] {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn who_asks_for_encryption_gets_no_connection_without_it() {
        let mode = |url: &str, tls: bool| {
            let builder = PostgresBuilder::new(Source::Url(url.into()));
            let roots = rustls::RootCertStore::empty();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = rustls::ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let builder = if tls { builder.tls(config) } else { builder };
            let config = builder.parse("url", url).unwrap();
            let is_plain = matches!(builder.tls_for(&config).unwrap(), Tls::Plain);
            (config.get_ssl_mode(), is_plain)
        };
        assert_eq!(mode("postgres://u@h/db", true), (SslMode::Require, false));
        assert_eq!(mode("postgres://u@h/db?sslmode=disable", true), (SslMode::Disable, true));
        assert_eq!(mode("postgres://u@h/db", false), (SslMode::Prefer, true));
    }

    #[test]
    fn through_a_pooler_it_listens_only_where_it_is_told_to() {
        let url = "postgres://u@h/db";
        let direct = PostgresBuilder::new(Source::Url(url.into()));
        assert!(direct.listener().unwrap().is_some());
        assert!(direct.clone().notifications(false).listener().unwrap().is_none());
        let pooled = direct.statements(Statements::Unnamed);
        assert!(pooled.listener().unwrap().is_none());
        assert!(pooled.listen_at(url).listener().unwrap().is_some());
    }
}
