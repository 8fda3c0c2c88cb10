//! Pages.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, Served, limits};

use super::checked_count;

/// Where the next page begins. Opaque: only the listing that gave it can read it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageToken(Arc<[u8]>);

impl PageToken {
    /// Takes a token from bytes that [`as_bytes`](Self::as_bytes) gave.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The token's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// For backends: a token of listing `kind` that holds `place`.
    #[must_use]
    pub fn encode<T: Serialize>(kind: &str, place: &T) -> Self {
        // Places are names and numbers, which always serialize.
        Self(serde_json::to_vec(&(kind, place)).unwrap_or_default().into())
    }

    /// For backends: the place that a token of listing `kind` holds.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the token is another listing's, or no token at all.
    pub fn decode<T: DeserializeOwned>(&self, kind: &str) -> Result<T> {
        match serde_json::from_slice::<(String, T)>(&self.0) {
            Ok((given, place)) if given == kind => Ok(place),
            _ => Err(Error::invalid("page.token", format!("must come from a page of {kind}"))),
        }
    }
}

impl fmt::Debug for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageToken({} bytes)", self.0.len())
    }
}

/// How much of a listing to answer, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    limit: usize,
    token: Option<PageToken>,
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: limits::PAGE_DEFAULT, token: None }
    }
}

impl Page {
    /// The first page, of at most 100 entries.
    #[must_use]
    pub fn first() -> Self {
        Self::default()
    }

    /// The page that a token names.
    #[must_use]
    pub fn at(token: PageToken) -> Self {
        Self { token: Some(token), ..Self::default() }
    }

    /// At most this many entries: 1 to 1,000, 100 by default.
    ///
    /// # Errors
    /// `INVALID_INPUT` outside of that.
    pub fn limit(mut self, limit: usize) -> Result<Self> {
        self.limit = checked_count("page.limit", limit, limits::PAGE_MAX)?;
        Ok(self)
    }

    /// The same page size, at `token`.
    #[must_use]
    pub fn and_then(&self, token: PageToken) -> Self {
        Self { limit: self.limit, token: Some(token) }
    }

    /// The most entries.
    #[must_use]
    pub fn max_entries(&self) -> usize {
        self.limit
    }

    /// Where the page begins; none for the first.
    #[must_use]
    pub fn token(&self) -> Option<&PageToken> {
        self.token.as_ref()
    }
}

/// Asks for sessions with work for what the caller serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingPage {
    served: Served,
    page: Page,
}

impl PendingPage {
    /// Work for `served`, the first page.
    #[must_use]
    pub fn new(served: Served) -> Self {
        Self { served, page: Page::default() }
    }

    /// Another page.
    #[must_use]
    pub fn page(mut self, page: Page) -> Self {
        self.page = page;
        self
    }

    /// What the caller serves.
    #[must_use]
    pub fn served_list(&self) -> &Served {
        &self.served
    }

    /// Which page.
    #[must_use]
    pub fn which(&self) -> &Page {
        &self.page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_by_its_own_listing() {
        let token = PageToken::encode("sessions", &("a\"b", 3));
        assert_eq!(token.decode::<(String, u64)>("sessions").unwrap(), ("a\"b".to_owned(), 3));
        assert_eq!(
            token.decode::<(String, u64)>("cursors").unwrap_err().to_string(),
            "page.token: must come from a page of cursors"
        );
        assert!(PageToken::from_bytes(*b"junk").decode::<u64>("sessions").is_err());
    }

    #[test]
    fn page_sizes() {
        assert!(Page::first().limit(0).is_err());
        assert!(Page::first().limit(1_000).is_ok());
        assert!(Page::first().limit(1_001).is_err());
    }
}
