//! Telling other processes of this store's commits, and hearing of theirs.
//!
//! Notes are sent by a task that lives while there are any. What others tell is heard on one LISTEN
//! connection that belongs to no pool; it and the look at the streamed sessions' heads are tasks that
//! live while a stream or a watcher is open. When the connection is lost it is made again, and then
//! everybody looks for themselves: what was told in between cannot be known. A lost note costs the
//! poll interval.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use a2_core::live::{Attendance, Hub, PresenceHub, StreamedHeads};
use a2_core::{
    Clock, Field, Index, Namespace, Page, PageToken, PendingPage, Result, Served, SessionId,
    Timestamp, limits,
};
use futures_util::{Stream, StreamExt};
use tokio::sync::OnceCell;
use tokio_postgres::{AsyncMessage, Config};

use crate::conn::Db;
use crate::error::Place;
use crate::note::{self, Changed, Note, Notes, Told};
use crate::statements::Sql;
use crate::tls::{Messages, Tls};
use crate::values::params;
use crate::{presence_rows, sessions};

/// Waits between attempts to listen.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LAST_WAIT: Duration = Duration::from_secs(1);
/// How long it may take until a connection listens.
const SUBSCRIBING: Duration = Duration::from_secs(10);
/// How long a change of presence that was too long to be told may take to be read.
const FILLING: Duration = Duration::from_secs(1);
/// How long a store that is closed may take to tell what it has committed.
const FLUSHING: Duration = Duration::from_secs(1);
/// Two notifications of one store are at least this far apart, so that those of many commits go
/// together.
const SPACING: Duration = Duration::from_millis(2);

/// Tells and hears.
pub(crate) struct Wake {
    db: Db,
    sql: Arc<Sql>,
    hub: Hub,
    presence: PresenceHub,
    /// Names this store among those that tell.
    source: String,
    /// Whether others are told.
    tells: bool,
    listener: Option<(Config, Tls)>,
    poll_floor: Duration,
    poll_ceiling: Duration,
    clock: Option<Arc<dyn Clock>>,
    channel: OnceCell<String>,
    outbox: Mutex<Outbox>,
    /// The connection that listens stands.
    listens: AtomicBool,
    attendance: Arc<Attendance>,
}

#[derive(Default)]
struct Outbox {
    notes: Notes,
    /// A task sends.
    sending: bool,
}

