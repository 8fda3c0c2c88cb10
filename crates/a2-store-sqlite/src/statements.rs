//! The SQL: one file for each statement in `sql/sqlite`, with a header that says what it does, what
//! it takes and what it answers.

/// The statement without its header, which would only make the key of the statement cache longer.
const fn body(text: &'static str) -> &'static str {
    let bytes = text.as_bytes();
    let mut start = 0;
    while start + 1 < bytes.len() && bytes[start] == b'-' && bytes[start + 1] == b'-' {
        while start < bytes.len() && bytes[start] != b'\n' {
            start += 1;
        }
        start += 1;
    }
    text.split_at(start).1.trim_ascii()
}

macro_rules! statements {
    ($($name:ident = $file:literal,)*) => {
        $(pub(crate) const $name: &str = body(include_str!(concat!("../sql/", $file, ".sql")));)*

        /// Every statement with the name of its file.
        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$(($file, $name),)*];
    };
}

/// The migrations, in order: the first makes version 1.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("../sql/schema/0001-initial.sql")];

pub(crate) const BEGIN_READ: &str = "begin";
pub(crate) const BEGIN_WRITE: &str = "begin immediate";
pub(crate) const COMMIT: &str = "commit";
pub(crate) const ROLLBACK: &str = "rollback";

statements! {
    CHANGE_ADD = "change_add",
    CHANGE_TRIM = "change_trim",
    CHANGES_LAST = "changes_last",
    CHANGES_SINCE = "changes_since",
    CURSOR_SEEK = "cursor_seek",
    DEAD_CONSUMER = "dead_consumer",
    DUE_NEXT = "due_next",
    DUE_SESSIONS = "due_sessions",
    EVENT_ADD = "event_add",
    EVENT_GET = "event_get",
    EVENT_NEXT_OF_TYPE = "event_next_of_type",
    EVENT_OWNER = "event_owner",
    EVENT_RANGE = "event_range",
    EVENTS_DEAD = "events_dead",
    EVENTS_FREE = "events_free",
    EVENTS_HELD = "events_held",
    EVENTS_LAST = "events_last",
    EVENTS_SINCE = "events_since",
    HEAD_ADD = "head_add",
    HEAD_GET = "head_get",
    HEAD_REMOVE = "head_remove",
    HEAD_STATUS = "head_status",
    HEAD_UPDATE = "head_update",
    HEADS_DEAD = "heads_dead",
    HEADS_FREE = "heads_free",
    HEADS_HELD = "heads_held",
    LANE_LAST = "lane_last",
    LANE_NEXT = "lane_next",
    LIVE_CONSUMER = "live_consumer",
    LIVE_OF = "live_of",
    LIVE_SESSION = "live_session",
    LOG_GET = "log_get",
    LOG_PUT = "log_put",
    LOGS_PAGE = "logs_page",
    PIN_ADD = "pin_add",
    PIN_EXISTS = "pin_exists",
    PINNER_SEEK = "pinner_seek",
    PINS_OF = "pins_of",
    PINS_REMOVE = "pins_remove",
    PRESENCE_EXPIRE = "presence_expire",
    PRESENCE_GET = "presence_get",
    PRESENCE_NEXT = "presence_next",
    PRESENCE_PAGE = "presence_page",
    PRESENCE_PUT = "presence_put",
    PRESENCE_REMOVE = "presence_remove",
    RECLAIM_DONE = "reclaim_done",
    RECLAIM_EVENTS = "reclaim_events",
    RECLAIM_FORGET = "reclaim_forget",
    RECLAIM_GET = "reclaim_get",
    RECLAIM_HEADS = "reclaim_heads",
    RECLAIM_PINS = "reclaim_pins",
    RECLAIM_PUT = "reclaim_put",
    RECLAIM_SNAPSHOTS = "reclaim_snapshots",
    RECLAIM_TIMERS = "reclaim_timers",
    REDUCER_SEEK = "reducer_seek",
    SESSION_ADD = "session_add",
    SESSION_BY_SID = "session_by_sid",
    SESSION_CLEAR = "session_clear",
    SESSION_GET = "session_get",
    SESSIONS_PAGE = "sessions_page",
    SNAPSHOT_GET = "snapshot_get",
    SNAPSHOT_LATEST = "snapshot_latest",
    SNAPSHOT_PUT = "snapshot_put",
    SNAPSHOT_REMOVE = "snapshot_remove",
    TIMER_GET = "timer_get",
    TIMER_NEXT = "timer_next",
    TIMER_PUT = "timer_put",
    TIMER_REMOVE = "timer_remove",
    TIMER_SESSION = "timer_session",
    TIMERS_DUE = "timers_due",
    TIMERS_PAGE = "timers_page",
}
