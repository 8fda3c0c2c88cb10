//! The one error of every store.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use crate::{EventId, Index, SessionId};

/// What every operation returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was not done, or may not have been.
///
/// The error is one pointer wide; [`kind`](Error::kind) says what happened, [`code`](Error::code)
/// names it for logs and for programs in other languages.
///
/// ```
/// use a2_core::{ErrorKind, SessionId};
///
/// let error = SessionId::new("").unwrap_err();
/// assert_eq!(error.code(), "INVALID_INPUT");
/// assert!(!error.is_retryable());
/// assert!(matches!(error.kind(), ErrorKind::InvalidInput { field, .. } if field == "session"));
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What kind of failure an [`Error`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument breaks a rule. Nothing was written.
    InvalidInput {
        /// The argument, as a path: `events[3].payload`.
        field: Cow<'static, str>,
        /// The rule that it breaks.
        rule: Cow<'static, str>,
    },
    /// The session has no such index.
    NotFound {
        /// The session asked.
        session: SessionId,
        /// The index that does not exist.
        index: Index,
    },
    /// Some ids of the batch exist already, others do not. Nothing was written.
    PartialDuplicateBatch {
        /// The ids that exist, in the order of the batch.
        existing: Vec<EventId>,
    },
    /// The log's head is not the expected one. Nothing was written.
    HeadConflict {
        /// What the caller expected.
        expected: Index,
        /// The head there is.
        actual: Index,
    },
    /// The cause is not a current attempt. Nothing was written.
    SupersededAttempt,
    /// The session was cleared since the given origin. Nothing was written.
    SessionCleared {
        /// The latest clear marker.
        clear_index: Index,
    },
    /// The store's tables, layout or privileges are missing or foreign.
    StoreNotConfigured {
        /// What is wrong and what to run.
        reason: Cow<'static, str>,
    },
    /// The store cannot be reached or cannot serve now.
    StoreUnavailable {
        /// What happened.
        reason: Cow<'static, str>,
        /// Whether the operation may have been done all the same.
        outcome_unknown: bool,
    },
    /// Stored data breaks an invariant.
    Corrupt {
        /// Where, when a session is known.
        session: Option<SessionId>,
        /// Where, when an index is known.
        index: Option<Index>,
        /// What is wrong there.
        reason: Cow<'static, str>,
    },
    /// The store was closed.
    Closed,
}

impl Error {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The kind's stable name, for instance `HEAD_CONFLICT`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// Whether the same call can succeed later without anybody changing it or the store's set-up.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::StoreUnavailable { .. })
    }

    /// Whether the operation may have been done: its answer was lost or timed out.
    ///
    /// A plain retry of any write is safe then; it finds what was done or does it.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        matches!(self.0.kind, ErrorKind::StoreUnavailable { outcome_unknown: true, .. })
    }

    /// An argument breaks a rule.
    pub fn invalid(
        field: impl Into<Cow<'static, str>>,
        rule: impl Into<Cow<'static, str>>,
    ) -> Self {
        ErrorKind::InvalidInput { field: field.into(), rule: rule.into() }.into()
    }

    /// Stored data breaks an invariant at `index` of `session`.
    pub fn corrupt(
        session: Option<&SessionId>,
        index: Option<Index>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        ErrorKind::Corrupt { session: session.cloned(), index, reason: reason.into() }.into()
    }

    /// The store cannot serve now; the operation was not done.
    pub fn unavailable(reason: impl Into<Cow<'static, str>>) -> Self {
        ErrorKind::StoreUnavailable { reason: reason.into(), outcome_unknown: false }.into()
    }

    /// The store's tables, layout or privileges are not as they must be.
    pub fn not_configured(reason: impl Into<Cow<'static, str>>) -> Self {
        ErrorKind::StoreNotConfigured { reason: reason.into() }.into()
    }

    /// The store was closed.
    #[must_use]
    pub fn closed() -> Self {
        ErrorKind::Closed.into()
    }

    /// Keeps the error that caused this one, for [`source`](StdError::source).
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Puts `prefix` before the field of an [`ErrorKind::InvalidInput`]: `payload` becomes
    /// `events[3].payload`. Other kinds stay as they are.
    #[must_use]
    pub fn in_field(mut self, prefix: impl fmt::Display) -> Self {
        if let ErrorKind::InvalidInput { field, .. } = &mut self.0.kind {
            *field = Cow::Owned(format!("{prefix}.{field}"));
        }
        self
    }
}

