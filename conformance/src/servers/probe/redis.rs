//! Redis: one command on a connection of its own.

use std::fmt;
use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

use super::address::{Address, Schemes};
use super::{in_time, invalid};

/// Of a single Redis or Valkey.
pub(in super::super) const SCHEMES: Schemes =
    Schemes { plain: &["redis", "valkey"], tls: &["rediss", "valkeys"], port: 6379 };

/// Of a cluster.
pub(in super::super) const CLUSTER_SCHEMES: Schemes = Schemes {
    plain: &["redis-cluster", "valkey-cluster"],
    tls: &["rediss-cluster", "valkeys-cluster"],
    port: 6379,
};

/// What a Redis answers to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// A short answer such as `OK`.
    Status(String),
    /// A refusal, beginning with its code.
    Error(String),
    /// A number.
    Integer(i64),
    /// A value; bytes that are no UTF-8 are replaced.
    Text(String),
    /// No value.
    Nil,
    /// Several answers.
    Array(Vec<Reply>),
}

/// The text of an answer that has one; other answers as they are debugged.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(text) | Self::Error(text) | Self::Text(text) => f.write_str(text),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Nil | Self::Array(_) => write!(f, "{self:?}"),
        }
    }
}

/// Sends a command over a connection of its own, after the login that the address asks for.
///
/// # Errors
/// No connection, or an answer that is none. A refusal is an answer, but for a refused login.
pub(in super::super) async fn command(address: &Address, words: &[&str]) -> io::Result<Reply> {
    in_time(async {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        let mut stream = BufStream::new(stream);
        let mut before: Vec<Vec<&str>> = Vec::new();
        match (&address.user, &address.password) {
            (Some(user), Some(password)) => before.push(vec!["AUTH", user, password]),
            (None, Some(password)) => before.push(vec!["AUTH", password]),
            _ => {}
        }
        if let Some(database) = &address.database {
            before.push(vec!["SELECT", database]);
        }
        for words in &before {
            if let Reply::Error(refusal) = ask(&mut stream, words).await? {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal));
            }
        }
        ask(&mut stream, words).await
    })
    .await
}

/// Whether it answers PING, as it does once its data are loaded.
pub(in super::super) async fn ping(address: &Address) -> io::Result<()> {
    match command(address, &["PING"]).await? {
        Reply::Status(pong) if pong == "PONG" => Ok(()),
        other => Err(invalid(format!("PING is answered with {other}"))),
    }
}

/// One line of what INFO says of a section.
pub(in super::super) async fn info(
    address: &Address,
    section: &str,
) -> io::Result<impl Fn(&str) -> Option<String> + use<>> {
    let text = match command(address, &["INFO", section]).await? {
        Reply::Text(text) => text,
        other => return Err(invalid(format!("INFO is answered with {other}"))),
    };
    Ok(move |key: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(found, _)| *found == key).map(|(_, value)| value.to_owned())
    })
}

/// Name and version, such as `Redis 7.0.15`.
pub(in super::super) async fn version(address: &Address) -> io::Result<String> {
    let server = info(address, "server").await?;
    let named = server("valkey_version").map(|version| format!("Valkey {version}"));
    let named = named.or_else(|| server("redis_version").map(|v| format!("Redis {v}")));
    named.ok_or_else(|| invalid("INFO names no version"))
}

async fn ask(stream: &mut BufStream<TcpStream>, words: &[&str]) -> io::Result<Reply> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    read(stream).await
}

async fn read<R: AsyncBufRead + Unpin + Send>(stream: &mut R) -> io::Result<Reply> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let (kind, text) = line.split_at_checked(1).ok_or_else(|| invalid("an empty line"))?;
    let number = || text.parse::<i64>().map_err(|_| invalid(format!("no number: {line}")));
    Ok(match kind {
        "+" => Reply::Status(text.to_owned()),
        "-" => Reply::Error(text.to_owned()),
        ":" => Reply::Integer(number()?),
        "$" => match usize::try_from(number()?) {
            Err(_) => Reply::Nil,
            Ok(length) => {
                let mut bytes = Vec::new();
                stream.take(length as u64 + 2).read_to_end(&mut bytes).await?;
                let value = bytes.strip_suffix(b"\r\n").filter(|value| value.len() == length);
                let value = value.ok_or(io::ErrorKind::UnexpectedEof)?;
                Reply::Text(String::from_utf8_lossy(value).into_owned())
            }
        },
        "*" => match usize::try_from(number()?) {
            Err(_) => Reply::Nil,
            Ok(count) => {
                let mut replies = Vec::new();
                for _ in 0..count {
                    replies.push(Box::pin(read(stream)).await?);
                }
                Reply::Array(replies)
            }
        },
        _ => return Err(invalid(format!("no answer of a Redis: {line}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reply(mut bytes: &[u8]) -> io::Result<Reply> {
        read(&mut bytes).await
    }

    #[tokio::test]
    async fn answers_of_every_kind() {
        let text = |text: &str| Reply::Text(text.to_owned());
        assert_eq!(reply(b"+PONG\r\n").await.unwrap(), Reply::Status("PONG".to_owned()));
        assert_eq!(reply(b"-ERR no\r\n").await.unwrap(), Reply::Error("ERR no".to_owned()));
        assert_eq!(reply(b":-7\r\n").await.unwrap(), Reply::Integer(-7));
        assert_eq!(reply(b"$4\r\na\r\nb\r\n").await.unwrap(), text("a\r\nb"));
        assert_eq!(reply(b"$-1\r\n").await.unwrap(), Reply::Nil);
        let nested = reply(b"*2\r\n*1\r\n:1\r\n$0\r\n\r\n").await.unwrap();
        let expected = Reply::Array(vec![Reply::Array(vec![Reply::Integer(1)]), text("")]);
        assert_eq!(nested, expected);
    }

    #[tokio::test]
    async fn what_is_no_answer_is_an_error() {
        let kind = async |bytes| reply(bytes).await.unwrap_err().kind();
        for cut in [&b""[..], b"+PO", b"$5\r\nab", b"*2\r\n:1\r\n"] {
            assert_eq!(kind(cut).await, io::ErrorKind::UnexpectedEof, "{cut:?}");
        }
        for wrong in [&b"HTTP/1.1 400\r\n"[..], b":x\r\n", b"\r\n"] {
            assert_eq!(kind(wrong).await, io::ErrorKind::InvalidData, "{wrong:?}");
        }
    }
}
