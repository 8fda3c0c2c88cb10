//! Why there is no server, in a sentence that says how to get one.

use std::fmt;

use super::Servers;

/// No server: what was tried, and how to get one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    message: String,
    missing: bool,
}

impl ServerError {
    /// Of a server that is there and does not work.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), missing: false }
    }

    /// Whether there is no server at all: none was named, installed or to be had as an image.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.missing
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServerError {}

/// Why one way to a server led to none.
pub(super) enum Miss {
    /// It is not there: the next way may be taken.
    NotHad(String),
    /// It is there, or was asked for by name, and does not work: no other way is taken.
    Failed(ServerError),
}

impl Miss {
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(ServerError::new(message))
    }
}

/// A kind of server, and how to get one on each way.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// What to install, and that a running service is not needed.
    pub(super) install: &'static str,
    /// Which variable to set.
    pub(super) url: &'static str,
    /// Which variable names an image.
    pub(super) image: &'static str,
}

impl Kind {
    fn how_to_get(&self, servers: Servers) -> String {
        let Self { install, url, image, .. } = self;
        match servers {
            Servers::Auto => format!("Install {install}, or set {url}."),
            Servers::Local => format!("Install {install}."),
            Servers::Url => format!("Set {url}."),
            Servers::Docker => format!("Start a Docker engine; {image} names another image."),
        }
    }
}

/// The ways that led to no server.
pub(super) struct Missed {
    kind: &'static Kind,
    servers: Servers,
    reasons: Vec<String>,
}

impl Missed {
    pub(super) fn new(kind: &'static Kind, servers: Servers) -> Self {
        Self { kind, servers, reasons: Vec::new() }
    }

    /// Notes the miss; an error when no other way may be taken.
    pub(super) fn add(&mut self, miss: Miss) -> Result<(), ServerError> {
        match miss {
            Miss::NotHad(reason) => {
                self.reasons.push(reason);
                Ok(())
            }
            Miss::Failed(error) => Err(ServerError::new(format!("{}: {error}", self.kind.name))),
        }
    }

    /// All of them, and how to get a server.
    pub(super) fn into_error(self) -> ServerError {
        let reasons = self.reasons.join("; ");
        let how = self.kind.how_to_get(self.servers);
        let message = format!("no {} server: {reasons}. {how}", self.kind.name);
        ServerError { message, missing: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { name: "Redis", install: "it", url: "U to x", image: "I" };

    #[test]
    fn every_way_is_told_and_how_to_get_one() {
        let mut missed = Missed::new(&KIND, Servers::Auto);
        missed.add(Miss::NotHad("A is not set".to_owned())).unwrap();
        missed.add(Miss::NotHad("b is not on PATH".to_owned())).unwrap();
        let expected =
            "no Redis server: A is not set; b is not on PATH. Install it, or set U to x.";
        let error = missed.into_error();
        assert_eq!(error.to_string(), expected);
        assert!(error.is_missing());
    }

    #[test]
    fn one_that_does_not_work_ends_the_search() {
        let mut missed = Missed::new(&KIND, Servers::Auto);
        let error = missed.add(Miss::failed("A: refused")).unwrap_err();
        assert_eq!(error.to_string(), "Redis: A: refused");
        assert!(!error.is_missing());
    }

    #[test]
    fn one_way_alone_is_the_one_to_take() {
        assert_eq!(KIND.how_to_get(Servers::Local), "Install it.");
        assert_eq!(KIND.how_to_get(Servers::Url), "Set U to x.");
        let docker = "Start a Docker engine; I names another image.";
        assert_eq!(KIND.how_to_get(Servers::Docker), docker);
    }
}
