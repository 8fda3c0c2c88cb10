//! What sold in which shop: a log projected into a table of the program's own, each event counted
//! exactly once.
//!
//! `cargo run -p a2-runtime --example sales -- [STORE] [--json]`
//!
//! STORE is a SQLite file (one beside the program by default) or the URL of a Postgres or a Redis; the
//! table is in another SQLite file. A session for each shop holds its orders; some are cancelled later.
//! The table is a sum, so that an event that was counted twice, or not at all, would show.
//!
//! Kill the program whenever you like and run it again: the table ends the same.

#[path = "../support/mod.rs"]
mod support;
mod table;

use std::sync::Arc;
use std::time::Duration;

use a2_runtime::{Context, Events, Handled, Runtime, log_runs};
use a2_store_sqlite::NewEvent;
use anyhow::Result;
use serde::{Deserialize, Serialize};

use support::Arguments;
use table::Table;

const SHOPS: [&str; 4] = ["Aarhus", "Bergen", "Cork", "Delft"];
const ITEMS: [(&str, i64); 3] = [("tea", 450), ("coffee", 700), ("cake", 525)];
const ORDERS: usize = 120;
/// So many orders are appended together, all or none of them.
const DAY: usize = 10;
/// How many events one transaction takes at most.
const RUN: usize = 8;
/// A dead process' work is taken over after this.
const TTL: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
enum Sale {
    #[serde(rename = "order.placed")]
    Placed(Order),
    #[serde(rename = "order.cancelled")]
    Cancelled(Order),
}
impl Events for Sale {}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    pieces: i64,
    cents: i64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse()?;
    support::show_failures();
    let table = Arc::new(Table::open(&arguments.beside("sales.db")?)?);
    let its = Arc::clone(&table);
    let sales = log_runs("sales", RUN, move |sales, cx| project(Arc::clone(&its), sales, cx));
    let builder = arguments.builder().await?.consumer(sales.backfill());
    let runtime = builder.ttl(TTL).sweep_every(TTL).build()?;
    runtime.start();
    for shop in SHOPS {
        sell(&runtime, shop).await?;
    }
    support::settle(&runtime).await?;
    runtime.shutdown(Duration::from_secs(5)).await;
    println!("{}", if arguments.json { table.json()? } else { table.show()? });
    Ok(())
}

/// Adds a run of a shop's events to the table.
async fn project(table: Arc<Table>, sales: Vec<Sale>, cx: Context) -> Handled {
    let events = sales.iter().zip(cx.events()).map(|(sale, stored)| {
        let (order, sign) = match sale {
            Sale::Placed(order) => (order, 1),
            Sale::Cancelled(order) => (order, -1),
        };
        (stored.index.get(), order, sign)
    });
    Ok(table.add(cx.session().id().as_str(), events)?)
}

/// A shop's orders, every seventh cancelled. A second run finds them by their ids.
async fn sell(runtime: &Runtime, shop: &str) -> Result<()> {
    let session = runtime.session(shop)?;
    let mut new = 0;
    let numbers: Vec<usize> = (1..=ORDERS).collect();
    for day in numbers.chunks(DAY) {
        let mut events = Vec::new();
        for &number in day {
            let ((item, price), pieces) = (ITEMS[number % 3], (number % 4 + 1) as i64);
            let order = Order { item: item.to_owned(), pieces, cents: pieces * price };
            events.push(named(number, "placed", &Sale::Placed(order.clone()))?);
            if number % 7 == 0 {
                events.push(named(number, "cancelled", &Sale::Cancelled(order))?);
            }
        }
        let appended = session.append(events).await?;
        new += if appended.replayed { 0 } else { appended.events.len() };
    }
    eprintln!("{shop:<9} {new} new events");
    Ok(())
}

fn named(number: usize, what: &str, sale: &Sale) -> Result<NewEvent> {
    Ok(sale.encode()?.id(format!("{number}/{what}"))?)
}
