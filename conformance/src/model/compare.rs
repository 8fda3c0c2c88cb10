//! Whether a store's answer is the reference's, but for what a store is free in.

use std::time::Duration;

use a2_core::{Claim, Error, ErrorKind};

use super::call::Reply;
use super::reference::Expected;

/// What differs, or nothing.
pub(super) fn difference(expected: &Expected, actual: Result<Reply, Error>) -> Option<String> {
    let actual = match (&expected.answer, actual) {
        (Ok(expected_reply), Ok(mut actual)) => {
            excuse(expected_reply, expected.may_be_sooner, &mut actual);
            Ok(actual)
        }
        (_, Ok(actual)) => Ok(actual),
        (_, Err(error)) => Err(error.kind().clone()),
    };
    let same = match (&expected.answer, &actual) {
        (Ok(expected), Ok(actual)) => expected == actual,
        // The rule's wording is the store's.
        (Err(ErrorKind::InvalidInput { .. }), Err(ErrorKind::InvalidInput { .. })) => true,
        (Err(expected), Err(actual)) => expected == actual,
        _ => false,
    };
    (!same).then(|| match (&expected.answer, &actual) {
        (Ok(expected), Ok(actual)) => {
            format!("  expected: {expected:?}\n  answered: {actual:?}")
        }
        (expected, actual) => format!("  expected: {expected:?}\n  answered: {actual:?}"),
    })
}

/// Makes equal what may differ.
fn excuse(expected: &Reply, may_be_sooner: bool, actual: &mut Reply) {
    match (expected, actual) {
        (Reply::Claim(expected), Reply::Claim(actual)) if may_be_sooner => {
            excuse_claim(expected, actual);
        }
        (Reply::Completed(expected), Reply::Completed(actual)) if may_be_sooner => {
            if let (Some(expected), Some(actual)) = (&expected.claim, &mut actual.claim) {
                excuse_claim(expected, actual);
            }
        }
        (Reply::Failed(expected), Reply::Failed(actual)) if may_be_sooner => {
            if let (Some(expected), Some(actual)) = (&expected.claim, &mut actual.claim) {
                excuse_claim(expected, actual);
            }
        }
        // A lower bound.
        (Reply::Pending(expected), Reply::Pending(actual)) => {
            for pending in actual {
                let same = expected.iter().find(|e| e.session == pending.session);
                if let Some(expected) = same.filter(|e| pending.not_before <= e.not_before) {
                    pending.not_before = expected.not_before;
                }
            }
        }
        // The handle that wrote it names itself as it likes.
        (Reply::Patch(_), Reply::Patch(Some(patch))) => patch.source.clear(),
        _ => {}
    }
}

/// Sooner, but at least a millisecond.
fn excuse_claim(expected: &Claim, actual: &mut Claim) {
    if let (Claim::Busy(expected), Claim::Busy(actual)) = (expected, actual)
        && actual.retry_after >= Duration::from_millis(1)
        && actual.retry_after <= expected.retry_after
    {
        actual.retry_after = expected.retry_after;
    }
}
