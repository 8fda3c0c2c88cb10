//! Appends, clears and snapshots gone wrong.

use a2_core::{
    Append, Appended, Clear, Cleared, Clock, Error, ErrorKind, Event, EventId, Events, Index, Json,
    NewEvent, Presence, PutSnapshots, ReadRange, ReadState, Reclaimed, ReducerName, Result, Served,
    SessionId, SnapshotWrite, SnapshotsPut, StateRead, StoreExt, SystemClock, Timers, Timestamp,
    WakeLog,
};

use super::{Broken, How};

/// The same append with other events.
fn with_events(append: &Append, events: Vec<NewEvent>) -> Result<Append> {
    let mut other = Append::new(events)?.served(append.served_list().clone());
    if let Some(head) = append.head_expected() {
        other = other.expected_head(head);
    }
    if let Some(origin) = append.origin() {
        other = other.origin_index(origin);
    }
    Ok(other)
}

/// The event without its id, cause or targets, as told.
fn rebuilt(event: &NewEvent, id: bool, cause: bool, targets: usize) -> Result<NewEvent> {
    let mut new = NewEvent::from_json(event.event_type().clone(), event.payload().clone())?;
    if let Some(given) = event.event_id().filter(|_| id) {
        new = new.id(given)?;
    }
    if let Some(given) = event.event_cause().filter(|_| cause) {
        new = new.cause(given.clone());
    }
    Ok(new.targets(event.target_list().iter().take(targets).cloned()))
}

impl<S: Timers + Presence> Broken<S> {
    pub(super) async fn break_append(
        &self,
        session: &SessionId,
        append: Append,
    ) -> Result<Appended> {
        let events = append.events().to_vec();
        let append = match self.how {
            How::EmptyAppendRefused if events.is_empty() => {
                return Err(Error::invalid("events", "must not be empty"));
            }
            How::ExpectedHeadIgnored => {
                let mut other = Append::new(events.clone())?.served(append.served_list().clone());
                if let Some(origin) = append.origin() {
                    other = other.origin_index(origin);
                }
                other
            }
            How::OriginIgnored => Append::new(events.clone())?.served(append.served_list().clone()),
            How::DeclaredLogsStay | How::PendingOfAll => append.served(Served::ALL),
            How::LogTypesIgnored => {
                let served = super::claims::untyped(append.served_list())?;
                append.served(served)
            }
            How::BatchInTwo if events.len() > 1 => {
                return self.append_in_two(session, append).await;
            }
            How::ExpectedHeadFirst => {
                let actual = self.inner.head(session).await?;
                if let Some(expected) = append.head_expected().filter(|head| *head != actual) {
                    return Err(ErrorKind::HeadConflict { expected, actual }.into());
                }
                append
            }
            How::IdsMadeByTheStore => {
                let made = events.iter().map(|event| match event.event_id() {
                    // Only a generated id looks like this.
                    Some(id) if id.as_str().matches('-').count() == 4 => {
                        rebuilt(event, false, true, 100)?.id(EventId::generate())
                    }
                    _ => Ok(event.clone()),
                });
                with_events(&append, made.collect::<Result<_>>()?)?
            }
            How::CauseUnchecked | How::CauseForgotten => {
                let kept: Result<_> =
                    events.iter().map(|event| rebuilt(event, true, false, 100)).collect();
                with_events(&append, kept?)?
            }
            How::FirstTargetOnly => {
                let kept: Result<_> =
                    events.iter().map(|event| rebuilt(event, true, true, 1)).collect();
                with_events(&append, kept?)?
            }
            How::IdsOutliveClear => {
                let seen = self.seen();
                let known = |event: &NewEvent| {
                    let key = (session.clone(), event.event_id()?.clone());
                    seen.events.get(&key).cloned()
                };
                if let Some(old) = events.iter().map(known).collect::<Option<Vec<Event>>>()
                    && !old.is_empty()
                {
                    return Ok(Appended::new(old, false, true));
                }
                append
            }
            _ => append,
        };
        let answer = self.inner.append(session, append.clone()).await;
        self.break_appended(session, &append, &events, answer).await
    }

    /// The first event alone, then the others.
    async fn append_in_two(&self, session: &SessionId, append: Append) -> Result<Appended> {
        let mut events = append.events().to_vec();
        let rest = events.split_off(1);
        let mut first = self.inner.append(session, with_events(&append, events)?).await?;
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        let rest = Append::new(rest)?.served(append.served_list().clone());
        let rest = self.inner.append(session, rest).await?;
        first.events.extend(rest.events);
        first.has_pending = rest.has_pending;
        Ok(first)
    }

