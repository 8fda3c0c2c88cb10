//! What the tests share: a runtime, waiting, and a look at processes.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use a2_conformance::BoxError;
use a2_conformance::servers::Process;
use libtest_mimic::{Completion, Failed, Trial};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

pub(crate) type Result<T = (), E = BoxError> = std::result::Result<T, E>;

/// One for all tests, as the suite has it.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime")
    })
}

/// A test that is an async function.
pub(crate) fn test<F>(name: &str, run: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = Result> + Send + 'static,
{
    ignorable(name, || async { run().await.map(|()| Completion::Completed) })
}

/// A test that may find that it cannot run.
pub(crate) fn ignorable<F>(name: &str, run: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = Result<Completion>> + Send + 'static,
{
    Trial::ignorable_test(name, move || {
        let ran = runtime().block_on(runtime().spawn(run()))?;
        ran.map_err(|error| Failed::from(error.to_string()))
    })
}

/// Waits for a condition; an error when it does not come.
pub(crate) async fn until<F>(what: &str, condition: impl Fn() -> F) -> Result
where
    F: Future<Output = bool>,
{
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        if Instant::now() > deadline {
            return Err(format!("not within 30 s: {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// The letter of a process's state; none when there is no such process, or nobody has waited for it.
pub(crate) fn state(pid: u32) -> Option<char> {
    let state = if cfg!(target_os = "linux") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    } else {
        let ps = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().ok()?;
        String::from_utf8_lossy(&ps.stdout).trim().chars().next()
    };
    state.filter(|state| *state != 'Z')
}

/// What a server of this machine leaves behind if nobody cleans up.
#[derive(Debug, Clone)]
pub(crate) struct Traces {
    pub(crate) pid: u32,
    pub(crate) folder: PathBuf,
}

impl Traces {
    /// Of a server that runs.
    pub(crate) fn of(process: &Process) -> Result<Self> {
        let pid = process.pid().ok_or("it does not run")?;
        let traces = Self { pid, folder: process.folder().to_path_buf() };
        if state(pid).is_none() || !traces.folder.is_dir() {
            return Err(format!("{traces:?}: no process or no folder").into());
        }
        Ok(traces)
    }

    pub(crate) fn are_gone(&self) -> bool {
        state(self.pid).is_none() && !self.folder.exists()
    }
}

/// Everything must be gone now.
pub(crate) fn all_gone(traces: &[Traces]) -> Result {
    match traces.iter().find(|traces| !traces.are_gone()) {
        Some(left) => Err(format!("left behind: {left:?}, state {:?}", state(left.pid)).into()),
        None => Ok(()),
    }
}

/// A connection whose task ends with it.
pub(crate) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The only value of the only row.
pub(crate) async fn ask(client: &Client, sql: &str) -> Result<String> {
    let answers = client.simple_query(sql).await?;
    let rows = answers.iter().filter_map(|answer| match answer {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(rows.last().ok_or("no row")?.to_owned())
}
