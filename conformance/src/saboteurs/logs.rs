//! Log cursors and timers gone wrong.

use std::time::Duration;

use a2_core::{
    Appended, FireTimers, LogDeclaration, LogTypes, Presence, Result, Schedule, Scheduled,
    SessionId, TimerKey, Timers, Unscheduled, WakeLog, WokenLog,
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
        self.inner.wake_log(session, WakeLog::new(log.consumer().clone(), other)?).await
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
            _ => timer.key().clone(),
        };
        let after = match self.how {
            How::TimersFireEarly => Duration::ZERO,
            _ => Duration::from_millis(timer.after().as_millis()),
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
