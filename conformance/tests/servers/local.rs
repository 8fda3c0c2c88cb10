//! Each kind from the binaries of this machine: it answers real queries, and leaves nothing.

use a2_conformance::servers::{
    self, AppendOnly, PgBouncerOptions, PostgresOptions, RedisOptions, Reply, Servers, Shared,
    fresh_name,
};
use futures_util::future::join;
use libtest_mimic::Trial;

use crate::util::{Result, Traces, all_gone, ask, connect, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("local::postgres", postgres),
        test("local::postgres_settings", postgres_settings),
        test("local::redis", redis),
        test("local::redis_settings", redis_settings),
        test("local::redis_cluster", redis_cluster),
        test("local::pgbouncer", pgbouncer),
        test("local::pgbouncer_settings", pgbouncer_settings),
        test("local::shared", shared),
        test("local::side_by_side", side_by_side),
    ]
}

async fn postgres() -> Result {
    let server = servers::postgres(Servers::Local).await?;
    let traces = Traces::of(server.process().ok_or("no process")?)?;
    let port = server.process().ok_or("no process")?.port();
    assert_eq!(server.url(), format!("postgres://postgres@127.0.0.1:{port}/postgres"));
    let description = server.describe();
    let place = format!(" at 127.0.0.1:{port}, /");
    assert!(description.starts_with("Postgres 1") && description.contains(&place), "{description}");

    let client = connect(server.url()).await?;
    assert_eq!(client.query_one("SELECT 1", &[]).await?.get::<_, i32>(0), 1);
    assert_eq!(ask(&client, "SHOW server_encoding").await?, "UTF8");
    let schema = fresh_name();
    client.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
    server.ping().await?;
    drop(server);
    all_gone(&[traces])?;
    assert!(client.query_one("SELECT 1", &[]).await.is_err());
    Ok(())
}

async fn postgres_settings() -> Result {
    let options = PostgresOptions::new().setting("max_connections", 17).setting("fsync", "off");
    let server = options.start(Servers::Local).await?;
    let client = connect(server.url()).await?;
    assert_eq!(ask(&client, "SHOW max_connections").await?, "17");
    assert_eq!(ask(&client, "SHOW fsync").await?, "off");

    let wrong = PostgresOptions::new().setting("max_connections", "many");
    let error = wrong.start(Servers::Local).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 1") && error.contains("max_connections"), "{error}");
    Ok(())
}

async fn redis() -> Result {
    let server = servers::redis(Servers::Local).await?;
    let process = server.process().ok_or("no process")?;
    let traces = Traces::of(process)?;
    let port = process.port();
    assert_eq!(server.url(), format!("redis://127.0.0.1:{port}"));
    let description = server.describe();
    assert!(description.contains(&format!(" at 127.0.0.1:{port}, /")), "{description}");

    assert_eq!(server.command(&["PING"]).await?, Reply::Status("PONG".to_owned()));
    assert_eq!(server.command(&["SET", "k", "a\r\nb"]).await?, Reply::Status("OK".to_owned()));
    assert_eq!(server.command(&["GET", "k"]).await?, Reply::Text("a\r\nb".to_owned()));
    assert_eq!(server.command(&["GET", "other"]).await?, Reply::Nil);
    drop(server);
    all_gone(&[traces])
}

async fn redis_settings() -> Result {
    let options = RedisOptions::new().append_only(AppendOnly::Always).setting("maxmemory", "64mb");
    let server = options.start(Servers::Local).await?;
    for (name, value) in
        [("appendonly", "yes"), ("appendfsync", "always"), ("save", ""), ("maxmemory", "67108864")]
    {
        let set = [name, value].map(|text| Reply::Text(text.to_owned()));
        let found = server.command(&["CONFIG", "GET", name]).await?;
        assert_eq!(found, Reply::Array(set.to_vec()));
    }
    let wrong = RedisOptions::new().setting("maxmemory", "much").start(Servers::Local).await;
    let error = wrong.unwrap_err().to_string();
    assert!(error.contains("exit status: 1") && error.contains("maxmemory"), "{error}");
    Ok(())
}

