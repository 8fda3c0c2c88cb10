//! Streams: catch up, wait, never miss.
//!
//! What every store shares of [`stream`](crate::Store::stream),
//! [`watch_pending`](crate::Store::watch_pending) and
//! [`watch_presence`](crate::Presence::watch_presence). A backend tells its [`Hub`] and
//! [`PresenceHub`] what it commits and what it hears of other processes; a stream looks at the
//! store itself and takes a wake-up as a hint, so a lost one costs latency only.
//!
//! Timers and retries live inside the streams' own futures. Only a store that must hear of other
//! processes has a task in the background, and only while streams are open: [`Attendance`]. What
//! the store's clock judges (timers, expiry) sleeps on that [`Clock`](crate::Clock); polling and
//! retries use tokio's time.

mod attendance;
mod heads;
mod hints;
mod hub;
mod polling;
mod presence;
mod presence_hub;
mod registry;
mod ring;
mod server_clock;
mod stream;
#[cfg(test)]
mod tests;
mod view;
mod watchers;

pub use attendance::{Attendance, Attended, Opened};
pub use heads::StreamedHeads;
pub use hints::{DueTimer, DueTimers, work_hints};
pub use hub::Hub;
pub use polling::Polling;
pub use presence::presence_stream;
pub use presence_hub::PresenceHub;
pub use server_clock::ServerClock;
pub use stream::{LogSource, event_stream};
