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
    EVENT_OWNER = "event_owner",
    EVENT_RANGE = "event_range",
    EVENT_TAIL = "event_tail",
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
    ID_GET = "id_get",
    IDS_ADD = "ids_add",
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
    RECLAIM_IDS = "reclaim_ids",
    RECLAIM_PINS = "reclaim_pins",
    RECLAIM_PUT = "reclaim_put",
    RECLAIM_SNAPSHOTS = "reclaim_snapshots",
    RECLAIM_TIMERS = "reclaim_timers",
    RECLAIM_TYPES = "reclaim_types",
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
    TYPE_NEXT = "type_next",
    TYPES_ADD = "types_add",
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn plan(conn: &Connection, sql: &str) -> Vec<String> {
        let mut explain = conn.prepare(&format!("explain query plan {sql}")).unwrap();
        let mut rows = explain.raw_query();
        let mut plan = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            plan.push(row.get::<_, String>(3).unwrap());
        }
        plan
    }

    /// These read the end of a key's order alone: `order by … desc limit 1`.
    const LAST_ROW: [&str; 3] = ["changes_last", "events_last", "session_add"];
    /// These sort what they have found: it has no order of its own.
    const SORTS: [&str; 2] = ["due_sessions", "events_held"];

    fn check(conn: &Connection) {
        for (name, sql) in ALL {
            for step in plan(conn, sql) {
                let scans = step.starts_with("SCAN") && !LAST_ROW.contains(name);
                let sorts = step.contains("TEMP B-TREE") && !SORTS.contains(name);
                // A prefix that is left out would be gone through value by value.
                let skips = step.contains("ANY(");
                assert!(!scans && !sorts && !skips, "{name}: {step}");
            }
        }
    }

    fn tables() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        for migration in MIGRATIONS {
            conn.execute_batch(migration).unwrap();
        }
        conn
    }

    #[test]
    fn every_statement_seeks_in_an_empty_file() {
        check(&tables());
    }

    #[test]
    fn every_statement_seeks_in_a_full_file_that_was_analyzed() {
        let conn = tables();
        conn.execute_batch(
            "create temp table n as
               with recursive n(n) as (values (1) union all select n + 1 from n where n < 5000)
               select n from n;
             insert into a2_sessions (name, sid) select 's' || n, n from n where n <= 100;
             insert into a2_events (sid, idx, id, type, created_at, payload)
               select 1 + n % 2, n, 'e' || n, 't' || n % 3, n, '{}' from n;
             insert into a2_ids select 1 + n % 2, n % 3, 'e' || n, n from n;
             insert into a2_types select 1 + n % 2, n % 3, 't' || n % 3, n from n;
             insert into a2_heads (sid, consumer, kind, name, idx, life, status, held_until)
               select 1 + n % 2, 'c' || n % 3, n % 3, 'l' || n % 10, n, 0, n % 4,
                 case n % 5 when 0 then n end
               from n;
             insert into a2_logs (sid, consumer, name, position)
               select 1 + n % 2, 'c' || n, '', n from n;
             insert into a2_snapshots (sid, reducer, idx, state)
               select 1 + n % 2, 'r' || n % 3, n, '{}' from n;
             insert into a2_pins select 1 + n % 2, 'c', 1, 'l', n, 'r' || n % 3, n from n;
             insert into a2_timers (sid, key, due_at, origin, id, type, payload)
               select 1 + n % 2, 'k' || n, n, case n % 2 when 0 then n end, 'e' || n, 't', '{}'
               from n;
             insert into a2_presence select 'n' || n % 3, 'p' || n, 'f', '1', null, n, n from n;
             insert into a2_changes (kind, name) select 0, 's' || n from n;
             analyze;",
        )
        .unwrap();
        check(&conn);
    }

    #[test]
    fn a_statement_has_no_header() {
        for (name, sql) in ALL {
            assert!(!sql.starts_with("--") && !sql.is_empty(), "{name}");
        }
        assert!(EVENT_GET.starts_with("select "));
    }

    #[test]
    fn every_file_is_a_statement() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter_map(|name| name.strip_suffix(".sql").map(str::to_owned))
            .collect();
        files.sort();
        let mut names: Vec<_> = ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
        names.sort();
        assert_eq!(files, names);
    }
}
