//! A Redis or Valkey of this machine, alone or as a node of a cluster.

use std::ffi::OsString;
use std::io;

use futures_util::FutureExt;

use super::binaries;
use super::folder::Folder;
use super::process::{Plan, Process};
use super::signal::Signal;
use super::user::User;
use crate::servers::Setting;
use crate::servers::error::Miss;
use crate::servers::port::Ports;
use crate::servers::probe::redis::{info, ping};
use crate::servers::redis;

/// With these settings; as a node of a cluster if they enable one.
pub(in super::super) async fn start(settings: &[Setting], ports: Ports) -> Result<Process, Miss> {
    let program = binaries::redis()?;
    let user = User::instead_of_root(&["redis", "nobody"])?;
    // What it holds in memory need not be saved: the folder goes with it.
    let folder = Folder::new(user, Signal::Kill)?;
    let settings = settings.to_vec();
    let arguments = move |folder: &Folder, port: u16| -> io::Result<Vec<OsString>> {
        let mut arguments = vec!["--dir".into(), folder.path().as_os_str().to_owned()];
        let (port, bind) = (port.to_string(), "127.0.0.1");
        arguments.extend(["--port", &port, "--bind", bind, "--daemonize", "no"].map(Into::into));
        for (name, value) in &settings {
            arguments.extend([format!("--{name}").into(), value.into()]);
        }
        Ok(arguments)
    };
    Process::start(Plan {
        program,
        folder,
        ports,
        arguments: Box::new(arguments),
        ready: Box::new(|pid, port| ready(pid, port).boxed()),
    })
    .await
}

/// It answers, and it is this process and no other that took the port.
async fn ready(pid: u32, port: u16) -> io::Result<()> {
    let address = redis::address(port);
    ping(&address).await?;
    match info(&address, "server").await?("process_id") {
        Some(answered) if answered == pid.to_string() => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::AddrInUse, "another server is at this port")),
    }
}
