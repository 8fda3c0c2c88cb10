//! Requests that wait at the same moment go together: one round trip and one commit, each with its own
//! answer.
//!
//! A request that finds nothing under way is sent at once, in its caller's own future; it never waits
//! for company. While a few are under way, others gather; whoever comes back takes along what has
//! gathered, in a task, so that a caller who loses interest leaves nobody waiting. Sessions' locks are
//! only tried then: a request that misses its lock is sent again alone, so that strangers never wait
//! for each other, nor deadlock. What cannot be done together is done one by one.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2_core::{Error, Result};
use tokio::sync::oneshot;

use crate::conn::Db;
use crate::error::Place;
use crate::rows;
use crate::statements::Sql;
use crate::verbs::{Locks, Op, Verb, place};

/// Calls of one verb that are under way before others gather.
const LANES: usize = 2;
/// A call that takes this long makes room for another: it may wait for a lock.
const PATIENCE: Duration = Duration::from_millis(5);
/// Most requests of one call, and most bytes, about.
const MOST: usize = 64;
const WEIGHT: usize = 1024 * 1024;

/// The requests of one verb.
pub(crate) struct Coalescer<V: Verb> {
    db: Db,
    sql: Arc<Sql>,
    queue: Mutex<Queue<V>>,
}

struct Queue<V: Verb> {
    waiting: VecDeque<Waiting<V>>,
    /// Calls that are under way.
    lanes: usize,
}

/// A request that waits.
struct Waiting<V: Verb> {
    op: Op<V::Request>,
    sent: Arc<AtomicBool>,
    answer: oneshot::Sender<Result<V::Answer>>,
}

/// What becomes of a request first.
enum Entered<V: Verb> {
    /// It is sent at once.
    Lane(Lane<V>, Op<V::Request>),
    /// It waits for its answer; whether it was sent is to be seen.
    Queue(oneshot::Receiver<Result<V::Answer>>, Arc<AtomicBool>),
}

