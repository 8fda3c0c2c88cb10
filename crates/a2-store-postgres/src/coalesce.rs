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

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2_core::{Error, ErrorKind, Result, SessionId};
use tokio::sync::oneshot;
use tokio::time::Instant;

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
/// How often who waits sees that somebody is at it.
const RECHECK: Duration = Duration::from_secs(1);
/// Most requests of one call, and most bytes, about. Each holds a lock in the server's table, which is
/// of a fixed size.
const MOST: usize = 16;
/// Most sessions that are looked at for requests that can go together.
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
    /// What waits, by session.
    waiting: HashMap<SessionId, VecDeque<Waiting<V>>>,
    /// Sessions with something that waits and nothing in a call.
    ready: VecDeque<SessionId>,
    /// Sessions with a request in a call.
    flying: HashSet<SessionId>,
    /// Tasks that send.
    lanes: usize,
    /// Requests that wait, and those of them that their callers gave up since the last purge.
    count: usize,
    given_up: usize,
}

impl<V: Verb> Queue<V> {
    fn new() -> Self {
        Self {
            waiting: HashMap::new(),
            ready: VecDeque::new(),
            flying: HashSet::new(),
            lanes: 0,
            count: 0,
            given_up: 0,
        }
    }

    fn push(&mut self, next: Waiting<V>) {
        let session = &next.op.session;
        if !self.waiting.contains_key(session) && !self.flying.contains(session) {
            self.ready.push_back(session.clone());
        }
        self.count += 1;
        self.waiting.entry(session.clone()).or_default().push_back(next);
    }

    /// What waits of a session can be sent again.
    fn landed(&mut self, session: &SessionId) {
        self.flying.remove(session);
        if self.waiting.contains_key(session) {
            self.ready.push_back(session.clone());
        }
    }

    /// A caller gave a request up. What it holds goes soon: at the latest when half of all are such.
    fn gave_up(&mut self) {
        self.given_up += 1;
        if self.given_up * 2 <= self.count {
            return;
        }
        for waiting in self.waiting.values_mut() {
            waiting.retain(Waiting::is_wanted);
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        let Self { waiting, ready, .. } = self;
        ready.retain(|session| waiting.contains_key(session));
        self.count = self.waiting.values().map(VecDeque::len).sum();
        self.given_up = 0;
    }

    /// Some of what waits that can go together, and is flying from now on.
    fn gather(&mut self) -> Vec<Waiting<V>> {
        let mut together: Vec<Waiting<V>> = Vec::new();
        let mut apart = VecDeque::new();
        let mut weight = 0;
        while let Some(session) = self.ready.pop_front() {
            let Some(waiting) = self.waiting.get_mut(&session) else { continue };
            let before = together.len();
            let mut full = false;
            while let Some(next) = waiting.front() {
                let request = &next.op.request;
                let heavier = weight + V::weight(request);
                if let Some(first) = together.first() {
                    full = together.len() == MOST || heavier > WEIGHT;
                    if full || V::served(&first.op.request) != V::served(request) {
                        break;
                    }
                }
                let Some(next) = waiting.pop_front() else { break };
                self.count -= 1;
                // Its caller may have given it up.
                if next.slot.take() {
                    weight = heavier;
                    together.push(next);
                }
            }
            let is_empty = waiting.is_empty();
            if is_empty {
                self.waiting.remove(&session);
            }
            if together.len() > before {
                self.flying.insert(session);
            } else if !is_empty {
                apart.push_back(session);
            }
            if full || apart.len() > LOOKS {
                break;
            }
        }
        while let Some(session) = apart.pop_back() {
            self.ready.push_front(session);
        }
        together
    }
}

/// A request that waits, or is in a call.
struct Waiting<V: Verb> {
    op: Op<V::Request>,
    slot: Arc<Slot>,
    answer: oneshot::Sender<Result<V::Answer>>,
}

impl<V: Verb> Waiting<V> {
    fn is_wanted(&self) -> bool {
        !self.answer.is_closed() && !self.slot.is_given_up()
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

    fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::GIVEN_UP
    }

    fn become_one(&self, state: u8) -> bool {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        self.0.compare_exchange(Self::WAITS, state, order.0, order.1).is_ok()
    }
}

/// Gives a request up whose caller is gone.
struct Caller<'a, V: Verb> {
    coalescer: &'a Coalescer<V>,
    slot: Arc<Slot>,
}

impl<V: Verb> Caller<'_, V> {
    /// Whether the request was not sent, and never is.
    fn give_up(&self) -> bool {
        let gave_up = self.slot.give_up();
        if gave_up {
            self.coalescer.queue().gave_up();
        }
        gave_up
    }
}

