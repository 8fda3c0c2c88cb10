//! Watching a namespace: as it is, then what changes.
//!
//! The watcher keeps a view of what it has told. Patches come through the hub and are told as they
//! are; whenever one may have been missed (a lag, a wake-up, a tick, an expiry) it reads the
//! namespace and tells what differs from the view. So nothing is told twice, and a lost patch costs
//! latency only.
//!
//! A look without a reason may come between a commit and its patch, which alone says who made it: what
//! it finds is not told until the patch has had a moment to come.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::Sleep;

use crate::{Clock, Error, Namespace, Presence, PresenceChange, PresenceStream, Result, Timestamp};

use super::polling::{BackOff, Polling, Ticker};
use super::presence_hub::{PresenceHub, PresenceTopic, Told};
use super::registry::{Cooperative, Seat, Wants};
use super::view::{Applied, View};

/// How much later than its commit a patch may come.
const PATIENCE: Duration = Duration::from_millis(20);

/// The stream behind [`Presence::watch_presence`].
///
/// `source` names this store handle: it stands on the expiries that this watcher finds. A change
/// that was found by reading has no source, unless the hub told who made it. `clock` is the one
/// that judges expiry, or close to it: the store's answer decides.
pub fn presence_stream(
    store: impl Presence + 'static,
    hub: &PresenceHub,
    namespace: &Namespace,
    clock: Arc<dyn Clock>,
    source: String,
    polling: impl Into<Polling>,
) -> PresenceStream {
    let watcher = Watcher {
        store,
        seat: hub.registry().listen(namespace),
        clock,
        source,
        ticker: Ticker::new(polling.into()),
        back_off: BackOff::new(),
        resting: None,
        view: None,
        seen: 0,
        version: 0,
        must_read: true,
        ticked: false,
        doubting: None,
        recheck: BackOff::new(),
        rechecking: None,
        told: Vec::new(),
        out: VecDeque::new(),
        ended: false,
    };
    let changes = stream::unfold(watcher, |mut watcher| async move {
        let change = watcher.next().await?;
        Some((change, watcher))
    });
    PresenceStream::new(Cooperative(Box::pin(changes.fuse())))
}

struct Watcher<P> {
    store: P,
    seat: Seat<Namespace, PresenceTopic>,
    clock: Arc<dyn Clock>,
    source: String,
    ticker: Ticker,
    back_off: BackOff,
    /// Runs after the store could not be read.
    resting: Option<Pin<Box<Sleep>>>,
    /// What was told; none before the first item.
    view: Option<View>,
    /// How many of the hub's patches were taken.
    seen: u64,
    /// The topic's version before the last read.
    version: u64,
    must_read: bool,
    /// It is time to look, for no other reason.
    ticked: bool,
    /// Runs after such a look has found what nobody has told.
    doubting: Option<Pin<Box<Sleep>>>,
    /// Paces the reads for rows that the store keeps although this clock says that they expired.
    recheck: BackOff,
    rechecking: Option<Pin<Box<Sleep>>>,
    /// The patches that were taken last: they say who made what the next read shows.
    told: Vec<Arc<Told>>,
    out: VecDeque<PresenceChange>,
    ended: bool,
}

impl<P: Presence> Watcher<P> {
    async fn next(&mut self) -> Option<Result<PresenceChange>> {
        if self.ended {
            return None;
        }
        loop {
            if self.seat.is_closed() {
                return self.end(Error::closed());
            }
            if let Some(change) = self.out.pop_front() {
                return Some(Ok(change));
            }
            self.ticked |= poll_fn(|cx| Poll::Ready(self.ticker.poll_tick(cx).is_ready())).await;
            self.take();
            let looks = self.ticked && self.doubting.is_none();
            if self.resting.is_none() && (self.must_read || looks || self.has_expired()) {
                match self.read().await {
                    Err(error) if !error.is_retryable() => return self.end(error),
                    Err(_) => self.resting = Some(Box::pin(self.back_off.sleep())),
                    Ok(()) => self.back_off.reset(),
                }
            } else if self.out.is_empty() {
                self.wait().await;
            }
        }
    }

    fn end(&mut self, error: Error) -> Option<Result<PresenceChange>> {
        self.ended = true;
        Some(Err(error))
    }

