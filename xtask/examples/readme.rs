//! The program that the README shows, word for word: `cargo xtask tidy` compares them.

use std::time::Duration;

use a2_store_sqlite::{
    Append, ClaimAvailable, CompleteAttempt, NewEvent, Result, SessionId, SqliteStore, Store,
    Target,
};

#[tokio::main]
async fn main() -> Result<()> {
    let store = SqliteStore::in_memory().await?; // or SqliteStore::open("a2.db")
    let session = SessionId::new("order-17")?;
    let placed = NewEvent::new("order.placed", "2 kg of tea")?.target(Target::lane("billing", "")?);
    let appended = store.append(&session, Append::one(placed)?).await?;
    println!("appended at index {}", appended.events[0].index);

    let claim = ClaimAvailable::new("worker-1", Duration::from_secs(30))?;
    for work in store.claim_available(&session, claim).await?.into_heads() {
        let paid = NewEvent::new("order.paid", &(12.5, "EUR"))?.id("payment-1")?;
        let done = CompleteAttempt::new(work.head.clone(), work.attempt()).events([paid])?;
        println!("{:?}", store.complete_attempt(&session, done).await?.outcome);
    }
    Ok(())
}
