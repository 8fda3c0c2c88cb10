//! Hearing of other processes' commits, and looking for what was not told.
//!
//! The scripts tell on one channel a partition. While streams or watchers are open, a client that does
//! nothing else listens to the channels of their partitions; watchers of work take all. When its
//! connection is lost another is made, and everybody looks for themselves: what was told in between
//! cannot be known. A lost message costs the poll interval.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use a2_core::live::{Attendance, Hub, Polling, PresenceHub, ServerClock, StreamedHeads};
use a2_core::{
    Clock, Error, Index, Namespace, Page, PageToken, PendingPage, Result, Served, SessionId, limits,
};
use fred::clients::SubscriberClient;
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::{Builder, Value};
use futures_util::future::try_join_all;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::args;
use crate::conn::{Db, Publish};
use crate::error::Place;
use crate::keys::{Keys, PARTITIONS};
use crate::link::Task;
use crate::listing::{self, Everywhere};
use crate::note::{self, Note};

/// Waits between attempts to listen.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LAST_WAIT: Duration = Duration::from_secs(1);
/// How long it may take until a connection listens.
const SUBSCRIBING: Duration = Duration::from_secs(10);
/// What opens within this time is listened for together.
const GATHERING: Duration = Duration::from_millis(1);
/// How long a look for what was appended may take, at least.
const LOOKING: Duration = Duration::from_secs(1);
/// Sharded channels are listened to anew once in so many of the longest poll intervals: a server forgets
/// who listened to a slot that it gives away, and the driver does not say so.
const ANEW: u32 = 10;
/// Who appended what is too long to be told may be gone before it told its own streams, which read it
/// after this time.
const HANDED: Duration = Duration::from_millis(50);
/// Messages that may wait here; a store that is further behind looks for itself.
const MESSAGES: usize = 16 * 1024;

/// Hears and looks.
pub(crate) struct Wake {
    db: Db,
    keys: Keys,
    hub: Hub,
    presence: PresenceHub,
    /// Makes clients like the store's own; none where nobody tells.
    listener: Option<Builder>,
    poll_floor: Duration,
    poll_ceiling: Duration,
    clock: Option<Arc<dyn Clock>>,
    server: ServerClock,
    /// The connection that listens stands.
    listens: AtomicBool,
    attendance: Arc<Attendance>,
}

/// How a [`Wake`] is made.
pub(crate) struct WakeOptions {
    pub(crate) listener: Option<Builder>,
    pub(crate) poll_floor: Duration,
    pub(crate) poll_ceiling: Duration,
    /// The clock that replaces the server's.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) server: ServerClock,
}

impl Wake {
    pub(crate) fn new(
        db: Db,
        keys: Keys,
        (hub, presence): (Hub, PresenceHub),
        options: WakeOptions,
    ) -> Arc<Self> {
        let WakeOptions { mut listener, poll_floor, poll_ceiling, clock, server } = options;
        if let Some(builder) = &mut listener {
            builder.with_performance_config(|performance| {
                performance.broadcast_channel_capacity = MESSAGES;
            });
        }
        Arc::new_cyclic(|this: &Weak<Self>| {
            let serve = |wake: Arc<Self>| async move { wake.serve().await };
            let attendance = Arc::new(Attendance::of(this.clone(), serve));
            Self {
                db,
                keys,
                hub,
                presence,
                listener,
                poll_floor,
                poll_ceiling,
                clock,
                server,
                listens: AtomicBool::new(false),
                attendance,
            }
        })
    }

    pub(crate) fn attendance(&self) -> &Arc<Attendance> {
        &self.attendance
    }

    /// How often watchers look by themselves.
    pub(crate) fn polling(&self) -> Polling {
        match &self.listener {
            // For what a lost message was for.
            Some(_) => Polling::every(self.poll_ceiling),
            None => Polling::between(self.poll_floor, self.poll_ceiling),
        }
    }

    /// For ever.
    async fn serve(&self) {
        let listen = async {
            match &self.listener {
                Some(builder) => self.listen(builder).await,
                None => self.attendance.attend(u64::MAX),
            }
            std::future::pending::<()>().await;
        };
        let listens = Listens(&self.listens);
        tokio::join!(listen, self.look());
        drop(listens);
    }

