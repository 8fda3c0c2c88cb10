//! A build without Docker: there are no containers, and the error says how to build with them.

use super::error::Miss;

/// A container: there is none.
#[derive(Debug)]
pub(super) enum Container {}

impl Container {
    pub(super) fn describe(&self) -> String {
        match *self {}
    }

    pub(super) fn port(&self) -> u16 {
        match *self {}
    }

    pub(super) fn ports(&self) -> &[u16] {
        match *self {}
    }

    pub(super) async fn silent(&self, _: &std::io::Error) -> Miss {
        match *self {}
    }
}

fn none() -> Miss {
    Miss::NotHad(
        "Docker: this program was built without it (feature `docker` of a2-conformance)".to_owned(),
    )
}

/// No Postgres.
pub(super) mod postgres {
    use super::{Container, none};
    use crate::servers::Setting;
    use crate::servers::error::Miss;

    pub(in super::super) async fn start(_: &[Setting]) -> Result<Container, Miss> {
        Err(none())
    }
}

/// No Redis.
pub(super) mod redis {
    use super::{Container, none};
    use crate::servers::Setting;
    use crate::servers::error::Miss;

    pub(in super::super) async fn start() -> Result<Container, Miss> {
        Err(none())
    }

    pub(in super::super) async fn start_nodes(_: &[Setting]) -> Result<Container, Miss> {
        Err(none())
    }
}
