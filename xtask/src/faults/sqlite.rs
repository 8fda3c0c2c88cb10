//! A SQLite file on which several processes work, which are killed and stopped, and whose disk is full.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use a2_conformance::history::{Random, Recorder, Workload};
use a2_core::async_trait;
use a2_store_sqlite::SqliteStore;
use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::theatre::{Round, Store, Theatre, pause};

const KILL: &str = "a process is killed (SIGKILL) and started again";
const KILL_ALL: &str = "all other processes are killed at once";
const STOP: &str = "a process is stopped (SIGSTOP) and goes on";
const FULL: &str = "the disk is full for a while";

/// How many processes work beside this one.
const PROCESSES: usize = 3;

/// The file, and who works on it.
pub(super) struct Sqlite {
    folder: TempDir,
    /// A small disk of its own, if one could be had; else why not.
    disk: Result<PathBuf, String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u32,
    /// How many rounds there were: each has a file of its own, for the disk is small.
    files: u32,
    round: Option<Round>,
    recorder: Option<Recorder>,
    processes: Vec<(u32, Child)>,
}

impl Sqlite {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("a2-faults-").tempdir()?;
        let disk = mount(&folder.path().join("disk"));
        Ok(Self { folder, disk, state: Mutex::new(State { next: 1, ..State::default() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> PathBuf {
        let folder = self.disk.as_deref().unwrap_or(self.folder.path());
        folder.join(format!("a2-{}.db", self.state().files))
    }

    fn journal_file(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn start_one(&self) -> Result<()> {
        let file = self.file();
        let mut state = self.state();
        let round = state.round.clone().context("no round")?;
        let process = state.next;
        state.next += 1;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("faults-worker").arg("--file").arg(file);
        command.arg("--journal").arg(self.journal_file());
        command.args(["--process", &process.to_string(), "--prefix", &round.prefix]);
        command.args(["--sessions", &round.sessions.to_string()]);
        command.args(["--seed", &round.seed.to_string()]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        state.processes.push((process, child));
        Ok(())
    }

    /// Kills so many, and notes it.
    fn kill(&self, count: usize) -> Result<usize> {
        let mut state = self.state();
        let count = count.min(state.processes.len());
        let recorder = state.recorder.clone().context("no recorder")?;
        for (process, mut child) in state.processes.drain(..count) {
            child.kill()?;
            child.wait()?;
            recorder.killed(process);
        }
        Ok(count)
    }
}

#[async_trait]
impl Theatre for Sqlite {
    fn describe(&self) -> String {
        let disk = match &self.disk {
            Ok(_) => "on a small disk of its own in memory (tmpfs)",
            Err(_) => "in the temporary folder",
        };
        format!(
            "SQLite, WAL, synchronous FULL, {disk}; {PROCESSES} processes of {} workers and one of \
             eight on one file.",
            super::worker::WORKERS
        )
    }

    fn harms(&self) -> Vec<&'static str> {
        let mut harms = vec![KILL, KILL_ALL];
        if cfg!(unix) {
            harms.push(STOP);
        }
        if self.disk.is_ok() {
            harms.push(FULL);
        }
        harms
    }

    fn lacks(&self) -> Vec<String> {
        let disk = |why: &String| format!("{FULL}: no disk can be mounted here: {why}");
        let stop = (!cfg!(unix)).then(|| format!("{STOP}: there are no signals here"));
        self.disk.as_ref().err().map(disk).into_iter().chain(stop).collect()
    }

    async fn open(&self) -> Result<Vec<Store>> {
        for part in ["", "-wal", "-shm"] {
            let mut old = self.file().into_os_string();
            old.push(part);
            // Of the round before, if there was one.
            let _ = std::fs::remove_file(old);
        }
        self.state().files += 1;
        let mut stores: Vec<Store> = Vec::new();
        for _ in 0..2 {
            let builder = SqliteStore::builder(self.file());
            stores.push(Arc::new(builder.operation_timeout(Duration::from_secs(3)).open().await?));
        }
        Ok(stores)
    }

    async fn harm(&self, what: &str, random: &mut Random) -> Result<()> {
        match what {
            KILL | KILL_ALL => {
                let count = if what == KILL { 1 } else { PROCESSES };
                let killed = self.kill(count)?;
                pause(random, 0, 200).await;
                for _ in 0..killed {
                    self.start_one()?;
                }
            }
            STOP => {
                let pid = self.state().processes.first().map(|(_, child)| child.id());
                let pid = pid.context("no process")?;
                signal("STOP", pid)?;
                // It may hold the file's lock: the others wait for it, or answer that they did.
                pause(random, 500, 4_000).await;
                signal("CONT", pid)?;
            }
            FULL => {
                let folder = self.disk.clone().map_err(anyhow::Error::msg)?;
                let filled = fill(&folder)?;
                pause(random, 300, 1_500).await;
                std::fs::remove_file(filled)?;
            }
            other => bail!("there is no {other}"),
        }
        Ok(())
    }

    fn recorder(&self) -> Result<Recorder> {
        let journal = self.journal_file();
        if journal.exists() {
            std::fs::remove_file(&journal)?;
        }
        let recorder = Recorder::journal(&journal, 0)?;
        self.state().recorder = Some(recorder.clone());
        Ok(recorder)
    }

    fn journal(&self) -> Option<PathBuf> {
        Some(self.journal_file())
    }

    async fn send_in(&self, round: &Round, _: &Workload) -> Result<()> {
        self.state().round = Some(round.clone());
        for _ in 0..PROCESSES {
            self.start_one()?;
        }
        Ok(())
    }

    async fn call_back(&self) -> Result<()> {
        let mut processes = std::mem::take(&mut self.state().processes);
        for (_, child) in &mut processes {
            drop(child.stdin.take());
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        for (process, child) in &mut processes {
            loop {
                match child.try_wait()? {
                    Some(status) if status.success() => break,
                    Some(status) => bail!("process {process} ended with {status}"),
                    None if Instant::now() > deadline => {
                        child.kill()?;
                        bail!("process {process} does not end");
                    }
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
            // What was open in it is closed.
            if let Some(recorder) = &self.state().recorder {
                recorder.killed(*process);
            }
        }
        Ok(())
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        for (_, child) in &mut self.state().processes {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Ok(disk) = &self.disk {
            let _ = Command::new("umount").arg("-l").arg(disk).status();
        }
    }
}

/// A disk of 192 MiB, in memory: full only when it is filled, not by a round and its write-ahead log.
fn mount(folder: &Path) -> Result<PathBuf, String> {
    std::fs::create_dir(folder).map_err(|error| error.to_string())?;
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", "size=192m", "tmpfs"]).arg(folder);
    match command.output() {
        Ok(output) if output.status.success() => Ok(folder.to_owned()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("mount: {error}")),
    }
}

/// Writes a file until no byte more fits.
fn fill(folder: &Path) -> Result<PathBuf> {
    use std::io::Write;

    let path = folder.join("filler");
    let mut file = std::fs::File::create(&path)?;
    for size in [65_536, 512, 1] {
        let piece = vec![0; size];
        loop {
            match file.write(&piece) {
                Ok(n) if n > 0 => {}
                _ => break,
            }
        }
    }
    Ok(path)
}

/// The shell has `kill` built in.
fn signal(name: &str, pid: u32) -> Result<()> {
    let script = format!("kill -s {name} {pid}");
    let status = Command::new("sh").args(["-c", &script]).status()?;
    if !status.success() {
        bail!("{script}: {status}");
    }
    Ok(())
}
