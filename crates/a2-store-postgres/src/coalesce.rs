//! Requests that wait at the same moment go together: one round trip and one commit, each with its own
//! answer.
//!
//! A request that finds nothing under way is sent at once; it never waits for company. While a few
//! calls are under way, others gather, and whoever comes back takes them along. Sessions' locks are
//! only tried when there are several: requests that miss their lock are sent again without the others,
//! so that strangers never wait for each other, nor deadlock. A session's requests are in one call of
//! the verb at a time, so that one session that is locked for long keeps one connection, not all.
//!
//! Calls run in tasks: a caller who is not polled, or gone, holds neither a session's lock nor a
//! connection, and what was committed is told all the same.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2_core::{Error, Result, SessionId};
use tokio::sync::oneshot;

use crate::conn::Db;
use crate::error::Place;
use crate::rows;
use crate::statements::Sql;
use crate::tell::Teller;
use crate::verbs::{Locks, Op, Verb, place};

/// Calls of one verb that are under way before others gather.
const LANES: usize = 2;
/// A call that takes this long makes room for another: it may wait for a lock.
const PATIENCE: Duration = Duration::from_millis(5);
/// Most requests of one call, and most bytes, about. Each holds a lock in the server's table, which is
/// of a fixed size.
const MOST: usize = 16;
/// Most requests that are looked at for such as can go together.
const LOOKS: usize = 256;
const WEIGHT: usize = 1024 * 1024;

/// The requests of one verb.
pub(crate) struct Coalescer<V: Verb> {
    db: Db,
    sql: Arc<Sql>,
    teller: Teller,
    queue: Mutex<Queue<V>>,
}

struct Queue<V: Verb> {
    waiting: VecDeque<Waiting<V>>,
    /// Sessions with a request in a call.
    flying: HashSet<SessionId>,
    /// Tasks that send.
    lanes: usize,
}

/// A request that waits, or is in a call.
struct Waiting<V: Verb> {
    op: Op<V::Request>,
    slot: Arc<Slot>,
    answer: oneshot::Sender<Result<V::Answer>>,
}

impl<V: Verb> Waiting<V> {
    fn is_wanted(&self) -> bool {
        !self.answer.is_closed()
    }
}

/// Who has a request: it is sent, or its caller has given it up. Never both.
#[derive(Default)]
struct Slot(AtomicU8);

impl Slot {
    const WAITS: u8 = 0;
    const SENT: u8 = 1;
    const GIVEN_UP: u8 = 2;

    /// Whether it may be sent.
    fn take(&self) -> bool {
        self.become_one(Self::SENT)
    }

    /// Whether it was not sent, and never is.
    fn give_up(&self) -> bool {
        self.become_one(Self::GIVEN_UP)
    }

    fn become_one(&self, state: u8) -> bool {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        self.0.compare_exchange(Self::WAITS, state, order.0, order.1).is_ok()
    }
}