async fn redis_cluster() -> Result {
    let cluster = servers::redis_cluster(Servers::Local).await?;
    let traces = cluster.processes().iter().map(Traces::of).collect::<Result<Vec<_>>>()?;
    let ports: Vec<_> = cluster.processes().iter().map(|process| process.port()).collect();
    let [one, two, three] = ports[..] else { return Err("not three nodes".into()) };
    let expected =
        format!("redis-cluster://127.0.0.1:{one}?node=127.0.0.1:{two}&node=127.0.0.1:{three}");
    assert_eq!(cluster.url(), expected);

    // Slots 0, 5461 and 10923 are the first of each node; a key of another's is refused by name.
    for node in 0..3 {
        let info = cluster.command(node, &["CLUSTER", "INFO"]).await?.to_string();
        assert!(info.contains("cluster_state:ok"), "{info}");
        assert!(info.contains("cluster_slots_assigned:16384"), "{info}");
    }
    // CRC16 of "123456789" is 0x31C3: slot 12739, on the third node.
    let set = ["SET", "123456789", "v"];
    assert_eq!(cluster.command(2, &set).await?, Reply::Status("OK".to_owned()));
    let moved = Reply::Error(format!("MOVED 12739 127.0.0.1:{three}"));
    assert_eq!(cluster.command(0, &set).await?, moved);
    assert_eq!(cluster.command(1, &set).await?, moved);
    assert!(cluster.command(3, &set).await.is_err());
    drop(cluster);
    all_gone(&traces)
}

async fn pgbouncer() -> Result {
    let postgres = servers::postgres(Servers::Local).await?;
    let bouncer = servers::pgbouncer(&postgres).await?;
    let traces = Traces::of(bouncer.process())?;
    let port = bouncer.process().port();
    assert_eq!(bouncer.url(), format!("postgres://postgres@127.0.0.1:{port}/postgres"));
    assert!(bouncer.describe().starts_with(&format!("PgBouncer at 127.0.0.1:{port} before ")));

    let client = connect(bouncer.url()).await?;
    assert_eq!(ask(&client, "SELECT 1").await?, "1");
    // The server sees PgBouncer's connection, which is not ours: it outlives it.
    let backend = ask(&client, "SELECT pg_backend_pid()").await?;
    drop(client);
    let client = connect(bouncer.url()).await?;
    assert_eq!(ask(&client, "SELECT pg_backend_pid()").await?, backend);
    bouncer.ping().await?;
    drop(bouncer);
    all_gone(&[traces])?;
    Ok(postgres.ping().await?)
}

async fn pgbouncer_settings() -> Result {
    let postgres = servers::postgres(Servers::Local).await?;
    let options = PgBouncerOptions::new().setting("pool_mode", "session");
    let bouncer = options.start(&postgres).await?;
    let client = connect(bouncer.url()).await?;
    // A statement prepared in one transaction and used in the next works in session mode alone.
    assert_eq!(client.query_one("SELECT 1", &[]).await?.get::<_, i32>(0), 1);
    Ok(())
}

async fn shared() -> Result {
    let shared = Shared::new();
    let start = || servers::redis(Servers::Local);
    let (one, two) = join(shared.get(start()), shared.get(start())).await;
    let (one, two) = (one?, two?);
    assert_eq!(one.url(), two.url());
    let traces = Traces::of(one.process().ok_or("no process")?)?;
    drop((one, two));
    assert!(!traces.are_gone());
    drop(shared);
    all_gone(&[traces])
}

async fn side_by_side() -> Result {
    let start = || servers::redis(Servers::Local);
    let (one, two) = join(start(), start()).await;
    let (one, two) = (one?, two?);
    assert_ne!(one.url(), two.url());
    drop(one);
    Ok(two.ping().await?)
}
