//! What a handler fails with.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// What a handler returns: the events to append, or why it could not.
pub type Handled<R = ()> = std::result::Result<R, HandlerError>;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a handler could not handle an event.
///
/// Anything that is an error becomes one with `?`: errors of libraries, of `anyhow`, texts. The event
/// is tried again later, with growing delays, until the budget is spent; then it is a dead letter.
///
/// ```
/// use a2_runtime::{Handled, HandlerError, NonRetriable};
/// use std::time::Duration;
///
/// fn charge(amount: &str) -> Handled<u32> {
///     let amount: u32 = amount.parse()?;                      // tried again
///     match amount {
///         0 => Err(NonRetriable::new("nothing to charge"))?,  // a dead letter at once
///         1..10 => Err(HandlerError::from("the bank asks us to wait")
///             .retry_after(Duration::from_secs(60))),         // tried again, then
///         _ => Ok(amount),
///     }
/// }
/// assert!(charge("0").unwrap_err().is_non_retriable());
/// assert!(!charge("x").unwrap_err().is_non_retriable());
/// ```
pub struct HandlerError {
    source: BoxError,
    non_retriable: bool,
    retry_after: Option<Duration>,
}

impl HandlerError {
    /// An error that another try would not change: the event is a dead letter at once.
    pub fn non_retriable(error: impl Into<BoxError>) -> Self {
        Self { source: error.into(), non_retriable: true, retry_after: None }
    }

    /// Tries again after this long, instead of after what the consumer's policy says.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Whether the event is a dead letter at once.
    #[must_use]
    pub fn is_non_retriable(&self) -> bool {
        self.non_retriable
    }

    /// What went wrong.
    #[must_use]
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    pub(crate) fn delay(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// A [`NonRetriable`] anywhere among the sources makes the error one.
impl<E: Into<BoxError>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let source = error.into();
        let first: &(dyn StdError + 'static) = &*source;
        let mut chain = std::iter::successors(Some(first), |&error| error.source());
        let non_retriable = chain.any(|error| error.is::<NonRetriable>());
        Self { source, non_retriable, retry_after: None }
    }
}

/// The whole chain: `could not charge: the bank is closed`.
impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.source.to_string();
        f.write_str(&last)?;
        let mut next = self.source.source();
        while let Some(error) = next {
            let text = error.to_string();
            // Some errors say what their source says.
            if !last.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            (last, next) = (text, error.source());
        }
        Ok(())
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("source", &self.source)
            .field("non_retriable", &self.non_retriable)
            .field("retry_after", &self.retry_after)
            .finish()
    }
}

/// An error that another try would not change.
///
/// It can be wrapped in others (`anyhow`'s contexts, say): it is found among their sources.
#[derive(Debug)]
pub struct NonRetriable(BoxError);

impl NonRetriable {
    /// Says of `error` that another try would not change it.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for NonRetriable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for NonRetriable {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn non_retriable_is_found_below_contexts() {
        let plain: HandlerError = anyhow::anyhow!("bank closed").context("charging").into();
        assert_eq!(
            (plain.to_string().as_str(), plain.is_non_retriable()),
            ("charging: bank closed", false)
        );
        let wrapped = Err::<(), _>(NonRetriable::new("no such card")).context("charging");
        let wrapped: HandlerError = wrapped.unwrap_err().into();
        assert_eq!(
            (wrapped.to_string().as_str(), wrapped.is_non_retriable()),
            ("charging: no such card", true)
        );
    }
}