impl<V: Verb> Coalescer<V> {
    pub(crate) fn new(db: &Db, sql: &Arc<Sql>) -> Arc<Self> {
        let queue = Mutex::new(Queue { waiting: VecDeque::new(), lanes: 0 });
        Arc::new(Self { db: db.clone(), sql: Arc::clone(sql), queue })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<V>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what is requested.
    pub(crate) async fn run(self: &Arc<Self>, op: Op<V::Request>) -> Result<V::Answer> {
        let session = op.session.clone();
        match self.enter(op) {
            Entered::Lane(lane, op) => lane.alone(&op).await,
            Entered::Queue(answered, sent) => {
                match tokio::time::timeout_at(self.db.deadline(), answered).await {
                    Ok(Ok(answer)) => answer,
                    // Late, or the task that had it is gone with its runtime.
                    Ok(Err(_)) | Err(_) => {
                        let place = Place::write(V::DOING, &session);
                        Err(place.timed_out(sent.load(Ordering::Acquire)))
                    }
                }
            }
        }
    }

    fn enter(self: &Arc<Self>, op: Op<V::Request>) -> Entered<V> {
        let mut queue = self.queue();
        if queue.lanes < LANES {
            queue.lanes += 1;
            return Entered::Lane(Lane::new(self), op);
        }
        let (answer, answered) = oneshot::channel();
        let sent = Arc::new(AtomicBool::new(false));
        queue.waiting.push_back(Waiting { op, sent: Arc::clone(&sent), answer });
        Entered::Queue(answered, sent)
    }

    /// Does one request, and waits for its session.
    async fn alone(&self, op: &Op<V::Request>) -> Result<V::Answer> {
        let ops = std::slice::from_ref(op);
        let rows = V::call(&self.db, &self.sql, ops, Locks::Wait).await?;
        let answer = V::answer(op, &rows)?;
        answer.ok_or_else(|| place(V::DOING, ops).unreadable("it was left undone"))
    }

    /// Some of what waits that can go together.
    fn gathered(&self) -> Vec<Waiting<V>> {
        let mut queue = self.queue();
        let mut together: Vec<Waiting<V>> = Vec::new();
        let mut apart = VecDeque::new();
        let mut weight = 0;
        while let Some(next) = queue.waiting.pop_front() {
            // Nobody wants it any more, and nothing was done.
            if next.answer.is_closed() {
                continue;
            }
            let request = &next.op.request;
            if let Some(first) = together.first() {
                weight += V::weight(request);
                if together.len() == MOST || weight > WEIGHT {
                    apart.push_back(next);
                    break;
                }
                if V::served(&first.op.request) != V::served(request) {
                    apart.push_back(next);
                    continue;
                }
            }
            next.sent.store(true, Ordering::Release);
            together.push(next);
        }
        while let Some(next) = apart.pop_back() {
            queue.waiting.push_front(next);
        }
        together
    }

    /// Does several requests in one call.
    async fn together(self: &Arc<Self>, waiting: Vec<Waiting<V>>) {
        let [Waiting { .. }, _, ..] = &waiting[..] else {
            for Waiting { op, answer, .. } in waiting {
                drop(answer.send(self.alone(&op).await));
            }
            return;
        };
        let (mut ops, mut answers) = (Vec::new(), Vec::new());
        for Waiting { op, answer, .. } in waiting {
            ops.push(op);
            answers.push(answer);
        }
        let called = V::call(&self.db, &self.sql, &ops, Locks::Try).await;
        let place = place(V::DOING, &ops);
        let by_op = called.and_then(|rows| {
            let by_op = rows::by_op(&rows, ops.len(), place)?;
            Ok(ops.iter().zip(by_op).map(|(op, rows)| V::answer(op, rows)).collect::<Vec<_>>())
        });
        let asked = ops.into_iter().zip(answers);
        match by_op {
            Ok(by_op) => {
                for ((op, answer), done) in asked.zip(by_op) {
                    match done.transpose() {
                        Some(done) => drop(answer.send(done)),
                        None => self.again(op, answer),
                    }
                }
            }
            // It concerns them all.
            Err(error) if error.is_retryable() => {
                asked.for_each(|(_, answer)| drop(answer.send(Err(copy(&error)))));
            }
            // Nothing was done: whose fault it is shows when each is alone.
            Err(_) => asked.for_each(|(op, answer)| self.again(op, answer)),
        }
    }

    /// Sends a request again, alone, with all the time that it needs.
    fn again(self: &Arc<Self>, op: Op<V::Request>, answer: oneshot::Sender<Result<V::Answer>>) {
        let this = Arc::clone(self);
        tokio::spawn(async move { drop(answer.send(this.alone(&op).await)) });
    }
}

fn copy(error: &Error) -> Error {
    error.kind().clone().into()
}

/// The right to have one call under way. Whoever gives it up takes along what has gathered.
struct Lane<V: Verb> {
    coalescer: Arc<Coalescer<V>>,
    held: bool,
}

impl<V: Verb> Lane<V> {
    fn new(coalescer: &Arc<Coalescer<V>>) -> Self {
        Self { coalescer: Arc::clone(coalescer), held: true }
    }

    /// Does one request, and makes room for others when it takes long.
    async fn alone(mut self, op: &Op<V::Request>) -> Result<V::Answer> {
        let coalescer = Arc::clone(&self.coalescer);
        let mut call = pin!(coalescer.alone(op));
        tokio::select! {
            biased;
            answer = &mut call => return answer,
            () = tokio::time::sleep(PATIENCE) => self.give_up(),
        }
        call.await
    }

    /// What has gathered goes on, or the lane is free.
    fn give_up(&mut self) {
        if !std::mem::take(&mut self.held) {
            return;
        }
        let mut queue = self.coalescer.queue();
        if queue.waiting.is_empty() {
            queue.lanes -= 1;
            return;
        }
        drop(queue);
        let next = Self::new(&self.coalescer);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(next.gathered())),
            // Dropped outside of a runtime: what waits is taken along by the next request.
            Err(_) => next.leave(),
        }
    }

    fn leave(mut self) {
        self.held = false;
        self.coalescer.queue().lanes -= 1;
    }

    /// Sends what has gathered, until nothing has.
    async fn gathered(mut self) {
        loop {
            let waiting = self.coalescer.gathered();
            if waiting.is_empty() {
                let mut queue = self.coalescer.queue();
                if queue.waiting.is_empty() {
                    queue.lanes -= 1;
                    drop(queue);
                    self.held = false;
                    return;
                }
                continue;
            }
            let coalescer = Arc::clone(&self.coalescer);
            let mut call = pin!(coalescer.together(waiting));
            tokio::select! {
                biased;
                () = &mut call => continue,
                () = tokio::time::sleep(PATIENCE) => self.give_up(),
            }
            call.await;
            return;
        }
    }
}

impl<V: Verb> Drop for Lane<V> {
    fn drop(&mut self) {
        self.give_up();
    }
}