    async fn break_appended(
        &self,
        session: &SessionId,
        append: &Append,
        asked: &[NewEvent],
        answer: Result<Appended>,
    ) -> Result<Appended> {
        let mut appended = match answer {
            Ok(appended) => appended,
            Err(error) => return self.break_refusal(session, append, error).await,
        };
        match self.how {
            How::EveryAppendTouches => {
                for (consumer, log) in append.served_list().declarations() {
                    let wake = WakeLog::new(consumer.clone(), log.clone())?;
                    let _ = self.inner.wake_log(session, wake).await?;
                }
            }
            How::IndexesRestart => {
                let read = self.inner.read(session, ReadRange::after(Index::MAX)).await?;
                for event in &mut appended.events {
                    event.index = Index::new(event.index.get() - read.clear_index.get())?;
                }
            }
            How::IndexesFromTwo => {
                for event in &mut appended.events {
                    event.index = event.index.next();
                }
            }
            How::AnswersBackwards => appended.events.reverse(),
            How::ReplayUnmarked => appended.replayed = false,
            How::ReplayInLogOrder => appended.events.sort_by_key(|event| event.index),
            How::ReplayAppends if appended.replayed => {
                let new: Result<_> =
                    append.events().iter().map(|e| rebuilt(e, false, true, 100)).collect();
                return self.inner.append(session, with_events(append, new?)?).await;
            }
            How::CauseUnchecked => {
                for (event, asked) in appended.events.iter_mut().zip(asked) {
                    event.cause = asked.event_cause().cloned();
                }
            }
            How::AlikeIsClear => {
                let alike = |event: &Event| {
                    event.event_type.as_str().trim().eq_ignore_ascii_case("a2.clear")
                };
                if appended.events.iter().any(alike) {
                    let _ = self.inner.clear(session, Clear::new()).await?;
                }
            }
            How::SlowReaderLosesEvents => {
                if let Some(last) = appended.events.last() {
                    self.seen().heads.insert(session.clone(), last.index.get());
                }
            }
            How::PendingNever => appended.has_pending = false,
            How::PendingAlways => appended.has_pending = true,
            How::CreatedAtZero => {
                for event in &mut appended.events {
                    event.created_at = Timestamp::EPOCH;
                }
            }
            How::IdsOutliveClear => {
                let mut seen = self.seen();
                for event in &appended.events {
                    seen.events.insert((session.clone(), event.id.clone()), event.clone());
                }
            }
            _ => {}
        }
        Ok(appended)
    }

    async fn break_refusal(
        &self,
        session: &SessionId,
        append: &Append,
        error: Error,
    ) -> Result<Appended> {
        let existing = match (self.how, error.kind()) {
            (How::ConflictIsInvalid, ErrorKind::HeadConflict { .. }) => {
                return Err(Error::invalid("expected_head", "must be the head"));
            }
            (How::ConflictIsRetryable, ErrorKind::SessionCleared { .. }) => {
                return Err(Error::unavailable("the session was cleared"));
            }
            (_, ErrorKind::PartialDuplicateBatch { existing }) => existing,
            _ => return Err(error),
        };
        let ids = || append.events().iter().filter_map(NewEvent::event_id).cloned();
        match self.how {
            How::PartialNamesAll => {
                let existing: Vec<EventId> = ids().collect();
                let mut kind = error.kind().clone();
                if let ErrorKind::PartialDuplicateBatch { existing: named, .. } = &mut kind {
                    *named = existing;
                }
                Err(kind.into())
            }
            How::PartialAppendsTheRest => {
                let new = append
                    .events()
                    .iter()
                    .filter(|event| event.event_id().is_some_and(|id| !existing.contains(id)))
                    .cloned()
                    .collect();
                self.inner.append(session, with_events(append, new)?).await
            }
            _ => Err(error),
        }
    }

