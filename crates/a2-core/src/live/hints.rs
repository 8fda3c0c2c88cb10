//! Hints that sessions may have work: those that were appended to or redriven, as the hub is told
//! of them, and those whose timers become due by the store's clock.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::time::Sleep;

use crate::{Clock, Error, Result, Served, SessionId, Timestamp, WorkHint, WorkHints};

use super::hub::Hub;
use super::polling::{BackOff, Polling, Ticker};
use super::registry::Cooperative;
use super::watchers::{ALWAYS, Sessions, TimerNews, Watch};

/// Most timers asked for at a time.
const PAGE: usize = 256;

/// After every timer.
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

/// A session with a timer, and when that is due. Ordered by time, then by session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueTimer {
    /// When the timer is due.
    pub due_at: Timestamp,
    /// Whose timer.
    pub session: SessionId,
}

/// What a watcher asks a store about timers.
#[async_trait]
pub trait DueTimers: Send + Sync {
    /// The timers due from `from` to `through`, both included, in order of (due time, session), at
    /// most `limit`. Of those due exactly at `from`, only sessions after `after`. A session's
    /// timers of one due time may come as one.
    async fn due_timers(
        &self,
        from: Timestamp,
        after: Option<&SessionId>,
        through: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>>;

    /// The due time of the first timer that is due later than `after`.
    async fn next_due(&self, after: Timestamp) -> Result<Option<Timestamp>>;
}

/// The stream behind [`Store::watch_pending`](crate::Store::watch_pending).
///
/// `clock` is the one that judges timers. A timer is hinted at once when it becomes due; those that
/// stay overdue are hinted again at each tick of `polling`, which also finds timers that other
/// processes set. Every append is hinted, whoever is served: which logs take it is not known here.
/// Who serves nothing gets hints for timers alone.
pub fn work_hints(
    hub: &Hub,
    due: impl DueTimers + 'static,
    clock: Arc<dyn Clock>,
    served: Served,
    polling: impl Into<Polling>,
) -> WorkHints {
    let hinter = Hinter {
        watch: hub.watchers().watch(),
        due,
        clock,
        serves_nobody: served.entries().is_some_and(<[_]>::is_empty),
        ticker: Ticker::new(polling.into()),
        back_off: BackOff::new(),
        resting: None,
        from: ALWAYS,
        next: Some(ALWAYS),
        scan: None,
        overdue: Sessions::default(),
        overdue_next: false,
        ended: false,
    };
    let hints = stream::unfold(hinter, |mut hinter| async move {
        let hint = hinter.next().await?;
        Some((hint, hinter))
    });
    WorkHints::new(Cooperative(Box::pin(hints.fuse())))
}

struct Hinter<D> {
    watch: Watch,
    due: D,
    clock: Arc<dyn Clock>,
    serves_nobody: bool,
    ticker: Ticker,
    back_off: BackOff,
    /// Runs after the store could not be asked.
    resting: Option<Pin<Box<Sleep>>>,
    /// Timers due before this were hinted.
    from: Timestamp,
    /// When the next timer is due; none when that must be asked.
    next: Option<Timestamp>,
    /// Due timers that are still to be asked for.
    scan: Option<Scan>,
    /// Sessions with due timers, to tell.
    overdue: Sessions,
    /// Whether the next hint comes from `overdue` if there are both.
    overdue_next: bool,
    ended: bool,
}

/// A pass over the timers that are due.
struct Scan {
    from: Timestamp,
    after: Option<SessionId>,
    through: Timestamp,
}

impl<D: DueTimers> Hinter<D> {
    async fn next(&mut self) -> Option<Result<WorkHint>> {
        if self.ended {
            return None;
        }
        loop {
            if self.watch.is_closed() {
                return self.end(Error::closed());
            }
            if poll_fn(|cx| Poll::Ready(self.ticker.poll_tick(cx).is_ready())).await {
                (self.from, self.next, self.scan) = (ALWAYS, Some(ALWAYS), None);
            }
            if let Err(error) = self.ask().await {
                if !error.is_retryable() {
                    return self.end(error);
                }
                self.resting = Some(Box::pin(self.back_off.sleep()));
            }
            if let Some(session) = self.pop() {
                return Some(Ok(WorkHint::new(session)));
            }
            if self.resting.is_some() || (self.scan.is_none() && self.next.is_some()) {
                self.wait().await;
            }
        }
    }

    fn end(&mut self, error: Error) -> Option<Result<WorkHint>> {
        self.ended = true;
        Some(Err(error))
    }

    /// The next session to tell, in turns from both sides.
    fn pop(&mut self) -> Option<SessionId> {
        self.overdue_next = !self.overdue_next;
        if self.overdue_next
            && let Some(session) = self.overdue.pop()
        {
            return Some(session);
        }
        while let Some(session) = self.watch.pop() {
            if !self.serves_nobody {
                return Some(session);
            }
        }
        self.overdue.pop()
    }

    /// Asks the store about timers, as far as there is something to ask.
    async fn ask(&mut self) -> Result<()> {
        let TimerNews { set, changed } = self.watch.timer_news();
        if let Some(due_at) = set {
            self.from = self.from.min(due_at);
            self.next = self.next.map(|next| next.min(due_at));
        }
        if changed {
            self.next = None;
        }
        if self.resting.is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        if self.scan.is_none() && self.next.is_some_and(|next| next <= now) {
            self.scan = Some(Scan { from: self.from.min(now), after: None, through: now });
            // Now, so that a timer which is set during the pass is not passed over.
            self.from = later(now);
        }
        if let Some(scan) = &mut self.scan
            && self.overdue.is_empty()
        {
            self.watch.disarm();
            let Scan { from, after, through } = scan;
            let page = self.due.due_timers(*from, after.as_ref(), *through, PAGE).await?;
            match page.last() {
                Some(last) if page.len() >= PAGE => {
                    (*from, *after) = (last.due_at, Some(last.session.clone()));
                }
                _ => (self.scan, self.next) = (None, None),
            }
            page.iter().for_each(|timer| self.overdue.push(&timer.session));
            self.back_off.reset();
        }
        if self.scan.is_none() && self.next.is_none() {
            self.watch.disarm();
            let next = self.due.next_due(earlier(self.from)).await?;
            // A timer in the past was hinted; whoever sets one again says so.
            self.next = Some(next.map_or(NEVER, |next| next.max(self.from)));
            self.back_off.reset();
        }
        Ok(())
    }

    /// Waits for news, for the next timer, for the tick or for the end of the rest.
    async fn wait(&mut self) {
        let next = self.next.filter(|_| self.resting.is_none() && self.scan.is_none());
        if let Some(next) = next {
            self.watch.arm(next);
        }
        let clock = Arc::clone(&self.clock);
        let mut timer = pin!(async move {
            match next {
                Some(next) if next < NEVER => clock.sleep_until(next).await,
                _ => std::future::pending().await,
            }
        });
        poll_fn(|cx| self.poll_wait(cx, timer.as_mut())).await;
    }

    fn poll_wait(
        &mut self,
        cx: &mut Context<'_>,
        timer: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<()> {
        if let Some(rest) = &mut self.resting
            && rest.as_mut().poll(cx).is_ready()
        {
            self.resting = None;
            return Poll::Ready(());
        }
        if self.watch.poll_news(cx).is_ready() || timer.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        self.ticker.poll_tick(cx).map(|()| {
            (self.from, self.next, self.scan) = (ALWAYS, Some(ALWAYS), None);
        })
    }
}

fn later(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add(1))
}

fn earlier(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_sub(1))
}
