//! Encrypted connections: to a server whose certificate is trusted, and to no other.

use std::sync::Arc;

use a2_conformance::servers::{PostgresOptions, PostgresServer, Servers, fresh_name};
use a2_store_postgres::rustls::{self, RootCertStore};
use a2_store_postgres::tokio_postgres::NoTls;
use a2_store_postgres::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::util::*;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server that answers by this name alone with a certificate of the authority.
async fn server(authority: &Authority, name: &str) -> PostgresServer {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let options = PostgresOptions::new()
        .file("server.crt", certificate.pem())
        .file("server.key", key.serialize_pem())
        .setting("ssl", "on")
        .setting("ssl_cert_file", "../server.crt")
        .setting("ssl_key_file", "../server.key");
    options.start(Servers::Local).await.unwrap()
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
async fn every_connection_to_a_trusted_server_is_encrypted() {
    let authority = authority();
    let server = server(&authority, "127.0.0.1").await;
    let name = fresh_name();
    let url = format!("{}?application_name={name}", server.url());
    let options = PostgresStore::builder(url).schema(fresh_name()).tls(trusting(&authority));
    let (store, other) =
        (options.clone().connect().await.unwrap(), options.connect().await.unwrap());
    store.migrate().await.unwrap();
    let at = session("s");
    // Also the one that listens.
    let mut stream = other.stream(&at, Index::ZERO);
    store.append(&at, append("e1")).await.unwrap();
    assert_eq!(next(&mut stream).await.id, "e1");
    until("it listens", || async {
        let (client, connection) = tokio_postgres::connect(server.url(), NoTls).await.unwrap();
        let driven = tokio::spawn(connection);
        let encrypted = format!(
            "select count(*), count(*) filter (where s.ssl), count(*) filter (where query like 'listen %')
             from pg_stat_activity a join pg_stat_ssl s using (pid) where application_name = '{name}'"
        );
        let row = client.query_one(&encrypted, &[]).await.unwrap();
        let (all, encrypted, listen): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(encrypted, all);
        drop(client);
        driven.await.unwrap().unwrap();
        listen == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_trusted_gets_no_connection() {
    let (authority, stranger) = (authority(), authority());
    let server = server(&authority, "db.example").await;
    let here = PostgresStore::builder(server.url());
    // It is not who it should be.
    let error = here.clone().tls(trusting(&authority)).connect().await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    assert!(!error.is_retryable());
    // By that name it is found, but the certificate is nobody's that is trusted.
    let url = server.url().replace("127.0.0.1", "db.example") + "?hostaddr=127.0.0.1";
    let there = PostgresStore::builder(&url);
    let error = there.clone().tls(trusting(&stranger)).connect().await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    there.tls(trusting(&authority)).connect().await.unwrap();
    // Whoever asks for encryption alone trusts whom the platform trusts: not this one.
    let error = PostgresStore::connect(format!("{url}&sslmode=require")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    PostgresStore::connect(format!("{url}&sslmode=disable")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_encryption_gets_no_connection_when_it_is_asked_for() {
    let builder = PostgresStore::builder(url().await);
    let error = builder.tls(trusting(&authority())).connect().await.unwrap_err();
    assert!(!error.is_retryable(), "{error}");
}
