//! Real servers for the stores that need one: Postgres, Redis, a Redis Cluster of three masters, and
//! PgBouncer in front of a Postgres. Nothing is mocked.
//!
//! ```no_run
//! # async fn run() -> Result<(), a2_conformance::servers::ServerError> {
//! use a2_conformance::servers::{self, Servers};
//!
//! let postgres = servers::postgres(Servers::Auto).await?;
//! println!("{}: {}", postgres.describe(), postgres.url());
//! # Ok(())
//! # }
//! ```
//!
//! # Where they come from
//!
//! With [`Servers::Auto`], the first of these that there is:
//!
//! 1. A URL in `A2_POSTGRES_URL`, `A2_REDIS_URL` or `A2_REDIS_CLUSTER_URL`. The server must answer.
//! 2. Docker, when an engine answers and the image is there or can be pulled: `A2_POSTGRES_IMAGE`
//!    and `A2_REDIS_IMAGE` name other images, also such as no registry has. Only 127.0.0.1 reaches
//!    the container. This needs the feature `docker`.
//! 3. The binaries of this machine: on `PATH` or where the distributions put them, the newest
//!    Postgres first. `A2_POSTGRES_BIN`, `A2_REDIS_BIN` and `A2_PGBOUNCER_BIN` name others. Started by
//!    root, they run as `postgres`, `redis` or `nobody`. PgBouncer always comes from here.
//!
//! Where there is none, [`ServerError`] says what was tried and how to get one.
//!
//! # When they end
//!
//! Each is a guard: it is stopped and its folder is removed with the value, also when a panic unwinds.
//! Should this process end without dropping it (it returns from `main` with the server in a static;
//! by Ctrl-C, SIGTERM or SIGKILL), a shell that waits at a pipe does the same; for a container
//! that takes a `docker` on `PATH`. Containers of runs that left one all the same are removed before
//! the next is started.
//!
//! One server does for a process: [`Shared`] starts it for the first that asks, and each case works in
//! a schema or under a prefix of its own, for which [`fresh_name`] has names.
//!
//! # What they cost
//!
//! Measured on two busy cores, from the binaries, until the first answer: Postgres 1.0 to 1.6 s
//! (`initdb` most of it), Redis 0.04 s, a cluster of three 2.1 s, PgBouncer 0.1 s.
//!
//! # Tests
//!
//! `cargo xtask ci servers` starts and stops each kind. `cargo test --workspace` leaves the feature
//! off, so that it passes where no server is installed. `cargo xtask servers` starts servers to work
//! with, or for the time of a command.

#[cfg(not(unix))]
#[path = "absent.rs"]
mod local;
#[cfg(unix)]
mod local;
#[cfg(unix)]
mod reaper;

mod cluster;
#[cfg(feature = "docker")]
mod docker;
#[cfg(not(feature = "docker"))]
#[path = "no_docker.rs"]
mod docker;
mod error;
mod pgbouncer;
mod port;
mod postgres;
mod probe;
mod proxy;
mod redis;
mod shared;
mod source;

pub use cluster::RedisCluster;
pub use error::ServerError;
pub use local::Process;
pub use pgbouncer::{PgBouncer, PgBouncerOptions};
pub use postgres::{PostgresOptions, PostgresServer};
pub use probe::redis::Reply;
pub use proxy::Proxy;
pub use redis::{AppendOnly, RedisOptions, RedisServer};
pub use shared::{Shared, fresh_name};

/// A server's own setting: its name and value.
type Setting = (String, String);

/// Where a server may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Servers {
    /// A URL from the environment, else Docker, else binaries of this machine.
    #[default]
    Auto,
    /// Docker alone.
    Docker,
    /// Binaries of this machine alone.
    Local,
    /// URLs from the environment alone.
    Url,
}

/// A Postgres with its usual settings.
///
/// # Errors
/// There is none: the error says how to get one.
pub async fn postgres(servers: Servers) -> Result<PostgresServer, ServerError> {
    PostgresOptions::new().start(servers).await
}

/// A Redis or Valkey that keeps nothing on disk.
///
/// # Errors
/// There is none: the error says how to get one.
pub async fn redis(servers: Servers) -> Result<RedisServer, ServerError> {
    RedisOptions::new().start(servers).await
}

/// A Redis Cluster of three masters that keep nothing on disk.
///
/// # Errors
/// There is none: the error says how to get one.
pub async fn redis_cluster(servers: Servers) -> Result<RedisCluster, ServerError> {
    RedisOptions::new().start_cluster(servers).await
}

/// A PgBouncer in transaction mode in front of this Postgres, always from a binary of this machine.
///
/// # Errors
/// There is none: the error says how to get one.
pub async fn pgbouncer(postgres: &PostgresServer) -> Result<PgBouncer, ServerError> {
    PgBouncerOptions::new().start(postgres).await
}