    /// Listens, for ever.
    async fn listen(&self, builder: &Builder) {
        let mut wait = FIRST_WAIT;
        loop {
            let count = self.attendance.opened().borrow().count;
            // A server that takes connections and says nothing is tried again.
            let connected = tokio::time::timeout(SUBSCRIBING, connected(builder)).await;
            if let Ok(Ok(mut listening)) = connected {
                wait = FIRST_WAIT;
                self.hear(&mut listening).await;
                self.listens.store(false, Ordering::Release);
                // It is gone already, or was given up.
                drop(listening.client.quit().await);
            }
            self.attendance.attend(count);
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_WAIT);
        }
    }

    /// Until the connection is lost.
    async fn hear(&self, listening: &mut Listening) {
        let mut opened = self.attendance.opened();
        let mut channels = BTreeSet::new();
        let mut messages = listening.client.message_rx();
        let mut late: VecDeque<Late> = VecDeque::new();
        let is_sharded = self.db.publish() == Publish::Sharded;
        let mut anew = Instant::now() + self.poll_ceiling * ANEW;
        loop {
            let count = opened.borrow_and_update().count;
            if is_sharded && Instant::now() >= anew {
                // From a node that has a slot no more this is refused, and another connection is made.
                if self.listen_to(&listening.client, channels.iter()).await.is_err() {
                    return;
                }
                anew = Instant::now() + self.poll_ceiling * ANEW;
            }
            if self.subscribe(&listening.client, &mut channels).await.is_err() {
                return;
            }
            self.listens.store(true, Ordering::Release);
            self.attendance.attend(count);
            loop {
                tokio::select! {
                    message = messages.recv() => match message {
                        Ok(message) => match &message.value {
                            Value::Bytes(bytes) => self.told(bytes, &mut late),
                            Value::String(text) => self.told(text.as_bytes(), &mut late),
                            _ => {}
                        },
                        Err(RecvError::Lagged(_)) => self.everything(),
                        Err(RecvError::Closed) => return,
                    },
                    () = until(late.front()) => {
                        if let Some((_, session, head)) = late.pop_front() {
                            self.hub.reached(&session, head);
                        }
                    }
                    _ = &mut listening.ended => return,
                    () = tokio::time::sleep_until(anew), if is_sharded => break,
                    changed = opened.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        tokio::time::sleep(GATHERING).await;
                        break;
                    }
                }
            }
        }
    }

    /// Listens to what is needed now, and no more to the rest. Who waited for what is new reads.
    async fn subscribe(
        &self,
        client: &SubscriberClient,
        channels: &mut BTreeSet<usize>,
    ) -> Result<()> {
        let place = Place::look("subscribe");
        let sessions = self.hub.streamed_sessions();
        let namespaces = self.presence.watched_namespaces();
        let all = self.hub.has_watchers();
        let of_session = |session: &SessionId| self.keys.place_of(session.as_str());
        let of_namespace = |namespace: &Namespace| self.keys.place_of(namespace.as_str());
        let wanted: BTreeSet<usize> = match all {
            true => (0..PARTITIONS).collect(),
            false => {
                let sessions = sessions.iter().map(of_session);
                sessions.chain(namespaces.iter().map(of_namespace)).collect()
            }
        };
        let (more, less): (Vec<usize>, Vec<usize>) = (
            wanted.difference(channels).copied().collect(),
            channels.difference(&wanted).copied().collect(),
        );
        let left = async {
            let names = less.iter().map(|partition| self.keys.channel(*partition));
            match self.db.publish() {
                Publish::Sharded => {
                    try_join_all(names.map(|name| client.sunsubscribe(name))).await.map(drop)
                }
                _ if less.is_empty() => Ok(()),
                _ => client.unsubscribe(names.collect::<Vec<_>>()).await,
            }
        };
        match tokio::time::timeout(SUBSCRIBING, left).await {
            Ok(done) => done.map_err(|error| place.error(error))?,
            Err(_) => return Err(place.timed_out(false)),
        }
        self.listen_to(client, more.iter()).await?;
        let more: BTreeSet<usize> = more.into_iter().collect();
        sessions
            .iter()
            .filter(|at| more.contains(&of_session(at)))
            .for_each(|at| self.hub.wake(at));
        let new = namespaces.iter().filter(|at| more.contains(&of_namespace(at)));
        new.for_each(|at| self.presence.wake(at));
        if all && !more.is_empty() {
            self.hub.timers_changed();
        }
        *channels = wanted;
        Ok(())
    }

    /// Listens to the channels of these partitions, which it may do already.
    async fn listen_to(
        &self,
        client: &SubscriberClient,
        partitions: impl ExactSizeIterator<Item = &usize>,
    ) -> Result<()> {
        let place = Place::look("subscribe");
        let none = partitions.len() == 0;
        let names = partitions.map(|partition| self.keys.channel(*partition));
        let sent = async {
            match self.db.publish() {
                // Each to the node of its slot, all on their way at once.
                Publish::Sharded => {
                    try_join_all(names.map(|name| client.ssubscribe(name))).await.map(drop)
                }
                _ if none => Ok(()),
                _ => client.subscribe(names.collect::<Vec<_>>()).await,
            }
        };
        match tokio::time::timeout(SUBSCRIBING, sent).await {
            Ok(done) => done.map_err(|error| place.error(error)),
            Err(_) => Err(place.timed_out(false)),
        }
    }

    fn everything(&self) {
        self.hub.wake_all();
        self.presence.wake_all();
    }

    fn told(&self, bytes: &[u8], late: &mut VecDeque<Late>) {
        // What cannot be read is of another version: the look finds what it was for.
        let Ok((source, note)) = note::read(bytes) else { return };
        let own = source == self.db.source();
        match note {
            // Who appended them hands them over as well, which is mostly at the same time.
            Note::Appended { session, head, events } if events.is_empty() && own => {
                late.push_back((Instant::now() + HANDED, session, head));
            }
            Note::Appended { session, head, events } if events.is_empty() => {
                self.hub.reached(&session, head);
            }
            Note::Appended { session, events, .. } => self.hub.appended(&session, &events),
            Note::Hint(session) => self.hub.hint(&session),
            Note::Timer(due_at) => self.hub.timer_set(due_at),
            Note::Presence(_) if own => {}
            Note::Presence(change) if change.cut => self.presence.wake(&change.namespace),
            Note::Presence(change) => {
                if !change.patch.values.is_empty() {
                    self.presence.changed(&change.namespace, &change.patch, change.expires_at);
                }
                if change.sooner {
                    self.presence.wake(&change.namespace);
                }
            }
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
            // What cannot be looked at now is looked at the next time.
            let within = self.poll_ceiling.max(LOOKING);
            let heads = listing::heads(self.everywhere(), &streamed, within).await;
            let found = known.seen(&self.hub, heads);
            if !listens && self.hub.has_watchers() {
                // What cannot be asked now is asked the next time.
                place = self.hint_pending(place.take()).await.unwrap_or_default();
            }
            interval = if found { self.poll_floor } else { (interval * 2).min(self.poll_ceiling) };
        }
    }

    fn everywhere(&self) -> Everywhere<'_> {
        let now = self.clock.as_ref().map(|clock| args::time(&**clock));
        Everywhere { db: &self.db, keys: &self.keys, now }
    }

    /// Hints sessions in which something can be done, for nobody tells of what others append: one page,
    /// and where the next begins.
    async fn hint_pending(&self, from: Option<PageToken>) -> Result<Option<PageToken>> {
        let page = from.map_or_else(Page::first, Page::at).limit(limits::PAGE_MAX)?;
        let request = PendingPage::new(Served::ALL).page(page);
        let pending = listing::pending(self.everywhere(), &request).await?;
        let now = self.clock.as_ref().map_or_else(|| self.server.now(), |clock| clock.now());
        let due = pending.sessions.iter().filter(|session| session.not_before <= now);
        due.for_each(|session| self.hub.hint(&session.session));
        Ok(pending.next)
    }
}

/// When it is looked whether its own events were handed over to the streams of a session up to an index.
type Late = (Instant, SessionId, Index);

async fn until(late: Option<&Late>) {
    match late {
        Some((when, ..)) => tokio::time::sleep_until(*when).await,
        None => std::future::pending().await,
    }
}

/// The connection does not listen any more when this goes.
struct Listens<'a>(&'a AtomicBool);

impl Drop for Listens<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A client that listens, and its end.
struct Listening {
    client: SubscriberClient,
    ended: Task,
}

/// Connects a client that does not connect again by itself: what was told in between must be known of.
async fn connected(builder: &Builder) -> Result<Listening> {
    let place = Place::look("listen");
    let client = SubscriberClient::new(
        builder.get_config().cloned().ok_or_else(|| Error::unavailable("listen: no server"))?,
        Some(builder.get_performance_config().clone()),
        Some(builder.get_connection_config().clone()),
        None,
    );
    let mut ended = Task::begin(&client);
    ended.connected(&client).await.map_err(|error| place.error(error))?;
    Ok(Listening { client, ended })
}
