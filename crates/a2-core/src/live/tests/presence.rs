//! What a presence watcher is told.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::*;
use crate::live::{PresenceHub, presence_stream};
use crate::presence::{self, PresenceWrite};
use crate::{
    Clock, Field, ManualClock, Namespace, Participant, Presence, PresenceChange, PresencePatch,
    PresenceRow, PresenceRows, PresenceStream, PresenceUpdate,
};

/// One namespace's rows. Writing tells nobody; `tell` does.
#[derive(Clone)]
pub(super) struct TestPresence {
    rows: Arc<Mutex<BTreeMap<(Participant, Field), PresenceRow>>>,
    pub(super) answers: Arc<Mutex<VecDeque<Error>>>,
    reads: Arc<Mutex<usize>>,
    pub(super) hub: PresenceHub,
    pub(super) clock: ManualClock,
    pub(super) namespace: Namespace,
}

/// At one second by the clock.
pub(super) fn presence(name: &str) -> TestPresence {
    TestPresence {
        rows: Arc::default(),
        answers: Arc::default(),
        reads: Arc::default(),
        hub: PresenceHub::new(),
        clock: ManualClock::at(ms(1_000)),
        namespace: Namespace::new(name).unwrap(),
    }
}

impl TestPresence {
    pub(super) fn watch(&self) -> PresenceStream {
        self.watch_polling(None)
    }

    fn watch_polling(&self, poll: Option<Duration>) -> PresenceStream {
        let clock = Arc::new(self.clock.clone());
        presence_stream(self.clone(), &self.hub, &self.namespace, clock, "own".into(), poll)
    }

    pub(super) fn write(&self, source: &str, update: PresenceUpdate) -> PresenceWrite {
        let mut rows = lock(&self.rows);
        let stored: Vec<_> = rows.values().cloned().collect();
        let write = presence::write(&stored, &update, self.clock.now(), source);
        for field in &write.remove {
            rows.remove(&(update.participant().clone(), field.clone()));
        }
        for row in &write.put {
            rows.insert((row.participant.clone(), row.field.clone()), row.clone());
        }
        write
    }

    fn tell(&self, write: &PresenceWrite) {
        self.hub.written(&self.namespace, write);
    }

    /// Writes as this handle, and tells.
    pub(super) fn set(&self, update: PresenceUpdate) {
        self.tell(&self.write("own", update));
    }

    pub(super) fn reads(&self) -> usize {
        *lock(&self.reads)
    }
}

#[async_trait]
impl Presence for TestPresence {
    async fn set_presence(
        &self,
        _: &Namespace,
        update: PresenceUpdate,
    ) -> Result<Option<PresencePatch>> {
        Ok(self.write("own", update).patch)
    }

    async fn read_presence(&self, namespace: &Namespace) -> Result<PresenceRows> {
        assert_eq!(*namespace, self.namespace);
        *lock(&self.reads) += 1;
        if let Some(error) = lock(&self.answers).pop_front() {
            return Err(error);
        }
        let now = self.clock.now();
        let rows = lock(&self.rows);
        Ok(PresenceRows::new(rows.values().filter(|row| row.expires_at > now).cloned().collect()))
    }

    fn watch_presence(&self, _: &Namespace) -> PresenceStream {
        self.watch()
    }
}

