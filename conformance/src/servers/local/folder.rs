//! The folder of a server: its data and its log, gone with the server.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use super::signal::Signal;
use super::user::User;
use crate::servers::error::Miss;
use crate::servers::reaper::Reaper;

const LOG: &str = "log";

/// Ends the last program that was started in the folder, and removes the folder.
const REAP: &str = r#"
folder=$1 signal=$2
runs() {
  kill -s 0 "$1" || return 1
  # One that nobody has waited for has ended all the same.
  [ -r "/proc/$1/stat" ] && read -r stat <"/proc/$1/stat" && case ${stat##*) } in Z*) return 1; esac
  return 0
}
if [ -n "$last" ]; then
  kill -s "$signal" "$last"
  kill -s CONT "$last"
  tries=0
  while runs "$last" && [ "$tries" -lt 80 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  kill -s KILL "$last"
fi
rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }
"#;

/// A temporary folder that the server's user owns. It outlives neither this value nor this process.
#[derive(Debug)]
pub(in super::super) struct Folder {
    directory: TempDir,
    user: Option<User>,
    /// How the programs that run here are ended.
    end: Signal,
    reaper: Mutex<Reaper>,
}

impl Folder {
    /// A new one in the system's folder for such, for programs that end with this signal.
    pub(in super::super) fn new(user: Option<User>, end: Signal) -> Result<Self, Miss> {
        let create = || {
            let directory = tempfile::Builder::new().prefix("a2-server-").tempdir()?;
            let reaper = Reaper::start(REAP, [directory.path().as_os_str(), end.name().as_ref()])?;
            let folder = Self { directory, user, end, reaper: Mutex::new(reaper) };
            folder.give(folder.path())?;
            Ok(folder)
        };
        create().map_err(|error: io::Error| Miss::failed(format!("no temporary folder: {error}")))
    }

    /// A file that the folder's user can read, and no other.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let file = self.path().join(name);
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600);
        options.open(&file)?.write_all(text.as_bytes())?;
        self.give(&file)?;
        Ok(file)
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        match &self.user {
            Some(user) => chown(path, Some(user.uid), Some(user.gid)),
            None => Ok(()),
        }
    }

    pub(in super::super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Which user's programs run here, when it is not this process's.
    pub(in super::super) fn user(&self) -> Option<&str> {
        self.user.as_ref().map(|user| user.name)
    }

    pub(super) fn end(&self) -> Signal {
        self.end
    }

    /// Starts a program here, as the folder's user; what it says goes to the log.
    pub(super) fn spawn(
        &self,
        program: &Path,
        args: impl IntoIterator<Item: AsRef<OsStr>>,
    ) -> Result<Child, String> {
        let log = || File::options().create(true).append(true).open(self.path().join(LOG));
        let start = || {
            let mut command = Command::new(program);
            command.args(args).current_dir(self.path()).env("LC_ALL", "C");
            command.stdin(Stdio::null()).stdout(log()?).stderr(log()?);
            // Away from the terminal's group: Ctrl-C is for the harness.
            command.process_group(0);
            if let Some(user) = &self.user {
                command.uid(user.uid).gid(user.gid);
            }
            let child = command.spawn()?;
            self.reaper().tell(Some(child.id()))?;
            Ok(child)
        };
        start().map_err(|error: io::Error| match &self.user {
            Some(user) if error.kind() == io::ErrorKind::PermissionDenied => format!(
                "{} cannot be started as user {}, who must be able to read it: {error}",
                program.display(),
                user.name
            ),
            _ => format!("{} cannot be started: {error}", program.display()),
        })
    }

    /// Starts a program here and waits for its end.
    pub(in super::super) fn run(
        &self,
        program: &Path,
        args: impl IntoIterator<Item: AsRef<OsStr>>,
    ) -> Result<(), String> {
        let mut child = self.spawn(program, args)?;
        let status = child.wait().map_err(|error| error.to_string());
        self.forget();
        match status? {
            status if status.success() => Ok(()),
            status => Err(self.obituary(program, status)),
        }
    }

    /// No program runs here.
    pub(super) fn forget(&self) {
        // When the reaper is gone, so is its use.
        let _ = self.reaper().tell(None);
    }

    fn reaper(&self) -> MutexGuard<'_, Reaper> {
        self.reaper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn obituary(&self, program: &Path, status: ExitStatus) -> String {
        format!("{}: {status}, {}", program.display(), self.last_words())
    }

    /// The end of what the programs here have said.
    pub(super) fn last_words(&self) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.path().join(LOG))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(2_000)))?;
            let mut end = Vec::new();
            file.read_to_end(&mut end)?;
            Ok(end)
        };
        match read() {
            Ok(end) if end.is_empty() => "it said nothing".to_owned(),
            Ok(end) => format!("it said:\n{}", String::from_utf8_lossy(&end).trim_end()),
            Err(error) => format!("its log cannot be read: {error}"),
        }
    }
}

/// Removed, at the second try when a dying process has still written there.
impl Drop for Folder {
    fn drop(&mut self) {
        for _ in 0..20 {
            if std::fs::remove_dir_all(self.path()).is_ok() || !self.path().exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
