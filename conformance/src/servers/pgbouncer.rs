//! A PgBouncer in front of a Postgres from anywhere.

use std::fmt;

use super::error::{Kind, Missed, ServerError};
use super::probe::address::Address;
use super::probe::postgres::greet;
use super::{PostgresServer, Process, Servers, Setting, local};

const KIND: Kind = Kind {
    name: "PgBouncer",
    install: "PgBouncer (on Debian the package `pgbouncer`; its service need not run)",
    url: "",
    image: "",
};

/// What a PgBouncer is started with.
#[derive(Debug, Clone, Default)]
pub struct PgBouncerOptions {
    settings: Vec<Setting>,
}

impl PgBouncerOptions {
    /// Transaction mode, and its own settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what the section `[pgbouncer]` of `pgbouncer.ini` would, such as `default_pool_size`.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.settings.push((name.into(), value.to_string()));
        self
    }

    /// Starts one from a binary of this machine.
    ///
    /// # Errors
    /// There is none: the error says how to get one.
    pub async fn start(&self, postgres: &PostgresServer) -> Result<PgBouncer, ServerError> {
        let mut missed = Missed::new(&KIND, Servers::Local);
        match local::pgbouncer::start(postgres.address(), &self.settings).await {
            Ok(process) => {
                let host = "127.0.0.1".to_owned();
                let upstream = postgres.address().clone();
                let upstream_place = upstream.to_string();
                let address = Address { host, port: process.port(), password: None, ..upstream };
                Ok(PgBouncer { url: address.url("postgres"), address, upstream_place, process })
            }
            Err(miss) => {
                missed.add(miss)?;
                Err(missed.into_error())
            }
        }
    }
}

/// A PgBouncer that answers, until it is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    url: String,
    address: Address,
    upstream_place: String,
    process: Process,
}

impl PgBouncer {
    /// How to connect, as the user of the Postgres behind it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it is and where it comes from, for people: nothing secret is in it.
    #[must_use]
    pub fn describe(&self) -> String {
        let (address, process) = (&self.address, self.process.describe());
        format!("PgBouncer at {address} before {}, {process}", self.upstream_place)
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Whether it takes connections to the Postgres behind it.
    ///
    /// # Errors
    /// It does not: why.
    pub async fn ping(&self) -> Result<(), ServerError> {
        let greeting = greet(&self.address).await;
        greeting.map(drop).map_err(|error| ServerError::new(format!("{}: {error}", self.address)))
    }
}
