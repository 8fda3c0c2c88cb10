//! Scripts of failures that were found and mended, pasted as they were printed.

#[allow(unused_imports, reason = "what a pasted script is made of")]
use super::op::{
    Aim::*, At::*, Declared, Entry, Ev, Id::*, On::*, Op::*, Serves::*, Snap, Step, Take, Time::*,
    Try, Which::*, once, other, other_twice, twice,
};

/// Every script with its name.
pub(super) fn all() -> Vec<(&'static str, Vec<Step>)> {
    vec![]
}
