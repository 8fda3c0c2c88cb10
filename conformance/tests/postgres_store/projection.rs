//! The `projection` example, killed with SIGKILL in the midst of its work and started again: its table
//! says what the logs say.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use a2_conformance::servers::fresh_name;
use a2_store_postgres::tokio_postgres::Client;

use crate::util::*;

const KILLS: usize = 20;
/// Every run has so many new orders in each of four shops.
const MORE: usize = 60;

/// The program, what it works on, and where it writes to.
struct Program {
    url: String,
    schema: String,
    folder: tempfile::TempDir,
}

impl Program {
    fn start(&self, orders: usize) -> Child {
        // Into files: a pipe that nobody reads could fill up and hold the program back.
        let into = |name| File::create(self.folder.path().join(name)).unwrap();
        let mut command = Command::new(program());
        command.args([&self.url, &orders.to_string()]).env("A2_PROJECTION_SCHEMA", &self.schema);
        command.stdout(into("stdout")).stderr(into("stderr")).spawn().unwrap()
    }

    fn said(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// How many orders the table holds, as far as there is one.
    async fn projected(&self, client: &Client) -> i64 {
        let sum = format!("select coalesce(sum(orders), 0)::bigint from {}.sales", self.schema);
        client.query_one(&sum, &[]).await.map_or(0, |row| row.get(0))
    }

    /// Whether it was killed after it had projected something, and before its end.
    async fn killed_in_the_midst(&self, client: &Client, orders: usize, late: Duration) -> bool {
        let before = self.projected(client).await;
        let mut child = self.start(orders);
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.projected(client).await == before {
            let status = child.try_wait().unwrap();
            assert!(status.is_none_or(|status| status.success()), "{}", self.said("stderr"));
            if status.is_some() {
                break;
            }
            assert!(Instant::now() < deadline, "it projects nothing\n{}", self.said("stderr"));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // At any moment of what it does.
        tokio::time::sleep(late).await;
        let runs = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        runs
    }
}

/// `cargo test` and `cargo nextest` build examples beside the folder of the tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let target = tests.parent().and_then(Path::parent).unwrap();
    let program = target.join("examples/projection");
    assert!(
        program.exists(),
        "{} is missing: run `cargo build -p a2-store-postgres --example projection` first",
        program.display()
    );
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn a_projection_that_is_killed_counts_every_event_once() {
    let client = client().await;
    let folder = tempfile::tempdir().unwrap();
    let program = Program { url: url().await, schema: fresh_name(), folder };
    let (mut orders, mut kills) = (0, 0);
    for round in 0..3 * KILLS as u64 {
        orders += MORE;
        let late = Duration::from_micros(round * 337 % 5_000);
        kills += usize::from(program.killed_in_the_midst(&client, orders, late).await);
        if kills == KILLS {
            break;
        }
    }
    assert_eq!(kills, KILLS, "it was too fast to be killed");

    let status = program.start(orders).wait().unwrap();
    assert!(status.success(), "{status}\n{}", program.said("stderr"));
    let schema = &program.schema;
    // Every seventh order is cancelled, and every one stands in the log once.
    let logs = format!(
        "select session_id, count(*), count(distinct event_id) from {schema}.a2_events
         group by 1 order by 1"
    );
    let events = i64::try_from(orders + orders / 7).unwrap();
    let logs: Vec<(String, i64, i64)> = rows(&client, &logs).await;
    let expected =
        ["Aarhus", "Bergen", "Cork", "Delft"].map(|shop| (shop.to_owned(), events, events));
    assert_eq!(logs, expected);
    let sum = |column: &str| {
        format!("sum(case event_type when 'order.placed' then 1 else -1 end * {column})::bigint")
    };
    let logs = format!(
        "select session_id || '/' || (payload ->> 'item'), {}, {} from {schema}.a2_events
         group by 1 order by 1",
        sum("1"),
        sum("(payload ->> 'cents')::bigint")
    );
    let table = format!("select shop || '/' || item, orders, cents from {schema}.sales order by 1");
    let table = rows(&client, &table).await;
    assert_eq!(table, rows(&client, &logs).await);
    assert_eq!(table.len(), 12, "four shops sell three things");
    // The program says it too.
    let said = program.said("stdout");
    for (name, orders, _) in table {
        let (shop, item) = name.split_once('/').unwrap();
        let is_told = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.starts_with(&[shop, item, &orders.to_string()])
        };
        assert!(said.lines().any(is_told), "{shop} {item} {orders} is not in\n{said}");
    }
}

async fn rows(client: &Client, sql: &str) -> Vec<(String, i64, i64)> {
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}
