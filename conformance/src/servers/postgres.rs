//! A Postgres from anywhere.

use std::fmt;

use super::error::{Kind, Miss, Missed, ServerError};
use super::probe::address::Address;
use super::probe::postgres::{Greeting, SCHEMES, greet};
use super::probe::until_ready;
use super::source::{self, Source};
use super::{Process, Servers, Setting, docker, local};

const URL: &str = "A2_POSTGRES_URL";
const KIND: Kind = Kind {
    name: "Postgres",
    install: "Postgres 14 or newer (on Debian the package `postgresql`; its service need not run)",
    url: "A2_POSTGRES_URL to postgres://USER@HOST:PORT/DATABASE of a server that tests may write to",
    image: "A2_POSTGRES_IMAGE",
};

/// What a Postgres is started with.
#[derive(Debug, Clone, Default)]
pub struct PostgresOptions {
    settings: Vec<Setting>,
    files: Vec<Setting>,
}

impl PostgresOptions {
    /// Its own settings alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what `postgresql.conf` would, such as `max_connections`. A server behind a URL cannot be
    /// given settings and is passed over.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.settings.push((name.into(), value.to_string()));
        self
    }

    /// A file beside the server's data that only the server can read, such as a key: settings name it
    /// `../NAME`. Only a server that is started from a binary of this machine can be given one.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.push((name.into(), text.into()));
        self
    }

    /// Starts one, or finds the one that the environment names.
    ///
    /// # Errors
    /// There is none: the error says how to get one.
    pub async fn start(&self, servers: Servers) -> Result<PostgresServer, ServerError> {
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

    async fn at_url(&self) -> Result<PostgresServer, Miss> {
        let url = source::url(URL, !(self.settings.is_empty() && self.files.is_empty()))?;
        let failed = |error: &dyn fmt::Display| Miss::failed(format!("{URL}: {error}"));
        let address = Address::parse(&url, &SCHEMES).map_err(|error| failed(&error))?;
        let greeting = greet(&address).await;
        let greeting = greeting.map_err(|error| failed(&format!("{address}: {error}")))?;
        Ok(PostgresServer::new(url, address, greeting, Source::Url(URL)))
    }

    async fn in_docker(&self) -> Result<PostgresServer, Miss> {
        if !self.files.is_empty() {
            return Err(Miss::NotHad("a container is given no files".to_owned()));
        }
        let container = docker::postgres::start(&self.settings).await?;
        let address = address(container.port());
        match until_ready(|| greet(&address)).await {
            Ok(greeting) => {
                Ok(PostgresServer::at(address, greeting, Source::Docker(Box::new(container))))
            }
            Err(error) => Err(container.silent(&error).await),
        }
    }

    async fn of_this_machine(&self) -> Result<PostgresServer, Miss> {
        let process = local::postgres::start(&self.settings, &self.files).await?;
        let address = address(process.port());
        let greeting = greet(&address).await;
        let greeting = greeting.map_err(|error| Miss::failed(format!("{address}: {error}")))?;
        Ok(PostgresServer::at(address, greeting, Source::Local(vec![process])))
    }
}

/// A Postgres that answers, until it is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    url: String,
    address: Address,
    version: Option<String>,
    source: Source,
}

impl PostgresServer {
    fn at(address: Address, greeting: Greeting, source: Source) -> Self {
        Self::new(address.url("postgres"), address, greeting, source)
    }

    fn new(url: String, address: Address, greeting: Greeting, source: Source) -> Self {
        let version = match greeting {
            Greeting::Ready { version } => version,
            Greeting::Login => None,
        };
        Self { url, address, version, source }
    }

    /// How to connect, as a user who may create schemas and databases if the server is ours.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it is and where it comes from, for people: nothing secret is in it.
    #[must_use]
    pub fn describe(&self) -> String {
        let version = self.version.as_deref().map(|version| format!(" {version}"));
        let version = version.unwrap_or_default();
        format!("Postgres{version} at {}, {}", self.address, self.source.describe())
    }

    /// Its process, if it was started from a binary of this machine.
    #[must_use]
    pub fn process(&self) -> Option<&Process> {
        self.source.processes().first()
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Whether it takes connections.
    ///
    /// # Errors
    /// It does not: why.
    pub async fn ping(&self) -> Result<(), ServerError> {
        let greeting = greet(&self.address).await;
        greeting.map(drop).map_err(|error| ServerError::new(format!("{}: {error}", self.address)))
    }
}

/// Of a server of ours.
pub(super) fn address(port: u16) -> Address {
    Address {
        host: "127.0.0.1".to_owned(),
        port,
        user: Some("postgres".to_owned()),
        password: None,
        database: Some("postgres".to_owned()),
        tls: false,
    }
}
