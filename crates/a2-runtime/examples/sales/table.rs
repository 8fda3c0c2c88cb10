//! The table, and how far each shop's log is in it: both change in one transaction.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use comfy_table::presets;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};
use serde_json::{Value, json};

use crate::Order;

const TABLES: &str = "pragma journal_mode = wal;
     create table if not exists sales (shop text, item text, orders integer not null,
       pieces integer not null, cents integer not null, primary key (shop, item)) strict;
     create table if not exists projected (shop text primary key, position integer not null) strict;";
const ADD: &str = "insert into sales values (?1, ?2, ?3, ?4, ?5) on conflict do update set
     orders = orders + ?3, pieces = pieces + ?4, cents = cents + ?5";
const MOVE: &str = "insert into projected values (?1, ?2) on conflict do update set position = ?2";

pub(crate) struct Table(Mutex<Connection>);

type Row = (String, String, i64, i64, i64);

impl Table {
    pub(crate) fn open(path: &str) -> Result<Self> {
        let connection = Connection::open(path)?;
        // Several of these programs may run at once.
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.execute_batch(TABLES)?;
        Ok(Self(Mutex::new(connection)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds those events of a shop's log that are not in the table: an attempt that died after its commit
    /// left the position behind, and the next one begins there.
    pub(crate) fn add<'a>(
        &self,
        shop: &str,
        events: impl Iterator<Item = (u64, &'a Order, i64)>,
    ) -> Result<()> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let position = "select position from projected where shop = ?1";
        let position = transaction.query_row(position, [shop], |row| row.get(0)).optional()?;
        let mut position: i64 = position.unwrap_or(0);
        for (index, order, sign) in events {
            let index = i64::try_from(index)?;
            if index > position {
                let (pieces, cents) = (sign * order.pieces, sign * order.cents);
                transaction.execute(ADD, (shop, &order.item, sign, pieces, cents))?;
                position = index;
            }
        }
        transaction.execute(MOVE, (shop, position))?;
        Ok(transaction.commit()?)
    }

    fn rows(&self) -> Result<Vec<Row>> {
        let connection = self.connection();
        let mut rows = connection.prepare("select * from sales order by shop, item")?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        };
        Ok(rows.query_map([], row)?.collect::<Result<_, _>>()?)
    }

    pub(crate) fn json(&self) -> Result<String> {
        let rows = self.rows()?.into_iter().map(|(shop, item, orders, pieces, cents)| {
            json!({"shop": shop, "item": item, "orders": orders, "pieces": pieces, "cents": cents})
        });
        Ok(format!("{:#}", rows.collect::<Value>()))
    }

    pub(crate) fn show(&self) -> Result<String> {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["shop", "item", "orders", "pieces", "sold for"]);
        for (shop, item, orders, pieces, cents) in self.rows()? {
            let sold = format!("{}.{:02}", cents / 100, cents % 100);
            table.add_row([shop, item, orders.to_string(), pieces.to_string(), sold]);
        }
        Ok(table.to_string())
    }
}
