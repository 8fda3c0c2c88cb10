//! Encryption: asked for by the URL or by a configuration of the program's.

use std::borrow::Cow;

use a2_core::Result;
use fred::types::config::Config;

/// The program's configuration, in a build that can encrypt.
#[cfg(feature = "tls")]
pub(crate) type Tls = fred::types::config::TlsConfig;
#[cfg(not(feature = "tls"))]
#[derive(Clone)]
pub(crate) enum Tls {}

/// The URL without encryption, and whether it asks for it. The driver would take the process's default
/// provider of cryptography, which need not be there; built without encryption it would not encrypt.
pub(crate) fn plain(url: &str) -> (Cow<'_, str>, bool) {
    for (with, without) in [("rediss", "redis"), ("valkeys", "valkey")] {
        if let Some(rest) = url.strip_prefix(with) {
            return (format!("{without}{rest}").into(), true);
        }
    }
    (url.into(), false)
}

/// Encrypts as this configuration says.
pub(crate) fn set(config: &mut Config, tls: &Tls) {
    #[cfg(feature = "tls")]
    {
        config.tls = Some(tls.clone());
    }
    #[cfg(not(feature = "tls"))]
    {
        let _ = (config, tls);
    }
}

/// Encrypts, and trusts whom the platform trusts. A certificate that cannot be read is passed over, as
/// everywhere.
///
/// # Errors
/// `STORE_NOT_CONFIGURED` when the platform trusts nobody, and when this crate was built without TLS.
#[cfg(feature = "tls")]
pub(crate) fn by_the_platform(config: &mut Config) -> Result<()> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(a2_core::Error::not_configured(
            "rediss: the platform trusts nobody (no certificates are installed); give a configuration \
             with RedisBuilder::tls",
        ));
    }
    // Not the process's default provider: another crate may have set it, or none.
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let rustls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| {
            a2_core::Error::not_configured(format!("TLS: {error}")).with_source(error)
        })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.tls = Some(fred::types::config::TlsConfig {
        connector: rustls.into(),
        // The nodes of a cluster are known by their addresses; certificates name hosts.
        hostnames: fred::types::config::TlsHostMapping::DefaultHost,
    });
    Ok(())
}

#[cfg(not(feature = "tls"))]
pub(crate) fn by_the_platform(_: &mut Config) -> Result<()> {
    Err(a2_core::Error::not_configured("rediss needs the feature `tls` of a2-store-redis"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_asks_for_encryption_by_its_scheme() {
        for (url, without) in [
            ("rediss://h", "redis://h"),
            ("valkeys-cluster://h", "valkey-cluster://h"),
            ("rediss-sentinel://h", "redis-sentinel://h"),
        ] {
            assert_eq!(plain(url), (without.into(), true));
            assert_eq!(plain(without), (without.into(), false));
        }
    }
}
