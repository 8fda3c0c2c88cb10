//! Real servers to work with: started as the suite starts them, until Ctrl-C or the end of a command
//! that gets their URLs.

use std::fmt::Display;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use a2_conformance::servers::{self as real, PgBouncer, PostgresServer, RedisCluster, RedisServer};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::conformance::Servers;

/// Which servers, and for how long.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A kind to start, repeatable; one of each when none is given.
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<Kind>,
    /// Where they come from; PgBouncer is always a binary of this machine.
    #[arg(long, default_value = "auto")]
    servers: Servers,
    /// Start them, see that each answers, stop them.
    #[arg(long, conflicts_with = "command")]
    check: bool,
    /// Run this command with A2_POSTGRES_URL, A2_REDIS_URL, A2_REDIS_CLUSTER_URL and
    /// A2_PGBOUNCER_URL set, then stop them.
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Postgres,
    Redis,
    RedisCluster,
    Pgbouncer,
}

impl From<Servers> for real::Servers {
    fn from(servers: Servers) -> Self {
        match servers {
            Servers::Auto => Self::Auto,
            Servers::Docker => Self::Docker,
            Servers::Local => Self::Local,
            Servers::Url => Self::Url,
        }
    }
}

/// What was started. A field's order is the order of its end: PgBouncer before its Postgres.
#[derive(Default)]
struct Started {
    bouncer: Option<PgBouncer>,
    postgres: Option<PostgresServer>,
    redis: Option<RedisServer>,
    cluster: Option<RedisCluster>,
}

/// Starts the servers, and stops them when it is time.
pub(crate) async fn run(args: Args) -> Result<()> {
    let kinds = if args.kinds.is_empty() { Kind::value_variants() } else { &args.kinds };
    let mut started = Started::default();
    for kind in kinds {
        started.start(*kind, args.servers.into()).await?;
    }
    if args.check {
        started.ping().await?;
        drop(started);
        println!("each answered and is stopped");
        return Ok(());
    }
    let stop = stop_signal();
    if args.command.is_empty() {
        println!("Ctrl-C stops them");
        return stop.await;
    }
    let urls = started.urls();
    // Ctrl-C is for the command too: the servers stay until it has ended.
    let status = tokio::task::spawn_blocking(move || command(&args.command, &urls));
    let status = status.await??;
    drop(started);
    if !status.success() {
        bail!("the command ended with {status}");
    }
    Ok(())
}

impl Started {
    async fn start(&mut self, kind: Kind, servers: real::Servers) -> Result<()> {
        let start = Instant::now();
        match kind {
            Kind::Postgres | Kind::Pgbouncer if self.postgres.is_none() => {
                let server = real::postgres(servers).await?;
                say("postgres", start, &server.describe(), server.url());
                self.postgres = Some(server);
            }
            Kind::Redis => {
                let server = real::redis(servers).await?;
                say("redis", start, &server.describe(), server.url());
                self.redis = Some(server);
            }
            Kind::RedisCluster => {
                let cluster = real::redis_cluster(servers).await?;
                say("redis-cluster", start, &cluster.describe(), cluster.url());
                self.cluster = Some(cluster);
            }
            _ => {}
        }
        if kind == Kind::Pgbouncer
            && let Some(postgres) = &self.postgres
        {
            let start = Instant::now();
            let bouncer = real::pgbouncer(postgres).await?;
            say("pgbouncer", start, &bouncer.describe(), bouncer.url());
            self.bouncer = Some(bouncer);
        }
        Ok(())
    }

    async fn ping(&self) -> Result<()> {
        if let Some(server) = &self.postgres {
            server.ping().await?;
        }
        if let Some(server) = &self.redis {
            server.ping().await?;
        }
        if let Some(cluster) = &self.cluster {
            cluster.ping().await?;
        }
        if let Some(bouncer) = &self.bouncer {
            bouncer.ping().await?;
        }
        Ok(())
    }

    fn urls(&self) -> Vec<(&'static str, String)> {
        let urls = [
            ("A2_POSTGRES_URL", self.postgres.as_ref().map(PostgresServer::url)),
            ("A2_REDIS_URL", self.redis.as_ref().map(RedisServer::url)),
            ("A2_REDIS_CLUSTER_URL", self.cluster.as_ref().map(RedisCluster::url)),
            ("A2_PGBOUNCER_URL", self.bouncer.as_ref().map(PgBouncer::url)),
        ];
        urls.into_iter().filter_map(|(name, url)| Some((name, url?.to_owned()))).collect()
    }
}

fn say(kind: &str, start: Instant, description: &dyn Display, url: &str) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{kind:<14} {description} ({seconds:.1} s)\n{:<14} {url}", "");
}

fn command(words: &[String], urls: &[(&str, String)]) -> Result<ExitStatus> {
    let (program, arguments) = words.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).envs(urls.iter().map(|(name, url)| (name, url)));
    command.status().with_context(|| format!("{program}: cannot be started"))
}

/// Ctrl-C or SIGTERM; from now on they no longer end this process.
#[cfg(unix)]
fn stop_signal() -> impl Future<Output = Result<()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let signals = signal(SignalKind::interrupt()).and_then(|interrupt| {
        signal(SignalKind::terminate()).map(|terminate| (interrupt, terminate))
    });
    async {
        let (mut interrupt, mut terminate) = signals?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
async fn stop_signal() -> Result<()> {
    Ok(tokio::signal::ctrl_c().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(kinds: Vec<Kind>, check: bool, command: &[&str]) -> Args {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        Args { kinds, servers: Servers::Local, check, command }
    }

    #[tokio::test]
    async fn every_kind_is_started_and_answers() {
        run(args(Vec::new(), true, &[])).await.unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_gets_the_urls_and_its_failure_is_ours() {
        let script = r#"case $A2_REDIS_URL in redis://127.0.0.1:*) exit 3; esac"#;
        let error = run(args(vec![Kind::Redis], false, &["sh", "-c", script])).await.unwrap_err();
        assert_eq!(error.to_string(), "the command ended with exit status: 3");
    }
}
