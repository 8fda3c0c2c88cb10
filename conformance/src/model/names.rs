//! The small lists that a history takes its names and values from.
//!
//! Few, so that operations meet; unlike enough to show an order or a comparison that is not
//! bytewise. A lane and a log of each consumer have the same name.

use a2_core::{
    Consumer, EventType, Field, Holder, Json, Lane, LogName, Namespace, Participant, ReducerName,
    Result, SessionId, TimerKey,
};

fn pick<'a>(list: &[&'a str], n: u8) -> &'a str {
    list.get(usize::from(n) % list.len()).copied().unwrap_or_default()
}

/// How many sessions a history has.
pub(super) const SESSIONS: u8 = 3;

/// The names of one history's sessions begin with its prefix.
pub(super) fn session(prefix: &str, n: u8) -> Result<SessionId> {
    SessionId::new(format!("{prefix}{}", pick(&["a", "B", "a:"], n % SESSIONS)))
}

pub(super) fn namespace(prefix: &str) -> Result<Namespace> {
    Namespace::new(format!("{prefix}room"))
}

pub(super) fn consumer(n: u8) -> Result<Consumer> {
    Consumer::new(pick(&["b", "B", "b:"], n))
}

pub(super) fn lane(n: u8) -> Result<Lane> {
    Lane::new(pick(&["", "é"], n))
}

pub(super) fn log(n: u8) -> Result<LogName> {
    LogName::new(pick(&["", "z"], n))
}

/// How many types there are.
pub(super) const TYPES: u8 = 3;

pub(super) fn event_type(n: u8) -> Result<EventType> {
    EventType::new(pick(&["t", "T", "t "], n % TYPES))
}

pub(super) fn holder(n: u8) -> Result<Holder> {
    Holder::new(pick(&["w1", "w2"], n))
}

pub(super) fn reducer(n: u8) -> Result<ReducerName> {
    ReducerName::new(pick(&["r", "R"], n))
}

pub(super) fn timer(n: u8) -> Result<TimerKey> {
    TimerKey::new(pick(&["k", "K", "k%"], n))
}

pub(super) fn participant(n: u8) -> Result<Participant> {
    Participant::new(pick(&["p", "P"], n))
}

pub(super) fn field(n: u8) -> Result<Field> {
    Field::new(pick(&["f", "F"], n))
}

/// Texts that come back changed where JSON is taken apart and put together again.
pub(super) fn json(n: u8) -> Result<Json> {
    const TEXTS: [&str; 6] =
        ["1", "1.0", r#"{"b":[],"a":{}}"#, r#""\u0000""#, "12345678901234567890", r#"["é",null]"#];
    Json::parse(pick(&TEXTS, n))
}

pub(super) fn error(n: u8) -> &'static str {
    pick(&["boom", "", "it's \"é\"\n"], n)
}
