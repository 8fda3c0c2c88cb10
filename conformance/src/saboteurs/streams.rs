//! Streams, hints and presence gone wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use a2_core::{
    Error, Event, EventStream, Index, Namespace, Presence, PresenceChange, PresencePatch,
    PresenceRows, PresenceStream, PresenceUpdate, Result, Served, SessionId, Timers, WorkHints,
};
use futures_util::{StreamExt, future, stream};

use super::{Broken, How};

/// Tells that it was dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<S: Timers + Presence> Broken<S> {
    pub(super) fn break_stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        let start = match self.how {
            How::StreamStartsAt => start_after.previous(),
            _ => start_after,
        };
        let sound = self.inner.stream(session, start);
        match self.how {
            How::StreamsStay => {
                let mut seen = self.seen();
                seen.streams += 1;
                if seen.streams > 500 {
                    let error = Error::unavailable("there are too many streams");
                    return EventStream::new(stream::iter([Err(error)]));
                }
                sound
            }
            How::StreamDropEndsAll => {
                let dropped =
                    Arc::clone(self.seen().stream_dropped.entry(session.clone()).or_default());
                let guard = OnDrop(Arc::clone(&dropped));
                EventStream::new(sound.take_while(move |_| {
                    let _whole = &guard;
                    future::ready(!dropped.load(Ordering::SeqCst))
                }))
            }
            How::SlowReaderLosesEvents => {
                let (seen, session) = (Arc::clone(&self.seen), session.clone());
                EventStream::new(sound.filter(move |event| {
                    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    let head = seen.heads.get(&session).copied().unwrap_or_default();
                    let kept = |event: &Event| event.index.get() + 4_096 > head;
                    future::ready(event.as_ref().map_or(true, kept))
                }))
            }
            How::StreamRepeats => EventStream::new(sound.flat_map(|event| {
                let again = event.as_ref().ok().cloned();
                stream::iter(std::iter::once(event).chain(again.map(Ok)))
            })),
            How::StreamSkips => EventStream::new(
                sound.filter(|event| future::ready(event.as_ref().map_or(true, |e| e.index != 2))),
            ),
            How::StreamEnds => EventStream::new(sound.take(1)),
            How::StreamEndsInSilence => {
                EventStream::new(sound.take_while(|event| future::ready(event.is_ok())))
            }
            How::StreamSkipsMarker => EventStream::new(sound.filter(|event| {
                future::ready(event.as_ref().map_or(true, |e| !e.event_type.is_clear()))
            })),
            _ => sound,
        }
    }

    pub(super) fn break_watch_pending(&self, served: Served) -> WorkHints {
        match self.how {
            How::HintsNever => WorkHints::new(stream::pending()),
            _ => self.inner.watch_pending(served),
        }
    }

    pub(super) async fn break_set_presence(
        &self,
        namespace: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        let ttl = Duration::from_millis(update.ttl().as_millis());
        let ttl = if self.is(How::PresenceOutlives) { ttl * 10 } else { ttl };
        let mut other = PresenceUpdate::new(update.participant().clone(), ttl)?;
        for (field, value) in update.fields() {
            other = match value {
                Some(value) => other.set(field, value.clone())?,
                None if self.is(How::PresenceRemoveIgnored) => other,
                None => other.remove(field)?,
            };
        }
        if let Some(seen) = update.seen_index().filter(|_| !self.is(How::PresenceSeenForgotten)) {
            other = other.seen(seen);
        }
        let patch = self.inner.set_presence(namespace, other).await?;
        Ok(patch.filter(|_| !self.is(How::PresencePatchless)))
    }

    pub(super) async fn break_read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        let rows = self.inner.read_presence(namespace).await?;
        if self.is(How::ExpiredRowsRead) {
            let mut seen = self.seen();
            if !rows.rows.is_empty() {
                seen.rows.insert(namespace.clone(), rows);
            }
            return Ok(seen
                .rows
                .get(namespace)
                .cloned()
                .unwrap_or_else(|| PresenceRows::new(Vec::new())));
        }
        Ok(rows)
    }

    pub(super) fn break_watch_presence(&self, namespace: &Namespace) -> PresenceStream {
        let sound = self.inner.watch_presence(namespace);
        match self.how {
            How::WatchStartsEmpty => PresenceStream::new(sound.map(|change| match change {
                Ok(PresenceChange::Rows(_)) => {
                    Ok(PresenceChange::Rows(PresenceRows::new(Vec::new())))
                }
                change => change,
            })),
            _ => sound,
        }
    }
}
