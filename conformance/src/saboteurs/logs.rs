//! Log cursors and timers gone wrong.

use std::time::Duration;

use a2_core::{
    Appended, ClaimAvailable, CompleteAttempt, CursorKey, CursorRef, FireTimers, LogDeclaration,
    LogTypes, Page, Presence, Result, Schedule, Scheduled, SessionId, StoreExt, TimerKey, Timers,
    Unscheduled, WakeLog, WokenLog,
};

use super::{Broken, How};

impl<S: Timers + Presence> Broken<S> {
    pub(super) async fn break_wake_log(
        &self,
        session: &SessionId,
        log: WakeLog,
    ) -> Result<WokenLog> {
        let declared = log.declaration();
        let mut other = LogDeclaration::new(declared.name().clone())?;
        if !self.is(How::LogTypesIgnored) {
            other = other.types(declared.log_types().clone());
        } else {
            other = other.types(LogTypes::ALL);
        }
        let backfill = match self.how {
            How::BackfillIgnored => false,
            How::BackfillAlways => true,
            _ => declared.is_backfill(),
        };
        if backfill {
            other = other.backfill();
        }
        let cursor = CursorRef::log(log.consumer().clone(), declared.name().clone());
        match self.how {
            How::WakeDoesNothingAgain => {
                let cursors = self.inner.all_cursors(session).await?;
                let known = cursors
                    .into_iter()
                    .find(|known| known.consumer == *log.consumer() && known.key == *cursor.key());
                if let Some(known) = known {
                    let at = self.inner.cursors(session, Page::first()).await?;
                    return Ok(WokenLog::new(known, at.head, at.clear_index));
                }
            }
            How::TouchMovesHead => self.take_head(session, &cursor).await?,
            _ => {}
        }
        let wake = WakeLog::new(log.consumer().clone(), other)?;
        let mut woken = self.inner.wake_log(session, wake).await?;
        if self.is(How::WakeShowsIdle) {
            woken.cursor.head = None;
        }
        Ok(woken)
    }

    /// Completes the cursor's head, if it is free, without any others.
    async fn take_head(&self, session: &SessionId, cursor: &CursorRef) -> Result<()> {
        let mut others = Vec::new();
        for other in self.inner.all_cursors(session).await? {
            let other = match other.key {
                CursorKey::Event => CursorRef::event(other.consumer, other.position.next()),
                CursorKey::Lane(lane) => CursorRef::lane(other.consumer, lane),
                CursorKey::Log(log) => CursorRef::log(other.consumer, log),
            };
            others.extend(Some(other).filter(|other| other != cursor));
        }
        let claim = ClaimAvailable::new("saboteur", Duration::from_secs(1))?.exclude(others)?;
        for head in self.inner.claim_available(session, claim).await?.into_heads() {
            let done = CompleteAttempt::new(head.head.clone(), head.attempt());
            let _ = self.inner.complete_attempt(session, done).await?;
        }
        Ok(())
    }

    pub(super) async fn break_schedule(
        &self,
        session: &SessionId,
        timer: Schedule,
    ) -> Result<Scheduled> {
        let key = match self.how {
            How::TimerNotReplaced => TimerKey::new(format!(
                "{}{}",
                timer.key(),
                timer.event().event_id().map_or("", |id| id.as_str())
            ))?,
            How::TimerKeysCut => {
                TimerKey::new(timer.key().as_str().chars().take(255).collect::<String>())?
            }
            _ => timer.key().clone(),
        };
        let after = match self.how {
            How::TimersFireEarly => Duration::ZERO,
            _ => Duration::from_millis(timer.after().as_millis()),
        };
        let after = match self.how {
            How::TimerByCallersClock => {
                // The store's time, as a timer tells it that is replaced at once.
                let now = Schedule::new(key.clone(), Duration::ZERO, timer.event().clone())?;
                let now = self.inner.schedule(session, now).await?.due_at;
                super::claims::by_callers_clock(now, timer.after())
            }
            _ => after,
        };
        let mut other = Schedule::new(key, after, timer.event().clone())?;
        if let Some(origin) = timer.origin().filter(|_| !self.is(How::TimerOriginIgnored)) {
            other = other.origin_index(origin);
        }
        self.inner.schedule(session, other).await
    }

    pub(super) async fn break_unschedule(
        &self,
        session: &SessionId,
        key: &TimerKey,
    ) -> Result<Unscheduled> {
        let mut answer = self.inner.unschedule(session, key).await?;
        if self.is(How::UnscheduleAlwaysTrue) {
            answer.removed = true;
        }
        Ok(answer)
    }

    pub(super) async fn break_fire_timers(
        &self,
        session: &SessionId,
        fire: FireTimers,
    ) -> Result<Appended> {
        let fire = match self.how {
            How::FireLimitIgnored => FireTimers::new().served(fire.served_list().clone()),
            _ => fire,
        };
        self.inner.fire_timers(session, fire).await
    }
}
