//! A Postgres of this machine: `initdb`, then `postgres` itself, so that the process is ours.

use std::io;
use std::path::Path;

use futures_util::FutureExt;

use super::binaries;
use super::folder::Folder;
use super::process::{Plan, Process};
use super::signal::Signal;
use super::user::User;
use crate::servers::error::Miss;
use crate::servers::port::Ports;
use crate::servers::probe::postgres::greet;
use crate::servers::{Setting, postgres};

/// With nothing but the settings and files that tests need: what is not set is as every server has it.
pub(in super::super) async fn start(
    settings: &[Setting],
    files: &[Setting],
) -> Result<Process, Miss> {
    let programs = binaries::postgres()?;
    // The real folder: a link to a program is no good name for a person.
    let programs = programs
        .join("postgres")
        .canonicalize()
        .map_or(programs, |postgres| postgres.parent().map(Path::to_path_buf).unwrap_or_default());
    let user = User::instead_of_root(&["postgres", "nobody"])?;
    let initdb = programs.join("initdb");
    let folder = tokio::task::spawn_blocking(move || create(&initdb, user))
        .await
        .map_err(|error| Miss::failed(error.to_string()))??;
    for (name, text) in files {
        let written = folder.write(name, text);
        written.map_err(|error| Miss::failed(format!("{name}: {error}")))?;
    }
    let data = folder.path().join("data");
    let settings = settings.to_vec();
    let arguments = move |folder: &Folder, port: u16| {
        let mut arguments = vec!["-D".into(), folder.path().join("data").into_os_string()];
        let ours = [
            ("listen_addresses".to_owned(), "127.0.0.1".to_owned()),
            ("port".to_owned(), port.to_string()),
            ("unix_socket_directories".to_owned(), String::new()),
        ];
        for (name, value) in ours.iter().chain(&settings) {
            arguments.extend(["-c".into(), format!("{name}={value}").into()]);
        }
        Ok(arguments)
    };
    Process::start(Plan {
        program: programs.join("postgres"),
        folder,
        ports: Ports::One,
        arguments: Box::new(arguments),
        ready: Box::new(move |pid, port| ready(data.join("postmaster.pid"), pid, port).boxed()),
    })
    .await
}

/// A folder with an empty cluster of databases in it, not flushed: it does not outlive this run.
fn create(initdb: &Path, user: Option<User>) -> Result<Folder, Miss> {
    // SIGQUIT ends Postgres at once and in order: it removes its shared memory.
    let folder = Folder::new(user, Signal::Quit)?;
    let data = folder.path().join("data");
    let flags = "-U postgres -A trust --no-locale -E UTF8 -N --no-instructions -D";
    let arguments = flags.split(' ').map(Into::into).chain([data.into_os_string()]);
    folder.run(initdb, arguments).map_err(Miss::failed)?;
    Ok(folder)
}

/// Its own file says so, which another server at the same port cannot write, and it takes a
/// connection.
async fn ready(file: impl AsRef<Path>, pid: u32, port: u16) -> io::Result<()> {
    let text = std::fs::read_to_string(file)?;
    if !says_ready(&text, pid, port) {
        return Err(io::Error::new(io::ErrorKind::NotConnected, "it is starting"));
    }
    greet(&postgres::address(port)).await.map(drop)
}

/// Process id, data, start, port, folders of sockets, addresses, shared memory, state: a line each.
fn says_ready(postmaster: &str, pid: u32, port: u16) -> bool {
    let lines: Vec<_> = postmaster.lines().map(str::trim).collect();
    let number = |line: usize| lines.get(line).and_then(|text| text.parse::<u32>().ok());
    number(0) == Some(pid) && number(3) == Some(port.into()) && lines.get(7) == Some(&"ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_postmaster_says_when_it_is_ready() {
        let file = "4321\n/tmp/x/data\n1700000000\n12345\n\n127.0.0.1\n  1234 5\nready   \n";
        assert!(says_ready(file, 4321, 12345));
        assert!(!says_ready(file, 4322, 12345));
        assert!(!says_ready(file, 4321, 12346));
        assert!(!says_ready(&file.replace("ready", "starting"), 4321, 12345));
        assert!(!says_ready("4321\n/tmp/x/data\n", 4321, 12345));
    }
}