/// Gives a request up whose caller is gone.
struct Caller(Arc<Slot>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl<V: Verb> Coalescer<V> {
    pub(crate) fn new(db: &Db, sql: &Arc<Sql>, teller: &Teller) -> Arc<Self> {
        let queue = Queue { waiting: VecDeque::new(), flying: HashSet::new(), lanes: 0 };
        Arc::new(Self {
            db: db.clone(),
            sql: Arc::clone(sql),
            teller: teller.clone(),
            queue: Mutex::new(queue),
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<V>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what is requested.
    pub(crate) async fn run(self: &Arc<Self>, op: Op<V::Request>) -> Result<V::Answer> {
        let session = op.session.clone();
        let (answer, answered) = oneshot::channel();
        let caller = Caller(Arc::default());
        self.queue().waiting.push_back(Waiting { op, slot: Arc::clone(&caller.0), answer });
        self.kick();
        match tokio::time::timeout_at(self.db.deadline(), answered).await {
            Ok(Ok(answer)) => answer,
            // Late, or the task that had it is gone with its runtime.
            Ok(Err(_)) | Err(_) => {
                let sent = !caller.0.give_up();
                Err(Place::write(V::DOING, &session).timed_out(sent))
            }
        }
    }

    /// Sees that somebody sends what waits.
    fn kick(self: &Arc<Self>) {
        let mut queue = self.queue();
        let Queue { waiting, flying, lanes } = &mut *queue;
        if *lanes < LANES && waiting.iter().any(|next| !flying.contains(&next.op.session)) {
            *lanes += 1;
            drop(queue);
            let right = Right { coalescer: Arc::clone(self), held: true };
            tokio::spawn(right.send());
        }
    }

    /// Some of what waits that can go together, and is flying from now on.
    fn gather(queue: &mut Queue<V>) -> Vec<Waiting<V>> {
        let mut together: Vec<Waiting<V>> = Vec::new();
        let mut apart = VecDeque::new();
        let mut weight = 0;
        while let Some(next) = queue.waiting.pop_front() {
            let request = &next.op.request;
            let fits = together
                .first()
                .is_none_or(|first| V::served(&first.op.request) == V::served(request));
            if !fits || queue.flying.contains(&next.op.session) {
                apart.push_back(next);
                // What waits for its session is passed over; whoever is sent is not looked for long.
                if !together.is_empty() && apart.len() > LOOKS {
                    break;
                }
                continue;
            }
            let heavier = weight + V::weight(request);
            if together.len() == MOST || (heavier > WEIGHT && !together.is_empty()) {
                apart.push_back(next);
                break;
            }
            // Its caller may have given it up.
            if next.slot.take() {
                weight = heavier;
                together.push(next);
            }
        }
        while let Some(next) = apart.pop_back() {
            queue.waiting.push_front(next);
        }
        queue.flying.extend(together.iter().map(|next| next.op.session.clone()));
        together
    }

    /// Does requests of one session or several.
    async fn together(self: &Arc<Self>, mut groups: Vec<Group<V>>) {
        if groups.len() < 2 {
            for group in groups {
                group.alone().await;
            }
            return;
        }
        let mut ops = Vec::new();
        let mut places = Vec::new();
        for (at, group) in groups.iter_mut().enumerate() {
            for Waiting { op, answer, slot } in group.requests.drain(..) {
                ops.push(op);
                places.push((at, answer, slot));
            }
        }
        let called = V::call(&self.db, &self.sql, &ops, Locks::Try).await;
        let answers = called.and_then(|rows| {
            let by_op = rows::by_op(&rows, ops.len(), place(V::DOING, &ops))?;
            Ok(ops.iter().zip(by_op).map(|(op, rows)| V::answer(op, rows)).collect::<Vec<_>>())
        });
        let error = answers.as_ref().err().map(copy);
        let mut answers = answers.unwrap_or_default().into_iter();
        for (op, (at, answer, slot)) in ops.into_iter().zip(places) {
            let done = match &error {
                // It concerns them all.
                Some(error) if error.is_retryable() => Some(Err(copy(error))),
                // Nothing was done: whose fault it is shows when each is alone.
                Some(_) => None,
                None => answers.next().and_then(Result::transpose),
            };
            match done {
                Some(done) => self.answer(&op.session, answer, done),
                None => groups[at].requests.push(Waiting { op, slot, answer }),
            }
        }
        groups.retain(|group| !group.requests.is_empty());
        self.kick();
        for group in groups {
            tokio::spawn(group.alone());
        }
    }

    /// Answers a request; what was committed is told first.
    fn answer(
        &self,
        session: &SessionId,
        answer: oneshot::Sender<Result<V::Answer>>,
        done: Result<V::Answer>,
    ) {
        if let Ok(done) = &done {
            V::tell(&self.teller, session, done);
        }
        // Its caller may be gone.
        drop(answer.send(done));
    }

    /// Waits for the session and does the requests, which are all of one.
    async fn call(&self, ops: &[Op<V::Request>]) -> Result<Vec<Result<V::Answer>>> {
        let place = place(V::DOING, ops);
        let rows = V::call(&self.db, &self.sql, ops, Locks::Wait).await?;
        let by_op = rows::by_op(&rows, ops.len(), place)?;
        let undone = || place.unreadable("it was left undone");
        let answer = |(op, rows)| V::answer(op, rows).and_then(|done| done.ok_or_else(undone));
        Ok(ops.iter().zip(by_op).map(answer).collect())
    }
}

fn copy(error: &Error) -> Error {
    error.kind().clone().into()
}

/// The requests of one session that are in a call. The session's others wait until it is dropped.
struct Group<V: Verb> {
    coalescer: Arc<Coalescer<V>>,
    session: SessionId,
    requests: Vec<Waiting<V>>,
}

impl<V: Verb> Group<V> {
    fn by_session(coalescer: &Arc<Coalescer<V>>, requests: Vec<Waiting<V>>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for next in requests {
            match groups.iter_mut().find(|group| group.session == next.op.session) {
                Some(group) => group.requests.push(next),
                None => groups.push(Self {
                    coalescer: Arc::clone(coalescer),
                    session: next.op.session.clone(),
                    requests: vec![next],
                }),
            }
        }
        groups
    }

    /// Does the requests, with all the time that they need.
    async fn alone(mut self) {
        let coalescer = Arc::clone(&self.coalescer);
        self.run().await;
        drop(self);
        coalescer.kick();
    }

    async fn run(&mut self) {
        let coalescer = Arc::clone(&self.coalescer);
        let (mut ops, mut answers) = (Vec::new(), Vec::new());
        // A claim that nobody waits for would be held for its whole ttl.
        for Waiting { op, answer, .. } in self.requests.drain(..).filter(Waiting::is_wanted) {
            ops.push(op);
            answers.push(answer);
        }
        if ops.is_empty() {
            return;
        }
        match coalescer.call(&ops).await {
            Ok(done) => {
                for (answer, done) in answers.into_iter().zip(done) {
                    coalescer.answer(&self.session, answer, done);
                }
            }
            // One by one, when it may be the fault of one.
            Err(error) if ops.len() > 1 && !error.is_retryable() => {
                for (op, answer) in ops.iter().zip(answers) {
                    let done = match coalescer.call(std::slice::from_ref(op)).await {
                        Ok(mut done) => done.pop().unwrap_or_else(|| Err(copy(&error))),
                        Err(error) => Err(error),
                    };
                    coalescer.answer(&self.session, answer, done);
                }
            }
            Err(error) => {
                // The first gets the driver's error as its source.
                let copies: Vec<_> = answers.iter().skip(1).map(|_| copy(&error)).collect();
                for (answer, error) in answers.into_iter().zip(std::iter::once(error).chain(copies))
                {
                    coalescer.answer(&self.session, answer, Err(error));
                }
            }
        }
    }
}

impl<V: Verb> Drop for Group<V> {
    fn drop(&mut self) {
        self.coalescer.queue().flying.remove(&self.session);
    }
}

/// The right to send. It is given back with the task, and nothing is begun then: its runtime may be
/// shutting down.
struct Right<V: Verb> {
    coalescer: Arc<Coalescer<V>>,
    held: bool,
}

impl<V: Verb> Right<V> {
    /// Sends what waits, until nothing does.
    async fn send(mut self) {
        let coalescer = Arc::clone(&self.coalescer);
        loop {
            let requests = {
                let mut queue = coalescer.queue();
                let requests = Coalescer::gather(&mut queue);
                if requests.is_empty() {
                    queue.lanes -= 1;
                    self.held = false;
                    return;
                }
                requests
            };
            let groups = Group::by_session(&coalescer, requests);
            let mut call = pin!(coalescer.together(groups));
            tokio::select! {
                biased;
                () = &mut call => continue,
                () = tokio::time::sleep(PATIENCE) => {}
            }
            drop(self);
            coalescer.kick();
            call.await;
            coalescer.kick();
            return;
        }
    }
}

impl<V: Verb> Drop for Right<V> {
    fn drop(&mut self) {
        if self.held {
            self.coalescer.queue().lanes -= 1;
        }
    }
}
