//! Requests as the flat arrays that the functions take, several requests in one call.
//!
//! An array that says nothing is left out as a whole.

use a2_core::{ClaimAvailable, CursorKey, HeadRef, Index, NewEvent, Served};

use crate::values::{JsonText, end, int};

/// A cursor's kind.
pub(crate) const EVENT: i32 = 0;
pub(crate) const LANE: i32 = 1;
pub(crate) const LOG: i32 = 2;

pub(crate) fn kind(key: &CursorKey) -> i32 {
    match key {
        CursorKey::Event => EVENT,
        CursorKey::Lane(_) => LANE,
        CursorKey::Log(_) => LOG,
    }
}

pub(crate) fn index(index: Index) -> i64 {
    int(index.get())
}

/// What a deployment serves. One for all requests of a call.
#[derive(Default)]
pub(crate) struct ServedArgs<'a> {
    /// None: everybody.
    pub(crate) consumer: Option<Vec<&'a str>>,
    pub(crate) budget: Option<Vec<Option<i64>>>,
    pub(crate) log: Option<Vec<Option<&'a str>>>,
    pub(crate) backfill: Option<Vec<bool>>,
    pub(crate) types_end: Option<Vec<i32>>,
    pub(crate) types: Option<Vec<&'a str>>,
}

impl<'a> ServedArgs<'a> {
    pub(crate) fn new(served: &'a Served) -> Self {
        let Some(entries) = served.entries() else { return Self::default() };
        let mut args = Self {
            consumer: Some(entries.iter().map(|entry| entry.consumer().as_str()).collect()),
            ..Self::default()
        };
        if entries.iter().any(|entry| entry.failure_budget().is_some()) {
            args.budget = Some(entries.iter().map(|e| e.failure_budget().map(int)).collect());
        }
        if entries.iter().any(|entry| entry.declaration().is_some()) {
            let (mut types, mut ends) = (Vec::new(), Vec::with_capacity(entries.len()));
            let declared = || entries.iter().map(|entry| entry.declaration());
            for log in declared() {
                let only = log.and_then(|log| log.log_types().as_only()).unwrap_or_default();
                types.extend(only.iter().map(|event_type| event_type.as_str()));
                ends.push(end(types.len()));
            }
            args.log = Some(declared().map(|log| log.map(|log| log.name().as_str())).collect());
            args.backfill =
                Some(declared().map(|log| log.is_some_and(|l| l.is_backfill())).collect());
            (args.types_end, args.types) = (Some(ends), Some(types));
        }
        args
    }
}

/// The events of several requests.
#[derive(Default)]
pub(crate) struct EventArgs<'a> {
    pub(crate) end: Vec<i32>,
    pub(crate) id: Vec<&'a str>,
    pub(crate) event_type: Vec<&'a str>,
    pub(crate) payload: Vec<JsonText<'a>>,
    pub(crate) size: Vec<i32>,
    pub(crate) target_end: Vec<i32>,
    pub(crate) target_event: Vec<i32>,
    pub(crate) target_consumer: Vec<&'a str>,
    pub(crate) target_lane: Vec<Option<&'a str>>,
}

impl<'a> EventArgs<'a> {
    /// The next request's events.
    pub(crate) fn push(&mut self, events: &'a [NewEvent]) {
        for event in events {
            // Every event of a request that could be built has an id.
            self.id.push(event.event_id().map_or("", |id| id.as_str()));
            self.event_type.push(event.event_type().as_str());
            self.payload.push(JsonText(event.payload().as_str()));
            self.size.push(end(event.payload().byte_len()));
            for target in event.target_list() {
                self.target_event.push(end(self.id.len()));
                self.target_consumer.push(target.consumer().as_str());
                self.target_lane.push(target.lane_name().map(|lane| lane.as_str()));
            }
        }
        self.end.push(end(self.id.len()));
        self.target_end.push(end(self.target_event.len()));
    }