/// `participant`'s update for ten seconds.
pub(super) fn by(participant: &str) -> PresenceUpdate {
    PresenceUpdate::new(participant, Duration::from_secs(10)).unwrap()
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// As `ann x=1 y=null seen 3 at 1000 from own`.
pub(super) fn told(change: PresenceChange) -> String {
    match change {
        PresenceChange::Rows(PresenceRows { rows, .. }) => {
            let rows: Vec<_> = rows
                .iter()
                .map(|row| format!("{} {}={}", row.participant, row.field, row.value.as_str()))
                .collect();
            format!("rows: {}", rows.join(", "))
        }
        PresenceChange::Patch(patch) => {
            let mut text = patch.participant.to_string();
            for (field, value) in &patch.values {
                let value = value.as_ref().map_or("null", Json::as_str);
                text += &format!(" {field}={value}");
            }
            if let Some(seen) = patch.seen {
                text += &format!(" seen {seen}");
            }
            text + &format!(" at {} from {}", patch.at.as_millis(), patch.source)
        }
    }
}

/// Everything that is told now.
pub(super) fn all(stream: &mut PresenceStream) -> Vec<String> {
    let mut changes = Vec::new();
    while let Some(change) = now(stream) {
        changes.push(told(change.unwrap().unwrap()));
    }
    changes
}

#[tokio::test]
async fn the_rows_come_first_then_the_changes_of_everybody() {
    let store = presence("rows-first");
    store.set(by("ann").set("x", json("1")).unwrap());
    let mut watcher = store.watch();
    store.set(by("bob").set("x", json("2")).unwrap());
    assert_eq!(all(&mut watcher), ["rows: ann x=1, bob x=2"]);
    store.clock.set(ms(1_001));
    store.set(by("ann").set("x", json("3")).unwrap().set("y", json("[]")).unwrap());
    store.tell(&store.write("other", by("bob").remove("x").unwrap().seen(index(7))));
    let changes = ["ann x=3 y=[] at 1001 from own", "bob x=null seen 7 at 1001 from other"];
    assert_eq!(all(&mut watcher), changes);
    assert_eq!(store.reads(), 1);
}

#[tokio::test]
async fn a_watcher_of_an_empty_namespace_is_told_so() {
    let store = presence("rows-none");
    assert_eq!(all(&mut store.watch()), ["rows: "]);
}

#[tokio::test]
async fn a_change_wakes_every_watcher_of_the_namespace_and_no_other() {
    let store = presence("wakes");
    let elsewhere = Namespace::new("elsewhere").unwrap();
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let mut watcher = store.watch();
            tokio::spawn(async move {
                let rows = told(next(&mut watcher).await.unwrap().unwrap());
                (rows, told(next(&mut watcher).await.unwrap().unwrap()))
            })
        })
        .collect();
    tokio::task::yield_now().await;
    let patch = store.write("own", by("ann").set("x", json("1")).unwrap()).patch.unwrap();
    store.hub.changed(&elsewhere, &patch, ms(11_000));
    tokio::task::yield_now().await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    store.hub.changed(&store.namespace, &patch, ms(11_000));
    for watcher in waiting {
        let expected = ("rows: ".to_owned(), "ann x=1 at 1000 from own".to_owned());
        assert_eq!(watcher.await.unwrap(), expected);
    }
    assert!(!store.hub.has_watchers());
}

#[tokio::test]
async fn nothing_is_told_twice() {
    let store = presence("not-twice");
    let mut watcher = store.watch();
    // Read before it is told.
    let write = store.write("own", by("ann").set("x", json("1")).unwrap());
    assert_eq!(all(&mut watcher), ["rows: ann x=1"]);
    store.tell(&write);
    assert!(all(&mut watcher).is_empty());
    // Told, then read, then told by somebody else once more.
    store.clock.set(ms(1_001));
    let write = store.write("own", by("ann").set("x", json("2")).unwrap());
    store.tell(&write);
    store.hub.wake(&store.namespace);
    assert_eq!(all(&mut watcher), ["ann x=2 at 1001 from own"]);
    store.hub.wake_all();
    store.tell(&write);
    assert!(all(&mut watcher).is_empty());
}

#[tokio::test]
async fn every_write_of_one_moment_is_told() {
    let store = presence("one-moment");
    let mut watcher = store.watch();
    assert_eq!(all(&mut watcher), ["rows: "]);
    for value in ["1", "2", "3"] {
        store.set(by("ann").set("x", json(value)).unwrap());
    }
    store.set(by("ann").remove("x").unwrap());
    store.set(by("ann").set("x", json("1")).unwrap());
    let changes = [
        "ann x=1 at 1000 from own",
        "ann x=2 at 1000 from own",
        "ann x=3 at 1000 from own",
        "ann x=null at 1000 from own",
        "ann x=1 at 1000 from own",
    ];
    assert_eq!(all(&mut watcher), changes);
}

#[tokio::test]
async fn patches_told_in_the_wrong_order_do_not_bring_back_the_old_value() {
    let store = presence("wrong-order");
    let mut watcher = store.watch();
    assert_eq!(all(&mut watcher), ["rows: "]);
    let first = store.write("other", by("ann").set("x", json("1")).unwrap());
    store.clock.set(ms(1_001));
    let second = store.write("own", by("ann").set("x", json("2")).unwrap());
    store.tell(&second);
    store.tell(&first);
    assert_eq!(all(&mut watcher), ["ann x=2 at 1001 from own"]);

    // Nor at the same moment, in the end.
    let third = store.write("own", by("ann").set("x", json("3")).unwrap());
    let fourth = store.write("own", by("ann").set("x", json("4")).unwrap());
    store.tell(&fourth);
    store.tell(&third);
    assert_eq!(all(&mut watcher).last().unwrap(), "ann x=4 at 1001 from own");
}

