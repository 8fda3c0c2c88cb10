//! A server's process: started on a free port, waited for, ended and removed with its value, and
//! until then killed, paused and started again by tests of faults.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::folder::Folder;
use super::signal::{Signal, children, wait_until_gone};
use crate::servers::error::{Miss, ServerError};
use crate::servers::port::Ports;
use crate::servers::probe::START;

/// How long a server may take to end by itself.
const END: Duration = Duration::from_secs(8);

/// How many ports are tried when others take them first.
const PORTS: usize = 5;

/// Whether the server with this process id answers at this port.
pub(in super::super) type Probe =
    Box<dyn Fn(u32, u16) -> BoxFuture<'static, io::Result<()>> + Send + Sync>;

/// What a program needs before it is started at a port, and its arguments.
pub(in super::super) type Arguments =
    Box<dyn Fn(&Folder, u16) -> io::Result<Vec<OsString>> + Send + Sync>;

/// How to start a server.
pub(in super::super) struct Plan {
    pub(in super::super) program: PathBuf,
    pub(in super::super) folder: Folder,
    pub(in super::super) ports: Ports,
    pub(in super::super) arguments: Arguments,
    pub(in super::super) ready: Probe,
}

/// A server that this process has started from a binary of this machine. With the value, or with
/// this process, the server ends and its folder is removed.
pub struct Process {
    plan: Plan,
    port: u16,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    child: Option<Child>,
    paused: bool,
}

impl Process {
    /// Starts it and waits until it answers.
    pub(in super::super) async fn start(plan: Plan) -> Result<Self, Miss> {
        let mut process = Self { plan, port: 0, state: Mutex::default() };
        for attempt in 1.. {
            let Some(port) = process.plan.ports.free() else { break };
            process.port = port;
            match process.launch().await {
                Ok(()) => return Ok(process),
                // Somebody else was faster: the server could not listen.
                Err(_) if attempt < PORTS && !process.plan.ports.are_free(port) => {}
                Err(error) => return Err(Miss::failed(error)),
            }
        }
        Err(Miss::failed("no port is free"))
    }

    /// Where it listens, on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id, unless it was killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.state().child.as_ref().map(Child::id)
    }

    /// Its temporary folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.plan.folder.path()
    }

    /// The program, and who runs it.
    pub(in super::super) fn describe(&self) -> String {
        let user = self.plan.folder.user().map(|user| format!(" as user {user}"));
        format!("{}{}", self.plan.program.display(), user.unwrap_or_default())
    }

    /// Kills the server and its children with SIGKILL, as when the power fails, and waits until they
    /// are gone. Its data stay. Nothing happens when it does not run.
    pub fn kill(&self) {
        let mut state = self.state();
        let Some(mut child) = state.child.take() else { return };
        // A server that is stopped makes no more children.
        Signal::Stop.send(&[child.id()]);
        let children = children(child.id());
        // Both fail only for a process that is gone.
        let _ = child.kill();
        Signal::Kill.send(&children);
        let _ = child.wait();
        wait_until_gone(&children, END);
        self.plan.folder.forget();
        state.paused = false;
    }

    /// Stops the server and its children with SIGSTOP: connections stay open and nothing answers.
    pub fn pause(&self) {
        let mut state = self.state();
        if let Some(pid) = state.child.as_ref().map(Child::id) {
            Signal::Stop.send(&[pid]);
            Signal::Stop.send(&children(pid));
            state.paused = true;
        }
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        go_on(&mut self.state());
    }

    /// Kills the server if it runs, and starts it again with the same data at the same port.
    ///
    /// # Errors
    /// It does not start any more.
    pub async fn restart(&self) -> Result<(), ServerError> {
        self.kill();
        self.launch().await.map_err(ServerError::new)
    }

    async fn launch(&self) -> Result<(), String> {
        let Plan { program, folder, arguments, ready, .. } = &self.plan;
        let arguments = arguments(folder, self.port)
            .map_err(|error| format!("{}: {error}", folder.path().display()))?;
        let child = folder.spawn(program, arguments)?;
        let pid = child.id();
        self.state().child = Some(child);
        let deadline = Instant::now() + START;
        loop {
            let error = match ready(pid, self.port).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if let Some(obituary) = self.obituary() {
                return Err(obituary);
            }
            if Instant::now() > deadline {
                let (program, words) = (program.display(), folder.last_words());
                let seconds = START.as_secs();
                return Err(format!("{program}: no answer in {seconds} s ({error}), {words}"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How it has ended, if it has.
    fn obituary(&self) -> Option<String> {
        let mut state = self.state();
        let status = match state.child.as_mut()?.try_wait() {
            Ok(status) => status?,
            Err(error) => return Some(error.to_string()),
        };
        state.child = None;
        self.plan.folder.forget();
        Some(self.plan.folder.obituary(&self.plan.program, status))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn go_on(state: &mut State) {
    if let Some(pid) = state.child.as_ref().map(Child::id)
        && std::mem::take(&mut state.paused)
    {
        Signal::Cont.send(&children(pid));
        Signal::Cont.send(&[pid]);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut state = self.state();
        go_on(&mut state);
        let Some(mut child) = state.child.take() else { return };
        if self.plan.folder.end() != Signal::Kill {
            self.plan.folder.end().send(&[child.id()]);
            let deadline = Instant::now() + END;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let _ = child.kill();
        let _ = child.wait();
        self.plan.folder.forget();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Process");
        debug.field("program", &self.plan.program).field("port", &self.port);
        debug.field("pid", &self.pid()).finish_non_exhaustive()
    }
}
