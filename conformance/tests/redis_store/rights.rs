//! What a user of the server must be allowed, and nothing more.

use a2_conformance::servers::fresh_name;
use a2_store_redis::*;

use crate::scripts::everything;
use crate::util::*;

/// As the crate's documentation has it, for the prefix.
fn least(prefix: &str) -> Vec<String> {
    let rights = "-@all +@read +@write +@connection +@pubsub -@dangerous +eval +evalsha +time +wait \
                  +info";
    let scope = [format!("~{prefix}:*"), "resetchannels".into(), format!("&{prefix}:*")];
    scope.into_iter().chain(rights.split_whitespace().map(str::to_owned)).collect()
}

async fn with(prefix: &str, more: &[&str]) -> RedisBuilder {
    let least = least(prefix);
    let rights: Vec<_> = least.iter().map(String::as_str).chain(more.iter().copied()).collect();
    RedisStore::builder(User::with(&rights).await.url).prefix(prefix)
}

#[tokio::test(flavor = "multi_thread")]
async fn few_rights_are_enough_for_everything() {
    let prefix = fresh_name();
    let store = with(&prefix, &[]).await.connect().await.unwrap();
    everything(&store, async || {}).await;
    assert!(store.servers()[0].version.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_is_told_so_and_nothing_is_written() {
    let prefix = fresh_name();
    // Another prefix is not theirs.
    let foreign = with(&prefix, &[]).await.prefix(fresh_name()).connect().await.unwrap_err();
    assert_eq!(foreign.code(), "STORE_NOT_CONFIGURED", "{foreign}");
    assert!(!foreign.is_retryable());

    // A script finds out that it may not tell when it has written.
    let error = with(&prefix, &["resetchannels"]).await.connect().await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    with(&prefix, &["resetchannels"]).await.notifications(false).connect().await.unwrap();

    let store = with(&prefix, &["-evalsha"]).await.connect().await.unwrap();
    let error = store.append(&session("s"), append("e")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");

    // A command within the script is refused before the script has written anything.
    let store = with(&prefix, &["-@write"]).await.connect().await.unwrap();
    let error = store.append(&session("s"), append("e")).await.unwrap_err();
    assert_eq!(error.code(), "STORE_NOT_CONFIGURED", "{error}");
    assert_eq!(store.head(&session("s")).await.unwrap(), 0);
}
