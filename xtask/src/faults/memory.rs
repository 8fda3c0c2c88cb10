//! The memory store has nothing to be harmed: calls are given up and answers lost.

use std::sync::Arc;

use a2_conformance::history::Random;
use a2_core::async_trait;
use a2_store_memory::MemoryStore;
use anyhow::Result;

use super::theatre::{Store, Theatre};

/// One store, of which every handle is the same.
#[derive(Default)]
pub(super) struct Memory(MemoryStore);

#[async_trait]
impl Theatre for Memory {
    fn describe(&self) -> String {
        "In memory; nothing to harm but calls that are given up and answers that are lost.".into()
    }

    fn harms(&self) -> Vec<&'static str> {
        Vec::new()
    }

    async fn open(&self) -> Result<Vec<Store>> {
        Ok(vec![Arc::new(self.0.clone()), Arc::new(self.0.clone())])
    }

    async fn harm(&self, _: &str, _: &mut Random) -> Result<()> {
        Ok(())
    }
}
