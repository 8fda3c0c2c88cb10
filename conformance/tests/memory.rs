//! The whole suite on the memory store, each case a test of its own.

use std::process::ExitCode;
use std::sync::Arc;

use a2_conformance::backends::Memory;
use a2_conformance::libtest_main;

fn main() -> ExitCode {
    libtest_main([Arc::new(Memory::default()) as _])
}
