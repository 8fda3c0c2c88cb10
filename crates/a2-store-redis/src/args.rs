//! Requests as the flat arguments that the scripts take.

use a2_core::{
    Cause, ClaimAvailable, Clock, CursorKey, CursorRef, HeadRef, Index, NewEvent, Served,
    Timestamp, limits,
};
use bytes::Bytes;
use fred::types::Value;

/// Times and attempts are kept within this: scripts count in doubles.
const EXACT: i64 = 1 << 53;

/// Arguments, one after the other in one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct Args {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Args {
    /// Whatever there is.
    pub(crate) fn push(&mut self, bytes: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(bytes.as_ref());
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn number(&mut self, number: impl Into<i128>) {
        use std::io::Write;
        // Writing to memory does not fail.
        let _ = write!(self.bytes, "{}", number.into());
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn optional(&mut self, number: Option<impl Into<i128>>) {
        match number {
            Some(number) => self.number(number),
            None => self.push(""),
        }
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.push(if flag { "1" } else { "0" });
    }

    pub(crate) fn index(&mut self, index: Index) {
        self.number(index.get());
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// An attempt's number; one beyond what scripts count exactly is current nowhere.
    pub(crate) fn attempt(&mut self, attempt: u64) {
        self.number(attempt.min(EXACT.unsigned_abs()));
    }

    pub(crate) fn head(&mut self, head: &HeadRef) {
        self.push_head(head);
        self.ends.push(self.bytes.len());
    }

    fn push_head(&mut self, head: &HeadRef) {
        self.push_cursor(head.consumer.as_str(), &head.cursor);
        self.bytes.push(0);
        self.bytes.extend_from_slice(&head.index.get().to_be_bytes());
    }

    fn push_cursor(&mut self, consumer: &str, key: &CursorKey) {
        self.bytes.push(kind(key));
        self.bytes.extend_from_slice(consumer.as_bytes());
        self.bytes.push(0);
        self.bytes.extend_from_slice(key.name().as_bytes());
    }

    /// A cause, or nothing.
    pub(crate) fn cause(&mut self, cause: Option<&Cause>) {
        self.push_cause(cause);
        self.ends.push(self.bytes.len());
    }

    fn push_cause(&mut self, cause: Option<&Cause>) {
        if let Some(cause) = cause {
            let attempt = cause.attempt.min(EXACT.unsigned_abs());
            self.bytes.extend_from_slice(&attempt.to_be_bytes());
            self.push_head(&cause.head);
        }
    }

    /// The types that a log takes.
    pub(crate) fn types(&mut self, types: &a2_core::LogTypes) {
        let Some(types) = types.as_only() else { return self.push("*") };
        for event_type in types {
            self.bytes.extend_from_slice(event_type.as_str().as_bytes());
            self.bytes.push(0);
        }
        self.ends.push(self.bytes.len());
    }

    /// The numbers in 4 bytes each.
    pub(crate) fn numbers(&mut self, numbers: impl IntoIterator<Item = u32>) {
        self.bytes.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
        self.ends.push(self.bytes.len());
    }

    /// Bytes one after the other, as one.
    pub(crate) fn parts<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>) {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.ends.push(self.bytes.len());
    }

    /// The field that leads to what is queued behind a head.
    pub(crate) fn queued(&mut self, head: &HeadRef) {
        self.bytes.push(b'>');
        self.head(head);
    }

    /// An event's entry in the log after its index and time.
    pub(crate) fn entry(&mut self, event: &NewEvent, cause: Option<&Cause>, has_payload: bool) {
        let id = event.event_id().map_or("", |id| id.as_str());
        let (event_type, payload) = (event.event_type().as_str(), event.payload().as_str());
        // Names and payloads are limited to less.
        let short = |len: usize| u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
        let long = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
        self.bytes.extend_from_slice(&short(id.len()));
        self.bytes.extend_from_slice(&short(event_type.len()));
        let of_cause = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&long(payload.len()));
        self.bytes.extend_from_slice(id.as_bytes());
        self.bytes.extend_from_slice(event_type.as_bytes());
        let before = self.bytes.len();
        self.push_cause(cause);
        let size = long(self.bytes.len() - before);
        self.bytes[of_cause..of_cause + 4].copy_from_slice(&size);
        if has_payload {
            self.bytes.extend_from_slice(payload.as_bytes());
        }
        self.ends.push(self.bytes.len());
    }

    /// A timer's event with its targets.
    pub(crate) fn event(&mut self, event: &NewEvent) {
        // Every event of a request that could be built has an id.
        self.push(event.event_id().map_or("", |id| id.as_str()));
        self.push(event.event_type().as_str());
        self.push(event.payload().as_str());
        self.count(event.target_list().len());
        for target in event.target_list() {
            self.push_cursor(target.consumer().as_str(), &target.cursor_key());
            self.ends.push(self.bytes.len());
        }
    }

    /// A claim.
    pub(crate) fn claim(&mut self, claim: &ClaimAvailable) {
        self.push(claim.holder().as_str());
        self.number(claim.ttl().as_millis());
        self.count(claim.max_heads());
        self.index(claim.end());
        self.count(claim.max_run());
        self.optional(claim.budget());
        self.claimed(claim.served_list());
        self.count(claim.excluded().len());
        for cursor in claim.excluded() {
            self.cursor(cursor);
        }
    }

    /// What a claim serves, in the order of consumers.
    fn claimed(&mut self, served: &Served) {
        let Some(entries) = served.entries() else { return self.number(-1) };
        let mut entries: Vec<_> = entries.iter().collect();
        entries.sort_unstable_by_key(|entry| entry.consumer().as_str());
        self.count(entries.len());
        for entry in &entries {
            self.push(entry.consumer().as_str());
        }
        for entry in &entries {
            self.optional(entry.failure_budget());
        }
        self.count(entries.iter().filter(|entry| entry.declaration().is_some()).count());
        for entry in entries {
            if let Some(log) = entry.declaration() {
                self.push(entry.consumer().as_str());
                self.push(log.name().as_str());
                self.types(log.log_types());
            }
        }
    }

    /// A cursor, an event's with its index.
    fn cursor(&mut self, cursor: &CursorRef) {
        self.push_cursor(cursor.consumer().as_str(), cursor.key());
        if let Some(index) = cursor.event_index() {
            self.bytes.push(0);
            self.bytes.extend_from_slice(&index.get().to_be_bytes());
        }
        self.ends.push(self.bytes.len());
    }

    /// A claim that goes with another operation, if one does.
    pub(crate) fn then_claim(&mut self, claim: Option<&ClaimAvailable>) {
        self.flag(claim.is_some());
        if let Some(claim) = claim {
            self.claim(claim);
        }
    }

    /// As the driver takes them.
    pub(crate) fn sealed(self) -> Sealed {
        Sealed { bytes: self.bytes.into(), ends: self.ends }
    }
}

/// Arguments that are complete.
#[derive(Debug)]
pub(crate) struct Sealed {
    bytes: Bytes,
    ends: Vec<usize>,
}

impl Sealed {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// As the driver takes them.
    pub(crate) fn values(&self) -> impl Iterator<Item = Value> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let value = self.bytes.slice(start..*end);
            start = *end;
            Value::Bytes(value)
        })
    }
}

/// A cursor's kind.
pub(crate) fn kind(key: &CursorKey) -> u8 {
    match key {
        CursorKey::Event => b'0',
        CursorKey::Lane(_) => b'1',
        CursorKey::Log(_) => b'2',
    }
}

/// The time by the clock that replaces the server's.
pub(crate) fn time(clock: &dyn Clock) -> i64 {
    // Later ones, a ttl after them included, would not be counted exactly.
    let last = EXACT - limits::DURATION_MS.cast_signed();
    clock.now().as_millis().clamp(-last, last)
}

/// A time to look for.
pub(crate) fn when(at: Timestamp) -> i64 {
    at.as_millis().clamp(-EXACT, EXACT)
}
