//! Runs the handlers of programs that react to A2's session event logs.
//!
//! ```
//! use a2_runtime::{Context, Events, Handled, Runtime, concurrent};
//! use a2_store_memory::MemoryStore;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! enum Order {
//!     #[serde(rename = "order.placed")]
//!     Placed { item: String },
//! }
//! impl Events for Order {}
//!
//! #[derive(Serialize, Deserialize)]
//! enum Bill {
//!     #[serde(rename = "bill.sent")]
//!     Sent { item: String },
//! }
//! impl Events for Bill {}
//!
//! async fn bill(order: Order, cx: Context) -> Handled<Bill> {
//!     let Order::Placed { item } = order;
//!     println!("{} of {}, attempt {}", cx.event().id, cx.session().id(), cx.attempt());
//!     Ok(Bill::Sent { item }) // appended with the completion: once, whatever happens
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> a2_core::Result<()> {
//! let runtime = Runtime::builder(MemoryStore::new()).consumer(concurrent("billing", bill)).build()?;
//! runtime.start();
//! runtime.session("customer-7")?.append(Order::Placed { item: "tea".into() }).await?;
//! # runtime.shutdown(std::time::Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`Events`] | an enum of events, by serde alone; [`RawEvent`] takes any |
//! | [`concurrent`], [`lane`], [`log`](log()), [`log_runs`] | the forms of a consumer; its name says whose work it is, its handler gets the event and a [`Context`] |
//! | [`Handled`], [`HandlerError`], [`NonRetriable`] | what a handler returns: events of any kind ([`IntoEvents`]), or why not |
//! | [`Context`] | the attempt: the stored event, its number, its cancellation, its [`Session`], [state](Context::state) |
//! | [`Session`] | append, read, stream, [state](Session::state), [schedule](Session::schedule), clear, dead letters |
//! | [`Reducer`], [`Fold`] | folds a log into a state, with snapshots |
//! | [`Runtime`], [`RuntimeBuilder`] | starts, shuts down; limits, ttl, [`RetryPolicy`] |
//!
//! # What holds
//!
//! - A handler may run more than once for an event; what it *returns* is appended once, by the attempt
//!   that holds the claim, in the same commit as the completion. The ids of returned events derive from
//!   the session, the consumer, its cursor, the event's id and the position, so every run makes the same
//!   ones.
//! - An error is tried again with growing delays until the budget is spent, then it is a dead letter,
//!   which waits for [`retry`](Session::retry) or [`skip`](Session::skip). [`NonRetriable`] errors and
//!   events that do not fit their type are dead letters at once. Panics are errors.
//! - Being shut down, cleared away or overtaken costs no budget. A process that dies costs one failure
//!   of what it worked on, when its leases have run out.
//! - Events of one lane are handled one after the other, in the order of the log, over all processes.
//! - No session starves another: places for handlers are given in turns.

mod clock;
mod consumer;
mod context;
mod error;
mod events;
mod gate;
mod hints;
mod ids;
mod inflight;
mod options;
mod pass;
mod reducer;
mod registry;
mod renew;
mod retry;
mod runtime;
mod session;
mod shutdown;
mod slot;
mod state;
mod sweep;
mod telemetry;
mod timers;
mod unit;
mod units;

pub use a2_core;
pub use tokio_util::sync::CancellationToken;

pub use consumer::{Concurrent, ConsumerSpec, InLanes, WholeLog, concurrent, lane, log, log_runs};
pub use context::Context;
pub use error::{Handled, HandlerError, NonRetriable};
pub use events::{Events, IntoEvents, RawEvent};
pub use options::RuntimeBuilder;
pub use reducer::{Fold, Reducer};
pub use retry::RetryPolicy;
pub use runtime::Runtime;
pub use session::{Appending, Session};
pub use shutdown::Shutdown;
