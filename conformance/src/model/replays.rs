//! Scripts of failures that were found and mended, pasted as they were printed.

#[allow(unused_imports, reason = "what a pasted script is made of")]
use super::op::{
    Aim::*, At::*, Declared, Entry, Ev, Id::*, On::*, Op::*, Serves::*, Snap, Step, Take, Time::*,
    Try, Which::*, once, other, other_twice, twice,
};

/// Every script with its name.
pub(super) fn all() -> Vec<(&'static str, Vec<Step>)> {
    vec![("a full last page of dead letters", full_page_of_dead_letters())]
}

/// It named a next page, which was empty.
fn full_page_of_dead_letters() -> Vec<Step> {
    vec![
        once(Append {
            session: 0,
            events: vec![Ev {
                id: Fresh,
                kind: 0,
                payload: 0,
                targets: vec![Each(0)],
                cause: None,
            }],
            served: All,
            expected_head: None,
            origin: None,
        }),
        once(Claim {
            session: 0,
            claim: Take {
                holder: 0,
                ttl: 10,
                limit: None,
                served: All,
                exclude: vec![],
                max_failures: None,
                through: None,
                run: 1,
            },
        }),
        once(Fail {
            session: 0,
            attempt: Try { head: Held(0), off: 0 },
            error: 0,
            max_failures: Some(1),
            retry_after: 0,
            then_claim: None,
        }),
        once(DeadLetters { session: 0, limit: 1 }),
    ]
}
