//! The tables: made, brought up to date, or refused.
//!
//! Migrations are numbered and only go forward. They are applied inside one immediate transaction
//! that looks again first, so that many processes may open a new file at once. The version stands in
//! a table of the store's own (`a2_meta`), not in the file's header, which belongs to the user: the
//! file may hold the user's tables too.

use a2_core::{Error, Result};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::error::Place;
use crate::rows::Sql;
use crate::statements::MIGRATIONS;

/// What the file holds of A2.
enum Found {
    /// None of its tables.
    Nothing,
    /// This version of them.
    Version(i64),
    /// Tables of its names, which it has not made.
    Foreign,
}

/// Makes the tables, or brings them up to this version.
pub(crate) fn prepare(conn: &mut Connection, place: Place<'_>) -> Result<()> {
    let fail = |error| place.error(error);
    let encoding: String = conn.query_row("pragma encoding", [], |row| row.get(0)).map_err(fail)?;
    if encoding != "UTF-8" {
        return Err(not_configured(
            place,
            &format!("the database's encoding is {encoding}. Use one whose encoding is UTF-8"),
        ));
    }
    if missing(&find(conn).map_err(fail)?, place)?.is_empty() {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    // Another process may have been first.
    for migration in missing(&find(&tx).map_err(fail)?, place)? {
        tx.execute_batch(migration).map_err(fail)?;
    }
    tx.commit().map_err(fail)
}

/// The migrations that the file still needs.
fn missing(found: &Found, place: Place<'_>) -> Result<&'static [&'static str]> {
    match found {
        Found::Nothing => Ok(MIGRATIONS),
        Found::Version(version) => {
            let done = usize::try_from(*version).ok().filter(|done| *done > 0);
            match done.map(|done| MIGRATIONS.get(done..)) {
                Some(Some(missing)) => Ok(missing),
                Some(None) => Err(not_configured(
                    place,
                    &format!(
                        "the tables are of version {version}, this program knows version {}. Use a \
                         program with a newer a2-store-sqlite, or another file",
                        MIGRATIONS.len()
                    ),
                )),
                None => Err(foreign(place)),
            }
        }
        Found::Foreign => Err(foreign(place)),
    }
}

fn find(conn: &Connection) -> Sql<Found> {
    let names = conn
        .prepare("select name from sqlite_schema where name like 'a2\\_%' escape '\\'")?
        .query_map([], |row| row.get(0))?
        .collect::<Sql<Vec<String>>>()?;
    if names.is_empty() {
        return Ok(Found::Nothing);
    }
    if !names.iter().any(|name| name == "a2_meta") {
        return Ok(Found::Foreign);
    }
    let version = conn
        .query_row("select value from a2_meta where key = 'schema'", [], |row| row.get(0))
        .optional();
    Ok(match version {
        Ok(Some(version)) => Found::Version(version),
        // A column or a type is not as it must be.
        Err(rusqlite::Error::SqlInputError { .. } | rusqlite::Error::InvalidColumnType(..))
        | Ok(None) => Found::Foreign,
        Err(error) => return Err(error),
    })
}

fn foreign(place: Place<'_>) -> Error {
    not_configured(
        place,
        "the database has a2_ tables that this store has not made. Use another file",
    )
}

fn not_configured(place: Place<'_>, what: &str) -> Error {
    Error::not_configured(format!("{}: {}: {what}", place.file, place.doing))
}
