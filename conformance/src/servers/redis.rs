//! A Redis or Valkey from anywhere.

use std::fmt;
use std::io;

use super::error::{Kind, Miss, Missed, ServerError};
use super::port::Ports;
use super::probe::address::Address;
use super::probe::redis::{self, SCHEMES};
use super::probe::until_ready;
use super::source::{self, Source};
use super::{Process, Reply, Servers, Setting, docker, local};

const URL: &str = "A2_REDIS_URL";
const KIND: Kind = Kind {
    name: "Redis",
    install: INSTALL,
    url: "A2_REDIS_URL to redis://HOST:PORT of a server that tests may write to",
    image: "A2_REDIS_IMAGE",
};

/// The same for a cluster.
pub(super) const INSTALL: &str = "Redis 6.2 or newer or Valkey (on Debian the package \
                                  `redis-server`; its service need not run)";

/// Which writes are in the append-only file before they are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AppendOnly {
    /// There is no file: nothing outlives the server.
    #[default]
    Off,
    /// Those of the last second may be missing.
    EverySecond,
    /// All.
    Always,
}

/// What a Redis is started with.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    append_only: AppendOnly,
    settings: Vec<Setting>,
}

impl RedisOptions {
    /// Nothing on disk, and its own settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether writes outlive the server. A server behind a URL cannot be told and is passed over.
    #[must_use]
    pub fn append_only(mut self, append_only: AppendOnly) -> Self {
        self.append_only = append_only;
        self
    }

    /// Sets what `redis.conf` would, such as `maxmemory`. A server behind a URL cannot be given
    /// settings and is passed over.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.settings.push((name.into(), value.to_string()));
        self
    }

    /// Whether any server does, whatever its settings are.
    pub(super) fn are_usual(&self) -> bool {
        self.append_only == AppendOnly::Off && self.settings.is_empty()
    }

    /// All that is set.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let (appends, fsync) = match self.append_only {
            AppendOnly::Off => ("no", "everysec"),
            AppendOnly::EverySecond => ("yes", "everysec"),
            AppendOnly::Always => ("yes", "always"),
        };
        let ours = [("save", ""), ("appendfsync", fsync), ("appendonly", appends)];
        let ours = ours.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ours.into_iter().chain(self.settings.iter().cloned()).collect()
    }

    /// Starts one, or finds the one that the environment names.
    ///
    /// # Errors
    /// There is none: the error says how to get one.
    pub async fn start(&self, servers: Servers) -> Result<RedisServer, ServerError> {
        let mut missed = Missed::new(&KIND, servers);
        if servers.asks_url() {
            match self.at_url().await {
                Ok(server) => return Ok(server),
                Err(miss) => missed.add(miss)?,
            }
        }
        if servers.asks_docker() {
            match self.in_docker().await {
                Ok(server) => return Ok(server),
                Err(miss) => missed.add(miss)?,
            }
        }
        if servers.asks_local() {
            match self.of_this_machine().await {
                Ok(server) => return Ok(server),
                Err(miss) => missed.add(miss)?,
            }
        }
        Err(missed.into_error())
    }

    async fn at_url(&self) -> Result<RedisServer, Miss> {
        let url = source::url(URL, !self.are_usual())?;
        let failed = |error: &dyn fmt::Display| Miss::failed(format!("{URL}: {error}"));
        let address = Address::parse(&url, &SCHEMES).map_err(|error| failed(&error))?;
        let version = known(&address, "standalone").await;
        let version = version.map_err(|error| failed(&format!("{address}: {error}")))?;
        Ok(RedisServer { url, address, version, source: Source::Url(URL) })
    }

    async fn in_docker(&self) -> Result<RedisServer, Miss> {
        let container = docker::redis::start().await?;
        let address = address(container.port());
        // Set once it runs: images differ in how their program is called.
        let ready = || async {
            redis::ping(&address).await?;
            for (name, value) in self.settings() {
                let reply = redis::command(&address, &["CONFIG", "SET", &name, &value]).await?;
                if let Reply::Error(refusal) = reply {
                    return Ok(Err(Miss::failed(format!("{name} {value}: {refusal}"))));
                }
            }
            Ok(Ok(redis::version(&address).await?))
        };
        match until_ready(ready).await {
            Ok(version) => {
                Ok(RedisServer::at(address, version?, Source::Docker(Box::new(container))))
            }
            Err(error) => Err(container.silent(&error).await),
        }
    }

    async fn of_this_machine(&self) -> Result<RedisServer, Miss> {
        let process = local::redis::start(&self.settings(), Ports::One).await?;
        let address = address(process.port());
        let version = redis::version(&address).await;
        let version = version.map_err(|error| Miss::failed(format!("{address}: {error}")))?;
        Ok(RedisServer::at(address, version, Source::Local(vec![process])))
    }
}

/// The version of a server that somebody else runs, when it is what is asked for; none behind TLS,
/// where it is not asked.
pub(super) async fn known(address: &Address, mode: &str) -> io::Result<Option<String>> {
    if address.tls {
        return Ok(None);
    }
    redis::ping(address).await?;
    let found = redis::info(address, "server").await?("redis_mode").unwrap_or_default();
    if found != mode {
        let text = format!("its redis_mode is `{found}`, not `{mode}`");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    redis::version(address).await.map(Some)
}

/// A Redis or Valkey that answers, until it is dropped.
#[derive(Debug)]
pub struct RedisServer {
    url: String,
    address: Address,
    version: Option<String>,
    source: Source,
}

impl RedisServer {
    fn at(address: Address, version: String, source: Source) -> Self {
        Self { url: address.url("redis"), address, version: Some(version), source }
    }

    /// How to connect.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it is and where it comes from, for people: nothing secret is in it.
    #[must_use]
    pub fn describe(&self) -> String {
        let version = self.version.as_deref().unwrap_or("Redis");
        format!("{version} at {}, {}", self.address, self.source.describe())
    }

    /// Its process, if it was started from a binary of this machine.
    #[must_use]
    pub fn process(&self) -> Option<&Process> {
        self.source.processes().first()
    }

    /// Sends one command on a connection of its own. A refusal is an answer too.
    ///
    /// # Errors
    /// No answer.
    pub async fn command(&self, words: &[&str]) -> Result<Reply, ServerError> {
        command(&self.address, words).await
    }

    /// Whether it answers.
    ///
    /// # Errors
    /// It does not: why.
    pub async fn ping(&self) -> Result<(), ServerError> {
        let answer = redis::ping(&self.address).await;
        answer.map_err(|error| ServerError::new(format!("{}: {error}", self.address)))
    }
}

pub(super) async fn command(address: &Address, words: &[&str]) -> Result<Reply, ServerError> {
    let reply = redis::command(address, words).await;
    reply.map_err(|error| ServerError::new(format!("{address}: {error}")))
}

/// Of a server of ours.
pub(super) fn address(port: u16) -> Address {
    let host = "127.0.0.1".to_owned();
    Address { host, port, user: None, password: None, database: None, tls: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_unless_asked_for() {
        let usual = RedisOptions::new();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let off = [pair("save", ""), pair("appendfsync", "everysec"), pair("appendonly", "no")];
        assert_eq!(usual.settings(), off);
        assert!(usual.are_usual());

        let kept = RedisOptions::new().append_only(AppendOnly::Always).setting("maxmemory", 9);
        let on = [
            pair("save", ""),
            pair("appendfsync", "always"),
            pair("appendonly", "yes"),
            pair("maxmemory", "9"),
        ];
        assert_eq!(kept.settings(), on);
        assert!(!kept.are_usual());
    }
}
