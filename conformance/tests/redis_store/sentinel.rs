//! A master that Sentinel replaces.

use std::process::{Child, Command, Stdio};

use a2_conformance::servers::{RedisOptions, fresh_name};
use a2_store_redis::*;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::util::*;

/// A Sentinel of this machine, until it is dropped.
struct Sentinel {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Sentinel {
    async fn of(master: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = folder.path().join("sentinel.conf");
        let lines = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n",
            folder.path().display()
        );
        std::fs::write(&config, lines).unwrap();
        let program = std::env::var("A2_REDIS_BIN").unwrap_or_else(|_| "redis-server".to_owned());
        let mut process = Command::new(program);
        process.arg(&config).arg("--sentinel").stdin(Stdio::null()).stdout(Stdio::null());
        Self { process: process.spawn().unwrap(), port, _folder: folder }
    }

    /// What it knows of the master's replicas.
    async fn replicas(&self) -> String {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)).await else {
            return String::new();
        };
        let mut said = vec![0; 65_536];
        let asked = stream.write_all(b"SENTINEL REPLICAS main\r\n").await;
        // Should only a part have come, it is asked again.
        let read = if asked.is_ok() { stream.read(&mut said).await.unwrap_or(0) } else { 0 };
        String::from_utf8_lossy(&said[..read]).into_owned()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_that_sentinel_names_is_used() {
    let options = RedisOptions::new().setting("repl-diskless-sync-delay", "0");
    let (master, replica) = (own(options.clone()).await, own(options).await);
    let port = |server: &a2_conformance::servers::RedisServer| server.process().unwrap().port();
    command(&replica, &["REPLICAOF", "127.0.0.1", &port(&master).to_string()]).await;
    let sentinel = Sentinel::of(port(&master)).await;
    let (known, up) = (port(&replica).to_string(), "master-link-status\r\n$2\r\nok");
    until("Sentinel knows the replica", || async {
        let said = sentinel.replicas().await;
        said.contains(&known) && said.contains(up)
    })
    .await;
    let url = format!("redis-sentinel://127.0.0.1:{}?sentinelServiceName=main", sentinel.port);
    let options = RedisStore::builder(url).prefix(fresh_name()).connections(2);
    let store = options.wait(1, std::time::Duration::from_secs(20)).connect().await.unwrap();
    let at = session("s");
    store.append(&at, append("before")).await.unwrap();
    drop(store);

    let url = format!("valkey-sentinel://127.0.0.1:{}?sentinelServiceName=main", sentinel.port);
    let store = RedisStore::builder(url).prefix(fresh_name()).connect().await.unwrap();
    insist(&store, &at, append("here")).await;
    until("the replica has it", || async {
        command(&replica, &["INFO", "keyspace"]).await.to_string().contains("keys=")
            && !keys(&replica, "*:m*s").await.is_empty()
    })
    .await;
    master.process().unwrap().kill();
    insist(&store, &at, append("after")).await;
    assert!(ids(&store, &at).await.contains(&"after".to_owned()));
    assert!(command(&replica, &["INFO", "replication"]).await.to_string().contains("role:master"));
}
