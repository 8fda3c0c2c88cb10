//! Reads: a few connections that read side by side, beside the writer.
//!
//! Every answer is read in one transaction, so that it is one consistent view, and no statement or
//! transaction outlives the call: an open one would keep the WAL from being started over. A database
//! in memory has one connection alone; its reads queue with the writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use a2_core::{Error, Result};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::blocking;
use crate::conn::Opener;
use crate::error::panic_text;
use crate::rows;
use crate::statements;
use crate::tx::Tx;

/// Connections that read at the same time.
const READERS: usize = 4;

/// The connections that read.
pub(crate) struct Readers {
    opener: Opener,
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(opener: Opener) -> Self {
        let places = Arc::new(Semaphore::new(READERS));
        Self { opener, idle: Mutex::default(), places }
    }

    /// Reads in one transaction.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_| Error::closed())?;
        let readers = Arc::clone(self);
        let work = move || {
            let answer = readers.read_now(read);
            drop(place);
            answer
        };
        blocking::run(work).await?
    }

    fn read_now<T>(&self, read: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        let conn = match self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(conn) => conn,
            None => self.opener.reader()?,
        };
        let fail = |error| self.opener.place("read").error(error);
        rows::run(&conn, statements::BEGIN_READ, []).map_err(fail)?;
        let tx = Tx::new(&conn, self.opener.name());
        let answer = catch_unwind(AssertUnwindSafe(|| read(&tx))).unwrap_or_else(|panic| {
            let text = panic_text(&*panic);
            let name = self.opener.name();
            Err(Error::corrupt(None, None, format!("{name}: a read panicked: {text}")))
        });
        // Nothing was written. A connection that cannot end its transaction is closed.
        if rows::run(&conn, statements::COMMIT, []).is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.places.is_closed() {
                idle.push(conn);
            }
        }
        answer
    }

    /// Ends reading when the reads under way are done, and closes the connections.
    pub(crate) async fn close(&self) {
        // Every place in hand means that nobody reads; closed already means that nobody will.
        let _every = self.places.acquire_many(READERS as u32).await;
        self.places.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
