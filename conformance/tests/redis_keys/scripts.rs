//! What a server that forgot its scripts is asked again.

use std::time::Duration;

use a2_store_redis::request::RedriveAction;
use a2_store_redis::*;

use crate::util::*;

#[tokio::test]
async fn every_operation_survives_a_flush() {
    let space = Space::new().await;
    let (store, _) = space.timed().await;
    let (s, reducer) = (session("s"), ReducerName::new("r").unwrap());
    let room = Namespace::new("room").unwrap();
    let key = TimerKey::new("k").unwrap();
    // Somebody else's flush may come at any time as well.
    macro_rules! flushed {
        ($($call:expr),* $(,)?) => {
            $(
                space.command(&["SCRIPT", "FLUSH"]).await;
                let _ = $call.await.unwrap();
            )*
        };
    }
    let append = Append::one(event("e").target(to("c"))).unwrap();
    let log = LogDeclaration::new("log").unwrap();
    let head = HeadRef::new(Consumer::new("c").unwrap(), CursorKey::Event, Index::from(1));
    let snapshot = SnapshotWrite::new(Index::from(1), Json::null());
    let update = PresenceUpdate::new("ann", Duration::from_secs(1)).unwrap();
    let update = update.set("x", Json::parse("1").unwrap()).unwrap();
    flushed![
        store.append(&s, append),
        store.wake_log(&s, WakeLog::new("c", log).unwrap()),
        store.cursors(&s, Page::first()),
        store.dead_letters(&s, Page::first()),
        store.redrive(&s, Redrive::new(head, RedriveAction::Skip)),
        store.put_snapshots(&s, &reducer, PutSnapshots::new([snapshot]).unwrap()),
        store.read_state(&s, &reducer, ReadState::latest()),
        store.schedule(&s, timer("k", 0)),
        store.timers(&s, Page::first()),
        store.fire_timers(&s, FireTimers::new()),
        store.unschedule(&s, &key),
        store.sessions(Page::first()),
        store.pending(PendingPage::default()),
        live::DueTimers::next_due(&store, Timestamp::EPOCH),
        live::DueTimers::due_timers(&store, Timestamp::EPOCH, None, Timestamp::EPOCH, 1),
        store.set_presence(&room, update),
        store.read_presence(&room),
        store.clear(&s, Clear::new()),
        store.reclaim(&s),
    ];
    let events = store.read(&s, ReadRange::default()).await.unwrap().events;
    assert_eq!(events.iter().map(|event| event.index.get()).collect::<Vec<_>>(), [3]);
}
