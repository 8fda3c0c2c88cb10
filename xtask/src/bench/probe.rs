//! What the figures were measured on: the machine, the versions, and how fast the disk syncs.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

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

/// How much of the machine's processor time was used, by all and by this process with those that it
/// started and that have ended, so far.
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
        let process = std::fs::read_to_string("/proc/self/stat").ok()?;
        // After the name, which is in parentheses and may hold spaces: utime and stime, and the same
        // of the children.
        let fields = process.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
        let own = fields.map(number).sum::<Option<f64>>()?;
        Some(Self { all, busy: all - idle, own })
    }

    /// The share of the processors that others used from `earlier` until now.
    pub(crate) fn others_since(self, earlier: Self) -> f64 {
        let others = (self.busy - earlier.busy) - (self.own - earlier.own);
        (others / (self.all - earlier.all).max(1.0)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_used_is_what_this_process_did_not() {
        let earlier = CpuTimes { all: 1_000.0, busy: 400.0, own: 100.0 };
        let later = CpuTimes { all: 1_200.0, busy: 500.0, own: 150.0 };
        assert_eq!(later.others_since(earlier), 0.25);
        assert_eq!(earlier.others_since(earlier), 0.0);
    }
}
