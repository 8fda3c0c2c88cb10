//! A PgBouncer of this machine, in front of a Postgres from anywhere.

use std::ffi::OsString;
use std::fmt::Write;
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
use crate::servers::probe::address::Address;
use crate::servers::probe::postgres::greet;

const CONFIGURATION: &str = "pgbouncer.ini";

/// Whoever connects is the upstream's user there.
pub(in super::super) async fn start(
    upstream: &Address,
    settings: &[Setting],
) -> Result<Process, Miss> {
    let program = binaries::pgbouncer()?;
    let user = User::instead_of_root(&["postgres", "nobody"])?;
    let folder = Folder::new(user, Signal::Kill)?;
    let (address, settings, database) = (upstream.clone(), settings.to_vec(), upstream.clone());
    let arguments = move |folder: &Folder, port: u16| -> io::Result<Vec<OsString>> {
        let file = folder.write(CONFIGURATION, &configuration(&address, &settings, port))?;
        Ok(vec![file.into_os_string()])
    };
    let ready = move |_, port| {
        let here = Address { host: "127.0.0.1".to_owned(), port, ..database.clone() };
        // It greets once the upstream has greeted it.
        async move { greet(&here).await.map(drop) }.boxed()
    };
    Process::start(Plan {
        program,
        folder,
        ports: Ports::One,
        arguments: Box::new(arguments),
        ready: Box::new(ready),
    })
    .await
}

fn configuration(upstream: &Address, settings: &[Setting], port: u16) -> String {
    let user = upstream.user.as_deref().unwrap_or("postgres");
    let mut text = format!(
        "[databases]\n* = host={} port={} user={}",
        quoted(&upstream.host),
        upstream.port,
        quoted(user)
    );
    if let Some(password) = &upstream.password {
        let _ = write!(text, " password={}", quoted(password));
    }
    let _ = write!(
        text,
        "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = any\npool_mode = transaction\n"
    );
    for (name, value) in settings {
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_the_upstream() {
        let upstream = Address {
            host: "db.example".to_owned(),
            port: 6000,
            user: Some("me".to_owned()),
            password: Some("it's".to_owned()),
            database: Some("a".to_owned()),
            tls: false,
        };
        let settings = [("pool_mode".to_owned(), "session".to_owned())];
        assert_eq!(
            configuration(&upstream, &settings, 7000),
            "[databases]\n* = host='db.example' port=6000 user='me' password='it''s'\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = 7000\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\npool_mode = session\n"
        );
    }
}
