//! Where no server is started from a binary: on systems without signals and a POSIX shell. There a
//! server comes from Docker or from a URL.

use std::path::Path;

use super::ServerError;

/// A server that this process has started from a binary of this machine: there is none.
#[derive(Debug)]
pub enum Process {}

impl Process {
    /// Where it listens, on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        match *self {}
    }

    /// Its process id, unless it was killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match *self {}
    }

    /// Its temporary folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        match *self {}
    }

    pub(super) fn describe(&self) -> String {
        match *self {}
    }

    /// Kills the server.
    pub fn kill(&self) {
        match *self {}
    }

    /// Stops the server.
    pub fn pause(&self) {
        match *self {}
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        match *self {}
    }

    /// Starts the server again.
    ///
    /// # Errors
    /// It does not start any more.
    pub async fn restart(&self) -> Result<(), ServerError> {
        match *self {}
    }
}

const NONE: &str = "binaries of this machine are started on Unix only";

/// No Postgres.
pub(super) mod postgres {
    use crate::servers::error::Miss;
    use crate::servers::{Process, Setting};

    pub(in super::super) async fn start(_: &[Setting], _: &[Setting]) -> Result<Process, Miss> {
        Err(Miss::NotHad(super::NONE.to_owned()))
    }
}

/// No Redis.
pub(super) mod redis {
    use crate::servers::error::Miss;
    use crate::servers::port::Ports;
    use crate::servers::{Process, Setting};

    pub(in super::super) async fn start(_: &[Setting], _: Ports) -> Result<Process, Miss> {
        Err(Miss::NotHad(super::NONE.to_owned()))
    }
}

/// No PgBouncer.
pub(super) mod pgbouncer {
    use crate::servers::error::Miss;
    use crate::servers::probe::address::Address;
    use crate::servers::{Process, Setting};

    pub(in super::super) async fn start(_: &Address, _: &[Setting]) -> Result<Process, Miss> {
        Err(Miss::NotHad(super::NONE.to_owned()))
    }
}
