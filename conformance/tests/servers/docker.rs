//! Each kind in a container, where an engine answers and the image is there or can be pulled. Where
//! not, the test is ignored and says what was not had; it fails when `A2_TEST_DOCKER=required` says that
//! there must be one.

use std::collections::BTreeSet;
use std::process::Command;

use a2_conformance::servers::{
    self, AppendOnly, PostgresOptions, RedisOptions, Reply, ServerError, Servers,
};
use libtest_mimic::{Completion, Trial};

use crate::child::holding;
use crate::util::{Result, ask, connect, ignorable, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        ignorable("docker::postgres", postgres),
        ignorable("docker::redis", redis),
        ignorable("docker::redis_cluster", redis_cluster),
        ignorable("docker::pgbouncer", pgbouncer),
        ignorable("docker::sigkill", || signalled("KILL")),
        ignorable("docker::sigterm", || signalled("TERM")),
        ignorable("docker::leftovers", leftovers),
    ]
}

/// The server, or that there is none; one that does not work is an error.
fn had<T>(server: Result<T, ServerError>) -> Result<Result<T, Completion>> {
    match server {
        Ok(server) => Ok(Ok(server)),
        Err(error) if error.is_missing() && !is_required() => {
            Ok(Err(Completion::ignored_with(format!("not had: {error}"))))
        }
        Err(error) => Err(error.into()),
    }
}

fn is_required() -> bool {
    std::env::var_os("A2_TEST_DOCKER").is_some_and(|value| value == "required")
}

/// The containers that bear a port of this machine, as the engine's own program lists them.
fn published(port: u16) -> Result<BTreeSet<String>> {
    let text = docker(&["ps", "--all", "--format", "{{.ID}}\t{{.Ports}}"])?;
    let bears = |line: &&str| line.contains(&format!(":{port}->"));
    Ok(text.lines().filter(bears).map(str::to_owned).collect())
}

