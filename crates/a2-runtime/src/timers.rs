//! Timers: events that are appended later, by whichever process gets there first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2_core::{
    Error, ErrorKind, FireTimers, NewEvent, Page, Result, Schedule, SessionId, Span, StoreExt,
    Timer, TimerKey, Timestamp,
};

use crate::runtime::Inner;
use crate::units::Later;
use crate::{IntoEvents, Session, ids, telemetry};

impl Session {
    /// Appends an event when `after` has passed, for every consumer of this program that takes it. It
    /// is durable: whichever process is there then does it, once. The same `key` again replaces the
    /// timer. Answers when it is due, by the store's clock.
    ///
    /// A clear drops the session's timers. In a handler the event's id derives from the handler's event
    /// and the key: a second run that sets a timer again which has fired does not make it fire twice.
    ///
    /// # Errors
    /// `INVALID_INPUT` when there is not exactly one event, or a rule is broken;
    /// `STORE_NOT_CONFIGURED` on a store without timers; in a handler `SESSION_CLEARED` once the session
    /// was cleared.
    pub async fn schedule<K>(
        &self,
        key: K,
        after: Duration,
        event: impl IntoEvents,
    ) -> Result<Timestamp>
    where
        K: TryInto<TimerKey>,
        Error: From<K::Error>,
    {
        let mut events = event.into_events()?;
        let (Some(event), true) = (events.pop(), events.is_empty()) else {
            return Err(Error::invalid("event", "must be exactly one"));
        };
        self.set_timer(key.try_into()?, after, event).await
    }

    async fn set_timer(
        &self,
        key: TimerKey,
        after: Duration,
        event: NewEvent,
    ) -> Result<Timestamp> {
        let timers = self.inner.timers()?;
        let event = self.inner.registry.aim(event)?;
        let event = match (&self.origin, event.event_id()) {
            (Some(origin), None) => {
                let head = &origin.cause.head;
                let what = format!("timer\0{key}");
                event.id(ids::derived(&self.id, head, &origin.parent, &what))?
            }
            _ => event,
        };
        let schedule = Schedule::new(key, after, event)?;
        let scheduled = match &self.origin {
            Some(origin) => {
                let schedule = schedule.origin_index(origin.cause.head.index);
                self.told(timers.schedule(&self.id, schedule).await)?
            }
            None => loop {
                // What is there now is what a later clear drops it with.
                let head = self.inner.store.head(&self.id).await?;
                let schedule = schedule.clone().origin_index(head);
                match timers.schedule(&self.id, schedule).await {
                    Err(error) if matches!(error.kind(), ErrorKind::SessionCleared { .. }) => {}
                    answer => break answer?,
                }
            },
        };
        // This process looks at it in time, also if no hint comes.
        let at = self.inner.clock.now().after(Span::new(after));
        self.inner.units.look_at(at, Later::Timers(self.id.clone()));
        Ok(scheduled.due_at)
    }

    /// Removes a timer; answers whether there was one.
    ///
    /// # Errors
    /// As [`Timers::unschedule`](a2_core::Timers::unschedule).
    pub async fn unschedule<K>(&self, key: K) -> Result<bool>
    where
        K: TryInto<TimerKey>,
        Error: From<K::Error>,
    {
        Ok(self.inner.timers()?.unschedule(&self.id, &key.try_into()?).await?.removed)
    }

    /// The session's timers, by key.
    ///
    /// # Errors
    /// As [`Timers::timers`](a2_core::Timers::timers).
    pub async fn timers(&self) -> Result<Vec<Timer>> {
        let store = self.inner.timers()?;
        let (mut all, mut page) = (Vec::new(), Page::first());
        loop {
            let found = store.timers(&self.id, page).await?;
            all.extend(found.timers);
            match found.next {
                Some(token) => page = Page::at(token),
                None => return Ok(all),
            }
        }
    }
}

impl Inner {
    /// Fires what is due in a session.
    pub(crate) fn fire_soon(self: &Arc<Self>, session: &SessionId) {
        let (inner, session) = (Arc::clone(self), session.clone());
        self.spawn(async move { inner.fire(&session).await });
    }

    pub(crate) async fn fire(self: &Arc<Self>, session: &SessionId) {
        let Some(timers) = &self.timers else { return };
        loop {
            let fire = FireTimers::new().served(self.registry.served.clone());
            match timers.fire_timers(session, fire).await {
                Ok(fired) => {
                    telemetry::fired(session, &fired.events);
                    if !fired.events.is_empty() {
                        self.found.fetch_add(1, Ordering::SeqCst);
                        self.own.note(session);
                        if fired.has_pending {
                            self.wake(session);
                        }
                    }
                    if fired.events.len() < a2_core::limits::FIRE_DEFAULT {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%session, %error, "timers were not fired");
                    return;
                }
            }
        }
    }
}
