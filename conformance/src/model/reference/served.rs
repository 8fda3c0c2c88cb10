//! What a deployment serves, and what a log takes.

use a2_core::{Consumer, EventType, LogDeclaration, LogName, LogTypes, Served};

/// `All` filters nothing; a list serves the consumers that it names.
pub(super) fn serves(served: &Served, consumer: &Consumer) -> bool {
    served.entries().is_none_or(|entries| entries.iter().any(|e| e.consumer() == consumer))
}

/// The logs that are declared, each with its consumer. `All` declares none.
pub(super) fn declared(served: &Served) -> Vec<(Consumer, LogDeclaration)> {
    let entries = served.entries().unwrap_or_default().iter();
    entries.filter_map(|e| Some((e.consumer().clone(), e.declaration()?.clone()))).collect()
}

/// The types that the request declares for this log.
pub(super) fn declared_types(
    served: &Served,
    consumer: &Consumer,
    name: &LogName,
) -> Option<LogTypes> {
    let mut declared = declared(served).into_iter();
    declared
        .find(|(c, log)| c == consumer && log.name() == name)
        .map(|(_, l)| l.log_types().clone())
}

/// No types are all types; the clear marker is taken by none.
pub(super) fn takes(types: &LogTypes, event_type: &EventType) -> bool {
    event_type.as_str() != "a2.clear"
        && types.as_only().is_none_or(|types| types.iter().any(|t| t == event_type))
}
