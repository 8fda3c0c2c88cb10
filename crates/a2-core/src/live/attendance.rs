//! A task that runs while streams are open: for stores that must hear of other processes.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, select};
use futures_util::{FutureExt, Stream};
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, watch};

/// How long the task goes on when nothing is open.
const LINGER: Duration = Duration::from_secs(10);

type Serve = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Keeps a task running while streams or watchers are open, and a little longer: it listens for what
/// other processes tell, and looks for what they do not.
///
/// The task is started when a stream is polled, in that stream's runtime. Should the runtime end, or the
/// task panic, the streams that wait in others start it anew.
pub struct Attendance {
    serve: Serve,
    opened: watch::Sender<Opened>,
    /// Openings up to this one are attended to: what is told from now on is heard, if anything is.
    attended: watch::Sender<u64>,
    runs: AtomicBool,
    /// The task was cut off.
    cut_off: Arc<Notify>,
    ended: AtomicBool,
}

/// What is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opened {
    /// Streams and watchers that are open now.
    pub open: usize,
    /// How many were ever opened.
    pub count: u64,
}

impl Attendance {
    /// `serve` makes the task; it is dropped when nothing is open any more, and should not end before.
    #[must_use]
    pub fn new(serve: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self {
            serve: Box::new(serve),
            opened: watch::Sender::default(),
            attended: watch::Sender::default(),
            runs: AtomicBool::new(false),
            cut_off: Arc::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// The same for a task of what keeps the attendance itself, and calls [`end`](Self::end) when it goes.
    pub fn of<T, F>(owner: Weak<T>, serve: fn(Arc<T>) -> F) -> Self
    where
        T: Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::new(move || match owner.upgrade() {
            Some(owner) => serve(owner).boxed(),
            None => std::future::pending().boxed(),
        })
    }

    /// A stream opens that reads by index: whatever is told before it is attended to is found.
    pub fn open<S>(self: &Arc<Self>, stream: S) -> Attended<S> {
        self.opened.send_modify(|opened| {
            opened.open += 1;
            opened.count += 1;
        });
        Attended { stream, attendance: Arc::clone(self), ready: None, cut_off: None }
    }

    /// A watcher opens that begins when it is attended to, or that was tried.
    pub fn open_when_attended<S>(self: &Arc<Self>, stream: S) -> Attended<S> {
        let mut attended = self.open(stream);
        let (this, count) = (Arc::clone(self), self.opened.borrow().count);
        attended.ready = Some(Box::pin(async move {
            let mut now = this.attended.subscribe();
            // The sender is its own: it stays.
            let _ = now.wait_for(|now| *now >= count || this.is_ended()).await;
        }));
        attended
    }

    /// What is open, and when that changes.
    #[must_use]
    pub fn opened(&self) -> watch::Receiver<Opened> {
        self.opened.subscribe()
    }

    /// The task attends to the first `count` openings, or tried to.
    pub fn attend(&self, count: u64) {
        self.attended.send_modify(|now| *now = (*now).max(count));
    }

    /// Ends the task for good: the store is closed or gone.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.opened.send_modify(|_| {});
        self.attended.send_modify(|_| {});
    }

    /// Whether [`end`](Self::end) was called.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Sees that the task runs.
    fn run(self: &Arc<Self>) {
        if self.is_ended()
            || self.runs.load(Ordering::SeqCst)
            || self.runs.swap(true, Ordering::SeqCst)
        {
            return;
        }
        tokio::spawn(Running { attendance: Arc::clone(self), done: false }.run());
    }

    fn is_needed(&self) -> bool {
        self.opened.borrow().open > 0 && !self.is_ended()
    }

    /// The store has ended, or nothing has been open for a while.
    async fn over(&self) {
        let mut opened = self.opened.subscribe();
        // The sender is its own: it stays.
        while !self.is_ended() {
            let _ = opened.wait_for(|opened| opened.open == 0 || self.is_ended()).await;
            let again = opened.wait_for(|opened| opened.open > 0 || self.is_ended());
            if tokio::time::timeout(LINGER, again).await.is_err() {
                return;
            }
        }
    }
}

impl fmt::Debug for Attendance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attendance")
            .field("opened", &*self.opened.borrow())
            .field("runs", &self.runs)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The task.
struct Running {
    attendance: Arc<Attendance>,
    done: bool,
}

impl Running {
    async fn run(mut self) {
        let attendance = Arc::clone(&self.attendance);
        loop {
            select(pin!(attendance.over()), (attendance.serve)()).await;
            attendance.attended.send_replace(0);
            attendance.runs.store(false, Ordering::SeqCst);
            // A stream that opened meanwhile may have found that the task runs.
            if !attendance.is_needed() || attendance.runs.swap(true, Ordering::SeqCst) {
                self.done = true;
                return;
            }
        }
    }
}

