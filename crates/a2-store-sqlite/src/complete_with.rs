//! A completion together with the user's own SQL.

use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};

use a2_core::{CompleteAttempt, Completion, Error, Result, SessionId, WithClaim, engine};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::error::panic_text;
use crate::store::woken_by;
use crate::tx::Tx;
use crate::writer::Operation;

/// What a completion's own SQL may fail with.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why the transaction is rolled back although nothing failed.
#[derive(Debug)]
struct Superseded;

impl std::fmt::Display for Superseded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the attempt is no longer current")
    }
}

impl StdError for Superseded {}

impl SqliteStore {
    /// Completes an attempt as [`complete_attempt`](a2_core::Store::complete_attempt) does, and runs
    /// the caller's own SQL in the same transaction: both are committed, or neither.
    ///
    /// `write` runs first, inside the open transaction, on the store's own connection; then the
    /// completion. When the attempt is superseded, when `write` fails or panics, everything is rolled
    /// back. A completion that is *replayed* (it was done by an earlier call whose answer was lost)
    /// rolls `write` back too: its effect was committed by the earlier call.
    ///
    /// `write` may be called more than once, its earlier effects rolled back, and must only do what a
    /// roll-back undoes. It delays every other writer of the file while it runs: keep it short. It
    /// must not begin, commit or roll back transactions, nor touch the tables named `a2_…`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use a2_store_sqlite::*;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let store = SqliteStore::in_memory().await?;
    /// # let session = SessionId::new("order-17")?;
    /// # let placed = NewEvent::new("order.placed", &())?.target(Target::event("report")?);
    /// # store.append(&session, Append::one(placed)?).await?;
    /// # let claim = ClaimAvailable::new("worker-1", Duration::from_secs(30))?;
    /// # let heads = store.claim_available(&session, claim).await?.into_heads();
    /// # let claimed = &heads[0];
    /// let complete = CompleteAttempt::new(claimed.head.clone(), claimed.attempt());
    /// let done = store
    ///     .complete_attempt_with(&session, complete, |tx| {
    ///         tx.execute_batch("create table if not exists totals (orders integer)")?;
    ///         tx.execute("insert into totals values (?1)", [1])?;
    ///         Ok(())
    ///     })
    ///     .await?;
    /// assert!(matches!(done.outcome, Completion::Completed(_)));
    /// # Ok::<(), Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Those of `complete_attempt`. When `write` fails with SQLite's error, what that means
    /// (`STORE_UNAVAILABLE` for a full disk, say); with a constraint's or any other error, or a
    /// panic, `INVALID_INPUT` for the field `write`. The error is the source.
    pub async fn complete_attempt_with<F>(
        &self,
        session: &SessionId,
        complete: CompleteAttempt,
        mut write: F,
    ) -> Result<WithClaim<Completion>>
    where
        F: FnMut(&Connection) -> Result<(), BoxError> + Send + 'static,
    {
        self.limits().check_complete(&complete)?;
        let (now, hub) = (self.time(), self.hub().clone());
        let (at, woken) = (session.clone(), session.clone());
        let bytes = complete.returned().iter().map(|event| event.payload().byte_len()).sum();
        let plain = complete.clone();
        let run = move |tx: &Tx<'_>| {
            let mut tables = tx.session(&at, "complete_attempt_with");
            // Whatever it does must be rolled back if anything fails from here on.
            tx.writes();
            let wrote = catch_unwind(AssertUnwindSafe(|| write(tx.conn)));
            wrote
                .unwrap_or_else(|panic| Err(format!("panicked: {}", panic_text(&*panic)).into()))
                .map_err(|error| failed(tx, error))?;
            if tx.conn.is_autocommit() {
                return Err(failed(tx, "ended the transaction".into()));
            }
            let done = engine::complete_attempt(&mut tables, now(), &complete)?;
            match &done.outcome {
                Completion::Completed(appended) if !appended.replayed => Ok(done),
                Completion::Completed(_) | Completion::Superseded => {
                    Err(Error::unavailable("rolled back").with_source(Superseded))
                }
            }
        };
        let wake = move |done: &WithClaim<Completion>| {
            if let Completion::Completed(appended) = &done.outcome {
                woken_by(&hub, &woken, appended);
            }
        };
        match self.submit(Operation { bytes, alone: true, run, wake }).await {
            Err(error) if is_rolled_back(&error) => {
                // Nothing was written. What the completion by itself answers is the answer: it
                // writes nothing either, but for the claim that may follow it.
                a2_core::Store::complete_attempt(self, session, plain).await
            }
            answer => answer,
        }
    }
}

fn is_rolled_back(error: &Error) -> bool {
    StdError::source(error).is_some_and(|source| source.is::<Superseded>())
}

/// The user's error as the store's.
fn failed(tx: &Tx<'_>, error: BoxError) -> Error {
    let sql = match error.downcast::<rusqlite::Error>() {
        Ok(sql) => *sql,
        Err(other) => {
            return Error::invalid("write", format!("failed: {other}")).with_source(other);
        }
    };
    let own = [
        rusqlite::ErrorCode::ConstraintViolation,
        rusqlite::ErrorCode::TypeMismatch,
        rusqlite::ErrorCode::Unknown,
    ];
    match sql.sqlite_error_code() {
        Some(code) if !own.contains(&code) => tx.place("complete_attempt_with").error(sql),
        _ => Error::invalid("write", format!("failed: {sql}")).with_source(sql),
    }
}
