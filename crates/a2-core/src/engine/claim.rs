//! Claiming, and the bound on when that can do something.

use std::borrow::Cow;

use super::append::event_at;
use super::attempt::release_pins;
use super::logs::{current, next_taken};
use super::{HeadRow, HeadStatus, LogState, Tables};
use crate::outcome::{Busy, Claim, Claimed};
use crate::request::ClaimAvailable;
use crate::{
    Consumer, CursorKey, DispatchedHead, Event, HeadRef, Index, LogName, Result, Served, Timestamp,
    limits,
};

/// Claims heads; see [`Store::claim_available`](crate::Store::claim_available).
///
/// # Errors
/// `CORRUPT` when a head's event is missing.
pub fn claim_available<T: Tables>(
    t: &mut T,
    now: Timestamp,
    request: &ClaimAvailable,
) -> Result<Claim> {
    let log = t.log_state()?;
    let consumers = consumers(t, request.served_list())?;
    let mut found = Vec::new();
    for consumer in consumers.iter() {
        free(t, request, consumer, &mut found)?;
        due(t, now, request, consumer, &mut found)?;
    }
    if found.is_empty() {
        return unclaimable(t, now, request, &consumers);
    }
    found.sort_unstable();
    found.truncate(request.max_heads());
    let mut heads = Vec::with_capacity(found.len());
    let mut bytes = 0;
    for at in found {
        let row = match t.head(&at)? {
            Some(row) if row.status == HeadStatus::Live => row,
            _ => return Err(not_live(t, &at)),
        };
        let event = event_at(t, at.index)?;
        bytes += event.payload.byte_len();
        let mut head = claim_one(t, now, request, at, &row, event)?;
        if request.max_run() > 1 && !head.state.is_dead() {
            head.run = run_after(t, log, request, &head, &mut bytes)?;
        }
        heads.push(head);
        if bytes > limits::READ_BYTES {
            break;
        }
    }
    Ok(Claim::Claimed(Claimed::new(heads, log.head, log.clear_index)))
}

fn not_live<T: Tables>(t: &T, at: &HeadRef) -> crate::Error {
    let reason = format!("the head {at:?} is listed as live and is not");
    crate::Error::corrupt(Some(t.session()), Some(at.index), reason)
}

/// The soonest time at which a claim for `served` or a timer can do something in this session; none
/// when there is neither a live head nor a timer.
///
/// # Errors
/// What the tables fail with.
pub fn pending_since<T: Tables>(
    t: &mut T,
    now: Timestamp,
    served: &Served,
) -> Result<Option<Timestamp>> {
    let mut soonest = t.next_due()?;
    for consumer in consumers(t, served)?.iter() {
        let at = if t.free_heads(consumer, None, Index::MAX, 1)?.is_empty() {
            t.held_heads(consumer, None, FOREVER, 1)?.first().map(|(at, _)| *at)
        } else {
            Some(now)
        };
        soonest = soonest.into_iter().chain(at).min();
    }
    Ok(soonest)
}

const FOREVER: Timestamp = Timestamp::from_millis(i64::MAX);

fn consumers<'a, T: Tables>(t: &mut T, served: &'a Served) -> Result<Cow<'a, [Consumer]>> {
    Ok(match served.entries() {
        None => t.live_consumers()?.into(),
        Some([]) => Cow::Borrowed(&[]),
        Some([entry]) => std::slice::from_ref(entry.consumer()).into(),
        Some(entries) => entries.iter().map(|entry| entry.consumer().clone()).collect(),
    })
}

/// The consumer's first free heads that are not excluded, as many as the claim can take.
fn free<T: Tables>(
    t: &mut T,
    request: &ClaimAvailable,
    consumer: &Consumer,
    found: &mut Vec<HeadRef>,
) -> Result<()> {
    let mut wanted = request.max_heads();
    let mut after: Option<HeadRef> = None;
    loop {
        let page = t.free_heads(consumer, after.as_ref(), request.end(), wanted)?;
        if request.excluded().is_empty() {
            found.extend(page);
            return Ok(());
        }
        let full = page.len() == wanted;
        after = page.last().cloned();
        for at in page {
            if !request.excludes(&at) {
                wanted -= 1;
                found.push(at);
            }
        }
        if !full || wanted == 0 {
            return Ok(());
        }
    }
}

/// The consumer's longest due heads that are not excluded, up to the window.
fn due<T: Tables>(
    t: &mut T,
    now: Timestamp,
    request: &ClaimAvailable,
    consumer: &Consumer,
    found: &mut Vec<HeadRef>,
) -> Result<()> {
    let mut wanted = limits::DUE_WINDOW;
    let mut after: Option<(Timestamp, HeadRef)> = None;
    while wanted > 0 {
        let page = t.held_heads(consumer, after.as_ref(), now, wanted)?;
        let full = page.len() == wanted;
        after = page.last().cloned();
        for (_, at) in page {
            if at.index <= request.end() && !request.excludes(&at) {
                wanted -= 1;
                found.push(at);
            }
        }
        if !full {
            break;
        }
    }
    Ok(())
}

