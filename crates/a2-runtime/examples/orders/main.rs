//! An order saga: stock is reserved, the parcel is shipped when the payment comes, and what was done is
//! taken back when a later step fails or a timer says that nobody paid.
//!
//! `cargo run -p a2-runtime --example orders -- [STORE] [--json]`
//!
//! STORE is a SQLite file (one beside the program by default) or the URL of a Postgres or a Redis. Each
//! of 40 orders is a session. Some are out of stock, some cannot be carried, some are never paid; the
//! warehouse and the carrier are down now and then.
//!
//! Kill the program whenever you like and start it again, or run several at once: no order is shipped
//! twice, and whoever paid has a parcel or the money back.

mod saga;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use a2_runtime::Runtime;
use a2_store_sqlite::NewEvent;
use anyhow::{Result, ensure};
use comfy_table::{Table, presets};

use saga::{Order, STANDING, Standing};
use support::Arguments;

const ORDERS: usize = 40;
const ITEMS: [(&str, u64); 5] =
    [("tea", 450), ("coffee", 700), ("unicorn", 99_900), ("piano", 250_000), ("cake", 525)];
const CUSTOMERS: [&str; 3] = ["Ada", "Grace", "Edsger"];
/// Every sixth order is never paid.
const UNPAID: usize = 6;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse()?;
    support::show_failures();
    let runtime = saga::runtime(arguments.builder().await?)?;
    runtime.start();
    place(&runtime).await?;
    let orders = settled(&runtime).await?;
    runtime.shutdown(Duration::from_secs(5)).await;
    report(&orders, arguments.json)
}

fn name(number: usize) -> String {
    format!("order-{number:03}")
}

/// Places every order. Done again, it finds them by their ids.
async fn place(runtime: &Runtime) -> Result<()> {
    let mut new = 0;
    for number in 1..=ORDERS {
        let (item, cents) = ITEMS[number % ITEMS.len()];
        let (customer, item) = (CUSTOMERS[number % CUSTOMERS.len()].into(), item.into());
        let mut events = vec![named("placed", &Order::Placed { customer, item })?];
        if number % UNPAID != 0 {
            events.push(named("paid", &Order::Paid { cents })?);
        }
        let placed = runtime.session(name(number))?.append(events).await?;
        new += usize::from(!placed.replayed);
    }
    eprintln!("placed    {new} new orders, {} were there already", ORDERS - new);
    Ok(())
}

fn named(id: &str, event: &Order) -> Result<NewEvent> {
    use a2_runtime::Events as _;
    Ok(event.encode()?.id(id)?)
}

/// Every order, when each is shipped or cancelled and nothing is left to be done.
async fn settled(runtime: &Runtime) -> Result<Vec<(String, Standing)>> {
    loop {
        support::settle(runtime).await?;
        let mut orders = Vec::new();
        for number in 1..=ORDERS {
            let session = runtime.session(name(number))?;
            orders.push((name(number), session.state(&STANDING).await?));
        }
        if orders.iter().all(|(_, order)| order.is_settled()) {
            return Ok(orders);
        }
        // Some wait for a timer.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn report(orders: &[(String, Standing)], as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string_pretty(orders)?);
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["order", "customer", "item", "paid", "refunded", "outcome"]);
    let euros = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
    let (mut shipped, mut kept) = (0, 0);
    for (name, order) in orders {
        let outcome = order
            .cancelled
            .as_ref()
            .map_or("shipped".to_owned(), |reason| format!("cancelled: {reason}"));
        let money = [euros(order.paid), euros(order.refunded)];
        let [paid, refunded] = money;
        table.add_row([name, &order.customer, &order.item, &paid, &refunded, &outcome]);
        ensure!(order.shipped == (order.paid > order.refunded), "{name}: parcel and money differ");
        ensure!(order.shipped == order.reserved, "{name}: parcel and stock differ");
        shipped += usize::from(order.shipped);
        kept += order.paid - order.refunded;
    }
    println!("{table}\n{shipped} of {} orders shipped, {} kept", orders.len(), euros(kept));
    Ok(())
}
