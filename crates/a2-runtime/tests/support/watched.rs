//! A store that writes down what is asked of it, and fails on request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use a2_runtime::a2_core::*;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) op: &'static str,
    pub(crate) session: String,
    /// How many heads, claims or events it is about.
    pub(crate) n: usize,
    /// Whether it claims as well.
    pub(crate) claims: bool,
}

/// Whether a call is made, and what its caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It is not made.
    Refused,
    /// What is stored cannot be read.
    Corrupt,
    /// It is made, and its answer is lost.
    Lost,
}

type Decide = Box<dyn FnMut(&Call) -> Fault + Send>;

pub(crate) struct Watched<S> {
    store: S,
    calls: Mutex<Vec<Call>>,
    decide: Mutex<Decide>,
    /// Gives no hints.
    silent: AtomicBool,
}

impl<S> Watched<S> {
    pub(crate) fn new(store: S) -> Arc<Self> {
        let decide: Decide = Box::new(|_| Fault::None);
        Arc::new(Self {
            store,
            calls: Mutex::default(),
            decide: Mutex::new(decide),
            silent: AtomicBool::new(false),
        })
    }

    /// Gives no hints from now on to who asks for them.
    pub(crate) fn be_silent(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    pub(crate) fn decide(&self, decide: impl FnMut(&Call) -> Fault + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }

    /// The calls of these kinds so far.
    pub(crate) fn calls(&self, ops: &[&str]) -> Vec<Call> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| ops.contains(&call.op)).cloned().collect()
    }

    fn call(&self, op: &'static str, session: &SessionId, n: usize, claims: bool) -> Result<bool> {
        let call = Call { op, session: session.to_string(), n, claims };
        let fault = (self.decide.lock().unwrap())(&call);
        self.calls.lock().unwrap().push(call);
        match fault {
            Fault::None => Ok(false),
            Fault::Refused => Err(Error::unavailable("refused on request")),
            Fault::Corrupt => Err(Error::corrupt(Some(session), None, "corrupt on request")),
            Fault::Lost => Ok(true),
        }
    }
}

fn answer<T>(lost: bool, answer: Result<T>) -> Result<T> {
    if !lost {
        return answer;
    }
    let reason = "lost on request".into();
    Err(ErrorKind::StoreUnavailable { reason, outcome_unknown: true }.into())
}

// The whole block, since `async_trait` looks at it before macros within are expanded.
macro_rules! watched {
    (
        $trait:ident
        { $($name:ident($($arg:ident: $type:ty),*) -> $answer:ty, $n:expr, $claims:expr;)* }
        { $($rest:tt)* }
    ) => {
        #[async_trait]
        impl<S: $trait> $trait for Watched<S> {
            $(async fn $name(&self, session: &SessionId, $($arg: $type),*) -> Result<$answer> {
                let lost = self.call(stringify!($name), session, $n, $claims)?;
                answer(lost, self.store.$name(session, $($arg),*).await)
            })*

            $($rest)*
        }
    };
}

watched! {
    Store
    {
        append(a: Append) -> Appended, a.events().len(), false;
        read(r: ReadRange) -> Events, 0, false;
        claim_available(c: ClaimAvailable) -> Claim, c.max_heads(), true;
        renew_claims(r: RenewClaims) -> Renewal, r.claims().len(), false;
        release_claims(r: ReleaseClaims) -> Released, r.claims().len(), false;
        complete_attempt(c: CompleteAttempt) -> WithClaim<Completion>, c.returned().len(), c.next_claim().is_some();
        fail_attempt(f: FailAttempt) -> WithClaim<Failure>, 1, f.next_claim().is_some();
        dead_letters(p: Page) -> DeadLetters, 0, false;
        redrive(r: Redrive) -> Redriven, 1, false;
        wake_log(w: WakeLog) -> WokenLog, 1, false;
        cursors(p: Page) -> Cursors, 0, false;
        clear(c: Clear) -> Cleared, 0, false;
        reclaim() -> Reclaimed, 0, false;
    }
    {
    fn stream(&self, session: &SessionId, start_after: Index) -> EventStream {
        self.store.stream(session, start_after)
    }

    async fn read_state(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        read: ReadState,
    ) -> Result<StateRead> {
        let lost = self.call("read_state", session, 0, false)?;
        answer(lost, self.store.read_state(session, reducer, read).await)
    }

    async fn put_snapshots(
        &self,
        session: &SessionId,
        reducer: &ReducerName,
        writes: PutSnapshots,
    ) -> Result<SnapshotsPut> {
        let lost = self.call("put_snapshots", session, writes.writes().len(), false)?;
        answer(lost, self.store.put_snapshots(session, reducer, writes).await)
    }

    async fn sessions(&self, page: Page) -> Result<Sessions> {
        self.store.sessions(page).await
    }

    async fn pending(&self, pending: PendingPage) -> Result<Pending> {
        let _ = self.call("pending", &SessionId::new("-")?, 0, false);
        self.store.pending(pending).await
    }

    fn watch_pending(&self, served: Served) -> WorkHints {
        if self.silent.load(Ordering::SeqCst) {
            return WorkHints::new(futures_util::stream::pending());
        }
        self.store.watch_pending(served)
    }
    }
}

watched! {
    Timers
    {
        schedule(t: Schedule) -> Scheduled, 1, false;
        unschedule(k: &TimerKey) -> Unscheduled, 1, false;
        timers(p: Page) -> TimerPage, 0, false;
        fire_timers(f: FireTimers) -> Appended, f.max_timers(), false;
    }
    {}
}
