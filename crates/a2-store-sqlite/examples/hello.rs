//! One order, the work that it leads to, and what comes of it.

use std::time::Duration;

use a2_store_sqlite::*;

#[tokio::main]
async fn main() -> Result<()> {
    let store = SqliteStore::open("hello.db").await?;
    let session = SessionId::new("customer-7")?;
    let order = NewEvent::new("order.placed", &("tea", 2))?.id("order-17")?;
    let order = order.target(Target::lane("billing", "orders")?);
    let placed = store.append_one(&session, order).await?;
    println!("placed before: {}", placed.replayed); // by its id, a second run finds it there

    let claim = ClaimAvailable::new("worker-1", Duration::from_secs(30))?;
    for head in store.claim_available(&session, claim).await?.into_heads() {
        let bill = NewEvent::new("bill.sent", &head.event.payload)?.id("bill-17")?;
        let done = CompleteAttempt::new(head.head.clone(), head.attempt()).events([bill])?;
        let done = store.complete_attempt(&session, done).await?;
        println!("billed: {}", done.outcome != Completion::Superseded);
    }
    for event in store.read(&session, ReadRange::default()).await?.events {
        println!("{} {} {} {:?}", event.index, event.id, event.event_type, event.cause);
    }
    Ok(())
}
