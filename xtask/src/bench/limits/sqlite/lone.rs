//! One caller on its own connection: every write is a transaction.

use anyhow::Result;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{Rows, Write, open};
use crate::bench::measure::Cx;
use crate::bench::stores::Durability;

/// A connection with its rows.
pub(crate) struct Lone<R> {
    connection: Connection,
    rows: R,
    _folder: TempDir,
}

impl<R: Rows> Lone<R> {
    /// In a fresh file.
    pub(crate) fn open(cx: &Cx, durability: Durability) -> Result<Self> {
        let folder = cx.folder()?;
        let connection = open(folder.path(), durability)?;
        let rows = R::create(&connection)?;
        Ok(Self { connection, rows, _folder: folder })
    }

    /// Does one write and commits it.
    pub(crate) fn write(&mut self, write: Write) -> Result<i64> {
        let c = &self.connection;
        if write.is_one_statement::<R>() {
            return Ok(write.run(&mut self.rows, c)?);
        }
        c.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let answer = write.run(&mut self.rows, c)?;
        c.prepare_cached("COMMIT")?.execute([])?;
        Ok(answer)
    }
}
