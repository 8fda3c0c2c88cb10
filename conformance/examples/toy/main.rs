//! A toy store that certifies itself: `cargo run -p a2-conformance --example toy`, or as the test
//! that it is, `cargo test -p a2-conformance --example toy`.

mod session;
mod store;

use std::process::ExitCode;
use std::sync::Arc;

use a2_conformance::{BoxError, Factory, Setup, Subject, async_trait, libtest_main};

struct Toy;

#[async_trait]
impl Factory for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
        Ok(Subject::new(store::ToyStore::new(setup.clock())))
    }
}

fn main() -> ExitCode {
    libtest_main([Arc::new(Toy) as Arc<dyn Factory>])
}
