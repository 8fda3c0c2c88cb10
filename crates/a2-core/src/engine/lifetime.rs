//! Clearing a session.

use super::Tables;
use super::append::check_cause;
use crate::outcome::Cleared;
use crate::request::Clear;
use crate::{Event, EventType, Json, Result, Timestamp};

/// Starts a new lifetime; see [`Store::clear`](crate::Store::clear).
///
/// # Errors
/// `SUPERSEDED_ATTEMPT` when the cause is not a current attempt; `INVALID_INPUT` past index 2^53 − 1.
pub fn clear<T: Tables>(t: &mut T, now: Timestamp, request: &Clear) -> Result<Cleared> {
    let log = t.log_state()?;
    let answer = |cleared| Ok(Cleared::new(cleared, log.head, log.clear_index));
    let ever_cleared = log.clear_index.get() > 0;
    if ever_cleared && t.owner(request.marker_id())? == Some(log.clear_index) {
        return answer(true);
    }
    if ever_cleared && request.last_index().is_some_and(|last| last.next() == log.clear_index) {
        return answer(true);
    }
    if let Some(cause) = request.clear_cause() {
        check_cause(t, log, cause)?;
    }
    if request.last_index().is_some_and(|last| last != log.head) {
        return answer(false);
    }
    if log.head == log.clear_index {
        return answer(true);
    }
    let index = log.head.plus(1)?;
    t.start_lifetime(&Event::new(
        t.session().clone(),
        index,
        request.marker_id().clone(),
        EventType::CLEAR,
        Json::null(),
        now,
        None,
    ))?;
    Ok(Cleared::new(true, index, index))
}
