//! What a failure of Postgres means to a caller: a table by SQLSTATE.
//!
//! The meaning is never read out of a message. The text names what was being done; the driver's error
//! is kept as the source.

use std::error::Error as StdError;

use a2_core::{Error, ErrorKind, Index, SessionId};
use deadpool_postgres::PoolError;
use serde::Deserialize;
use tokio_postgres::error::SqlState;

/// What to run when a table, a column or a function is missing.
const APPLY: &str = "apply sql/postgres/schema.sql, or call PostgresStore::migrate()";

/// The SQLSTATE with which the store's functions say that what is stored is broken.
const BROKEN: &str = "A2001";

/// What is beside the message then.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Detail {
    session: Option<SessionId>,
    index: Option<Index>,
}

/// What a SQLSTATE means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The server cannot serve now; the transaction was rolled back.
    Unavailable,
    /// The same, and the transaction may have been committed all the same.
    Unknown,
    /// A table, a column or a function is missing or another one.
    Schema,
    /// The role, the database or a setting is not as it must be.
    NotConfigured,
    /// What is stored breaks what the tables promise.
    Corrupt,
}

/// The meanings; a whole code stands before its class, which is two characters. What is not here can
/// come back whenever the same is tried: a trigger of the user's that refuses a row, say.
const CODES: &[(&str, Meaning)] = &[
    // Poolers answer nearly everything with 08P01.
    ("08", Meaning::Unknown),
    ("0A", Meaning::Schema),
    ("22021", Meaning::NotConfigured),
    ("22", Meaning::Corrupt),
    ("23", Meaning::Corrupt),
    // A standby, or a server that has just become one.
    ("25006", Meaning::Unavailable),
    ("25P03", Meaning::Unavailable),
    ("25P04", Meaning::Unavailable),
    ("3F", Meaning::Schema),
    ("40003", Meaning::Unknown),
    ("40", Meaning::Unavailable),
    ("42501", Meaning::NotConfigured),
    ("42P05", Meaning::NotConfigured),
    ("42", Meaning::Schema),
    ("53", Meaning::Unavailable),
    ("55006", Meaning::Unavailable),
    ("55P03", Meaning::Unavailable),
    ("57P01", Meaning::Unknown),
    ("57P02", Meaning::Unknown),
    ("57P04", Meaning::NotConfigured),
    ("57P05", Meaning::Unknown),
    ("57", Meaning::Unavailable),
    ("58", Meaning::Unknown),
    ("XX001", Meaning::Corrupt),
    ("XX002", Meaning::Corrupt),
    ("XX", Meaning::Unavailable),
];

fn meaning(code: &str) -> Meaning {
    let found = CODES.iter().find(|(known, _)| *known == code || *known == class(code));
    found.map_or(Meaning::NotConfigured, |(_, meaning)| *meaning)
}

fn class(code: &str) -> &str {
    code.get(..2).unwrap_or(code)
}

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

    /// The store's error for one of the driver's, of a statement that was sent.
    pub(crate) fn error(self, error: tokio_postgres::Error) -> Error {
        if let Some(kind) = self.broken(&error) {
            return Error::from(kind).with_source(error);
        }
        let text = format!("{}: {}", self.doing, chain(&error));
        let kind = match error.code() {
            Some(code) => self.by_code(code, text),
            None if is_encoding(&error) => {
                let rule = format!("must fit what the server takes: {text}");
                return Error::invalid("request", rule).with_source(error);
            }
            None if error.is_closed() || is_io(&error) => {
                ErrorKind::StoreUnavailable { reason: text.into(), outcome_unknown: self.writes }
            }
            // A value that does not read as what it must be.
            None => self.corrupt(text),
        };
        Error::from(kind).with_source(error)
    }

    /// The store's functions found that what is stored is broken: where, they say beside the message.
    fn broken(self, error: &tokio_postgres::Error) -> Option<ErrorKind> {
        let db = error.as_db_error().filter(|db| db.code().code() == BROKEN)?;
        let detail: Detail = serde_json::from_str(db.detail().unwrap_or("{}")).unwrap_or_default();
        Some(ErrorKind::Corrupt {
            session: detail.session.or_else(|| self.session.cloned()),
            index: detail.index,
            reason: db.message().to_owned().into(),
        })
    }

    fn by_code(self, code: &SqlState, text: String) -> ErrorKind {
        match meaning(code.code()) {
            Meaning::Unavailable => {
                ErrorKind::StoreUnavailable { reason: text.into(), outcome_unknown: false }
            }
            Meaning::Unknown => {
                ErrorKind::StoreUnavailable { reason: text.into(), outcome_unknown: self.writes }
            }
            Meaning::Schema => {
                ErrorKind::StoreNotConfigured { reason: format!("{text}; {APPLY}").into() }
            }
            Meaning::NotConfigured => ErrorKind::StoreNotConfigured { reason: text.into() },
            Meaning::Corrupt => self.corrupt(text),
        }
    }

    fn corrupt(self, text: String) -> ErrorKind {
        ErrorKind::Corrupt { session: self.session.cloned(), index: None, reason: text.into() }
    }

    /// The store's error when no connection could be had: nothing was sent, but that planning is to be
    /// as `plans` says.
    pub(crate) fn no_connection(self, error: PoolError, plans: bool) -> Error {
        match error {
            // A pooler that does not take what it is told, most likely: it answers much with this.
            PoolError::Backend(error)
                if plans && error.code() == Some(&SqlState::PROTOCOL_VIOLATION) =>
            {
                let hint = "through a pooler, connect with Statements::Unnamed";
                let reason = format!("{}: no connection: {}; {hint}", self.doing, chain(&error));
                Error::not_configured(reason).with_source(error)
            }
            PoolError::Backend(error) => self.not_connected(error),
            PoolError::Closed => Error::closed(),
            other => Error::unavailable(format!("{}: no connection: {other}", self.doing))
                .with_source(other),
        }
    }

    /// The store's error when a connection could not be made.
    pub(crate) fn not_connected(self, error: tokio_postgres::Error) -> Error {
        let text = format!("{}: no connection: {}", self.doing, chain(&error));
        let kind = match error.code() {
            Some(code) => Self { writes: false, ..self }.by_code(code, text),
            None if error.is_closed() || can_pass(&error) => {
                ErrorKind::StoreUnavailable { reason: text.into(), outcome_unknown: false }
            }
            // A password that is missing, a certificate that nobody here trusts.
            None => ErrorKind::StoreNotConfigured { reason: text.into() },
        };
        Error::from(kind).with_source(error)
    }

    /// The operation took longer than it may.
    pub(crate) fn timed_out(self, sent: bool) -> Error {
        let reason = match sent {
            true => format!("{}: no answer in time", self.doing),
            false => format!("{}: no connection in time", self.doing),
        };
        let outcome_unknown = sent && self.writes;
        ErrorKind::StoreUnavailable { reason: reason.into(), outcome_unknown }.into()
    }

    /// An answer of the store's own functions that is not what they answer.
    pub(crate) fn unreadable(self, what: impl std::fmt::Display) -> Error {
        self.corrupt(format!("{}: {what}", self.doing)).into()
    }
}

