//! What tests of faults do to a server of this machine: kill it, pause it, start it again.

use a2_conformance::servers::{
    self, AppendOnly, PostgresOptions, Process, RedisOptions, Reply, Servers,
};
use libtest_mimic::Trial;

use crate::util::{Result, Traces, all_gone, ask, connect, state, test, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("faults::postgres_killed", postgres_killed),
        test("faults::postgres_paused", postgres_paused),
        test("faults::postgres_paused_and_dropped", postgres_paused_and_dropped),
        test("faults::redis_killed", redis_killed),
        test("faults::redis_paused", redis_paused),
        test("faults::cluster_node_killed", cluster_node_killed),
        test("faults::died_by_itself", died_by_itself),
    ]
}

fn pid(process: &Process) -> Result<u32> {
    process.pid().ok_or_else(|| "it does not run".into())
}

async fn postgres_killed() -> Result {
    // More than once a restart, as a pool may be connected.
    let server = PostgresOptions::new().start(Servers::Local).await?;
    let process = server.process().ok_or("no process")?;
    for round in 1..=2 {
        let client = connect(server.url()).await?;
        let backend: u32 = ask(&client, "SELECT pg_backend_pid()").await?.parse()?;
        let made = "CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES (1)";
        client.batch_execute(made).await?;
        let (before, port) = (pid(process)?, process.port());
        process.kill();
        assert_eq!((process.pid(), state(before), state(backend)), (None, None, None));
        assert!(server.ping().await.is_err());
        assert!(client.simple_query("SELECT 1").await.is_err());

        process.restart().await?;
        assert_ne!(pid(process)?, before);
        assert_eq!(process.port(), port);
        let client = connect(server.url()).await?;
        assert_eq!(ask(&client, "SELECT count(*) FROM kept").await?, round.to_string());
    }
    let traces = Traces::of(process)?;
    drop(server);
    all_gone(&[traces])
}

async fn postgres_paused() -> Result {
    let server = servers::postgres(Servers::Local).await?;
    let process = server.process().ok_or("no process")?;
    let client = connect(server.url()).await?;
    let backend: u32 = ask(&client, "SELECT pg_backend_pid()").await?.parse()?;
    process.pause();
    until("both are stopped", || async {
        [process.pid().and_then(state), state(backend)] == [Some('T'), Some('T')]
    })
    .await?;
    let asked = tokio::spawn(async move { ask(&client, "SELECT 7").await });
    process.resume();
    assert_eq!(asked.await??, "7");
    Ok(server.ping().await?)
}

async fn postgres_paused_and_dropped() -> Result {
    let server = servers::postgres(Servers::Local).await?;
    let process = server.process().ok_or("no process")?;
    let client = connect(server.url()).await?;
    let backend: u32 = ask(&client, "SELECT pg_backend_pid()").await?.parse()?;
    let traces = Traces::of(process)?;
    process.pause();
    drop(server);
    assert_eq!(state(backend), None);
    all_gone(&[traces])
}

async fn redis_killed() -> Result {
    for (append_only, kept) in
        [(AppendOnly::Always, Reply::Text("v".to_owned())), (AppendOnly::Off, Reply::Nil)]
    {
        let server = RedisOptions::new().append_only(append_only).start(Servers::Local).await?;
        let process = server.process().ok_or("no process")?;
        let before = pid(process)?;
        server.command(&["SET", "k", "v"]).await?;
        process.kill();
        assert_eq!((process.pid(), state(before)), (None, None));
        assert!(server.command(&["PING"]).await.is_err());
        // Killed again, which is nothing, and started.
        process.restart().await?;
        assert_eq!(server.command(&["GET", "k"]).await?, kept, "{append_only:?}");
    }
    Ok(())
}

async fn redis_paused() -> Result {
    let server = servers::redis(Servers::Local).await?;
    let process = server.process().ok_or("no process")?;
    process.pause();
    until("it is stopped", || async { process.pid().and_then(state) == Some('T') }).await?;
    process.resume();
    server.ping().await?;
    let traces = Traces::of(process)?;
    process.pause();
    drop(server);
    all_gone(&[traces])
}

async fn cluster_node_killed() -> Result {
    let cluster = servers::redis_cluster(Servers::Local).await?;
    let says = |node: usize, line: &'static str| {
        let cluster = &cluster;
        async move {
            let info = cluster.command(node, &["CLUSTER", "INFO"]).await;
            info.is_ok_and(|info| info.to_string().contains(line))
        }
    };
    let node = cluster.processes().get(1).ok_or("no second node")?;
    node.kill();
    until("the others miss it", || says(0, "cluster_state:fail")).await?;
    node.restart().await?;
    for number in 0..3 {
        until("the cluster is whole", || says(number, "cluster_state:ok")).await?;
    }
    Ok(())
}

/// A server that ends without being told to is no obstacle to anything that follows.
async fn died_by_itself() -> Result {
    let server = servers::redis(Servers::Local).await?;
    let process = server.process().ok_or("no process")?;
    let before = pid(process)?;
    // It answers with the end of the connection.
    let _ = server.command(&["SHUTDOWN", "NOSAVE"]).await;
    until("it has ended", || async { state(before).is_none() }).await?;
    process.restart().await?;
    server.ping().await?;
    let _ = server.command(&["SHUTDOWN", "NOSAVE"]).await;
    let folder = process.folder().to_path_buf();
    drop(server);
    assert!(!folder.exists());
    Ok(())
}