/// How a [`Wake`] is made.
pub(crate) struct WakeOptions {
    pub(crate) tells: bool,
    pub(crate) listener: Option<(Config, Tls)>,
    pub(crate) poll_floor: Duration,
    pub(crate) poll_ceiling: Duration,
    /// The clock that replaces the server's.
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl Wake {
    pub(crate) fn new(
        db: Db,
        sql: Arc<Sql>,
        (hub, presence): (Hub, PresenceHub),
        source: &str,
        options: WakeOptions,
    ) -> Arc<Self> {
        let WakeOptions { tells, listener, poll_floor, poll_ceiling, clock } = options;
        Arc::new_cyclic(|this: &Weak<Self>| {
            let serve = |wake: Arc<Self>| async move { wake.serve().await };
            let attendance = Arc::new(Attendance::of(this.clone(), serve));
            Self {
                db,
                sql,
                hub,
                presence,
                source: source.to_owned(),
                tells,
                listener,
                poll_floor,
                poll_ceiling,
                clock,
                channel: OnceCell::new(),
                outbox: Mutex::default(),
                listens: AtomicBool::new(false),
                attendance,
            }
        })
    }

    /// Tells others, soon. Within a Tokio runtime, as every operation is.
    pub(crate) fn tell(self: &Arc<Self>, note: Note, number: i64) {
        self.post(|notes| notes.add(note, number));
    }

    /// Tells others of a change of presence.
    pub(crate) fn tell_change(self: &Arc<Self>, change: impl FnOnce() -> Changed) {
        self.post(|notes| notes.add_change(change()));
    }

    fn post(self: &Arc<Self>, add: impl FnOnce(&mut Notes)) {
        if !self.tells {
            return;
        }
        let mut outbox = self.outbox();
        add(&mut outbox.notes);
        if !outbox.sending {
            outbox.sending = true;
            drop(outbox);
            let sending = Sending { wake: Arc::clone(self), done: false };
            tokio::spawn(sending.run());
        }
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task that listens and looks.
    pub(crate) fn attendance(&self) -> &Arc<Attendance> {
        &self.attendance
    }

    /// Waits until nothing is under way and what there is to tell was told, but not for long: it is told
    /// in vain when the server is gone.
    pub(crate) async fn flush(&self, is_under_way: impl Fn() -> bool) {
        let until = tokio::time::Instant::now() + FLUSHING;
        while (is_under_way() || self.outbox().sending) && tokio::time::Instant::now() < until {
            tokio::time::sleep(SPACING).await;
        }
    }

    /// For ever.
    async fn serve(&self) {
        let listen = async {
            match &self.listener {
                Some((config, tls)) => self.listen(config, tls).await,
                None => self.attendance.attend(u64::MAX),
            }
        };
        let listens = Listens(&self.listens);
        tokio::join!(listen, self.look());
        drop(listens);
    }

    /// Listens, for ever.
    async fn listen(&self, config: &Config, tls: &Tls) {
        let mut wait = FIRST_WAIT;
        loop {
            // A server that takes connections and says nothing is tried again.
            let subscribed = tokio::time::timeout(SUBSCRIBING, self.subscribe(config, tls)).await;
            if let Ok(Ok(mut messages)) = subscribed {
                wait = FIRST_WAIT;
                self.listens.store(true, Ordering::Release);
                // Before a watcher begins: what it reads then is all there is.
                self.everything();
                self.attendance.attend(u64::MAX);
                while let Some(Ok(message)) = messages.next().await {
                    if let AsyncMessage::Notification(told) = message {
                        self.hear(told.payload()).await;
                    }
                }
                self.listens.store(false, Ordering::Release);
            }
            self.attendance.attend(u64::MAX);
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_WAIT);
        }
    }

    /// A connection that listens.
    async fn subscribe(&self, config: &Config, tls: &Tls) -> Result<Listening> {
        let place = Place::look("listen");
        let channel = self.channel().await?;
        let connected = tls.connect(config).await;
        let (client, mut messages) = connected.map_err(|error| place.not_connected(error))?;
        let command = format!("listen {channel}");
        {
            let mut listen = pin!(client.batch_execute(&command));
            loop {
                tokio::select! {
                    done = &mut listen => {
                        done.map_err(|error| place.error(error))?;
                        break;
                    }
                    message = messages.next() => match message {
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return Err(place.error(error)),
                        None => return Err(a2_core::Error::unavailable("listen: disconnected")),
                    },
                }
            }
        }
        Ok(Listening { messages, _client: client })
    }

    /// The channel of the schema that the store is in.
    async fn channel(&self) -> Result<&str> {
        let resolved = self.channel.get_or_try_init(|| async {
            let table = self.sql.table("a2_events");
            let rows = self.db.query(Place::look("notify"), SCHEMA_OF, &params![table]).await?;
            match rows.first() {
                Some(row) => Ok(channel_of(row.get::<_, &str>(0))),
                None => Err(crate::error::nothing_there("the table a2_events is missing")),
            }
        });
        resolved.await.map(String::as_str)
    }

    fn everything(&self) {
        self.hub.wake_all();
        self.presence.wake_all();
    }

    async fn hear(&self, text: &str) {
        let (source, notes) = note::read(text);
        if source.as_deref() == Some(&self.source) {
            return;
        }
        for told in notes {
            match told {
                Told::Note(note, number) => self.act(note, number),
                Told::Changed(change) => self.changed(*change).await,
            }
        }
    }

    /// A change of presence was told, with its values or without.
    async fn changed(&self, mut change: Changed) {
        let Ok(namespace) = Namespace::new(&change.namespace) else { return };
        if !change.fields.is_empty() {
            let is_watched = self.presence.watched_namespaces().contains(&namespace);
            if is_watched {
                let filled =
                    tokio::time::timeout(FILLING, self.fill(&namespace, &mut change)).await;
                if filled != Ok(Some(())) {
                    return self.presence.wake(&namespace);
                }
            }
        }
        let expires_at = Timestamp::from_millis(change.expires_at);
        self.presence.changed(&namespace, &change.patch, expires_at);
    }

    /// Reads the values that were too long to be told; none when they are not there any more.
    async fn fill(&self, namespace: &Namespace, change: &mut Changed) -> Option<()> {
        let patch = &mut change.patch;
        let rows = presence_rows::read(&self.db, &self.sql, namespace, Some(0)).await.ok()?;
        for (name, removed) in &change.fields {
            let is_it = |row: &&a2_core::PresenceRow| {
                row.participant == patch.participant && row.field == *name.as_str()
            };
            let value = match rows.iter().find(is_it) {
                None if *removed => None,
                Some(row) if !removed && row.updated_at == patch.at && row.seen == patch.seen => {
                    Some(row.value.clone())
                }
                _ => return None,
            };
            patch.values.insert(Field::new(name).ok()?, value);
        }
        Some(())
    }

    fn act(&self, note: Note, number: i64) {
        let session = |name: &str| SessionId::new(name).ok();
        let index = || u64::try_from(number).ok().and_then(|index| Index::new(index).ok());
        match &note {
            Note::Appended(name) => {
                if let (Some(session), Some(index)) = (session(name), index()) {
                    self.hub.reached(&session, index);
                }
            }
            Note::Cleared(name) => {
                if let (Some(session), Some(index)) = (session(name), index()) {
                    self.hub.cleared(&session, index);
                }
            }
            Note::Hint(name) => {
                if let Some(session) = session(name) {
                    self.hub.hint(&session);
                }
            }
            Note::Session(name) => {
                if let Some(session) = session(name) {
                    self.hub.wake(&session);
                    self.hub.timers_changed();
                }
            }
            Note::Presence(name) => {
                if let Ok(namespace) = Namespace::new(name) {
                    self.presence.wake(&namespace);
                }
            }
            Note::Timer => self.hub.timer_set(Timestamp::from_millis(number)),
            Note::Everything => self.everything(),
        }
    }

    /// Looks at the heads of the sessions that have streams, for ever.
    async fn look(&self) {
        let mut interval = self.poll_floor;
        let mut known = StreamedHeads::default();
        let mut place = None;
        loop {
            let listens = self.listens.load(Ordering::Acquire);
            tokio::time::sleep(if listens { self.poll_ceiling } else { interval }).await;
            let streamed = self.hub.streamed_sessions();
            known.retain(&streamed);
            let mut found = false;
            for some in streamed.chunks(sessions::MANY) {
                // What cannot be looked at now is looked at the next time.
                let heads = sessions::heads(&self.db, &self.sql, some).await.unwrap_or_default();
                found |= known.seen(&self.hub, heads);
            }
            if !listens && self.hub.has_watchers() {
                // What cannot be asked now is asked the next time.
                place = self.hint_pending(place.take()).await.unwrap_or_default();
            }
            interval = if found { self.poll_floor } else { (interval * 2).min(self.poll_ceiling) };
        }
    }
}

impl Wake {
    /// Hints sessions in which something can be done, for nobody tells of what others append: one page,
    /// and where the next begins.
    async fn hint_pending(&self, from: Option<PageToken>) -> Result<Option<PageToken>> {
        let now = match &self.clock {
            Some(clock) => clock.now(),
            None => sessions::now(&self.db, &self.sql).await?,
        };
        let page = from.map_or_else(Page::first, Page::at).limit(limits::PAGE_MAX)?;
        let request = PendingPage::new(Served::ALL).page(page);
        let injected = self.clock.is_some().then_some(now.as_millis());
        let pending = sessions::pending(&self.db, &self.sql, &request, injected).await?;
        let due = pending.sessions.iter().filter(|session| session.not_before <= now);
        due.for_each(|session| self.hub.hint(&session.session));
        Ok(pending.next)
    }
}

/// The schema that a table is found in.
const SCHEMA_OF: &str = "select n.nspname::text from pg_catalog.pg_class c \
                         join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
                         where c.oid = pg_catalog.to_regclass($1)::oid";

/// Sends one notification, without a wait for the disk.
const NOTIFY: &str = "select pg_catalog.set_config('synchronous_commit', 'off', true), \
                      pg_catalog.pg_notify($1, $2)";

/// The name of a schema's channel, which is an identifier: names that are equal in their first 63
/// bytes must not meet. FNV-1a, the same in every version.
fn channel_of(schema: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("a2_{:016x}", schema.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// A connection that listens, while its messages are polled.
struct Listening {
    messages: Messages,
    // Without it the connection ends.
    _client: tokio_postgres::Client,
}

impl Stream for Listening {
    type Item = Result<AsyncMessage, tokio_postgres::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.messages.poll_next_unpin(cx)
    }
}

/// The task that sends.
struct Sending {
    wake: Arc<Wake>,
    done: bool,
}

impl Sending {
    async fn run(mut self) {
        let wake = Arc::clone(&self.wake);
        loop {
            let notes = {
                let mut outbox = wake.outbox();
                if outbox.notes.is_empty() {
                    outbox.sending = false;
                    self.done = true;
                    return;
                }
                std::mem::take(&mut outbox.notes)
            };
            // A note that cannot be sent is lost: whoever it was for looks by itself.
            if let Ok(channel) = wake.channel().await {
                for text in notes.into_texts(&wake.source) {
                    let params = params![channel, text];
                    drop(wake.db.query(Place::look("notify"), NOTIFY, &params).await);
                }
            }
            tokio::time::sleep(SPACING).await;
        }
    }
}

/// When its runtime ends in the midst of it, the next note makes another.
impl Drop for Sending {
    fn drop(&mut self) {
        if !self.done {
            self.wake.outbox().sending = false;
        }
    }
}

/// The connection does not listen any more when this goes.
struct Listens<'a>(&'a AtomicBool);

impl Drop for Listens<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_an_identifier_of_its_schema() {
        assert_eq!(channel_of(""), "a2_cbf29ce484222325");
        assert_eq!(channel_of("a"), "a2_af63dc4c8601ec8c");
        let long = "s".repeat(63);
        assert_ne!(channel_of(&format!("{long}1")), channel_of(&format!("{long}2")));
    }
}
