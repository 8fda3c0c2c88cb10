//! Reading a session's state: from the newest snapshot on, and keeping a new one where that was far.

use a2_core::{
    Error, Event, EventType, HeadRef, Index, Json, PutSnapshots, ReadRange, ReadState, ReducerName,
    Result, SnapshotWrite, limits,
};

use crate::events::decode_event;
use crate::reducer::stored_name;
use crate::{Context, Events, Reducer, Session};

impl Session {
    /// The session's state, folded up to the log's end.
    ///
    /// # Errors
    /// `INVALID_INPUT` when an event does not fit the reducer's type, or when the reducer's name breaks
    /// a rule; else as [`Store::read_state`](a2_core::Store::read_state).
    pub async fn state<R: Reducer>(&self, reducer: &R) -> Result<R::State> {
        self.state_through(reducer, Index::MAX).await
    }

    /// The session's state, folded up to and with the event at `through`.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub async fn state_through<R: Reducer>(&self, reducer: &R, through: Index) -> Result<R::State> {
        let name = stored_name(reducer)?;
        let mut snapshots = Index::MAX;
        loop {
            match self.fold(reducer, &name, through, snapshots).await? {
                Folded::State { state, at, events } => {
                    if events >= self.inner.options.snapshot_every {
                        self.keep(&name, at, &state).await;
                    }
                    return Ok(state);
                }
                Folded::Cleared => {}
                Folded::Unreadable => snapshots = Index::ZERO,
            }
        }
    }

    async fn fold<R: Reducer>(
        &self,
        reducer: &R,
        name: &ReducerName,
        through: Index,
        snapshots: Index,
    ) -> Result<Folded<R::State>> {
        let store = &self.inner.store;
        let request = ReadState::through(through).snapshot_through(snapshots);
        let read = store.read_state(&self.id, name, request).await?;
        let state = match &read.snapshot {
            Some(snapshot) => match snapshot.state.deserialize() {
                Ok(state) => state,
                Err(error) => {
                    // The state's type has changed and the reducer's version has not.
                    tracing::warn!(session = %self.id, reducer = %name, %error, "snapshot not used");
                    return Ok(Folded::Unreadable);
                }
            },
            None => reducer.init(),
        };
        let mut folding = Folding { reducer, state, types: R::Event::types()?, events: 0 };
        folding.apply(&read.events)?;
        let (mut at, end) = (read.through_index, through.min(read.head));
        while at < end {
            let page = store.read(&self.id, ReadRange::after(at).through(end)).await?;
            if page.clear_index != read.clear_index || page.events.is_empty() {
                return Ok(Folded::Cleared);
            }
            folding.apply(&page.events)?;
            at = page.events.last().map_or(end, |last| last.index);
        }
        Ok(Folded::State { state: folding.state, at: at.min(end), events: folding.events })
    }

    /// Keeps a snapshot, for the heads in flight too that will be tried again from here. It saves work
    /// and no more: the state was read.
    async fn keep<S: serde::Serialize>(&self, name: &ReducerName, at: Index, state: &S) {
        let put = async {
            let write = SnapshotWrite::new(at, Json::from_serialize(state)?).pins(self.pins(at))?;
            let put = PutSnapshots::new([write])?;
            self.inner.store.put_snapshots(&self.id, name, put).await
        };
        if let Err(error) = put.await {
            tracing::debug!(session = %self.id, reducer = %name, %error, "snapshot not kept");
        }
    }

    fn pins(&self, at: Index) -> Vec<HeadRef> {
        let running = self.inner.inflight.of(&self.id);
        let heads = running.iter().map(|running| &running.attempt.head);
        let mut pins: Vec<_> = heads.filter(|head| head.index >= at).cloned().collect();
        pins.sort();
        // The own head first: nobody else needs it more.
        if let Some(own) = self.origin.as_ref().map(|origin| &origin.cause.head)
            && let Some(place) = pins.iter().position(|head| head == own)
        {
            pins.swap(0, place);
        }
        pins.truncate(limits::SNAPSHOT_PINS);
        pins
    }
}

impl Context {
    /// The session's state as it was with this attempt's (last) event: every attempt on the event gets
    /// the same. What came later is in [`Session::state`].
    ///
    /// # Errors
    /// As [`Session::state`].
    pub async fn state<R: Reducer>(&self, reducer: &R) -> Result<R::State> {
        self.session().state_through(reducer, self.through()).await
    }
}

enum Folded<S> {
    State {
        state: S,
        at: Index,
        events: usize,
    },
    /// The session was cleared meanwhile.
    Cleared,
    /// The snapshot does not fit the state.
    Unreadable,
}

struct Folding<'a, R: Reducer> {
    reducer: &'a R,
    state: R::State,
    types: Option<Vec<EventType>>,
    events: usize,
}

impl<R: Reducer> Folding<'_, R> {
    fn apply(&mut self, events: &[Event]) -> Result<(), Error> {
        self.events += events.len();
        for event in events {
            let takes = match &self.types {
                Some(types) => types.contains(&event.event_type),
                None => !event.event_type.is_clear(),
            };
            if takes {
                self.reducer.apply(&mut self.state, decode_event(event)?, event);
            }
        }
        Ok(())
    }
}