/// Nothing is free: when is the first candidate, if there is any?
fn unclaimable<T: Tables>(
    t: &mut T,
    now: Timestamp,
    request: &ClaimAvailable,
    consumers: &[Consumer],
) -> Result<Claim> {
    let mut soonest: Option<Timestamp> = None;
    for consumer in consumers {
        let mut after: Option<(Timestamp, HeadRef)> = None;
        // The first is nearly always the answer; a caller that excludes what it holds itself makes
        // this go on.
        let mut page_size = 1;
        let at = loop {
            let page = t.held_heads(consumer, after.as_ref(), FOREVER, page_size)?;
            let candidate =
                page.iter().find(|(_, at)| at.index <= request.end() && !request.excludes(at));
            if let Some((at, _)) = candidate {
                break Some(*at);
            }
            if page.len() < page_size {
                break None;
            }
            after = page.last().cloned();
            page_size = limits::DUE_WINDOW;
        };
        soonest = soonest.into_iter().chain(at).min();
    }
    Ok(match soonest {
        Some(at) => Claim::Busy(Busy::new(at.since(now).max(std::time::Duration::from_millis(1)))),
        None => Claim::Settled,
    })
}

fn claim_one<T: Tables>(
    t: &mut T,
    now: Timestamp,
    request: &ClaimAvailable,
    at: HeadRef,
    row: &HeadRow,
    event: Event,
) -> Result<DispatchedHead> {
    let mut after = row.clone();
    let state = &mut after.state;
    if state.claim_holder.is_some() {
        // The lease lapsed: its worker is taken for dead.
        state.failure_count += 1;
        state.last_failed_at = Some(now);
        state.last_failed_attempt = Some(state.attempt_count);
        state.last_error = Some("lease expired".to_owned());
    }
    let lapsed = state.claim_holder.is_some();
    let spent = lapsed
        && request.budget_of(&at.consumer).is_some_and(|budget| state.failure_count >= budget);
    // Also when it is dead-lettered: this fences the lapsed attempt.
    state.attempt_count += 1;
    if spent {
        state.failed_at = Some(now);
        state.claim_holder = None;
        state.claim_expires_at = None;
        after.status = HeadStatus::Dead;
    } else {
        state.first_claimed_at.get_or_insert(now);
        state.last_claimed_at = Some(now);
        state.claim_holder = Some(request.holder().clone());
        state.claim_expires_at = Some(now.after(request.ttl()));
    }
    t.update_head(&at, row, &after)?;
    if spent {
        release_pins(t, &at)?;
    }
    Ok(DispatchedHead::new(at, event, after.state))
}

/// The events after a log head that its cursor takes, for a claim in runs.
fn run_after<T: Tables>(
    t: &mut T,
    log: LogState,
    request: &ClaimAvailable,
    head: &DispatchedHead,
    bytes: &mut usize,
) -> Result<Vec<Event>> {
    let CursorKey::Log(name) = &head.head.cursor else { return Ok(Vec::new()) };
    let types = types_of(t, log, request.served_list(), &head.head.consumer, name)?;
    let through = request.end().min(log.head);
    let mut run = Vec::new();
    let mut index = head.head.index;
    if types.as_only().is_none() && index < through && *bytes <= limits::READ_BYTES {
        let left = limits::READ_BYTES.saturating_sub(*bytes);
        run = t.events(index, through, request.max_run() - 1, left)?;
        for event in &run {
            index = index.next();
            if event.index != index {
                return Err(crate::Error::corrupt(
                    Some(t.session()),
                    Some(index),
                    "the event is missing from the log",
                ));
            }
            *bytes += event.payload.byte_len();
        }
        return Ok(run);
    }
    while run.len() + 1 < request.max_run() && *bytes <= limits::READ_BYTES {
        let Some(next) = next_taken(t, &types, index, through)?.filter(|next| *next <= through)
        else {
            break;
        };
        let event = event_at(t, next)?;
        *bytes += event.payload.byte_len();
        run.push(event);
        index = next;
    }
    Ok(run)
}

/// The types a log takes: the caller's declaration, else the recorded ones.
pub(super) fn types_of<T: Tables>(
    t: &mut T,
    log: LogState,
    served: &Served,
    consumer: &Consumer,
    name: &LogName,
) -> Result<crate::LogTypes> {
    if let Some(declaration) = served.declaration_of(consumer, name) {
        return Ok(declaration.log_types().clone());
    }
    let row = t.log(consumer, name)?;
    Ok(row.map(|row| current(&row, log.clear_index).types).unwrap_or_default())
}
