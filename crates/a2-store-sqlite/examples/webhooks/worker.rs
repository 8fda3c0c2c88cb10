//! The workers: they find sessions with work, claim heads, run the handlers, settle the attempts.

use std::time::Duration;

use a2_store_sqlite::{
    Claim, ClaimAvailable, CompleteAttempt, Completion, CursorKey, DispatchedHead, FailAttempt,
    Failure, NewEvent, Result, Served, SessionId, Store as _, StoreExt as _,
};
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::task::{AbortHandle, JoinSet};

use crate::Db;
use crate::handlers::{self, Release};

const WORKERS: usize = 4;
/// A dead worker's claims are taken over after this; handlers end long before.
const TTL: Duration = Duration::from_secs(1);
/// So many failures dead-letter a head. Claims carry no budget, so a lapsed lease never does: a kill
/// costs time, and what is dead-lettered depends on the deliveries alone.
const MAX_FAILURES: u64 = 5;
const RETRY_AFTER: Duration = Duration::from_millis(40);
/// How many events one attempt of a log cursor takes.
const RUN: usize = 16;
/// Hints may be lost: look again after this in any case.
const POLL: Duration = Duration::from_millis(100);

struct Worker {
    name: String,
    db: Db,
    release: Release,
    served: Served,
}

/// Runs several workers until `arriving` has ended and no work is left.
pub(crate) async fn work_until_settled(
    db: &Db,
    release: Release,
    arriving: &AbortHandle,
) -> anyhow::Result<()> {
    let mut workers = JoinSet::new();
    for n in 1..=WORKERS {
        let name = format!("worker-{n}-of-{}", std::process::id());
        let worker = Worker { name, db: db.clone(), release, served: handlers::served()? };
        workers.spawn(worker.run(arriving.clone()));
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    eprintln!("workers   nothing is left to be done");
    Ok(())
}

impl Worker {
    async fn run(self, arriving: AbortHandle) -> Result<()> {
        let mut hints = self.db.watch_pending(self.served.clone());
        loop {
            // Asked before looking, so that nothing arrives unseen in between.
            let all_arrived = arriving.is_finished();
            let pending = self.db.all_pending(self.served.clone());
            let pending: Vec<_> = pending.try_collect().await?;
            if pending.is_empty() && all_arrived {
                return Ok(());
            }
            let mut wait = POLL;
            for found in pending {
                wait = wait.min(self.drain(&found.session).await?);
            }
            let _ = tokio::time::timeout(wait, hints.next()).await;
        }
    }

    /// Works in one session until nothing can be claimed; answers when to look again.
    async fn drain(&self, session: &SessionId) -> Result<Duration> {
        let mut claim = Some(self.db.claim_available(session, self.claim()?).await?);
        loop {
            let claimed = match claim {
                Some(Claim::Claimed(claimed)) => claimed.heads.into_iter().next(),
                Some(Claim::Busy(busy)) => return Ok(busy.retry_after),
                Some(Claim::Settled) | None => None,
            };
            let Some(head) = claimed else { return Ok(Duration::ZERO) };
            claim = match handlers::handle(&self.db, self.release, &head).await {
                Ok(events) => self.complete(&head, events).await?,
                Err(error) => self.fail(&head, &error.to_string()).await?,
            };
        }
    }

    /// One head at a time: settling it claims the next one in the same call.
    fn claim(&self) -> Result<ClaimAvailable> {
        ClaimAvailable::new(&self.name, TTL)?.served(self.served.clone()).limit(1)?.run(RUN)
    }

    /// The cursor moves and the returned events are appended, both or neither.
    async fn complete(
        &self,
        head: &DispatchedHead,
        events: Vec<NewEvent>,
    ) -> Result<Option<Claim>> {
        let mut complete = CompleteAttempt::new(head.head.clone(), head.attempt())
            .events(events)?
            .served(self.served.clone())
            .then_claim(self.claim()?);
        if matches!(head.head.cursor, CursorKey::Log(_)) {
            complete = complete.through(head.run_through())?;
        }
        let answer = self.db.complete_attempt(&head.event.session, complete).await?;
        if answer.outcome == Completion::Superseded {
            say(head, "superseded, somebody else has taken over");
        }
        Ok(answer.claim)
    }

    async fn fail(&self, head: &DispatchedHead, error: &str) -> Result<Option<Claim>> {
        let fail = FailAttempt::new(head.head.clone(), head.attempt(), error)
            .max_failures(MAX_FAILURES)?
            .retry_after(RETRY_AFTER)
            .then_claim(self.claim()?);
        let answer = self.db.fail_attempt(&head.event.session, fail).await?;
        match answer.outcome {
            Failure::Failed { .. } => say(head, &format!("{error}; it will be retried")),
            Failure::DeadLettered { .. } => say(head, &format!("{error}; DEAD-LETTERED")),
            Failure::Superseded => say(head, "superseded, somebody else has taken over"),
        }
        Ok(answer.claim)
    }
}

fn say(head: &DispatchedHead, what: &str) {
    let (consumer, event, attempt) = (head.head.consumer.as_str(), &head.event, head.attempt());
    eprintln!("{consumer:<9} {} {}, attempt {attempt}: {what}", event.id, event.event_type);
}
