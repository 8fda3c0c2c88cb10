//! The Postgres store: one server for all cases, each of which has a handle of its own. Cases that may
//! share data share a schema, the others have one each.

use std::sync::Arc;
use std::time::Duration;

use a2_core::{Clock, Index, SessionId, StoreLimits};
use a2_store_postgres::{PostgresStore, Statements};
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use super::postgres_database::{self, Database};
use crate::servers::{self, PgBouncer, PgBouncerOptions, PostgresServer, Servers, fresh_name};
use crate::{BoxError, Factory, Isolation, Setup, Subject, async_trait};

/// Connections of one handle.
const CONNECTIONS: usize = 4;

/// Opens Postgres stores in schemas of one server.
pub struct Postgres {
    servers: Servers,
    way: Way,
    server: OnceCell<Arc<Server>>,
    shared: OnceCell<Arc<Schema>>,
    /// Stores on one schema have one clock: those with the server's share a schema of their own.
    shared_live: OnceCell<Arc<Schema>>,
}

/// How the stores come to their schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As who made them, in the database that there is.
    Plain,
    /// Through a pooler.
    Pooled,
    /// As a role that owns nothing, in a database of other settings.
    Odd,
}

/// A server, and perhaps what stands before it. The order is that of their ends.
struct Server {
    bouncer: Option<PgBouncer>,
    database: Database,
    _postgres: PostgresServer,
}

/// A schema with a store's tables.
struct Schema {
    server: Arc<Server>,
    name: String,
}

impl Postgres {
    /// On a server from there, which the first case starts or finds.
    #[must_use]
    pub fn new(servers: Servers) -> Self {
        Self::by(Way::Plain, servers)
    }

    fn by(way: Way, servers: Servers) -> Self {
        Self {
            servers,
            way,
            server: OnceCell::new(),
            shared: OnceCell::new(),
            shared_live: OnceCell::new(),
        }
    }

    /// The same through a PgBouncer in transaction mode, which has two connections to the server for
    /// each user and database; what notifies listens at the server itself.
    #[must_use]
    pub fn through_pgbouncer(servers: Servers) -> Self {
        Self::by(Way::Pooled, servers)
    }

    /// The same where everything is set otherwise that must not matter: as a role that owns nothing, in
    /// a database with the collation of a natural language, in the time zone furthest from UTC. Two
    /// rights on the server it takes: to make databases and roles.
    #[must_use]
    pub fn oddly_set(servers: Servers) -> Self {
        Self::by(Way::Odd, servers)
    }

    async fn start(&self) -> Result<Arc<Server>, BoxError> {
        let postgres = servers::postgres(self.servers).await?;
        let options = PgBouncerOptions::new().setting("default_pool_size", 2);
        let bouncer = match self.way {
            Way::Pooled => Some(options.setting("max_client_conn", 1_000).start(&postgres).await?),
            Way::Plain | Way::Odd => None,
        };
        let database = match self.way {
            Way::Odd => Database::odd(postgres.url()).await?,
            Way::Plain | Way::Pooled => Database::usual(postgres.url()),
        };
        Ok(Arc::new(Server { bouncer, database, _postgres: postgres }))
    }

    async fn schema(&self) -> Result<Arc<Schema>, BoxError> {
        let server = Arc::clone(self.server.get_or_try_init(|| self.start()).await?);
        let schema = Schema { server, name: fresh_name() };
        let owner =
            connect(&schema, &schema.server.database.owner, None, StoreLimits::ABSOLUTE).await?;
        owner.migrate().await?;
        owner.close().await;
        schema.server.database.grant(&schema.name).await?;
        Ok(Arc::new(schema))
    }
}

#[async_trait]
impl Factory for Postgres {
    fn name(&self) -> &str {
        match self.way {
            Way::Plain => "postgres",
            Way::Pooled => "postgres-pgbouncer",
            Way::Odd => "postgres-odd",
        }
    }

    async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
        let schema = match setup.isolation() {
            Isolation::Shared => {
                let live = setup.clock().is_none();
                let shared = if live { &self.shared_live } else { &self.shared };
                Arc::clone(shared.get_or_try_init(|| self.schema()).await?)
            }
            Isolation::Own => self.schema().await?,
        };
        handle(schema, setup.clock(), StoreLimits::ABSOLUTE).await
    }
}

async fn connect(
    schema: &Schema,
    direct: &str,
    clock: Option<Arc<dyn Clock>>,
    limits: StoreLimits,
) -> Result<PostgresStore, BoxError> {
    let builder = match &schema.server.bouncer {
        None => PostgresStore::builder(direct),
        Some(bouncer) => {
            PostgresStore::builder(bouncer.url()).statements(Statements::Unnamed).listen_at(direct)
        }
    };
    let mut builder = builder
        .schema(&schema.name)
        .max_connections(CONNECTIONS)
        .limits(limits)
        .operation_timeout(Duration::from_secs(30));
    if let Some(clock) = clock {
        builder = builder.clock(clock);
    }
    Ok(builder.connect().await?)
}

/// A handle on the schema, with this clock or the server's, and these limits.
fn handle(
    schema: Arc<Schema>,
    clock: Option<Arc<dyn Clock>>,
    limits: StoreLimits,
) -> BoxFuture<'static, Result<Subject, BoxError>> {
    Box::pin(async move {
        let direct = schema.server.database.url();
        let store = connect(&schema, direct, clock.clone(), limits).await?;
        let (closed, guarded) = (store.clone(), Closes(store.clone()));
        let (damaged, limited) = (Arc::clone(&schema), (Arc::clone(&schema), clock.clone()));
        let subject = Subject::full(store)
            .another(move || handle(Arc::clone(&schema), clock.clone(), limits))
            .limited(move |limits| handle(Arc::clone(&limited.0), limited.1.clone(), limits))
            .closing(move || {
                let store = closed.clone();
                async move {
                    store.close().await;
                    Ok(())
                }
            })
            .losing_events(move |session, index| {
                let schema = Arc::clone(&damaged);
                async move { lose_event(&schema, &session, index).await }
            });
        Ok(subject.guard(guarded))
    })
}

/// Gives the handle's connections back when its case is over: a server has not very many.
struct Closes(PostgresStore);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.pool().close();
    }
}

/// Deletes an event's row behind the store's back.
async fn lose_event(schema: &Schema, session: &SessionId, index: Index) -> Result<(), BoxError> {
    let client = postgres_database::connect(&schema.server.database.owner).await?;
    let table = format!("{}.a2_events", schema.name);
    let sql = format!("delete from {table} where session_id = $1 and idx = $2");
    let rows = client.execute(&sql, &[&session.as_str(), &i64::try_from(index.get())?]).await?;
    if rows == 1 { Ok(()) } else { Err(format!("{rows} rows were deleted").into()) }
}
