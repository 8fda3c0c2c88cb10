//! Actors on A2's session event logs: typed messages, a state, one turn at a time.
//!
//! ```
//! use a2_actor::{Actor, ActorsExt, Turn, actor};
//! use a2_runtime::{Events, Handled, NonRetriable, Runtime};
//! use a2_store_memory::MemoryStore;
//! use serde::{Deserialize, Serialize};
//! use std::time::Duration;
//!
//! #[derive(Serialize, Deserialize)]
//! enum Change {
//!     Add(String),
//!     Empty,
//! }
//! impl Events for Change {}
//!
//! const CART: Actor<Vec<String>, Change> = actor("cart");
//!
//! async fn change(mut cart: Vec<String>, change: Change, _turn: Turn) -> Handled<Vec<String>> {
//!     match change {
//!         Change::Add(item) if item.is_empty() => Err(NonRetriable::new("what item?"))?, // refused
//!         Change::Add(item) => cart.push(item),
//!         Change::Empty => cart.clear(),
//!     }
//!     Ok(cart) // the new state
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder(MemoryStore::new()).actors([CART.host(change)]).build()?;
//! runtime.start();
//! let cart = CART.of(&runtime.session("customer-7")?);
//! let state = cart.call(Change::Add("tea".into()), Duration::from_secs(5)).await?;
//! assert_eq!(state, ["tea"]);
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`actor`], [`Actor`] | names an actor, with the types of its state and its messages |
//! | [`Concurrent`] | an actor's part for messages that need neither a state nor an order |
//! | [`Hosted`], [`Actors`], [`ActorsExt`] | handlers, and how a runtime gets them |
//! | [`Turn`] | a handler's side: send, append, schedule, call |
//! | [`Instance`] | an actor in one session, from outside: tell, call, state, schedule, presence |
//! | [`CallError`] | why a call has no outcome |
//!
//! # What holds
//!
//! - Every session has one instance of an actor. Its serial messages are handled one after the other,
//!   in the order of the log, over all processes that host it; those of the concurrent part at any
//!   time. Other actors of the session, and everything else in its log, do not wait for them.
//! - The state is in the log. A handler gets it as the message before left it, whichever process that
//!   was; what a process remembers is only used when the log proves it.
//! - The new state, what was sent, appended and scheduled, and the completion of the message are one
//!   commit, which only the attempt that holds the claim can make. The state is written with every
//!   message, also when it is unchanged: it is what a [call](Instance::call) waits for.
//! - A handler may run again: after a crash, after an error. It gets the same message and the same
//!   state, and what it sends gets the same ids.
//! - A [`NonRetriable`](a2_runtime::NonRetriable) error *refuses* the message: it is done, nothing of the
//!   turn is kept, and the caller is told. So is a message that does not fit the actor's type. Any
//!   other error, a panic, and a state that does not fit have the message tried again until the budget
//!   is spent; then it is a dead letter, and the instance waits until it is
//!   [retried](a2_runtime::Session::retry) or [skipped](a2_runtime::Session::skip).
//! - A message has an id that is unique within the instance. The same id again is the same message: it
//!   is not handled twice, and a call waits for what it made.
//! - A clear of the session ends what runs and tells the callers that wait; the next message starts
//!   from the default state.
//!
//! What actors write into logs, for those who read them without this crate: messages are
//! `a2.actor.message` and `a2.actor.request` {actor, message, type, payload}; outcomes are
//! `a2.actor.state` {actor, state, event, message, `clear_index`}, `a2.actor.done` {actor, result,
//! event, message} and `a2.actor.failed` {actor, message, event, error}; `a2.actor.timer` sets a timer.
//! `message` is a message's id, `event` that of the event that brought it.

mod actor;
mod call;
mod events;
mod host;
mod ids;
mod instance;
mod presence;
mod state;
mod turn;

pub use actor::{Actor, Address, Concurrent, Route, actor};
pub use call::CallError;
pub use host::{Actors, ActorsExt, Hosted};
pub use instance::{Calling, Instance, Telling, Told};
pub use presence::InstancePresence;
pub use turn::Turn;

/// The guide's programs.
#[cfg(doctest)]
#[doc = include_str!("../guide.md")]
struct Guide;
