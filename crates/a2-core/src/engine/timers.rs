//! Durable timers.

use std::collections::HashSet;

use super::append::{check_origin, commit, has_pending};
use super::{Tables, TimerRow};
use crate::outcome::{Appended, Scheduled, Timer, TimerPage, Unscheduled};
use crate::request::{FireTimers, Page, PageToken, Schedule};
use crate::{NewEvent, Result, TimerKey, Timestamp, limits};

const KIND: &str = "timers";

/// Sets a timer; see [`Timers::schedule`](crate::Timers::schedule).
///
/// # Errors
/// `SESSION_CLEARED` when the origin lies below the latest clear.
pub fn schedule<T: Tables>(t: &mut T, now: Timestamp, request: &Schedule) -> Result<Scheduled> {
    let log = t.log_state()?;
    check_origin(log, request.origin())?;
    let due_at = now.after(request.after());
    t.put_timer(&TimerRow {
        key: request.key().clone(),
        due_at,
        event: request.event().clone(),
        origin_index: request.origin(),
    })?;
    Ok(Scheduled::new(due_at))
}

/// Removes a timer; see [`Timers::unschedule`](crate::Timers::unschedule).
///
/// # Errors
/// What the tables fail with.
pub fn unschedule<T: Tables>(t: &mut T, key: &TimerKey) -> Result<Unscheduled> {
    let there = t.timer(key)?.is_some();
    if there {
        t.remove_timer(key)?;
    }
    Ok(Unscheduled::new(there))
}

/// A page of timers; see [`Timers::timers`](crate::Timers::timers).
///
/// # Errors
/// `INVALID_INPUT` for a foreign token.
pub fn timers<T: Tables>(t: &mut T, page: &Page) -> Result<TimerPage> {
    let after: Option<TimerKey> = page.token().map(|token| token.decode(KIND)).transpose()?;
    let mut rows = t.timers(after.as_ref(), page.max_entries() + 1)?;
    let mut more = rows.len() > page.max_entries();
    rows.truncate(page.max_entries());
    let (mut timers, mut bytes) = (Vec::with_capacity(rows.len()), 0);
    for TimerRow { key, due_at, event, origin_index } in rows {
        if bytes > limits::READ_BYTES {
            more = true;
            break;
        }
        bytes += event.payload().byte_len();
        timers.push(Timer::new(key, due_at, event, origin_index));
    }
    let next = timers.last().filter(|_| more).map(|last| PageToken::encode(KIND, &last.key));
    Ok(TimerPage::new(timers, next))
}

/// Appends the events of due timers; see [`Timers::fire_timers`](crate::Timers::fire_timers).
///
/// # Errors
/// `INVALID_INPUT` past index 2^53 − 1.
pub fn fire_timers<T: Tables>(t: &mut T, now: Timestamp, request: &FireTimers) -> Result<Appended> {
    let log = t.log_state()?;
    let mut events: Vec<NewEvent> = Vec::new();
    let mut fired = Vec::new();
    let mut ids = HashSet::new();
    let (mut bytes, mut targets) = (0, 0);
    for timer in t.due_timers(now, request.max_timers())? {
        // What does not fit a batch waits for the next call.
        bytes += timer.event.byte_len();
        targets += timer.event.target_list().len();
        if !fired.is_empty() && (bytes > limits::READ_BYTES || targets > limits::BATCH_TARGETS) {
            break;
        }
        fired.push(timer.key);
        let id = timer.event.event_id().cloned();
        let owned = match &id {
            Some(id) => t.owner(id)?.is_some(),
            None => false,
        };
        if !owned && ids.insert(id) {
            events.push(timer.event);
        }
    }
    log.head.plus(events.len() as u64)?;
    for key in &fired {
        t.remove_timer(key)?;
    }
    let served = request.served_list();
    let stored = commit(t, now, log, &events, None, served, None)?;
    Ok(Appended::new(stored, has_pending(t, served)?, false))
}
