//! An actor's state: what its last message made of it, as the log says.
//!
//! The lane makes an attempt the only writer, so what lies in the log when it begins is the state. What
//! this process read before is kept, and proven by reading what came after it up to the log's head;
//! now and then all is folded from the latest snapshot on, which leaves a new one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use a2_core::{Cause, CursorKey, Error, Event, Index, Json, ReadRange, Result, SessionId};
use a2_runtime::{RawEvent, Reducer, Session};
use serde::{Deserialize, Serialize};

use crate::events::{Kind, STATE, StoredState};

/// How many instances are remembered, twice, and how long the JSON of each may be.
const REMEMBERED: usize = 1_024;
const REMEMBERED_BYTES: usize = 16 * 1_024;
/// After how many events all is folded anew, at least.
const REFOLD: usize = 100;

const VERSION: u32 = 1;

fn reducer_name(actor: &str) -> String {
    format!("a2.actor/{actor}")
}

/// The name that the runtime keeps the reducer's snapshots under.
pub(crate) fn stored_name(actor: &str) -> String {
    format!("{}@{VERSION}", reducer_name(actor))
}

/// What is known of an instance: everything up to an index.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Known {
    at: Index,
    found: Option<Found>,
    /// How many events were read since all was folded, and after how many that is done again.
    #[serde(skip)]
    read: usize,
    #[serde(skip)]
    refold: usize,
}

/// The latest state event.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Found {
    index: Index,
    state: Json,
    broken: bool,
}

impl Known {
    fn see(&mut self, event: &Event, actor: &str) {
        self.at = event.index;
        self.read += 1;
        if event.event_type.as_str() != STATE || !is_own(event.cause.as_ref(), actor) {
            return;
        }
        let (state, broken) = match event.payload.deserialize::<StoredState>() {
            Ok(stored) => (stored.state, false),
            Err(_) => (Json::null(), true),
        };
        self.found = Some(Found { index: event.index, state, broken });
    }
}

/// Whether this attempt is one on the actor's lane: what others append under the same type is no state.
fn is_own(cause: Option<&Cause>, actor: &str) -> bool {
    cause.is_some_and(|cause| {
        cause.head.consumer.as_str() == Kind::Serial.consumer()
            && matches!(&cause.head.cursor, CursorKey::Lane(lane) if lane.as_str() == actor)
    })
}

/// Folds a log into the latest state of one actor.
struct LatestState<'a> {
    name: String,
    actor: &'a str,
}

impl Reducer for LatestState<'_> {
    type State = Known;
    type Event = RawEvent;

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn init(&self) -> Known {
        Known::default()
    }

    fn apply(&self, known: &mut Known, _: RawEvent, stored: &Event) {
        known.see(stored, self.actor);
    }
}

/// The state that the last message left.
#[derive(Debug)]
pub(crate) struct Latest {
    /// None before the first message of a lifetime.
    pub(crate) state: Option<Json>,
    pub(crate) clear_index: Index,
}

async fn fold(session: &Session, actor: &str) -> Result<Known> {
    let mut known = session.state(&LatestState { name: reducer_name(actor), actor }).await?;
    // What was folded now is the price of folding again.
    known.refold = known.read.max(REFOLD);
    known.read = 0;
    Ok(known)
}

/// Reads on up to the log's head; none when the log is not the one that was read before.
async fn advance(session: &Session, actor: &str, known: &mut Known) -> Result<Option<Latest>> {
    loop {
        let page = session.read(ReadRange::after(known.at)).await?;
        if page.head < known.at {
            return Ok(None);
        }
        // An index is never used again, so this is all that a clear changes.
        if known.found.as_ref().is_some_and(|found| found.index <= page.clear_index) {
            known.found = None;
        }
        for event in &page.events {
            known.see(event, actor);
        }
        if known.at < page.head && !page.events.is_empty() {
            continue;
        }
        let state = match &known.found {
            Some(found) if found.broken => {
                let reason = format!("the state of actor {actor} cannot be read");
                return Err(Error::corrupt(Some(session.id()), Some(found.index), reason));
            }
            found => found.as_ref().map(|found| found.state.clone()),
        };
        return Ok(Some(Latest { state, clear_index: page.clear_index }));
    }
}

/// The state of an instance, read anew.
pub(crate) async fn read(session: &Session, actor: &str) -> Result<Latest> {
    loop {
        let mut known = fold(session, actor).await?;
        if let Some(latest) = advance(session, actor, &mut known).await? {
            return Ok(latest);
        }
    }
}

/// What this process has read. Every entry is true of the log up to its index, however old.
#[derive(Default)]
pub(crate) struct States(Mutex<Generations>);

type Entries = HashMap<(SessionId, &'static str), Known>;

/// What was not used while the young ones became too many is forgotten.
#[derive(Default)]
struct Generations {
    young: Entries,
    old: Entries,
}

impl States {
    fn get(&self, key: &(SessionId, &'static str)) -> Option<Known> {
        let generations = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.young.remove(key).or_else(|| generations.old.remove(key))
    }

    fn put(&self, key: (SessionId, &'static str), known: Known) {
        let long = |found: &Found| found.state.byte_len() > REMEMBERED_BYTES;
        if known.read >= known.refold || known.found.as_ref().is_some_and(long) {
            return;
        }
        let generations = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= REMEMBERED {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(key, known);
    }

    /// The state as the log has it now.
    pub(crate) async fn latest(&self, session: &Session, actor: &'static str) -> Result<Latest> {
        let key = (session.id().clone(), actor);
        loop {
            let mut known = match self.get(&key) {
                Some(known) => known,
                None => fold(session, actor).await?,
            };
            if let Some(latest) = advance(session, actor, &mut known).await? {
                self.put(key, known);
                return Ok(latest);
            }
        }
    }
}
