//! Postgres: the greeting of a connection, which is also the readiest proof that it takes one.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::address::{Address, Schemes};
use super::{in_time, invalid};

/// TLS is a parameter of these URLs, not a scheme.
pub(in super::super) const SCHEMES: Schemes =
    Schemes { plain: &["postgres", "postgresql"], tls: &[], port: 5432 };

/// Version 3.0 of the protocol.
const PROTOCOL: i32 = 196_608;

/// No message of a greeting is longer.
const MESSAGE_MAX: usize = 65_536;

/// What a server says to a new connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Greeting {
    /// Queries may follow.
    Ready {
        /// As the server names it, such as `15.18 (Debian 15.18-0+deb12u1)`.
        version: Option<String>,
    },
    /// It wants to know who asks.
    Login,
}

/// Connects without a password and leaves again.
///
/// # Errors
/// No connection, or a refusal: the server starts, stops or knows no such database.
pub(in super::super) async fn greet(address: &Address) -> io::Result<Greeting> {
    in_time(async {
        let mut stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        let user = address.user.as_deref().unwrap_or("postgres");
        let database = address.database.as_deref().unwrap_or(user);
        stream.write_all(&startup(user, database)).await?;
        let greeting = read(&mut stream).await?;
        stream.write_all(b"X\0\0\0\x04").await?;
        Ok(greeting)
    })
    .await
}

fn startup(user: &str, database: &str) -> Vec<u8> {
    let mut body = PROTOCOL.to_be_bytes().to_vec();
    for word in ["user", user, "database", database, "application_name", "a2-conformance", ""] {
        body.extend_from_slice(word.as_bytes());
        body.push(0);
    }
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &body].concat()
}

async fn read<R: AsyncRead + Unpin>(stream: &mut R) -> io::Result<Greeting> {
    let mut version = None;
    loop {
        let kind = stream.read_u8().await?;
        let length = stream.read_u32().await? as usize;
        if !(4..=MESSAGE_MAX).contains(&length) {
            return Err(invalid("no answer of a Postgres"));
        }
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body).await?;
        match kind {
            // Zero: nothing more is asked.
            b'R' if body != [0; 4] => return Ok(Greeting::Login),
            b'S' => {
                let mut words = body.split(|byte| *byte == 0).map(String::from_utf8_lossy);
                if words.next().is_some_and(|name| name == "server_version") {
                    version = words.next().map(|value| value.into_owned());
                }
            }
            b'Z' => return Ok(Greeting::Ready { version }),
            b'E' => return Err(io::Error::new(io::ErrorKind::ConnectionRefused, refusal(&body))),
            _ => {}
        }
    }
}

/// SQLSTATE and message.
fn refusal(body: &[u8]) -> String {
    let fields = body.split(|byte| *byte == 0).filter_map(|field| field.split_first());
    let wanted = fields.filter(|(kind, _)| [b'C', b'M'].contains(kind));
    let texts: Vec<_> = wanted.map(|(_, text)| String::from_utf8_lossy(text)).collect();
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind], &length.to_be_bytes()[..], body].concat()
    }

    async fn greeting(messages: &[Vec<u8>]) -> io::Result<Greeting> {
        read(&mut messages.concat().as_slice()).await
    }

    #[test]
    fn the_first_message_names_user_and_database() {
        let expected = b"\0\0\0\x3b\0\x03\0\0user\0u\0database\0d\0\
                         application_name\0a2-conformance\0\0";
        assert_eq!(startup("u", "d"), expected);
    }

    #[tokio::test]
    async fn a_server_that_is_ready_tells_its_version() {
        let messages = [
            message(b'R', &[0; 4]),
            message(b'S', b"TimeZone\0UTC\0"),
            message(b'S', b"server_version\x0016.2\0"),
            message(b'K', &[0; 8]),
            message(b'Z', b"I"),
        ];
        let ready = Greeting::Ready { version: Some("16.2".to_owned()) };
        assert_eq!(greeting(&messages).await.unwrap(), ready);
    }

    #[tokio::test]
    async fn a_server_may_want_a_password() {
        let asked = greeting(&[message(b'R', &[0, 0, 0, 10, b'S'])]).await.unwrap();
        assert_eq!(asked, Greeting::Login);
    }

    #[tokio::test]
    async fn a_refusal_is_told() {
        let body = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
        let error = greeting(&[message(b'E', body)]).await.unwrap_err();
        assert_eq!(error.to_string(), "57P03: the database system is starting up");
    }

    #[tokio::test]
    async fn another_protocol_is_an_error() {
        let mut http: &[u8] = b"HTTP/1.1 400 Bad Request\r\n";
        assert_eq!(read(&mut http).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