/// Something of the store's is not there.
pub(crate) fn nothing_there(what: &str) -> Error {
    Error::not_configured(format!("{what}; {APPLY}"))
}

/// The driver's error with what is behind it: its own text names only the kind.
fn chain(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    error.source().is_some_and(|source| source.is::<std::io::Error>())
}

/// Whether what the network or the server did may be another the next time. TLS's own refusals are
/// invalid data.
fn can_pass(error: &tokio_postgres::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput};
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| !matches!(source.kind(), InvalidData | InvalidInput))
}

/// A value that cannot be written into the protocol: nothing was sent.
fn is_encoding(error: &tokio_postgres::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::InvalidInput)
}

/// Whether the transaction was rolled back for the sake of another one and goes through when it is run
/// again.
pub(crate) fn is_rolled_back(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
        || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// Whether the fault is the statement's, which is not the store's: what it says, what it breaks.
pub(crate) fn is_users(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => !matches!(meaning(code.code()), Meaning::Unavailable | Meaning::Unknown),
        None => !error.is_closed() && !is_io(error),
    }
}

/// Whether a statement that this connection prepared is not good any more: nothing was run.
pub(crate) fn is_stale(error: &tokio_postgres::Error) -> bool {
    let codes = [
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
    ];
    error.code().is_some_and(|code| codes.contains(code))
}

/// Whether it is the connection's fault, which must not be used again: it leads to a server that does
/// not write any more, or that is going away.
pub(crate) fn is_connections(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code().map(SqlState::code) else { return true };
    code == "25006" || code.starts_with("08") || code.starts_with("57P") || code.starts_with("XX")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_meaning() {
        let table: &[(Meaning, &[&str])] = &[
            (
                Meaning::Unavailable,
                &[
                    "40001", "40P01", "53100", "53200", "53300", "55P03", "57014", "57P03",
                    "25006", "25P03", "25P04", "55006", "XX000",
                ],
            ),
            (Meaning::Unknown, &["08006", "08P01", "40003", "57P01", "57P02", "58030"]),
            (Meaning::Schema, &["42P01", "42883", "42703", "42704", "3F000", "0A000"]),
            (
                Meaning::NotConfigured,
                &[
                    "42501", "42P05", "26000", "28P01", "28000", "3D000", "57P04", "22021",
                    "A2002", "P0001", "25P02", "54001", "55000", "99999",
                ],
            ),
            (Meaning::Corrupt, &["23505", "23514", "22P02", "22003", "XX001", "XX002"]),
        ];
        for (expected, codes) in table {
            for code in *codes {
                assert_eq!(meaning(code), *expected, "{code}");
            }
        }
    }

    fn of(code: &str, writes: bool) -> Error {
        let session = SessionId::new("s").unwrap();
        let place = Place { doing: "append", session: Some(&session), writes };
        place.by_code(&SqlState::from_code(code), "append: db error".to_owned()).into()
    }

    #[test]
    fn only_what_can_pass_is_retryable_and_only_a_write_can_be_unknown() {
        assert!(of("57P01", true).is_retryable() && of("57P01", true).outcome_unknown());
        assert!(of("57P01", false).is_retryable() && !of("57P01", false).outcome_unknown());
        assert!(of("40P01", true).is_retryable() && !of("40P01", true).outcome_unknown());
        assert!(!of("42P01", true).is_retryable());
        assert!(!of("23505", true).is_retryable());
    }

    #[test]
    fn a_missing_table_names_what_to_apply() {
        let error = of("42P01", false);
        assert_eq!(error.code(), "STORE_NOT_CONFIGURED");
        assert!(error.to_string().contains("sql/postgres/schema"), "{error}");
        let ErrorKind::Corrupt { session, .. } = of("23505", true).kind().clone() else {
            panic!("not corrupt")
        };
        assert_eq!(session.unwrap().as_str(), "s");
    }

    #[test]
    fn a_timeout_of_a_write_that_was_sent_is_unknown() {
        let session = SessionId::new("s").unwrap();
        assert!(Place::write("append", &session).timed_out(true).outcome_unknown());
        assert!(!Place::write("append", &session).timed_out(false).outcome_unknown());
        assert!(!Place::read("read", &session).timed_out(true).outcome_unknown());
    }
}
