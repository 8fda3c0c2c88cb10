//! What a failure of Redis means to a caller: a table by the first word of what the server says.

use std::fmt::Display;

use a2_core::{Error, ErrorKind, Index, SessionId};
use fred::error::{Error as DriverError, ErrorKind as DriverKind};

/// What an error of the server means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The server did nothing, and can serve later.
    Unavailable,
    /// The driver gives it to all that were on their way, of which some may have been done.
    Unclear,
    /// The server is not as it must be: somebody has to change it.
    NotConfigured,
    /// What is stored breaks what the keys promise.
    Corrupt,
}

/// The meanings. A script is refused as a whole or runs as a whole: its first write finds out what the
/// later ones would.
const WORDS: &[(&str, Meaning)] = &[
    ("ASK", Meaning::Unavailable),
    ("BUSY", Meaning::Unavailable),
    ("CLUSTERDOWN", Meaning::Unclear),
    ("CROSSSLOT", Meaning::NotConfigured),
    ("LOADING", Meaning::Unavailable),
    ("MASTERDOWN", Meaning::Unavailable),
    ("MISCONF", Meaning::Unavailable),
    ("MOVED", Meaning::Unavailable),
    ("NOAUTH", Meaning::NotConfigured),
    ("NOPERM", Meaning::NotConfigured),
    ("NOREPLICAS", Meaning::Unavailable),
    ("NOSCRIPT", Meaning::Unavailable),
    ("OOM", Meaning::Unavailable),
    ("READONLY", Meaning::Unavailable),
    ("TRYAGAIN", Meaning::Unavailable),
    ("UNBLOCKED", Meaning::Unavailable),
    ("WRONGPASS", Meaning::NotConfigured),
    ("WRONGTYPE", Meaning::Corrupt),
];

/// What the driver says of a command that another node is to be asked for: it follows no redirection (one
/// that it follows and one that was cut off would end with the same words).
const REDIRECTED: &str = "Too many redirections";
/// And of one for which there was no connection.
const NOT_ROUTED: &str = "Failed to route command";

/// What was being done when it failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The operation.
    pub(crate) doing: &'static str,
    /// The session it was about, when it was about one.
    pub(crate) session: Option<&'a SessionId>,
    /// Whether it may have written: only then can its outcome be unknown.
    pub(crate) writes: bool,
}

impl<'a> Place<'a> {
    /// An operation that writes to a session.
    pub(crate) fn write(doing: &'static str, session: &'a SessionId) -> Self {
        Self { doing, session: Some(session), writes: true }
    }

    /// An operation that reads a session.
    pub(crate) fn read(doing: &'static str, session: &'a SessionId) -> Self {
        Self { doing, session: Some(session), writes: false }
    }

    /// An operation on no session in particular that writes nothing.
    pub(crate) fn look(doing: &'static str) -> Self {
        Self { doing, session: None, writes: false }
    }

    /// An operation on no session in particular that writes.
    pub(crate) fn change(doing: &'static str) -> Self {
        Self { doing, session: None, writes: true }
    }

    /// The store's error for one of the driver's.
    pub(crate) fn error(self, error: DriverError) -> Error {
        let text = format!("{}: {error}", self.doing);
        let kind = match (meaning(&error), error.kind()) {
            (Some(Meaning::Unavailable), _) => Self::unavailable(text, false),
            (Some(Meaning::Unclear), _) => Self::unavailable(text, self.writes),
            (Some(Meaning::NotConfigured), _) => {
                ErrorKind::StoreNotConfigured { reason: text.into() }
            }
            (Some(Meaning::Corrupt), _) => self.corrupt(None, text),
            (None, _) if is_setup(&error) => ErrorKind::StoreNotConfigured { reason: text.into() },
            // A script that failed in the middle of what it reads.
            (None, _) if error.details().contains("user_script") => self.corrupt(None, text),
            (None, DriverKind::Auth | DriverKind::Config | DriverKind::Url) => {
                ErrorKind::StoreNotConfigured { reason: text.into() }
            }
            #[cfg(feature = "tls")]
            (None, DriverKind::Tls) => ErrorKind::StoreNotConfigured { reason: text.into() },
            (None, DriverKind::InvalidArgument | DriverKind::InvalidCommand) => {
                ErrorKind::InvalidInput { field: "request".into(), rule: text.into() }
            }
            (None, DriverKind::Backpressure) => Self::unavailable(text, false),
            (None, _) => Self::unavailable(text, self.writes && !is_not_sent(&error)),
        };
        Error::from(kind).with_source(error)
    }

    fn unavailable(reason: String, outcome_unknown: bool) -> ErrorKind {
        ErrorKind::StoreUnavailable { reason: reason.into(), outcome_unknown }
    }

    /// It was done, and fewer replicas have it than must.
    pub(crate) fn not_copied(self, have: i64, wanted: u32) -> Error {
        let text = format!("{}: {have} of {wanted} replicas have it in time", self.doing);
        Self::unavailable(text, self.writes).into()
    }

