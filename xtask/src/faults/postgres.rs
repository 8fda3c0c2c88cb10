//! A Postgres, reached straight, through a proxy and through a PgBouncer.

use std::sync::Arc;
use std::time::Duration;

use a2_conformance::history::Random;
use a2_conformance::servers::{
    PgBouncer, PgBouncerOptions, PostgresOptions, PostgresServer, Process, Proxy, Servers,
    fresh_name,
};
use a2_core::async_trait;
use a2_store_postgres::{PostgresStore, Statements};
use anyhow::{Context, Result, bail};
use tokio_postgres::{Client, NoTls};

use super::theatre::{Store, Theatre, cut, pause, version};

const KILL: &str = "the server is killed (SIGKILL) and started again";
const STOP: &str = "the server is stopped (SIGSTOP) and goes on";
const ANSWERS: &str = "connections are cut instead of answers";
const REQUESTS: &str = "connections are cut instead of requests";
const HANG_UP: &str = "all connections of a proxy are cut";
const DELAY: &str = "every packet of a proxy is late";
const TERMINATE: &str = "pg_terminate_backend on every connection";
const LOCK: &str = "somebody locks the events, so that every pool runs dry";
const EXHAUST: &str = "somebody takes all of the server's connections";
const BOUNCER: &str = "PgBouncer is killed and started again";

/// How many connections the server takes.
const CONNECTIONS: u32 = 40;
/// Of each of the three handles.
const POOL: usize = 4;

pub(super) struct Postgres {
    bouncer: PgBouncer,
    proxy: Proxy,
    server: PostgresServer,
    schema: String,
}

impl Postgres {
    pub(super) async fn start() -> Result<Self> {
        let options = PostgresOptions::new().setting("max_connections", CONNECTIONS);
        let server = options.start(Servers::Local).await?;
        let proxy = Proxy::before(server.url()).await?;
        // By default it lets its clients wait for 15 s after a login that failed.
        let bouncer = PgBouncerOptions::new().setting("server_login_retry", 1);
        let bouncer = bouncer.setting("default_pool_size", 3);
        let bouncer = bouncer.start(&server).await?;
        let schema = fresh_name();
        let store = PostgresStore::builder(server.url()).schema(&schema).connect().await?;
        store.migrate().await?;
        store.close().await;
        Ok(Self { bouncer, proxy, server, schema })
    }

    fn process(&self) -> Result<&Process> {
        self.server.process().context("the server is not ours")
    }

    async fn client(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(self.server.url(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

#[async_trait]
impl Theatre for Postgres {
    fn describe(&self) -> String {
        format!(
            "{} with {CONNECTIONS} connections, fsync and synchronous_commit on; three handles of \
             {POOL} connections: straight, through a proxy, through PgBouncer in transaction mode \
             (`server_login_retry` 1 s).",
            version(&self.server.describe())
        )
    }

    fn harms(&self) -> Vec<&'static str> {
        vec![KILL, STOP, ANSWERS, REQUESTS, HANG_UP, DELAY, TERMINATE, LOCK, EXHAUST, BOUNCER]
    }

    async fn open(&self) -> Result<Vec<Store>> {
        let direct = PostgresStore::builder(self.server.url());
        let proxied = PostgresStore::builder(self.proxy.url());
        let pooled = PostgresStore::builder(self.bouncer.url());
        let pooled = pooled.statements(Statements::Unnamed).listen_at(self.server.url());
        let mut stores: Vec<Store> = Vec::new();
        for builder in [direct, proxied, pooled] {
            let builder = builder.schema(&self.schema).max_connections(POOL);
            let store = builder.operation_timeout(Duration::from_secs(3)).connect().await?;
            stores.push(Arc::new(store));
        }
        Ok(stores)
    }

    async fn harm(&self, what: &str, random: &mut Random) -> Result<()> {
        match what {
            KILL => {
                self.process()?.kill();
                pause(random, 0, 500).await;
                self.process()?.restart().await?;
            }
            STOP => {
                self.process()?.pause();
                pause(random, 500, 4_500).await;
                self.process()?.resume();
            }
            ANSWERS | REQUESTS => cut(&self.proxy, what == ANSWERS, random).await,
            HANG_UP => {
                for _ in 0..5 {
                    self.proxy.hang_up();
                    pause(random, 1, 100).await;
                }
            }
            DELAY => {
                self.proxy.delay(Duration::from_millis(random.from(20, 300)));
                pause(random, 500, 2_000).await;
                self.proxy.delay(Duration::ZERO);
            }
            TERMINATE => {
                let client = self.client().await?;
                for _ in 0..5 {
                    let all = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                               where pid <> pg_backend_pid() and backend_type = 'client backend'";
                    client.query(all, &[]).await?;
                    pause(random, 1, 200).await;
                }
            }
            LOCK => {
                let client = self.client().await?;
                let lock = format!("begin; lock table {}.a2_events", self.schema);
                client.batch_execute(&lock).await?;
                pause(random, 500, 4_500).await;
                client.batch_execute("rollback").await?;
            }
            EXHAUST => {
                let mut clients = Vec::new();
                while let Ok(client) = self.client().await {
                    clients.push(client);
                }
                // Whoever needs a new connection now gets none.
                self.proxy.hang_up();
                pause(random, 500, 3_500).await;
            }
            BOUNCER => {
                self.bouncer.process().kill();
                pause(random, 0, 500).await;
                self.bouncer.process().restart().await?;
            }
            other => bail!("there is no {other}"),
        }
        Ok(())
    }
}
