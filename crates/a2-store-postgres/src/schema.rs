//! Making the tables and functions, or seeing that they are there.

use a2_core::{Error, Result};
use tokio_postgres::IsolationLevel;

use crate::conn::Db;
use crate::error::Place;
use crate::statements::quoted;

macro_rules! files {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../sql/schema/", $name)))),*] };
}

/// What makes the tables and functions, in order: names and texts. Every statement looks first whether
/// there is something to make, so that all of it can be run on any database, at any time.
const FILES: &[(&str, &str)] = files![
    "01-tables.sql",
    "02-basics.sql",
    "03-rows.sql",
    "04-append.sql",
    "05-claim.sql",
    "06-attempt.sql",
    "07-session.sql",
    "08-timers.sql",
    "09-listing.sql",
    "10-reclaim.sql",
    "11-together.sql",
    "12-leases.sql",
];

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

/// Makes what is missing, in one transaction; others that do the same wait for it.
pub(crate) async fn migrate(db: &Db, schema: Option<&str>) -> Result<()> {
    check_server(db).await?;
    let place = Place::change("migrate");
    let failed = |error| place.error(error);
    let mut client = db.connection(place, db.deadline()).await?;
    // Whoever waited for another must see what that made.
    let begin = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
    let transaction = begin.start().await.map_err(failed)?;
    transaction.batch_execute(&script(schema)).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

fn script(schema: Option<&str>) -> String {
    let mut script = String::from("set local statement_timeout to 0;\n");
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
    FILES.iter().for_each(|(_, text)| script.push_str(text));
    script
}

/// A text as a literal, whatever `standard_conforming_strings` says.
fn literal(text: &str) -> String {
    format!(" E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_applied_in_the_order_of_names() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/schema");
        let entries = std::fs::read_dir(folder).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
