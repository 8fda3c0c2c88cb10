//! What a failure of SQLite means to a caller: a table by SQLite's result code.
//!
//! The meaning is never read out of a message. The text names the file and what was being done; the
//! driver's error is kept as the source.

use std::any::Any;

use a2_core::{Error, ErrorKind, SessionId};
use rusqlite::ffi;

/// What a result code of SQLite means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The file cannot serve now: another process holds it, the disk is full, memory is short.
    Unavailable,
    /// The same, and the commit may have reached the disk all the same.
    Unknown,
    /// The file, its tables or the rights to it are not as they must be.
    NotConfigured,
    /// The file is damaged, or a row breaks what the tables promise.
    Corrupt,
}

/// The classes, first match; an extended code stands for itself, a primary one for all below it.
const CODES: &[(i32, Meaning)] = &[
    (ffi::SQLITE_IOERR_CORRUPTFS, Meaning::Corrupt),
    (ffi::SQLITE_IOERR_DATA, Meaning::Corrupt),
    (ffi::SQLITE_IOERR_FSYNC, Meaning::Unknown),
    (ffi::SQLITE_IOERR_DIR_FSYNC, Meaning::Unknown),
    (ffi::SQLITE_READONLY_RECOVERY, Meaning::Unavailable),
    (ffi::SQLITE_BUSY, Meaning::Unavailable),
    (ffi::SQLITE_LOCKED, Meaning::Unavailable),
    (ffi::SQLITE_NOMEM, Meaning::Unavailable),
    (ffi::SQLITE_INTERRUPT, Meaning::Unavailable),
    (ffi::SQLITE_IOERR, Meaning::Unavailable),
    (ffi::SQLITE_FULL, Meaning::Unavailable),
    (ffi::SQLITE_PROTOCOL, Meaning::Unavailable),
    (ffi::SQLITE_ABORT, Meaning::Unavailable),
    (ffi::SQLITE_CORRUPT, Meaning::Corrupt),
    (ffi::SQLITE_NOTADB, Meaning::Corrupt),
    // The store's own rows never break a constraint of the store's own tables.
    (ffi::SQLITE_CONSTRAINT, Meaning::Corrupt),
    (ffi::SQLITE_MISMATCH, Meaning::Corrupt),
    (ffi::SQLITE_CANTOPEN, Meaning::NotConfigured),
    (ffi::SQLITE_READONLY, Meaning::NotConfigured),
    (ffi::SQLITE_PERM, Meaning::NotConfigured),
    (ffi::SQLITE_AUTH, Meaning::NotConfigured),
    (ffi::SQLITE_NOLFS, Meaning::NotConfigured),
    // A statement that does not compile: a table or column is missing or another one.
    (ffi::SQLITE_ERROR, Meaning::NotConfigured),
    (ffi::SQLITE_SCHEMA, Meaning::NotConfigured),
];

fn meaning(extended: i32) -> Meaning {
    let primary = extended & 0xff;
    let found = CODES.iter().find(|(code, _)| *code == extended || *code == primary);
    found.map_or(Meaning::Unavailable, |(_, meaning)| *meaning)
}

/// Where a failure happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The database file.
    pub(crate) file: &'a str,
    /// The operation.
    pub(crate) doing: &'static str,
    /// The session it was about, when it was about one.
    pub(crate) session: Option<&'a SessionId>,
}

impl Place<'_> {
    /// The store's error for one of the driver's.
    pub(crate) fn error(&self, error: rusqlite::Error) -> Error {
        let text = format!("{}: {}: {error}", self.file, self.doing);
        let kind = match error.sqlite_extended_error_code().map(meaning) {
            Some(Meaning::Unavailable) => {
                ErrorKind::StoreUnavailable { reason: text.into(), outcome_unknown: false }
            }
            Some(Meaning::Unknown) => {
                ErrorKind::StoreUnavailable { reason: text.into(), outcome_unknown: true }
            }
            Some(Meaning::NotConfigured) => ErrorKind::StoreNotConfigured {
                reason: format!(
                    "{text}. The store must be able to read and write the file and its folder, and \
                     the a2_ tables must be those that it made"
                )
                .into(),
            },
            // Without a code of SQLite's it is a stored value that does not read as what it must be.
            Some(Meaning::Corrupt) | None => ErrorKind::Corrupt {
                session: self.session.cloned(),
                index: None,
                reason: text.into(),
            },
        };
        Error::from(kind).with_source(error)
    }
}

/// Whether the transaction of a group should be tried again for each operation on its own: the
/// failure may concern only one of them, or pass with less to write.
pub(crate) fn is_locked(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: i32) -> Error {
        let session = SessionId::new("s").unwrap();
        let place = Place { file: "/tmp/a2.db", doing: "append", session: Some(&session) };
        place.error(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn every_code_has_its_meaning() {
        let unavailable = [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_BUSY_RECOVERY,
            ffi::SQLITE_LOCKED,
            ffi::SQLITE_LOCKED_SHAREDCACHE,
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_NOMEM,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_INTERRUPT,
            ffi::SQLITE_PROTOCOL,
            ffi::SQLITE_MISUSE,
        ];
        for code in unavailable {
            assert_eq!(of(code).code(), "STORE_UNAVAILABLE", "{code}");
            assert!(of(code).is_retryable() && !of(code).outcome_unknown(), "{code}");
        }
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC] {
            assert!(of(code).is_retryable() && of(code).outcome_unknown(), "{code}");
        }
        let corrupt = [
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_CORRUPT_INDEX,
            ffi::SQLITE_NOTADB,
            ffi::SQLITE_IOERR_CORRUPTFS,
            ffi::SQLITE_IOERR_DATA,
            ffi::SQLITE_CONSTRAINT,
            ffi::SQLITE_CONSTRAINT_UNIQUE,
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            ffi::SQLITE_CONSTRAINT_DATATYPE,
        ];
        for code in corrupt {
            assert_eq!(of(code).code(), "CORRUPT", "{code}");
        }
        let not_configured = [
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_CANTOPEN_ISDIR,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_READONLY_DIRECTORY,
            ffi::SQLITE_READONLY_DBMOVED,
            ffi::SQLITE_PERM,
            ffi::SQLITE_AUTH,
            ffi::SQLITE_ERROR,
            ffi::SQLITE_SCHEMA,
        ];
        for code in not_configured {
            assert_eq!(of(code).code(), "STORE_NOT_CONFIGURED", "{code}");
        }
    }

    #[test]
    fn the_text_names_file_and_operation_and_keeps_the_source() {
        let error = of(ffi::SQLITE_FULL);
        assert!(error.to_string().contains("/tmp/a2.db: append: "), "{error}");
        assert!(std::error::Error::source(&error).is_some());
        let value = rusqlite::Error::IntegralValueOutOfRange(0, -1);
        let place = Place { file: "f", doing: "read", session: None };
        assert_eq!(place.error(value).code(), "CORRUPT");
    }
}
