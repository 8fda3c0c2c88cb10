//! Signals to other processes without `unsafe`: the shell has `kill` built in.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A signal's name, as `kill -s` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Signal {
    Cont,
    Kill,
    Quit,
    Stop,
}

impl Signal {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cont => "CONT",
            Self::Kill => "KILL",
            Self::Quit => "QUIT",
            Self::Stop => "STOP",
        }
    }

    /// Sends it to all of them; one that is gone already is no error.
    pub(super) fn send(self, pids: &[u32]) {
        if pids.is_empty() {
            return;
        }
        let script = r#"signal=$1; shift; for pid do kill -s "$signal" "$pid"; done"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", self.name()]);
        command.args(pids.iter().map(ToString::to_string));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Without a shell nothing was started either: the reaper is one.
        let _ = command.status();
    }
}

/// Process id, parent and state of every process.
fn processes() -> Vec<(u32, u32, char)> {
    if cfg!(target_os = "linux") { from_proc() } else { from_ps() }
}

fn from_proc() -> Vec<(u32, u32, char)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let mut words = stat.rsplit_once(')')?.1.split_whitespace();
        let state = words.next()?.chars().next()?;
        Some((pid, words.next()?.parse().ok()?, state))
    })
    .collect()
}

fn from_ps() -> Vec<(u32, u32, char)> {
    let output = Command::new("ps").args(["-A", "-o", "pid=,ppid=,stat="]).output();
    let Ok(output) = output else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let pid = words.next()?.parse().ok()?;
        Some((pid, words.next()?.parse().ok()?, words.next()?.chars().next()?))
    };
    text.lines().filter_map(line).collect()
}

/// The children of a process.
pub(super) fn children(of: u32) -> Vec<u32> {
    processes().into_iter().filter(|(_, parent, _)| *parent == of).map(|(pid, ..)| pid).collect()
}

/// Waits until none of them runs any more: one that nobody has waited for counts as gone.
pub(super) fn wait_until_gone(pids: &[u32], patience: Duration) {
    let deadline = Instant::now() + patience;
    let runs = |(pid, _, state): &(u32, u32, char)| *state != 'Z' && pids.contains(pid);
    while !pids.is_empty() && processes().iter().any(runs) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
}
