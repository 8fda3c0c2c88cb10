//! Which ways to a server are taken, in which order, and what a server is held by.

use super::docker::Container;
use super::error::{Miss, ServerError};
use super::{Process, Servers};

impl Servers {
    pub(super) fn asks_url(self) -> bool {
        matches!(self, Self::Auto | Self::Url)
    }

    pub(super) fn asks_docker(self) -> bool {
        matches!(self, Self::Auto | Self::Docker)
    }

    pub(super) fn asks_local(self) -> bool {
        matches!(self, Self::Auto | Self::Local)
    }
}

/// What keeps a server running.
#[derive(Debug)]
pub(super) enum Source {
    /// Somebody else; the variable named it.
    Url(&'static str),
    /// A container of ours.
    Docker(Box<Container>),
    /// Processes of ours.
    Local(Vec<Process>),
}

impl Source {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Url(variable) => format!("from {variable}"),
            Self::Docker(container) => container.describe(),
            Self::Local(processes) => processes.first().map(Process::describe).unwrap_or_default(),
        }
    }

    pub(super) fn processes(&self) -> &[Process] {
        match self {
            Self::Local(processes) => processes,
            _ => &[],
        }
    }
}

/// What a variable of the environment holds.
pub(super) fn variable(name: &str) -> Result<Option<String>, ServerError> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(ServerError::new(format!("{name}: {error}"))),
    }
}

/// The URL of a server that somebody else runs. It has its own settings.
pub(super) fn url(name: &str, settings: bool) -> Result<String, Miss> {
    match variable(name).map_err(Miss::Failed)? {
        Some(_) if settings => {
            Err(Miss::NotHad(format!("the server of {name} cannot be given settings")))
        }
        Some(url) => Ok(url),
        None => Err(Miss::NotHad(format!("{name} is not set"))),
    }
}
