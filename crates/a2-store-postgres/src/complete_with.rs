//! A completion together with the user's own SQL.

use std::error::Error as StdError;
use std::time::Duration;

use a2_core::{CompleteAttempt, Completion, Error, Result, SessionId, Store as _, WithClaim};
use deadpool_postgres::{Object, Transaction};
use futures_util::future::BoxFuture;
use tokio::time::timeout_at;
use tokio_postgres::IsolationLevel;
use tokio_postgres::error::SqlState;

use crate::PostgresStore;
use crate::conn::{Db, TRIES, end_after};
use crate::error::{Place, is_rolled_back, is_users};
use crate::statements::Sql;
use crate::verbs::{CompleteArgs, CompleteVerb, Locks, Op, Verb};

/// What a completion's own SQL may fail with.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The store's own connections plan for the store's statements; the user's are planned as usual.
const USUAL_PLANNING: &str = "set local plan_cache_mode to auto; set local enable_seqscan to on; \
                              set local enable_bitmapscan to on; set local enable_sort to on; \
                              set local enable_incremental_sort to on; \
                              set local enable_hashjoin to on; set local enable_mergejoin to on";

/// How a try ended.
enum Tried {
    Committed(WithClaim<Completion>),
    /// The attempt is superseded, or was completed before: everything was rolled back.
    NotCurrent,
    /// It was rolled back for the sake of another transaction.
    RolledBack(tokio_postgres::Error),
}

impl PostgresStore {
    /// Completes an attempt as [`complete_attempt`](a2_core::Store::complete_attempt) does, and runs
    /// the caller's own SQL in the same transaction: both are committed, or neither.
    ///
    /// `write` runs first, inside the open transaction; then the completion, which takes the
    /// session's lock, and the commit. When the attempt is superseded, when `write` fails or panics,
    /// everything is rolled back. A completion that is *replayed* (it was done by an earlier call
    /// whose answer was lost) rolls `write` back too: its effect was committed by the earlier call.
    ///
    /// `write` may be called more than once, its earlier effects rolled back, and must only do what a
    /// roll-back undoes. It must not commit or roll back, nor touch the tables named `a2_…`, nor call
    /// the store, which may have no other connection. Through a pooler it must not prepare statements
    /// (`query_typed` does not). The transaction reads what is committed; a stricter isolation level
    /// is refused.
    ///
    /// ```no_run
    /// # use a2_store_postgres::*;
    /// # async fn run(store: PostgresStore, session: SessionId, claimed: DispatchedHead) -> Result<()> {
    /// let complete = CompleteAttempt::new(claimed.head.clone(), claimed.attempt());
    /// let done = store
    ///     .complete_attempt_with(&session, complete, |tx| {
    ///         Box::pin(async move {
    ///             tx.execute("update totals set orders = orders + 1", &[]).await?;
    ///             Ok(())
    ///         })
    ///     })
    ///     .await?;
    /// assert!(matches!(done.outcome, Completion::Completed(_)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `complete_attempt`. When `write` fails because the server cannot serve now,
    /// `STORE_UNAVAILABLE`; when it fails otherwise, `INVALID_INPUT` for the field `write`. The error
    /// is the source.
    pub async fn complete_attempt_with<F>(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
        mut write: F,
    ) -> Result<WithClaim<Completion>>
    where
        F: for<'a> FnMut(&'a Transaction<'_>) -> BoxFuture<'a, Result<(), BoxError>> + Send,
    {
        self.limits().check_complete(&complete)?;
        self.check_open()?;
        let (db, sql) = (self.db(), self.sql());
        let place = Place::write("complete_attempt_with", session);
        let _writing = self.writing();
        let op = Op { session: session.clone(), now: self.now(), request: complete };
        let until = db.deadline();
        for tries in 1.. {
            let mut client = Unfinished(Some(db.connection(place, until).await?));
            let tried = match &mut client.0 {
                Some(client) => timeout_at(until, try_once(db, sql, client, &op, &mut write)).await,
                None => break,
            };
            if tried.is_ok() {
                client.finish();
            }
            match tried {
                Ok(Ok(Tried::Committed(done))) => {
                    if let Completion::Completed(appended) = &done.outcome {
                        self.teller().appended(session, appended);
                    }
                    return Ok(done);
                }
                Ok(Ok(Tried::NotCurrent)) => break,
                Ok(Ok(Tried::RolledBack(error))) if tries >= TRIES => {
                    return Err(place.error(error));
                }
                Ok(Ok(Tried::RolledBack(_))) => {
                    tokio::time::sleep(Duration::from_millis(1 << tries)).await;
                }
                Ok(Err(error)) => return Err(self.told(session, error)),
                Err(_) => return Err(self.told(session, place.timed_out(true))),
            }
        }
        // Nothing was written. What the completion by itself answers is the answer: it writes nothing
        // either, but for the claim that may follow it.
        self.complete_attempt(session, op.request).await
    }
}

