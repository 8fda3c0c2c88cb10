//! What the figures were measured on: the machine, the versions, and how fast the disk syncs.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use super::Backend;
use super::measure::Spread;

/// How often the probe syncs; the median is taken.
const SYNCS: usize = 64;

/// Microseconds that appending a page and syncing it takes here and now.
pub(crate) fn fsync_micros(dir: &Path) -> Result<f64> {
    let path = dir.join("fsync-probe");
    let mut file = File::create(&path).with_context(|| path.display().to_string())?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        times.push(micros(start));
    }
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(Spread::of(times).median)
}

/// Microseconds since `start`.
pub(crate) fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

/// The machine and the versions.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: Option<u64>,
    pub(crate) system: String,
    pub(crate) rustc: String,
    pub(crate) sqlite: String,
    pub(crate) a2: String,
    pub(crate) fsync_micros: f64,
}

impl Machine {
    /// This one; what the system does not tell stays unknown.
    pub(crate) fn this(dir: &Path) -> Result<Self> {
        let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
        let memory = field("/proc/meminfo", "MemTotal");
        let kib = memory.and_then(|m| m.split_whitespace().next()?.parse::<u64>().ok());
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let version = Command::new(rustc).arg("--version").output().context("rustc --version")?;
        Ok(Self {
            cpu,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: kib.map(|kib| kib.div_ceil(1024 * 1024)),
            system: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned(),
            rustc: String::from_utf8_lossy(&version.stdout).trim().to_owned(),
            sqlite: rusqlite::version().to_owned(),
            a2: env!("CARGO_PKG_VERSION").to_owned(),
            fsync_micros: fsync_micros(dir)?,
        })
    }

    /// The version of an engine that is linked in, and when a commit is durable.
    pub(crate) fn engine(&self, backend: Backend) -> String {
        if backend == Backend::Sqlite {
            let sqlite = &self.sqlite;
            format!("SQLite {sqlite} (WAL; FULL syncs every commit, NORMAL at checkpoints)")
        } else {
            "nothing is kept on disk".to_owned()
        }
    }
}

/// The value of the first `name: value` line of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

/// Bytes of memory that this process holds, where the system tells.
pub(crate) fn resident_bytes() -> Option<f64> {
    let text = field("/proc/self/status", "VmRSS")?;
    let kib: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}

/// How much of the machine's processor time was used so far, by all and by this process with those that
/// it started, servers among them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTimes {
    all: f64,
    busy: f64,
    own: f64,
}

impl CpuTimes {
    /// Where the system tells.
    pub(crate) fn now() -> Option<Self> {
        let number = |text: &str| text.parse::<f64>().ok();
        let system = std::fs::read_to_string("/proc/stat").ok()?;
        // user nice system idle iowait irq softirq steal, in ticks of all processors together.
        let ticks = system.lines().next()?.split_whitespace().skip(1).take(8);
        let ticks = ticks.map(number).collect::<Option<Vec<_>>>()?;
        let idle = ticks.get(3)? + ticks.get(4)?;
        let all = ticks.iter().sum::<f64>();
        Some(Self { all, busy: all - idle, own: own_ticks()? })
    }

    /// The share of the processors that others used from `earlier` until now.
    pub(crate) fn others_since(self, earlier: Self) -> f64 {
        let others = (self.busy - earlier.busy) - (self.own - earlier.own);
        (others / (self.all - earlier.all).max(1.0)).clamp(0.0, 1.0)
    }
}

/// Ticks of this process, of its descendants and of those of them that have ended.
fn own_ticks() -> Option<f64> {
    let mut processes = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // One that ended meanwhile has none.
        let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        processes.insert(pid, stat(&text)?);
    }
    let own = std::process::id();
    let is_own = |mut pid: u32| {
        while pid != own {
            match processes.get(&pid) {
                Some((parent, _)) => pid = *parent,
                None => return false,
            }
        }
        true
    };
    Some(processes.iter().filter(|(pid, _)| is_own(**pid)).map(|(_, (_, ticks))| ticks).sum())
}

/// The parent and the ticks in a process's `stat`.
fn stat(text: &str) -> Option<(u32, f64)> {
    // After the name, which is in parentheses and may hold spaces: the state, the parent, and as fields
    // 11 to 14 utime and stime, and the same of the children that have ended.
    let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<f64>().ok());
    Some((fields.get(1)?.parse().ok()?, ticks.sum::<Option<f64>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_although_its_name_has_spaces() {
        let text = "7 (a ) b) S 3 7 7 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 99";
        assert_eq!(stat(text), Some((3, 100.0)));
        assert_eq!(stat("7 (a"), None);
    }

    #[test]
    fn what_others_used_is_what_this_process_did_not() {
        let earlier = CpuTimes { all: 1_000.0, busy: 400.0, own: 100.0 };
        let later = CpuTimes { all: 1_200.0, busy: 500.0, own: 150.0 };
        assert_eq!(later.others_since(earlier), 0.25);
        assert_eq!(earlier.others_since(earlier), 0.0);
    }
}