impl ErrorKind {
    /// The kind's stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidInput { .. } => "INVALID_INPUT",
            Self::NotFound { .. } => "NOT_FOUND",
            Self::PartialDuplicateBatch { .. } => "PARTIAL_DUPLICATE_BATCH",
            Self::HeadConflict { .. } => "HEAD_CONFLICT",
            Self::SupersededAttempt => "SUPERSEDED_ATTEMPT",
            Self::SessionCleared { .. } => "SESSION_CLEARED",
            Self::StoreNotConfigured { .. } => "STORE_NOT_CONFIGURED",
            Self::StoreUnavailable { .. } => "STORE_UNAVAILABLE",
            Self::Corrupt { .. } => "CORRUPT",
            Self::Closed => "CLOSED",
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, source: None }))
    }
}

/// Lets a builder take a name that is already checked where it takes text.
impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidInput { field, rule } => write!(f, "{field}: {rule}"),
            Self::NotFound { session, index } => {
                write!(f, "session {session:?} has no event {index}")
            }
            Self::PartialDuplicateBatch { existing } => {
                write!(f, "{} of the batch's event ids exist already", existing.len())?;
                match existing.first() {
                    Some(first) => write!(f, ", the first is {first:?}"),
                    None => Ok(()),
                }
            }
            Self::HeadConflict { expected, actual } => {
                write!(f, "the log's head is {actual}, not {expected} as expected")
            }
            Self::SupersededAttempt => f.write_str("the cause is not a current attempt"),
            Self::SessionCleared { clear_index } => {
                write!(f, "the session was cleared at index {clear_index}, after the given origin")
            }
            Self::StoreNotConfigured { reason } => write!(f, "store not configured: {reason}"),
            Self::StoreUnavailable { reason, outcome_unknown } => {
                write!(f, "store unavailable: {reason}")?;
                if *outcome_unknown { f.write_str(" (the outcome is unknown)") } else { Ok(()) }
            }
            Self::Corrupt { session, index, reason } => {
                f.write_str("corrupt store")?;
                if let Some(session) = session {
                    write!(f, ", session {session:?}")?;
                }
                if let Some(index) = index {
                    write!(f, ", index {index}")?;
                }
                write!(f, ": {reason}")
            }
            Self::Closed => f.write_str("the store is closed"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("Error");
        s.field("code", &self.code()).field("kind", &self.0.kind);
        if let Some(source) = &self.0.source {
            s.field("source", source);
        }
        s.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_pointer_wide_and_crosses_threads() {
        fn is<T: Send + Sync + 'static>() {}
        is::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn only_unavailable_is_retryable() {
        let unknown = ErrorKind::StoreUnavailable { reason: "x".into(), outcome_unknown: true };
        assert!(Error::from(unknown.clone()).is_retryable());
        assert!(Error::from(unknown).outcome_unknown());
        assert!(!Error::unavailable("x").outcome_unknown());
        for error in [
            Error::invalid("a", "b"),
            Error::corrupt(None, None, "x"),
            Error::not_configured("x"),
            Error::closed(),
            ErrorKind::SupersededAttempt.into(),
        ] {
            assert!(!error.is_retryable(), "{error}");
        }
    }

    #[test]
    fn a_field_gets_its_place() {
        let error = Error::invalid("payload", "too deep").in_field("events[3]");
        assert_eq!(error.to_string(), "events[3].payload: too deep");
    }
}