    /// Takes what the hub was told since the last time.
    fn take(&mut self) {
        let mut patches = Vec::new();
        let state = self.seat.topic().state();
        self.must_read |= state.version != self.version;
        self.version = state.version;
        let complete = state.copy_after(self.seen, &mut patches);
        self.seen = state.end();
        drop(state);
        let Some(view) = &mut self.view else { return };
        self.must_read |= !complete;
        let applicable: &[Arc<Told>] = if complete { &patches } else { &[] };
        for told in applicable {
            match view.apply(told) {
                Applied::Known => {}
                Applied::New(patch) => self.out.push_back(PresenceChange::Patch(patch)),
                Applied::Unsure(patch) => {
                    self.out.push_back(PresenceChange::Patch(patch));
                    self.must_read = true;
                }
                Applied::Stale => self.must_read = true,
            }
        }
        self.told = patches;
    }

    /// When a field of the view goes next, as far as that is to be looked at.
    fn next_expiry(&self) -> Option<Timestamp> {
        let next = self.view.as_ref().and_then(|view| view.next_expiry);
        next.filter(|_| self.rechecking.is_none())
    }

    fn has_expired(&self) -> bool {
        self.next_expiry().is_some_and(|next| next <= self.clock.now())
    }

    /// Reads the namespace: the first time to tell it, then to tell what differs from the view.
    async fn read(&mut self) -> Result<()> {
        let only_looks = !self.must_read && !self.has_expired();
        let rows = {
            let mut read = pin!(self.store.read_presence(self.seat.key()));
            poll_fn(|cx| {
                let read = read.as_mut().poll(cx);
                if read.is_pending() {
                    self.seat.wait_for_close(cx);
                    if self.seat.is_closed() {
                        return Poll::Ready(Err(Error::closed()));
                    }
                }
                read
            })
            .await?
        };
        self.must_read = false;
        self.ticked = false;
        let now = self.clock.now();
        let mut told = std::mem::take(&mut self.told);
        match &mut self.view {
            None => {
                self.view = Some(View::new(&rows.rows));
                self.out.push_back(PresenceChange::Rows(rows));
            }
            Some(view) => {
                // They are applied afterwards, as far as the read did not show them.
                self.seat.topic().state().copy_after(self.seen, &mut told);
                let (read, patches) = view.read(&rows.rows, now, &self.source, &told);
                if only_looks && patches.iter().any(|patch| patch.source.is_empty()) {
                    self.doubting = Some(Box::pin(tokio::time::sleep(PATIENCE)));
                    return Ok(());
                }
                *view = read;
                self.out.extend(patches.into_iter().map(PresenceChange::Patch));
            }
        }
        self.doubting = None;
        self.rechecking = None;
        if self.has_expired() {
            self.rechecking = Some(Box::pin(self.recheck.sleep()));
        } else {
            self.recheck.reset();
        }
        Ok(())
    }

    /// Waits for news, for the next expiry, for the tick or for the end of a rest.
    async fn wait(&mut self) {
        let next = self.next_expiry().filter(|_| self.resting.is_none());
        let clock = Arc::clone(&self.clock);
        let mut expiry = pin!(async move {
            match next {
                Some(next) => clock.sleep_until(next).await,
                None => std::future::pending().await,
            }
        });
        poll_fn(|cx| {
            let doubted = is_over(&mut self.doubting, cx);
            self.must_read |= doubted;
            let woken = doubted
                | self.poll_news(cx).is_ready()
                | is_over(&mut self.resting, cx)
                | is_over(&mut self.rechecking, cx)
                | expiry.as_mut().poll(cx).is_ready();
            if woken {
                return Poll::Ready(());
            }
            self.ticker.poll_tick(cx).map(|()| self.ticked = true)
        })
        .await;
    }

    fn poll_news(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.seat.topic().state();
        if state.version != self.version || state.end() != self.seen {
            return Poll::Ready(());
        }
        let old = state.waiters.put(self.seat.slot(), cx.waker(), Wants::Changes);
        if state.waiters.all_wait() {
            state.forget();
        }
        drop(state);
        drop(old);
        // Closing may have come before the waker was put down.
        if self.seat.is_closed() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Whether a rest that ran is over.
fn is_over(rest: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    let over = rest.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
    if over {
        *rest = None;
    }
    over
}
