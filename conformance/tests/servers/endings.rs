//! A harness that ends badly leaves no process and no folder.

use a2_conformance::servers::{self, Servers};
use libtest_mimic::Trial;

use crate::child::holding;
use crate::util::{Result, Traces, all_gone, test, until};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![test("endings::panic", panic)];
    for (signal, kinds) in [("TERM", "some"), ("INT", "redis"), ("HUP", "redis"), ("KILL", "all")] {
        let name = format!("endings::sig{}", signal.to_lowercase());
        trials.push(test(&name, move || signalled(kinds, "wait", signal)));
    }
    let paused = || signalled("some", "pause", "KILL");
    trials.push(test("endings::sigkill_with_paused_servers", paused));
    for how in ["return", "exit", "abort"] {
        trials.push(test(&format!("endings::{how}"), move || by_itself(how)));
    }
    trials
}

/// As when a case fails: the task unwinds, the process goes on.
async fn panic() -> Result {
    let (told, traces) = tokio::sync::oneshot::channel();
    let case = tokio::spawn(async {
        let server = servers::postgres(Servers::Local).await.unwrap();
        let _ = told.send(Traces::of(server.process().unwrap()).unwrap());
        // As a failing assertion does, without its report.
        std::panic::resume_unwind(Box::new(server.url().to_owned()));
    });
    let traces = traces.await?;
    assert!(case.await.unwrap_err().is_panic());
    all_gone(&[traces])
}

async fn signalled(kinds: &'static str, how: &'static str, signal: &'static str) -> Result {
    let holding = tokio::task::spawn_blocking(move || holding(kinds, how));
    let mut held = holding.await??;
    let expected = match kinds {
        "redis" => 1,
        // Postgres and PgBouncer too.
        "some" => 3,
        // And a cluster of three.
        _ => 6,
    };
    assert_eq!(held.traces.len(), expected);
    assert!(held.traces.iter().all(|traces| !traces.are_gone()));
    held.end_by(signal)?;
    cleaned_up(&held.traces).await
}

async fn by_itself(how: &'static str) -> Result {
    let mut held = tokio::task::spawn_blocking(move || holding("redis", how)).await??;
    let status = held.child.wait()?;
    let expected = match how {
        "return" => Some(0),
        "exit" => Some(7),
        _ => None,
    };
    assert_eq!(status.code(), expected);
    cleaned_up(&held.traces).await
}

async fn cleaned_up(traces: &[Traces]) -> Result {
    let gone = until("all is cleaned up", || async { traces.iter().all(Traces::are_gone) }).await;
    // Names what is left.
    all_gone(traces)?;
    gone
}