    /// The server cannot be used as it is.
    pub(crate) fn refused(self, reason: impl Display) -> Error {
        Error::not_configured(format!("{}: {reason}", self.doing))
    }

    /// It took longer than it may.
    pub(crate) fn timed_out(self, sent: bool) -> Error {
        let text = format!("{}: no answer within the operation's timeout", self.doing);
        Self::unavailable(text, sent && self.writes).into()
    }

    fn corrupt(self, index: Option<Index>, reason: String) -> ErrorKind {
        ErrorKind::Corrupt { session: self.session.cloned(), index, reason: reason.into() }
    }

    /// An answer that does not read as what it must be.
    pub(crate) fn unreadable(self, reason: impl Display) -> Error {
        self.corrupt(None, format!("{}: {reason}", self.doing)).into()
    }

    /// An event is missing from the log.
    pub(crate) fn missing(self, index: Index) -> Error {
        self.corrupt(Some(index), "the event is missing from the log".to_owned()).into()
    }
}

/// The first word of what the server said. Before 7.0 it says first in which script, and where.
fn word(error: &DriverError) -> &str {
    let details = error.details();
    let said = match details.strip_prefix("ERR Error running script") {
        Some(within) => within.rsplit_once(": -").map_or(details, |(_, said)| said),
        None => details,
    };
    said.split_whitespace().next().unwrap_or_default()
}

fn meaning(error: &DriverError) -> Option<Meaning> {
    let word = word(error);
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
}

/// What has no word of its own: a command within a script that the user may not give, and a server that
/// is not who it should be.
fn is_setup(error: &DriverError) -> bool {
    let details = error.details();
    let texts = ["The user executing the script", "ACL failure in script", "InvalidCertificate"];
    texts.iter().any(|text| details.contains(text))
}

/// The server does not know the script.
pub(crate) fn is_unknown_script(error: &DriverError) -> bool {
    word(error) == "NOSCRIPT"
}

/// Nothing was done, and the same can be asked again at once: the slot is on its way to another server
/// or has just gone there, or a connection was lost before it was used.
pub(crate) fn is_not_begun(error: &DriverError) -> bool {
    matches!(word(error), "TRYAGAIN" | "ASK" | "MOVED") || is_not_sent(error)
}

fn is_not_sent(error: &DriverError) -> bool {
    [REDIRECTED, NOT_ROUTED].iter().any(|words| error.details().starts_with(words))
}

/// The server is a replica: somebody else is the master now.
pub(crate) fn is_of_replica(error: &DriverError) -> bool {
    matches!(word(error), "READONLY" | "MASTERDOWN")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: DriverKind, text: &'static str) -> Error {
        let session = SessionId::new("s").unwrap();
        Place::write("append", &session).error(DriverError::new(kind, text))
    }

    #[test]
    fn what_the_server_refused_was_not_done() {
        for text in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "LOADING Redis is loading the dataset in memory",
            "ERR Error running script (call to f_35): @user_script:810: @user_script: 810: -OOM command \
             not allowed when used memory > 'maxmemory'.",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "READONLY You can't write against a read only replica.",
            "Too many redirections.",
            "Failed to route command.",
        ] {
            let error = said(DriverKind::Unknown, text);
            assert!(error.is_retryable() && !error.outcome_unknown(), "{text}");
        }
    }

    #[test]
    fn what_nobody_answered_may_have_been_done() {
        for kind in [DriverKind::IO, DriverKind::Timeout, DriverKind::Canceled] {
            assert!(said(kind, "gone").outcome_unknown());
        }
        // Of these the driver says so whether they were cut off or never left.
        for text in ["Too many failed write attempts.", "CLUSTERDOWN The cluster is down"] {
            assert!(said(DriverKind::Unknown, text).outcome_unknown(), "{text}");
        }
        let read = Place::look("read").error(DriverError::new(DriverKind::IO, "gone"));
        assert!(read.is_retryable() && !read.outcome_unknown());
    }

    #[test]
    fn what_somebody_must_change_is_not_retried() {
        for (kind, text) in [
            (DriverKind::Unknown, "NOPERM User app has no permissions"),
            (
                DriverKind::Unknown,
                "ERR The user executing the script can't run this command or subcommand script: 0f, \
                 on @user_script:83.",
            ),
            (
                DriverKind::Unknown,
                "ERR ACL failure in script: User u has no permissions to run the",
            ),
            (
                DriverKind::Unknown,
                "ERR Error running script (call to f_35): @user_script:810: @user_script: 810: -NOPERM \
                 this user has no permissions",
            ),
            (DriverKind::IO, "Custom { kind: InvalidData, error: InvalidCertificate(Expired) }"),
        ] {
            assert_eq!(said(kind, text).code(), "STORE_NOT_CONFIGURED", "{text}");
        }
        let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(said(DriverKind::InvalidCommand, wrong).code(), "CORRUPT");
    }
}
