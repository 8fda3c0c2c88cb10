//! Where a server is, read out of its URL.

use std::fmt;

/// A server's place, and who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Address {
    pub(in super::super) host: String,
    pub(in super::super) port: u16,
    pub(in super::super) user: Option<String>,
    pub(in super::super) password: Option<String>,
    /// What follows the port: the database's name or number.
    pub(in super::super) database: Option<String>,
    /// Whether the scheme asks for TLS.
    pub(in super::super) tls: bool,
}

/// The schemes of one kind of server: plain ones, those with TLS, and the port they stand for.
pub(in super::super) struct Schemes {
    pub(in super::super) plain: &'static [&'static str],
    pub(in super::super) tls: &'static [&'static str],
    pub(in super::super) port: u16,
}

impl Address {
    /// Of `scheme://[user[:password]@]host[:port][/database][?…]`; an error names what is wrong
    /// and never holds the password.
    pub(in super::super) fn parse(url: &str, schemes: &Schemes) -> Result<Self, String> {
        let expected = || format!("it must begin with {}://", schemes.plain.join(":// or "));
        let (scheme, rest) = url.split_once("://").ok_or_else(expected)?;
        let tls = schemes.tls.contains(&scheme);
        if !tls && !schemes.plain.contains(&scheme) {
            return Err(expected());
        }
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, database) = match rest.split_once('/') {
            Some((authority, database)) => (authority, Some(database)),
            None => (rest, None),
        };
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, "")))
        {
            Some((user, password)) => (text(user)?, text(password)?),
            None => (None, None),
        };
        let (host, port) = place_of(place, schemes.port)?;
        let database = text(database.unwrap_or_default())?;
        Ok(Self { host, port, user, password, database, tls })
    }
}

impl Address {
    /// As a URL, without the password.
    pub(in super::super) fn url(&self, scheme: &str) -> String {
        let user = self.user.as_deref().map(|user| format!("{}@", encoded(user)));
        let database = self.database.as_deref().map(|name| format!("/{}", encoded(name)));
        let (user, database) = (user.unwrap_or_default(), database.unwrap_or_default());
        format!("{scheme}://{user}{self}{database}")
    }
}

/// The place alone: nothing that is secret.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

fn place_of(place: &str, default: u16) -> Result<(String, u16), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let host = text(host)?.ok_or("it names no host")?;
    if host.starts_with('/') {
        return Err("it must name a host and a port, not a socket's folder".to_owned());
    }
    let port = match port {
        Some(port) => port.parse().map_err(|_| "its port must be a number up to 65535")?,
        None => default,
    };
    Ok((host, port))
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// With percent signs decoded; nothing when it is empty.
fn text(encoded: &str) -> Result<Option<String>, String> {
    let wrong = || "a percent sign must be followed by two hex digits of UTF-8".to_owned();
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = rest.split_at_checked(2).ok_or_else(wrong)?;
        let hex = std::str::from_utf8(digits.0).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(hex, 16).map_err(|_| wrong())?);
        rest = digits.1;
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    Ok((!text.is_empty()).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: Schemes =
        Schemes { plain: &["postgres", "postgresql"], tls: &["postgress"], port: 5432 };

    fn parse(url: &str) -> Result<Address, String> {
        Address::parse(url, &SCHEMES)
    }

    #[test]
    fn a_whole_url() {
        let address = parse("postgresql://me:p%40ss%3a@db.example:6000/a%2Fb?sslmode=x").unwrap();
        let expected = Address {
            host: "db.example".to_owned(),
            port: 6000,
            user: Some("me".to_owned()),
            password: Some("p@ss:".to_owned()),
            database: Some("a/b".to_owned()),
            tls: false,
        };
        assert_eq!(address, expected);
        assert_eq!(address.to_string(), "db.example:6000");
        assert_eq!(address.url("postgres"), "postgres://me@db.example:6000/a%2Fb");
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let address = parse("postgress://[::1]").unwrap();
        assert_eq!((address.host.as_str(), address.port, address.tls), ("::1", 5432, true));
        assert_eq!((address.user, address.password, address.database), (None, None, None));
        assert_eq!(parse("postgres://:secret@h/").unwrap().password.as_deref(), Some("secret"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |url: &str| parse(url).unwrap_err();
        let scheme = "it must begin with postgres:// or postgresql://";
        assert_eq!(wrong("localhost:5432"), scheme);
        assert_eq!(wrong("redis://localhost"), scheme);
        assert_eq!(wrong("postgres://"), "it names no host");
        assert_eq!(wrong("postgres://h:99999"), "its port must be a number up to 65535");
        assert_eq!(
            wrong("postgres://%2Fvar%2Frun/a"),
            "it must name a host and a port, not a socket's folder"
        );
        let percent = "a percent sign must be followed by two hex digits of UTF-8";
        assert_eq!(wrong("postgres://h/%2"), percent);
        assert_eq!(wrong("postgres://h/%ff"), percent);
    }
}
