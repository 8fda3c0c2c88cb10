//! This test's program as another process: one that is ended from outside, or that has another
//! environment.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;

use a2_conformance::servers::{
    self, PgBouncer, PostgresServer, Process, RedisCluster, RedisServer, ServerError, Servers,
};

use crate::util::{Result, Traces, runtime};

/// The variable that makes this program a child, and names what it does.
pub(crate) const TASK: &str = "A2_SERVERS_TEST_CHILD";

const READY: &str = "ready";

/// Never dropped: as a harness that keeps its servers in a static.
static HELD: Mutex<Option<(PostgresServer, PgBouncer, RedisServer, RedisCluster)>> =
    Mutex::new(None);

/// What the child does.
pub(crate) fn run(task: &str) -> ExitCode {
    let done = match task.split(' ').collect::<Vec<_>>()[..] {
        ["hold", how] => runtime().block_on(hold(how)),
        ["describe", kind, servers] => runtime().block_on(describe(kind, servers)),
        _ => Err(format!("no such task: {task}").into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts one server of each kind, says what they would leave, and ends as it is told to.
async fn hold(how: &str) -> Result {
    let postgres = servers::postgres(Servers::Local).await?;
    let bouncer = servers::pgbouncer(&postgres).await?;
    let redis = servers::redis(Servers::Local).await?;
    let cluster = servers::redis_cluster(Servers::Local).await?;
    let none = || "no process".to_owned();
    let ours = [postgres.process().ok_or_else(none)?, bouncer.process()];
    let single = redis.process().ok_or_else(none)?;
    for process in ours.into_iter().chain([single]).chain(cluster.processes()) {
        println!("{} {}", process.pid().ok_or_else(none)?, process.folder().display());
    }
    if how == "paused" {
        postgres.process().map(Process::pause);
        redis.process().map(Process::pause);
    }
    println!("{READY}");
    std::io::stdout().flush()?;
    let mut held = HELD.lock().map_err(|error| error.to_string())?;
    *held = Some((postgres, bouncer, redis, cluster));
    drop(held);
    match how {
        "return" => Ok(()),
        "exit" => std::process::exit(7),
        "abort" => std::process::abort(),
        _ => std::future::pending().await,
    }
}

async fn describe(kind: &str, servers: &str) -> Result {
    let servers = match servers {
        "auto" => Servers::Auto,
        "docker" => Servers::Docker,
        "local" => Servers::Local,
        "url" => Servers::Url,
        other => return Err(format!("no such policy: {other}").into()),
    };
    let described = match kind {
        "postgres" => servers::postgres(servers).await.map(|server| server.describe()),
        "redis" => servers::redis(servers).await.map(|server| server.describe()),
        "redis-cluster" => servers::redis_cluster(servers).await.map(|server| server.describe()),
        other => return Err(format!("no such kind: {other}").into()),
    };
    let missing = |error: &ServerError| if error.is_missing() { "missing" } else { "failed" };
    match described {
        Ok(description) => println!("found: {description}"),
        Err(error) => println!("{}: {error}", missing(&error)),
    }
    Ok(())
}

fn command(task: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(TASK, task).stdin(Stdio::null());
    for name in ["POSTGRES", "REDIS", "REDIS_CLUSTER", "PGBOUNCER"] {
        for part in ["URL", "IMAGE", "BIN"] {
            command.env_remove(format!("A2_{name}_{part}"));
        }
    }
    Ok(command)
}

/// A child that holds servers, and what these would leave.
pub(crate) fn holding(how: &str) -> Result<(Child, Vec<Traces>)> {
    let mut child = command(&format!("hold {how}"))?.stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or("no output")?;
    let mut traces = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if line == READY {
            assert_eq!(traces.len(), 6);
            return Ok((child, traces));
        }
        let (pid, folder) = line.split_once(' ').ok_or_else(|| line.clone())?;
        let pid = pid.parse().map_err(|_| line.clone())?;
        traces.push(Traces { pid, folder: PathBuf::from(folder) });
    }
    Err(format!("the child ended: {:?}", child.wait()).into())
}

/// What a server is under another environment, or why there is none.
pub(crate) fn describing(kind: &str, servers: &str, set: &[(&str, &str)]) -> Result<String> {
    let mut command = command(&format!("describe {kind} {servers}"))?;
    let output = command.envs(set.iter().copied()).output()?;
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
