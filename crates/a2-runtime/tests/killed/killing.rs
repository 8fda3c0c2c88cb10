//! Runs an example, kills it, runs it again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use a2_store_sqlite::{Event, Index, SqliteStore, StoreExt};
use futures_util::TryStreamExt;

const AT_ONCE: usize = 4;

/// Of every session: its events' ids, and their types and payloads.
pub(crate) type Logs = BTreeMap<String, BTreeMap<String, (String, String)>>;

/// An example, whose first argument is a database.
pub(crate) struct Example(pub(crate) &'static str);

impl Example {
    /// Kills it so many times, and compares what it ends with with what a run ends with that was left
    /// alone; answers the latter. `A2_SEED` repeats the kills of a run that failed.
    pub(crate) fn ends_the_same(&self, rounds: usize) -> (String, Logs) {
        let folder = tempfile::tempdir().unwrap();
        let (database, started) = (folder.path().join("expected.db"), Instant::now());
        let report = self.run_to_the_end(&database);
        let length = started.elapsed();
        let logs = read_logs(&database);

        let seed = seed();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let round = next.fetch_add(1, Ordering::Relaxed);
                        if round >= rounds {
                            break;
                        }
                        let database = folder.path().join(format!("round-{round}.db"));
                        let first = (round as f64, rounds as f64);
                        let mut random = Random::of(seed, round);
                        let kills = self.killed_run(&database, length, first, &mut random);
                        let place =
                            format!("A2_SEED={seed}, round {round}, killed after {kills:?}");
                        assert_eq!(self.run_to_the_end(&database), report, "{place}");
                        assert_eq!(read_logs(&database), logs, "{place}");
                    }
                });
            }
        });
        (report, logs)
    }

    /// Starts the program and kills it, one to three times. The first moments of all rounds together are
    /// spread over the whole run's length.
    fn killed_run(
        &self,
        database: &Path,
        length: Duration,
        (round, rounds): (f64, f64),
        random: &mut Random,
    ) -> Vec<Duration> {
        let mut first = length.mul_f64((round + random.fraction()) / rounds);
        while !self.kill_after(database, first) {
            // It was faster than that: again from the beginning, and sooner.
            remove(database);
            first /= 2;
        }
        let mut kills = vec![first];
        for _ in 0..random.below(3) {
            kills.push(length.mul_f64(random.fraction()));
            self.kill_after(database, kills[kills.len() - 1]);
        }
        kills
    }

    /// Whether the program was still running when it was killed.
    fn kill_after(&self, database: &Path, delay: Duration) -> bool {
        let mut program = self.start(database);
        std::thread::sleep(delay);
        let running = program.try_wait().unwrap().is_none();
        program.kill().unwrap();
        program.wait().unwrap();
        running
    }

    /// The program's report.
    pub(crate) fn run_to_the_end(&self, database: &Path) -> String {
        let mut program = self.start(database);
        let deadline = Instant::now() + Duration::from_secs(120);
        let said = |what| fs::read_to_string(database.with_extension(what)).unwrap_or_default();
        let status = loop {
            if let Some(status) = program.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                program.kill().unwrap();
                panic!("the program does not end\n{}", said("stderr"));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "{status}\n{}", said("stderr"));
        said("stdout")
    }

    fn start(&self, database: &Path) -> Child {
        // Into files: a pipe that nobody reads could fill up and hold the program back.
        let into = |what| File::create(database.with_extension(what)).unwrap();
        let mut command = Command::new(self.program());
        command.arg(database).arg("--json").stdout(into("stdout")).stderr(into("stderr"));
        command.spawn().unwrap()
    }

    /// `cargo test` and `cargo nextest` build examples beside the folder of the tests.
    fn program(&self) -> PathBuf {
        let tests = std::env::current_exe().unwrap();
        let target = tests.parent().and_then(Path::parent).unwrap();
        let program =
            target.join("examples").join(format!("{}{}", self.0, std::env::consts::EXE_SUFFIX));
        assert!(
            program.exists(),
            "{} is missing: run `cargo build -p a2-runtime --examples` first",
            program.display()
        );
        program
    }
}

fn remove(database: &Path) {
    for ending in ["db", "db-wal", "db-shm", "sales.db", "sales.db-wal", "sales.db-shm"] {
        let _ = fs::remove_file(database.with_extension(ending));
    }
}

/// Reads every log and checks that it is dense.
pub(crate) fn read_logs(database: &Path) -> Logs {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(database).await.unwrap();
        let sessions: Vec<_> = store.all_sessions().try_collect().await.unwrap();
        let mut logs = Logs::new();
        for session in sessions.into_iter().map(|info| info.session) {
            let events: Vec<Event> =
                store.read_all(&session, Index::ZERO).try_collect().await.unwrap();
            logs.insert(session.to_string(), read_log(events, session.as_str()));
        }
        logs
    })
}

fn read_log(events: Vec<Event>, session: &str) -> BTreeMap<String, (String, String)> {
    let indexes: Vec<u64> = events.iter().map(|event| event.index.get()).collect();
    assert_eq!(indexes, (1..=events.len() as u64).collect::<Vec<_>>(), "{session}");
    let count = events.len();
    let entry = |e: Event| (e.id.to_string(), (e.event_type.to_string(), e.payload.to_string()));
    let log: BTreeMap<_, _> = events.into_iter().map(entry).collect();
    assert_eq!(log.len(), count, "{session} has an id twice");
    log
}

fn seed() -> u64 {
    let given = std::env::var("A2_SEED").ok().map(|seed| seed.parse().unwrap());
    given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64
    })
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn of(seed: u64, round: usize) -> Self {
        Self(seed.wrapping_add((round as u64) << 32))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
