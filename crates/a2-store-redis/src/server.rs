//! What a server says of itself, and whether it can hold a store.

use std::fmt;

use a2_core::Result;
use fred::interfaces::{ClientLike, ClusterInterface};
use fred::types::Resp3Frame as Frame;
use fred::types::config::Server;
use tokio::time::Instant;

use crate::config::RedisBuilder;
use crate::conn::{To, send};
use crate::error::Place;
use crate::link::Link;

/// The oldest version that has all commands.
const OLDEST: (u32, u32) = (6, 2);

/// What one server said of itself in INFO when the store connected: of a cluster, each master that had
/// slots. What it would not tell is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Host and port, or the socket's path.
    pub address: String,
    /// The version of Redis that it is, or is like: Valkey 8 is like Redis 7.2.
    pub version: Option<(u32, u32)>,
    /// Whether it is a node of a cluster.
    pub is_clustered: bool,
    /// Its `maxmemory-policy`: what it deletes when its memory is full.
    pub eviction: Option<String>,
    /// Whether it keeps an append-only file. Without one, a restart undoes answered writes: all of
    /// them, or those since its last snapshot.
    pub is_append_only: Option<bool>,
    /// How many replicas are connected to it.
    pub replicas: Option<u32>,
}

impl ServerInfo {
    fn read(address: String, info: &str) -> Self {
        let value = |wanted: &str| {
            let mut lines = info.lines().filter_map(|line| line.trim_end().split_once(':'));
            lines.find(|(name, _)| *name == wanted).map(|(_, value)| value)
        };
        Self {
            address,
            version: value("redis_version").and_then(version),
            is_clustered: value("cluster_enabled") == Some("1"),
            eviction: value("maxmemory_policy").map(str::to_owned),
            is_append_only: value("aof_enabled").map(|enabled| enabled == "1"),
            replicas: value("connected_slaves").and_then(|count| count.parse().ok()),
        }
    }

    /// Why it cannot hold a store. What it does not tell is no reason.
    pub(crate) fn check(&self, link: &Link, options: &RedisBuilder) -> Result<(), Unfit<'_>> {
        let evicts = self.eviction.as_deref().is_some_and(|policy| policy.starts_with("allkeys-"));
        let fault = match self.version {
            Some(version) if version < OLDEST => Fault::Old(version),
            _ if self.is_clustered && !link.client().is_clustered() => Fault::Clustered,
            _ if evicts && !options.allow_eviction => Fault::Evicts,
            _ if self.is_append_only != Some(true) && options.require_append_only => Fault::Forgets,
            _ => return Ok(()),
        };
        Err(Unfit { server: self, fault })
    }
}

/// A server that cannot hold a store.
#[derive(Debug)]
pub(crate) struct Unfit<'a> {
    server: &'a ServerInfo,
    fault: Fault,
}

#[derive(Debug)]
enum Fault {
    Old((u32, u32)),
    Clustered,
    Evicts,
    Forgets,
}