impl PostgresStore {
    /// An error, told when nobody knows what was done.
    fn told(&self, session: &SessionId, error: Error) -> Error {
        if error.outcome_unknown() {
            self.teller().unknown(session);
        }
        error
    }
}

/// A connection in the midst of a transaction. Dropped so, it is closed: nobody is to wait behind it.
struct Unfinished(Option<Object>);

impl Unfinished {
    /// It goes back to its pool.
    fn finish(&mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

async fn try_once<F>(
    db: &Db,
    sql: &Sql,
    client: &mut Object,
    op: &Op<CompleteAttempt>,
    write: &mut F,
) -> Result<Tried>
where
    F: for<'a> FnMut(&'a Transaction<'_>) -> BoxFuture<'a, Result<(), BoxError>> + Send,
{
    let place = Place::write("complete_attempt_with", &op.session);
    let begin = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
    // Until the commit nothing is done.
    let open = Place { writes: false, ..place };
    let transaction = begin.start().await.map_err(|error| open.error(error))?;
    // A client that stops in the midst of it does not keep the session's lock.
    let patience = db.timeout().as_millis().clamp(1, i32::MAX.unsigned_abs().into());
    let planning = if db.is_own() { USUAL_PLANNING } else { "" };
    let end = if db.ends_statements() { String::new() } else { end_after(db.timeout()) };
    let settings =
        format!("set local idle_in_transaction_session_timeout to {patience}; {planning}; {end}");
    transaction.batch_execute(&settings).await.map_err(|error| open.error(error))?;
    if let Err(error) = write(&transaction).await {
        return failed(error, open);
    }
    let ops = std::slice::from_ref(op);
    let args = CompleteArgs::new(ops)?;
    let called = db.query_in(&transaction, &sql.complete_attempt, &args.params(Locks::Wait)).await;
    let rows = match called {
        Ok(rows) => rows,
        Err(error) if is_rolled_back(&error) => return Ok(Tried::RolledBack(error)),
        Err(error) if error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => {
            let rule = "a statement of it failed, and it went on";
            return Err(Error::invalid("write", rule).with_source(error));
        }
        Err(error) => return Err(open.error(error)),
    };
    let done = CompleteVerb::answer(op, &rows)?;
    let done = done.ok_or_else(|| place.unreadable("it was left undone"))?;
    match &done.outcome {
        Completion::Completed(appended) if !appended.replayed => {}
        Completion::Completed(_) | Completion::Superseded => {
            transaction.rollback().await.map_err(|error| open.error(error))?;
            return Ok(Tried::NotCurrent);
        }
    }
    match transaction.commit().await {
        Ok(()) => Ok(Tried::Committed(done)),
        // A constraint of the user's that is checked at the end: nothing was done.
        Err(error) if error.code().is_some() && is_users(&error) => failed(error.into(), open),
        Err(error) if is_rolled_back(&error) => Ok(Tried::RolledBack(error)),
        Err(error) => Err(place.error(error)),
    }
}

/// The user's error as the store's.
fn failed(error: BoxError, place: Place<'_>) -> Result<Tried> {
    match error.downcast::<tokio_postgres::Error>() {
        Ok(error) if is_rolled_back(&error) => Ok(Tried::RolledBack(*error)),
        Ok(error) if !is_users(&error) => Err(place.error(*error)),
        Ok(error) => Err(Error::invalid("write", format!("failed: {error}")).with_source(*error)),
        Err(other) => Err(Error::invalid("write", format!("failed: {other}")).with_source(other)),
    }
}
