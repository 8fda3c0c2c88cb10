//! What cleans up when the harness cannot: a shell that waits at a pipe. The pipe is closed with the
//! harness, however it ends: returned from `main` without a drop, by Ctrl-C, SIGTERM or SIGKILL.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Runs a script when this process ends before the value is dropped.
#[derive(Debug)]
pub(super) struct Reaper {
    shell: Child,
}

/// Reads words until the pipe is closed and leaves the last one in `$last`; `done` is the last word
/// of a harness that has cleaned up by itself.
const WAIT: &str = r#"
last=
while read -r word; do
  [ "$word" = done ] && exit
  last=$word
done
"#;

impl Reaper {
    /// Gets ready to run the script, with these arguments and the last word that was told.
    pub(super) fn start(
        script: &str,
        arguments: impl IntoIterator<Item: AsRef<OsStr>>,
    ) -> io::Result<Self> {
        let shell = Command::new("sh")
            .args(["-c", &format!("{WAIT}{script}"), "a2-conformance-reaper"])
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Away from the terminal's group: Ctrl-C is for the harness.
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }

    /// Tells a word, or that there is none.
    pub(super) fn tell(&mut self, word: Option<u32>) -> io::Result<()> {
        let word = word.map(|word| word.to_string()).unwrap_or_default();
        self.write(&word)
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        match &mut self.shell.stdin {
            Some(pipe) => pipe.write_all(format!("{line}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Everything was cleaned up.
impl Drop for Reaper {
    fn drop(&mut self) {
        let _ = self.write("done");
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
