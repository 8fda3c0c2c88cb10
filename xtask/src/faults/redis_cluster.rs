//! A Redis Cluster of three masters, one of which has a copy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use a2_conformance::history::Random;
use a2_conformance::servers::{
    AppendOnly, RedisCluster, RedisOptions, RedisServer, Reply, Servers, fresh_name,
};
use a2_core::async_trait;
use a2_store_redis::RedisStore;
use anyhow::{Context, Result, bail};

use super::redis::{TIMEOUT, command};
use super::theatre::{Store, Theatre, pause, version};

const KILL: &str = "a node is killed (SIGKILL) and started again";
const STOP: &str = "a node is stopped (SIGSTOP) and goes on";
const FAILOVER: &str = "a copy takes over from its master (CLUSTER FAILOVER), and back";
const FLUSH: &str = "SCRIPT FLUSH on every node";
const CLIENTS: &str = "CLIENT KILL on every connection of every node";

pub(super) struct Cluster {
    copy: RedisServer,
    cluster: RedisCluster,
    prefix: String,
}

impl Cluster {
    pub(super) async fn start() -> Result<Self> {
        let options = RedisOptions::new().append_only(AppendOnly::Always);
        // Only when told does a copy take over: it may lack what its master has answered.
        let options = options.setting("cluster-replica-no-failover", "yes");
        let cluster = options.start_cluster(Servers::Local).await?;
        let options = options.setting("cluster-enabled", "yes");
        let options = options.setting("cluster-node-timeout", "2000");
        let copy = options.start(Servers::Local).await?;
        let this = Self { copy, cluster, prefix: fresh_name() };
        this.join().await?;
        Ok(this)
    }

    async fn ask(&self, node: usize, words: &[&str]) -> Result<Reply> {
        match self.cluster.command(node, words).await? {
            Reply::Error(refusal) => bail!("{words:?}: {refusal}"),
            reply => Ok(reply),
        }
    }

    /// Makes the copy one of the first master.
    async fn join(&self) -> Result<()> {
        let master = self.cluster.processes().first().context("the cluster is not ours")?;
        let port = master.port().to_string();
        command(&self.copy, &["CLUSTER", "MEET", "127.0.0.1", &port]).await?;
        let id = self.ask(0, &["CLUSTER", "MYID"]).await?.to_string();
        let deadline = Instant::now() + Duration::from_secs(30);
        while let Err(error) = command(&self.copy, &["CLUSTER", "REPLICATE", &id]).await {
            // It has not heard of its master yet.
            if Instant::now() > deadline {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.until(true, "master_link_status:up").await
    }

    async fn until_whole(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        for node in 0..self.cluster.nodes() {
            while !self
                .ask(node, &["CLUSTER", "INFO"])
                .await?
                .to_string()
                .contains("cluster_state:ok")
            {
                if Instant::now() > deadline {
                    bail!("node {node} does not find the cluster whole");
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// Asks the first master, or its copy.
    async fn ask_one(&self, copy: bool, words: &[&str]) -> Result<Reply> {
        match copy {
            true => command(&self.copy, words).await,
            false => self.ask(0, words).await,
        }
    }

    /// Waits until the first master, or its copy, says this of its replication.
    async fn until(&self, copy: bool, said: &str) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let info = self.ask_one(copy, &["INFO", "replication"]).await?.to_string();
            if info.contains(said) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("not {said}: {info}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Lets the copy, or the former master, take over. The others vote once in a while only.
    async fn take_over(&self, copy: bool) -> Result<()> {
        for _ in 0..30 {
            let info = self.ask_one(copy, &["INFO", "replication"]).await?.to_string();
            if info.contains("role:master") {
                return Ok(());
            }
            // Refused while the one before is under way.
            let _ = self.ask_one(copy, &["CLUSTER", "FAILOVER"]).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        bail!("nobody takes over")
    }
}

#[async_trait]
impl Theatre for Cluster {
    fn describe(&self) -> String {
        format!("{}, appendfsync always; one master has a copy.", version(&self.cluster.describe()))
    }

    fn harms(&self) -> Vec<&'static str> {
        vec![KILL, STOP, FAILOVER, FLUSH, CLIENTS]
    }

    async fn open(&self) -> Result<Vec<Store>> {
        let mut stores: Vec<Store> = Vec::new();
        for _ in 0..2 {
            let builder = RedisStore::builder(self.cluster.url()).prefix(&self.prefix);
            let builder = builder.connections(2).operation_timeout(TIMEOUT);
            stores.push(Arc::new(builder.connect().await?));
        }
        Ok(stores)
    }

    async fn harm(&self, what: &str, random: &mut Random) -> Result<()> {
        let nodes = self.cluster.processes();
        match what {
            KILL => {
                // Not the one with the copy: it must come back before the copy is asked.
                let node = nodes.get(usize::try_from(random.from(1, 2))?).context("no node")?;
                node.kill();
                pause(random, 0, 500).await;
                node.restart().await?;
                self.until_whole().await?;
            }
            STOP => {
                let node = random.one(nodes).context("no node")?;
                node.pause();
                pause(random, 500, 4_500).await;
                node.resume();
                self.until_whole().await?;
            }
            FAILOVER => {
                self.take_over(true).await?;
                pause(random, 300, 1_500).await;
                self.until(false, "master_link_status:up").await?;
                self.take_over(false).await?;
                self.until(true, "master_link_status:up").await?;
            }
            FLUSH => {
                for _ in 0..10 {
                    for node in 0..self.cluster.nodes() {
                        self.ask(node, &["SCRIPT", "FLUSH"]).await?;
                    }
                    pause(random, 1, 60).await;
                }
            }
            CLIENTS => {
                for node in 0..self.cluster.nodes() {
                    for kind in ["normal", "pubsub"] {
                        self.ask(node, &["CLIENT", "KILL", "TYPE", kind]).await?;
                    }
                    pause(random, 1, 100).await;
                }
            }
            other => bail!("there is no {other}"),
        }
        Ok(())
    }
}
