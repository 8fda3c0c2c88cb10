//! Where blocking work may run.
//!
//! A thread hop costs about 50 µs, three times the work of an operation, so work runs in place where
//! the runtime allows that: on a multi-thread runtime, through `block_in_place`, which lets the
//! other tasks of the thread go on elsewhere. Everywhere else it is handed to another thread.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tokio::runtime::{Handle, RuntimeFlavor};

thread_local! {
    /// This thread polls a `LocalSet`, in which `block_in_place` panics. Nothing tells in advance.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether work may run in place here.
pub(crate) fn may_run_in_place() -> bool {
    // Without unwinding, the one refusal that teaches would end the process.
    cfg!(panic = "unwind")
        && Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread)
        && !REFUSED.get()
}

/// Runs `work` in place; gives it back when that turns out not to be allowed here.
pub(crate) fn in_place<T, F: FnOnce() -> T>(work: F) -> Result<T, F> {
    let mut work = Some(work);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        tokio::task::block_in_place(|| work.take().map(|work| work()))
    }));
    match (ran, work) {
        (Ok(Some(done)), _) => Ok(done),
        (Err(_), Some(work)) => {
            REFUSED.set(true);
            Err(work)
        }
        (Err(panic), None) => resume_unwind(panic),
        // `work` is there until it runs.
        (Ok(None), Some(work)) => Err(work),
        (Ok(None), None) => resume_unwind(Box::new("the work ran and left nothing")),
    }
}

/// Runs `work` on another thread.
pub(crate) async fn elsewhere<T, F>(work: F) -> a2_core::Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    if let Ok(runtime) = Handle::try_current() {
        return runtime.spawn_blocking(work).await.map_err(|error| {
            a2_core::Error::unavailable("the runtime is shutting down").with_source(error)
        });
    }
    let (answer, answered) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("a2-sqlite".to_owned())
        .spawn(move || {
            let _ = answer.send(work());
        })
        .map_err(|error| a2_core::Error::unavailable("no thread can be made").with_source(error))?;
    answered.await.map_err(|_| a2_core::Error::unavailable("the thread ended without an answer"))
}

/// Runs `work` in place where that is allowed, else on another thread.
pub(crate) async fn run<T, F>(work: F) -> a2_core::Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let work = if may_run_in_place() {
        match in_place(work) {
            Ok(done) => return Ok(done),
            Err(work) => work,
        }
    } else {
        work
    };
    elsewhere(work).await
}
