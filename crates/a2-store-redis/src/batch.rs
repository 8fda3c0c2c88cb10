//! What is appended and what is served, as `lua/lib/batch.lua` takes it: by columns, so that a script hands
//! most of it on without looking at each event.

use std::collections::HashMap;
use std::hash::Hash;

use a2_core::{Cause, CursorKey, HeadRef, NewEvent, Served, ServedConsumer};

use crate::args::Args;

/// A longer payload is a key of its own; `lua/lib/log.lua` has the same number.
const BIG: usize = 32_768;
/// The arguments of every script that stand before its own.
const PRELUDE: usize = 3;
/// That many of a kind are looked through one by one.
const FEW: usize = 16;
/// All of the events.
const ALL: u8 = b'*';

/// Events, who they are for, and what is served.
pub(crate) struct Batch<'a> {
    events: &'a [NewEvent],
    served: Option<&'a [ServedConsumer]>,
    head: Option<&'a HeadRef>,
    /// The cause of all events.
    cause: Option<&'a Cause>,
    consumers: Numbers<&'a str>,
    lanes: Numbers<(&'a str, &'a str)>,
    singles: Numbers<&'a str>,
    types: Numbers<&'a str>,
    causes: Vec<&'a Cause>,
}

/// Things in the order in which they come, and where each comes: the places of events, from 1 on.
struct Numbers<T> {
    things: Vec<(T, Vec<u16>)>,
    numbers: HashMap<T, usize>,
}

impl<T: Copy + Eq + Hash> Numbers<T> {
    fn new() -> Self {
        Self { things: Vec::new(), numbers: HashMap::new() }
    }

    /// The place of a thing, which is added if it is new.
    fn number(&mut self, thing: T) -> usize {
        let found = match self.things.len() {
            0..=FEW => self.things.iter().position(|(known, _)| *known == thing),
            _ => self.numbers.get(&thing).copied(),
        };
        if let Some(found) = found {
            return found;
        }
        let number = self.things.len();
        self.things.push((thing, Vec::new()));
        if self.things.len() == FEW + 1 {
            let all = self.things.iter().enumerate();
            self.numbers = all.map(|(number, (thing, _))| (*thing, number)).collect();
        } else if self.things.len() > FEW {
            self.numbers.insert(thing, number);
        }
        number
    }

    fn add(&mut self, thing: T, event: u16) {
        let number = self.number(thing);
        if let Some((_, events)) = self.things.get_mut(number) {
            events.push(event);
        }
    }

    fn len(&self) -> u32 {
        count(self.things.len())
    }
}

/// A number of things; no request has so many that it does not fit.
fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl<'a> Batch<'a> {
    pub(crate) fn new(events: &'a [NewEvent], served: &'a Served) -> Self {
        Self::of(events, served, None, None)
    }

    /// What the completion of this head returns; its attempt is the cause.
    pub(crate) fn of(
        events: &'a [NewEvent],
        served: &'a Served,
        head: Option<&'a HeadRef>,
        cause: Option<&'a Cause>,
    ) -> Self {
        let mut batch = Self {
            events,
            served: served.entries(),
            head,
            cause,
            consumers: Numbers::new(),
            lanes: Numbers::new(),
            singles: Numbers::new(),
            types: Numbers::new(),
            causes: Vec::new(),
        };
        for entry in batch.served.unwrap_or_default() {
            batch.consumers.number(entry.consumer().as_str());
        }
        if let Some(head) = head {
            batch.consumers.number(head.consumer.as_str());
            if let CursorKey::Lane(lane) = &head.cursor {
                batch.lanes.number((head.consumer.as_str(), lane.as_str()));
            }
        }
        for (event, place) in events.iter().zip(1..) {
            batch.event(event, place);
        }
        batch
    }

    fn event(&mut self, event: &'a NewEvent, place: u16) {
        self.types.add(event.event_type().as_str(), place);
        for target in event.target_list() {
            let consumer = target.consumer().as_str();
            self.consumers.number(consumer);
            match target.lane_name() {
                Some(lane) => self.lanes.add((consumer, lane.as_str()), place),
                None => self.singles.add(consumer, place),
            }
        }
        if self.cause.is_none()
            && let Some(cause) = event.event_cause()
            && !self.causes.contains(&cause)
        {
            self.causes.push(cause);
        }
    }

    /// Writes it, with the operation's own arguments, of which there are so many.
    pub(crate) fn write(mut self, args: &mut Args, own: usize, write_own: impl FnOnce(&mut Args)) {
        let logs: Vec<_> = self
            .served
            .unwrap_or_default()
            .iter()
            .filter_map(|entry| Some((entry.consumer(), entry.declaration()?)))
            .collect();
        let is_big = |event: &NewEvent| event.payload().as_str().len() > BIG;
        let big = self.events.iter().filter(|event| is_big(event)).count();
        let of_head = self.head.map_or(0, |head| self.consumer(head.consumer.as_str()));
        args.numbers([
            count(PRELUDE + 1 + own + 1),
            count(self.events.len()),
            self.lanes.len(),
            self.consumers.len(),
            self.types.len(),
            self.singles.len(),
            count(logs.len()),
            count(big),
            count(self.causes.len()),
            self.served.map_or(u32::MAX, |served| count(served.len())),
            of_head.into(),
        ]);
        write_own(args);
        for event in self.events {
            // Every event of a request that could be built has an id.
            args.parts([b"i", event.event_id().map_or("", |id| id.as_str()).as_bytes()]);
        }
        for ((consumer, lane), _) in &self.lanes.things {
            args.parts([b"n", consumer.as_bytes(), b"\0", lane.as_bytes()]);
        }
        for (consumer, _) in &self.consumers.things {
            args.parts([b"s", consumer.as_bytes()]);
        }
        if let Some(head) = self.head {
            args.queued(head);
        }
        for event in self.events {
            let cause = self.cause.or(event.event_cause());
            args.entry(event, cause, !is_big(event));
        }
        for (name, events) in &self.types.things {
            args.push(name);
            self.which(args, None, events);
        }
        let lanes = std::mem::take(&mut self.lanes.things);
        for ((consumer, _), events) in &lanes {
            let consumer = self.consumer(consumer);
            self.which(args, Some(consumer), events);
        }
        let singles = std::mem::take(&mut self.singles.things);
        for (consumer, events) in &singles {
            let consumer = self.consumer(consumer);
            self.which(args, Some(consumer), events);
        }
        for (event, place) in self.events.iter().zip(1_u32..).filter(|(event, _)| is_big(event)) {
            args.parts([&place.to_be_bytes()[..], event.payload().as_str().as_bytes()]);
        }
        for cause in &self.causes {
            args.cause(Some(cause));
        }
        for (consumer, log) in logs {
            args.push(consumer.as_str());
            args.push(log.name().as_str());
            args.flag(log.is_backfill());
            args.types(log.log_types());
        }
    }

    /// The number of a consumer, from 1 on.
    fn consumer(&mut self, consumer: &'a str) -> u16 {
        u16::try_from(self.consumers.number(consumer) + 1).unwrap_or(u16::MAX)
    }

    /// Which of the events.
    fn which(&self, args: &mut Args, consumer: Option<u16>, events: &[u16]) {
        let of = consumer.map(u16::to_be_bytes);
        let of = of.as_ref().map_or(&[][..], |of| &of[..]);
        if !events.is_empty() && events.len() == self.events.len() {
            args.parts([of, &[ALL]]);
        } else {
            let events: Vec<u8> = events.iter().flat_map(|event| event.to_be_bytes()).collect();
            args.parts([of, &events]);
        }
    }
}