impl fmt::Display for Unfit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.server.address)?;
        let policy = self.server.eviction.as_deref().unwrap_or_default();
        match self.fault {
            Fault::Old((major, minor)) => write!(
                f,
                "its version is {major}.{minor}; it must be {}.{} or newer",
                OLDEST.0, OLDEST.1
            ),
            Fault::Clustered => {
                f.write_str("it is a node of a cluster, which a redis-cluster:// URL leads to")
            }
            Fault::Evicts => write!(
                f,
                "its maxmemory-policy {policy} deletes events when its memory is full; set \
                 noeviction, or allow it with RedisBuilder::allow_eviction"
            ),
            Fault::Forgets => f.write_str("it keeps no append-only file, or does not tell"),
        }
    }
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Asks every server that the store writes to.
pub(crate) async fn look(link: &Link, place: Place<'_>, until: Instant) -> Result<Vec<ServerInfo>> {
    let client = link.client();
    let nodes: Vec<(Server, To)> = match client.cached_cluster_state() {
        Some(state) => {
            let masters = state.unique_primary_nodes().into_iter();
            masters.map(|node| (node.clone(), To::Node(node))).collect()
        }
        None => {
            // By its own name where it is known: the configuration may name Sentinels.
            let nodes = client.active_connections().into_iter();
            let nodes = nodes.chain(client.client_config().server.hosts());
            nodes.take(1).map(|node| (node, To::Slot(0))).collect()
        }
    };
    let mut servers = Vec::new();
    for (node, to) in nodes {
        let address = match node.port {
            0 => node.host.to_string(),
            port => format!("{}:{port}", node.host),
        };
        let info = send(link, "INFO", to, Vec::new(), until).await;
        let text = match &info {
            Ok(Frame::BlobString { data, .. } | Frame::VerbatimString { data, .. }) => {
                String::from_utf8_lossy(data)
            }
            // Who may not ask is not told, and connects all the same.
            Err(error) if error.details().starts_with("NOPERM") => "".into(),
            Err(error) => return Err(place.error(error.clone())),
            Ok(_) => "".into(),
        };
        servers.push(ServerInfo::read(address, &text));
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use fred::types::Builder;

    use super::*;
    use crate::config::Source;

    fn read(info: &str) -> ServerInfo {
        ServerInfo::read("h:1".into(), info)
    }

    fn check(info: &str, change: impl Fn(RedisBuilder) -> RedisBuilder) -> Result<(), String> {
        let options = change(RedisBuilder::new(Source::Url("redis://h".into())));
        let link = Link::new(Builder::default_centralized().build().unwrap());
        read(info).check(&link, &options).map_err(|unfit| unfit.to_string())
    }

    #[test]
    fn what_a_server_says_is_read() {
        let info = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\n\
                    # Memory\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\n\
                    # Replication\r\nconnected_slaves:2\r\n# Cluster\r\ncluster_enabled:0\r\n";
        let server = read(info);
        assert_eq!(server.version, Some((7, 2)));
        assert_eq!(server.eviction.as_deref(), Some("noeviction"));
        assert_eq!((server.is_append_only, server.replicas), (Some(true), Some(2)));
        assert!(!server.is_clustered);
        assert_eq!(read(""), ServerInfo { address: "h:1".into(), ..ServerInfo::default() });
    }

    #[test]
    fn a_server_that_is_too_old_is_refused() {
        for version in ["2.8.19", "5.0.14", "6.0.20"] {
            let refused = check(&format!("redis_version:{version}\r\n"), |options| options);
            assert!(refused.unwrap_err().ends_with("it must be 6.2 or newer"), "{version}");
        }
        for version in ["6.2.0", "7.0.15", "8.0.0", "255.255.255", "unstable"] {
            let info = format!("redis_version:{version}\r\n");
            assert_eq!(check(&info, |options| options), Ok(()), "{version}");
        }
    }

    #[test]
    fn a_server_that_evicts_events_is_refused_unless_it_is_allowed() {
        for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random", "allkeys-lrm"] {
            let info = format!("maxmemory_policy:{policy}\r\n");
            assert!(check(&info, |options| options).unwrap_err().contains(policy));
            assert_eq!(check(&info, |options| options.allow_eviction(true)), Ok(()));
        }
        // Presence alone has a time to live.
        for policy in ["noeviction", "volatile-lru", "volatile-ttl"] {
            let info = format!("maxmemory_policy:{policy}\r\n");
            assert_eq!(check(&info, |options| options), Ok(()), "{policy}");
        }
    }

    #[test]
    fn an_append_only_file_can_be_required() {
        let required = |options: RedisBuilder| options.require_append_only(true);
        assert!(check("aof_enabled:0\r\n", required).is_err());
        assert!(check("", required).is_err());
        assert_eq!(check("aof_enabled:1\r\n", required), Ok(()));
        assert_eq!(check("aof_enabled:0\r\n", |options| options), Ok(()));
    }

    #[test]
    fn a_node_of_a_cluster_is_not_taken_for_a_server() {
        let refused = check("cluster_enabled:1\r\n", |options| options).unwrap_err();
        assert!(refused.contains("redis-cluster://"), "{refused}");
    }
}
