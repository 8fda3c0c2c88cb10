//! The whole suite on the Postgres store, each case a test of its own.

use std::process::ExitCode;
use std::sync::Arc;

use a2_conformance::backends::Postgres;
use a2_conformance::libtest_main;
use a2_conformance::servers::Servers;

fn main() -> ExitCode {
    libtest_main([Arc::new(Postgres::new(Servers::Auto)) as _])
}
