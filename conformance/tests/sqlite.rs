//! The whole suite on the sqlite store, each case a test of its own.

use std::process::ExitCode;
use std::sync::Arc;

use a2_conformance::backends::Sqlite;
use a2_conformance::libtest_main;

fn main() -> ExitCode {
    libtest_main([Arc::new(Sqlite::default()) as _])
}
