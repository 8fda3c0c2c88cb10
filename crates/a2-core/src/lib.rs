//! The types, the cursor model and the store contract of A2, a storage engine for durable,
//! session-scoped event logs.
//!
//! A *session* is a dense, append-only log of JSON events. *Consumers* react to it through
//! *cursors*; workers *claim* a cursor's head with a lease and *complete* it: the events they
//! return and the cursor's move commit together, fenced by the attempt's number.
//!
//! This crate does no I/O. A program depends on one backend (`a2-store-memory`,
//! `a2-store-sqlite`, …), which re-exports everything here; a backend implements [`Store`], and
//! [`Timers`] and [`Presence`] where it can. The embedded backends share the [`engine`], all of
//! them the streams of [`live`].

mod cursor;
pub mod engine;
mod error;
mod event;
mod ext;
mod few;
mod json;
pub mod limits;
pub mod live;
mod name;
pub mod outcome;
pub mod presence;
pub mod request;
mod served;
mod store;
mod store_limits;
mod time;

pub use async_trait::async_trait;

pub use cursor::{Cursor, CursorKey, CursorRef, DispatchState, DispatchedHead, HeadRef};
pub use error::{Error, ErrorKind, Result};
pub use event::{Cause, Event, EventFields, NewEvent, Target};
pub use ext::StoreExt;
pub use json::Json;
pub use name::{
    Consumer, EventId, EventType, Field, Holder, Lane, LogName, Namespace, Participant,
    ReducerName, SessionId, TimerKey,
};
#[doc(inline)]
pub use outcome::*;
#[doc(inline)]
pub use request::*;
pub use served::{LogDeclaration, LogTypes, Served, ServedConsumer};
pub use store::{EventStream, Presence, PresenceStream, Store, Timers, WorkHints};
pub use store_limits::StoreLimits;
pub use time::{Clock, Index, ManualClock, Span, SystemClock, Timestamp};
