//! Folding a log into a state.

use std::fmt;

use a2_core::{Event, ReducerName, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Events;

/// Folds a session's log into a state, event by event.
///
/// A reducer with nothing of its own is made by [`Fold::new`]; implement the trait for one that has.
pub trait Reducer: Send + Sync {
    /// What the log is folded into.
    type State: Serialize + DeserializeOwned + Send;
    /// The events that count; those of other types are passed over.
    type Event: Events;

    /// Its name: snapshots are kept under it.
    fn name(&self) -> &str;

    /// Changes whenever the same events make another state, or the state another JSON: snapshots of
    /// another version are not used.
    fn version(&self) -> u32;

    /// The state of an empty log.
    fn init(&self) -> Self::State;

    /// What `event` makes of `state`. `stored` is the event as it stands in the log.
    fn apply(&self, state: &mut Self::State, event: Self::Event, stored: &Event);
}

/// A [`Reducer`] of three functions.
///
/// ```
/// use a2_runtime::{Events, Fold};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// enum Account {
///     Deposited(u64),
///     Withdrawn(u64),
/// }
/// impl Events for Account {}
///
/// const BALANCE: Fold<u64, Account> = Fold::new("balance", 1, || 0, |balance, event, _| match event {
///     Account::Deposited(amount) => *balance += amount,
///     Account::Withdrawn(amount) => *balance -= amount,
/// });
///
/// # use a2_runtime::Runtime;
/// # use a2_store_memory::MemoryStore;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> a2_core::Result<()> {
/// let runtime = Runtime::builder(MemoryStore::new()).build()?;
/// let account = runtime.session("account-7")?;
/// account.append([Account::Deposited(12), Account::Withdrawn(5)]).await?;
/// assert_eq!(account.state(&BALANCE).await?, 7);
/// # Ok(())
/// # }
/// ```
pub struct Fold<S, T> {
    name: &'static str,
    version: u32,
    init: fn() -> S,
    apply: fn(&mut S, T, &Event),
}

impl<S, T> Fold<S, T> {
    /// A reducer of this name and version, which starts with `init` and folds with `apply`.
    #[must_use]
    pub const fn new(
        name: &'static str,
        version: u32,
        init: fn() -> S,
        apply: fn(&mut S, T, &Event),
    ) -> Self {
        Self { name, version, init, apply }
    }
}

impl<S, T> Reducer for Fold<S, T>
where
    S: Serialize + DeserializeOwned + Send,
    T: Events,
{
    type State = S;
    type Event = T;

    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn init(&self) -> S {
        (self.init)()
    }

    fn apply(&self, state: &mut S, event: T, stored: &Event) {
        (self.apply)(state, event, stored);
    }
}

impl<S, T> fmt::Debug for Fold<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fold")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// What a reducer's snapshots are kept under. With the version in it, processes of two releases do not
/// replace each other's.
pub(crate) fn stored_name(reducer: &(impl Reducer + ?Sized)) -> Result<ReducerName> {
    ReducerName::new(format!("{}@{}", reducer.name(), reducer.version()))
}