    pub(super) async fn break_read(&self, session: &SessionId, range: ReadRange) -> Result<Events> {
        let (after, through) = (range.start_after(), range.end());
        let range = match self.how {
            How::AfterIsInclusive => {
                ReadRange::after(after.previous()).through(through).limit(range.max_events())?
            }
            How::ThroughIsExclusive => {
                ReadRange::after(after).through(through.previous()).limit(range.max_events())?
            }
            How::ReadLimitIgnored => ReadRange::after(after).through(through),
            _ => range,
        };
        let limit = range.max_events();
        let mut read = self.inner.read(session, range).await?;
        match self.how {
            How::BytesUncapped => {
                while let Some(last) = read.events.last().map(|event| event.index)
                    && last < read.head.min(through)
                    && read.events.len() < limit
                {
                    let more = ReadRange::after(last).through(through).limit(limit)?;
                    read.events.extend(self.inner.read(session, more).await?.events);
                }
            }
            How::SystemClock => {
                read.events.iter_mut().for_each(|event| event.created_at = SystemClock.now());
            }
            How::CreatedAtMonotonic => {
                let mut latest = Timestamp::EPOCH;
                for event in &mut read.events {
                    latest = latest.max(event.created_at);
                    event.created_at = latest;
                }
            }
            How::GapInRead => read.events.retain(|event| event.index != 2),
            How::ReadHeadIsLast => {
                read.head = read.events.last().map_or(Index::ZERO, |event| event.index);
            }
            How::UnknownSessionFails if read.head == 0 => {
                return Err(ErrorKind::Closed.into());
            }
            How::ClearIndexForgotten => read.clear_index = Index::ZERO,
            How::MarkerUnread => read.events.retain(|event| !event.event_type.is_clear()),
            How::CauseForgotten => read.events.iter_mut().for_each(|event| event.cause = None),
            How::PayloadsReparsed => {
                for event in &mut read.events {
                    let value: std::result::Result<serde_json::Value, _> =
                        serde_json::from_str(event.payload.as_str());
                    if let Ok(value) = value {
                        event.payload = Json::from_serialize(&value)?;
                    }
                }
            }
            _ => {}
        }
        Ok(read)
    }

    pub(super) async fn break_clear(&self, session: &SessionId, clear: Clear) -> Result<Cleared> {
        let rebuilt = |id: bool, last: bool, cause: bool| -> Result<Clear> {
            let mut other = Clear::new();
            if id {
                other = other.id(clear.marker_id())?;
            }
            if let Some(index) = clear.last_index().filter(|_| last) {
                other = other.if_last_index(index);
            }
            if let Some(given) = clear.clear_cause().filter(|_| cause) {
                other = other.cause(given.clone());
            }
            Ok(other)
        };
        let clear = match self.how {
            How::ClearUnconditional => rebuilt(true, false, true)?,
            How::ClearCauseIgnored => rebuilt(true, true, false)?,
            How::ClearAgain => rebuilt(false, false, true)?,
            How::ClearOtherId => rebuilt(false, true, true)?,
            _ => clear,
        };
        let cleared = self.inner.clear(session, clear).await?;
        while self.is(How::ClearReclaims) && !self.inner.reclaim(session).await?.done {}
        Ok(cleared)
    }

    pub(super) async fn break_reclaim(&self, session: &SessionId) -> Result<Reclaimed> {
        let mut reclaimed = self.inner.reclaim(session).await?;
        match self.how {
            // As if the first call had found something to do.
            How::ReclaimNeverDone => {
                let calls = {
                    let mut seen = self.seen();
                    let calls = seen.reclaims.entry(session.clone()).or_default();
                    *calls += 1;
                    *calls
                };
                reclaimed.done = calls > 10_000;
            }
            How::ReclaimClaimsDone => reclaimed.done = true,
            How::ReclaimClears => {
                let _ = self.inner.clear(session, Clear::new()).await?;
            }
            _ => {}
        }
        Ok(reclaimed)
    }

    fn misnamed(&self, reducer: &ReducerName) -> Result<ReducerName> {
        match self.how {
            How::ReducersShareSnapshots => ReducerName::new("one"),
            _ => Ok(reducer.clone()),
        }
    }

    pub(super) async fn break_put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        let writes = match self.how {
            How::PinsIgnored => PutSnapshots::new(
                writes.writes().iter().map(|w| SnapshotWrite::new(w.index(), w.state().clone())),
            )?,
            How::SnapshotAboveHead => {
                let head = self.inner.read(session, ReadRange::after(Index::MAX)).await?.head;
                PutSnapshots::new(writes.writes().iter().filter(|w| w.index() <= head).cloned())?
            }
            _ => writes,
        };
        self.inner.put_snapshots(session, &self.misnamed(reducer)?, writes).await
    }

    pub(super) async fn break_read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        let read = match self.how {
            How::SnapshotThroughIgnored => ReadState::through(read.end()),
            _ => read,
        };
        let mut state = self.inner.read_state(session, &self.misnamed(reducer)?, read).await?;
        if self.is(How::LatestSnapshotHidden) {
            state.latest_snapshot = state.snapshot.as_ref().map(|snapshot| snapshot.index);
        }
        Ok(state)
    }
}
