//! A Redis, reached straight and through a proxy; and one whose copy takes over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use a2_conformance::history::Random;
use a2_conformance::servers::{
    AppendOnly, Process, Proxy, RedisOptions, RedisServer, Reply, Servers, fresh_name,
};
use a2_core::async_trait;
use a2_store_redis::RedisStore;
use anyhow::{Context, Result, bail};
use tokio::sync::Mutex;

use super::theatre::{Store, Theatre, cut, pause, version};

const KILL: &str = "the server is killed (SIGKILL) and started again";
const STOP: &str = "the server is stopped (SIGSTOP) and goes on";
const ANSWERS: &str = "connections are cut instead of answers";
const REQUESTS: &str = "connections are cut instead of requests";
const HANG_UP: &str = "all connections of a proxy are cut";
const DELAY: &str = "every packet of a proxy is late";
const FLUSH: &str = "SCRIPT FLUSH";
const CLIENTS: &str = "CLIENT KILL on every connection";
const FAILOVER: &str =
    "the master is killed (SIGKILL), its copy takes over, it comes back as a copy";

/// How long an operation may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);

pub(super) struct Redis {
    proxy: Proxy,
    server: RedisServer,
    prefix: String,
}

impl Redis {
    pub(super) async fn start() -> Result<Self> {
        let options = RedisOptions::new().append_only(AppendOnly::Always);
        let server = options.start(Servers::Local).await?;
        let proxy = Proxy::before(server.url()).await?;
        Ok(Self { proxy, server, prefix: fresh_name() })
    }

    fn process(&self) -> Result<&Process> {
        self.server.process().context("the server is not ours")
    }
}

/// A command that is not refused.
pub(super) async fn command(server: &RedisServer, words: &[&str]) -> Result<Reply> {
    match server.command(words).await? {
        Reply::Error(refusal) => bail!("{words:?}: {refusal}"),
        reply => Ok(reply),
    }
}

#[async_trait]
impl Theatre for Redis {
    fn describe(&self) -> String {
        format!(
            "{}, appendfsync always; two handles: straight, through a proxy.",
            version(&self.server.describe())
        )
    }

    fn harms(&self) -> Vec<&'static str> {
        vec![KILL, STOP, ANSWERS, REQUESTS, HANG_UP, DELAY, FLUSH, CLIENTS]
    }

    async fn open(&self) -> Result<Vec<Store>> {
        let mut stores: Vec<Store> = Vec::new();
        for url in [self.server.url(), self.proxy.url()] {
            let builder = RedisStore::builder(url).prefix(&self.prefix).connections(2);
            stores.push(Arc::new(builder.operation_timeout(TIMEOUT).connect().await?));
        }
        Ok(stores)
    }

    async fn harm(&self, what: &str, random: &mut Random) -> Result<()> {
        match what {
            KILL => {
                self.process()?.kill();
                pause(random, 0, 500).await;
                self.process()?.restart().await?;
            }
            STOP => {
                self.process()?.pause();
                pause(random, 500, 4_500).await;
                self.process()?.resume();
            }
            ANSWERS | REQUESTS => cut(&self.proxy, what == ANSWERS, random).await,
            HANG_UP => {
                for _ in 0..5 {
                    self.proxy.hang_up();
                    pause(random, 1, 100).await;
                }
            }
            DELAY => {
                self.proxy.delay(Duration::from_millis(random.from(20, 300)));
                pause(random, 500, 2_000).await;
                self.proxy.delay(Duration::ZERO);
            }
            FLUSH => {
                for _ in 0..20 {
                    command(&self.server, &["SCRIPT", "FLUSH"]).await?;
                    pause(random, 1, 60).await;
                }
            }
            CLIENTS => {
                for _ in 0..5 {
                    for kind in ["normal", "pubsub"] {
                        command(&self.server, &["CLIENT", "KILL", "TYPE", kind]).await?;
                    }
                    pause(random, 1, 200).await;
                }
            }
            other => bail!("there is no {other}"),
        }
        Ok(())
    }
}

/// Two servers, one of which copies the other; a proxy leads to the one that is the master.
pub(super) struct Failover {
    proxy: Proxy,
    /// The master, and its copy.
    servers: Mutex<[Arc<RedisServer>; 2]>,
    prefix: String,
}

impl Failover {
    pub(super) async fn start() -> Result<Self> {
        let options = RedisOptions::new().append_only(AppendOnly::Always);
        let options = options.setting("repl-diskless-sync-delay", "0");
        let master = Arc::new(options.start(Servers::Local).await?);
        let copy = Arc::new(options.start(Servers::Local).await?);
        let proxy = Proxy::before(master.url()).await?;
        follow(&copy, &master).await?;
        Ok(Self { proxy, servers: Mutex::new([master, copy]), prefix: fresh_name() })
    }
}

fn port(server: &RedisServer) -> Result<u16> {
    Ok(server.process().context("the server is not ours")?.port())
}

/// Makes one a copy of the other, and waits until it is.
async fn follow(copy: &RedisServer, master: &RedisServer) -> Result<()> {
    let place = port(master)?.to_string();
    command(copy, &["REPLICAOF", "127.0.0.1", &place]).await?;
    until_it_follows(copy).await
}

async fn until_it_follows(copy: &RedisServer) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let info = copy.command(&["INFO", "replication"]).await?.to_string();
        if info.contains("master_link_status:up") {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the copy does not follow: {info}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[async_trait]
impl Theatre for Failover {
    fn describe(&self) -> String {
        let first =
            self.servers.try_lock().map(|servers| version(&servers[0].describe()).to_owned());
        format!(
            "{}, appendfsync always, and a copy; the store waits for the copy (`wait(1)`); a proxy \
             leads to the master. Only what was answered is held to survive: what was not may be \
             undone after somebody has read it.",
            first.unwrap_or_default()
        )
    }

    fn harms(&self) -> Vec<&'static str> {
        vec![FAILOVER, HANG_UP]
    }

    async fn open(&self) -> Result<Vec<Store>> {
        let mut stores: Vec<Store> = Vec::new();
        for _ in 0..2 {
            let builder = RedisStore::builder(self.proxy.url()).prefix(&self.prefix).connections(2);
            let builder = builder.wait(1, Duration::from_secs(2)).operation_timeout(TIMEOUT);
            stores.push(Arc::new(builder.connect().await?));
        }
        Ok(stores)
    }

    async fn harm(&self, what: &str, random: &mut Random) -> Result<()> {
        match what {
            FAILOVER => {
                let mut servers = self.servers.lock().await;
                let [master, copy] = servers.clone();
                let process = master.process().context("the server is not ours")?;
                process.kill();
                command(&copy, &["REPLICAOF", "NO", "ONE"]).await?;
                pause(random, 0, 300).await;
                self.proxy.lead_to(port(&copy)?);
                pause(random, 0, 300).await;
                process.restart().await?;
                follow(&master, &copy).await?;
                *servers = [copy, master];
            }
            HANG_UP => {
                for _ in 0..5 {
                    self.proxy.hang_up();
                    pause(random, 1, 100).await;
                }
            }
            other => bail!("there is no {other}"),
        }
        Ok(())
    }

    fn forgets_unanswered(&self) -> bool {
        true
    }
}
