//! Which way to a server is taken, and what is said where there is none.

use a2_conformance::servers::{self, Servers};
use libtest_mimic::Trial;

use crate::child::describing;
use crate::util::{Result, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("urls::server_of_somebody_else", server_of_somebody_else),
        test("urls::cluster_of_somebody_else", cluster_of_somebody_else),
        test("urls::none_is_set", none_is_set),
        test("urls::wrong", wrong),
        test("urls::binary_that_is_none", binary_that_is_none),
        test("urls::no_engine", no_engine),
    ]
}

async fn described(
    kind: &'static str,
    servers: &'static str,
    set: Vec<(&'static str, String)>,
) -> Result<String> {
    let described = tokio::task::spawn_blocking(move || {
        let set: Vec<_> = set.iter().map(|(name, value)| (*name, value.as_str())).collect();
        describing(kind, servers, &set)
    });
    described.await?
}

async fn server_of_somebody_else() -> Result {
    let postgres = servers::postgres(Servers::Local).await?;
    let redis = servers::redis(Servers::Local).await?;
    redis.command(&["CONFIG", "SET", "requirepass", "p@ss"]).await?;
    let port = redis.process().ok_or("no process")?.port();
    let urls = vec![
        ("A2_POSTGRES_URL", postgres.url().to_owned()),
        ("A2_REDIS_URL", format!("redis://default:p%40ss@127.0.0.1:{port}/0")),
    ];
    for policy in ["auto", "url"] {
        let found = described("postgres", policy, urls.clone()).await?;
        let place = format!("127.0.0.1:{}", postgres.process().ok_or("no process")?.port());
        assert!(found.starts_with("found: Postgres 1"), "{found}");
        assert!(found.ends_with(&format!(" at {place}, from A2_POSTGRES_URL")), "{found}");
        let found = described("redis", policy, urls.clone()).await?;
        let end = format!(" at 127.0.0.1:{port}, from A2_REDIS_URL");
        assert!(found.starts_with("found: ") && found.ends_with(&end), "{found}");
    }
    // Whoever finds a server does not end it.
    postgres.ping().await?;

    let wrong = vec![("A2_REDIS_URL", format!("redis://default:no@127.0.0.1:{port}"))];
    let refused = described("redis", "url", wrong).await?;
    let begin = format!("failed: Redis: A2_REDIS_URL: 127.0.0.1:{port}: WRONGPASS");
    assert!(refused.starts_with(&begin), "{refused}");
    Ok(())
}

async fn cluster_of_somebody_else() -> Result {
    let cluster = servers::redis_cluster(Servers::Local).await?;
    let url = cluster.url().to_owned();
    let found = described("redis-cluster", "url", vec![("A2_REDIS_CLUSTER_URL", url)]).await?;
    assert!(found.starts_with("found: "), "{found}");
    assert!(found.ends_with(", from A2_REDIS_CLUSTER_URL"), "{found}");

    // A node of a cluster is no single server, nor the other way round.
    let port = cluster.processes().first().ok_or("no process")?.port();
    let node = vec![("A2_REDIS_URL", format!("redis://127.0.0.1:{port}"))];
    let expected = format!(
        "failed: Redis: A2_REDIS_URL: 127.0.0.1:{port}: its redis_mode is `cluster`, not \
         `standalone`"
    );
    assert_eq!(described("redis", "auto", node).await?, expected);
    Ok(())
}

async fn none_is_set() -> Result {
    let how = "Set A2_POSTGRES_URL to postgres://USER@HOST:PORT/DATABASE of a server that tests \
               may write to.";
    let said = described("postgres", "url", Vec::new()).await?;
    assert_eq!(said, format!("missing: no Postgres server: A2_POSTGRES_URL is not set. {how}"));
    let how = "Set A2_REDIS_URL to redis://HOST:PORT of a server that tests may write to.";
    let said = described("redis", "url", Vec::new()).await?;
    assert_eq!(said, format!("missing: no Redis server: A2_REDIS_URL is not set. {how}"));
    let said = described("redis-cluster", "url", Vec::new()).await?;
    let begin = "missing: no Redis Cluster server: A2_REDIS_CLUSTER_URL is not set. Set A2";
    assert!(said.starts_with(begin), "{said}");
    Ok(())
}

async fn wrong() -> Result {
    let scheme = vec![("A2_POSTGRES_URL", "mysql://localhost".to_owned())];
    assert_eq!(
        described("postgres", "auto", scheme).await?,
        "failed: Postgres: A2_POSTGRES_URL: it must begin with postgres:// or postgresql://"
    );
    // Nobody listens at port 1; what the variable names is not replaced by another server.
    let nobody = vec![("A2_REDIS_URL", "redis://:secret@127.0.0.1:1".to_owned())];
    let said = described("redis", "auto", nobody).await?;
    assert!(said.starts_with("failed: Redis: A2_REDIS_URL: 127.0.0.1:1: "), "{said}");
    assert!(!said.contains("secret"), "{said}");
    Ok(())
}

async fn binary_that_is_none() -> Result {
    let empty = tempfile::tempdir()?;
    let folder = empty.path().display().to_string();
    assert_eq!(
        described("postgres", "local", vec![("A2_POSTGRES_BIN", folder.clone())]).await?,
        "failed: Postgres: A2_POSTGRES_BIN must be a folder that has `initdb` and `postgres`"
    );
    assert_eq!(
        described("redis", "local", vec![("A2_REDIS_BIN", folder)]).await?,
        "failed: Redis: A2_REDIS_BIN must be `redis-server` or `valkey-server`, or the folder that \
         has it"
    );
    Ok(())
}

/// Docker alone fails with a sentence; otherwise the next way is taken.
async fn no_engine() -> Result {
    let nowhere = || vec![("DOCKER_HOST", "unix:///nonexistent/docker.sock".to_owned())];
    let said = described("redis", "docker", nowhere()).await?;
    let begin = if cfg!(feature = "docker") {
        "missing: no Redis server: Docker: no engine answers ("
    } else {
        "missing: no Redis server: Docker: this program was built without it (feature `docker` of \
         a2-conformance). "
    };
    assert!(said.starts_with(begin), "{said}");
    let end = ". Start a Docker engine; A2_REDIS_IMAGE names another image.";
    assert!(said.ends_with(end), "{said}");
    let found = described("redis", "auto", nowhere()).await?;
    assert!(found.starts_with("found: ") && found.contains("/"), "{found}");
    Ok(())
}
