//! Streams: catch up, wait, never miss.

mod hints;
mod hub;
mod presence;
mod stream;

pub use hints::{DueTimer, DueTimers, work_hints};
pub use hub::Hub;
pub use presence::{PresenceHub, presence_stream};
pub use stream::{LogSource, event_stream};
