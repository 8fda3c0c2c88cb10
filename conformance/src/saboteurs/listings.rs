//! Listings, redrives and what finds work, gone wrong.

use a2_core::{
    CursorKey, Cursors, DeadLetters, Error, Page, Pending, PendingPage, Presence, Redrive,
    RedriveAction, Redriven, Result, Served, SessionId, Sessions, StoreExt, Timers, Timestamp,
};

use super::{Broken, How};

impl<S: Timers + Presence> Broken<S> {
    pub(super) async fn break_dead_letters(
        &self,
        session: &SessionId,
        page: Page,
    ) -> Result<DeadLetters> {
        let mut answer = self.inner.dead_letters(session, page).await?;
        match self.how {
            How::DeadLettersBackwards => answer.heads.reverse(),
            How::DeadLettersEndEarly => answer.next = None,
            _ => {}
        }
        Ok(answer)
    }

    pub(super) async fn break_redrive(
        &self,
        session: &SessionId,
        redrive: Redrive,
    ) -> Result<Redriven> {
        let other = |action| {
            Redrive::new(redrive.head().clone(), action).served(redrive.served_list().clone())
        };
        let redrive = match (self.how, redrive.action()) {
            (How::SkipRetries, RedriveAction::Skip) => other(RedriveAction::Retry),
            (How::RetrySkips, RedriveAction::Retry) => other(RedriveAction::Skip),
            _ => redrive,
        };
        let mut answer = self.inner.redrive(session, redrive).await?;
        if self.is(How::RedriveAlwaysTrue) {
            answer.redriven = true;
        }
        Ok(answer)
    }

    pub(super) async fn break_cursors(&self, session: &SessionId, page: Page) -> Result<Cursors> {
        let answer = self.inner.cursors(session, page).await;
        let mut answer = answer.map_err(|error| match self.how {
            How::InvalidInputVague => Error::invalid("request", "must be valid"),
            _ => error,
        })?;
        match self.how {
            How::CursorsUnordered => answer.cursors.reverse(),
            How::PositionIsHead => {
                for cursor in &mut answer.cursors {
                    if matches!(cursor.key, CursorKey::Event) {
                        cursor.position = cursor.head.unwrap_or(cursor.position);
                    }
                }
            }
            _ => {}
        }
        Ok(answer)
    }

    pub(super) async fn break_sessions(&self, page: Page) -> Result<Sessions> {
        let mut answer = self.inner.sessions(page).await?;
        if self.is(How::SessionsForget) {
            answer.sessions.pop();
        }
        Ok(answer)
    }

    pub(super) async fn break_pending(&self, pending: PendingPage) -> Result<Pending> {
        let pending = match self.how {
            How::PendingServedIgnored => {
                PendingPage::new(Served::ALL).page(pending.which().clone())
            }
            _ => pending,
        };
        let mut answer = self.inner.pending(pending).await?;
        match self.how {
            How::NotBeforeTooLate => {
                for entry in &mut answer.sessions {
                    let late = entry.not_before.as_millis() + 1;
                    entry.not_before = Timestamp::from_millis(late);
                }
            }
            How::PendingForgetsTimers => {
                let mut kept = Vec::new();
                for entry in answer.sessions {
                    let cursors = self.inner.all_cursors(&entry.session).await?;
                    if cursors.iter().any(|c| c.head.is_some() && !c.state.is_dead()) {
                        kept.push(entry);
                    }
                }
                answer.sessions = kept;
            }
            _ => {}
        }
        Ok(answer)
    }
}
