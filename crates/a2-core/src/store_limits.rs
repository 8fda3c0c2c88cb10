//! What one store takes: as much as the model allows, or less.
//!
//! The absolute limits are checked by the same functions when a value or a request is made; lower
//! ones when a store is asked, before it does anything else.

use crate::event::NewEvent;
use crate::request::{
    Append, CompleteAttempt, PresenceUpdate, PutSnapshots, Schedule, checked_count,
};
use crate::{Error, Json, Result, limits};

macro_rules! store_limits {
    ($($(#[$what:meta])+ $limit:ident, $most:ident: $absolute:expr;)+) => {
        /// How much a store takes at once. The [absolute limits](crate::limits) by default; a store can
        /// be given lower ones where it is made.
        ///
        /// What is above them is refused with `INVALID_INPUT`, naming the field and the rule, before
        /// anything else is looked at: also a request that was done before, while the limits were
        /// higher, is refused when it is sent again. They bound what is *given* to a store. What is
        /// stored already is read, claimed, handed out and, if it is a timer, fired as it is; the
        /// marker of a clear is always written. Each handle judges what is given to it: stores that
        /// share their data should share their limits.
        ///
        /// The limits that are not here stay as they are: the length of names, since what has a long
        /// name could not be asked for any more; the depth of JSON, which is known only while the text
        /// is parsed; served lists, claims, renewals and pages, which are asked for and not stored; pins,
        /// which name heads that are stored; an error's text, which is cut and never refused.
        ///
        /// ```
        /// use a2_core::{Append, NewEvent, StoreLimits};
        ///
        /// let limits = StoreLimits::new().json_bytes(64 * 1024)?.batch_events(100)?;
        /// let large = Append::one(NewEvent::new("note", &"x".repeat(100_000))?)?;
        /// let error = limits.check_append(&large).unwrap_err();
        /// assert_eq!(error.to_string(), "events[0].payload: must be at most 65536 bytes");
        /// # Ok::<(), a2_core::Error>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct StoreLimits {
            $($limit: usize,)+
            // So that a store without limits of its own is asked one question.
            is_lowered: bool,
        }

        impl StoreLimits {
            /// The limits that no store goes above.
            pub const ABSOLUTE: Self = Self { $($limit: $absolute,)+ is_lowered: false };

            $(
                $(#[$what])+
                ///
                /// # Errors
                /// `INVALID_INPUT` for zero, and for more than the absolute limit.
                pub fn $limit(mut self, most: usize) -> Result<Self> {
                    self.$limit = checked_count(stringify!($limit), most, $absolute)?;
                    self.is_lowered = false;
                    self.is_lowered = self != Self::ABSOLUTE;
                    Ok(self)
                }

                $(#[$what])+
                #[must_use]
                pub fn $most(&self) -> usize {
                    self.$limit
                }
            )+
        }
    };
}

store_limits! {
    /// Longest payload or state, in bytes of JSON text without insignificant white space.
    json_bytes, max_json_bytes: limits::JSON_BYTES;
    /// Most events in one append or completion.
    batch_events, max_batch_events: limits::BATCH_EVENTS;
    /// Most targets in one append or completion.
    batch_targets, max_batch_targets: limits::BATCH_TARGETS;
    /// Most targets of one event.
    event_targets, max_event_targets: limits::EVENT_TARGETS;
    /// Most bytes together: of names and payloads in one append or completion, of names and payload of
    /// one timer, of states in one call that keeps snapshots.
    batch_bytes, max_batch_bytes: limits::BATCH_BYTES;
    /// Most snapshots that one call keeps; those of one index count once.
    snapshot_writes, max_snapshot_writes: limits::SNAPSHOT_WRITES;
    /// Most fields in one presence write.
    presence_fields, max_presence_fields: limits::PRESENCE_FIELDS;
    /// Longest presence value, in bytes of JSON text.
    presence_value_bytes, max_presence_value_bytes: limits::PRESENCE_VALUE_BYTES;
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self::ABSOLUTE
    }
}

/// What backends ask, first of all.
impl StoreLimits {
    /// The absolute limits, to lower some of them.
    #[must_use]
    pub fn new() -> Self {
        Self::ABSOLUTE
    }

    /// For backends: that an append is within the limits.
    ///
    /// # Errors
    /// `INVALID_INPUT`, naming the field and the rule.
    #[inline]
    pub fn check_append(&self, append: &Append) -> Result<()> {
        if self.is_lowered { self.check_batch(append.events()) } else { Ok(()) }
    }

    /// For backends: that what a completion returns is within the limits.
    ///
    /// # Errors
    /// `INVALID_INPUT`, naming the field and the rule.
    #[inline]
    pub fn check_complete(&self, complete: &CompleteAttempt) -> Result<()> {
        if self.is_lowered { self.check_batch(complete.returned()) } else { Ok(()) }
    }

    /// For backends: that a timer's event is within the limits.
    ///
    /// # Errors
    /// `INVALID_INPUT`, naming the field and the rule.
    #[inline]
    pub fn check_schedule(&self, timer: &Schedule) -> Result<()> {
        if self.is_lowered { self.check_timer(timer.event()) } else { Ok(()) }
    }

    /// For backends: that snapshots are within the limits.
    ///
    /// # Errors
    /// `INVALID_INPUT`, naming the field and the rule.
    pub fn check_snapshots(&self, put: &PutSnapshots) -> Result<()> {
        if !self.is_lowered {
            return Ok(());
        }
        let writes = put.writes();
        for (i, write) in writes.iter().enumerate() {
            self.check_json(write.state(), || format!("writes[{i}].state"))?;
        }
        let bytes = writes.iter().map(|write| write.state().byte_len()).sum();
        self.check_writes(writes.len(), bytes)
    }

    /// For backends: that a presence write is within the limits.
    ///
    /// # Errors
    /// `INVALID_INPUT`, naming the field and the rule.
    pub fn check_presence(&self, update: &PresenceUpdate) -> Result<()> {
        if !self.is_lowered {
            return Ok(());
        }
        self.check_presence_fields(update.fields().len())?;
        update.fields().values().flatten().try_for_each(|value| self.check_presence_value(value))
    }
}

/// What the absolute limits and lower ones have in common.
impl StoreLimits {
    pub(crate) fn check_batch(&self, events: &[NewEvent]) -> Result<()> {
        self.check_batch_events(events.len())?;
        let (mut targets, mut bytes) = (0, 0);
        for (i, event) in events.iter().enumerate() {
            self.check_json(event.payload(), || format!("events[{i}].payload"))?;
            let here = event.target_list().len();
            at_most(here, self.event_targets, || format!("events[{i}].targets"))?;
            targets += here;
            bytes += event.byte_len();
        }
        if targets > self.batch_targets {
            let rule = format!("must have at most {} targets in one batch", self.batch_targets);
            return Err(Error::invalid("events", rule));
        }
        if bytes > self.batch_bytes {
            let rule = format!("must have at most {} bytes in one batch", self.batch_bytes);
            return Err(Error::invalid("events", rule));
        }
        Ok(())
    }

    pub(crate) fn check_batch_events(&self, count: usize) -> Result<()> {
        if count > self.batch_events {
            let rule = format!("must be at most {} in one batch", self.batch_events);
            return Err(Error::invalid("events", rule));
        }
        Ok(())
    }

    /// A timer's event is a batch of its own.
    pub(crate) fn check_timer(&self, event: &NewEvent) -> Result<()> {
        self.check_json(event.payload(), || "event.payload".to_owned())?;
        let targets = self.event_targets.min(self.batch_targets);
        at_most(event.target_list().len(), targets, || "event.targets".to_owned())?;
        if event.byte_len() > self.batch_bytes {
            let rule = format!("must have at most {} bytes", self.batch_bytes);
            return Err(Error::invalid("event", rule));
        }
        Ok(())
    }

    pub(crate) fn check_writes(&self, count: usize, bytes: usize) -> Result<()> {
        at_most(count, self.snapshot_writes, || "writes".to_owned())?;
        if bytes > self.batch_bytes {
            let rule = format!("must have at most {} bytes of state", self.batch_bytes);
            return Err(Error::invalid("writes", rule));
        }
        Ok(())
    }

    pub(crate) fn check_presence_fields(&self, count: usize) -> Result<()> {
        at_most(count, self.presence_fields, || "fields".to_owned())
    }

    pub(crate) fn check_presence_value(&self, value: &Json) -> Result<()> {
        bytes_at_most(value, self.presence_value_bytes, || "value".to_owned())
    }

    fn check_json(&self, json: &Json, field: impl FnOnce() -> String) -> Result<()> {
        bytes_at_most(json, self.json_bytes, field)
    }
}

#[inline]
fn at_most(count: usize, most: usize, field: impl FnOnce() -> String) -> Result<()> {
    if count <= most {
        return Ok(());
    }
    Err(Error::invalid(field(), format!("must be at most {most}")))
}

#[inline]
fn bytes_at_most(json: &Json, most: usize, field: impl FnOnce() -> String) -> Result<()> {
    if json.byte_len() <= most {
        return Ok(());
    }
    Err(Error::invalid(field(), format!("must be at most {most} bytes")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Consumer, CursorKey, HeadRef, Index, SnapshotWrite, Target};

    fn event(id: &str, text: &str) -> NewEvent {
        NewEvent::new("t", text).unwrap().id(id).unwrap()
    }

    fn lanes(n: usize) -> impl Iterator<Item = Target> {
        (0..n).map(|i| Target::lane("c", format!("l{i}").as_str()).unwrap())
    }

    fn append(events: impl IntoIterator<Item = NewEvent>) -> Append {
        Append::new(events).unwrap()
    }

    fn said(result: Result<()>) -> String {
        result.map_or_else(|error| format!("{} {error}", error.code()), |()| "fits".to_owned())
    }

    #[test]
    fn limits_are_lowered_and_never_raised() {
        let limits = StoreLimits::new();
        for (field, zero, above) in [
            ("json_bytes: must be 1 to 16777216", limits.json_bytes(0), limits.json_bytes(1 << 25)),
            (
                "batch_events: must be 1 to 10000",
                limits.batch_events(0),
                limits.batch_events(10_001),
            ),
            (
                "batch_targets: must be 1 to 20000",
                limits.batch_targets(0),
                limits.batch_targets(20_001),
            ),
            ("event_targets: must be 1 to 100", limits.event_targets(0), limits.event_targets(101)),
            (
                "batch_bytes: must be 1 to 67108864",
                limits.batch_bytes(0),
                limits.batch_bytes(1 << 27),
            ),
            (
                "snapshot_writes: must be 1 to 100",
                limits.snapshot_writes(0),
                limits.snapshot_writes(101),
            ),
            (
                "presence_fields: must be 1 to 64",
                limits.presence_fields(0),
                limits.presence_fields(65),
            ),
            (
                "presence_value_bytes: must be 1 to 65536",
                limits.presence_value_bytes(0),
                limits.presence_value_bytes(65_537),
            ),
        ] {
            for refused in [zero, above] {
                let error = refused.unwrap_err();
                assert_eq!((error.code(), error.to_string()), ("INVALID_INPUT", field.to_owned()));
            }
        }
        let lowered = limits.json_bytes(100).unwrap();
        assert_eq!((lowered.max_json_bytes(), lowered.max_batch_events()), (100, 10_000));
        assert_ne!(lowered, limits);
        // Back at the absolute limit it is as if it had never been lowered.
        assert_eq!(lowered.json_bytes(limits::JSON_BYTES).unwrap(), StoreLimits::default());
    }

    #[test]
    fn each_limit_of_a_batch_names_its_field_and_rule() {
        let limits = StoreLimits::new();
        let json = limits.json_bytes(10).unwrap();
        assert_eq!(said(json.check_append(&append([event("a", "12345678")]))), "fits");
        assert_eq!(
            said(json.check_append(&append([event("a", ""), event("b", "123456789")]))),
            "INVALID_INPUT events[1].payload: must be at most 10 bytes"
        );
        let events = limits.batch_events(2).unwrap();
        assert_eq!(said(events.check_append(&append([event("a", ""), event("b", "")]))), "fits");
        assert_eq!(
            said(events.check_append(&append(["a", "b", "c"].map(|id| event(id, ""))))),
            "INVALID_INPUT events: must be at most 2 in one batch"
        );
        let of_one = limits.event_targets(2).unwrap();
        assert_eq!(said(of_one.check_append(&append([event("a", "").targets(lanes(2))]))), "fits");
        assert_eq!(
            said(of_one.check_append(&append([event("a", ""), event("b", "").targets(lanes(3))]))),
            "INVALID_INPUT events[1].targets: must be at most 2"
        );
        let of_all = limits.batch_targets(3).unwrap();
        let two = |n| append([event("a", "").targets(lanes(2)), event("b", "").targets(lanes(n))]);
        assert_eq!(said(of_all.check_append(&two(1))), "fits");
        assert_eq!(
            said(of_all.check_append(&two(2))),
            "INVALID_INPUT events: must have at most 3 targets in one batch"
        );
        // An id and a type of one byte each, two quotes, the text, a target of three bytes.
        let bytes = limits.batch_bytes(20).unwrap();
        let of = |text| append([event("a", text).targets(lanes(1)), event("b", "1234")]);
        assert_eq!(said(bytes.check_append(&of("12345"))), "fits");
        assert_eq!(
            said(bytes.check_append(&of("123456"))),
            "INVALID_INPUT events: must have at most 20 bytes in one batch"
        );
    }

    #[test]
    fn completions_and_timers_are_held_to_those_of_a_batch() {
        let limits = StoreLimits::new().json_bytes(10).unwrap().batch_targets(1).unwrap();
        let limits = limits.batch_bytes(15).unwrap();
        let head = HeadRef::new(Consumer::new("c").unwrap(), CursorKey::Event, Index::from(1));
        let complete = |event| CompleteAttempt::new(head.clone(), 1).events([event]).unwrap();
        assert_eq!(said(limits.check_complete(&complete(event("a", "1234")))), "fits");
        assert_eq!(
            said(limits.check_complete(&complete(event("a", "123456789")))),
            "INVALID_INPUT events[0].payload: must be at most 10 bytes"
        );
        let timer = |event| Schedule::new("k", Duration::ZERO, event).unwrap();
        assert_eq!(
            said(limits.check_schedule(&timer(event("a", "1234").targets(lanes(1))))),
            "fits"
        );
        assert_eq!(
            said(limits.check_schedule(&timer(event("a", "123456789")))),
            "INVALID_INPUT event.payload: must be at most 10 bytes"
        );
        assert_eq!(
            said(limits.check_schedule(&timer(event("a", "").targets(lanes(2))))),
            "INVALID_INPUT event.targets: must be at most 1"
        );
        assert_eq!(
            said(limits.check_schedule(&timer(event("0123456", "12345678")))),
            "INVALID_INPUT event: must have at most 15 bytes"
        );
    }

    #[test]
    fn snapshots_and_presence_have_limits_too() {
        let limits = StoreLimits::new().json_bytes(10).unwrap().batch_bytes(15).unwrap();
        let limits = limits.snapshot_writes(2).unwrap();
        let put = |states: &[&str]| {
            let write = |(index, text): (u32, &&str)| {
                SnapshotWrite::new(Index::from(index), Json::from_serialize(text).unwrap())
            };
            PutSnapshots::new((1..).zip(states).map(write)).unwrap()
        };
        assert_eq!(said(limits.check_snapshots(&put(&["12345", "123456"]))), "fits");
        assert_eq!(
            said(limits.check_snapshots(&put(&["", "123456789"]))),
            "INVALID_INPUT writes[1].state: must be at most 10 bytes"
        );
        assert_eq!(
            said(limits.check_snapshots(&put(&["", "", ""]))),
            "INVALID_INPUT writes: must be at most 2"
        );
        assert_eq!(
            said(limits.check_snapshots(&put(&["123456", "123456"]))),
            "INVALID_INPUT writes: must have at most 15 bytes of state"
        );

        let limits = StoreLimits::new().presence_fields(2).unwrap();
        let limits = limits.presence_value_bytes(5).unwrap();
        let update = || PresenceUpdate::new("p", Duration::from_secs(1)).unwrap();
        let set = |field: &str, text: &str| {
            update().set(field, Json::from_serialize(text).unwrap()).unwrap()
        };
        assert_eq!(said(limits.check_presence(&set("f", "123").remove("g").unwrap())), "fits");
        assert_eq!(
            said(limits.check_presence(&set("f", "1234"))),
            "INVALID_INPUT value: must be at most 5 bytes"
        );
        let three = set("f", "").remove("g").unwrap().remove("h").unwrap();
        assert_eq!(said(limits.check_presence(&three)), "INVALID_INPUT fields: must be at most 2");
    }
}