/// When its runtime ends in the midst of it, whoever waits in another makes another.
impl Drop for Running {
    fn drop(&mut self) {
        if !self.done {
            self.attendance.attended.send_replace(0);
            self.attendance.runs.store(false, Ordering::SeqCst);
            self.attendance.cut_off.notify_waiters();
        }
    }
}

/// A stream that others' commits reach while it is open.
pub struct Attended<S> {
    stream: S,
    attendance: Arc<Attendance>,
    ready: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    cut_off: Option<Pin<Box<OwnedNotified>>>,
}

impl<S> Attended<S> {
    /// Sees that the task runs for as long as the stream waits.
    fn keep_running(&mut self, cx: &mut Context<'_>) {
        loop {
            let notify = &self.attendance.cut_off;
            let cut_off =
                self.cut_off.get_or_insert_with(|| Box::pin(Arc::clone(notify).notified_owned()));
            let again = cut_off.as_mut().poll(cx).is_ready();
            // Also when it was cut off just before: that was told to nobody.
            self.attendance.run();
            if !again {
                return;
            }
            self.cut_off = None;
        }
    }
}

impl<S: Stream + Unpin> Stream for Attended<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.attendance.run();
        if let Some(ready) = &mut self.ready {
            if ready.as_mut().poll(cx).is_pending() {
                self.keep_running(cx);
                return Poll::Pending;
            }
            self.ready = None;
        }
        let next = Pin::new(&mut self.stream).poll_next(cx);
        if next.is_pending() {
            self.keep_running(cx);
        }
        next
    }
}

impl<S> Drop for Attended<S> {
    fn drop(&mut self) {
        self.attendance.opened.send_modify(|opened| opened.open -= 1);
    }
}

impl<S: fmt::Debug> fmt::Debug for Attended<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attended").field("stream", &self.stream).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::{StreamExt, stream};

    use super::*;

    fn counting(runs: &Arc<AtomicUsize>) -> Arc<Attendance> {
        let runs = Arc::clone(runs);
        Arc::new(Attendance::new(move || {
            runs.fetch_add(1, Ordering::SeqCst);
            std::future::pending().boxed()
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_runs_while_a_stream_is_open_and_a_little_longer() {
        let runs = Arc::default();
        let attendance = counting(&runs);
        let mut open = attendance.open(stream::iter([1]));
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        assert_eq!(open.next().await, Some(1));
        tokio::task::yield_now().await;
        drop(open);
        tokio::time::sleep(LINGER / 2).await;
        drop(attendance.open(stream::pending::<u8>()));
        assert!(attendance.runs.load(Ordering::SeqCst));
        tokio::time::sleep(LINGER * 2).await;
        assert!(!attendance.runs.load(Ordering::SeqCst));
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        assert_eq!(attendance.open(stream::iter([2])).next().await, Some(2));
        tokio::task::yield_now().await;
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_begins_when_its_opening_is_attended_to() {
        let attendance = counting(&Arc::default());
        let _first = attendance.open(stream::pending::<u8>());
        let mut watcher = attendance.open_when_attended(stream::iter([1]));
        attendance.attend(1);
        assert!(watcher.next().now_or_never().is_none());
        attendance.attend(2);
        assert_eq!(watcher.next().await, Some(1));
    }

    #[test]
    fn whoever_waits_in_another_runtime_starts_the_task_anew() {
        let runtime =
            || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
        let (other, here) = (runtime().unwrap(), runtime().unwrap());
        let starts = Arc::new(Notify::new());
        let told = Arc::clone(&starts);
        let attendance = Arc::new(Attendance::new(move || {
            told.notify_one();
            std::future::pending().boxed()
        }));
        let mut first = attendance.open(stream::pending::<u8>());
        other.spawn(async move { first.next().await });
        here.block_on(starts.notified());
        let mut waits = attendance.open(stream::pending::<u8>());
        here.spawn(async move { waits.next().await });
        // Whether it waits already or is about to: either way it sees to it.
        other.shutdown_background();
        here.block_on(starts.notified());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_runs_after_the_end() {
        let runs = Arc::default();
        let attendance = counting(&runs);
        attendance.end();
        let mut open = attendance.open(stream::pending::<u8>());
        assert!(open.next().now_or_never().is_none());
        tokio::task::yield_now().await;
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_ends_all_waiting() {
        let attendance = counting(&Arc::default());
        let mut watcher = attendance.open_when_attended(stream::iter([1]));
        attendance.end();
        assert_eq!(watcher.next().await, Some(1));
    }
}
