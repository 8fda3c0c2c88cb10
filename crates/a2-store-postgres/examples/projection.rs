//! What sold in which shop: a table of the program's own, kept by a consumer of the logs, each event
//! counted exactly once.
//!
//! `cargo run -p a2-store-postgres --example projection -- postgres://USER@HOST/DATABASE [ORDERS]`
//!
//! A session for each shop holds its orders; some are cancelled later. The consumer `sales` follows each
//! log and adds what it finds to the table `sales`: a sum, so that an event that was counted twice, or
//! not at all, would show. `complete_attempt_with` runs the program's SQL and moves the cursor in one
//! transaction.
//!
//! Kill the program whenever you like, run it again, run several at once: the table ends the same. All
//! of it is in the schema `a2_projection`, or the one that `A2_PROJECTION_SCHEMA` names.

use std::time::Duration;

use a2_store_postgres::deadpool_postgres::Transaction;
use a2_store_postgres::{
    Append, BoxError, Claim, ClaimAvailable, CompleteAttempt, Completion, DispatchedHead,
    EventType, LogDeclaration, LogTypes, NewEvent, PostgresStore, Result, Served, ServedConsumer,
    SessionId, Store as _, StoreExt as _, WakeLog,
};
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};

const SHOPS: [&str; 4] = ["Aarhus", "Bergen", "Cork", "Delft"];
const ITEMS: [(&str, u64); 3] = [("tea", 450), ("coffee", 700), ("cake", 525)];
/// So many orders are appended together, all or none of them.
const DAY: usize = 10;
/// A worker that died is replaced after this.
const TTL: Duration = Duration::from_secs(1);
/// How many events one transaction takes.
const RUN: usize = 8;

const COLUMNS: &str = "shop text, item text, orders bigint not null, pieces bigint not null, \
                       cents bigint not null, primary key (shop, item)";
const ADD: &str = "values ($1, $2, $3, $4, $5) on conflict (shop, item) do update set \
                   orders = s.orders + excluded.orders, pieces = s.pieces + excluded.pieces, \
                   cents = s.cents + excluded.cents";

/// What an event says; both types have the same payload.
#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
    pieces: u64,
    cents: u64,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (url, orders) = arguments()?;
    let schema = std::env::var("A2_PROJECTION_SCHEMA").unwrap_or("a2_projection".to_owned());
    let store = PostgresStore::builder(url).schema(&schema).connect().await?;
    store.migrate().await?;
    let table = format!("{schema}.sales");
    let create = format!("create table if not exists {table} ({COLUMNS})");
    store.pool().get().await?.batch_execute(&create).await?;

    let projection = Projection { store, table };
    for shop in SHOPS {
        projection.sell(shop, orders).await?;
    }
    projection.work_until_settled().await?;
    projection.report().await?;
    projection.store.close().await;
    Ok(())
}

fn arguments() -> Result<(String, u64), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("usage: projection URL [ORDERS]")?;
    let orders = arguments.next().map_or(Ok(50), |orders| orders.parse())?;
    Ok((url, orders))
}

struct Projection {
    store: PostgresStore,
    table: String,
}

impl Projection {
    /// The shop's orders, every seventh cancelled. A second run finds them by their ids.
    async fn sell(&self, shop: &str, orders: u64) -> Result<(), BoxError> {
        let session = SessionId::new(shop)?;
        let mut new = 0;
        for day in (1..=orders).step_by(DAY) {
            let mut events = Vec::new();
            for number in day..(day + DAY as u64).min(orders + 1) {
                let (item, price) = ITEMS[(number % 3) as usize];
                let pieces = number % 4 + 1;
                let order = Order { item: item.to_owned(), pieces, cents: pieces * price };
                let placed = NewEvent::new("order.placed", &order)?;
                events.push(placed.id(format!("{number}/placed"))?);
                if number.is_multiple_of(7) {
                    let cancelled = NewEvent::new("order.cancelled", &order)?;
                    events.push(cancelled.id(format!("{number}/cancelled"))?);
                }
            }
            let appended = self.store.append(&session, Append::new(events)?).await?;
            new += if appended.replayed { 0 } else { appended.events.len() };
        }
        // From the log's beginning, whenever it was first woken.
        self.store.wake_log(&session, WakeLog::new("sales", declaration()?)?).await?;
        eprintln!("{shop:<8} {new} new events");
        Ok(())
    }

