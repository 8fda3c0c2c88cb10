//! Values as they go to the server and come back.
//!
//! JSON is text to the store: `json` keeps the bytes that it is given, and neither side parses them
//! into a value. Every parameter has the type that the functions declare, so that a statement needs no
//! trip to be prepared first.

use std::borrow::Cow;
use std::error::Error as StdError;

use a2_core::Json;
use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// JSON text for a `json` parameter, also as the element of a `json[]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonText<'a>(pub(crate) &'a str);

impl ToSql for JsonText<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    accepts!(JSON);
    to_sql_checked!();
}

/// The text of a `json` column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredText<'a>(&'a str);

impl StoredText<'_> {
    pub(crate) fn json(self) -> Json {
        Json::from_stored(self.0)
    }
}

impl<'a> FromSql<'a> for StoredText<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(std::str::from_utf8(raw)?))
    }

    accepts!(JSON);
}

/// A value of one Postgres type.
pub(crate) trait Scalar {
    const ONE: Type;
    const MANY: Type;
}

macro_rules! scalars {
    ($($type:ty: $one:ident, $many:ident;)*) => {$(
        impl Scalar for $type {
            const ONE: Type = Type::$one;
            const MANY: Type = Type::$many;
        }
    )*};
}

scalars! {
    bool: BOOL, BOOL_ARRAY;
    i32: INT4, INT4_ARRAY;
    i64: INT8, INT8_ARRAY;
    &str: TEXT, TEXT_ARRAY;
    String: TEXT, TEXT_ARRAY;
    JsonText<'_>: JSON, JSON_ARRAY;
}

impl<T: Scalar> Scalar for Option<T> {
    const ONE: Type = T::ONE;
    const MANY: Type = T::MANY;
}

/// A parameter of one Postgres type.
pub(crate) trait Typed: ToSql {
    fn sql_type(&self) -> Type;
}

impl<T: Scalar + ToSql> Typed for T {
    fn sql_type(&self) -> Type {
        T::ONE
    }
}

impl<T: Scalar + ToSql> Typed for Vec<T> {
    fn sql_type(&self) -> Type {
        T::MANY
    }
}

impl<T: Scalar + ToSql> Typed for Option<Vec<T>> {
    fn sql_type(&self) -> Type {
        T::MANY
    }
}

/// A statement's parameter.
pub(crate) type Param<'a> = &'a (dyn Typed + Sync);

/// The parameters of a statement, in their order.
macro_rules! params {
    ($($value:expr),* $(,)?) => { [$(&$value as $crate::values::Param<'_>),*] };
}
pub(crate) use params;

/// A count as the server has it. What is too large stays larger than anything stored.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The end of a flat array, which a batch's limits keep far below 2^31.
pub(crate) fn end(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

/// An error text without U+0000, which the server's text cannot hold: U+0001 stands before a `0` for it,
/// and before a `1` for itself.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', '\u{1}']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0"))
}

/// What [`escape`] was given.
pub(crate) fn unescape(text: &str) -> String {
    text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_text_comes_back() {
        for (text, stored) in [
            ("plain", "plain"),
            ("a\0b", "a\u{1}0b"),
            ("\u{1}", "\u{1}1"),
            ("\u{1}0", "\u{1}10"),
            ("\u{1}\0\0\u{1}1", "\u{1}1\u{1}0\u{1}0\u{1}11"),
        ] {
            assert_eq!(escape(text), stored, "{text:?}");
            assert_eq!(unescape(stored), text, "{text:?}");
        }
    }

    #[test]
    fn parameters_have_the_types_of_the_functions() {
        let (text, numbers) = ("a".to_owned(), vec![Some(1_i64), None]);
        let lanes: Option<Vec<Option<&str>>> = None;
        let payloads = vec![JsonText("{}")];
        let params = params![text, numbers, lanes, payloads, true, Some(3_i32)];
        let types = params.map(|param| param.sql_type());
        let expected = [
            Type::TEXT,
            Type::INT8_ARRAY,
            Type::TEXT_ARRAY,
            Type::JSON_ARRAY,
            Type::BOOL,
            Type::INT4,
        ];
        assert_eq!(types, expected);
    }
}