#[tokio::test]
async fn a_watcher_that_lags_is_told_the_difference_one_patch_each() {
    let store = presence("lag");
    store.set(by("ann").set("x", json("0")).unwrap().set("gone", json("0")).unwrap());
    let mut watcher = store.watch();
    assert_eq!(all(&mut watcher), ["rows: ann gone=0, ann x=0"]);
    for n in 1..=300 {
        store.clock.set(ms(1_000 + n));
        store.set(by("ann").set("x", json(&n.to_string())).unwrap().seen(index(5)));
    }
    store.set(by("ann").remove("gone").unwrap());
    store.tell(&store.write("other", by("bob").set("y", json("1")).unwrap()));
    // No patch says both of ann's changes; bob's is one that was told.
    let changes = ["ann gone=null x=300 seen 5 at 1300 from ", "bob y=1 at 1300 from other"];
    assert_eq!(all(&mut watcher), changes);
    assert_eq!(store.reads(), 2);
    store.clock.set(ms(1_400));
    store.set(by("ann").set("x", json("301")).unwrap());
    assert_eq!(all(&mut watcher), ["ann x=301 at 1400 from own"]);
}

#[tokio::test]
async fn patches_too_large_to_keep_are_read() {
    let store = presence("large");
    let mut watcher = store.watch();
    assert_eq!(all(&mut watcher), ["rows: "]);
    let value = format!("\"{}\"", "x".repeat(60_000));
    let mut update = by("ann");
    for field in 0..10 {
        update = update.set(format!("f{field}"), json(&value)).unwrap();
    }
    store.set(update);
    let changes = all(&mut watcher);
    assert_eq!(changes.len(), 1);
    assert!(changes[0].starts_with("ann f0=\"xxx") && changes[0].ends_with("\" at 1000 from "));
}

#[tokio::test]
async fn a_wake_up_yields_what_another_process_changed() {
    let store = presence("woken");
    store.set(by("ann").set("x", json("1")).unwrap().set("y", json("1")).unwrap());
    store.set(by("bob").set("x", json("1")).unwrap());
    let mut watcher = store.watch();
    assert_eq!(all(&mut watcher), ["rows: ann x=1, ann y=1, bob x=1"]);
    store.clock.set(ms(2_000));
    let _untold = store.write("other", by("ann").set("x", json("2")).unwrap().seen(index(9)));
    let _untold = store.write("other", by("bob").remove("x").unwrap());
    let _untold = store.write("other", by("cyd").set("x", json("1")).unwrap());
    store.clock.set(ms(3_000));
    assert!(all(&mut watcher).is_empty());
    store.hub.wake(&store.namespace);
    let changes =
        ["ann x=2 seen 9 at 2000 from ", "bob x=null at 3000 from ", "cyd x=1 at 2000 from "];
    assert_eq!(all(&mut watcher), changes);
    // A changed `seen` is a change.
    let _untold = store.write("other", by("cyd").set("x", json("1")).unwrap().seen(index(2)));
    store.hub.wake_all();
    assert_eq!(all(&mut watcher), ["cyd x=1 seen 2 at 3000 from "]);
}

#[tokio::test(start_paused = true)]
async fn polling_finds_what_nobody_told() {
    let store = presence("polling");
    let mut watcher = store.watch_polling(Some(Duration::from_secs(2)));
    assert_eq!(all(&mut watcher), ["rows: "]);
    let _untold = store.write("other", by("ann").set("x", json("1")).unwrap());
    let start = tokio::time::Instant::now();
    let change = told(next(&mut watcher).await.unwrap().unwrap());
    assert_eq!(change, "ann x=1 at 1000 from ");
    // A moment later than it is found: it might be told yet who made it.
    assert_eq!(start.elapsed(), Duration::from_millis(2_020));
}

#[tokio::test(start_paused = true)]
async fn a_look_does_not_overtake_the_patch() {
    let store = presence("overtaking");
    let mut watcher = store.watch_polling(Some(Duration::from_secs(2)));
    assert_eq!(all(&mut watcher), ["rows: "]);
    let write = store.write("other", by("ann").set("x", json("1")).unwrap());
    tokio::time::sleep(Duration::from_millis(2_010)).await;
    assert_eq!(all(&mut watcher), [""; 0]);
    assert_eq!(store.reads(), 2, "it has looked");
    store.tell(&write);
    assert_eq!(all(&mut watcher), ["ann x=1 at 1000 from other"]);
}
