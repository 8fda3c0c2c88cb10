//! The one writer: operations that wait at the same moment share a transaction and a flush.
//!
//! An operation that finds the writer idle runs at once, in place where the runtime allows it.
//! Otherwise it queues, and the writer thread (made when it is first needed) drains what waits, runs
//! it in one transaction, commits, and only then answers. A lone operation never waits for company.
//!
//! The engine checks everything before it writes anything, so an operation that is refused leaves no
//! trace and needs no savepoint (which would cost a copy of every page it touches). One that fails
//! after it has written, or a commit that fails, rolls the whole group back, and each operation runs
//! again in a transaction of its own: one's failure never touches another's result.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use a2_core::{Error, Result};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::blocking;
use crate::conn::Opener;
use crate::error::panic_text;
use crate::rows;
use crate::statements;
use crate::tx::Tx;
use crate::wake::Watch;

/// Most operations of one transaction.
const GROUP_OPERATIONS: usize = 64;
/// A transaction takes no further operation once this much payload is in it.
const GROUP_BYTES: usize = 1024 * 1024;
/// Operations that queue; further ones wait for a place.
const QUEUE: usize = 1_024;

/// An operation on its way: run in a transaction, told that it is committed, answered.
trait Job: Send {
    /// Runs, again if need be, and keeps the result; answers whether it succeeded.
    fn run(&mut self, tx: &Tx<'_>) -> bool;
    fn fail(&mut self, error: Error);
    /// The commit is done: wakes whoever waits for it.
    fn committed(&mut self);
    fn answer(&mut self);
    /// Nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    fn bytes(&self) -> usize;
    /// Whether it must not share a transaction.
    fn runs_alone(&self) -> bool;
}

/// What an operation is made of.
pub(crate) struct Operation<F, W> {
    /// Payload bytes that it writes, about.
    pub(crate) bytes: usize,
    /// Whether it must not share a transaction.
    pub(crate) alone: bool,
    /// Does the work, may be called again after a roll-back.
    pub(crate) run: F,
    /// Called after the commit, in the order of commits.
    pub(crate) wake: W,
}

struct Pending<T, F, W> {
    operation: Operation<F, W>,
    result: Option<Result<T>>,
    reply: Option<oneshot::Sender<Result<T>>>,
}

impl<T, F, W> Job for Pending<T, F, W>
where
    T: Send,
    F: FnMut(&Tx<'_>) -> Result<T> + Send,
    W: FnMut(&T) + Send,
{
    fn run(&mut self, tx: &Tx<'_>) -> bool {
        let result = (self.operation.run)(tx);
        let done = result.is_ok();
        self.result = Some(result);
        done
    }

    fn fail(&mut self, error: Error) {
        self.result = Some(Err(error));
    }

    fn committed(&mut self) {
        if let Some(Ok(done)) = &self.result {
            (self.operation.wake)(done);
        }
    }

    fn answer(&mut self) {
        if let (Some(reply), Some(result)) = (self.reply.take(), self.result.take()) {
            // The caller may have gone: the operation is done all the same.
            let _ = reply.send(result);
        }
    }

    fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn bytes(&self) -> usize {
        self.operation.bytes
    }

    fn runs_alone(&self) -> bool {
        self.operation.alone
    }
}

/// A job in the queue, with its place there.
struct Queued {
    job: Box<dyn Job>,
    since: Instant,
    _place: OwnedSemaphorePermit,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Queued>,
    has_thread: bool,
    closed: bool,
}

/// The connection that writes, and who waits for it.
pub(crate) struct Writer {
    opener: Opener,
    timeout: Duration,
    watch: Arc<Watch>,
    /// None once closed.
    conn: Mutex<Option<Connection>>,
    queue: Mutex<Queue>,
    /// Rung when a job is queued or the queue is closed.
    bell: Condvar,
    /// Jobs that are queued or being run by the thread.
    waiting: AtomicUsize,
    closed: AtomicBool,
    places: Arc<Semaphore>,
}

impl Writer {
    pub(crate) fn new(
        conn: Connection,
        opener: Opener,
        timeout: Duration,
        watch: Arc<Watch>,
    ) -> Self {
        Self {
            opener,
            timeout,
            watch,
            conn: Mutex::new(Some(conn)),
            queue: Mutex::default(),
            bell: Condvar::new(),
            waiting: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            places: Arc::new(Semaphore::new(QUEUE)),
        }
    }

    /// Runs an operation in a transaction and answers after its commit.
    ///
    /// When the future is dropped while the operation queues, it is not done; later it is done.
    pub(crate) async fn submit<T, F, W>(self: &Arc<Self>, operation: Operation<F, W>) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Tx<'_>) -> Result<T> + Send + 'static,
        W: FnMut(&T) + Send + 'static,
    {
        // What runs in place never waits: a loop of operations must give way, and end when aborted.
        tokio::task::coop::consume_budget().await;
        let pending = Pending { operation, result: None, reply: None };
        let mut pending = match self.at_once(pending) {
            Ok(result) => return result,
            Err(pending) => pending,
        };
        let places = Arc::clone(&self.places);
        let place = places.acquire_owned().await.map_err(|_| Error::closed())?;
        let (reply, answer) = oneshot::channel();
        pending.reply = Some(reply);
        self.enqueue(Queued { job: Box::new(pending), since: Instant::now(), _place: place })?;
        answer.await.unwrap_or_else(|_| Err(Error::closed()))
    }

    /// Runs the operation here and now if nobody else is at it; gives it back otherwise.
    fn at_once<T, F, W>(&self, mut pending: Pending<T, F, W>) -> Result<Result<T>, Pending<T, F, W>>
    where
        T: Send,
        F: FnMut(&Tx<'_>) -> Result<T> + Send,
        W: FnMut(&T) + Send,
    {
        if self.waiting.load(Ordering::Acquire) > 0 || !blocking::may_run_in_place() {
            return Err(pending);
        }
        let conn = match self.conn.try_lock() {
            Ok(conn) => conn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(pending),
        };
        // Where nothing may run in place after all, there is no result.
        let _ = blocking::in_place(|| match conn.as_ref() {
            Some(conn) => self.run_group(conn, &mut [&mut pending]),
            None => pending.fail(Error::closed()),
        });
        drop(conn);
        match pending.result.take() {
            Some(result) => Ok(result),
            None => Err(pending),
        }
    }

    fn lock_queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_conn(&self) -> MutexGuard<'_, Option<Connection>> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(self: &Arc<Self>, job: Queued) -> Result<()> {
        let mut queue = self.lock_queue();
        if queue.closed {
            return Err(Error::closed());
        }
        if !queue.has_thread {
            let writer = Arc::clone(self);
            thread::Builder::new()
                .name("a2-sqlite-writer".to_owned())
                .spawn(move || writer.serve())
                .map_err(|error| {
                    Error::unavailable("the writer thread cannot be made").with_source(error)
                })?;
            queue.has_thread = true;
        }
        queue.jobs.push_back(job);
        self.waiting.fetch_add(1, Ordering::AcqRel);
        drop(queue);
        self.bell.notify_one();
        Ok(())
    }

    /// The writer thread, until the queue is closed and empty.
    fn serve(&self) {
        while self.wait_for_work() {
            // The jobs are taken with the connection in hand: whatever has queued until then shares
            // the transaction.
            let conn = self.lock_conn();
            let mut group = self.take_group();
            let taken = group.len();
            let now = Instant::now();
            let in_time = |queued: &Queued| now.duration_since(queued.since) <= self.timeout;
            for queued in group.iter_mut().filter(|queued| !in_time(queued)) {
                queued.job.fail(Error::unavailable(format!(
                    "{}: the operation waited {:?} for its turn and was not done",
                    self.opener.name(),
                    self.timeout
                )));
                queued.job.answer();
            }
            group.retain(|queued| in_time(queued) && !queued.job.is_abandoned());
            let mut jobs: Vec<&mut dyn Job> =
                group.iter_mut().map(|queued| queued.job.as_mut() as &mut dyn Job).collect();
            match conn.as_ref() {
                Some(conn) if !jobs.is_empty() => self.run_group(conn, &mut jobs),
                Some(_) => {}
                None => jobs.iter_mut().for_each(|job| job.fail(Error::closed())),
            }
            self.waiting.fetch_sub(taken, Ordering::AcqRel);
            drop(conn);
            for queued in &mut group {
                queued.job.answer();
            }
        }
    }

    /// Waits until a job is queued; answers false when there will be none any more.
    fn wait_for_work(&self) -> bool {
        let mut queue = self.lock_queue();
        while queue.jobs.is_empty() {
            if queue.closed {
                queue.has_thread = false;
                self.bell.notify_all();
                return false;
            }
            queue = self.bell.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    fn take_group(&self) -> Vec<Queued> {
        let mut queue = self.lock_queue();
        let mut group: Vec<Queued> = Vec::new();
        let mut bytes = 0;
        while let Some(next) = queue.jobs.front() {
            let alone = next.job.runs_alone();
            if !group.is_empty() && (alone || bytes > GROUP_BYTES) {
                break;
            }
            bytes += next.job.bytes();
            group.extend(queue.jobs.pop_front());
            if alone || group.len() == GROUP_OPERATIONS {
                break;
            }
        }
        group
    }

    /// Runs the jobs, in one transaction if that goes well, else each in its own.
    fn run_group(&self, conn: &Connection, jobs: &mut [&mut dyn Job]) {
        if self.run_transaction(conn, jobs) {
            return;
        }
        if jobs.len() > 1 {
            for job in jobs {
                self.run_transaction(conn, std::slice::from_mut(job));
            }
        }
    }

    /// Runs the jobs in one transaction. False when it was rolled back because one of them failed
    /// half way or the commit did; a lone job then has its error.
    fn run_transaction(&self, conn: &Connection, jobs: &mut [&mut dyn Job]) -> bool {
        let place = self.opener.place("begin");
        if let Err(error) = rows::run(conn, statements::BEGIN_WRITE, []) {
            let first = place.error(error);
            for job in jobs.iter_mut() {
                let again = Error::from(first.kind().clone());
                job.fail(again);
            }
            return true;
        }
        let tx = Tx::new(conn, self.opener.name());
        for job in jobs.iter_mut() {
            tx.start_operation();
            let ran = catch_unwind(AssertUnwindSafe(|| job.run(&tx)));
            let done = ran.unwrap_or_else(|panic| {
                job.fail(Error::corrupt(
                    None,
                    None,
                    format!("{}: an operation panicked: {}", place.file, panic_text(&*panic)),
                ));
                false
            });
            if conn.is_autocommit() || (!done && tx.has_written()) {
                self.roll_back(conn);
                self.write_back(conn);
                if done {
                    job.fail(Error::unavailable(format!(
                        "{}: SQLite ended the transaction",
                        place.file
                    )));
                }
                return false;
            }
        }
        if let Err(error) = rows::run(conn, statements::COMMIT, []) {
            let error = self.opener.place("commit").error(error);
            self.roll_back(conn);
            self.write_back(conn);
            // One job has its error here; several run again.
            if let [job] = jobs {
                job.fail(error);
            }
            return false;
        }
        if let Some((first, last)) = tx.added() {
            self.watch.own_events(first, last);
        }
        for job in jobs.iter_mut() {
            // It is done, whatever becomes of those who wait for it.
            let _ = catch_unwind(AssertUnwindSafe(|| job.committed()));
        }
        true
    }

    fn roll_back(&self, conn: &Connection) {
        if !conn.is_autocommit() {
            // A transaction that cannot even be rolled back fails the next one's begin.
            let _ = rows::run(conn, statements::ROLLBACK, []);
        }
    }

    /// Writes the log back into the file after a failure. SQLite does so by itself after commits alone: a
    /// log that has filled the disk, while a reader kept it from being written back, would stay there for
    /// ever, since no commit succeeds any more.
    fn write_back(&self, conn: &Connection) {
        // What cannot be written back now is tried after the next failure.
        let _ = conn.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(()));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Takes no further jobs: those that queue are still done.
    pub(crate) fn stop(&self) {
        self.closed.store(true, Ordering::Release);
        self.places.close();
        self.lock_queue().closed = true;
        self.bell.notify_all();
    }

    /// Waits for what is under way and closes the connection. Blocks.
    pub(crate) fn close(&self) {
        self.stop();
        let mut queue = self.lock_queue();
        while queue.has_thread {
            queue = self.bell.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        drop(queue);
        self.lock_conn().take();
    }
}
