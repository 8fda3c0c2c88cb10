//! What a runtime serves: its consumers, what events are appended for, and what is claimed together.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use a2_core::{
    Consumer, LogDeclaration, LogTypes, NewEvent, Result, Served, ServedConsumer, Target,
};

use crate::RetryPolicy;
use crate::consumer::{Definition, Kind};
use crate::gate::Gate;

/// The consumers, and everything that follows from them.
pub(crate) struct Registry {
    consumers: Vec<Arc<Definition>>,
    by_name: HashMap<Consumer, usize>,
    /// The group of each consumer.
    group_of: Vec<usize>,
    /// All of them, for appends and completions.
    pub(crate) served: Served,
    pub(crate) groups: Vec<Group>,
    policy: RetryPolicy,
}

/// Consumers whose heads are claimed by the same call.
///
/// One claim has one number of heads, one ttl and one length of runs: consumers that differ in these
/// are claimed apart.
pub(crate) struct Group {
    pub(crate) served: Served,
    pub(crate) ttl: Duration,
    pub(crate) run: usize,
    /// The limit of a consumer that has one of its own.
    pub(crate) gate: Option<Gate>,
}

impl Registry {
    pub(crate) fn new(
        definitions: Vec<Definition>,
        policy: RetryPolicy,
        ttl: Duration,
    ) -> Result<Self> {
        let mut entries = Vec::new();
        let mut grouped: Vec<(Group, Vec<ServedConsumer>)> = Vec::new();
        let mut group_of = Vec::new();
        for definition in &definitions {
            let entry = served(definition, definition.retry.unwrap_or(policy))?;
            entries.push(entry.clone());
            let group = Group {
                served: Served::ALL,
                ttl: definition.ttl.unwrap_or(ttl),
                run: match definition.kind {
                    Kind::Log { run, .. } => run,
                    Kind::Concurrent | Kind::Lane(_) => 1,
                },
                gate: definition.concurrency.map(Gate::new),
            };
            let same = |(g, _): &(Group, _)| {
                g.gate.is_none() && group.gate.is_none() && (g.ttl, g.run) == (group.ttl, group.run)
            };
            let place = grouped.iter().position(same).unwrap_or_else(|| {
                grouped.push((group, Vec::new()));
                grouped.len() - 1
            });
            grouped[place].1.push(entry);
            group_of.push(place);
        }
        let mut groups = Vec::new();
        for (group, entries) in grouped {
            groups.push(Group { served: Served::only(entries)?, ..group });
        }
        Ok(Self {
            by_name: definitions.iter().enumerate().map(|(i, d)| (d.name.clone(), i)).collect(),
            group_of,
            consumers: definitions.into_iter().map(Arc::new).collect(),
            served: Served::only(entries)?,
            groups,
            policy,
        })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Consumer> {
        self.by_name.keys()
    }

    pub(crate) fn get(&self, consumer: &Consumer) -> Option<&Arc<Definition>> {
        self.by_name.get(consumer).map(|&i| &self.consumers[i])
    }

    pub(crate) fn policy_of(&self, consumer: &Consumer) -> RetryPolicy {
        self.get(consumer).and_then(|definition| definition.retry).unwrap_or(self.policy)
    }

    /// The groups that may have work when these events are appended.
    pub(crate) fn groups_for(&self, events: &[NewEvent]) -> Vec<usize> {
        let mut groups: Vec<_> = self
            .consumers
            .iter()
            .zip(&self.group_of)
            .filter(|(consumer, _)| events.iter().any(|event| concerns(event, consumer)))
            .map(|(_, group)| *group)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Aims an event at the consumers that take it.
    pub(crate) fn aim(&self, mut event: NewEvent) -> Result<NewEvent> {
        for definition in &self.consumers {
            if !definition.takes(event.event_type()) {
                continue;
            }
            let name = definition.name.clone();
            event = match &definition.kind {
                Kind::Log { .. } => event,
                Kind::Concurrent => event.target(Target::event(name)?),
                Kind::Lane(lane_of) => match lane_of(&event)? {
                    Some(lane) => event.target(Target::lane(name, lane)?),
                    None => event.target(Target::event(name)?),
                },
            };
        }
        Ok(event)
    }
}

/// Whether the event is the consumer's work, by its type or because it is aimed at it.
fn concerns(event: &NewEvent, consumer: &Definition) -> bool {
    consumer.takes(event.event_type())
        || event.target_list().iter().any(|target| *target.consumer() == consumer.name)
}

fn served(definition: &Definition, policy: RetryPolicy) -> Result<ServedConsumer> {
    let entry =
        ServedConsumer::new(definition.name.clone())?.max_failures(policy.max_failures())?;
    let Kind::Log { name, backfill, .. } = &definition.kind else { return Ok(entry) };
    let types = match &definition.types {
        Some(types) => LogTypes::only(types.iter().cloned())
            .map_err(|error| error.in_field(format_args!("consumer {}", definition.name)))?,
        None => LogTypes::ALL,
    };
    let log = LogDeclaration::new(name)?.types(types);
    Ok(entry.log(if *backfill { log.backfill() } else { log }))
}