impl<V: Verb> Drop for Caller<'_, V> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<V: Verb> Coalescer<V> {
    pub(crate) fn new(db: &Db, sql: &Arc<Sql>, teller: &Teller) -> Arc<Self> {
        Arc::new(Self {
            db: db.clone(),
            sql: Arc::clone(sql),
            teller: teller.clone(),
            queue: Mutex::new(Queue::new()),
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<V>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether requests wait, or were sent and are not told yet.
    pub(crate) fn is_busy(&self) -> bool {
        let queue = self.queue();
        queue.count > queue.given_up || !queue.flying.is_empty()
    }

    /// Does what is requested.
    pub(crate) async fn run(self: &Arc<Self>, op: Op<V::Request>) -> Result<V::Answer> {
        let session = op.session.clone();
        let (answer, answered) = oneshot::channel();
        let caller = Caller { coalescer: self, slot: Arc::default() };
        self.queue().push(Waiting { op, slot: Arc::clone(&caller.slot), answer });
        let until = self.db.deadline();
        let mut answered = pin!(answered);
        loop {
            // Again now and then: the task that was at it may be gone with its runtime.
            self.kick();
            let look = until.min(Instant::now() + RECHECK);
            match tokio::time::timeout_at(look, &mut answered).await {
                Ok(Ok(answer)) => return answer,
                Err(_) if look < until => {}
                // Late, or the task that had it is gone.
                Ok(Err(_)) | Err(_) => {
                    let sent = !caller.give_up();
                    return Err(Place::write(V::DOING, &session).timed_out(sent));
                }
            }
        }
    }

    /// Sees that somebody sends what waits.
    fn kick(self: &Arc<Self>) {
        let mut queue = self.queue();
        if queue.lanes < LANES && !queue.ready.is_empty() {
            queue.lanes += 1;
            drop(queue);
            let right = Right { coalescer: Arc::clone(self), held: true };
            tokio::spawn(right.send());
        }
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
                Some(error) if concerns_all(error) => Some(Err(copy(error))),
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
        match &done {
            Ok(done) => V::tell(&self.teller, session, done),
            Err(error) if error.outcome_unknown() => self.teller.unknown(session),
            Err(_) => {}
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

/// Whether an error is none of a single request's.
fn concerns_all(error: &Error) -> bool {
    error.is_retryable() || matches!(error.kind(), ErrorKind::StoreNotConfigured { .. })
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
            Err(error) if ops.len() > 1 && !concerns_all(&error) => {
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
        self.coalescer.queue().landed(&self.session);
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
                let requests = queue.gather();
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

#[cfg(test)]
mod tests {
    use a2_core::{Append, NewEvent, Served};

    use super::*;
    use crate::verbs::AppendVerb;

    type Answered = oneshot::Receiver<Result<a2_core::Appended>>;

    /// A request that waits, and its caller's side.
    fn put(
        queue: &mut Queue<AppendVerb>,
        session: &str,
        id: &str,
        served: Served,
    ) -> (Arc<Slot>, Answered) {
        let session = SessionId::new(session).unwrap();
        let event = NewEvent::new("t", &1).unwrap().id(id).unwrap();
        let request = Append::one(event).unwrap().served(served);
        let (answer, answered) = oneshot::channel();
        let slot = Arc::new(Slot::default());
        let op = Op { session, now: None, request };
        queue.push(Waiting { op, slot: Arc::clone(&slot), answer });
        (slot, answered)
    }

    fn ids(gathered: &[Waiting<AppendVerb>]) -> Vec<&str> {
        gathered
            .iter()
            .map(|next| next.op.request.events()[0].event_id().unwrap().as_str())
            .collect()
    }

    fn land(queue: &mut Queue<AppendVerb>, session: &str) {
        queue.landed(&SessionId::new(session).unwrap());
    }

    #[test]
    fn a_session_is_in_one_call_at_a_time_and_in_its_order() {
        let mut queue = Queue::new();
        let _kept =
            [("a", "1"), ("b", "2"), ("a", "3")].map(|(s, id)| put(&mut queue, s, id, Served::ALL));
        assert_eq!(ids(&queue.gather()), ["1", "3", "2"]);
        let _later =
            [("a", "4"), ("c", "5"), ("a", "6")].map(|(s, id)| put(&mut queue, s, id, Served::ALL));
        assert_eq!(ids(&queue.gather()), ["5"]);
        assert!(queue.gather().is_empty());
        land(&mut queue, "b");
        assert!(queue.gather().is_empty());
        land(&mut queue, "a");
        assert_eq!(ids(&queue.gather()), ["4", "6"]);
        land(&mut queue, "a");
        assert_eq!((queue.count, queue.waiting.len(), queue.ready.len()), (0, 0, 0));
    }

    #[test]
    fn what_serves_something_else_goes_by_itself() {
        let mut queue = Queue::new();
        let nobody = Served::only([]).unwrap();
        let _kept = [
            put(&mut queue, "a", "1", Served::ALL),
            put(&mut queue, "b", "2", nobody.clone()),
            put(&mut queue, "c", "3", Served::ALL),
            put(&mut queue, "c", "4", nobody),
        ];
        assert_eq!(ids(&queue.gather()), ["1", "3"]);
        assert_eq!(ids(&queue.gather()), ["2"]);
        land(&mut queue, "c");
        assert_eq!(ids(&queue.gather()), ["4"]);
    }

    #[test]
    fn a_call_is_bounded() {
        let mut queue = Queue::new();
        let _kept: Vec<_> = (0..MOST + 3)
            .map(|i| put(&mut queue, &i.to_string(), &i.to_string(), Served::ALL))
            .collect();
        assert_eq!(queue.gather().len(), MOST);
        assert_eq!(queue.gather().len(), 3);
    }

    #[test]
    fn what_was_given_up_is_not_sent_and_goes() {
        let mut queue = Queue::new();
        let kept: Vec<_> =
            (0..5).map(|i| put(&mut queue, "a", &i.to_string(), Served::ALL)).collect();
        assert!(kept[1].0.give_up());
        queue.gave_up();
        assert!(!kept[1].0.give_up(), "once");
        assert_eq!(ids(&queue.gather()), ["0", "2", "3", "4"]);
        assert!(!kept[0].0.give_up(), "it was sent");

        let later: Vec<_> =
            (5..9).map(|i| put(&mut queue, "a", &i.to_string(), Served::ALL)).collect();
        for (slot, _) in &later {
            assert!(slot.give_up());
            queue.gave_up();
        }
        assert_eq!((queue.count, queue.waiting.len()), (0, 0), "although the session flies");
    }
}
