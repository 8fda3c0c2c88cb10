//! Other ways to the server: a socket of the file system, and TLS.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use a2_conformance::servers::{RedisOptions, RedisServer, fresh_name};
use a2_store_redis::rustls::{self, RootCertStore};
use a2_store_redis::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::scripts::everything;
use crate::util::*;

#[tokio::test(flavor = "multi_thread")]
async fn by_a_socket_of_the_file_system() {
    let options = RedisOptions::new().setting("unixsocket", "a2.sock");
    let server = own(options.setting("unixsocketperm", "777")).await;
    let path = server.process().unwrap().folder().join("a2.sock");
    for scheme in ["redis+unix", "valkey+unix"] {
        let url = format!("{scheme}://{}", path.display());
        let store = RedisStore::builder(url).prefix(fresh_name()).connect().await.unwrap();
        everything(&store, async || {}).await;
        assert_eq!(store.servers()[0].address, path.display().to_string());
    }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A file that the server can read.
fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    path
}

/// A server that answers by this name alone with a certificate of the authority, and the URL of its
/// encrypted port.
async fn server(authority: &Authority, name: &str) -> (RedisServer, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let server = own(RedisOptions::new()).await;
    let folder = server.process().unwrap().folder();
    for (setting, path) in [
        ("tls-auth-clients", Path::new("no").to_owned()),
        ("tls-ca-cert-file", file(folder, "ca.crt", &authority.pem())),
        ("tls-key-file", file(folder, "server.key", &key.serialize_pem())),
        ("tls-cert-file", file(folder, "server.crt", &certificate.pem())),
    ] {
        command(&server, &["CONFIG", "SET", setting, path.to_str().unwrap()]).await;
    }
    // Whoever is faster has the port: another one then.
    for _ in 0..20 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let set = ["CONFIG", "SET", "tls-port", &port.to_string()];
        if let a2_conformance::servers::Reply::Status(_) = server.command(&set).await.unwrap() {
            return (server, format!("rediss://127.0.0.1:{port}"));
        }
    }
    panic!("no port is free");
}

/// Trusts the authority alone.
fn trusting(authority: &Authority) -> rustls::ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_server_is_spoken_to_encrypted_and_no_other_is() {
    let (authority, stranger) = (authority(), authority());
    let (server, url) = server(&authority, "127.0.0.1").await;
    let options = RedisStore::builder(&url).prefix(fresh_name());
    let store = options.clone().tls(trusting(&authority)).connect().await.unwrap();
    everything(&store, async || {}).await;
    // Nobody came by the other port but this test.
    let list = command(&server, &["CLIENT", "LIST"]).await.to_string();
    assert!(list.lines().count() >= 3, "{list}");

    let error = options.clone().tls(trusting(&stranger)).connect().await.unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    // Whoever asks for encryption alone trusts whom the platform trusts: not this one.
    let error = options.clone().connect().await.unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    // A configuration encrypts whatever the URL's scheme is.
    let plain = url.replace("rediss", "redis");
    let options = RedisStore::builder(&plain).prefix(fresh_name());
    options.tls(trusting(&authority)).connect().await.unwrap();
}
