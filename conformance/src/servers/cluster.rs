//! A Redis Cluster of three masters from anywhere.

use std::fmt;
use std::io;

use super::error::{Kind, Miss, Missed, ServerError};
use super::port::Ports;
use super::probe::address::Address;
use super::probe::redis::{self, CLUSTER_SCHEMES};
use super::probe::until_ready;
use super::redis::{INSTALL, RedisOptions, address, command, known};
use super::source::{self, Source};
use super::{Process, Reply, Servers, Setting, docker, local};

const URL: &str = "A2_REDIS_CLUSTER_URL";
const KIND: Kind = Kind {
    name: "Redis Cluster",
    install: INSTALL,
    url: "A2_REDIS_CLUSTER_URL to redis-cluster://HOST:PORT of a cluster that tests may write to",
    image: "A2_REDIS_IMAGE",
};

/// How many slots a cluster has.
const SLOTS: usize = 16_384;

/// How many masters share them.
pub(super) const MASTERS: usize = 3;

impl RedisOptions {
    /// Starts a cluster of three masters, or finds the one that the environment names.
    ///
    /// # Errors
    /// There is none: the error says how to get one.
    pub async fn start_cluster(&self, servers: Servers) -> Result<RedisCluster, ServerError> {
        let mut missed = Missed::new(&KIND, servers);
        if servers.asks_url() {
            match self.cluster_at_url().await {
                Ok(cluster) => return Ok(cluster),
                Err(miss) => missed.add(miss)?,
            }
        }
        if servers.asks_docker() {
            match self.cluster_in_docker().await {
                Ok(cluster) => return Ok(cluster),
                Err(miss) => missed.add(miss)?,
            }
        }
        if servers.asks_local() {
            match self.cluster_of_this_machine().await {
                Ok(cluster) => return Ok(cluster),
                Err(miss) => missed.add(miss)?,
            }
        }
        Err(missed.into_error())
    }

    /// What every node is set to. Failures are noticed within seconds.
    fn node_settings(&self) -> Vec<Setting> {
        let ours = [("cluster-enabled", "yes"), ("cluster-node-timeout", "2000")];
        let ours = ours.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ours.into_iter().chain(self.settings()).collect()
    }

    async fn cluster_at_url(&self) -> Result<RedisCluster, Miss> {
        let url = source::url(URL, !self.are_usual())?;
        let failed = |error: &dyn fmt::Display| Miss::failed(format!("{URL}: {error}"));
        let address = Address::parse(&url, &CLUSTER_SCHEMES).map_err(|error| failed(&error))?;
        let version = known(&address, "cluster").await;
        let version = version.map_err(|error| failed(&format!("{address}: {error}")))?;
        Ok(RedisCluster { url, nodes: vec![address], version, source: Source::Url(URL) })
    }

    async fn cluster_in_docker(&self) -> Result<RedisCluster, Miss> {
        let container = docker::redis::start_nodes(&self.node_settings()).await?;
        let nodes: Vec<_> = container.ports().iter().map(|port| address(*port)).collect();
        let ready = || async {
            for node in &nodes {
                redis::ping(node).await?;
            }
            Ok(())
        };
        let formed = match until_ready(ready).await {
            Ok(()) => form(&nodes).await,
            Err(error) => Err(error),
        };
        match formed {
            Ok(version) => {
                Ok(RedisCluster::at(nodes, version, Source::Docker(Box::new(container))))
            }
            Err(error) => Err(container.silent(&error).await),
        }
    }

    async fn cluster_of_this_machine(&self) -> Result<RedisCluster, Miss> {
        let settings = self.node_settings();
        let mut processes = Vec::new();
        for _ in 0..MASTERS {
            processes.push(local::redis::start(&settings, Ports::WithBus).await?);
        }
        let nodes: Vec<_> = processes.iter().map(|process| address(process.port())).collect();
        let version = form(&nodes).await;
        let version = version.map_err(|error| Miss::failed(format!("the cluster: {error}")))?;
        Ok(RedisCluster::at(nodes, version, Source::Local(processes)))
    }
}