/// What the engine's own program says.
fn docker(arguments: &[&str]) -> Result<String> {
    let output = Command::new("docker").args(arguments).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn port(url: &str) -> Result<u16> {
    let place = url.rsplit_once("127.0.0.1:").ok_or_else(|| url.to_owned())?.1;
    Ok(place.split('/').next().unwrap_or_default().parse()?)
}

/// Reached from this machine alone.
fn check_private(port: u16) -> Result {
    let lines = published(port)?;
    assert_eq!(lines.len(), 1, "{lines:?}");
    for line in &lines {
        assert!(line.contains(&format!("127.0.0.1:{port}->")), "{line}");
        assert!(!line.contains("0.0.0.0:") && !line.contains(":::"), "{line}");
    }
    Ok(())
}

async fn postgres() -> Result<Completion> {
    let options = PostgresOptions::new().setting("max_connections", 17);
    for (options, connections) in [(PostgresOptions::new(), "100"), (options, "17")] {
        let server = match had(options.start(Servers::Docker).await)? {
            Ok(server) => server,
            Err(missing) => return Ok(missing),
        };
        assert!(server.describe().contains(", Docker image "), "{}", server.describe());
        assert!(server.process().is_none());
        let client = connect(server.url()).await?;
        assert_eq!(ask(&client, "SELECT 1").await?, "1");
        assert_eq!(ask(&client, "SHOW max_connections").await?, connections);
        let port = port(server.url())?;
        check_private(port)?;
        drop(server);
        assert_eq!(published(port)?, BTreeSet::new());
    }
    Ok(Completion::Completed)
}

async fn redis() -> Result<Completion> {
    let options = RedisOptions::new().append_only(AppendOnly::Always);
    let server = match had(options.start(Servers::Docker).await)? {
        Ok(server) => server,
        Err(missing) => return Ok(missing),
    };
    assert!(server.describe().contains(", Docker image "), "{}", server.describe());
    server.command(&["SET", "k", "v"]).await?;
    assert_eq!(server.command(&["GET", "k"]).await?, Reply::Text("v".to_owned()));
    let fsync = ["appendfsync", "always"].map(|text| Reply::Text(text.to_owned()));
    let found = server.command(&["CONFIG", "GET", "appendfsync"]).await?;
    assert_eq!(found, Reply::Array(fsync.to_vec()));
    let port = port(server.url())?;
    check_private(port)?;
    drop(server);
    assert_eq!(published(port)?, BTreeSet::new());
    Ok(Completion::Completed)
}

async fn redis_cluster() -> Result<Completion> {
    let cluster = match had(servers::redis_cluster(Servers::Docker).await)? {
        Ok(cluster) => cluster,
        Err(missing) => return Ok(missing),
    };
    assert_eq!(cluster.nodes(), 3);
    // CRC16 of "123456789" is 0x31C3: slot 12739, on the third node.
    let set = ["SET", "123456789", "v"];
    assert_eq!(cluster.command(2, &set).await?, Reply::Status("OK".to_owned()));
    let last = port(cluster.url())?;
    let moved = Reply::Error(format!("MOVED 12739 127.0.0.1:{last}"));
    assert_eq!(cluster.command(0, &set).await?, moved);
    check_private(last)?;
    drop(cluster);
    assert_eq!(published(last)?, BTreeSet::new());
    Ok(Completion::Completed)
}

/// The container is the Postgres; PgBouncer is of this machine.
async fn pgbouncer() -> Result<Completion> {
    let postgres = match had(servers::postgres(Servers::Docker).await)? {
        Ok(postgres) => postgres,
        Err(missing) => return Ok(missing),
    };
    let bouncer = servers::pgbouncer(&postgres).await?;
    let client = connect(bouncer.url()).await?;
    assert_eq!(ask(&client, "SELECT 1").await?, "1");
    Ok(Completion::Completed)
}

/// A harness that ends without a drop leaves no container.
async fn signalled(signal: &'static str) -> Result<Completion> {
    if let Err(missing) = had(servers::redis(Servers::Docker).await)? {
        return Ok(missing);
    }
    let mut held = tokio::task::spawn_blocking(|| holding("docker", "wait")).await??;
    let port = port(&held.url)?;
    assert_eq!(published(port)?.len(), 1);
    held.end_by(signal)?;
    until("it is removed", || async { published(port).is_ok_and(|left| left.is_empty()) }).await?;
    Ok(Completion::Completed)
}

/// What a run has left, the next removes; what another run uses, it leaves alone.
async fn leftovers() -> Result<Completion> {
    let server = match had(servers::redis(Servers::Docker).await)? {
        Ok(server) => server,
        Err(missing) => return Ok(missing),
    };
    let lines = published(port(server.url())?)?;
    let id = lines.first().and_then(|line| line.split('\t').next()).ok_or("no container")?;
    let label = |name: &str| {
        docker(&["inspect", "--format", &format!("{{{{index .Config.Labels \"{name}\"}}}}"), id])
    };
    assert_eq!(label("a2-conformance.process")?, std::process::id().to_string());
    let machine = format!("a2-conformance.machine={}", label("a2-conformance.machine")?);
    let image = docker(&["inspect", "--format", "{{.Image}}", id])?;
    let left_by = |process: u32| {
        let process = format!("a2-conformance.process={process}");
        docker(&["create", "--label", &machine, "--label", &process, &image])
    };
    let mut ended = Command::new("true").spawn()?;
    ended.wait()?;
    let (dead, alive) = (left_by(ended.id())?, left_by(std::process::id())?);
    drop(servers::redis(Servers::Docker).await?);
    let left = docker(&["ps", "--all", "--no-trunc", "--quiet"])?;
    docker(&["rm", &alive])?;
    assert!(left.contains(&alive) && !left.contains(&dead), "{left}");
    Ok(Completion::Completed)
}
