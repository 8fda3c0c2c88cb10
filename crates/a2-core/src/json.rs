//! JSON text, kept byte for byte.
//!
//! A store must give back what it was given: key order, `1.0`, `1e400`, lone surrogate escapes,
//! duplicate keys. A parsed value keeps none of these, so the text itself is kept, checked once and
//! without insignificant white space. Reading raw text is also about three times faster than
//! building a value.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::ser::{Formatter, Serializer};
use serde_json::value::RawValue;

use crate::{Error, Result, limits};

/// A JSON document as text without insignificant white space; cheap to clone.
///
/// Two values are equal when their texts are: `1.0` is not `1`. At most 16 MiB of text and 127
/// levels of nesting.
///
/// ```
/// use a2_core::Json;
///
/// let json = Json::parse(r#"{ "b": 1.0, "a": [ ] }"#)?;
/// assert_eq!(json.as_str(), r#"{"b":1.0,"a":[]}"#);
///
/// let order: (u32, String) = Json::from_serialize(&(17, "tea"))?.deserialize()?;
/// assert_eq!(order, (17, "tea".to_owned()));
/// # Ok::<(), a2_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Checks `text` and keeps it without insignificant white space.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the text is no JSON, nests deeper than 127 or is longer than 16 MiB.
    pub fn parse(text: impl AsRef<str>) -> Result<Self> {
        let text = text.as_ref();
        let mut scan = Scan::default();
        let mut white = 0;
        for &byte in text.as_bytes() {
            white += usize::from(!scan.step(byte)?);
        }
        check_len(text.len() - white)?;
        serde_json::from_str::<&RawValue>(text)
            .map_err(|e| Error::invalid("json", format!("must be JSON: {e}")))?;
        if white == 0 {
            return Ok(Self(text.into()));
        }
        let mut scan = Scan::default();
        let compact = text.bytes().filter(|&byte| scan.step(byte).unwrap_or(true)).collect();
        // Only ASCII white space was dropped, so what is left is still UTF-8.
        let compact =
            String::from_utf8(compact).map_err(|_| Error::invalid("json", "must be UTF-8"))?;
        Ok(Self(compact.into()))
    }

    /// Serializes `value`, stopping as soon as a limit is passed.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the value does not serialize, nests deeper than 127 or is longer than
    /// 16 MiB.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self> {
        let mut out = Bounded { text: Vec::with_capacity(512), too_long: false };
        let too_deep = Cell::new(false);
        let compact = Compact { depth: 0, too_deep: &too_deep };
        let written = value.serialize(&mut Serializer::with_formatter(&mut out, compact));
        if too_deep.get() {
            return Err(deeper());
        }
        if out.too_long {
            return Err(longer());
        }
        written.map_err(|e| Error::invalid("json", format!("must serialize to JSON: {e}")))?;
        let text =
            std::str::from_utf8(&out.text).map_err(|_| Error::invalid("json", "must be UTF-8"))?;
        Ok(Self(text.into()))
    }

    /// Takes text that a store wrote from a `Json`, without checking it again.
    ///
    /// For backends: text from anywhere else must go through [`Json::parse`].
    #[must_use]
    pub fn from_stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The value `null`.
    #[must_use]
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Length of the text in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.0.len()
    }

    /// Reads the document into a type of the caller's.
    ///
    /// # Errors
    /// `INVALID_INPUT` when the document does not fit the type.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.0).map_err(|e| {
            Error::invalid("json", format!("does not fit the type: {e}")).with_source(e)
        })
    }
}

fn check_len(len: usize) -> Result<()> {
    if len > limits::JSON_BYTES { Err(longer()) } else { Ok(()) }
}

fn longer() -> Error {
    Error::invalid("json", format!("must be at most {} bytes", limits::JSON_BYTES))
}

fn deeper() -> Error {
    Error::invalid("json", format!("must nest at most {} arrays and objects", limits::JSON_DEPTH))
}

/// Follows JSON text byte by byte: what is insignificant, how deep it nests.
#[derive(Default)]
struct Scan {
    in_string: bool,
    escaped: bool,
    depth: usize,
}

impl Scan {
    /// Whether the byte is part of the compact text.
    #[inline]
    fn step(&mut self, byte: u8) -> Result<bool> {
        if self.in_string {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == b'"' {
                self.in_string = false;
            }
            return Ok(true);
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => {
                self.depth += 1;
                if self.depth > limits::JSON_DEPTH {
                    return Err(deeper());
                }
            }
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            b' ' | b'\t' | b'\n' | b'\r' => return Ok(false),
            _ => {}
        }
        Ok(true)
    }
}

/// A writer that ends at the limit, so that nothing too large is ever allocated.
struct Bounded {
    text: Vec<u8>,
    too_long: bool,
}

