//! Statements on pooled connections: one round trip each, within the operation's time.
//!
//! Every write is one statement, so a future that is dropped leaves a whole or no operation, and a
//! connection that can be used: the answer that nobody waits for is drained before the next one.

use std::sync::Arc;
use std::time::Duration;

use a2_core::{Error, Result};
use deadpool_postgres::{Object, Pool, Transaction};
use tokio::sync::Notify;
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::config::Statements;
use crate::error::{Place, is_connections, is_rolled_back, is_stale};
use crate::values::Param;

/// How often a transaction is run again that was rolled back for the sake of another one.
pub(crate) const TRIES: u32 = 5;

tokio::task_local! {
    /// Notified when nobody waits any more for what a task does.
    static CALLER: Arc<Notify>;
}

/// Does something in a task of its own: a caller who is not polled, or gone, holds neither a lock nor a
/// connection. What has no connection yet when its caller goes is not done.
pub(crate) async fn apart<T: Send + 'static>(
    run: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<Result<T>, JoinError> {
    struct Gone(Arc<Notify>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let gone = Gone(Arc::default());
    tokio::spawn(CALLER.scope(Arc::clone(&gone.0), run)).await
}

/// The database.
#[derive(Debug, Clone)]
pub(crate) struct Db {
    pool: Pool,
    /// The pool is the store's own.
    own: bool,
    statements: Statements,
    timeout: Duration,
}

impl Db {
    pub(crate) fn new(pool: (Pool, bool), statements: Statements, timeout: Duration) -> Self {
        let (pool, own) = pool;
        Self { pool, own, statements, timeout }
    }

    /// Closes the connections, if they are the store's own.
    pub(crate) fn close(&self) {
        if self.own {
            self.pool.close();
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// A connection, by the time that the operation has.
    pub(crate) async fn connection(&self, place: Place<'_>, until: Instant) -> Result<Object> {
        let caller = CALLER.try_with(Arc::clone).ok();
        let gone = async {
            match caller {
                Some(caller) => caller.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            client = tokio::time::timeout_at(until, self.pool.get()) => match client {
                Ok(client) => client.map_err(|error| {
                    place.no_connection(error, self.own && self.statements == Statements::Named)
                }),
                Err(_) => Err(place.timed_out(false)),
            },
            () = gone => Err(Error::unavailable("its caller is gone")),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether the connections are the store's own.
    pub(crate) fn is_own(&self) -> bool {
        self.own
    }

    /// Most connections, and one.
    fn most(&self) -> u32 {
        u32::try_from(self.pool.status().max_size).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The end of an operation that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Runs a statement.
    pub(crate) async fn query(
        &self,
        place: Place<'_>,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>> {
        let until = self.deadline();
        let mut tries: u32 = 0;
        loop {
            let client = self.connection(place, until).await?;
            tries += 1;
            let sent = self.send(&client, sql, params, until);
            match tokio::time::timeout_at(until, sent).await {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(error)) if tries < TRIES && is_rolled_back(&error) => {
                    drop(client);
                    tokio::time::sleep(Duration::from_millis(1 << tries)).await;
                }
                // Every idle connection may have prepared it before.
                Ok(Err(error)) if tries <= self.most() && is_stale(&error) => {
                    drop(Object::take(client));
                }
                Ok(Err(error)) => {
                    if is_connections(&error) {
                        drop(Object::take(client));
                    }
                    return Err(place.error(error));
                }
                Err(_) => {
                    // Nobody else is to wait behind it: the connection is closed.
                    drop(Object::take(client));
                    return Err(place.timed_out(true));
                }
            }
        }
    }

    async fn send(
        &self,
        client: &Object,
        sql: &str,
        params: &[Param<'_>],
        until: Instant,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self.statements {
            Statements::Named => {
                let types: Vec<_> = params.iter().map(|param| param.sql_type()).collect();
                let statement = client.prepare_typed_cached(sql, &types).await?;
                let params: Vec<_> = params.iter().map(|param| untyped(*param)).collect();
                let query = client.query(&statement, &params);
                if self.own { query.await } else { ended(client, until, query).await }
            }
            Statements::Unnamed => {
                let params: Vec<_> =
                    params.iter().map(|param| (untyped(*param), param.sql_type())).collect();
                ended(client, until, client.query_typed(sql, &params)).await
            }
        }
    }

    /// Whether connections end statements by themselves that take too long.
    pub(crate) fn ends_statements(&self) -> bool {
        self.own && self.statements == Statements::Named
    }
}

/// A statement that the server ends in time, on a connection that was not told to when it was made. Its
/// transaction is sent with it: one round trip, and all of it is sent or nothing.
async fn ended(
    client: &Object,
    until: Instant,
    query: impl Future<Output = Result<Vec<Row>, tokio_postgres::Error>>,
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let begin = format!("begin; {}", end_after(until.saturating_duration_since(Instant::now())));
    // In this order: each is sent when it is polled first.
    let (begun, rows, committed) =
        tokio::join!(biased; client.batch_execute(&begin), query, client.batch_execute("commit"));
    begun?;
    let rows = rows?;
    committed?;
    Ok(rows)
}

/// Has the transaction's statements end after this time, unless they end sooner anyway.
pub(crate) fn end_after(time: Duration) -> String {
    let millis = time.as_millis().clamp(1, i32::MAX.unsigned_abs().into());
    format!(
        "select pg_catalog.set_config('statement_timeout', case \
         when t.span > interval '0' and t.span < interval '{millis} milliseconds' then t.setting \
         else '{millis}' end, true) \
         from (select s.setting, s.setting::interval from \
         (select pg_catalog.current_setting('statement_timeout')) s(setting)) t(setting, span)"
    )
}

impl Db {
    /// Runs a statement within a transaction.
    pub(crate) async fn query_in(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self.statements {
            Statements::Named => {
                let types: Vec<_> = params.iter().map(|param| param.sql_type()).collect();
                let statement = transaction.prepare_typed_cached(sql, &types).await?;
                let params: Vec<_> = params.iter().map(|param| untyped(*param)).collect();
                transaction.query(&statement, &params).await
            }
            Statements::Unnamed => {
                let params: Vec<_> =
                    params.iter().map(|param| (untyped(*param), param.sql_type())).collect();
                transaction.query_typed(sql, &params).await
            }
        }
    }
}

fn untyped(param: Param<'_>) -> &(dyn ToSql + Sync) {
    param
}
