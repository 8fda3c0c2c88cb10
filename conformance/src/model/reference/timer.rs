//! Timers.

use a2_core::{
    Appended, ErrorKind, FireTimers, Schedule, Scheduled, Timer, TimerKey, Timestamp, Unscheduled,
};

use super::session::Session;

impl Session {
    pub(super) fn schedule(
        &mut self,
        now: Timestamp,
        schedule: &Schedule,
    ) -> Result<Scheduled, ErrorKind> {
        self.check_origin(schedule.origin())?;
        let due_at = now.after(schedule.after());
        self.timers.retain(|timer| timer.key != *schedule.key());
        self.timers.push(Timer::new(
            schedule.key().clone(),
            due_at,
            schedule.event().clone(),
            schedule.origin(),
        ));
        Ok(Scheduled::new(due_at))
    }

    pub(super) fn unschedule(&mut self, key: &TimerKey) -> Unscheduled {
        let before = self.timers.len();
        self.timers.retain(|timer| timer.key != *key);
        Unscheduled::new(self.timers.len() < before)
    }

    /// By key.
    pub(super) fn timers(&self) -> Vec<Timer> {
        let mut timers = self.timers.clone();
        timers.sort_by(|a, b| a.key.as_str().cmp(b.key.as_str()));
        timers
    }

    /// Appends the events of those that are due, in order of due time, of one time by key.
    pub(super) fn fire_timers(&mut self, now: Timestamp, fire: &FireTimers) -> Appended {
        let mut due = self.timers();
        due.retain(|timer| timer.due_at <= now);
        due.sort_by_key(|timer| timer.due_at);
        due.truncate(fire.max_timers());
        let mut events = Vec::new();
        for timer in due {
            self.timers.retain(|t| t.key != timer.key);
            // An id already owned counts as fired.
            if timer.event.event_id().is_some_and(|id| self.owner(id).is_none()) {
                events.extend(self.commit(now, vec![(timer.event, None)]));
            }
        }
        self.move_logs(fire.served_list(), &events);
        Appended::new(events, self.has_pending(fire.served_list()), false)
    }
}