impl Write for Bounded {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > limits::JSON_BYTES - self.text.len() {
            self.too_long = true;
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes compact text and counts how deep it nests. Only text that is embedded as it is (a
/// `RawValue`, which a [`Json`] serializes as) can hold white space, and is gone through byte by byte.
struct Compact<'a> {
    depth: usize,
    too_deep: &'a Cell<bool>,
}

impl Compact<'_> {
    #[inline]
    fn open(&mut self) -> io::Result<()> {
        self.depth += 1;
        if self.depth > limits::JSON_DEPTH {
            self.too_deep.set(true);
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }
}

impl Formatter for Compact<'_> {
    #[inline]
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open()?;
        writer.write_all(b"[")
    }

    #[inline]
    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        writer.write_all(b"]")
    }

    #[inline]
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open()?;
        writer.write_all(b"{")
    }

    #[inline]
    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        writer.write_all(b"}")
    }

    fn write_raw_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut scan = Scan { depth: self.depth, ..Scan::default() };
        let mut kept = 0;
        for (at, &byte) in fragment.as_bytes().iter().enumerate() {
            match scan.step(byte) {
                Ok(true) => {}
                Ok(false) => {
                    writer.write_all(&fragment.as_bytes()[kept..at])?;
                    kept = at + 1;
                }
                Err(_) => {
                    self.too_deep.set(true);
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
        writer.write_all(&fragment.as_bytes()[kept..])
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Json {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// Within JSON, the document stands as itself, not as a string.
impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_and_white_space_is_not() {
        for text in [
            "1.0",
            "1e400",
            "12345678901234567890",
            r#""\u0000""#,
            r#""\ud800""#,
            "[]",
            "{}",
            r#"{"a":1,"a":2}"#,
            r#"" \" [ ""#,
            "-0",
        ] {
            assert_eq!(Json::parse(text).unwrap().as_str(), text);
            let padded = format!(" \n{text}\t ");
            assert_eq!(Json::parse(&padded).unwrap().as_str(), text);
        }
        assert_eq!(Json::parse("[1 , { \"a b\" : 2 } ]").unwrap().as_str(), "[1,{\"a b\":2}]");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", " ", "nul", "[1,]", "1 2", "\"\n\"", "01", "{a:1}", "[", "]", "\"", "NaN"]
        {
            assert_eq!(Json::parse(text).unwrap_err().code(), "INVALID_INPUT", "{text}");
        }
    }

    #[test]
    fn depth_ends_at_127() {
        let nest = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(Json::parse(nest(127)).is_ok());
        let value: serde_json::Value = Json::parse(nest(127)).unwrap().deserialize().unwrap();
        assert_eq!(Json::from_serialize(&value).unwrap().as_str(), nest(127));
        assert!(Json::parse(nest(128)).is_err());
        assert!(Json::parse(nest(1_000_000)).is_err());
        assert!(Json::from_serialize(&vec![value; 1]).is_err());
    }

    #[test]
    fn length_ends_at_16_mib() {
        let text = |n: usize| format!("\"{}\"", "x".repeat(n - 2));
        assert!(Json::parse(text(limits::JSON_BYTES)).is_ok());
        assert!(Json::parse(text(limits::JSON_BYTES + 1)).is_err());
        assert!(Json::parse(format!("  {}  ", text(limits::JSON_BYTES))).is_ok());
        assert!(Json::from_serialize(&"x".repeat(limits::JSON_BYTES - 2)).is_ok());
        assert!(Json::from_serialize(&"x".repeat(limits::JSON_BYTES - 1)).is_err());
    }

    #[test]
    fn text_embedded_as_it_is_is_compacted_and_counted() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let json = Json::from_serialize(&(raw("[1 ,\t{ \"a b\" :\n\" \" } ]"), 2)).unwrap();
        assert_eq!(json.as_str(), "[[1,{\"a b\":\" \"}],2]");
        let nest = |n: usize| raw(&format!("{}{}", "[".repeat(n), "]".repeat(n)));
        assert!(Json::from_serialize(&[nest(126)]).is_ok());
        let error = Json::from_serialize(&[nest(127)]).unwrap_err();
        assert_eq!(error.to_string(), "json: must nest at most 127 arrays and objects");
        // An array after an array is no deeper than the first.
        assert!(Json::from_serialize(&[nest(100), nest(100)]).is_ok());
    }

    #[test]
    fn a_document_stands_as_itself_within_json() {
        let json = Json::parse(r#"{"a":1.0}"#).unwrap();
        assert_eq!(serde_json::to_string(&(json.clone(), 1)).unwrap(), r#"[{"a":1.0},1]"#);
        let (back, _): (Json, u8) = serde_json::from_str(r#"[{ "a": 1.0 },1]"#).unwrap();
        assert_eq!(back, json);
    }
}
