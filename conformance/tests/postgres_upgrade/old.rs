//! Schemas as earlier releases left them, and what is in one now.

use std::sync::Arc;

use a2_conformance::servers::{self, PostgresServer, Servers, Shared, fresh_name};
use a2_store_postgres::tokio_postgres::{Client, NoTls};
use a2_store_postgres::*;

static SERVER: Shared<PostgresServer> = Shared::new();

/// What other tools apply.
pub(crate) const SCHEMA: &str = include_str!("../../../sql/postgres/schema.sql");

/// The session that the data of 0.21 and 0.22 is about.
pub(crate) const SESSION: &str = "s: 'x' {y} %";

const HANDLERS: &str = include_str!("old/handlers_tables.sql");
const HANDLERS_ROWS: &str = include_str!("old/handlers_rows.sql");
const HANDLERS_0_20: &str = include_str!("old/handlers_0_20.sql");
pub(crate) const HANDLERS_UNFINISHED: &str = include_str!("old/handlers_unfinished.sql");
const CURSORS: &str = include_str!("old/cursors_tables.sql");
const CURSORS_ROWS: &str = include_str!("old/cursors_rows.sql");
const IDS_0_21: &str = include_str!("old/ids_0_21.sql");
const IDS_0_22: &str = include_str!("old/ids_0_22.sql");

/// A release; where two of one layout are not known to differ, they differ in the types of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    V0_17,
    V0_20,
    V0_21,
    V0_22,
}

pub(crate) const RELEASES: [Release; 4] =
    [Release::V0_17, Release::V0_20, Release::V0_21, Release::V0_22];

impl Release {
    /// What makes its tables, with rows in them.
    fn script(self) -> String {
        let text = match self {
            Self::V0_17 => [HANDLERS, HANDLERS_ROWS].concat(),
            Self::V0_20 => [HANDLERS, HANDLERS_ROWS, HANDLERS_0_20].concat(),
            Self::V0_21 => [CURSORS, CURSORS_ROWS, IDS_0_21].concat(),
            Self::V0_22 => [CURSORS, CURSORS_ROWS, IDS_0_22].concat(),
        };
        let payload = if self == Self::V0_17 { "jsonb" } else { "json" };
        let names = if self == Self::V0_21 { "jsonb" } else { "text[]" };
        let list = |items: &[&str]| {
            let items: Vec<_> = items.iter().map(|item| format!("{item:?}")).collect();
            match self {
                Self::V0_21 => format!("'[{}]'", items.join(",")),
                _ => format!("'{{{}}}'", items.join(",")),
            }
        };
        text.replace("PAYLOAD", payload)
            .replace("NAMES", names)
            .replace("RETURNED_1_2", &list(&["r1", "r2"]))
            .replace("RETURNED_3", &list(&["r3"]))
            .replace("RETURNED_10", &list(&["e10"]))
            .replace("RETURNED_NONE", &list(&[]))
            .replace("TYPES", &list(&["b \"q\""]))
    }
}

pub(crate) async fn url() -> String {
    let server = SERVER.get(servers::postgres(Servers::Auto)).await.unwrap();
    server.url().to_owned()
}

/// A schema, and a connection of the test's own for which it is the first.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) client: Client,
}

impl Schema {
    /// With nothing in it.
    pub(crate) async fn empty() -> Self {
        let name = fresh_name();
        let schema = Self { client: connect(&name).await, name };
        schema.run(&format!("create schema {}", schema.name)).await;
        schema
    }

    /// As this release left it.
    pub(crate) async fn of(release: Release) -> Self {
        let schema = Self::empty().await;
        schema.run(&release.script()).await;
        schema
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    pub(crate) async fn builder(&self) -> PostgresBuilder {
        PostgresStore::builder(url().await).schema(&self.name).max_connections(2)
    }

    pub(crate) async fn store(&self) -> PostgresStore {
        self.builder().await.connect().await.unwrap()
    }

    /// A store whose clock stands.
    pub(crate) async fn store_at(&self, millis: i64) -> (PostgresStore, ManualClock) {
        let clock = ManualClock::at(Timestamp::from_millis(millis));
        let builder = self.builder().await.clock(Arc::new(clock.clone()));
        (builder.connect().await.unwrap(), clock)
    }

    /// Rows of one text column.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        self.client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// What the schema's tables, indexes, functions and types are.
    pub(crate) async fn catalog(&self) -> Vec<String> {
        let texts = self.texts(include_str!("old/catalog.sql")).await;
        texts.iter().map(|text| text.replace(&self.name, "SCHEMA")).collect()
    }

    /// Every row of every table.
    pub(crate) async fn rows(&self) -> Vec<String> {
        let tables = "select relname::text from pg_class
            where relnamespace = current_schema()::regnamespace and relkind = 'r' order by 1";
        let mut rows = Vec::new();
        for table in self.texts(tables).await {
            let found = self.texts(&format!("select t::text from {table} t order by 1")).await;
            rows.extend(found.into_iter().map(|row| format!("{table} {row}")));
        }
        rows
    }
}

/// A connection for which this schema is the first.
pub(crate) async fn connect(schema: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(&url().await, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("set search_path to {schema}")).await.unwrap();
    client
}