    /// The targets, if there are any: their ends, events, consumers and lanes.
    pub(crate) fn targets(&mut self) -> Targets<'a> {
        if self.target_event.is_empty() {
            return Targets::default();
        }
        Targets {
            end: Some(std::mem::take(&mut self.target_end)),
            event: Some(std::mem::take(&mut self.target_event)),
            consumer: Some(std::mem::take(&mut self.target_consumer)),
            lane: Some(std::mem::take(&mut self.target_lane)),
        }
    }
}

/// What events are appended for.
#[derive(Default)]
pub(crate) struct Targets<'a> {
    pub(crate) end: Option<Vec<i32>>,
    pub(crate) event: Option<Vec<i32>>,
    pub(crate) consumer: Option<Vec<&'a str>>,
    pub(crate) lane: Option<Vec<Option<&'a str>>>,
}

/// Heads, one for each request or flat for several.
#[derive(Default)]
pub(crate) struct HeadArgs<'a> {
    pub(crate) consumer: Vec<&'a str>,
    pub(crate) kind: Vec<i32>,
    pub(crate) name: Vec<&'a str>,
    pub(crate) idx: Vec<i64>,
    pub(crate) attempt: Vec<i64>,
}

impl<'a> HeadArgs<'a> {
    pub(crate) fn push(&mut self, head: &'a HeadRef, attempt: u64) {
        self.consumer.push(head.consumer.as_str());
        self.kind.push(kind(&head.cursor));
        self.name.push(head.cursor.name());
        self.idx.push(index(head.index));
        self.attempt.push(int(attempt));
    }
}

/// The claims of several requests, some of which may claim nothing.
#[derive(Default)]
pub(crate) struct ClaimArgs<'a> {
    pub(crate) holder: Vec<Option<&'a str>>,
    pub(crate) ttl: Vec<Option<i64>>,
    pub(crate) limit: Vec<Option<i32>>,
    pub(crate) max_failures: Vec<Option<i64>>,
    pub(crate) through: Vec<Option<i64>>,
    pub(crate) run: Vec<Option<i32>>,
    excluded_end: Vec<i32>,
    excluded_consumer: Vec<&'a str>,
    excluded_kind: Vec<i32>,
    excluded_name: Vec<&'a str>,
    excluded_idx: Vec<i64>,
}

impl<'a> ClaimArgs<'a> {
    pub(crate) fn push(&mut self, claim: Option<&'a ClaimAvailable>) {
        self.holder.push(claim.map(|claim| claim.holder().as_str()));
        self.ttl.push(claim.map(|claim| int(claim.ttl().as_millis())));
        self.limit.push(claim.map(|claim| end(claim.max_heads())));
        self.max_failures.push(claim.and_then(|claim| claim.budget()).map(int));
        self.through
            .push(claim.map(|claim| claim.end()).filter(|end| *end < Index::MAX).map(index));
        self.run.push(claim.map(|claim| end(claim.max_run())));
        for cursor in claim.iter().flat_map(|claim| claim.excluded()) {
            self.excluded_consumer.push(cursor.consumer().as_str());
            self.excluded_kind.push(kind(cursor.key()));
            self.excluded_name.push(cursor.key().name());
            self.excluded_idx.push(cursor.event_index().map_or(0, index));
        }
        self.excluded_end.push(end(self.excluded_consumer.len()));
    }

    /// Whether none of the requests claims.
    pub(crate) fn is_empty(&self) -> bool {
        self.holder.iter().all(Option::is_none)
    }

    /// The exclusions, if there are any.
    pub(crate) fn excluded(&mut self) -> Excluded<'a> {
        if self.excluded_consumer.is_empty() {
            return Excluded::default();
        }
        Excluded {
            end: Some(std::mem::take(&mut self.excluded_end)),
            consumer: Some(std::mem::take(&mut self.excluded_consumer)),
            kind: Some(std::mem::take(&mut self.excluded_kind)),
            name: Some(std::mem::take(&mut self.excluded_name)),
            idx: Some(std::mem::take(&mut self.excluded_idx)),
        }
    }
}

