//! How a connection is made: plain, or with TLS.

use std::pin::Pin;
use std::task::{Context, Poll};

use a2_core::Result;
use deadpool_postgres::Connect;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls};

/// Encrypts connections, or does not.
#[derive(Clone)]
pub(crate) enum Tls {
    /// Never.
    Plain,
    /// As the connection's `sslmode` says.
    #[cfg(feature = "tls")]
    Rustls(tokio_postgres_rustls::MakeRustlsConnect),
}

/// What a server says by itself. Polling it drives the connection; it ends with the connection.
pub(crate) struct Messages(Pin<Box<dyn Stream<Item = Result<AsyncMessage, Error>> + Send>>);

impl Messages {
    fn new<S, T>(mut connection: Connection<S, T>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self(Box::pin(stream::poll_fn(move |cx| connection.poll_message(cx))))
    }
}

impl Stream for Messages {
    type Item = Result<AsyncMessage, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl Tls {
    /// With the certificates that the platform trusts.
    ///
    /// # Errors
    /// `STORE_NOT_CONFIGURED` when this crate was built without TLS.
    pub(crate) fn of_the_platform() -> Result<Self> {
        #[cfg(feature = "tls")]
        return Ok(Self::Rustls(tokio_postgres_rustls::MakeRustlsConnect::new(platform_config()?)));
        #[cfg(not(feature = "tls"))]
        Err(a2_core::Error::not_configured(
            "sslmode=require needs the feature `tls` of a2-store-postgres",
        ))
    }

    /// Makes a connection. Nothing happens on it unless its messages are polled.
    pub(crate) async fn connect(&self, config: &Config) -> Result<(Client, Messages), Error> {
        match self {
            Self::Plain => {
                let (client, connection) = config.connect(NoTls).await?;
                Ok((client, Messages::new(connection)))
            }
            #[cfg(feature = "tls")]
            Self::Rustls(tls) => {
                let (client, connection) = config.connect(tls.clone()).await?;
                Ok((client, Messages::new(connection)))
            }
        }
    }
}

/// Whoever the platform trusts. A certificate that cannot be read is passed over, as everywhere.
#[cfg(feature = "tls")]
fn platform_config() -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(a2_core::Error::not_configured(
            "sslmode=require: the platform trusts nobody (no certificates are installed); give a \
             configuration with PostgresBuilder::tls",
        ));
    }
    // Not the process's default provider: another crate may have set it, or none.
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| {
            a2_core::Error::not_configured(format!("TLS: {error}")).with_source(error)
        })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Connections of the pool: each is driven by a task of its own.
impl Connect for Tls {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (tls, config) = (self.clone(), config.clone());
        Box::pin(async move {
            let (client, mut messages) = tls.connect(&config).await?;
            let driver = tokio::spawn(async move {
                // Notices and the end are of no interest: what waits for an answer hears of it.
                while let Some(Ok(_)) = messages.next().await {}
            });
            Ok((client, driver))
        })
    }
}
