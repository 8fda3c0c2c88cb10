//! What a store answers, as lines that a test can spell out.

use a2_store_postgres::*;

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn index(index: u64) -> Index {
    Index::new(index).unwrap()
}

fn key(consumer: &Consumer, key: &CursorKey) -> String {
    match key {
        CursorKey::Event => format!("{consumer} event"),
        CursorKey::Lane(lane) => format!("{consumer} lane [{lane}]"),
        CursorKey::Log(log) => format!("{consumer} log [{log}]"),
    }
}

/// `index id type payload created_at`, and whose attempt appended it.
pub(crate) fn event(event: &Event) -> String {
    let cause = event.cause.as_ref().map(|cause| {
        let head = &cause.head;
        format!(" by {} {} {}", key(&head.consumer, &head.cursor), head.index, cause.attempt)
    });
    format!(
        "{} {} {} {} {}{}",
        event.index,
        event.id,
        event.event_type,
        event.payload.as_str(),
        event.created_at.as_millis(),
        cause.unwrap_or_default()
    )
}

pub(crate) async fn events(store: &PostgresStore, name: &str) -> Vec<String> {
    let read = store.read(&session(name), ReadRange::default()).await.unwrap();
    read.events.iter().map(event).collect()
}

/// What of a dispatch state is not empty.
fn state(state: &DispatchState) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!(" {name} {value}");
        }
    };
    let time = |at: Option<Timestamp>| at.map(|at| at.as_millis().to_string());
    let count = |n: u64| (n > 0).then(|| n.to_string());
    add("attempt", count(state.attempt_count));
    add("first", time(state.first_claimed_at));
    add("last", time(state.last_claimed_at));
    add("holder", state.claim_holder.as_ref().map(ToString::to_string));
    add("until", time(state.claim_expires_at));
    add("failures", count(state.failure_count));
    add("failed-at", time(state.last_failed_at));
    add("failed-attempt", state.last_failed_attempt.map(|n| n.to_string()));
    add("error", state.last_error.as_ref().map(|error| format!("{error:?}")));
    add("dead-at", time(state.failed_at));
    text
}

/// `consumer kind [name] position head`, and the head's state.
pub(crate) fn cursor(cursor: &Cursor) -> String {
    let head = cursor.head.map_or_else(|| "idle".to_owned(), |head| head.to_string());
    format!(
        "{} {} {head}{}",
        key(&cursor.consumer, &cursor.key),
        cursor.position,
        state(&cursor.state)
    )
}

pub(crate) async fn cursors(store: &PostgresStore, name: &str) -> Vec<String> {
    store.all_cursors(&session(name)).await.unwrap().iter().map(cursor).collect()
}

/// `consumer kind [name] index`, the event's id, and the state.
pub(crate) fn head(head: &DispatchedHead) -> String {
    let DispatchedHead { head, event, state: found, .. } = head;
    format!("{} {} {}{}", key(&head.consumer, &head.cursor), head.index, event.id, state(found))
}

pub(crate) fn head_ref(consumer: &str, key: CursorKey, at: u64) -> HeadRef {
    HeadRef::new(Consumer::new(consumer).unwrap(), key, index(at))
}

pub(crate) fn lane(name: &str) -> CursorKey {
    CursorKey::Lane(Lane::new(name).unwrap())
}

pub(crate) fn log(name: &str) -> CursorKey {
    CursorKey::Log(LogName::new(name).unwrap())
}

/// A completion that returns events of these ids.
pub(crate) fn complete(head: HeadRef, attempt: u64, ids: &[&str]) -> CompleteAttempt {
    let events = ids.iter().map(|id| NewEvent::new("t", &0).unwrap().id(*id).unwrap());
    CompleteAttempt::new(head, attempt).events(events).unwrap()
}

/// What a completion is answered.
pub(crate) fn completion(done: Result<WithClaim<Completion>>) -> String {
    match done.map(|done| done.outcome) {
        Ok(Completion::Completed(appended)) => {
            let indexes: Vec<_> = appended.events.iter().map(|event| event.index.get()).collect();
            format!("{} {indexes:?}", if appended.replayed { "replayed" } else { "completed" })
        }
        Ok(Completion::Superseded) => "superseded".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}