/// Shares the slots among the nodes, makes them meet, and waits until each of them takes writes.
async fn form(nodes: &[Address]) -> io::Result<String> {
    for (number, node) in nodes.iter().enumerate() {
        let share = |number: usize| number * SLOTS / nodes.len();
        let slots: Vec<_> = (share(number)..share(number + 1)).map(|s| s.to_string()).collect();
        let mut words = vec!["CLUSTER", "ADDSLOTS"];
        words.extend(slots.iter().map(String::as_str));
        ok(node, &words).await?;
        // Different from the start, so that no two nodes have to settle it.
        ok(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]).await?;
    }
    if let [first, others @ ..] = nodes {
        for other in others {
            ok(first, &["CLUSTER", "MEET", &other.host, &other.port.to_string()]).await?;
        }
    }
    until_ready(|| async {
        for node in nodes {
            takes_writes(node, nodes.len()).await?;
        }
        Ok(())
    })
    .await?;
    match nodes.first() {
        Some(first) => redis::version(first).await,
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

async fn ok(node: &Address, words: &[&str]) -> io::Result<()> {
    match redis::command(node, words).await? {
        Reply::Status(_) => Ok(()),
        other => {
            let asked = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
            Err(io::Error::other(format!("{node}: {asked} is answered with {other}")))
        }
    }
}

/// Whether the node knows all others and finds the cluster whole.
async fn takes_writes(node: &Address, nodes: usize) -> io::Result<()> {
    let info = redis::command(node, &["CLUSTER", "INFO"]).await?.to_string();
    let has = |line: &str| info.lines().any(|found| found.trim_end() == line);
    if has("cluster_state:ok") && has(&format!("cluster_known_nodes:{nodes}")) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::NotConnected, format!("{node}: the cluster is not whole")))
}

/// A Redis Cluster that answers, until it is dropped.
#[derive(Debug)]
pub struct RedisCluster {
    url: String,
    nodes: Vec<Address>,
    version: Option<String>,
    source: Source,
}

impl RedisCluster {
    fn at(nodes: Vec<Address>, version: String, source: Source) -> Self {
        let mut url = String::from("redis-cluster://");
        for (number, node) in nodes.iter().enumerate() {
            let joint = ["", "?node=", "&node="][number.min(2)];
            url.push_str(&format!("{joint}{node}"));
        }
        Self { url, nodes, version: Some(version), source }
    }

    /// How to connect: `redis-cluster://HOST:PORT?node=HOST:PORT&node=HOST:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it is and where it comes from, for people: nothing secret is in it.
    #[must_use]
    pub fn describe(&self) -> String {
        let version = self.version.as_deref().unwrap_or("Redis");
        let nodes = self.nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        format!("{version} as a cluster at {nodes}, {}", self.source.describe())
    }

    /// How many nodes are known: all of a cluster of ours, one of a cluster behind a URL.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes' processes in the order of [`command`](Self::command), if they were started from a
    /// binary of this machine; else none.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        self.source.processes()
    }

    /// Sends one command to one node, counted from 0, on a connection of its own. A refusal is an
    /// answer too.
    ///
    /// # Errors
    /// No answer, or no such node.
    pub async fn command(&self, node: usize, words: &[&str]) -> Result<Reply, ServerError> {
        let node = self.nodes.get(node);
        let node = node.ok_or_else(|| ServerError::new("the cluster has fewer nodes"))?;
        command(node, words).await
    }

    /// Whether every known node answers.
    ///
    /// # Errors
    /// One does not: why.
    pub async fn ping(&self) -> Result<(), ServerError> {
        for node in &self.nodes {
            let answer = redis::ping(node).await;
            answer.map_err(|error| ServerError::new(format!("{node}: {error}")))?;
        }
        Ok(())
    }
}
