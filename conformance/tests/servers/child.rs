//! This test's program as another process: one that is ended from outside, or that has another
//! environment.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;

use a2_conformance::servers::{
    self, PgBouncer, PostgresServer, Process, RedisCluster, RedisServer, ServerError, Servers,
};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::util::{Result, Traces, runtime};

/// The variable that makes this program a child, and names what it does.
pub(crate) const TASK: &str = "A2_SERVERS_TEST_CHILD";

const READY: &str = "ready";

/// Never dropped: as a harness that keeps its servers in a static.
static HELD: Mutex<Option<Held>> = Mutex::new(None);

#[derive(Default)]
struct Held {
    postgres: Option<PostgresServer>,
    bouncer: Option<PgBouncer>,
    redis: Option<RedisServer>,
    cluster: Option<RedisCluster>,
}

impl Held {
    async fn start(kinds: &str) -> Result<Self> {
        let servers = if kinds == "docker" { Servers::Docker } else { Servers::Local };
        let redis = Some(servers::redis(servers).await?);
        let mut held = Self { redis, ..Self::default() };
        if ["some", "all"].contains(&kinds) {
            let postgres = servers::postgres(Servers::Local).await?;
            held.bouncer = Some(servers::pgbouncer(&postgres).await?);
            held.postgres = Some(postgres);
        }
        if kinds == "all" {
            held.cluster = Some(servers::redis_cluster(Servers::Local).await?);
        }
        Ok(held)
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        let postgres = self.postgres.iter().filter_map(PostgresServer::process);
        let single = self.redis.iter().filter_map(RedisServer::process);
        let nodes = self.cluster.iter().flat_map(RedisCluster::processes);
        postgres.chain(self.bouncer.iter().map(PgBouncer::process)).chain(single).chain(nodes)
    }
}

/// What the child does.
pub(crate) fn run(task: &str) -> ExitCode {
    let done = match task.split(' ').collect::<Vec<_>>()[..] {
        ["hold", kinds, how] => runtime().block_on(hold(kinds, how)),
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

/// Starts servers, says what they would leave, and ends as it is told.
async fn hold(kinds: &str, how: &str) -> Result {
    let held = Held::start(kinds).await?;
    println!("{}", held.redis.as_ref().map(RedisServer::url).unwrap_or_default());
    for process in held.processes() {
        println!("{} {}", process.pid().ok_or("it does not run")?, process.folder().display());
    }
    if how == "pause" {
        held.processes().for_each(Process::pause);
    }
    // Whoever started the tests may have had signals ignored (`nohup` does), and a child inherits
    // that: here they end it all the same.
    let waited_for: &[_] = if kinds == "docker" { &[] } else { &[SIGHUP, SIGINT, SIGTERM] };
    let mut signals = Signals::new(waited_for)?;
    println!("{READY}");
    std::io::stdout().flush()?;
    *HELD.lock().map_err(|error| error.to_string())? = Some(held);
    match how {
        "return" => Ok(()),
        "exit" => std::process::exit(7),
        "abort" => std::process::abort(),
        // What watches over containers waits for signals itself.
        _ if kinds == "docker" => std::future::pending().await,
        _ => Ok(emulate_default_handler(signals.forever().next().ok_or("no signal came")?)?),
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
pub(crate) struct Holding {
    pub(crate) child: Child,
    /// Of its Redis.
    #[cfg_attr(not(feature = "docker"), allow(dead_code))]
    pub(crate) url: String,
    pub(crate) traces: Vec<Traces>,
}

impl Holding {
    /// Sends it a signal and waits for its end.
    pub(crate) fn end_by(&mut self, signal: &str) -> Result {
        let pid = self.child.id().to_string();
        let script = r#"kill -s "$1" "$2""#;
        let sent = Command::new("sh").args(["-c", script, "sh", signal, &pid]).status()?;
        assert!(sent.success());
        assert!(!self.child.wait()?.success());
        Ok(())
    }
}

/// Starts a child; `docker` needs images that are named as they are for this process.
pub(crate) fn holding(kinds: &str, how: &str) -> Result<Holding> {
    let mut command = command(&format!("hold {kinds} {how}"))?;
    if let Some(image) = std::env::var_os("A2_REDIS_IMAGE") {
        command.env("A2_REDIS_IMAGE", image);
    }
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let url = lines.next().ok_or("no line")??;
    let mut traces = Vec::new();
    for line in lines {
        let line = line?;
        if line == READY {
            return Ok(Holding { child, url, traces });
        }
        let (pid, folder) = line.split_once(' ').ok_or_else(|| line.clone())?;
        let pid = pid.parse().map_err(|_| line.clone())?;
        traces.push(Traces { pid, folder: PathBuf::from(folder) });
    }
    Err(format!("the child ended: {url}, {:?}", child.wait()).into())
}

/// What a server is under another environment, or why there is none.
pub(crate) fn describing(kind: &str, servers: &str, set: &[(&str, &str)]) -> Result<String> {
    let mut command = command(&format!("describe {kind} {servers}"))?;
    let output = command.envs(set.iter().copied()).output()?;
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
