//! The memory store: cases that may share one do.

use std::sync::Arc;

use a2_core::{Clock, SystemClock};
use a2_store_memory::MemoryStore;

use crate::{BoxError, Factory, Isolation, Setup, Subject, async_trait};

/// Opens memory stores.
#[derive(Default)]
pub struct Memory {
    shared: MemoryStore,
}

#[async_trait]
impl Factory for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    async fn open(&self, setup: Setup) -> Result<Subject, BoxError> {
        let clock = setup.clock().unwrap_or_else(|| Arc::new(SystemClock));
        Ok(match setup.isolation() {
            Isolation::Shared => handle(&self.shared, &clock),
            Isolation::Own => handle(&MemoryStore::new(), &clock),
        })
    }
}

/// A handle on the same data, with this clock.
fn handle(store: &MemoryStore, clock: &Arc<dyn Clock>) -> Subject {
    let store = store.with_clock(Arc::clone(clock));
    let (again, limited, closed) = (store.clone(), store.clone(), store.clone());
    let (clock, same_clock) = (Arc::clone(clock), Arc::clone(clock));
    let subject = Subject::full(store).another(move || {
        let subject = handle(&again, &clock);
        async { Ok(subject) }
    });
    let subject = subject.limited(move |limits| {
        let subject = handle(&limited.with_limits(limits), &same_clock);
        async { Ok(subject) }
    });
    subject.closing(move || {
        let store = closed.clone();
        async move {
            store.close().await;
            Ok(())
        }
    })
}