    async fn work_until_settled(&self) -> Result<(), BoxError> {
        let holder = format!("projection-{}", std::process::id());
        let claim = ClaimAvailable::new(holder, TTL)?.served(served()?).limit(1)?.run(RUN)?;
        loop {
            let pending: Vec<_> = self.store.all_pending(served()?).try_collect().await?;
            if pending.is_empty() {
                return Ok(());
            }
            let mut wait = TTL;
            for found in pending {
                wait = wait.min(self.drain(&found.session, &claim).await?);
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Works in one session until nothing can be claimed; answers when to look again.
    async fn drain(&self, session: &SessionId, claim: &ClaimAvailable) -> Result<Duration> {
        let mut next = Some(self.store.claim_available(session, claim.clone()).await?);
        loop {
            let head = match next {
                Some(Claim::Claimed(claimed)) => claimed.heads.into_iter().next(),
                Some(Claim::Busy(busy)) => return Ok(busy.retry_after),
                Some(Claim::Settled) | None => None,
            };
            let Some(head) = head else { return Ok(Duration::ZERO) };
            let complete = CompleteAttempt::new(head.head.clone(), head.attempt())
                .through(head.run_through())?
                .served(served()?)
                .then_claim(claim.clone());
            let run = (self.table.clone(), head.clone());
            let done = self.store.complete_attempt_with(session, complete, |tx| {
                // It may be called again, when the database asks for it.
                let (table, head) = run.clone();
                Box::pin(async move { project(tx, &table, &head).await })
            });
            let done = done.await?;
            if done.outcome == Completion::Superseded {
                eprintln!("{session:<8} somebody else has taken over at {}", head.head.index);
            }
            next = done.claim;
        }
    }

    async fn report(&self) -> Result<(), BoxError> {
        let own = self.store.pool().get().await?;
        let rows = format!("select * from {} order by shop, item", self.table);
        println!("{:<10}{:<10}{:>8}{:>8}{:>12}", "shop", "item", "orders", "pieces", "sum");
        for row in own.query(&rows, &[]).await? {
            let (shop, item): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
            let (orders, pieces, cents): (i64, i64, i64) =
                (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
            let sum = format!("{}.{:02}", cents / 100, cents % 100);
            println!("{shop:<10}{item:<10}{orders:>8}{pieces:>8}{sum:>12}");
        }
        Ok(())
    }
}

/// Adds a run of events to the table, within the transaction that moves the cursor past them.
async fn project(tx: &Transaction<'_>, table: &str, head: &DispatchedHead) -> Result<(), BoxError> {
    let add = tx.prepare_cached(&format!("insert into {table} as s {ADD}")).await?;
    for event in std::iter::once(&head.event).chain(&head.run) {
        let order: Order = serde_json::from_str(event.payload.as_str())?;
        let sign: i64 = if event.event_type.as_str() == "order.cancelled" { -1 } else { 1 };
        let pieces = sign * i64::try_from(order.pieces)?;
        let cents = sign * i64::try_from(order.cents)?;
        tx.execute(&add, &[&event.session.as_str(), &order.item, &sign, &pieces, &cents]).await?;
    }
    Ok(())
}

/// The log cursor: the consumer is declared with what it takes, and from where.
fn declaration() -> Result<LogDeclaration> {
    let types = ["order.placed", "order.cancelled"].map(EventType::new);
    let types = LogTypes::only(types.into_iter().collect::<Result<Vec<_>>>()?)?;
    Ok(LogDeclaration::new("orders")?.types(types).backfill())
}

fn served() -> Result<Served> {
    Served::only([ServedConsumer::new("sales")?.log(declaration()?)])
}