/// The cursors that claims leave out.
#[derive(Default)]
pub(crate) struct Excluded<'a> {
    pub(crate) end: Option<Vec<i32>>,
    pub(crate) consumer: Option<Vec<&'a str>>,
    pub(crate) kind: Option<Vec<i32>>,
    pub(crate) name: Option<Vec<&'a str>>,
    pub(crate) idx: Option<Vec<i64>>,
}

#[cfg(test)]
mod tests {
    use a2_core::{Consumer, EventType, LogDeclaration, LogTypes, ServedConsumer, Target};

    use super::*;

    #[test]
    fn what_is_served_has_one_entry_for_each_consumer() {
        let all = ServedArgs::new(&Served::ALL);
        assert!(all.consumer.is_none() && all.log.is_none() && all.budget.is_none());
        let nobody = Served::only([]).unwrap();
        assert_eq!(ServedArgs::new(&nobody).consumer, Some(vec![]));

        let types = LogTypes::only(["b", "a"].map(|t| EventType::new(t).unwrap())).unwrap();
        let log = LogDeclaration::new("l").unwrap().types(types).backfill();
        let served = Served::only([
            ServedConsumer::new("x").unwrap(),
            ServedConsumer::new("y").unwrap().log(log).max_failures(3).unwrap(),
            ServedConsumer::new("z").unwrap().log(LogDeclaration::new("").unwrap()),
        ])
        .unwrap();
        let args = ServedArgs::new(&served);
        assert_eq!(args.consumer, Some(vec!["x", "y", "z"]));
        assert_eq!(args.budget, Some(vec![None, Some(3), None]));
        assert_eq!(args.log, Some(vec![None, Some("l"), Some("")]));
        assert_eq!(args.backfill, Some(vec![false, true, false]));
        assert_eq!(args.types_end, Some(vec![0, 2, 2]));
        assert_eq!(args.types, Some(vec!["a", "b"]));
    }

    #[test]
    fn events_of_several_requests_stand_in_flat_arrays() {
        let event = |id: &str| NewEvent::new("t", &1).unwrap().id(id).unwrap();
        let lane = Target::lane("c", "l").unwrap();
        let first = [event("a"), event("b").target(lane).target(Target::event("c").unwrap())];
        let third = [event("d").target(Target::event("e").unwrap())];
        let mut args = EventArgs::default();
        args.push(&first);
        args.push(&[]);
        args.push(&third);
        assert_eq!((args.id.clone(), args.end.clone()), (vec!["a", "b", "d"], vec![2, 2, 3]));
        let targets = args.targets();
        assert_eq!(targets.end, Some(vec![2, 2, 3]));
        assert_eq!(targets.event, Some(vec![2, 2, 3]));
        assert_eq!(targets.consumer, Some(vec!["c", "c", "e"]));
        assert_eq!(targets.lane, Some(vec![None, Some("l"), None]));

        let mut none = EventArgs::default();
        none.push(&first[..1]);
        assert!(none.targets().end.is_none());
    }

    #[test]
    fn a_request_that_claims_nothing_has_its_place() {
        let consumer = Consumer::new("c").unwrap();
        let claim = ClaimAvailable::new("w", std::time::Duration::from_secs(1)).unwrap();
        let claim = claim
            .exclude([a2_core::CursorRef::event(consumer, Index::from(7))])
            .unwrap()
            .max_failures(2)
            .unwrap();
        let mut args = ClaimArgs::default();
        args.push(None);
        assert!(args.is_empty());
        args.push(Some(&claim));
        assert!(!args.is_empty());
        assert_eq!(args.holder, [None, Some("w")]);
        assert_eq!(
            (args.ttl.clone(), args.max_failures.clone()),
            (vec![None, Some(1_000)], vec![None, Some(2)])
        );
        let excluded = args.excluded();
        assert_eq!((excluded.end, excluded.kind), (Some(vec![0, 1]), Some(vec![0])));
        assert_eq!((excluded.name, excluded.idx), (Some(vec![""]), Some(vec![7])));
    }
}
