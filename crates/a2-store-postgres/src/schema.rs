//! Making the tables and functions, and upgrading those of an earlier A2.

use std::time::Duration;

use a2_core::{Error, Result};
use tokio_postgres::IsolationLevel;

use crate::PostgresStore;
use crate::conn::{Db, TRIES};
use crate::error::{Place, is_rolled_back};
use crate::statements::quoted;

/// What makes the tables and functions, and upgrades those of an earlier A2. Every statement looks first
/// whether there is something to do, so that all of it can be run on any database, at any time.
const SCHEMA: &str = include_str!("../sql/schema.sql");

/// Oldest major version of Postgres.
const OLDEST: i32 = 14;

const SERVER: &str = "select pg_catalog.current_setting('server_version_num')::int4, \
                      pg_catalog.getdatabaseencoding()::text";

/// Whether the server can hold a store.
pub(crate) async fn check_server(db: &Db) -> Result<()> {
    let place = Place::look("connect");
    let rows = db.query(place, SERVER, &[]).await?;
    let Some(row) = rows.first() else { return Err(place.unreadable("there is no version")) };
    let version: i32 = row.try_get(0).map_err(|error| place.error(error))?;
    let encoding: &str = row.try_get(1).map_err(|error| place.error(error))?;
    if version / 10_000 < OLDEST {
        return Err(Error::not_configured(format!(
            "Postgres {OLDEST} or newer is needed, the server is {}",
            version / 10_000
        )));
    }
    if encoding != "UTF8" {
        return Err(Error::not_configured(format!(
            "the database's encoding must be UTF8, it is {encoding}: create one with \
             `create database … encoding 'UTF8' template template0`"
        )));
    }
    Ok(())
}

/// How the schema is made or upgraded.
///
/// ```
/// use a2_store_postgres::Migrate;
///
/// let all_or_refuse = Migrate::new();
/// let without_what_is_unfinished = Migrate::new().drop_unfinished();
/// assert_ne!(all_or_refuse, without_what_is_unfinished);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Migrate {
    drop_unfinished: bool,
}

impl Migrate {
    /// Keeps everything, or refuses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops the work that handlers of A2 0.17 to 0.20 have not finished: the events that they had not
    /// processed stay in their logs, and nobody will be given them. Without it such a database is
    /// refused. The tables of 0.21 and 0.22, whose unfinished work is kept, have none.
    pub fn drop_unfinished(mut self) -> Self {
        self.drop_unfinished = true;
        self
    }
}

impl PostgresStore {
    /// Makes the tables and functions that the store needs, as far as they are missing, in one
    /// transaction. Safe to run again, on a live database, and by many processes at the same time.
    ///
    /// It makes them in the schema of the options, which it makes too, or in the first one of the
    /// `search_path`. The tables of an earlier A2 that are there are upgraded, as
    /// [the crate's documentation](crate#upgrading) says. The same can be done with
    /// `sql/postgres/schema.sql`.
    ///
    /// # Errors
    /// `STORE_NOT_CONFIGURED` for a server older than 14, a database whose encoding is not UTF8, a role
    /// that may not make or upgrade them, or tables that cannot be upgraded: then nothing is changed.
    /// `STORE_UNAVAILABLE`.
    pub async fn migrate(&self) -> Result<()> {
        self.migrate_with(Migrate::new()).await
    }

    /// [`migrate`](Self::migrate) with options.
    ///
    /// # Errors
    /// Those of `migrate`.
    pub async fn migrate_with(&self, options: Migrate) -> Result<()> {
        self.check_open()?;
        check_server(self.db()).await?;
        let script = script(self.schema(), &options);
        let mut tries = 1;
        loop {
            match apply(self.db(), &script).await? {
                Ok(()) => return Ok(()),
                // It, or a writer of an earlier A2 whose tables it upgrades, had to give way.
                Err(error) if tries < TRIES && is_rolled_back(&error) => {
                    tokio::time::sleep(Duration::from_millis(1 << tries)).await;
                    tries += 1;
                }
                Err(error) => return Err(Place::change("migrate").error(error)),
            }
        }
    }
}

/// Runs the script in one transaction; others that do the same wait for it.
async fn apply(db: &Db, script: &str) -> Result<std::result::Result<(), tokio_postgres::Error>> {
    let mut client = db.connection(Place::change("migrate"), db.deadline()).await?;
    let applied = async {
        // Whoever waited for another must see what that made.
        let begin = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
        let transaction = begin.start().await?;
        transaction.batch_execute(script).await?;
        transaction.commit().await
    };
    Ok(applied.await)
}

fn script(schema: Option<&str>, options: &Migrate) -> String {
    let mut script = String::from("set local statement_timeout to 0;\n");
    if !options.drop_unfinished {
        script.push_str("set local a2.keep_unfinished to on;\n");
    }
    if let Some(schema) = schema {
        // `if not exists` alone needs the right to make one also when it is there, and two that make
        // one at the same time fail.
        let (name, text) = (quoted(schema), literal(schema));
        let create = literal(&format!(
            "begin
               if not exists (select from pg_catalog.pg_namespace where nspname = {text}) then
                 create schema {name};
               end if;
             end"
        ));
        script.push_str(&format!(
            "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('a2.migrate', 0));
             do {create};
             set local search_path to {name};\n"
        ));
    }
    script + SCHEMA
}

/// A text as a literal, whatever `standard_conforming_strings` says.
fn literal(text: &str) -> String {
    format!(" E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
