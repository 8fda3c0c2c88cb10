//! The statements, with the schema's name in them.
//!
//! The files write every table and function as `a2.a2_…`; what stands before the last dot is replaced
//! once, when a store is made.

/// A call of a function that answers rows.
fn call(function: &str, parameters: usize) -> String {
    let numbers: Vec<_> = (1..=parameters).map(|n| format!("${n}")).collect();
    format!("select * from a2.a2_{function}({})", numbers.join(","))
}

macro_rules! statements {
    (
        functions { $($function:ident: $name:literal, $parameters:literal;)* }
        files { $($file:ident: $path:literal;)* }
    ) => {
        /// Every statement of a store.
        #[derive(Debug)]
        pub(crate) struct Sql {
            /// What stands before a name: a quoted schema and a dot, or nothing.
            schema: String,
            $(pub(crate) $function: String,)*
            $(pub(crate) $file: String,)*
        }

        impl Sql {
            /// With the tables in this schema, or wherever the `search_path` finds them.
            pub(crate) fn new(schema: Option<&str>) -> Self {
                let schema = schema.map(|name| format!("{}.", quoted(name))).unwrap_or_default();
                let within = |text: &str| text.replace("a2.a2_", &format!("{schema}a2_"));
                Self {
                    $($function: within(&call($name, $parameters)),)*
                    $($file: within(include_str!(concat!("../sql/", $path, ".sql"))),)*
                    schema,
                }
            }
        }
    };
}

statements! {
    functions {
        append: "append_1", 20;
        claim_available: "claim_available_1", 19;
        renew_claims: "renew_claims_1", 11;
        release_claims: "release_claims_1", 9;
        complete_attempt: "complete_attempt_1", 41;
        fail_attempt: "fail_attempt_1", 27;
        redrive: "redrive_1", 11;
        wake_log: "wake_log_1", 5;
        put_snapshots: "put_snapshots_1", 9;
        clear: "clear_1", 5;
        reclaim: "reclaim_1", 1;
        schedule: "schedule_1", 10;
        unschedule: "unschedule_1", 2;
        fire_timers: "fire_timers_1", 8;
        set_presence: "set_presence_1", 8;
    }
    files {
        events_read: "events_read";
        state_read: "state_read";
        dead_letters: "dead_letters";
        cursors: "cursors";
        sessions: "sessions";
        pending: "pending";
        timers: "timers";
        timers_due: "timers_due";
        timers_next: "timers_next";
        presence: "presence";
        log_heads: "log_heads";
        clock: "clock";
    }
}

impl Sql {
    /// A table's name, as a text that names it.
    pub(crate) fn table(&self, name: &str) -> String {
        format!("{}{name}", self.schema)
    }
}

/// A name as an identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
