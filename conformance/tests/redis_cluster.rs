//! The whole suite on the Redis store on a cluster, each case a test of its own.

use std::process::ExitCode;
use std::sync::Arc;

use a2_conformance::backends::Redis;
use a2_conformance::libtest_main;
use a2_conformance::servers::Servers;

fn main() -> ExitCode {
    libtest_main([Arc::new(Redis::cluster(Servers::Auto)) as _])
}
