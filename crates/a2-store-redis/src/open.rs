//! Connecting: the clients, and what must hold of the server and of what it stores.

use std::time::Duration;

use a2_core::{Error, Result};
use bytes::Bytes;
use fred::types::Builder;
use fred::types::config::{Config, ReconnectPolicy, UnresponsiveConfig};
use socket2::TcpKeepalive;
use tokio::time::Instant;

use crate::config::{RedisBuilder, Source};
use crate::conn::{Db, DbOptions, Publish};
use crate::error::Place;
use crate::keys::Keys;
use crate::link::Link;
use crate::server::ServerInfo;
use crate::store::RedisStore;
use crate::{layout, server, tls};

/// Delays between attempts to connect again, in ms.
const FIRST_DELAY: u32 = 50;
const LAST_DELAY: u32 = 1_000;
/// How often it is looked for servers that do not answer any more, at most.
const LOOKS: Duration = Duration::from_secs(1);
/// After how much silence the kernel asks whether the server is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// The driver's configuration.
fn config(options: &RedisBuilder) -> Result<Config> {
    let mut config = match &options.source {
        Source::Config(config) => (**config).clone(),
        Source::Url(url) => {
            let (url, is_encrypted) = tls::plain(url);
            // The error's text does not repeat the URL, which may hold a password.
            let mut config = Config::from_url(&url).map_err(|error| {
                Error::invalid("url", format!("must be a Redis URL: {error}")).with_source(error)
            })?;
            if is_encrypted && options.tls.is_none() {
                tls::by_the_platform(&mut config)?;
            }
            config
        }
    };
    if let Some(tls) = &options.tls {
        tls::set(&mut config, tls);
    }
    Ok(config)
}

/// What every client of the store is made with.
fn builder(config: Config, options: &RedisBuilder) -> Builder {
    let mut builder = Builder::from_config(config);
    builder.set_policy(ReconnectPolicy::new_exponential(0, FIRST_DELAY, LAST_DELAY, 2));
    let timeout = options.operation_timeout;
    builder.with_connection_config(|connection| {
        // The driver would send a command again whose answer was lost.
        connection.max_command_attempts = 1;
        // And would not tell one that was redirected from one that was cut off.
        connection.max_redirections = 0;
        // It would give one command's LOADING to all that are on their way behind it.
        connection.reconnect_errors = Vec::new();
        connection.connection_timeout = timeout;
        connection.internal_command_timeout = timeout;
        // A server that is gone without a word: by who waits for an answer, and by the kernel.
        connection.unresponsive =
            UnresponsiveConfig { max_timeout: Some(timeout), interval: LOOKS.min(timeout) };
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        {
            connection.tcp.user_timeout = Some(timeout);
        }
        connection.tcp.nodelay = Some(true);
        // The connection that listens waits for nothing in particular.
        connection.tcp.keepalive = Some(TcpKeepalive::new().with_time(KEEPALIVE));
    });
    builder
}

/// Connects.
pub(crate) async fn open(options: RedisBuilder) -> Result<RedisStore> {
    let keys = Keys::new(&options.prefix)?;
    let config = config(&options)?;
    let builder = builder(config, &options);
    let place = Place::look("connect");
    let until = Instant::now() + options.operation_timeout;
    // From here on, whoever gives up drops the links, and with them their connections.
    let mut links = Vec::new();
    for _ in 0..options.connections {
        let client = builder.build().map_err(|error| place.error(error))?;
        links.push(Link::new(client));
    }
    let mut servers = Vec::new();
    for link in &links {
        link.ready(until).await.map_err(|error| place.error(error))?;
    }
    if let [link, ..] = links.as_slice() {
        servers = server::look(link, place, until).await?;
        for server in &servers {
            server.check(link, &options).map_err(|reason| place.refused(reason))?;
        }
        let publish = publish(&options, &servers);
        if let Some(partition) = keys.partitions().first() {
            let checked = publish.check(link, partition, until).await;
            checked.map_err(|error| place.error(error))?;
        }
        layout::record(link, &keys, until).await?;
    }
    let db = Db::new(
        links,
        DbOptions {
            timeout: options.operation_timeout,
            publish: publish(&options, &servers),
            copies: options.copies,
            general: options.general,
            source: Bytes::copy_from_slice(uuid::Uuid::now_v7().as_bytes()),
        },
    );
    Ok(RedisStore::start(db, keys, options, servers, builder))
}

/// On a cluster a message goes to every node, unless all of them can do with less.
fn publish(options: &RedisBuilder, servers: &[ServerInfo]) -> Publish {
    if !options.notifications {
        return Publish::Nothing;
    }
    let is_sharded = |server: &ServerInfo| server.is_clustered && server.version >= Some((7, 0));
    match !servers.is_empty() && servers.iter().all(is_sharded) {
        true => Publish::Sharded,
        false => Publish::Everywhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_none_is_refused_without_being_repeated() {
        for url in ["redis://u:secret@h:port", "rediss://u:secret@h:port", "u:secret@h"] {
            let builder = RedisBuilder::new(Source::Url(url.into()));
            let error = config(&builder).unwrap_err();
            assert_eq!(error.code(), "INVALID_INPUT", "{url}");
            assert!(!error.to_string().contains("secret"), "{error}");
            assert!(!format!("{builder:?}").contains("secret"));
        }
    }

    #[test]
    fn the_schemes_of_redis_and_of_valkey_say_the_same() {
        let kind = |url: &str| {
            let config = config(&RedisBuilder::new(Source::Url(url.into()))).unwrap();
            let server = &config.server;
            (server.is_clustered(), server.is_sentinel(), server.is_unix_socket())
        };
        for scheme in ["redis", "valkey"] {
            assert_eq!(kind(&format!("{scheme}://u:p@h:1/2")), (false, false, false));
            assert_eq!(kind(&format!("{scheme}-cluster://h:1?node=i:2")), (true, false, false));
            let sentinel = format!("{scheme}-sentinel://h:1?sentinelServiceName=s");
            assert_eq!(kind(&sentinel), (false, true, false));
            assert_eq!(kind(&format!("{scheme}+unix:///run/x.sock")), (false, false, true));
        }
    }

    #[test]
    fn messages_are_sharded_where_every_node_can() {
        let builder = RedisBuilder::new(Source::Url("redis://h".into()));
        let node = |is_clustered, version| ServerInfo {
            is_clustered,
            version: Some(version),
            ..ServerInfo::default()
        };
        let of = |servers: &[ServerInfo]| publish(&builder, servers);
        assert_eq!(of(&[node(true, (7, 0)), node(true, (8, 0))]), Publish::Sharded);
        assert_eq!(of(&[node(true, (7, 0)), node(true, (6, 2))]), Publish::Everywhere);
        assert_eq!(of(&[node(false, (7, 4))]), Publish::Everywhere);
        assert_eq!(of(&[]), Publish::Everywhere);
        let mute = builder.clone().notifications(false);
        assert_eq!(publish(&mute, &[node(true, (7, 0))]), Publish::Nothing);
    }
}
